package platform

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/version"
	"sigs.k8s.io/controller-runtime/pkg/client"

	platformv1alpha1 "github.com/odh-platform/odh-platform-operator/apis/platform/v1alpha1"
)

const (
	// versionKey is the key under which the platform writes its version.
	versionKey = "platformVersion"
	// maxVersion is the longest version that the platform reads back, in characters.
	maxVersion = 64

	platformRelease = "platform"
)

// ConditionVersion exists only while the platform's version cannot be reported.
const ConditionVersion = "PlatformVersionValid"

// ReasonInvalidVersion is its only reason.
const ReasonInvalidVersion = "InvalidPlatformVersion"

// checkVersion says what is wrong with a version of the platform.
func checkVersion(text string) error {
	if len(text) > maxVersion {
		return fmt.Errorf("%d characters are more than %d", len(text), maxVersion)
	}
	if _, err := version.ParseSemantic(text); err != nil {
		return errors.New("it is no semantic version")
	}
	return nil
}

// versionSource reads the version of the platform from a ConfigMap: the metadata from the cache, the content live and only
// when the ConfigMap has changed.
type versionSource struct {
	cached, live client.Reader
	key          client.ObjectKey

	mu      sync.Mutex
	uid     types.UID
	seen    string // resourceVersion of the content that is known
	content string
}

// read returns the version, "" when the platform names none.
func (s *versionSource) read(ctx context.Context) (string, error) { return s.readAt(ctx, s.key) }

// readAt is read for a ConfigMap whose place is not fixed.
func (s *versionSource) readAt(ctx context.Context, key client.ObjectKey) (string, error) {
	head := &metav1.PartialObjectMetadata{}
	head.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
	if err := s.cached.Get(ctx, key, head); err != nil {
		return "", client.IgnoreNotFound(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if head.UID == s.uid && head.ResourceVersion == s.seen {
		return s.content, nil
	}
	whole := &corev1.ConfigMap{}
	if err := s.live.Get(ctx, key, whole); err != nil {
		if apierrors.IsNotFound(err) {
			return "", nil
		}
		return "", fmt.Errorf("reading ConfigMap %s: %w", key, err)
	}
	s.uid, s.seen, s.content = head.UID, head.ResourceVersion, strings.TrimSpace(whole.Data[versionKey])
	return s.content, nil
}

// reportReleases lists the platform, if its version is known and fit to be reported, and then ours. An unfit version is no
// reason to keep the rest of the status back: it is named in a condition.
func (s *versionSource) reportReleases(ctx context.Context, status *platformv1alpha1.Status, now metav1.Time, generation int64,
	ours ...platformv1alpha1.Release) error {
	text, err := s.read(ctx)
	if err != nil {
		return err
	}
	var all []platformv1alpha1.Release
	removed := true
	if text != "" {
		if err := checkVersion(text); err == nil {
			all = append(all, platformv1alpha1.Release{Name: platformRelease, Version: text})
		} else {
			removed = false
			mergeCondition(&status.Conditions, now, platformv1alpha1.Condition{
				Type: ConditionVersion, Status: metav1.ConditionFalse, Reason: ReasonInvalidVersion,
				Severity: platformv1alpha1.SeverityInfo, ObservedGeneration: generation,
				Message: fmt.Sprintf("invalid platform version in %s: %s %q: %v; write a semantic version such as 2.30.0 or v2.30.0",
					s.key, versionKey, text, err),
			})
		}
	}
	if removed {
		removeCondition(&status.Conditions, ConditionVersion)
	}
	status.Releases = append(all, ours...)
	return nil
}

// unknownVersion stands where nobody knows a version.
const unknownVersion = "unknown"

// fallbackRelease is what an AIHub reports when the program names no release.
var fallbackRelease = platformv1alpha1.Release{
	Name: "model-registry-operator", Version: unknownVersion, RepoURL: "https://github.com/opendatahub-io/model-registry-operator",
}

// hubReleases lists the releases of the program, of each name the first one, and then that of the platform, if it tells its
// version. No entry is without a version, and there is always one.
func hubReleases(ours []platformv1alpha1.Release, platform string) []platformv1alpha1.Release {
	var all []platformv1alpha1.Release
	known := func(name string) bool {
		return slices.ContainsFunc(all, func(r platformv1alpha1.Release) bool { return r.Name == name })
	}
	for _, r := range ours {
		if r.Name == "" || r.Name == platformRelease || known(r.Name) {
			continue
		}
		if r.Version == "" {
			r.Version = unknownVersion
		}
		all = append(all, r)
	}
	if len(all) == 0 {
		all = append(all, fallbackRelease)
	}
	if platform != "" {
		all = append(all, platformv1alpha1.Release{Name: platformRelease, Version: platform})
	}
	return all
}

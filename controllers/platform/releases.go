package platform

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/version"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	platformv1alpha1 "github.com/odh-platform/odh-platform-operator/apis/platform/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/servers"
)

const (
	// versionKey is the key of the platform's version in the ConfigMap.
	versionKey = "platformVersion"
	// maxVersionLength is the maximum length of a version that the platform accepts in a status.
	maxVersionLength = 64

	platformRelease = "platform"
)

// ConditionVersion exists, and is False, only while the platform's version is invalid.
const ConditionVersion = "PlatformVersionValid"

// ReasonInvalidVersion is the reason of ConditionVersion.
const ReasonInvalidVersion = "InvalidPlatformVersion"

// validateVersion returns why a version of the platform cannot be reported.
func validateVersion(text string) error {
	if len(text) > maxVersionLength {
		return fmt.Errorf("it has %d characters, and at most %d are allowed", len(text), maxVersionLength)
	}
	if _, err := version.ParseSemantic(text); err != nil {
		return errors.New("not a semantic version")
	}
	return nil
}

// versionCache returns a cache of the ConfigMap with the platform's version, in one namespace or, for "", in all.
func versionCache(mgr ctrl.Manager, namespace, name string) (cache.Cache, error) {
	caches, err := servers.NamedCaches(mgr, namespace, apply.Transform(), name)
	return caches[name], err
}

// readVersion returns the version of the platform, or "" without one.
func readVersion(ctx context.Context, cached client.Reader, key client.ObjectKey) (string, error) {
	configMap := &corev1.ConfigMap{}
	if err := cached.Get(ctx, key, configMap); client.IgnoreNotFound(err) != nil {
		return "", fmt.Errorf("reading ConfigMap %s: %w", key, err)
	}
	return strings.TrimSpace(configMap.Data[versionKey]), nil
}

// distribution returns the product that runs this operator, or nil if name and version are empty.
func distribution(name, version string) *platformv1alpha1.Distribution {
	if name == "" && version == "" {
		return nil
	}
	return &platformv1alpha1.Distribution{Name: name, Version: version}
}

// unknownVersion is the version of a release without one.
const unknownVersion = "unknown"

// fallbackRelease is the release of an AIHub if the build has none.
var fallbackRelease = platformv1alpha1.Release{
	Name: "model-registry-operator", Version: unknownVersion, RepoURL: "https://github.com/opendatahub-io/model-registry-operator",
}

// aihubReleases returns the releases of the build, the first for each name, followed by that of the platform if it has a version. The list
// is never empty and every entry has a version.
func aihubReleases(build []platformv1alpha1.Release, platform string) []platformv1alpha1.Release {
	var all []platformv1alpha1.Release
	listed := func(name string) bool {
		return slices.ContainsFunc(all, func(r platformv1alpha1.Release) bool { return r.Name == name })
	}
	for _, r := range build {
		if r.Name == "" || r.Name == platformRelease || listed(r.Name) {
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

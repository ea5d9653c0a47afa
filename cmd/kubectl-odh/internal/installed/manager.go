package installed

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/odh-platform/odh-platform-operator/cmd/kubectl-odh/internal/fetch"
	"github.com/odh-platform/odh-platform-operator/cmd/kubectl-odh/internal/served"
	"github.com/odh-platform/odh-platform-operator/pkg/names"
	"github.com/odh-platform/odh-platform-operator/pkg/status/health"
)

// DeploymentName is the name of the manager's Deployment in every installation.
const DeploymentName = "odh-platform-operator-controller-manager"

// container is the manager's, in the pods of its Deployment.
const container = "manager"

// likely are the namespaces of our overlays, which are tried where the whole cluster cannot be searched.
var likely = []string{"opendatahub", "redhat-ods-applications"}

// Manager is what was found.
type Manager struct {
	// Deployment of the manager; nil when there is none, or none that may be seen.
	Deployment *appsv1.Deployment
	// Hidden tells that the caller may not look for Deployment or Lease, so that there may be more than was found.
	Hidden bool
	// Others are the namespaces of further Deployments of the name.
	Others []string
	// Health of the Deployment.
	Health health.Verdict
	// Image of the manager's container; Version is its tag, or the beginning of its digest.
	Image, Version string
	// Lease says who leads; nil when there is none, or none that may be seen.
	Lease *Lease
	// Settings are those that the manager runs with.
	Settings Settings
}

// Lease is the one with which replicas compete.
type Lease struct {
	Namespace string `json:"namespace"`
	// Holder is the name of the leading pod, with a suffix; empty when no replica leads.
	Holder string `json:"holder"`
	// Renewed is when the holder renewed it last, and Expires when others may take it.
	Renewed time.Time `json:"renewed,omitzero"`
	Expires time.Time `json:"expires,omitzero"`
}

// Held tells whether a replica leads.
func (l *Lease) Held(now time.Time) bool { return l != nil && l.Holder != "" && now.Before(l.Expires) }

// Find looks for the manager: in one namespace, or, when that is empty, in all, or at least in the likely ones.
func Find(ctx context.Context, reader fetch.Reader, set served.Set, namespace string, own string, gaps *fetch.Gaps) Manager {
	var m Manager
	search := searcher{reader, set, gaps, namespace, slices.Compact(append([]string{own}, likely...))}
	var found []*appsv1.Deployment
	deployments, allowed := search.named(ctx, "apps", "Deployment", DeploymentName)
	for _, u := range deployments {
		var d appsv1.Deployment
		if decode(&u, &d) {
			found = append(found, &d)
		}
	}
	// Of several the one with replicas counts.
	slices.SortStableFunc(found, func(a, b *appsv1.Deployment) int { return cmp.Compare(b.Status.Replicas, a.Status.Replicas) })
	if len(found) > 0 {
		m.describe(found)
		m.Settings = readSettings(ctx, reader, set, m.Deployment, gaps)
	}
	leases, leaseAllowed := search.named(ctx, "coordination.k8s.io", "Lease", names.OperatorName)
	m.Hidden = !allowed || !leaseAllowed
	for _, u := range leases {
		if l := ReadLease(&u); m.Lease == nil || l.Renewed.After(m.Lease.Renewed) {
			m.Lease = l
		}
	}
	return m
}

func (m *Manager) describe(found []*appsv1.Deployment) {
	m.Deployment = found[0]
	for _, other := range found[1:] {
		m.Others = append(m.Others, other.Namespace)
	}
	if content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(m.Deployment); err == nil {
		u := &unstructured.Unstructured{Object: content}
		u.SetGroupVersionKind(appsv1.SchemeGroupVersion.WithKind("Deployment"))
		m.Health = health.Of(u)
	}
	if c := managerContainer(m.Deployment); c != nil {
		m.Image = c.Image
		m.Version = version(c.Image)
	}
}

// managerContainer is the container with the program; nil when there is none.
func managerContainer(d *appsv1.Deployment) *corev1.Container {
	containers := d.Spec.Template.Spec.Containers
	i := slices.IndexFunc(containers, func(c corev1.Container) bool { return c.Name == container })
	if i < 0 {
		return nil
	}
	return &containers[i]
}

// version is what an image says about its version.
func version(image string) string {
	const digits = 12
	if name, digest, found := strings.Cut(image, "@"); found {
		if _, hex, is := strings.Cut(digest, ":"); is && len(hex) > digits {
			digest = hex[:digits]
		}
		if tag := version(name); tag != "" {
			return tag + "@" + digest
		}
		return digest
	}
	last := image[strings.LastIndex(image, "/")+1:]
	_, tag, _ := strings.Cut(last, ":")
	return tag
}

// searcher looks for objects by their name, as far as the caller may.
type searcher struct {
	reader    fetch.Reader
	set       served.Set
	gaps      *fetch.Gaps
	namespace string   // the only one, if not empty
	likely    []string // tried when the cluster cannot be searched
}

// named returns the objects of a name, and whether the caller may look for them.
func (s searcher) named(ctx context.Context, group, kind, name string) (found []unstructured.Unstructured, allowed bool) {
	k, ok := s.set.Kind(group, kind)
	if !ok {
		return nil, true
	}
	what := fmt.Sprintf("%s %s", kind, name)
	found, err := s.reader.List(ctx, k, s.namespace, metav1.ListOptions{FieldSelector: "metadata.name=" + name})
	if err == nil || s.namespace != "" {
		s.gaps.Note(what, err)
		return found, err == nil
	}
	for _, namespace := range s.likely {
		if u, got := s.reader.Get(ctx, k, namespace, name); got == nil {
			return append(found, *u), true
		}
	}
	s.gaps.Note(what, err)
	return nil, false
}

// ReadLease decodes a Lease; one of another shape has no holder.
func ReadLease(u *unstructured.Unstructured) *Lease {
	var l coordinationv1.Lease
	if !decode(u, &l) {
		return &Lease{Namespace: u.GetNamespace()}
	}
	out := &Lease{Namespace: l.Namespace}
	if l.Spec.HolderIdentity != nil {
		out.Holder = *l.Spec.HolderIdentity
	}
	if l.Spec.RenewTime != nil {
		out.Renewed = l.Spec.RenewTime.Time
	}
	if l.Spec.LeaseDurationSeconds != nil {
		out.Expires = out.Renewed.Add(time.Duration(*l.Spec.LeaseDurationSeconds) * time.Second)
	}
	return out
}

func decode(u *unstructured.Unstructured, into any) bool {
	return runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, into) == nil
}

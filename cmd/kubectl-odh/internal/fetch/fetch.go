// Package fetch discovers the kinds that a cluster serves, and reads many objects concurrently. Errors are recorded as gaps and do not end the
// command.
package fetch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/pager"
	"k8s.io/client-go/util/workqueue"
)

const maxConcurrentRequests = 10

// Map runs a task concurrently for each item and returns the results in the order of the items.
func Map[T, R any](items []T, task func(T) R) []R {
	results := make([]R, len(items))
	workqueue.ParallelizeUntil(context.Background(), maxConcurrentRequests, len(items), func(i int) { results[i] = task(items[i]) })
	return results
}

// Reader reads from a cluster with the permissions of the kubeconfig user. A kind that is not served has no objects.
type Reader struct {
	Objects  dynamic.Interface
	Metadata metadata.Interface
	// Set are the served kinds.
	Set
	// ContextNamespace is the value of the flag -n, or else the namespace of the kubeconfig context.
	ContextNamespace string
	// Gaps records errors; nil to drop them.
	*Gaps
}

// WithGaps returns a reader that records errors in gaps.
func (r Reader) WithGaps(gaps *Gaps) Reader {
	r.Gaps = gaps
	return r
}

// List returns all objects of a kind in a namespace, "" for all namespaces. The error is a [Gap].
func (r Reader) List(ctx context.Context, kind Kind, namespace string, options metav1.ListOptions) ([]unstructured.Unstructured, error) {
	return r.list(ctx, kind, namespace, options, func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
		return r.Objects.Resource(kind.GVR()).Namespace(kind.scope(namespace)).List(ctx, o)
	})
}

// ListMetadata is List for metadata only.
func (r Reader) ListMetadata(ctx context.Context, kind Kind, namespace string, options metav1.ListOptions) ([]unstructured.Unstructured, error) {
	return r.list(ctx, kind, namespace, options, func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
		return r.Metadata.Resource(kind.GVR()).Namespace(kind.scope(namespace)).List(ctx, o)
	})
}

func (r Reader) list(ctx context.Context, kind Kind, namespace string, options metav1.ListOptions, page pager.ListPageFunc) (all []unstructured.Unstructured, err error) {
	if !kind.Served() {
		return nil, nil
	}
	err = pager.New(page).EachListItem(ctx, options, func(o runtime.Object) error {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
		all = append(all, unstructured.Unstructured{Object: content})
		return err
	})
	if err = r.recordGap("list", kind, namespace, "", err); err != nil {
		return nil, err
	}
	return all, nil
}

// Get returns one object, or nil if it does not exist. The error is a [Gap].
func (r Reader) Get(ctx context.Context, kind Kind, namespace, name string) (*unstructured.Unstructured, error) {
	if !kind.Served() {
		return nil, nil
	}
	u, err := r.Objects.Resource(kind.GVR()).Namespace(kind.scope(namespace)).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, r.recordGap("get", kind, namespace, name, err)
	}
	return u, nil
}

// GetByName is Get for a kind in the form "Deployment.apps". It returns nil after an error, which it records.
func (r Reader) GetByName(ctx context.Context, kind, namespace, name string) *unstructured.Unstructured {
	u, _ := r.Get(ctx, r.Kind(kind), namespace, name)
	return u
}

// recordGap records a failed request and returns it as a [Gap]. It returns nil without an error, and if the object or API does not exist.
func (r Reader) recordGap(verb string, kind Kind, namespace, name string, err error) error {
	if err == nil || apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err) {
		return nil
	}
	gap := &Gap{Verb: verb, What: strings.TrimSuffix(kind.GVR().GroupResource().String()+"/"+name, "/"), Err: err}
	switch {
	case !kind.Namespaced:
	case namespace == "":
		gap.What += " in all namespaces"
	default:
		gap.What += " in namespace " + namespace
	}
	r.Note(gap)
	return gap
}

// Decode converts an object into its type, or returns nil for nil. Fields of an unexpected type stay empty.
func Decode[T any](u *unstructured.Unstructured) *T {
	if u == nil {
		return nil
	}
	out := new(T)
	_ = runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, out) // the API server stores only decodable objects
	return out
}

// Gap is a failed request.
type Gap struct {
	// Verb is the verb of the request, What is its target, such as "deployments.apps in namespace team".
	Verb, What string
	Err        error
}

// Error implements error.
func (g *Gap) Error() string {
	if apierrors.IsForbidden(g.Err) {
		return "not allowed to " + g.Verb + " " + g.What
	}
	cause := cmp.Or(errors.Unwrap(g.Err), g.Err) // without the URL of the request
	return fmt.Sprintf("%s could not be read: %s", g.What, cause)
}

// Unwrap returns the error of the API server.
func (g *Gap) Unwrap() error { return g.Err }

// Gaps records failed requests. It is safe for concurrent use.
type Gaps struct {
	mu    sync.Mutex
	lines []string
}

// Note records an error, unless it is nil.
func (g *Gaps) Note(err error) {
	if g == nil || err == nil {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.lines = append(g.lines, err.Error())
}

// Lines returns the unique sorted errors.
func (g *Gaps) Lines() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	slices.Sort(g.lines)
	return slices.Compact(slices.Clone(g.lines))
}

// Notes returns the errors, and notes about APIs that do not respond.
func (r Reader) Notes() []string {
	notes := r.Lines()
	for _, version := range r.Failed {
		notes = append(notes, "the API "+version+" does not answer")
	}
	return notes
}

// Kind is a served kind. The zero value is a kind that is not served.
type Kind struct {
	schema.GroupVersionKind
	// Resource is the plural name.
	Resource string
	// Namespaced reports whether its objects are namespaced, Listable whether they can be listed.
	Namespaced, Listable bool
}

// GVR returns the resource of the kind.
func (k Kind) GVR() schema.GroupVersionResource { return k.GroupVersion().WithResource(k.Resource) }

// Served reports whether the cluster serves the kind.
func (k Kind) Served() bool { return k.Resource != "" }

// scope returns the namespace of a request; "" for cluster-scoped kinds.
func (k Kind) scope(namespace string) string {
	if !k.Namespaced {
		return ""
	}
	return namespace
}

// Set are the kinds that a cluster serves.
type Set struct {
	// Kinds are in the order of discovery: the preferred version of a group first.
	Kinds []Kind
	// Failed are group versions whose discovery failed, such as those of an unavailable aggregated API.
	Failed []string
}

// Discover discovers the served kinds. It fails if nothing could be discovered.
func Discover(ctx context.Context, client discovery.DiscoveryInterface) (set Set, err error) {
	groups, lists, err := discovery.ServerGroupsAndResourcesWithContext(ctx, discovery.ToDiscoveryInterfaceWithContext(client))
	failed, partial := discovery.GroupDiscoveryFailedErrorGroups(err)
	if err != nil && !partial {
		return Set{}, fmt.Errorf("discovering the served APIs: %w", err)
	}
	for version := range failed {
		set.Failed = append(set.Failed, version.String())
	}
	slices.Sort(set.Failed)
	var order []string // aggregated discovery returns the lists in any order
	for _, group := range groups {
		order = append(order, metav1.ExtractGroupVersions(&metav1.APIGroupList{Groups: []metav1.APIGroup{*group}})...)
	}
	index := func(l *metav1.APIResourceList) int { return slices.Index(order, l.GroupVersion) }
	slices.SortFunc(lists, func(a, b *metav1.APIResourceList) int { return index(a) - index(b) })
	for _, list := range lists {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		for _, r := range list.APIResources {
			if err == nil && !strings.Contains(r.Name, "/") { // skip invalid versions and subresources
				set.Kinds = append(set.Kinds, Kind{version.WithKind(r.Kind), r.Name, r.Namespaced, slices.Contains(r.Verbs, "list")})
			}
		}
	}
	return set, nil
}

func (s Set) first(matches func(Kind) bool) Kind {
	if i := slices.IndexFunc(s.Kinds, matches); i >= 0 {
		return s.Kinds[i]
	}
	return Kind{}
}

// Kind returns a kind, in the form "Deployment.apps", in the preferred version.
func (s Set) Kind(name string) Kind {
	return s.first(func(k Kind) bool { return k.GroupKind() == schema.ParseGroupKind(name) })
}

// ForGVK returns a kind in a version.
func (s Set) ForGVK(gvk schema.GroupVersionKind) Kind {
	return s.first(func(k Kind) bool { return k.GroupVersionKind == gvk })
}

// Has reports whether a kind is served in that version.
func (s Set) Has(gvk schema.GroupVersionKind) bool { return s.ForGVK(gvk).Served() }

// Package fetch reads from a cluster: which kinds it serves, and many objects at once. What cannot be read is noted and does not end
// the command.
package fetch

import (
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

// atOnce bounds the requests on their way.
const maxConcurrentRequests = 10

// Map runs a task for each item, some at once, and returns their results in the order of the items.
func Map[T, R any](items []T, task func(T) R) []R {
	results := make([]R, len(items))
	workqueue.ParallelizeUntil(context.Background(), maxConcurrentRequests, len(items), func(i int) { results[i] = task(items[i]) })
	return results
}

// Reader reads from a cluster as far as its user may. A kind that is not served has no objects.
type Reader struct {
	Objects  dynamic.Interface
	Metadata metadata.Interface
	// Set is what the cluster serves.
	Set
	// Own is the namespace of the context.
	ContextNamespace string
	// Gaps record what cannot be read; nil for no notes.
	*Gaps
}

// Noting returns the reader with another place for its notes.
func (r Reader) WithGaps(gaps *Gaps) Reader {
	r.Gaps = gaps
	return r
}

// List reads all objects of a kind in a namespace, "" for all namespaces. An error is a [Gap].
func (r Reader) List(ctx context.Context, kind Kind, namespace string, options metav1.ListOptions) ([]unstructured.Unstructured, error) {
	return r.list(ctx, kind, namespace, options, func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
		return r.Objects.Resource(kind.GVR()).Namespace(kind.scope(namespace)).List(ctx, o)
	})
}

// ListMetadata is List for the metadata of the objects.
func (r Reader) ListMetadata(ctx context.Context, kind Kind, namespace string, options metav1.ListOptions) ([]unstructured.Unstructured, error) {
	return r.list(ctx, kind, namespace, options, func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
		return r.Metadata.Resource(kind.GVR()).Namespace(kind.scope(namespace)).List(ctx, o)
	})
}

// list requests one page after the other.
func (r Reader) list(
	ctx context.Context, kind Kind, namespace string, options metav1.ListOptions, page pager.ListPageFunc,
) (all []unstructured.Unstructured, err error) {
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

// Get reads one object, nil for one that does not exist. An error is a [Gap].
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

// Named is Get for a kind that is named as in "Deployment.apps"; nil also for what cannot be read, which is noted.
func (r Reader) GetByName(ctx context.Context, kind, namespace, name string) *unstructured.Unstructured {
	u, _ := r.Get(ctx, r.Kind(kind), namespace, name)
	return u
}

// outcome notes a request that failed, and returns that as an error. A missing object or API is a valid answer.
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

// As decodes an object into its type; nil for none. Fields of another type than expected stay empty.
func Decode[T any](u *unstructured.Unstructured) *T {
	if u == nil {
		return nil
	}
	out := new(T)
	_ = runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, out) // the API server stores nothing that it could not decode
	return out
}

// Gap is something that could not be read, as an error.
type Gap struct {
	// Verb of the request, and What it was for, such as "deployments.apps in namespace team".
	Verb, What string
	Err        error
}

// Error implements error.
func (g *Gap) Error() string {
	if apierrors.IsForbidden(g.Err) {
		return "not allowed to " + g.Verb + " " + g.What
	}
	cause := g.Err
	if inner := errors.Unwrap(cause); inner != nil { // without the request that it is about
		cause = inner
	}
	return fmt.Sprintf("%s could not be read: %s", g.What, cause)
}

// Unwrap returns the answer of the API server.
func (g *Gap) Unwrap() error { return g.Err }

// Gaps are what could not be read. It may be used by several tasks at once.
type Gaps struct {
	mu    sync.Mutex
	lines []string
}

// Note records an error, if it is one.
func (g *Gaps) Note(err error) {
	if g == nil || err == nil {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.lines = append(g.lines, err.Error())
}

// Lines say what the gaps are, each once.
func (g *Gaps) Lines() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	slices.Sort(g.lines)
	return slices.Compact(slices.Clone(g.lines))
}

// Notes say what could not be read, and which APIs do not answer.
func (r Reader) Notes() []string {
	notes := r.Lines()
	for _, version := range r.Failed {
		notes = append(notes, "the API "+version+" does not answer")
	}
	return notes
}

// Kind is a kind that is served; the zero value is one that is not.
type Kind struct {
	schema.GroupVersionKind
	// Resource is its plural name.
	Resource string
	// Namespaced tells whether its objects are in namespaces, Listable whether they can be listed.
	Namespaced, Listable bool
}

// GVR names the kind in requests.
func (k Kind) GVR() schema.GroupVersionResource { return k.GroupVersion().WithResource(k.Resource) }

// Served tells whether the cluster has the kind.
func (k Kind) Served() bool { return k.Resource != "" }

// scope is the namespace of a request: none for kinds of cluster scope.
func (k Kind) scope(namespace string) string {
	if !k.Namespaced {
		return ""
	}
	return namespace
}

// Set is what a cluster serves.
type Set struct {
	// Kinds are in the order of discovery, in which the version that a group prefers comes first.
	Kinds []Kind
	// Failed are group versions that could not be read, such as those of an aggregated API whose server is away.
	Failed []string
}

// Discover asks the API server. An error means that nothing is known.
func Discover(ctx context.Context, client discovery.DiscoveryInterface) (Set, error) {
	_, lists, err := discovery.ServerGroupsAndResourcesWithContext(ctx, discovery.ToDiscoveryInterfaceWithContext(client))
	var set Set
	failed, partly := discovery.GroupDiscoveryFailedErrorGroups(err)
	if err != nil && !partly {
		return Set{}, fmt.Errorf("asking the API server what it serves: %w", err)
	}
	for version := range failed {
		set.Failed = append(set.Failed, version.String())
	}
	slices.Sort(set.Failed)
	for _, list := range lists {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		for _, r := range list.APIResources {
			if err == nil && !strings.Contains(r.Name, "/") { // else no version that a request could name, or a part of another resource
				set.Kinds = append(set.Kinds, Kind{version.WithKind(r.Kind), r.Name, r.Namespaced, slices.Contains(r.Verbs, "list")})
			}
		}
	}
	return set, nil
}

func (s Set) first(wanted func(Kind) bool) Kind {
	if i := slices.IndexFunc(s.Kinds, wanted); i >= 0 {
		return s.Kinds[i]
	}
	return Kind{}
}

// Kind returns a kind, named as in "Deployment.apps", in the version that its group prefers.
func (s Set) Kind(name string) Kind {
	return s.first(func(k Kind) bool { return k.GroupKind() == schema.ParseGroupKind(name) })
}

// Exact returns a kind in a version.
func (s Set) ForGVK(gvk schema.GroupVersionKind) Kind {
	return s.first(func(k Kind) bool { return k.GroupVersionKind == gvk })
}

// Has reports whether a kind is served in that version.
func (s Set) Has(gvk schema.GroupVersionKind) bool { return s.ForGVK(gvk).Served() }

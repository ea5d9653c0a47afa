// Package fetch reads from a cluster: which kinds it serves, and many objects at once. What cannot be read is noted and does not end
// the command.
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

// atOnce bounds the requests on their way.
const atOnce = 10

// Reader reads from a cluster as far as its user may. A kind that is not served has no objects.
type Reader struct {
	Objects  dynamic.Interface
	Metadata metadata.Interface
	// Set is what the cluster serves.
	Set
	// Own is the namespace of the context.
	Own string
	// Gaps record what cannot be read; nil for no notes.
	*Gaps
}

// Noting returns the reader with another place for its notes.
func (r Reader) Noting(gaps *Gaps) Reader {
	r.Gaps = gaps
	return r
}

// Map runs a task for each item, some at once, and returns their results in the order of the items.
func Map[T, R any](items []T, task func(T) R) []R {
	results := make([]R, len(items))
	workqueue.ParallelizeUntil(context.Background(), atOnce, len(items), func(i int) { results[i] = task(items[i]) })
	return results
}

// Each is Map for tasks without a result.
func Each[T any](items []T, task func(T)) {
	Map(items, func(item T) struct{} {
		task(item)
		return struct{}{}
	})
}

// List reads all objects of a kind in a namespace, "" for all namespaces. An error is a [Gap].
func (r Reader) List(ctx context.Context, kind Kind, namespace string, options metav1.ListOptions) ([]unstructured.Unstructured, error) {
	resource := r.Objects.Resource(kind.GVR()).Namespace(kind.scope(namespace))
	return list[unstructured.Unstructured](ctx, r, kind, namespace, options, resource.List)
}

// ListMetadata is List for the metadata of the objects.
func (r Reader) ListMetadata(
	ctx context.Context, kind Kind, namespace string, options metav1.ListOptions,
) ([]metav1.PartialObjectMetadata, error) {
	resource := r.Metadata.Resource(kind.GVR()).Namespace(kind.scope(namespace))
	return list[metav1.PartialObjectMetadata](ctx, r, kind, namespace, options, resource.List)
}

// list requests one page after the other.
func list[T any, L runtime.Object](ctx context.Context, r Reader, kind Kind, namespace string, options metav1.ListOptions,
	page func(context.Context, metav1.ListOptions) (L, error),
) ([]T, error) {
	if !kind.Served() {
		return nil, nil
	}
	var all []T
	pages := pager.New(func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return page(ctx, o) })
	err := pages.EachListItem(ctx, options, func(o runtime.Object) error {
		all = append(all, *any(o).(*T))
		return nil
	})
	if err = r.outcome("list", kind, namespace, "", err); err != nil {
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
		return nil, r.outcome("get", kind, namespace, name, err)
	}
	r.Note(nil)
	return u, nil
}

// scope is the namespace of a request: none for kinds of cluster scope.
func (k Kind) scope(namespace string) string {
	if !k.Namespaced {
		return ""
	}
	return namespace
}

// outcome notes the result of a request, and returns an error for one that failed. A missing object or API is a valid answer.
func (r Reader) outcome(verb string, kind Kind, namespace, name string, err error) error {
	if err == nil || apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err) {
		r.Note(nil)
		return nil
	}
	gap := &Gap{Verb: verb, Resource: kind.GVR().GroupResource().String(), Name: name, Err: err}
	switch {
	case !kind.Namespaced:
	case namespace == "":
		gap.Where = "in all namespaces"
	default:
		gap.Where = "in namespace " + namespace
	}
	r.Note(gap)
	return gap
}

// Notes say what could not be read.
func (r Reader) Notes() []string {
	notes := r.Lines()
	for _, version := range r.Failed {
		notes = append(notes, "the API "+version+" does not answer")
	}
	return notes
}

// As decodes an object into its type; nil for none. Fields of another type than expected stay empty.
func As[T any](u *unstructured.Unstructured) *T {
	if u == nil {
		return nil
	}
	out := new(T)
	_ = runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, out) // the API server stores nothing that it could not decode
	return out
}

// Gap is something that could not be read, as an error.
type Gap struct {
	// Verb and Resource, such as deployments.apps, of the request, Name of the object, "" for all, and Where, such as "in namespace team".
	Verb, Resource, Name, Where string
	Err                         error
}

// What is the resource, with the name of the object.
func (g *Gap) What() string { return strings.TrimSuffix(g.Resource+"/"+g.Name, "/") }

// Forbidden tells that the caller lacks the permission.
func (g *Gap) Forbidden() bool { return apierrors.IsForbidden(g.Err) }

// Error implements error.
func (g *Gap) Error() string {
	if g.Forbidden() {
		return lacking(g.Verb, g.What(), g.Where)
	}
	cause := g.Err
	if inner := errors.Unwrap(cause); inner != nil { // without the request that it is about
		cause = inner
	}
	return fmt.Sprintf("%s could not be read: %s", g.What(), cause)
}

// Unwrap returns the answer of the API server.
func (g *Gap) Unwrap() error { return g.Err }

func lacking(verb, what, where string) string {
	return strings.TrimSpace("not allowed to " + verb + " " + what + " " + where)
}

// Gaps are what could not be read. It may be used by several tasks at once.
type Gaps struct {
	mu       sync.Mutex
	all      []*Gap
	answered bool
}

// Note records a [Gap], or an answer, which is nil.
func (g *Gaps) Note(err error) {
	if g == nil {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	gap, is := errors.AsType[*Gap](err)
	g.answered = g.answered || !is || gap.Forbidden()
	if is {
		g.all = append(g.all, gap)
	}
}

// All returns the gaps.
func (g *Gaps) All() []*Gap {
	if g == nil {
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.all)
}

// Unanswered returns an error when nothing at all was answered, as by a cluster that is away or does not know the caller.
func (g *Gaps) Unanswered() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.answered || len(g.all) == 0 {
		return nil
	}
	return fmt.Errorf("the cluster does not answer: %w", g.all[len(g.all)-1].Err)
}

// Lines say what the gaps are: one sentence for each permission that is lacking, with all resources that it is lacking for, and one for
// each other failure.
func (g *Gaps) Lines() []string {
	resources := map[[2]string][]string{} // that are not allowed, by verb and place
	var denials, failures []string
	for _, gap := range g.All() {
		if !gap.Forbidden() {
			failures = append(failures, gap.Error())
			continue
		}
		permission := [2]string{gap.Verb, gap.Where}
		resources[permission] = append(resources[permission], gap.What())
	}
	for permission, all := range resources {
		slices.Sort(all)
		denials = append(denials, lacking(permission[0], strings.Join(slices.Compact(all), ", "), permission[1]))
	}
	slices.Sort(denials)
	slices.Sort(failures)
	return append(denials, slices.Compact(failures)...)
}

// Kind is a kind that is served; the zero value is one that is not.
type Kind struct {
	schema.GroupVersionKind
	// Resource is its plural name.
	Resource string
	// Namespaced tells whether its objects are in namespaces, Listable whether they can be listed.
	Namespaced, Listable bool
	// Preferred tells whether it is the version that the group prefers.
	Preferred bool
}

// GVR names the kind in requests.
func (k Kind) GVR() schema.GroupVersionResource {
	return k.GroupVersion().WithResource(k.Resource)
}

// Served tells whether the cluster has the kind.
func (k Kind) Served() bool { return k.Resource != "" }

// Set is what a cluster serves.
type Set struct {
	kinds []Kind
	// Failed are group versions that could not be read, such as those of an aggregated API whose server is away.
	Failed []string
}

// NewSet returns a set of these kinds.
func NewSet(kinds ...Kind) Set { return Set{kinds: kinds} }

// Discover asks the API server. An error means that nothing is known.
func Discover(ctx context.Context, client discovery.DiscoveryInterface) (Set, error) {
	groups, lists, err := discovery.ServerGroupsAndResourcesWithContext(ctx, discovery.ToDiscoveryInterfaceWithContext(client))
	var set Set
	if failed, is := discovery.GroupDiscoveryFailedErrorGroups(err); is {
		for version := range failed {
			set.Failed = append(set.Failed, version.String())
		}
		slices.Sort(set.Failed)
	} else if err != nil {
		return Set{}, fmt.Errorf("asking the API server what it serves: %w", err)
	}
	preferred := map[string]bool{}
	for _, group := range groups {
		preferred[group.PreferredVersion.GroupVersion] = true
	}
	for _, list := range lists {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		for _, r := range list.APIResources {
			if err != nil || strings.Contains(r.Name, "/") {
				continue // no version that a request could name, or a part of another resource
			}
			set.kinds = append(set.kinds, Kind{
				GroupVersionKind: version.WithKind(r.Kind), Resource: r.Name, Namespaced: r.Namespaced, Listable: slices.Contains(r.Verbs, "list"),
				Preferred: preferred[list.GroupVersion],
			})
		}
	}
	return set, nil
}

// Kind returns a kind, named as in "Deployment.apps", in the version that its group prefers, else in any.
func (s Set) Kind(name string) Kind {
	wanted := schema.ParseGroupKind(name)
	return s.best(func(k Kind) bool { return k.GroupKind() == wanted })
}

// Exact returns a kind in a version.
func (s Set) Exact(gvk schema.GroupVersionKind) Kind {
	return s.best(func(k Kind) bool { return k.GroupVersionKind == gvk })
}

// Has reports whether a kind is served in that version.
func (s Set) Has(gvk schema.GroupVersionKind) bool { return s.Exact(gvk).Served() }

// best is a wanted kind, in the preferred version if that is among them.
func (s Set) best(wanted func(Kind) bool) Kind {
	var found Kind
	for _, k := range s.kinds {
		if wanted(k) && (!found.Served() || k.Preferred && !found.Preferred) {
			found = k
		}
	}
	return found
}

// Listable returns each kind that can be listed once, in the preferred version of its group, sorted.
func (s Set) Listable() []Kind {
	out := slices.DeleteFunc(slices.Clone(s.kinds), func(k Kind) bool {
		chosen := s.best(func(other Kind) bool { return other.Listable && other.GroupKind() == k.GroupKind() })
		return k.GroupVersionKind != chosen.GroupVersionKind
	})
	slices.SortFunc(out, func(a, b Kind) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Kind, b.Kind))
	})
	return out
}

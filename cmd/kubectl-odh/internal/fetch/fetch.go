// Package fetch reads many things from a cluster at once, and takes note of what cannot be read instead of giving up.
package fetch

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/pager"

	"github.com/odh-platform/odh-platform-operator/cmd/kubectl-odh/internal/served"
)

// atOnce bounds the requests on their way.
const atOnce = 10

// Reader reads from a cluster.
type Reader struct {
	Objects  dynamic.Interface
	Metadata metadata.Interface
}

// Each runs a task for each item, some at once, and returns when all have ended.
func Each[T any](items []T, task func(T)) {
	var group errgroup.Group
	group.SetLimit(atOnce)
	for _, item := range items {
		group.Go(func() error {
			task(item)
			return nil
		})
	}
	_ = group.Wait() // tasks return none
}

// List reads all objects of a kind in a namespace, empty for all namespaces.
func (r Reader) List(ctx context.Context, kind served.Kind, namespace string, options metav1.ListOptions) ([]unstructured.Unstructured, error) {
	found, err := list[unstructured.Unstructured](ctx, options, r.Objects.Resource(kind.GVR()).Namespace(namespace).List)
	return found, denied("list", kind, namespace, "", err)
}

// ListMetadata is List for the metadata of the objects.
func (r Reader) ListMetadata(ctx context.Context, kind served.Kind, namespace string, options metav1.ListOptions) ([]metav1.PartialObjectMetadata, error) {
	found, err := list[metav1.PartialObjectMetadata](ctx, options, r.Metadata.Resource(kind.GVR()).Namespace(namespace).List)
	return found, denied("list", kind, namespace, "", err)
}

// list requests one page after the other.
func list[T any, L runtime.Object](ctx context.Context, options metav1.ListOptions, page func(context.Context, metav1.ListOptions) (L, error)) ([]T, error) {
	var all []T
	pages := pager.New(func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return page(ctx, o) })
	err := pages.EachListItem(ctx, options, func(o runtime.Object) error {
		all = append(all, *any(o).(*T))
		return nil
	})
	return all, err
}

// Get reads one object.
func (r Reader) Get(ctx context.Context, kind served.Kind, namespace, name string) (*unstructured.Unstructured, error) {
	u, err := r.Objects.Resource(kind.GVR()).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
	return u, denied("get", kind, namespace, name, err)
}

// Denied is the answer to a request that the caller lacks the permission for.
type Denied struct {
	// Verb, Resource, such as deployments.apps or deployments.apps/web, and Where, such as "in namespace team", are what is lacking.
	Verb, Resource, Where string
	error
}

// Error implements error.
func (d *Denied) Error() string {
	return strings.TrimSuffix("not allowed to "+d.Verb+" "+d.Resource+" "+d.Where, " ")
}

// Unwrap returns the answer of the API server.
func (d *Denied) Unwrap() error { return d.error }

func denied(verb string, kind served.Kind, namespace, name string, err error) error {
	if !apierrors.IsForbidden(err) {
		return err
	}
	d := &Denied{Verb: verb, Resource: strings.TrimSuffix(kind.GVR().GroupResource().String()+"/"+name, "/"), error: err}
	switch {
	case namespace != "":
		d.Where = "in namespace " + namespace
	case kind.Namespaced:
		d.Where = "in all namespaces"
	}
	return d
}

// Gaps are what could not be read. It may be used by several tasks at once.
type Gaps struct {
	mu       sync.Mutex
	errors   map[string]error
	answered bool
	last     error
}

// Note takes note of the outcome of reading something, and reports whether it went well. That an object or an API is not there is
// no gap.
func (g *Gaps) Note(what string, err error) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	absent := apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err)
	g.answered = g.answered || err == nil || absent || apierrors.IsForbidden(err)
	if err == nil {
		return true
	}
	g.last = err
	if g.errors == nil {
		g.errors = map[string]error{}
	}
	if !absent {
		g.errors[what] = err
	}
	return false
}

// Unanswered returns an error when nothing at all was answered, as by a cluster that is away or does not know the caller.
func (g *Gaps) Unanswered() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.answered || g.last == nil {
		return nil
	}
	return fmt.Errorf("the cluster does not answer: %w", g.last)
}

// Lines say what the gaps are: one sentence for each permission that is lacking, with all resources that it is lacking for, and one for
// each other failure.
func (g *Gaps) Lines() []string {
	_, failed := g.Split()
	g.mu.Lock()
	defer g.mu.Unlock()
	lacking := map[Denied][]string{} // resources by verb and place
	for _, what := range slices.Sorted(maps.Keys(g.errors)) {
		if d, is := errors.AsType[*Denied](g.errors[what]); is {
			key := Denied{Verb: d.Verb, Where: d.Where}
			lacking[key] = append(lacking[key], d.Resource)
		} else if apierrors.IsForbidden(g.errors[what]) {
			lacking[Denied{Verb: "read"}] = append(lacking[Denied{Verb: "read"}], what)
		}
	}
	var lines []string
	for d, resources := range lacking {
		slices.Sort(resources)
		d.Resource = strings.Join(slices.Compact(resources), ", ")
		lines = append(lines, d.Error())
	}
	slices.Sort(lines)
	return append(lines, failed...)
}

// Split returns what the caller is not allowed to read, and one sentence each for what could not be read for another reason.
func (g *Gaps) Split() (forbidden, failed []string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, what := range slices.Sorted(maps.Keys(g.errors)) {
		err := g.errors[what]
		if apierrors.IsForbidden(err) {
			forbidden = append(forbidden, what)
			continue
		}
		if cause := errors.Unwrap(err); cause != nil { // without the request that it is about
			err = cause
		}
		failed = append(failed, fmt.Sprintf("%s could not be read: %s", what, err))
	}
	return forbidden, failed
}

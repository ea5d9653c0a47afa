// Package fetch reads many things from a cluster at once, and takes note of what cannot be read instead of giving up.
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
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"

	"github.com/odh-platform/odh-platform-operator/cmd/kubectl-odh/internal/served"
)

const (
	// atOnce bounds the requests on their way.
	atOnce = 10
	// page is how many objects an answer holds at most.
	page = 500
)

// Reader reads from a cluster.
type Reader struct {
	Objects  dynamic.Interface
	Metadata metadata.Interface
}

// Each runs a task for each item, some at once, and returns when all have ended.
func Each[T any](items []T, task func(T)) {
	var wg sync.WaitGroup
	slots := make(chan struct{}, atOnce)
	for _, item := range items {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			task(item)
		})
	}
	wg.Wait()
}

// List reads all objects of a kind in a namespace, empty for all namespaces.
func (r Reader) List(ctx context.Context, kind served.Kind, namespace string, options metav1.ListOptions) ([]unstructured.Unstructured, error) {
	var all []unstructured.Unstructured
	err := pages(options, func(o metav1.ListOptions) (metav1.ListInterface, error) {
		list, err := r.Objects.Resource(kind.GVR()).Namespace(namespace).List(ctx, o)
		if err != nil {
			return nil, err
		}
		all = append(all, list.Items...)
		return list, nil
	})
	return all, err
}

// ListMetadata reads the metadata of all objects of a kind in a namespace, empty for all namespaces.
func (r Reader) ListMetadata(ctx context.Context, kind served.Kind, namespace string, options metav1.ListOptions) ([]metav1.PartialObjectMetadata, error) {
	var all []metav1.PartialObjectMetadata
	err := pages(options, func(o metav1.ListOptions) (metav1.ListInterface, error) {
		list, err := r.Metadata.Resource(kind.GVR()).Namespace(namespace).List(ctx, o)
		if err != nil {
			return nil, err
		}
		all = append(all, list.Items...)
		return list, nil
	})
	return all, err
}

// pages asks for one page after the other.
func pages(options metav1.ListOptions, next func(metav1.ListOptions) (metav1.ListInterface, error)) error {
	options.Limit = page
	for {
		list, err := next(options)
		if err != nil {
			return err
		}
		if options.Continue = list.GetContinue(); options.Continue == "" {
			return nil
		}
	}
}

// Get reads one object.
func (r Reader) Get(ctx context.Context, kind served.Kind, namespace, name string) (*unstructured.Unstructured, error) {
	return r.Objects.Resource(kind.GVR()).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
}

// Gaps are what could not be read. It may be used by several tasks at once.
type Gaps struct {
	mu        sync.Mutex
	forbidden map[string]bool
	failed    map[string]string
	answered  bool
	last      error
}

// Note takes note of the outcome of reading something, and reports whether it went well. That an object or an API is not there is
// no gap.
func (g *Gaps) Note(what string, err error) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if err != nil {
		g.last = err
	}
	switch {
	case err == nil:
		g.answered = true
		return true
	case apierrors.IsNotFound(err), apierrors.IsMethodNotSupported(err):
		g.answered = true
	case apierrors.IsForbidden(err):
		g.answered = true
		if g.forbidden == nil {
			g.forbidden = map[string]bool{}
		}
		g.forbidden[what] = true
	default:
		if g.failed == nil {
			g.failed = map[string]string{}
		}
		g.failed[what] = brief(err)
	}
	return false
}

// brief leaves out the request that an error is about.
func brief(err error) string {
	if cause := errors.Unwrap(err); cause != nil {
		return cause.Error()
	}
	return err.Error()
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

// Lines tell about the gaps, one sentence each.
func (g *Gaps) Lines() []string {
	var lines []string
	if forbidden := g.Forbidden(); len(forbidden) > 0 {
		lines = append(lines, "not allowed to read: "+strings.Join(forbidden, ", "))
	}
	return append(lines, g.Failed()...)
}

// Forbidden is what the caller may not read.
func (g *Gaps) Forbidden() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return sorted(g.forbidden)
}

// Failed tells, one sentence each, what could not be read for another reason.
func (g *Gaps) Failed() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	var lines []string
	for _, what := range sorted(g.failed) {
		lines = append(lines, fmt.Sprintf("%s could not be read: %s", what, g.failed[what]))
	}
	return lines
}

func sorted[V any](m map[string]V) []string {
	out := make([]string, 0, len(m))
	for name := range m {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

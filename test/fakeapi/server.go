// Package fakeapi is an API server in memory for tests of whole reconciles: the fake client of controller-runtime with UIDs and
// generations. It can refuse chosen writes and be copied after any write.
package fakeapi

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// Write is a request that changes an object.
type Write struct{ Verb, Kind, Name string }

// String formats the write for test names and failures.
func (w Write) String() string { return w.Verb + " " + w.Kind + " " + w.Name }

// Server stores objects. The reconciler under test and the test both use its embedded client.
type Server struct {
	client.WithWatch
	// Refuse returns the error of a refused write, or nil.
	Refuse func(Write) error
	// Writes are the executed writes.
	Writes []Write

	t       testing.TB
	builder func() *fake.ClientBuilder
	stored  client.WithWatch // without interceptors
	objects map[object]int   // number of creations of each object that ever existed
	// refusedWrite is the 1-based position in Writes of a write that is refused once; 0 for none.
	refusedWrite int
	// afterWrite is called after each write.
	afterWrite func()
}

type object struct {
	schema.GroupVersionKind
	client.ObjectKey
}

// New returns a server with objects. The builder has the scheme and the subresources.
func New(t testing.TB, builder func() *fake.ClientBuilder, objects ...client.Object) *Server {
	t.Helper()
	s := start(t, builder, objects)
	for _, o := range objects {
		s.complete(t.Context(), s.identify(o), nil, o)
	}
	return s
}

// clone returns another server with the same objects.
func (s *Server) clone(t testing.TB) *Server {
	t.Helper()
	var objects []client.Object
	for o := range s.objects {
		if found := s.find(t.Context(), o); found != nil {
			objects = append(objects, found)
		}
	}
	out := start(t, s.builder, objects)
	out.objects, out.Writes, out.Refuse = maps.Clone(s.objects), slices.Clone(s.Writes), s.Refuse
	return out
}

func start(t testing.TB, builder func() *fake.ClientBuilder, objects []client.Object) *Server {
	s := &Server{t: t, builder: builder, Refuse: func(Write) error { return nil }, objects: map[object]int{}, afterWrite: func() {}}
	s.stored = builder().WithReturnManagedFields().WithObjects(objects...).
		// The converter of client-go rejects some objects at random, because a port can be a number or a name.
		WithTypeConverters(managedfields.NewDeducedTypeConverter()).Build()
	s.WithWatch = interceptor.NewClient(s.stored, interceptor.Funcs{
		List: func(ctx context.Context, _ client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			return s.list(ctx, list, opts...)
		},
		Apply: func(ctx context.Context, c client.WithWatch, o runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
			target, ok := o.(interface {
				metav1.Object
				GroupVersionKind() schema.GroupVersionKind
			})
			if !ok {
				return fmt.Errorf("%T cannot be applied: use client.ApplyConfigurationFromUnstructured", o)
			}
			return s.write(ctx, "apply", object{target.GroupVersionKind(), key(target)}, target, func() error { return c.Apply(ctx, o, opts...) })
		},
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			return s.write(ctx, "create", s.identify(o), o, func() error { return c.Create(ctx, o, opts...) })
		},
		Update: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
			return s.write(ctx, "update", s.identify(o), o, func() error { return c.Update(ctx, o, opts...) })
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			return s.write(ctx, "patch", s.identify(o), o, func() error { return c.Patch(ctx, o, p, opts...) })
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			return s.write(ctx, "delete", s.identify(o), o, func() error { return c.Delete(ctx, o, opts...) })
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
			return s.write(ctx, "patch "+sub+" of", s.identify(o), o, func() error { return c.SubResource(sub).Patch(ctx, o, p, opts...) })
		},
	})
	return s
}

// list returns no metadata of kinds that the scheme does not contain, because the fake client cannot list it.
func (s *Server) list(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	if metadata, ok := list.(*metav1.PartialObjectMetadataList); ok && strings.Contains(metadata.APIVersion, ".") && !s.Scheme().Recognizes(metadata.GroupVersionKind()) {
		return nil
	}
	return s.stored.List(ctx, list, opts...)
}

// write executes a request; response is the object that the reconciler receives.
func (s *Server) write(ctx context.Context, verb string, o object, response metav1.Object, execute func() error) error {
	w := Write{verb, o.Kind, o.Name}
	if s.refusedWrite == len(s.Writes)+1 {
		s.refusedWrite = 0
		return apierrors.NewInternalError(errors.New("refused by the test"))
	}
	if err := s.Refuse(w); err != nil {
		return err
	}
	original := s.find(ctx, o)
	if err := execute(); err != nil {
		return err
	}
	s.complete(ctx, o, original, response)
	s.Writes = append(s.Writes, w)
	s.afterWrite()
	return nil
}

// complete sets the UID of a new object and the generation of a new object or changed spec, because the fake client sets neither.
func (s *Server) complete(ctx context.Context, o object, original *unstructured.Unstructured, response metav1.Object) {
	s.t.Helper()
	current := s.find(ctx, o)
	if current == nil {
		return
	}
	switch {
	case original == nil || original.GetUID() == "":
		s.objects[o]++
		if current.GetUID() == "" {
			current.SetUID(types.UID(fmt.Sprintf("%s/%s/%d", o.Kind, o.Name, s.objects[o])))
		}
		current.SetGeneration(max(current.GetGeneration(), 1))
	case !reflect.DeepEqual(original.Object["spec"], current.Object["spec"]):
		current.SetGeneration(original.GetGeneration() + 1)
	default:
		return
	}
	if err := s.stored.Update(ctx, current); err != nil {
		s.t.Fatalf("completing %s %s: %v", o.Kind, o.Name, err)
	}
	response.SetUID(current.GetUID())
	response.SetGeneration(current.GetGeneration())
	response.SetResourceVersion(current.GetResourceVersion())
}

// find returns an object of any kind; nil if it does not exist.
func (s *Server) find(ctx context.Context, o object) *unstructured.Unstructured {
	s.t.Helper()
	found := &unstructured.Unstructured{}
	found.SetGroupVersionKind(o.GroupVersionKind)
	err := s.stored.Get(ctx, o.ObjectKey, found)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		s.t.Fatalf("reading %s %s: %v", o.Kind, o.Name, err)
	}
	return found
}

func (s *Server) identify(o client.Object) object {
	s.t.Helper()
	kind, err := apiutil.GVKForObject(o, s.Scheme())
	if err != nil {
		s.t.Fatal(err)
	}
	return object{kind, key(o)}
}

func key(o metav1.Object) client.ObjectKey {
	return client.ObjectKey{Namespace: o.GetNamespace(), Name: o.GetName()}
}

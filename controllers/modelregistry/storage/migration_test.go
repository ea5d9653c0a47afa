package storage

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/odh-platform/odh-platform-operator/apis/modelregistry/v1beta1"
	"github.com/odh-platform/odh-platform-operator/pkg/certs"
)

const mark = "storage-migration.opendatahub.io/migrated-v1alpha1-to-v1beta1"

// testEnv is a cluster with a CRD and registries.
type testEnv struct {
	t      *testing.T
	client client.Client
	// writes lists the requests that are not reads.
	writes []string
	// fails returns the error of a request, by its text.
	fails func(request string) error
}

// crd returns the CRD with its stored versions.
func crd(storage string, stored ...any) *unstructured.Unstructured {
	out := &unstructured.Unstructured{Object: map[string]any{
		"spec": map[string]any{"versions": []any{
			map[string]any{"name": "v1alpha1", "storage": storage == "v1alpha1"}, map[string]any{"name": "v1beta1", "storage": storage == "v1beta1"},
		}},
		"status": map[string]any{"storedVersions": stored},
	}}
	out.SetGroupVersionKind(certs.Conversion)
	out.SetName(crdName)
	return out
}

func registryOf(name string) *v1beta1.ModelRegistry {
	return &v1beta1.ModelRegistry{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID("uid-" + name)}}
}

func newTestEnv(t *testing.T, objects ...client.Object) *testEnv {
	t.Helper()
	w := &testEnv{t: t, fails: func(string) error { return nil }}
	s := runtime.NewScheme()
	if err := v1beta1.AddToScheme(s); err != nil {
		t.Fatal(err)
	}
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(v1beta1.GroupVersion.WithKind(v1beta1.Kind), meta.RESTScopeNamespace)
	mapper.Add(certs.Conversion, meta.RESTScopeRoot)
	s.AddKnownTypeWithName(certs.Conversion, &unstructured.Unstructured{})
	s.AddKnownTypeWithName(certs.Conversion.GroupVersion().WithKind(certs.Conversion.Kind+"List"), &unstructured.UnstructuredList{})
	var definitions []client.Object
	for _, o := range objects {
		if o.GetName() == crdName {
			definitions = append(definitions, o)
		}
	}
	w.client = fake.NewClientBuilder().WithScheme(s).WithRESTMapper(mapper).WithObjects(objects...).
		WithStatusSubresource(append(definitions, &v1beta1.ModelRegistry{})...).
		WithInterceptorFuncs(w.funcs()).Build()
	return w
}

func (w *testEnv) note(verb string, o client.Object) error {
	request := verb + " " + o.GetName()
	if !strings.HasPrefix(verb, "get") && !strings.HasPrefix(verb, "list") {
		w.writes = append(w.writes, request)
	}
	return w.fails(request)
}

func (w *testEnv) funcs() interceptor.Funcs {
	return interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			if err := w.fails("get " + key.Name); err != nil {
				return err
			}
			return c.Get(ctx, key, o, opts...)
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if err := w.fails("list"); err != nil {
				return err
			}
			return c.List(ctx, list, opts...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			if err := w.note("patch", o); err != nil {
				return err
			}
			return c.Patch(ctx, o, p, opts...)
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, _ string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
			if err := w.note("patch status of", o); err != nil {
				return err
			}
			return c.Status().Patch(ctx, o, p, opts...)
		},
	}
}

func (w *testEnv) migration() *Migration {
	return &Migration{Reader: w.client, Client: w.client, Clock: clock.RealClock{}, Log: logr.Discard(), Source: "v1alpha1", Target: "v1beta1"}
}

// run starts the migration and advances the clock.
func (w *testEnv) run(m *Migration, span time.Duration) {
	w.t.Helper()
	ctx, cancel := context.WithCancel(w.t.Context())
	ended := make(chan error)
	go func() { ended <- m.Start(ctx) }()
	synctest.Wait()
	time.Sleep(span)
	synctest.Wait()
	cancel()
	if err := <-ended; err != nil {
		w.t.Errorf("the end: %v", err)
	}
}

func (w *testEnv) storedObjects() []string {
	w.t.Helper()
	out := &unstructured.Unstructured{}
	out.SetGroupVersionKind(certs.Conversion)
	if err := w.client.Get(w.t.Context(), types.NamespacedName{Name: crdName}, out); err != nil {
		w.t.Fatal(err)
	}
	return storedVersions(out)
}

func (w *testEnv) mustHave(stored ...string) {
	w.t.Helper()
	if got := w.storedObjects(); !slices.Equal(got, stored) {
		w.t.Errorf("stored versions %v, want %v", got, stored)
	}
}

func (w *testEnv) mustWrite(requests ...string) {
	w.t.Helper()
	if !slices.Equal(w.writes, requests) {
		w.t.Errorf("got  %q\nwant %q", w.writes, requests)
	}
}

func TestNoMigrationNeeded(t *testing.T) { // [modelregistry-69]
	for name, c := range map[string]struct {
		objects []client.Object
		change  func(*Migration)
	}{
		"no older version is stored": {[]client.Object{crd("v1beta1", "v1beta1"), registryOf("a")}, nil},
		"no definition":              {nil, nil},
		"equal versions":             {[]client.Object{crd("v1beta1", "v1alpha1", "v1beta1")}, func(m *Migration) { m.Source = m.Target }},
		"no source":                  {[]client.Object{crd("v1beta1", "v1alpha1", "v1beta1")}, func(m *Migration) { m.Source = "" }},
		"no target":                  {[]client.Object{crd("v1beta1", "v1alpha1", "v1beta1")}, func(m *Migration) { m.Target = "" }},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newTestEnv(t, c.objects...)
				m := w.migration()
				if c.change != nil {
					c.change(m)
				}
				w.run(m, time.Hour)
				w.mustWrite()
			})
		})
	}
}

// Every object is rewritten and annotated, and the list of stored versions is trimmed; no request follows, D29.
func TestObjectsAreRewritten(t *testing.T) { // [modelregistry-69] [modelregistry-70] [modelregistry-71]
	synctest.Test(t, func(t *testing.T) {
		done := registryOf("b")
		done.Annotations = map[string]string{mark: "2026-01-01T00:00:00Z"}
		w := newTestEnv(t, crd("v1beta1", "v1alpha1", "v1beta1"), registryOf("a"), done)
		reads := 0
		w.fails = func(request string) error {
			if strings.HasPrefix(request, "get") || request == "list" {
				reads++
			}
			return nil
		}
		m := w.migration()
		w.run(m, 24*time.Hour)
		w.mustWrite("patch a", "patch b", "patch status of "+crdName)
		w.mustHave("v1beta1")
		if reads != 4 { // three here, and one by the line above
			t.Errorf("%d reads", reads)
		}
		var a v1beta1.ModelRegistry
		if err := w.client.Get(t.Context(), types.NamespacedName{Namespace: "ns", Name: "a"}, &a); err != nil {
			t.Fatal(err)
		}
		if _, err := time.Parse(time.RFC3339, a.Annotations[mark]); err != nil || a.Annotations[lastMigratedAnnotation] != "999" {
			t.Errorf("unexpected Annotations %v, error %v", a.Annotations, err)
		}
		var b v1beta1.ModelRegistry
		if err := w.client.Get(t.Context(), types.NamespacedName{Namespace: "ns", Name: "b"}, &b); err != nil || b.Annotations[mark] != "2026-01-01T00:00:00Z" {
			t.Errorf("unexpected Annotations %v, error %v", b.Annotations, err)
		}
	})
}

func TestOnlyTheSourceVersionWasStored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTestEnv(t, crd("v1beta1", "v1alpha1"), registryOf("a"))
		w.run(w.migration(), time.Minute)
		w.mustHave("v1beta1")
	})
}

func TestOtherStorageVersionIsAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTestEnv(t, crd("v1alpha1", "v1alpha1"), registryOf("a"))
		w.run(w.migration(), time.Hour)
		w.mustWrite()
		if err := w.migration().run(t.Context()); err == nil || !strings.Contains(err.Error(), "apply the CustomResourceDefinition of this release") {
			t.Error(err)
		}
	})
}

// One failing object keeps the version in the list, and is retried until it succeeds.
func TestFailuresAreRetried(t *testing.T) {
	for name, request := range map[string]string{
		"reading the definition": "get " + crdName, "listing": "list", "an object": "patch a", "trimming": "patch status of " + crdName,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newTestEnv(t, crd("v1beta1", "v1alpha1", "v1beta1"), registryOf("a"), registryOf("b"))
				tries := 0
				w.fails = func(got string) error {
					if got != request {
						return nil
					}
					if tries++; tries < 6 {
						return errors.New("away")
					}
					return nil
				}
				m := w.migration()
				w.run(m, 30*time.Second) // pauses of 1, 2, 4, 8 and 16 s
				if tries != 5 {
					t.Errorf("tried %d times in 30 s", tries)
				}
				w.run(m, time.Hour)
				w.fails = func(string) error { return nil }
				w.mustHave("v1beta1")
			})
		})
	}
}

func rejection(name string) error {
	return apierrors.NewInvalid(v1beta1.GroupVersion.WithKind(v1beta1.Kind).GroupKind(), name, nil)
}

// An object that current rules reject may be stored in the older version too, and must be migrated.
func TestObjectsRejectedByAdmissionAreMigrated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTestEnv(t, crd("v1beta1", "v1alpha1", "v1beta1"), registryOf("a"), registryOf("b"))
		w.fails = func(request string) error {
			if request == "patch a" {
				return rejection("a")
			}
			if request == "patch b" {
				return apierrors.NewNotFound(schema.GroupResource{}, "b") // deleted after the list
			}
			return nil
		}
		w.run(w.migration(), time.Minute)
		w.mustWrite("patch a", "patch status of a", "patch b", "patch status of "+crdName)
		w.mustHave("v1beta1")
	})
}

func TestManyObjectsAreListedInPages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pages := 0
		w := newTestEnv(t, crd("v1beta1", "v1alpha1", "v1beta1"))
		reader := interceptor.NewClient(w.client.(client.WithWatch), interceptor.Funcs{
			List: func(_ context.Context, _ client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
				o := client.ListOptions{}
				o.ApplyOptions(opts)
				if o.Limit != pageSize || o.Continue != strings.Repeat("x", pages) {
					t.Errorf("page %d: %+v", pages, o)
				}
				if pages++; pages < 3 {
					list.SetContinue(strings.Repeat("x", pages))
				}
				object := registryOf(fmt.Sprintf("r%d", pages))
				list.(*metav1.PartialObjectMetadataList).Items = []metav1.PartialObjectMetadata{{ObjectMeta: object.ObjectMeta}}
				return nil
			},
		})
		m := w.migration()
		m.Reader = reader
		w.run(m, time.Minute)
		w.mustWrite("patch r1", "patch r2", "patch r3", "patch status of "+crdName)
	})
}

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

const migratedAnnotation = "storage-migration.opendatahub.io/migrated-v1alpha1-to-v1beta1"

// testEnv is a cluster with a CRD and registries.
type testEnv struct {
	t      *testing.T
	client client.Client
	// writes lists the requests that are not reads.
	writes []string
	// fails returns the error of a request, such as "patch a".
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
	env := &testEnv{t: t, fails: func(string) error { return nil }}
	scheme := runtime.NewScheme()
	if err := v1beta1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(v1beta1.GroupVersion.WithKind(v1beta1.Kind), meta.RESTScopeNamespace)
	mapper.Add(certs.Conversion, meta.RESTScopeRoot)
	scheme.AddKnownTypeWithName(certs.Conversion, &unstructured.Unstructured{})
	scheme.AddKnownTypeWithName(certs.Conversion.GroupVersion().WithKind(certs.Conversion.Kind+"List"), &unstructured.UnstructuredList{})
	var definitions []client.Object
	for _, o := range objects {
		if o.GetName() == crdName {
			definitions = append(definitions, o)
		}
	}
	env.client = fake.NewClientBuilder().WithScheme(scheme).WithRESTMapper(mapper).WithObjects(objects...).
		WithStatusSubresource(append(definitions, &v1beta1.ModelRegistry{})...).
		WithInterceptorFuncs(env.funcs()).Build()
	return env
}

func (env *testEnv) record(verb string, o client.Object) error {
	request := verb + " " + o.GetName()
	if !strings.HasPrefix(verb, "get") && !strings.HasPrefix(verb, "list") {
		env.writes = append(env.writes, request)
	}
	return env.fails(request)
}

func (env *testEnv) funcs() interceptor.Funcs {
	return interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			if err := env.fails("get " + key.Name); err != nil {
				return err
			}
			return c.Get(ctx, key, o, opts...)
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if err := env.fails("list"); err != nil {
				return err
			}
			return c.List(ctx, list, opts...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			if err := env.record("patch", o); err != nil {
				return err
			}
			return c.Patch(ctx, o, p, opts...)
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, _ string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
			if err := env.record("patch status of", o); err != nil {
				return err
			}
			return c.Status().Patch(ctx, o, p, opts...)
		},
	}
}

func (env *testEnv) migration() *Migration {
	return &Migration{Reader: env.client, Client: env.client, Clock: clock.RealClock{}, Log: logr.Discard(), Source: "v1alpha1", Target: "v1beta1"}
}

// run starts the migration, advances the clock and stops it.
func (env *testEnv) run(m *Migration, duration time.Duration) {
	env.t.Helper()
	ctx, cancel := context.WithCancel(env.t.Context())
	result := make(chan error)
	go func() { result <- m.Start(ctx) }()
	synctest.Wait()
	time.Sleep(duration)
	synctest.Wait()
	cancel()
	if err := <-result; err != nil {
		env.t.Errorf("Start returned error %v", err)
	}
}

func (env *testEnv) storedVersions() []string {
	env.t.Helper()
	out := &unstructured.Unstructured{}
	out.SetGroupVersionKind(certs.Conversion)
	if err := env.client.Get(env.t.Context(), types.NamespacedName{Name: crdName}, out); err != nil {
		env.t.Fatal(err)
	}
	return storedVersions(out)
}

func (env *testEnv) expectStoredVersions(want ...string) {
	env.t.Helper()
	if got := env.storedVersions(); !slices.Equal(got, want) {
		env.t.Errorf("got stored versions %v, want %v", got, want)
	}
}

func (env *testEnv) expectWrites(want ...string) {
	env.t.Helper()
	if !slices.Equal(env.writes, want) {
		env.t.Errorf("wrote %q\nwant  %q", env.writes, want)
	}
}

func TestNoMigrationNeeded(t *testing.T) { // [modelregistry-69]
	for name, test := range map[string]struct {
		objects []client.Object
		change  func(*Migration)
	}{
		"source version is not stored": {[]client.Object{crd("v1beta1", "v1beta1"), registryOf("a")}, nil},
		"no CRD":                       {nil, nil},
		"equal versions":               {[]client.Object{crd("v1beta1", "v1alpha1", "v1beta1")}, func(m *Migration) { m.Source = m.Target }},
		"no source":                    {[]client.Object{crd("v1beta1", "v1alpha1", "v1beta1")}, func(m *Migration) { m.Source = "" }},
		"no target":                    {[]client.Object{crd("v1beta1", "v1alpha1", "v1beta1")}, func(m *Migration) { m.Target = "" }},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				env := newTestEnv(t, test.objects...)
				m := env.migration()
				if test.change != nil {
					test.change(m)
				}
				env.run(m, time.Hour)
				env.expectWrites()
			})
		})
	}
}

// [D29] Every object is rewritten and annotated, the source version is removed from storedVersions, and no request follows.
func TestObjectsAreRewritten(t *testing.T) { // [modelregistry-69] [modelregistry-70] [modelregistry-71]
	synctest.Test(t, func(t *testing.T) {
		done := registryOf("b")
		done.Annotations = map[string]string{migratedAnnotation: "2026-01-01T00:00:00Z"}
		env := newTestEnv(t, crd("v1beta1", "v1alpha1", "v1beta1"), registryOf("a"), done)
		reads := 0
		env.fails = func(request string) error {
			if strings.HasPrefix(request, "get") || request == "list" {
				reads++
			}
			return nil
		}
		m := env.migration()
		env.run(m, 24*time.Hour)
		env.expectWrites("patch a", "patch b", "patch status of "+crdName)
		env.expectStoredVersions("v1beta1")
		if reads != 4 { // three of the migration, and one of expectStoredVersions
			t.Errorf("got %d reads, want 4", reads)
		}
		var a v1beta1.ModelRegistry
		if err := env.client.Get(t.Context(), types.NamespacedName{Namespace: "ns", Name: "a"}, &a); err != nil {
			t.Fatal(err)
		}
		if _, err := time.Parse(time.RFC3339, a.Annotations[migratedAnnotation]); err != nil || a.Annotations[lastMigratedAnnotation] != "999" {
			t.Errorf("unexpected annotations %v, error %v", a.Annotations, err)
		}
		var b v1beta1.ModelRegistry
		if err := env.client.Get(t.Context(), types.NamespacedName{Namespace: "ns", Name: "b"}, &b); err != nil || b.Annotations[migratedAnnotation] != "2026-01-01T00:00:00Z" {
			t.Errorf("unexpected annotations %v, error %v", b.Annotations, err)
		}
	})
}

func TestOnlyTheSourceVersionWasStored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		env := newTestEnv(t, crd("v1beta1", "v1alpha1"), registryOf("a"))
		env.run(env.migration(), time.Minute)
		env.expectStoredVersions("v1beta1")
	})
}

func TestOtherStorageVersionIsAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		env := newTestEnv(t, crd("v1alpha1", "v1alpha1"), registryOf("a"))
		env.run(env.migration(), time.Hour)
		env.expectWrites()
		if err := env.migration().run(t.Context()); err == nil || !strings.Contains(err.Error(), "apply the CustomResourceDefinition of this release") {
			t.Errorf("got error %v, want one with a fix", err)
		}
	})
}

// Each kind of request is retried after a failure, and then the source version is removed from storedVersions.
func TestFailuresAreRetried(t *testing.T) {
	for name, request := range map[string]string{
		"reading the CRD": "get " + crdName, "listing": "list", "patching an object": "patch a", "patching the CRD": "patch status of " + crdName,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				env := newTestEnv(t, crd("v1beta1", "v1alpha1", "v1beta1"), registryOf("a"), registryOf("b"))
				attempts := 0
				env.fails = func(got string) error {
					if got != request {
						return nil
					}
					if attempts++; attempts < 6 {
						return errors.New("connection refused")
					}
					return nil
				}
				m := env.migration()
				env.run(m, 30*time.Second) // retries after 1, 2, 4, 8 and 16 s
				if attempts != 5 {
					t.Errorf("got %d attempts in 30 s, want 5", attempts)
				}
				env.run(m, time.Hour)
				env.fails = func(string) error { return nil }
				env.expectStoredVersions("v1beta1")
			})
		})
	}
}

func rejection(name string) error {
	return apierrors.NewInvalid(v1beta1.GroupVersion.WithKind(v1beta1.Kind).GroupKind(), name, nil)
}

// Objects in the source version are migrated even if the current validation rejects them.
func TestObjectsRejectedByAdmissionAreMigrated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		env := newTestEnv(t, crd("v1beta1", "v1alpha1", "v1beta1"), registryOf("a"), registryOf("b"))
		env.fails = func(request string) error {
			if request == "patch a" {
				return rejection("a")
			}
			if request == "patch b" {
				return apierrors.NewNotFound(schema.GroupResource{}, "b") // deleted after the list
			}
			return nil
		}
		env.run(env.migration(), time.Minute)
		env.expectWrites("patch a", "patch status of a", "patch b", "patch status of "+crdName)
		env.expectStoredVersions("v1beta1")
	})
}

func TestManyObjectsAreListedInPages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pages := 0
		env := newTestEnv(t, crd("v1beta1", "v1alpha1", "v1beta1"))
		reader := interceptor.NewClient(env.client.(client.WithWatch), interceptor.Funcs{
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
		m := env.migration()
		m.Reader = reader
		env.run(m, time.Minute)
		env.expectWrites("patch r1", "patch r2", "patch r3", "patch status of "+crdName)
	})
}

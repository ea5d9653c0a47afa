package modelcatalog

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/lru"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	aihubv1alpha1 "github.com/odh-platform/odh-platform-operator/apis/aihub/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/apis/modelregistry/v1beta1"
	"github.com/odh-platform/odh-platform-operator/controllers/modelcatalog/huggingface"
	"github.com/odh-platform/odh-platform-operator/controllers/modelcatalog/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/config"
	"github.com/odh-platform/odh-platform-operator/pkg/reconciler"
	"github.com/odh-platform/odh-platform-operator/pkg/servers"
	"github.com/odh-platform/odh-platform-operator/pkg/singleton"
	"github.com/odh-platform/odh-platform-operator/test/fakeapi"
)

// testEnv is the reconciler with a fake API server whose requests can fail.
type testEnv struct {
	*testing.T
	server     client.Client
	r          *catalogReconciler
	reconciler reconcile.Reconciler
	clock      *clocktesting.FakeClock
	served     capability.Set
	// fail returns the error of a request; the verb is get, create, apply, patch or delete.
	fail func(verb string) error
	// huggingFaceKeys are the Secrets with keys for Hugging Face.
	huggingFaceKeys []*unstructured.Unstructured
	// writes since the last reset, as "verb Kind/name".
	writes []string
	// rollouts are the last seen rollout hashes of pods by Deployment.
	rollouts map[string]string
}

// reading is a cache that reads from the fake server.
type reading struct {
	cache.Cache
	client.Reader
	condensed bool
	lists     int
}

func (c *reading) Get(ctx context.Context, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	return c.Reader.Get(ctx, key, o, opts...)
}

func (c *reading) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	c.lists++
	if c.condensed {
		opts = append(opts, client.MatchingLabels{resources.SourceLabel: resources.SourceLabelValue})
	}
	err := c.Reader.List(ctx, list, opts...)
	if maps, ok := list.(*corev1.ConfigMapList); ok && c.condensed {
		for i := range maps.Items {
			_, _ = trimContent(&maps.Items[i])
		}
	}
	return err
}

func newTestEnv(t *testing.T, objects ...client.Object) *testEnv {
	t.Helper()
	s := fakeapi.Scheme(aihubv1alpha1.AddToScheme, v1beta1.AddToScheme)
	for _, kind := range servers.OptionalKinds { // before the fake client takes the first form in which it meets a kind for that of all its objects
		s.AddKnownTypeWithName(kind, &unstructured.Unstructured{})
		s.AddKnownTypeWithName(kind.GroupVersion().WithKind(kind.Kind+"List"), &unstructured.UnstructuredList{})
	}
	b := &testEnv{T: t, clock: clocktesting.NewFakeClock(now), fail: func(string) error { return nil }, rollouts: map[string]string{}}
	server := fake.NewClientBuilder().WithScheme(s).WithRESTMapper(newRESTMapper()).WithReturnManagedFields().
		WithTypeConverters(managedfields.NewDeducedTypeConverter()). // the one with schemas does not know policies
		WithStatusSubresource(&aihubv1alpha1.Catalog{}).WithObjects(objects...).
		WithIndex(&aihubv1alpha1.Catalog{}, metav1.ObjectNameField, byName).
		WithIndex(&corev1.Secret{}, metav1.ObjectNameField, byName).WithIndex(&corev1.ConfigMap{}, metav1.ObjectNameField, byName).Build()
	b.server = server
	b.restart()
	return b
}

func byName(o client.Object) []string { return []string{o.GetName()} }

// newRESTMapper returns a mapper with the scopes of kinds; that of the fake client has cluster scope for all.
func newRESTMapper() meta.RESTMapper {
	m := meta.NewDefaultRESTMapper(nil)
	for kind := range clientgoscheme.Scheme.AllKnownTypes() {
		scope := meta.RESTScope(meta.RESTScopeNamespace)
		if kind.Kind == "ClusterRoleBinding" || kind.Kind == "Namespace" {
			scope = meta.RESTScopeRoot
		}
		m.Add(kind, scope)
	}
	m.Add(aihubv1alpha1.GroupVersion.WithKind(aihubv1alpha1.Kind), meta.RESTScopeNamespace)
	m.Add(v1beta1.GroupVersion.WithKind(v1beta1.Kind), meta.RESTScopeNamespace)
	for _, kind := range servers.OptionalKinds {
		m.Add(kind, meta.RESTScopeNamespace)
	}
	return m
}

// restart creates a new reconciler, like a new process.
func (b *testEnv) restart() {
	watching, ok := b.server.(client.WithWatch)
	if !ok {
		b.Fatal("the fake client cannot watch")
	}
	cached := interceptor.NewClient(watching, b.interceptors())
	side := &extraCaches{secrets: map[string]cache.Cache{}, labelledConfigMaps: &reading{Reader: cached, condensed: true}, apiReader: cached, contentProblems: lru.New(maxContentProblems)}
	for _, name := range []string{resources.DatabaseName, resources.CertificateSecret, resources.DatabaseCertificate} {
		side.secrets[name] = &reading{Reader: cached}
	}
	settings := Settings{ModelRegistry: config.ModelRegistry{Images: kubernetes().Images, CatalogPostgresUser: "catalog_user", CatalogPostgresDatabase: "model_catalog", EnableModelCatalog: true}}
	b.r = &catalogReconciler{
		Reconciler: servers.NewReconciler(side.delegatingClient(cached), cached, cached, apply.New(apply.Options{Client: cached, Live: cached, FieldOwner: FieldOwner, Component: ComponentName,
			LegacyManagers: []string{servers.LegacyManager}, StripAnnotations: []string{servers.LegacyCopyAnnotation}, FullObjectKinds: []schema.GroupVersionKind{servers.Deployment}}), b.clock),
		settings: settings, extraCaches: side, served: func() capability.Set { return b.served },
	}
	b.r.admins, b.r.proxy = &singleton.Value[[]string]{}, &singleton.Value[resources.EgressProxy]{}
	b.r.keys = huggingface.NewWatcher(dynamicfake.NewSimpleDynamicClient(runtime.NewScheme()), "", b.clock, logr.Discard())
	b.r.keys.OnList(b.huggingFaceKeys)
	b.reconciler = reconciler.New(reconciler.Options{Client: cached, Component: ComponentName}, reconciler.Logic[*aihubv1alpha1.Catalog]{
		Phases: b.r.phases(), Finalizer: aihubv1alpha1.Finalizer, Finalize: b.r.finalize, OnDeleted: b.r.forget,
	})
}

func (b *testEnv) interceptors() interceptor.Funcs {
	note := func(verb string, o runtime.Object, name string) error {
		kind := fmt.Sprintf("%T", o)
		if k := o.GetObjectKind().GroupVersionKind().Kind; k != "" {
			kind = k
		}
		b.writes = append(b.writes, verb+" "+kind[strings.LastIndex(kind, ".")+1:]+"/"+name)
		return b.fail(verb)
	}
	return interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			if err := b.fail("get"); err != nil {
				return err
			}
			return c.Get(ctx, key, o, opts...)
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			heads, ok := list.(*metav1.PartialObjectMetadataList)
			kind := schema.GroupVersionKind{}
			for _, optional := range servers.OptionalKinds {
				if ok && heads.Kind == optional.Kind+"List" {
					kind = optional
				}
			}
			if kind.Empty() {
				return c.List(ctx, list, opts...)
			}
			whole := &unstructured.UnstructuredList{} // the fake client has no metadata of kinds without a Go type
			whole.SetGroupVersionKind(heads.GroupVersionKind())
			err := c.List(ctx, whole, opts...)
			for _, o := range whole.Items {
				h := capability.MetadataOf(kind)
				h.Namespace, h.Name, h.Labels, h.UID, h.OwnerReferences = o.GetNamespace(), o.GetName(), o.GetLabels(), o.GetUID(), o.GetOwnerReferences()
				heads.Items = append(heads.Items, *h)
			}
			return err
		},
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			if err := note("create", o, o.GetName()); err != nil {
				return err
			}
			return c.Create(ctx, o, opts...)
		},
		Apply: func(ctx context.Context, c client.WithWatch, config runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
			u, ok := config.(interface{ GetName() string })
			if !ok {
				return errors.New("an apply configuration without a name")
			}
			if err := note("apply", &corev1.ConfigMap{}, u.GetName()); err != nil {
				return err
			}
			return c.Apply(ctx, config, opts...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			if err := note("patch", o, o.GetName()); err != nil {
				return err
			}
			return c.Patch(ctx, o, p, opts...)
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
			if err := note("status", o, o.GetName()); err != nil {
				return err
			}
			return c.SubResource(sub).Patch(ctx, o, p, opts...)
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			if err := note("delete", o, o.GetName()); err != nil {
				return err
			}
			return c.Delete(ctx, o, opts...)
		},
	}
}

// reconcile reconciles the sample once.
func (b *testEnv) reconcile() (ctrl.Result, error) {
	b.Helper()
	return b.reconciler.Reconcile(logr.NewContext(b.Context(), logr.Discard()), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(sample())})
}

// reconcileUntilStable reconciles until nothing is written.
func (b *testEnv) reconcileUntilStable() {
	b.Helper()
	for range 20 {
		b.writes = nil
		if _, err := b.reconcile(); err != nil {
			b.Fatal(err)
		}
		if len(b.writes) == 0 {
			return
		}
	}
	b.Fatalf("the controller does not reach the steady state: %v", b.writes)
}

func (b *testEnv) get(o client.Object) bool {
	b.Helper()
	return b.server.Get(b.Context(), client.ObjectKeyFromObject(o), o) == nil
}

// must reads an object that has to exist.
func must[T client.Object](b *testEnv, o T) T {
	b.Helper()
	if !b.get(o) {
		b.Fatalf("%T %s is not there", o, o.GetName())
	}
	return o
}

func (b *testEnv) create(o client.Object) {
	b.Helper()
	if err := b.server.Create(b.Context(), o); err != nil {
		b.Fatal(err)
	}
}

func (b *testEnv) remove(o client.Object) {
	b.Helper()
	if err := b.server.Delete(b.Context(), o); err != nil {
		b.Fatal(err)
	}
}

func (b *testEnv) update(o client.Object, edit func()) {
	b.Helper()
	if !b.get(o) {
		b.Fatalf("%T %s is not there", o, o.GetName())
	}
	edit()
	if err := b.server.Update(b.Context(), o); err != nil {
		b.Fatal(err)
	}
}

// failRandomly fails a share of the requests with given verbs, reproducibly.
func failRandomly(share float64, verbs ...string) func(string) error {
	dice := rand.New(rand.NewPCG(1, 2)) // tests have to be repeatable
	return func(verb string) error {
		for _, v := range verbs {
			if v == verb && dice.Float64() < share {
				return errBroken
			}
		}
		return nil
	}
}

var errBroken = errors.New("the server is on fire")

func nameMeta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: "lab-registries", Name: name}
}

// stepClock advances the clock.
func (b *testEnv) stepClock(d time.Duration) { b.clock.Step(d) }

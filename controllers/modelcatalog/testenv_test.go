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
	"github.com/odh-platform/odh-platform-operator/pkg/objectmeta"
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
	// newTakeOver returns the take-over of the next restart; nil for none.
	newTakeOver func() TakeOver
	// fail returns the error of a request; the verb is get, create, apply, patch, status (a patch of the status) or delete.
	fail func(verb string) error
	// huggingFaceKeys are the Secrets with keys for Hugging Face.
	huggingFaceKeys []*unstructured.Unstructured
	// writes since the last reset, including failed ones, as "verb Kind/name".
	writes []string
	// rollouts are the last seen rollout hashes of pods by Deployment.
	rollouts map[string]string
}

// fakeCache is a cache that reads from the fake server.
type fakeCache struct {
	cache.Cache
	client.Reader
	// onlySources is true if the cache contains only ConfigMaps with SourceLabel, trimmed by trimContent.
	onlySources bool
	lists       int
}

func (c *fakeCache) Get(ctx context.Context, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	return c.Reader.Get(ctx, key, o, opts...)
}

func (c *fakeCache) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	c.lists++
	if c.onlySources {
		opts = append(opts, client.MatchingLabels{resources.SourceLabel: resources.SourceLabelValue})
	}
	err := c.Reader.List(ctx, list, opts...)
	if configMaps, ok := list.(*corev1.ConfigMapList); ok && c.onlySources {
		for i := range configMaps.Items {
			_, _ = trimContent(&configMaps.Items[i])
		}
	}
	return err
}

func newTestEnv(t *testing.T, objects ...client.Object) *testEnv {
	t.Helper()
	scheme := fakeapi.Scheme(aihubv1alpha1.AddToScheme, v1beta1.AddToScheme)
	for _, kind := range servers.OptionalKinds { // in advance, because the fake client keeps the first Go type that it sees for a kind
		scheme.AddKnownTypeWithName(kind, &unstructured.Unstructured{})
		scheme.AddKnownTypeWithName(kind.GroupVersion().WithKind(kind.Kind+"List"), &unstructured.UnstructuredList{})
	}
	env := &testEnv{T: t, clock: clocktesting.NewFakeClock(now), fail: func(string) error { return nil }, rollouts: map[string]string{}}
	server := fake.NewClientBuilder().WithScheme(scheme).WithRESTMapper(newRESTMapper()).WithReturnManagedFields().
		WithTypeConverters(managedfields.NewDeducedTypeConverter()). // the default converter has no schemas of some kinds
		WithStatusSubresource(&aihubv1alpha1.Catalog{}).WithObjects(objects...).
		WithIndex(&aihubv1alpha1.Catalog{}, metav1.ObjectNameField, byName).
		WithIndex(&corev1.Secret{}, metav1.ObjectNameField, byName).WithIndex(&corev1.ConfigMap{}, metav1.ObjectNameField, byName).Build()
	env.server = server
	env.restart()
	return env
}

func byName(o client.Object) []string { return []string{o.GetName()} }

// newRESTMapper returns a mapper of the kinds of these tests. The default mapper of the fake client is empty.
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
func (env *testEnv) restart() {
	watching, ok := env.server.(client.WithWatch)
	if !ok {
		env.Fatal("the fake client cannot watch")
	}
	cached := interceptor.NewClient(watching, env.interceptors())
	extra := &extraCaches{secrets: map[string]cache.Cache{}, labelledConfigMaps: &fakeCache{Reader: cached, onlySources: true}, apiReader: cached, contentProblems: lru.New(maxContentProblems)}
	for _, name := range []string{resources.DatabaseName, resources.CertificateSecret, resources.DatabaseCertificate} {
		extra.secrets[name] = &fakeCache{Reader: cached}
	}
	settings := Settings{ModelRegistry: config.ModelRegistry{Images: kubernetesInputs().Images, CatalogPostgresUser: "catalog_user", CatalogPostgresDatabase: "model_catalog", EnableModelCatalog: true}}
	env.r = &catalogReconciler{
		Reconciler: servers.NewReconciler(extra.delegatingClient(cached), cached, cached, apply.New(apply.Options{Client: cached, Live: cached, FieldOwner: FieldOwner, Component: ComponentName,
			LegacyManagers: []string{servers.LegacyManager}, StripAnnotations: []string{servers.LegacyCopyAnnotation}, FullObjectKinds: []schema.GroupVersionKind{servers.Deployment}}), env.clock),
		settings: settings, extraCaches: extra, served: func() capability.Set { return env.served }, takeOver: noTakeOver{},
	}
	if env.newTakeOver != nil {
		env.r.takeOver = env.newTakeOver()
	}
	env.r.admins, env.r.proxy = &singleton.Value[[]string]{}, &singleton.Value[resources.EgressProxy]{}
	env.r.apiKeys = huggingface.NewWatcher(dynamicfake.NewSimpleDynamicClient(runtime.NewScheme()), "", env.clock, logr.Discard())
	env.r.apiKeys.OnList(env.huggingFaceKeys)
	env.reconciler = reconciler.New(reconciler.Options{Client: cached, Component: ComponentName}, reconciler.Logic[*aihubv1alpha1.Catalog]{
		Phases: env.r.phases(), Finalizer: aihubv1alpha1.Finalizer, Finalize: env.r.finalize, OnDeleted: env.r.forget,
	})
}

func (env *testEnv) interceptors() interceptor.Funcs {
	record := func(verb string, o runtime.Object, name string) error {
		kind := fmt.Sprintf("%T", o)
		if k := o.GetObjectKind().GroupVersionKind().Kind; k != "" {
			kind = k
		}
		env.writes = append(env.writes, verb+" "+kind[strings.LastIndex(kind, ".")+1:]+"/"+name)
		return env.fail(verb)
	}
	return interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			if err := env.fail("get"); err != nil {
				return err
			}
			return c.Get(ctx, key, o, opts...)
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if pods, isPods := list.(*corev1.PodList); isPods { // the fake client ignores the limit
				err := c.List(ctx, list, opts...)
				if limit := (&client.ListOptions{}).ApplyOptions(opts).Limit; limit > 0 {
					pods.Items = pods.Items[:min(len(pods.Items), int(limit))]
				}
				return err
			}
			metadataList, ok := list.(*metav1.PartialObjectMetadataList)
			kind := schema.GroupVersionKind{}
			for _, optional := range servers.OptionalKinds {
				if ok && metadataList.Kind == optional.Kind+"List" {
					kind = optional
				}
			}
			if kind.Empty() {
				return c.List(ctx, list, opts...)
			}
			full := &unstructured.UnstructuredList{} // the fake client does not list metadata of kinds without a Go type
			full.SetGroupVersionKind(metadataList.GroupVersionKind())
			err := c.List(ctx, full, opts...)
			for _, o := range full.Items {
				metadata := objectmeta.New(kind)
				metadata.Namespace, metadata.Name, metadata.Labels, metadata.UID, metadata.OwnerReferences = o.GetNamespace(), o.GetName(), o.GetLabels(), o.GetUID(), o.GetOwnerReferences()
				metadataList.Items = append(metadataList.Items, *metadata)
			}
			return err
		},
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			if err := record("create", o, o.GetName()); err != nil {
				return err
			}
			return c.Create(ctx, o, opts...)
		},
		Apply: func(ctx context.Context, c client.WithWatch, config runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
			o, ok := config.(client.Object)
			if !ok {
				return errors.New("the apply configuration is not unstructured")
			}
			if err := record("apply", o, o.GetName()); err != nil {
				return err
			}
			return c.Apply(ctx, config, opts...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			if err := record("patch", o, o.GetName()); err != nil {
				return err
			}
			return c.Patch(ctx, o, p, opts...)
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
			if err := record("status", o, o.GetName()); err != nil {
				return err
			}
			return c.SubResource(sub).Patch(ctx, o, p, opts...)
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			if err := record("delete", o, o.GetName()); err != nil {
				return err
			}
			return c.Delete(ctx, o, opts...)
		},
	}
}

// reconcile reconciles the Catalog of newCatalog once.
func (env *testEnv) reconcile() (ctrl.Result, error) {
	env.Helper()
	return env.reconciler.Reconcile(logr.NewContext(env.Context(), logr.Discard()), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(newCatalog())})
}

// reconcileUntilStable reconciles until nothing is written.
func (env *testEnv) reconcileUntilStable() {
	env.Helper()
	for range 20 {
		env.writes = nil
		if _, err := env.reconcile(); err != nil {
			env.Fatal(err)
		}
		if len(env.writes) == 0 {
			return
		}
	}
	env.Fatalf("the controller does not reach the steady state: %v", env.writes)
}

func (env *testEnv) get(o client.Object) bool {
	env.Helper()
	return env.server.Get(env.Context(), client.ObjectKeyFromObject(o), o) == nil
}

// mustGet reads an object. It fails the test if the object does not exist.
func mustGet[T client.Object](env *testEnv, o T) T {
	env.Helper()
	if !env.get(o) {
		env.Fatalf("%T %s does not exist", o, o.GetName())
	}
	return o
}

func (env *testEnv) create(o client.Object) {
	env.Helper()
	if err := env.server.Create(env.Context(), o); err != nil {
		env.Fatal(err)
	}
}

func (env *testEnv) remove(o client.Object) {
	env.Helper()
	if err := env.server.Delete(env.Context(), o); err != nil {
		env.Fatal(err)
	}
}

func (env *testEnv) update(o client.Object, edit func()) {
	env.Helper()
	if !env.get(o) {
		env.Fatalf("%T %s does not exist", o, o.GetName())
	}
	edit()
	if err := env.server.Update(env.Context(), o); err != nil {
		env.Fatal(err)
	}
}

// failRandomly returns a function that fails a share of the requests with the given verbs. The random numbers are the same in every run.
func failRandomly(share float64, verbs ...string) func(string) error {
	random := rand.New(rand.NewPCG(1, 2))
	return func(verb string) error {
		for _, v := range verbs {
			if v == verb && random.Float64() < share {
				return errBroken
			}
		}
		return nil
	}
}

var errBroken = errors.New("injected error")

func nameMeta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: "lab-registries", Name: name}
}

// stepClock advances the clock.
func (env *testEnv) stepClock(d time.Duration) { env.clock.Step(d) }

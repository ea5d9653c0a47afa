package runtimes

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/managedfields"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/odh-platform/odh-platform-operator/apis/serving/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/apis/serving/v1beta1"
	"github.com/odh-platform/odh-platform-operator/controllers/modelmesh"
	meshclient "github.com/odh-platform/odh-platform-operator/controllers/modelmesh/client"
	meshetcd "github.com/odh-platform/odh-platform-operator/controllers/modelmesh/etcd"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/config"
	meshsettings "github.com/odh-platform/odh-platform-operator/pkg/modelmesh/settings"
	"github.com/odh-platform/odh-platform-operator/test/fakeapi"
	"github.com/odh-platform/odh-platform-operator/test/meshtest"
)

// testEnv is the reconciler with a fake API server and a cache that shows only the objects that the real one holds.
type testEnv struct {
	*testing.T
	*runtimeReconciler
	api      client.WithWatch
	events   *events.FakeRecorder
	clock    *clocktesting.FakeClock
	settings meshsettings.Settings
	kinds    capability.Set
	mesh     *fakeClients
	// writes holds verb, kind and name of each write, reads those of reads from the API server.
	writes, reads []string
	fail          func(verb, kind, name string) error
	// behind is true if the cache does not show the labels of managed Deployments yet.
	behind bool
}

// fakeClients records the calls of clientPool and etcdWatcher.
type fakeClients struct {
	targets  map[string]meshclient.Target
	services map[string]string
	data     map[string][]byte
	own      map[string]map[string][]byte
	fail     error
	failOwn  error
	// granted holds the accounts in call order.
	granted   []meshetcd.Account
	failGrant error
}

func (c *fakeClients) Ensure(namespace string, target meshclient.Target) error {
	c.targets[namespace] = target
	return c.fail
}
func (c *fakeClients) Forget(namespace string) { delete(c.targets, namespace) }

// fakeEtcdWatcher implements etcdWatcher.
type fakeEtcdWatcher struct{ *fakeClients }

func (c fakeEtcdWatcher) Ensure(namespace, service string) { c.services[namespace] = service }
func (c fakeEtcdWatcher) Grant(_ context.Context, account meshetcd.Account) error {
	c.granted = append(c.granted, account)
	return c.failGrant
}
func (c fakeEtcdWatcher) Forget(namespace string) { delete(c.services, namespace) }
func (c fakeEtcdWatcher) ConnectOwn(namespace string, data map[string][]byte) error {
	if data == nil {
		delete(c.own, namespace)
	} else {
		c.own[namespace] = data
	}
	return c.failOwn
}
func (c fakeEtcdWatcher) Connect(data map[string][]byte) error {
	c.data = data
	return c.fail
}

var plainKinds = []schema.GroupVersionKind{
	capability.ServingRuntime, capability.ClusterServingRuntime, capability.InferenceService, capability.ServiceMonitor,
}

// newTestEnv has the operator in namespace own with an etcd Secret; namespace ns is enabled.
func newTestEnv(t *testing.T, objects ...client.Object) *testEnv {
	t.Helper()
	scheme := fakeapi.Scheme(v1alpha1.AddToScheme, v1beta1.AddToScheme)
	scheme.AddKnownTypeWithName(capability.ServiceMonitor, &unstructured.Unstructured{})
	scheme.AddKnownTypeWithName(capability.ServiceMonitor.GroupVersion().WithKind("ServiceMonitorList"), &unstructured.UnstructuredList{})
	objects = append(objects, meshtest.Namespace("own", ""), meshtest.Namespace("ns", "true"), etcdSecret("own"))
	w := &testEnv{
		T: t, events: events.NewFakeRecorder(1000), clock: clocktesting.NewFakeClock(time.Unix(1700000000, 0)), settings: meshsettings.Default(),
		kinds: capability.NewSet(plainKinds...), mesh: &fakeClients{targets: map[string]meshclient.Target{}, services: map[string]string{}, own: map[string]map[string][]byte{}},
	}
	w.api = fake.NewClientBuilder().WithScheme(scheme).WithReturnManagedFields().WithTypeConverters(managedfields.NewDeducedTypeConverter()).
		WithRESTMapper(scopes()).WithObjects(objects...).
		WithIndex(&v1alpha1.ServingRuntime{}, metav1.ObjectNameField, nameField).WithIndex(&v1alpha1.ClusterServingRuntime{}, metav1.ObjectNameField, nameField).
		WithIndex(&appsv1.Deployment{}, metav1.ObjectNameField, nameField).WithIndex(&corev1.Namespace{}, metav1.ObjectNameField, nameField).WithIndex(&corev1.Service{}, metav1.ObjectNameField, nameField).Build()
	w.restart()
	return w
}

func nameField(o client.Object) []string { return []string{o.GetName()} }

// restart creates a new reconciler, as after a restart of the operator.
func (env *testEnv) restart() {
	cached := interceptor.NewClient(env.api, env.managerCache())
	live := interceptor.NewClient(env.api, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			if err := env.recordCall(&env.reads, "get", kindOf(o), key.String()); err != nil {
				return err
			}
			return c.Get(ctx, key, o, opts...)
		},
	})
	writing := interceptor.NewClient(cached, env.recordingFuncs())
	env.runtimeReconciler = newReconciler(&runtimeReconciler{
		Catalog: &modelmesh.Catalog{Config: config.ModelMesh{Namespace: "own", ControllerDeployment: "modelmesh-controller"}, Cached: cached,
			Namespaces: &modelmesh.Namespaces{OperatorNamespace: "own", APIReader: live, Cache: meshtest.Cache{Reader: interceptor.NewClient(env.api, interceptor.Funcs{
				Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
					err := c.Get(ctx, key, o, opts...)
					if _, has := o.GetLabels()[modelmesh.LabelEnabled]; err == nil && !has {
						return apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, key.Name)
					}
					return err
				},
			})}},
			Settings: func(context.Context, string) (meshsettings.Settings, error) { return env.settings, nil },
			Served:   func() capability.Set { return env.kinds }}, clock: env.clock, recorder: env.events,
		live: live, claims: cached, pods: cached,
		applier: apply.New(apply.Options{
			Client: writing, Live: live, FieldOwner: modelmesh.FieldOwner, Component: modelmesh.ComponentName, LegacyManagers: modelmesh.LegacyManagers(),
			StripAnnotations: modelmesh.LegacyAnnotations(), FullObjectKinds: []schema.GroupVersionKind{deploymentKind},
		}),
		pool: env.mesh, etcdWatcher: fakeEtcdWatcher{env.mesh},
	})
}

// managerCache hides the objects that the manager does not cache: unmanaged Deployments and other children, and the data of Secrets and
// foreign ConfigMaps.
func (env *testEnv) managerCache() interceptor.Funcs {
	return interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
		if err := c.Get(ctx, key, o, opts...); err != nil {
			return err
		}
		switch kind := kindOf(o); {
		case env.behind && kind == "Deployment":
			return apierrors.NewNotFound(schema.GroupResource{Resource: kind}, key.Name)
		case isManaged(o):
		case kind == "Deployment" || kind == "Service" || kind == "HorizontalPodAutoscaler" || kind == "NetworkPolicy":
			return apierrors.NewNotFound(schema.GroupResource{Resource: kind}, key.Name)
		case kind == "Secret" || kind == "ConfigMap":
			o.SetLabels(nil)
			o.SetAnnotations(nil)
		}
		return nil
	}}
}

func scopes() meta.RESTMapper {
	m := meta.NewDefaultRESTMapper(nil)
	m.Add(namespaceKind, meta.RESTScopeRoot)
	m.Add(capability.ClusterServingRuntime, meta.RESTScopeRoot)
	for _, kind := range []schema.GroupVersionKind{
		deploymentKind, serviceKind, configMapKind, secretKind, policyKind, autoscalerKind, pvcKind, modelmesh.PredictorKind, capability.ServingRuntime,
		capability.InferenceService, capability.ServiceMonitor,
	} {
		m.Add(kind, meta.RESTScopeNamespace)
	}
	return m
}

func (env *testEnv) recordCall(into *[]string, verb, kind, name string) error {
	if env.fail != nil {
		if err := env.fail(verb, kind, name); err != nil {
			return err
		}
	}
	*into = append(*into, verb+" "+kind+" "+name)
	return nil
}

func (env *testEnv) recordingFuncs() interceptor.Funcs {
	return interceptor.Funcs{
		Apply: func(ctx context.Context, c client.WithWatch, config runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
			key := apply.Object{Config: config}.Key()
			if err := env.recordCall(&env.writes, "apply", key.Kind, key.NamespacedName.String()); err != nil {
				return err
			}
			return c.Apply(ctx, config, opts...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			if err := env.recordCall(&env.writes, "patch", kindOf(o), client.ObjectKeyFromObject(o).String()); err != nil {
				return err
			}
			return c.Patch(ctx, o, p, opts...)
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			if err := env.recordCall(&env.writes, "delete", kindOf(o), client.ObjectKeyFromObject(o).String()); err != nil {
				return err
			}
			return c.Delete(ctx, o, opts...)
		},
	}
}

func kindOf(o client.Object) string {
	kind, err := apiutil.GVKForObject(o, clientgoscheme.Scheme)
	if err != nil {
		return o.GetObjectKind().GroupVersionKind().Kind
	}
	return kind.Kind
}

// reconcileOnce reconciles a namespace and returns its RequeueAfter.
func (env *testEnv) reconcileOnce(namespace string) time.Duration {
	env.Helper()
	result, err := env.Reconcile(env.Context(), modelmesh.RequestFor(namespace))
	if err != nil {
		env.Fatalf("reconcile of %s: %v", namespace, err)
	}
	return result.RequeueAfter
}

// reconcileUntilStable reconciles until nothing is written, and returns all writes.
func (env *testEnv) reconcileUntilStable(namespace string) []string {
	env.Helper()
	var all []string
	for range 5 {
		env.reconcileOnce(namespace)
		writes := env.takeWrites()
		if len(writes) == 0 {
			return all
		}
		all = append(all, writes...)
	}
	env.Fatalf("the reconciler does not reach the steady state: %q", all)
	return nil
}

// takeWrites returns the writes since the last call, sorted.
func (env *testEnv) takeWrites() []string {
	out := env.writes
	env.writes = nil
	slices.Sort(out)
	return out
}

func (env *testEnv) expect(description string, got, want []string) {
	env.Helper()
	if !slices.Equal(got, want) {
		env.Errorf("%s:\n%s\nwant:\n%s", description, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// get reads an object and reports whether it exists.
func (env *testEnv) get(o client.Object, namespace, name string) bool {
	env.Helper()
	err := env.api.Get(env.Context(), namespacedName(namespace, name), o)
	if client.IgnoreNotFound(err) != nil {
		env.Fatal(err)
	}
	return err == nil
}

func (env *testEnv) must(err error) {
	env.Helper()
	if err != nil {
		env.Fatal(err)
	}
}

func (env *testEnv) create(objects ...client.Object) {
	env.Helper()
	for _, o := range objects {
		env.must(env.api.Create(env.Context(), o))
	}
}

// deploymentOf returns the Deployment of a runtime in ns, which must exist.
func (env *testEnv) deploymentOf(runtime string) *appsv1.Deployment {
	env.Helper()
	d := &appsv1.Deployment{}
	if !env.get(d, "ns", "modelmesh-serving-"+runtime) {
		env.Fatalf("no Deployment for runtime %s", runtime)
	}
	return d
}

// hasDeployment reports whether ns has a Deployment for a runtime.
func (env *testEnv) hasDeployment(runtime string) bool {
	env.Helper()
	return env.get(&appsv1.Deployment{}, "ns", "modelmesh-serving-"+runtime)
}

func (env *testEnv) replicasOf(runtime string) int32 {
	env.Helper()
	return *env.deploymentOf(runtime).Spec.Replicas
}

// runtimeSpec returns a spec that supports a format.
func runtimeSpec(format string, changes ...func(*v1alpha1.ServingRuntimeSpec)) v1alpha1.ServingRuntimeSpec {
	spec := v1alpha1.ServingRuntimeSpec{
		MultiModel: new(true), GRPCEndpoint: new("port:8085"), GRPCDataEndpoint: new("port:8001"),
		SupportedModelFormats: []v1alpha1.SupportedModelFormat{{Name: format, AutoSelect: new(true)}},
		Containers:            []corev1.Container{{Name: "server", Image: "registry.example.com/server:1"}},
	}
	for _, change := range changes {
		change(&spec)
	}
	return spec
}

func localRuntime(name, format string, changes ...func(*v1alpha1.ServingRuntimeSpec)) *v1alpha1.ServingRuntime {
	return &v1alpha1.ServingRuntime{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID("uid-of-" + name)}, Spec: runtimeSpec(format, changes...),
	}
}

func clusterRuntime(name, format string, changes ...func(*v1alpha1.ServingRuntimeSpec)) *v1alpha1.ClusterServingRuntime {
	return &v1alpha1.ClusterServingRuntime{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-of-cluster-" + name)}, Spec: runtimeSpec(format, changes...),
	}
}

func singleModel(s *v1alpha1.ServingRuntimeSpec) { s.MultiModel = nil }
func disabled(s *v1alpha1.ServingRuntimeSpec)    { s.Disabled = new(true) }

// predictorOf returns a Predictor with a format in ns.
func predictorOf(name, format string) *v1alpha1.Predictor {
	p := &v1alpha1.Predictor{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID("uid-of-" + name)}}
	p.Spec.ModelType.Name = format
	return p
}

// etcdSecret returns the Secret with the etcd connection.
func etcdSecret(namespace string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "model-serving-etcd"},
		Data:       map[string][]byte{"etcd_connection": []byte(`{"endpoints":"http://etcd:2379","root_prefix":"models"}`)},
	}
}

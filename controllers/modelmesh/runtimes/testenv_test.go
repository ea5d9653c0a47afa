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
	"github.com/odh-platform/odh-platform-operator/controllers/modelmesh/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/config"
	meshsettings "github.com/odh-platform/odh-platform-operator/pkg/modelmesh/settings"
	"github.com/odh-platform/odh-platform-operator/test/fakeapi"
	"github.com/odh-platform/odh-platform-operator/test/meshtest"
)

// testEnv is a reconciler with a fake API server and a cache that contains only the objects that the cache of the manager contains.
type testEnv struct {
	*testing.T
	*runtimeReconciler
	api      client.WithWatch
	events   *events.FakeRecorder
	clock    *clocktesting.FakeClock
	settings meshsettings.Settings
	served   capability.Set
	mesh     *fakeClients
	// writes contains "verb kind name" of each write that failRequest does not fail; reads contains the same of each get from the API server.
	writes, reads []string
	// failRequest, if set, returns the error of a request.
	failRequest func(verb, kind, name string) error
	// afterRestart, if set, is called after each restart.
	afterRestart func()
	// cacheStale is true if the cache does not contain the managed Deployments yet.
	cacheStale bool
}

// fakeClients records the calls of clientPool and etcdWatcher.
type fakeClients struct {
	targets  map[string]meshclient.Target
	services map[string]string
	data     map[string][]byte
	ownData  map[string]map[string][]byte
	// granted contains the accounts in the order of the calls.
	granted []meshetcd.Account
	// The errors that the methods return.
	connectOwnErr, grantErr error
}

func (c *fakeClients) Ensure(namespace string, target meshclient.Target) error {
	c.targets[namespace] = target
	return nil
}
func (c *fakeClients) Forget(namespace string) { delete(c.targets, namespace) }

// fakeEtcdWatcher implements etcdWatcher.
type fakeEtcdWatcher struct{ *fakeClients }

func (c fakeEtcdWatcher) Ensure(namespace, service string) { c.services[namespace] = service }
func (c fakeEtcdWatcher) Grant(_ context.Context, account meshetcd.Account) error {
	c.granted = append(c.granted, account)
	return c.grantErr
}
func (c fakeEtcdWatcher) Forget(namespace string) { delete(c.services, namespace) }
func (c fakeEtcdWatcher) ConnectOwn(namespace string, data map[string][]byte) error {
	if data == nil {
		delete(c.ownData, namespace)
	} else {
		c.ownData[namespace] = data
	}
	return c.connectOwnErr
}
func (c fakeEtcdWatcher) Connect(data map[string][]byte) error {
	c.data = data
	return nil
}

var plainAPIs = []schema.GroupVersionKind{
	capability.ServingRuntime, capability.ClusterServingRuntime, capability.InferenceService, capability.ServiceMonitor,
}

// newTestEnv returns an environment with own, the namespace of the operator and of the etcd Secret, and the enabled namespace ns.
func newTestEnv(t *testing.T, objects ...client.Object) *testEnv {
	t.Helper()
	scheme := fakeapi.Scheme(v1alpha1.AddToScheme, v1beta1.AddToScheme)
	scheme.AddKnownTypeWithName(capability.ServiceMonitor, &unstructured.Unstructured{})
	scheme.AddKnownTypeWithName(capability.ServiceMonitor.GroupVersion().WithKind("ServiceMonitorList"), &unstructured.UnstructuredList{})
	objects = append(objects, meshtest.Namespace("own", ""), meshtest.Namespace("ns", "true"), newEtcdSecret("own"))
	env := &testEnv{
		T: t, events: events.NewFakeRecorder(1000), clock: clocktesting.NewFakeClock(time.Unix(1700000000, 0)), settings: meshsettings.Default(),
		served: capability.NewSet(plainAPIs...), mesh: &fakeClients{targets: map[string]meshclient.Target{}, services: map[string]string{}, ownData: map[string]map[string][]byte{}},
	}
	env.api = fake.NewClientBuilder().WithScheme(scheme).WithReturnManagedFields().WithTypeConverters(managedfields.NewDeducedTypeConverter()).
		WithRESTMapper(newRESTMapper()).WithObjects(objects...).
		WithIndex(&v1alpha1.ServingRuntime{}, metav1.ObjectNameField, nameField).WithIndex(&v1alpha1.ClusterServingRuntime{}, metav1.ObjectNameField, nameField).
		WithIndex(&appsv1.Deployment{}, metav1.ObjectNameField, nameField).WithIndex(&corev1.Namespace{}, metav1.ObjectNameField, nameField).WithIndex(&corev1.Service{}, metav1.ObjectNameField, nameField).Build()
	env.restart()
	return env
}

func nameField(o client.Object) []string { return []string{o.GetName()} }

// restart creates a new reconciler, as after a restart of the operator.
func (env *testEnv) restart() {
	cached := interceptor.NewClient(env.api, env.managerCache())
	live := interceptor.NewClient(env.api, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			if err := env.recordRequest(&env.reads, "get", kindOf(o), key.String()); err != nil {
				return err
			}
			return c.Get(ctx, key, o, opts...)
		},
	})
	writer := interceptor.NewClient(cached, env.recordingFuncs())
	env.runtimeReconciler = newReconciler(&runtimeReconciler{
		Lister: &modelmesh.Lister{Config: config.ModelMesh{Namespace: "own", ControllerDeployment: "modelmesh-controller"}, Cached: cached,
			Namespaces: &modelmesh.Namespaces{OperatorNamespace: "own", APIReader: live, Cache: meshtest.Cache{Reader: interceptor.NewClient(env.api, interceptor.Funcs{
				Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
					err := c.Get(ctx, key, o, opts...)
					if _, found := o.GetLabels()[modelmesh.LabelEnabled]; err == nil && !found {
						return apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, key.Name)
					}
					return err
				},
			})}},
			Settings: func(context.Context, string) (meshsettings.Settings, error) { return env.settings, nil },
			Served:   func() capability.Set { return env.served }}, clock: env.clock, recorder: env.events,
		live: live, claims: cached, pods: cached,
		applier: apply.New(apply.Options{
			Client: writer, Live: live, FieldOwner: modelmesh.FieldOwner, Component: modelmesh.ComponentName, FullObjectKinds: []schema.GroupVersionKind{deploymentKind},
		}),
		takeOver: modelmesh.NoTakeOver{}, pool: env.mesh, etcdWatcher: fakeEtcdWatcher{env.mesh},
	})
	if env.afterRestart != nil {
		env.afterRestart()
	}
}

// managerCache hides unmanaged Deployments, Services, HorizontalPodAutoscalers and NetworkPolicies, which the manager does not cache, and the
// labels and annotations of foreign Secrets and ConfigMaps.
func (env *testEnv) managerCache() interceptor.Funcs {
	return interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
		if err := c.Get(ctx, key, o, opts...); err != nil {
			return err
		}
		switch kind := kindOf(o); {
		case env.cacheStale && kind == "Deployment":
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

func newRESTMapper() meta.RESTMapper {
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

func (env *testEnv) recordRequest(requests *[]string, verb, kind, name string) error {
	if env.failRequest != nil {
		if err := env.failRequest(verb, kind, name); err != nil {
			return err
		}
	}
	*requests = append(*requests, verb+" "+kind+" "+name)
	return nil
}

func (env *testEnv) recordingFuncs() interceptor.Funcs {
	return interceptor.Funcs{
		Apply: func(ctx context.Context, c client.WithWatch, config runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
			key := apply.Object{Config: config}.Key()
			if err := env.recordRequest(&env.writes, "apply", key.Kind, key.NamespacedName.String()); err != nil {
				return err
			}
			return c.Apply(ctx, config, opts...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			if err := env.recordRequest(&env.writes, "patch", kindOf(o), client.ObjectKeyFromObject(o).String()); err != nil {
				return err
			}
			return c.Patch(ctx, o, p, opts...)
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			if err := env.recordRequest(&env.writes, "delete", kindOf(o), client.ObjectKeyFromObject(o).String()); err != nil {
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
	var allWrites []string
	for range 5 {
		env.reconcileOnce(namespace)
		writes := env.takeWrites()
		if len(writes) == 0 {
			return allWrites
		}
		allWrites = append(allWrites, writes...)
	}
	env.Fatalf("the steady state was not reached: writes %q", allWrites)
	return nil
}

// takeWrites returns the writes since the last call, sorted.
func (env *testEnv) takeWrites() []string {
	writes := env.writes
	env.writes = nil
	slices.Sort(writes)
	return writes
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
		env.Fatalf("runtime %s has no Deployment", runtime)
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

// runtimeSpec returns the spec of a runtime that supports a format.
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

func newServingRuntime(name, format string, changes ...func(*v1alpha1.ServingRuntimeSpec)) *v1alpha1.ServingRuntime {
	return &v1alpha1.ServingRuntime{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID("uid-of-" + name)}, Spec: runtimeSpec(format, changes...),
	}
}

func newClusterServingRuntime(name, format string, changes ...func(*v1alpha1.ServingRuntimeSpec)) *v1alpha1.ClusterServingRuntime {
	return &v1alpha1.ClusterServingRuntime{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-of-cluster-" + name)}, Spec: runtimeSpec(format, changes...),
	}
}

func singleModel(s *v1alpha1.ServingRuntimeSpec) { s.MultiModel = nil }
func disabled(s *v1alpha1.ServingRuntimeSpec)    { s.Disabled = new(true) }

// newPredictor returns a Predictor of a format in ns.
func newPredictor(name, format string) *v1alpha1.Predictor {
	p := &v1alpha1.Predictor{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID("uid-of-" + name)}}
	p.Spec.ModelType.Name = format
	return p
}

// newEtcdSecret returns the Secret with the etcd connection.
func newEtcdSecret(namespace string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "model-serving-etcd"},
		Data:       map[string][]byte{"etcd_connection": []byte(`{"endpoints":"http://etcd:2379","root_prefix":"models"}`)},
	}
}

// legacyMeta returns the metadata of a legacy object with an owner of the given kind, or without one.
func legacyMeta(namespace, name, ownerKind string, labels ...string) metav1.ObjectMeta {
	m := metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{resources.LabelManagedBy: resources.ControllerName}}
	for i := 0; i < len(labels); i += 2 {
		m.Labels[labels[i]] = labels[i+1]
	}
	if ownerKind != "" {
		m.OwnerReferences = []metav1.OwnerReference{{APIVersion: "x/v1", Kind: ownerKind, Name: "r", UID: types.UID("uid-of-r"), Controller: new(true)}}
	}
	return m
}

package modelregistry

import (
	"context"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
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

	"github.com/odh-platform/odh-platform-operator/apis/modelregistry/v1beta1"
	"github.com/odh-platform/odh-platform-operator/controllers/modelregistry/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/config"
	"github.com/odh-platform/odh-platform-operator/pkg/reconciler"
	pkgresources "github.com/odh-platform/odh-platform-operator/pkg/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/servers"
	"github.com/odh-platform/odh-platform-operator/pkg/takeover"
	"github.com/odh-platform/odh-platform-operator/test/fakeapi"
	"github.com/odh-platform/odh-platform-operator/test/registrytest"
)

var newUnstructured = pkgresources.NewUnstructured

var now = time.Unix(1700000000, 0)

// testEnv is a controller with a fake API server that is also its cache.
type testEnv struct {
	*testing.T
	*registryReconciler
	server client.WithWatch
	events *events.FakeRecorder
	writes []string // verb, kind and name of every write
	fail   func(verb, kind string) error
	// readError returns the error of each read from cache or API server.
	readError func() error
	// current is the registry of the last reconcile, as the API server would store it.
	current *v1beta1.ModelRegistry
}

// newEnvFunc is the type of newTestEnv.
type newEnvFunc = func(t *testing.T, served []schema.GroupVersionKind, objects ...client.Object) *testEnv

// newTestEnv returns an environment with the given objects. served lists the optional kinds that the controller treats as served.
func newTestEnv(t *testing.T, served []schema.GroupVersionKind, objects ...client.Object) *testEnv {
	t.Helper()
	scheme := fakeapi.Scheme(v1beta1.AddToScheme)
	for _, kind := range optionalKinds { // in advance, because the fake client keeps the first Go type that it sees for a kind
		scheme.AddKnownTypeWithName(kind, &unstructured.Unstructured{})
		scheme.AddKnownTypeWithName(kind.GroupVersion().WithKind(kind.Kind+"List"), &unstructured.UnstructuredList{})
	}
	env := &testEnv{T: t, events: events.NewFakeRecorder(100)}
	env.server = interceptor.NewClient(fake.NewClientBuilder().WithScheme(scheme).WithReturnManagedFields().
		WithTypeConverters(managedfields.NewDeducedTypeConverter()).WithRESTMapper(newRESTMapper()).WithObjects(objects...).
		WithIndex(&v1beta1.ModelRegistry{}, metav1.ObjectNameField, func(o client.Object) []string { return []string{o.GetName()} }).Build(), env.readInterceptors())
	recordingClient := interceptor.NewClient(env.server, env.writeInterceptors())
	env.registryReconciler = &registryReconciler{
		settings: Settings{ModelRegistry: config.ModelRegistry{
			Images:  config.RegistryImages{REST: "rest:1", KubeRBACProxy: "proxy:1", Postgres: "postgres:1"},
			Gateway: config.RegistryGateway{Name: "gate", Namespace: "ingress", RouteNamespace: "routes"},
		}},
		Reconciler: servers.NewReconciler(recordingClient, env.server, env.server, apply.New(apply.Options{
			Client: recordingClient, Live: env.server, FieldOwner: FieldOwner, Component: ComponentName, LegacyManagers: []string{servers.LegacyManager},
			StripAnnotations: []string{servers.LegacyCopyAnnotation}, FullObjectKinds: []schema.GroupVersionKind{servers.Deployment, servers.Claim, servers.CronJob, servers.EndpointSlice},
		}), clocktesting.NewFakeClock(now)),
		served: func() capability.Set { return capability.NewSet(served...) }, domain: fixedDomain("apps.example.com"),
		pods: env.server, recorder: env.events,
		readPodLog: func(context.Context, types.NamespacedName, string) (string, error) { return "", nil },
		takeOver:   takeover.None[*v1beta1.ModelRegistry]{},
	}
	return env
}

func (env *testEnv) readInterceptors() interceptor.Funcs {
	env.readError = func() error { return nil }
	return interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			if err := env.readError(); err != nil {
				return err
			}
			return c.Get(ctx, key, o, opts...)
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if err := env.readError(); err != nil {
				return err
			}
			if metadata, ok := list.(*metav1.PartialObjectMetadataList); ok && env.current != nil && metadata.Kind == v1beta1.Kind+"List" {
				metadata.Items = []metav1.PartialObjectMetadata{{ObjectMeta: *env.current.ObjectMeta.DeepCopy()}}
				return nil // reconcile does not store the registry
			}
			return listMetadata(ctx, c, list, opts...)
		},
	}
}

// listMetadata lists the metadata of kinds without Go types, which the fake client does not always support.
func listMetadata(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
	metadataList, ok := list.(*metav1.PartialObjectMetadataList)
	if !ok || clientgoscheme.Scheme.Recognizes(metadataList.GroupVersionKind()) {
		return c.List(ctx, list, opts...)
	}
	full := &unstructured.UnstructuredList{}
	full.SetGroupVersionKind(metadataList.GroupVersionKind())
	if err := c.List(ctx, full, opts...); err != nil {
		return c.List(ctx, list, opts...) // the objects were stored as metadata
	}
	metadataList.Items = nil
	for i := range full.Items {
		item, metadata := &full.Items[i], metav1.PartialObjectMetadata{}
		metadata.SetGroupVersionKind(item.GroupVersionKind())
		metadata.Namespace, metadata.Name, metadata.UID, metadata.ResourceVersion = item.GetNamespace(), item.GetName(), item.GetUID(), item.GetResourceVersion()
		metadata.Labels, metadata.OwnerReferences = item.GetLabels(), item.GetOwnerReferences()
		metadataList.Items = append(metadataList.Items, metadata)
	}
	return nil
}

// newRESTMapper returns a mapper of the kinds of these tests. The default mapper of the fake client is empty.
func newRESTMapper() meta.RESTMapper {
	m := meta.NewDefaultRESTMapper(nil)
	for _, kind := range []schema.GroupVersionKind{servers.ClusterRoleBinding, capability.UserGroup} {
		m.Add(kind, meta.RESTScopeRoot)
	}
	for _, kind := range []schema.GroupVersionKind{
		servers.Deployment, servers.Service, servers.ServiceAccount, servers.Secret, servers.ConfigMap, servers.Claim, servers.CronJob, servers.NetworkPolicy, servers.Role, servers.RoleBinding, servers.EndpointSlice,
		capability.Route, capability.HTTPRoute, capability.ReferenceGrant, v1beta1.GroupVersion.WithKind(v1beta1.Kind), corev1.SchemeGroupVersion.WithKind("Pod"),
	} {
		m.Add(kind, meta.RESTScopeNamespace)
	}
	return m
}

func (env *testEnv) writeInterceptors() interceptor.Funcs {
	record := func(verb, kind, name string) error {
		if env.fail != nil {
			if err := env.fail(verb, kind); err != nil {
				return err
			}
		}
		env.writes = append(env.writes, verb+" "+kind+" "+name)
		return nil
	}
	return interceptor.Funcs{
		Apply: func(ctx context.Context, c client.WithWatch, config runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
			key := apply.Object{Config: config}.Key()
			if err := record("apply", key.Kind, key.Name); err != nil {
				return err
			}
			return c.Apply(ctx, config, opts...)
		},
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			if err := record("create", kindOf(o), o.GetName()); err != nil {
				return err
			}
			return c.Create(ctx, o, opts...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			if err := record("patch", kindOf(o), o.GetName()); err != nil {
				return err
			}
			return c.Patch(ctx, o, p, opts...)
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			if err := record("delete", kindOf(o), o.GetName()); err != nil {
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

// newRegistry returns a registry as the API server stores it.
func newRegistry(name string, change ...func(*v1beta1.ModelRegistrySpec)) *v1beta1.ModelRegistry {
	m := registrytest.Registry(change...)
	m.Namespace, m.Name, m.UID, m.Generation = "ns", name, types.UID("uid-of-"+name), 1
	m.TypeMeta = metav1.TypeMeta{APIVersion: v1beta1.GroupVersion.String(), Kind: v1beta1.Kind}
	return m
}

// withGeneratedDatabase enables a generated database.
func withGeneratedDatabase(s *v1beta1.ModelRegistrySpec) {
	s.Postgres = &v1beta1.PostgresConfig{GenerateDeployment: new(true)}
}

// reconcile runs the phases like pkg/reconciler and returns the error.
func (env *testEnv) reconcile(m *v1beta1.ModelRegistry) error {
	env.Helper()
	env.current = m
	for _, phase := range env.phases() {
		if err := phase.Run(env.Context(), m); err != nil {
			return err
		}
	}
	return nil
}

// step advances the clock.
func (env *testEnv) step(by time.Duration) {
	env.Clock.(*clocktesting.FakeClock).Step(by)
}

// takeWrites returns the writes since the last call.
func (env *testEnv) takeWrites() string {
	all := strings.Join(env.writes, "\n")
	env.writes = nil
	return all
}

func (env *testEnv) get(o client.Object, namespace, name string) bool {
	env.Helper()
	err := env.server.Get(env.Context(), client.ObjectKey{Namespace: namespace, Name: name}, o)
	if client.IgnoreNotFound(err) != nil {
		env.Fatal(err)
	}
	return err == nil
}

func (env *testEnv) requireNoError(err error) {
	env.Helper()
	if err != nil {
		env.Fatal(err)
	}
}

var openShiftConfig = []schema.GroupVersionKind{capability.OpenShiftIngress}

var optionalKinds = []schema.GroupVersionKind{capability.Route, capability.OpenShiftIngress, capability.UserGroup, capability.HTTPRoute, capability.ReferenceGrant}

// newSecret returns a Secret with the keys to which the pods of these tests refer.
func newSecret(namespace, name string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Data: map[string][]byte{
		"password": []byte("p"), "tls.crt": []byte("c"), "tls.key": []byte("k"),
	}}
}

// requireWait fails the test unless the error of a reconcile is a Wait whose text contains part.
func (env *testEnv) requireWait(err error, part string) {
	env.Helper()
	wait, ok := reconciler.AsWait(err)
	if !ok || !strings.Contains(wait.For, part) {
		env.Errorf("got error %v, want a wait for %s", err, part)
	}
}

// setRunning sets the Deployment available since a minute ago, and creates an EndpointSlice and a pod with ready containers. The pod has no
// condition Ready.
func (env *testEnv) setRunning(m *v1beta1.ModelRegistry) {
	env.Helper()
	d := &appsv1.Deployment{}
	if !env.get(d, m.Namespace, m.Name) {
		env.Fatalf("Deployment %s does not exist", m.Name)
	}
	d.Status.Conditions = []appsv1.DeploymentCondition{{
		Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(now.Add(-time.Minute)),
	}}
	env.requireNoError(env.server.Status().Update(env.Context(), d))
	pod := podWith(m.Name+"-pod", readyContainer("rest-container"), readyContainer("kube-rbac-proxy"))
	pod.Namespace, pod.Labels = m.Namespace, resources.ServerSelector(m)
	env.requireNoError(env.server.Create(env.Context(), &pod))
	env.requireNoError(env.server.Create(env.Context(), &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{Namespace: m.Namespace, Name: m.Name + "-slice", Labels: map[string]string{discoveryv1.LabelServiceName: m.Name}},
		Endpoints:  []discoveryv1.Endpoint{{Addresses: []string{"10.0.0.1"}, Conditions: discoveryv1.EndpointConditions{Ready: new(true)}}},
	}))
}

// decode converts an object of an optional API as the controller does.
func decode[T any](t *testing.T, object *unstructured.Unstructured) *T {
	t.Helper()
	typed, err := pkgresources.Decode[T](object)
	if err != nil {
		t.Fatal(err)
	}
	return typed
}

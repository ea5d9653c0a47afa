package openshift

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/client-go/tools/events"
	testclock "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/odh-platform/odh-platform-operator/apis/serving/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/apis/serving/v1beta1"
	"github.com/odh-platform/odh-platform-operator/controllers/modelmesh"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	meshsettings "github.com/odh-platform/odh-platform-operator/pkg/modelmesh/settings"
	"github.com/odh-platform/odh-platform-operator/pkg/names"
	"github.com/odh-platform/odh-platform-operator/pkg/servingcert"
	"github.com/odh-platform/odh-platform-operator/test/fakeapi"
)

// testEnv runs both controllers on a fake API server without cache delay.
type testEnv struct {
	t          *testing.T
	server     client.WithWatch
	namespaces *namespaceReconciler
	routes     *inferenceServiceReconciler
	events     *events.FakeRecorder
	clock      *testclock.FakePassiveClock
	settings   meshsettings.Settings
	served     capability.Set
	enabled    bool
	// settingsErr is the error of reading the settings, enabledErr that of the enabled check.
	settingsErr, enabledErr error
	// writes contains "verb Kind name" of each write; reads counts reads from the API server.
	writes []string
	reads  int
	// failWrite returns the error of a write, if any.
	failWrite func(verb, kind string) error
}

func newTestEnv(t *testing.T, served capability.Set, existing ...client.Object) *testEnv {
	t.Helper()
	env := &testEnv{t: t, events: events.NewFakeRecorder(100), settings: meshsettings.Default(), served: served, enabled: true,
		clock: testclock.NewFakePassiveClock(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)), failWrite: func(string, string) error { return nil }}
	scheme := fakeapi.Scheme(v1alpha1.AddToScheme, v1beta1.AddToScheme)
	existing = append(existing, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team", UID: "uid-of-team"}})
	env.server = fake.NewClientBuilder().WithScheme(scheme).WithObjects(existing...).WithReturnManagedFields().
		WithRESTMapper(newRESTMapper(scheme)).WithTypeConverters(managedfields.NewDeducedTypeConverter()).Build()
	writer, live := env.writer(), env.live()
	base := baseReconciler{
		Lister: &modelmesh.Lister{
			Cached: writer, Namespaces: &modelmesh.Namespaces{OperatorNamespace: "own", APIReader: live, Cache: namespaceCache{reader: env.server}},
			Served:   func() capability.Set { return env.served },
			Settings: func(context.Context, string) (meshsettings.Settings, error) { return env.settings, env.settingsErr },
		},
		cached: writer, live: live, recorder: env.events,
		applier:  apply.New(apply.Options{Client: writer, Live: live, FieldOwner: modelmesh.FieldOwner, Component: modelmesh.ComponentName}),
		takeOver: modelmesh.NoTakeOver{},
		enabled:  func(context.Context, string) (bool, error) { return env.enabled, env.enabledErr },
	}
	env.namespaces = &namespaceReconciler{baseReconciler: base, monitoring: "monitoring", connections: connectionReader{env.server},
		certificates: &servingcert.Issuer{Cached: base.cached, Live: base.live, Applier: base.applier, Clock: env.clock}}
	env.routes = newInferenceServiceReconciler(base, env.server, env.clock)
	return env
}

// namespaceCache is a cache of all namespaces.
type namespaceCache struct {
	cache.Cache
	reader client.Reader
}

func (e namespaceCache) Get(ctx context.Context, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	return e.reader.Get(ctx, key, o, opts...)
}

// connectionReader lists only data connections.
type connectionReader struct{ client.Reader }

func (r connectionReader) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	return r.Reader.List(ctx, list, append(opts, client.MatchingLabels{LabelManaged: "true", LabelDashboard: "true"})...)
}

func (env *testEnv) writer() client.Client {
	return interceptor.NewClient(env.server, interceptor.Funcs{
		List: fakeapi.ListMetadata,
		Apply: func(ctx context.Context, c client.WithWatch, o runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
			named, _ := o.(interface {
				GetKind() string
				GetName() string
			})
			if err := env.recordRequest("apply", named.GetKind(), named.GetName()); err != nil {
				return err
			}
			return c.Apply(ctx, o, opts...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			if err := env.recordRequest("patch", kindOf(o), o.GetName()); err != nil {
				return err
			}
			return c.Patch(ctx, o, p, opts...)
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			if err := env.recordRequest("delete", kindOf(o), o.GetName()); err != nil {
				return err
			}
			return c.Delete(ctx, o, opts...)
		},
	})
}

func kindOf(o client.Object) string {
	if kind := o.GetObjectKind().GroupVersionKind().Kind; kind != "" {
		return kind
	}
	if _, isSecret := o.(*corev1.Secret); isSecret {
		return secretKind.Kind
	}
	return "InferenceService" // the only other typed object
}

func (env *testEnv) live() client.Reader {
	return interceptor.NewClient(env.server, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			env.reads++
			return c.Get(ctx, key, o, opts...)
		},
		List: func(ctx context.Context, c client.WithWatch, l client.ObjectList, opts ...client.ListOption) error {
			env.reads++
			return fakeapi.ListMetadata(ctx, c, l, opts...)
		},
	})
}

func (env *testEnv) recordRequest(verb, kind, name string) error {
	env.writes = append(env.writes, verb+" "+kind+" "+name)
	return env.failWrite(verb, kind)
}

// reconcile runs one reconcile and returns its writes and requeueAfter.
func (env *testEnv) reconcile(r reconcile.Reconciler, namespace, name string) ([]string, time.Duration, error) {
	env.t.Helper()
	env.writes = nil
	result, err := r.Reconcile(env.t.Context(), ctrl.Request{NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}})
	return env.writes, result.RequeueAfter, err
}

// reconcileNamespace reconciles the namespace and returns the writes. An error fails the test.
func (env *testEnv) reconcileNamespace() []string {
	env.t.Helper()
	writes, _, err := env.reconcile(env.namespaces, "", "team")
	if err != nil {
		env.t.Fatal(err)
	}
	return writes
}

// reconcileRoute reconciles an InferenceService and returns the writes. An error fails the test.
func (env *testEnv) reconcileRoute(name string) []string {
	env.t.Helper()
	writes, _, err := env.reconcile(env.routes, "team", name)
	if err != nil {
		env.t.Fatal(err)
	}
	return writes
}

// expectNoRequests expects that a reconcile sends no request.
func (env *testEnv) expectNoRequests(description string, reconcile func() []string) {
	env.t.Helper()
	readsBefore := env.reads
	if writes := reconcile(); len(writes) > 0 || env.reads != readsBefore {
		env.t.Errorf("%s: writes %q and %d reads from the API server, want none", description, writes, env.reads-readsBefore)
	}
}

func (env *testEnv) create(objects ...client.Object) {
	env.t.Helper()
	for _, o := range objects {
		if err := env.server.Create(env.t.Context(), o); err != nil {
			env.t.Fatal(err)
		}
	}
}

func (env *testEnv) update(o client.Object) {
	env.t.Helper()
	if err := env.server.Update(env.t.Context(), o); err != nil {
		env.t.Fatal(err)
	}
}

func (env *testEnv) remove(o client.Object) {
	env.t.Helper()
	if err := env.server.Delete(env.t.Context(), o); err != nil {
		env.t.Fatal(err)
	}
}

// exists reads an object of the namespace and reports whether it exists.
func (env *testEnv) exists(o client.Object, name string) bool {
	env.t.Helper()
	err := env.server.Get(env.t.Context(), client.ObjectKey{Namespace: "team", Name: name}, o)
	if client.IgnoreNotFound(err) != nil {
		env.t.Fatal(err)
	}
	return err == nil
}

// takeEvents returns the Events since the last call.
func (env *testEnv) takeEvents() string {
	var emitted []string
	for {
		select {
		case e := <-env.events.Events:
			emitted = append(emitted, e)
		default:
			return strings.Join(emitted, "\n")
		}
	}
}

// newDeployment returns the Deployment of a runtime.
func newDeployment(replicas int32) *appsv1.Deployment {
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "modelmesh-serving-ovms", Labels: names.Labels(modelmesh.ComponentName)},
		Spec:       appsv1.DeploymentSpec{Replicas: &replicas},
	}
}

var errDown = errors.New("the API server is down")

// newRESTMapper returns a RESTMapper for the kinds of the scheme and the optional ones.
func newRESTMapper(scheme *runtime.Scheme) meta.RESTMapper {
	m := meta.NewDefaultRESTMapper(nil)
	for kind := range scheme.AllKnownTypes() {
		scope := meta.RESTScopeNamespace
		if kind == delegatorKind || kind.Kind == "Namespace" || kind.Kind == "ClusterServingRuntime" {
			scope = meta.RESTScopeRoot
		}
		m.Add(kind, scope)
	}
	for _, kind := range []schema.GroupVersionKind{capability.Route, capability.HTTPRoute, capability.BackendTLSPolicy} {
		m.Add(kind, meta.RESTScopeNamespace)
	}
	return m
}

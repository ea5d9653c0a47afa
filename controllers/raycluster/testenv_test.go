package raycluster

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/odh-platform/odh-platform-operator/controllers/raycluster/certificates"
	"github.com/odh-platform/odh-platform-operator/controllers/raycluster/pods"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/config"
	"github.com/odh-platform/odh-platform-operator/pkg/raycluster"
	"github.com/odh-platform/odh-platform-operator/pkg/reconciler"
	"github.com/odh-platform/odh-platform-operator/pkg/takeover"
	"github.com/odh-platform/odh-platform-operator/test/fakeapi"
)

// testEnv is a clusterReconciler with a fake API server and a cache without delay.
type testEnv struct {
	*clusterReconciler
	t            *testing.T
	server       client.WithWatch
	events       *events.FakeRecorder
	settings     config.RayCluster
	served       capability.Set
	kubeRayKnown bool // whether the namespaces of KubeRay are known
	certificates *fakeCertificates
	// writes are the write requests as "verb Kind name"; reads counts live reads.
	writes []string
	reads  int
	// failWrite returns the error of a write request.
	failWrite func(verb, kind string) error
}

// fakeCertificates is a certificateReconciler that records the modes and returns err.
type fakeCertificates struct {
	modes []raycluster.Mode
	err   error
}

func (f *fakeCertificates) Reconcile(_ context.Context, _ *unstructured.Unstructured, in certificates.Inputs, _ *certificates.Memory) (time.Duration, error) {
	f.modes = append(f.modes, in.Mode)
	return time.Hour, f.err
}

var openShift = capability.NewSet(capability.Route, capability.OpenShiftIngress, capability.UserGroup)

// indexedRayCluster and nameOf index RayClusters by name in the fake server.
func indexedRayCluster() client.Object {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(raycluster.GVK)
	return u
}

func nameOf(o client.Object) []string { return []string{o.GetName()} }

func newTestEnv(t *testing.T, existing ...client.Object) *testEnv {
	t.Helper()
	s := &testEnv{t: t, events: events.NewFakeRecorder(100), settings: config.DefaultRayCluster(), served: openShift, kubeRayKnown: true,
		failWrite: func(string, string) error { return nil }}
	s.settings.GatewayNamespace = "openshift-ingress"
	s.server = fake.NewClientBuilder().WithScheme(fakeapi.Scheme()).WithObjects(existing...).WithReturnManagedFields().
		WithRESTMapper(mapper()).WithTypeConverters(managedfields.NewDeducedTypeConverter()).WithIndex(&corev1.Pod{}, pods.Index, pods.IndexValue).
		WithIndex(indexedRayCluster(), metav1.ObjectNameField, nameOf).Build()
	writer := interceptor.NewClient(s.server, interceptor.Funcs{
		List: fakeapi.ListMetadata,
		Apply: func(ctx context.Context, c client.WithWatch, o runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
			named, _ := o.(interface {
				GetKind() string
				GetName() string
			})
			if err := s.recordRequest("apply", named.GetKind(), named.GetName()); err != nil {
				return err
			}
			return c.Apply(ctx, o, opts...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			if err := s.recordRequest("patch", o.GetObjectKind().GroupVersionKind().Kind, o.GetName()); err != nil {
				return err
			}
			return c.Patch(ctx, o, p, opts...)
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			if err := s.recordRequest("delete", o.GetObjectKind().GroupVersionKind().Kind, o.GetName()); err != nil {
				return err
			}
			return c.Delete(ctx, o, opts...)
		},
	})
	live := interceptor.NewClient(s.server, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			s.reads++
			return c.Get(ctx, key, o, opts...)
		},
		List: func(ctx context.Context, c client.WithWatch, l client.ObjectList, opts ...client.ListOption) error {
			s.reads++
			return fakeapi.ListMetadata(ctx, c, l, opts...)
		},
	})
	s.certificates = &fakeCertificates{}
	s.clusterReconciler = &clusterReconciler{
		client: writer, cacheReader: s.server, apiReader: live, pods: s.server, recorder: s.events, certificates: s.certificates, clock: clocktesting.NewFakePassiveClock(time.Now()),
		applier:           apply.New(apply.Options{Client: writer, Live: live, FieldOwner: FieldOwner, Component: ComponentName}),
		settings:          func(context.Context) (config.RayCluster, error) { return s.settings, nil },
		served:            func() capability.Set { return s.served },
		domain:            func() string { return "apps.example.org" },
		kubeRayNamespaces: func(config.RayCluster) ([]string, bool) { return []string{"opendatahub"}, s.kubeRayKnown },
		takeOver:          takeover.None[*unstructured.Unstructured]{},
	}
	return s
}

func (s *testEnv) recordRequest(verb, kind, name string) error {
	s.writes = append(s.writes, verb+" "+kind+" "+name)
	return s.failWrite(verb, kind)
}

// create stores a cluster.
func (s *testEnv) create(text string) *unstructured.Unstructured {
	s.t.Helper()
	u := clusterFrom(s.t, text)
	u.SetGeneration(1)
	if err := s.server.Create(s.t.Context(), u); err != nil {
		s.t.Fatal(err)
	}
	return u
}

// reconcile reconciles a cluster once and returns the writes and RequeueAfter.
func (s *testEnv) reconcile(u *unstructured.Unstructured) ([]string, time.Duration, error) {
	s.t.Helper()
	s.writes = nil
	result, err := reconciler.ClassifyErrors(s).Reconcile(s.t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(u)})
	return s.writes, result.RequeueAfter, err
}

// mustReconcile reconciles a cluster and returns the writes.
func (s *testEnv) mustReconcile(u *unstructured.Unstructured) []string {
	s.t.Helper()
	writes, _, err := s.reconcile(u)
	if err != nil {
		s.t.Fatal(err)
	}
	return writes
}

// expectIdle reconciles once, which must neither write nor read from the API server.
func (s *testEnv) expectIdle(u *unstructured.Unstructured) {
	s.t.Helper()
	before := s.reads
	if writes := s.mustReconcile(u); len(writes) > 0 || s.reads != before {
		s.t.Errorf("got writes %q and %d live reads in the steady state, want none", writes, s.reads-before)
	}
}

func (s *testEnv) exists(o client.Object, namespace, name string) bool {
	s.t.Helper()
	err := s.server.Get(s.t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, o)
	if client.IgnoreNotFound(err) != nil {
		s.t.Fatal(err)
	}
	return err == nil
}

func (s *testEnv) refresh(u *unstructured.Unstructured) {
	s.t.Helper()
	if err := s.server.Get(s.t.Context(), client.ObjectKeyFromObject(u), u); err != nil {
		s.t.Fatal(err)
	}
}

// drainEvents returns the Events since the previous call.
func (s *testEnv) drainEvents() string {
	var out []string
	for {
		select {
		case e := <-s.events.Events:
			out = append(out, e)
		default:
			return strings.Join(out, "\n")
		}
	}
}

// bindingOf returns a binding of the CodeFlare operator.
func bindingOf(name, cluster, namespace string) *rbacv1.ClusterRoleBinding {
	return &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-of-" + name), Labels: map[string]string{
			raycluster.LabelClusterName: cluster, raycluster.LabelClusterNamespace: namespace,
		}},
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "system:auth-delegator"},
	}
}

// brokenSettings returns the error of invalid settings.
func brokenSettings(context.Context) (config.RayCluster, error) {
	return config.RayCluster{}, errors.New("kuberay.mTLSEnabled 1: must be true or false")
}

// mapper returns a RESTMapper for the kinds of these tests.
func mapper() meta.RESTMapper {
	m := meta.NewDefaultRESTMapper(nil)
	for _, kind := range append(append([]schema.GroupVersionKind{raycluster.GVK}, builtInKinds...), optionalKinds...) {
		m.Add(kind, meta.RESTScopeNamespace)
	}
	m.Add(corev1.SchemeGroupVersion.WithKind("Pod"), meta.RESTScopeNamespace)
	m.Add(bindingKind, meta.RESTScopeRoot)
	m.Add(corev1.SchemeGroupVersion.WithKind("Namespace"), meta.RESTScopeRoot)
	return m
}

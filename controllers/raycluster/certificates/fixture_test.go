package certificates

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/yaml"

	"github.com/odh-platform/odh-platform-operator/controllers/raycluster/pods"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/config"
	"github.com/odh-platform/odh-platform-operator/pkg/raycluster"
	"github.com/odh-platform/odh-platform-operator/test/fakeapi"
	"github.com/odh-platform/odh-platform-operator/test/raytest"
)

// byOperator is the mode with mutual TLS and certificates that the operator issues.
var byOperator = raycluster.Mode{MTLS: true, Issuer: raycluster.IssuerOperator}

// fixture is a Reconciler with a fake API server and a fake clock.
type fixture struct {
	*Reconciler
	memory   Memory
	t        *testing.T
	clock    *clocktesting.FakeClock
	server   client.WithWatch
	events   *events.FakeRecorder
	settings config.RayCluster
	served   capability.Set
	domain   string
	// publishes reports whether the CA of the proxy is published.
	publishes bool
	// hidden are the names of Secrets that are missing in the cache.
	hidden map[string]bool
	// reads counts live Get requests, writes applies, and patches patches of pods.
	reads, writes, patches int
	// requestErr is the error of live Get requests and applies. applyErr are the errors of applies by name.
	requestErr error
	applyErr   map[string]error
}

func newFixture(t *testing.T, existing ...client.Object) *fixture {
	t.Helper()
	f := &fixture{
		t: t, clock: clocktesting.NewFakeClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)), events: events.NewFakeRecorder(100),
		settings: config.DefaultRayCluster(), domain: "apps.example.org", hidden: map[string]bool{},
	}
	f.server = fake.NewClientBuilder().WithScheme(fakeapi.Scheme()).WithObjects(existing...).WithReturnManagedFields().
		WithIndex(&corev1.Pod{}, pods.Index, pods.IndexValue).
		WithIndex(demo(t), metav1.ObjectNameField, func(o client.Object) []string { return []string{o.GetName()} }).Build()
	cached := interceptor.NewClient(f.server, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			if f.hidden[key.Name] {
				key.Name = "hidden-by-the-cache"
			}
			return c.Get(ctx, key, o, opts...)
		},
		Apply: func(ctx context.Context, c client.WithWatch, o runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
			f.writes++
			if f.requestErr != nil {
				return f.requestErr
			}
			if named, ok := o.(interface{ GetName() string }); ok && f.applyErr[named.GetName()] != nil {
				return f.applyErr[named.GetName()]
			}
			return c.Apply(ctx, o, opts...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			f.patches++
			return c.Patch(ctx, o, p, opts...)
		},
	})
	live := interceptor.NewClient(f.server, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			f.reads++
			if f.requestErr != nil {
				return f.requestErr
			}
			return c.Get(ctx, key, o, opts...)
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			metadata, ok := list.(*metav1.PartialObjectMetadataList)
			if !ok || metadata.Kind != raycluster.GVK.Kind+"List" {
				return c.List(ctx, list, opts...)
			}
			metadata.Items = []metav1.PartialObjectMetadata{{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "demo", UID: "u"}}}
			return nil // the fake API server does not store the RayCluster
		},
	})
	f.Reconciler = &Reconciler{
		Cached: cached, APIReader: live, Writer: cached,
		Applier: apply.New(apply.Options{Client: cached, Live: live, FieldOwner: raycluster.FieldOwner, Component: raycluster.ComponentName}),
		Clock:   f.clock, Recorder: f.events,
	}
	t.Cleanup(f.memory.Forget)
	return f
}

// demo returns a RayCluster with one worker group and hashed names.
func demo(t *testing.T) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	err := yaml.Unmarshal([]byte(`
apiVersion: ray.io/v1
kind: RayCluster
metadata: {name: demo, namespace: team, uid: u, annotations: {ray.openshift.ai/version: x}}
spec: {headGroupSpec: {}, workerGroupSpecs: [{groupName: small}]}`), &u.Object)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func (f *fixture) inputs(mode raycluster.Mode) Inputs {
	return Inputs{RayCluster: f.settings, Mode: mode, Domain: f.domain, CertManager: f.served.Has(capability.Certificate), PublishesAuthority: f.publishes}
}

// reconcile reconciles the certificates of a RayCluster with its pods.
func (f *fixture) reconcile(ctx context.Context, cluster *unstructured.Unstructured, mode raycluster.Mode) (time.Duration, error) {
	in := f.inputs(mode)
	var err error
	if in.Pods, err = pods.List(ctx, f.server, cluster.GetNamespace(), cluster.GetUID()); err != nil {
		return 0, err
	}
	return f.Reconcile(ctx, cluster, in, &f.memory)
}

// mustReconcile reconciles and fails the test on an error.
func (f *fixture) mustReconcile(cluster *unstructured.Unstructured, mode raycluster.Mode) time.Duration {
	f.t.Helper()
	after, err := f.reconcile(f.t.Context(), cluster, mode)
	if err != nil {
		f.t.Fatal(err)
	}
	return after
}

// expectIdle reconciles once, which must neither write nor read from the API server.
func (f *fixture) expectIdle(cluster *unstructured.Unstructured, mode raycluster.Mode) {
	f.t.Helper()
	reads, writes, patches := f.reads, f.writes, f.patches
	f.mustReconcile(cluster, mode)
	if f.reads != reads || f.writes != writes || f.patches != patches {
		f.t.Errorf("got %d reads, %d writes and %d patches in the steady state, want none", f.reads-reads, f.writes-writes, f.patches-patches)
	}
}

func (f *fixture) secret(name string) *corev1.Secret {
	f.t.Helper()
	secret := &corev1.Secret{}
	if err := f.server.Get(f.t.Context(), client.ObjectKey{Namespace: "team", Name: name}, secret); err != nil {
		f.t.Fatal(err)
	}
	return secret
}

func (f *fixture) update(object client.Object) {
	f.t.Helper()
	if err := f.server.Update(f.t.Context(), object); err != nil {
		f.t.Fatal(err)
	}
}

func (f *fixture) create(objects ...client.Object) {
	f.t.Helper()
	for _, o := range objects {
		if err := f.server.Create(f.t.Context(), o); err != nil {
			f.t.Fatal(err)
		}
	}
}

// drainEvents returns the Events since the previous call.
func (f *fixture) drainEvents() string {
	var out []string
	for {
		select {
		case e := <-f.events.Events:
			out = append(out, e)
		default:
			return strings.Join(out, "\n")
		}
	}
}

// expiryMetric returns the metric of one certificate.
func expiryMetric(role string) time.Time {
	var m dto.Metric
	if err := expiry.WithLabelValues("team", "demo", role).Write(&m); err != nil {
		return time.Time{}
	}
	return time.Unix(int64(m.GetGauge().GetValue()), 0).UTC()
}

// pendingPod returns a pod that waits for its certificate.
func pendingPod(name, role string, ips ...string) *corev1.Pod {
	pod := raytest.Pod(name, role, "u", ips...)
	pod.Status.Phase = corev1.PodPending
	return pod
}

// manyPods returns n workers, which were created at intervals of a second.
func manyPods(n int, start time.Time) []corev1.Pod {
	var out []corev1.Pod
	for i := range n {
		pod := raytest.Pod(fmt.Sprintf("w%05d", i), raycluster.NodeTypeWorker, "u", fmt.Sprintf("10.%d.%d.%d", i/65536, i/256%256, i%256))
		pod.CreationTimestamp = metav1.NewTime(start.Add(time.Duration(i) * time.Second))
		out = append(out, *pod)
	}
	return out
}

// equalData reports whether two Secrets have equal content.
func equalData(a, b map[string][]byte) bool { return maps.EqualFunc(a, b, bytes.Equal) }

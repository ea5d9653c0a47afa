package runtimes

import (
	"errors"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/controllers/modelmesh"
	meshsettings "github.com/odh-platform/odh-platform-operator/pkg/modelmesh/settings"
)

// newTestEnvWithGuards enables kube-rbac-proxy in ns, which needs all guards.
func newTestEnvWithGuards(t *testing.T, objects ...client.Object) *testEnv {
	w := newTestEnv(t, append(objects, localRuntime("r", "onnx"), clusterRuntime("shared", "onnx"), predictorOf("m", "onnx"))...)
	guardREST(&w.settings)
	return w
}

// [M34] No Deployment is created or changed before all guards of the namespace were applied. If one cannot be applied, for example
// because of a quota or a foreign object, an Event on each runtime names it.
func TestNoDeploymentWithoutGuards(t *testing.T) {
	const foreign, passing = "exists and was not created by this operator", "the API server is away"
	for _, guard := range []client.Object{
		&networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "modelmesh-runtimes"}},
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "model-serving-proxy-rules"}},
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "tc-config"}},
	} {
		kind := kindOf(guard)
		for why, refusal := range map[string]error{
			foreign: nil, "exceeded quota": apierrors.NewForbidden(schema.GroupResource{}, "x", errors.New("exceeded quota")), passing: errors.New(passing),
		} {
			w := newTestEnvWithGuards(t)
			if refusal == nil {
				w.create(guard.DeepCopyObject().(client.Object))
			}
			w.fail = func(verb, _, name string) error {
				if verb == "apply" && name == "ns/"+guard.GetName() {
					return refusal
				}
				return nil
			}
			result, err := w.Reconcile(t.Context(), modelmesh.RequestFor("ns"))
			if again := result.RequeueAfter > 0; again != (why == foreign) || again == (err != nil) {
				t.Errorf("%s %s: again after %s, error %v", guard.GetName(), why, result.RequeueAfter, err)
			}
			if w.hasDeployment("r") || w.hasDeployment("shared") {
				t.Errorf("%s %s: pods run without it", guard.GetName(), why)
			}
			emitted := strings.Join(recordedEvents(w.events), "\n")
			for _, name := range []string{"r", "shared"} {
				reported := strings.Contains(emitted, kind+" ns/"+guard.GetName()) && strings.Contains(emitted, "until then not written: Deployment ns/modelmesh-serving-"+name)
				if reported == (why == passing) {
					t.Errorf("%s %s: events %q", guard.GetName(), why, emitted)
				}
			}
			w.fail = nil
			w.must(client.IgnoreNotFound(w.api.Delete(t.Context(), guard.DeepCopyObject().(client.Object))))
			w.takeWrites()
			w.reconcileOnce("ns")
			if first := slices.IndexFunc(w.writes, func(s string) bool { return strings.Contains(s, "Deployment") }); first < slices.Index(w.writes, "apply "+kind+" ns/"+guard.GetName()) {
				t.Errorf("%s %s: afterwards %q", guard.GetName(), why, w.writes)
			}
			w.takeWrites()
			w.expect("two runtimes share what guards them", w.reconcileUntilStable("ns"), nil)
		}
	}
}

// An existing Deployment is not changed while the NetworkPolicy is missing, which may have to protect the change.
func TestNoDeploymentUpdateWithoutGuards(t *testing.T) {
	w := newTestEnvWithGuards(t)
	w.reconcileUntilStable("ns")
	policy := &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "modelmesh-runtimes"}}
	w.must(w.api.Delete(t.Context(), policy.DeepCopy()))
	w.create(policy.DeepCopy())
	w.settings.PodsPerRuntime = 5
	w.expect("with a foreign policy", w.reconcileUntilStable("ns"), nil)
	if w.replicasOf("r") != 2 || len(recordedEvents(w.events)) != 2 {
		t.Errorf("%d replicas", w.replicasOf("r"))
	}
	w.must(w.api.Delete(t.Context(), policy))
	w.reconcileOnce("ns")
	w.expect("when it is gone", w.writes, []string{
		"apply NetworkPolicy ns/modelmesh-runtimes", "apply Deployment ns/modelmesh-serving-r", "apply Deployment ns/modelmesh-serving-shared",
	})
}

// A NetworkPolicy whose labels a user removed is not cached but still managed; it does not block the runtimes.
func TestGuardWithoutManagedLabels(t *testing.T) {
	w := newTestEnvWithGuards(t)
	w.reconcileUntilStable("ns")
	policy := &networkingv1.NetworkPolicy{}
	w.get(policy, "ns", "modelmesh-runtimes")
	policy.Labels = nil
	w.must(w.api.Update(t.Context(), policy, client.FieldOwner("kubectl")))
	w.settings.PodsPerRuntime = 1
	w.reconcileOnce("ns")
	w.expect("written", w.writes, []string{
		"apply NetworkPolicy ns/modelmesh-runtimes", "apply Deployment ns/modelmesh-serving-r", "apply Deployment ns/modelmesh-serving-shared",
	})
	if emitted := recordedEvents(w.events); len(emitted) > 0 {
		t.Errorf("events %q", emitted)
	}
}

// Guards are deleted after the last Deployment: when the last runtime is deleted, the label is removed, or a setting disables them.
func TestGuardsAreDeletedLast(t *testing.T) {
	deletions := []string{"delete ConfigMap ns/model-serving-proxy-rules", "delete NetworkPolicy ns/modelmesh-runtimes"}
	for name, c := range map[string]func(*testEnv){
		"runtimes": func(w *testEnv) {
			w.must(w.api.Delete(t.Context(), localRuntime("r", "onnx")))
			w.must(w.api.Delete(t.Context(), clusterRuntime("shared", "onnx")))
		},
		"label": func(w *testEnv) {
			namespace := &corev1.Namespace{}
			w.get(namespace, "", "ns")
			namespace.Labels[modelmesh.LabelEnabled] = "false"
			w.must(w.api.Update(t.Context(), namespace))
		},
	} {
		w := newTestEnvWithGuards(t)
		w.reconcileUntilStable("ns")
		c(w)
		w.reconcileOnce("ns")
		if writes := w.takeWrites(); w.hasDeployment("r") || w.hasDeployment("shared") || slices.Contains(writes, deletions[1]) {
			t.Errorf("%s: first %q", name, writes)
		}
		w.expect(name+": then", w.reconcileUntilStable("ns"), deletions)
	}
	w := newTestEnvWithGuards(t)
	w.reconcileUntilStable("ns")
	w.settings.NetworkPolicy = false
	w.expect("disabled", w.reconcileUntilStable("ns"), deletions[1:])
}

func guardREST(s *meshsettings.Settings) { s.AuthProxy.Mode = meshsettings.AuthProxyAlways }

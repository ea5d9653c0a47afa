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

// newTestEnvWithGuards returns an environment with kube-rbac-proxy enabled, which requires all guards.
func newTestEnvWithGuards(t *testing.T, objects ...client.Object) *testEnv {
	env := newTestEnv(t, append(objects, newServingRuntime("r", "onnx"), newClusterServingRuntime("shared", "onnx"), newPredictor("m", "onnx"))...)
	enableAuthProxy(&env.settings)
	return env
}

// [M34] No Deployment is created before the guards and the type constraints of the namespace were applied. If a quota or a foreign object
// prevents that, an Event on each runtime names the object; a temporary error is only retried.
func TestNoDeploymentWithoutGuards(t *testing.T) {
	const foreign, temporary = "exists and was not created by this operator", "the API server is down"
	for _, guard := range []client.Object{
		&networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "modelmesh-runtimes"}},
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "model-serving-proxy-rules"}},
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "tc-config"}},
	} {
		kind := kindOf(guard)
		for reason, applyErr := range map[string]error{
			foreign: nil, "exceeded quota": apierrors.NewForbidden(schema.GroupResource{}, "x", errors.New("exceeded quota")), temporary: errors.New(temporary),
		} {
			env := newTestEnvWithGuards(t)
			if applyErr == nil {
				env.create(guard.DeepCopyObject().(client.Object))
			}
			env.failRequest = func(verb, _, name string) error {
				if verb == "apply" && name == "ns/"+guard.GetName() {
					return applyErr
				}
				return nil
			}
			result, err := env.Reconcile(t.Context(), modelmesh.RequestFor("ns"))
			if requeued := result.RequeueAfter > 0; requeued != (reason == foreign) || requeued == (err != nil) {
				t.Errorf("%s %s: requeue after %s, error %v", guard.GetName(), reason, result.RequeueAfter, err)
			}
			if env.hasDeployment("r") || env.hasDeployment("shared") {
				t.Errorf("%s %s: a Deployment was created without the guard", guard.GetName(), reason)
			}
			emitted := strings.Join(recordedEvents(env.events), "\n")
			for _, name := range []string{"r", "shared"} {
				reported := strings.Contains(emitted, kind+" ns/"+guard.GetName()) && strings.Contains(emitted, "until then not written: Deployment ns/modelmesh-serving-"+name)
				if reported == (reason == temporary) {
					t.Errorf("%s %s: got events %q, want one for runtime %s: %t", guard.GetName(), reason, emitted, name, reason != temporary)
				}
			}
			env.failRequest = nil
			env.must(client.IgnoreNotFound(env.api.Delete(t.Context(), guard.DeepCopyObject().(client.Object))))
			env.takeWrites()
			env.reconcileOnce("ns")
			guardIndex := slices.Index(env.writes, "apply "+kind+" ns/"+guard.GetName())
			if first := slices.IndexFunc(env.writes, func(s string) bool { return strings.Contains(s, "Deployment") }); guardIndex < 0 || first < guardIndex {
				t.Errorf("%s %s: writes %q, want the guard before the Deployments", guard.GetName(), reason, env.writes)
			}
			env.takeWrites()
			env.expect("writes in steady state", env.reconcileUntilStable("ns"), nil)
		}
	}
}

// An existing Deployment is not changed if a foreign NetworkPolicy prevents the guard.
func TestNoDeploymentUpdateWithoutGuards(t *testing.T) {
	env := newTestEnvWithGuards(t)
	env.reconcileUntilStable("ns")
	policy := &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "modelmesh-runtimes"}}
	env.must(env.api.Delete(t.Context(), policy.DeepCopy()))
	env.create(policy.DeepCopy())
	env.settings.PodsPerRuntime = 5
	env.expect("writes with a foreign NetworkPolicy", env.reconcileUntilStable("ns"), nil)
	if env.replicasOf("r") != 2 || len(recordedEvents(env.events)) != 2 {
		t.Errorf("%d replicas, want 2, and an Event for each runtime", env.replicasOf("r"))
	}
	env.must(env.api.Delete(t.Context(), policy))
	env.reconcileOnce("ns")
	env.expect("writes after its deletion", env.writes, []string{
		"apply NetworkPolicy ns/modelmesh-runtimes", "apply Deployment ns/modelmesh-serving-r", "apply Deployment ns/modelmesh-serving-shared",
	})
}

// A NetworkPolicy whose labels a user removed is not cached but still managed; it does not block the runtimes.
func TestGuardWithoutManagedLabels(t *testing.T) {
	env := newTestEnvWithGuards(t)
	env.reconcileUntilStable("ns")
	policy := &networkingv1.NetworkPolicy{}
	env.get(policy, "ns", "modelmesh-runtimes")
	policy.Labels = nil
	env.must(env.api.Update(t.Context(), policy, client.FieldOwner("kubectl")))
	env.settings.PodsPerRuntime = 1
	env.reconcileOnce("ns")
	env.expect("writes", env.writes, []string{
		"apply NetworkPolicy ns/modelmesh-runtimes", "apply Deployment ns/modelmesh-serving-r", "apply Deployment ns/modelmesh-serving-shared",
	})
	if emitted := recordedEvents(env.events); len(emitted) > 0 {
		t.Errorf("got events %q, want none", emitted)
	}
}

// When the last runtime is deleted or the namespace disabled, guards are deleted after Deployments. A setting deletes the NetworkPolicy.
func TestGuardsAreDeletedLast(t *testing.T) {
	deletions := []string{"delete ConfigMap ns/model-serving-proxy-rules", "delete NetworkPolicy ns/modelmesh-runtimes"}
	for name, change := range map[string]func(*testEnv){
		"runtimes deleted": func(env *testEnv) {
			env.must(env.api.Delete(t.Context(), newServingRuntime("r", "onnx")))
			env.must(env.api.Delete(t.Context(), newClusterServingRuntime("shared", "onnx")))
		},
		"namespace disabled": func(env *testEnv) {
			namespace := &corev1.Namespace{}
			env.get(namespace, "", "ns")
			namespace.Labels[modelmesh.LabelEnabled] = "false"
			env.must(env.api.Update(t.Context(), namespace))
		},
	} {
		env := newTestEnvWithGuards(t)
		env.reconcileUntilStable("ns")
		change(env)
		env.reconcileOnce("ns")
		if writes := env.takeWrites(); env.hasDeployment("r") || env.hasDeployment("shared") || slices.Contains(writes, deletions[1]) {
			t.Errorf("%s: first writes %q, want the Deployments deleted and the NetworkPolicy kept", name, writes)
		}
		env.expect(name+": next writes", env.reconcileUntilStable("ns"), deletions)
	}
	env := newTestEnvWithGuards(t)
	env.reconcileUntilStable("ns")
	env.settings.NetworkPolicyEnabled = false
	env.expect("NetworkPolicy disabled", env.reconcileUntilStable("ns"), deletions[1:])
}

func enableAuthProxy(s *meshsettings.Settings) { s.AuthProxy.Mode = meshsettings.AuthProxyAlways }

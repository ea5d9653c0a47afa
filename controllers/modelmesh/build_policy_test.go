package modelmesh

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/meshsettings"
	"github.com/odh-platform/odh-platform-operator/pkg/modelmesh/authproxy"
)

// guardsOf are the guards of a namespace on a platform as they would be written.
func guardsOf(t *testing.T, served capability.Set, changes ...func(*meshsettings.Settings)) []*unstructured.Unstructured {
	t.Helper()
	in := namespaceInputs(func(in *NamespaceInputs) { in.Home, in.OpenShift = "opendatahub", served.OpenShift() })
	for _, change := range changes {
		change(&in.Settings)
	}
	in.Proxy = authproxy.Decide(in.Settings, in.Namespace, served)
	desired, err := BuildGuards(in)
	if err != nil {
		t.Fatal(err)
	}
	objects, err := apply.Render(desired, ComponentName, namespaceNamed(in.Namespace, "true"))
	if err != nil {
		t.Fatal(err)
	}
	return objects
}

func guardREST(s *meshsettings.Settings) { s.AuthProxy.Mode = meshsettings.AuthProxyAlways }

// [M34] [O4] What is made, and that the policy which the original installed is taken over and that of a user is not.
func TestGuards(t *testing.T) {
	openShift := capability.NewSet(capability.Route, capability.OpenShiftIngress, capability.UserGroup)
	off := func(s *meshsettings.Settings) { s.NetworkPolicy = false }
	for name, c := range map[string]struct {
		got  []*unstructured.Unstructured
		want []string
	}{
		"Kubernetes":          {guardsOf(t, capability.NewSet()), []string{"modelmesh-runtimes"}},
		"Kubernetes, guarded": {guardsOf(t, capability.NewSet(), guardREST), []string{"modelmesh-runtimes", "model-serving-proxy-rules"}},
		"OpenShift":           {guardsOf(t, openShift), []string{"modelmesh-runtimes"}},
		"switched off":        {guardsOf(t, capability.NewSet(), off), nil},
	} {
		var got []string
		for _, o := range c.got {
			got = append(got, o.GetName())
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %q", name, got)
		}
	}
	pods := func(labels map[string]any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"podSelector": map[string]any{"matchLabels": labels}}}}
	}
	if !samePods(pods(map[string]any{"app.kubernetes.io/managed-by": "modelmesh-controller"})) || samePods(pods(map[string]any{"of": "somebody"})) {
		t.Error("the wrong one is taken over")
	}
}

// guardedWorld guards REST of ns by kube-rbac-proxy, which needs all guards that there are.
func guardedWorld(t *testing.T, objects ...client.Object) *world {
	w := newWorld(t, append(objects, localRuntime("r", "onnx"), clusterRuntime("shared", "onnx"), predictorOf("m", "onnx"))...)
	guardREST(&w.settings)
	return w
}

// [M34] Every guard of a namespace stands before any of its runtimes, and while one does not, because of a quota, another object of that
// name or whatever else, no Deployment is made or changed, and each runtime is told what waits for what.
func TestNoRuntimeWithoutItsGuards(t *testing.T) {
	const foreign, passing = "exists and was not made by this operator", "the API server is away"
	for _, guard := range []client.Object{
		&networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "modelmesh-runtimes"}},
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "model-serving-proxy-rules"}},
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "tc-config"}},
	} {
		kind := kindOf(guard)
		for why, refusal := range map[string]error{
			foreign: nil, "exceeded quota": apierrors.NewForbidden(schema.GroupResource{}, "x", errors.New("exceeded quota")), passing: errors.New(passing),
		} {
			w := guardedWorld(t)
			if refusal == nil {
				w.create(guard.DeepCopyObject().(client.Object))
			}
			w.fail = func(verb, _, name string) error {
				if verb == "apply" && name == "ns/"+guard.GetName() {
					return refusal
				}
				return nil
			}
			result, err := w.Reconcile(t.Context(), RequestFor("ns"))
			if again := result.RequeueAfter > 0; again != (why == foreign) || again == (err != nil) {
				t.Errorf("%s %s: again after %s, error %v", guard.GetName(), why, result.RequeueAfter, err)
			}
			if w.has("r") || w.has("shared") {
				t.Errorf("%s %s: pods run without it", guard.GetName(), why)
			}
			said := strings.Join(heard(w.events), "\n")
			for _, name := range []string{"r", "shared"} {
				told := strings.Contains(said, kind+" ns/"+guard.GetName()) && strings.Contains(said, "until then not written: Deployment ns/modelmesh-serving-"+name)
				if told == (why == passing) {
					t.Errorf("%s %s: told %q", guard.GetName(), why, said)
				}
			}
			w.fail = nil
			w.must(client.IgnoreNotFound(w.api.Delete(t.Context(), guard.DeepCopyObject().(client.Object))))
			w.wrote()
			w.pass("ns")
			if first := slices.IndexFunc(w.writes, func(s string) bool { return strings.Contains(s, "Deployment") }); first < slices.Index(w.writes, "apply "+kind+" ns/"+guard.GetName()) {
				t.Errorf("%s %s: afterwards %q", guard.GetName(), why, w.writes)
			}
			w.wrote()
			w.expect("two runtimes share what guards them", w.settle("ns"), nil)
		}
	}
}

// A Deployment that is there is left as it is while the policy is not: what is changed may be what the policy guards.
func TestNoChangeWithoutTheGuards(t *testing.T) {
	w := guardedWorld(t)
	w.settle("ns")
	policy := &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "modelmesh-runtimes"}}
	w.must(w.api.Delete(t.Context(), policy.DeepCopy()))
	w.create(policy.DeepCopy())
	w.settings.PodsPerRuntime = 5
	w.expect("beside a policy of somebody else", w.settle("ns"), nil)
	if w.replicasOf("r") != 2 || len(heard(w.events)) != 2 {
		t.Errorf("%d replicas", w.replicasOf("r"))
	}
	w.must(w.api.Delete(t.Context(), policy))
	w.pass("ns")
	w.expect("when it is gone", w.writes, []string{
		"apply NetworkPolicy ns/modelmesh-runtimes", "apply Deployment ns/modelmesh-serving-r", "apply Deployment ns/modelmesh-serving-shared",
	})
}

// A policy that somebody takes our label off, so that memory shows it no more, is ours still, and the runtimes do not wait for it.
func TestAGuardThatLostItsLabel(t *testing.T) {
	w := guardedWorld(t)
	w.settle("ns")
	policy := &networkingv1.NetworkPolicy{}
	w.get(policy, "ns", "modelmesh-runtimes")
	policy.Labels = nil
	w.must(w.api.Update(t.Context(), policy, client.FieldOwner("kubectl")))
	w.settings.PodsPerRuntime = 1
	w.pass("ns")
	w.expect("written", w.writes, []string{
		"apply NetworkPolicy ns/modelmesh-runtimes", "apply Deployment ns/modelmesh-serving-r", "apply Deployment ns/modelmesh-serving-shared",
	})
	if said := heard(w.events); len(said) > 0 {
		t.Errorf("told %q", said)
	}
}

// Guards stay as long as there is a Deployment, and go after the last one: with the last runtime, with the label, or by a setting.
func TestGuardsGoLast(t *testing.T) {
	gone := []string{"delete ConfigMap ns/model-serving-proxy-rules", "delete NetworkPolicy ns/modelmesh-runtimes"}
	for name, c := range map[string]func(*world){
		"runtimes": func(w *world) {
			w.must(w.api.Delete(t.Context(), localRuntime("r", "onnx")))
			w.must(w.api.Delete(t.Context(), clusterRuntime("shared", "onnx")))
		},
		"label": func(w *world) {
			namespace := &corev1.Namespace{}
			w.get(namespace, "", "ns")
			namespace.Labels[LabelEnabled] = "false"
			w.must(w.api.Update(t.Context(), namespace))
		},
	} {
		w := guardedWorld(t)
		w.settle("ns")
		c(w)
		w.pass("ns")
		if wrote := w.wrote(); w.has("r") || w.has("shared") || slices.Contains(wrote, gone[1]) {
			t.Errorf("%s: first %q", name, wrote)
		}
		w.expect(name+": then", w.settle("ns"), gone)
	}
	w := guardedWorld(t)
	w.settle("ns")
	w.settings.NetworkPolicy = false
	w.expect("switched off", w.settle("ns"), gone[1:])
}

// [O6] Restricted, only those who cannot be told apart otherwise reach the ports that ask nobody who he is.
func TestRestrictedPolicy(t *testing.T) {
	openShift := capability.NewSet(capability.Route, capability.OpenShiftIngress, capability.UserGroup)
	plain := capability.NewSet(capability.ServiceMonitor)
	ports := func(served capability.Set, changes ...func(*meshsettings.Settings)) map[string]string {
		out := map[string]string{}
		rules, _, _ := unstructured.NestedSlice(guardsOf(t, served, changes...)[0].Object, "spec", "ingress")
		for _, r := range rules {
			rule := r.(map[string]any)
			from, _ := rule["from"].([]any)
			for _, p := range rule["ports"].([]any) {
				port := p.(map[string]any)["port"]
				key := fmt.Sprint(port)
				out[key] += map[bool]string{true: "all", false: fmt.Sprint(len(from))}[len(from) == 0] + " "
			}
		}
		return out
	}
	restricted := func(s *meshsettings.Settings) { s.NetworkPolicyRestricted = true }
	for name, c := range map[string]struct {
		got, want map[string]string
	}{
		"guarded by a proxy":     {ports(openShift), map[string]string{"8033": "1 3 ", "8080": "1 ", "8008": "3 ", "2112": "all ", "8443": "all "}},
		"restricted":             {ports(openShift, restricted), map[string]string{"8033": "1 3 ", "8080": "1 ", "8008": "3 ", "2112": "all ", "8443": "all "}},
		"Kubernetes, guarded":    {ports(plain, guardREST), map[string]string{"8033": "1 2 ", "8080": "1 ", "8008": "2 ", "2112": "all ", "8443": "all "}},
		"Kubernetes":             {ports(plain), map[string]string{"8033": "1 all ", "8080": "1 ", "8008": "all ", "2112": "all "}},
		"Kubernetes, restricted": {ports(plain, restricted), map[string]string{"8033": "1 2 ", "8080": "1 ", "8008": "2 ", "2112": "all "}},
		"nothing is open": {ports(plain, restricted, func(s *meshsettings.Settings) { s.Metrics.Enabled, s.RESTProxy.Enabled = false, false }),
			map[string]string{"8033": "1 2 ", "8080": "1 "}},
	} {
		if !maps.Equal(c.got, c.want) {
			t.Errorf("%s: got %v, want %v", name, c.got, c.want)
		}
	}
}

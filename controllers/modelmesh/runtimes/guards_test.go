package runtimes

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/odh-platform/odh-platform-operator/controllers/modelmesh"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	meshsettings "github.com/odh-platform/odh-platform-operator/pkg/modelmesh/settings"
)

// newOpenShiftWorld returns a platform with OAuth and a runtime with a model in ns.
func newOpenShiftWorld(t *testing.T) *testEnv {
	w := newTestEnv(t, localRuntime("r", "onnx"), predictorOf("m", "onnx"))
	w.kinds = capability.NewSet(append(plainKinds, capability.Route, capability.OpenShiftIngress, capability.UserGroup)...)
	return w
}

// hasProxy reports whether the pods and the Service of ns have the sidecar, and returns the service account of the pods.
func (env *testEnv) hasProxy() (pods, service bool, account string) {
	env.Helper()
	spec := env.deploymentOf("r").Spec.Template.Spec
	for _, c := range spec.Containers {
		pods = pods || c.Name == "oauth-proxy" || c.Name == "kube-rbac-proxy"
	}
	front := &corev1.Service{}
	env.get(front, "ns", "modelmesh-serving")
	for _, port := range front.Spec.Ports {
		service = service || port.Name == "https"
	}
	return pods, service, spec.ServiceAccountName
}

// [O4] [O5] In a single-namespace installation no controller creates account, cookie and rules of a sidecar, so pods must not use it. An
// Event reports settings that require a sidecar.
func TestNoGuardsInSingleNamespace(t *testing.T) {
	w := newOpenShiftWorld(t)
	w.reconcileUntilStable("ns")
	if pods, service, account := w.hasProxy(); !pods || !service || account != "modelmesh-serving-sa" {
		t.Errorf("got proxy in pods %t, in the Service %t, account %q, want a cluster-wide runtime without the proxy's account", pods, service, account)
	}

	for mode, warned := range map[string]bool{meshsettings.AuthProxyAuto: false, meshsettings.AuthProxyAlways: true} {
		w = newOpenShiftWorld(t)
		w.settings.AuthProxy.Mode = mode
		w.create(etcdSecret("ns"), &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "modelmesh-controller", UID: "uid-of-the-manager"}})
		w.Namespaces = &modelmesh.Namespaces{OperatorNamespace: "ns"}
		w.reconcileUntilStable("ns")
		if pods, service, account := w.hasProxy(); pods || service || account != "" {
			t.Errorf("%s in one namespace: %t, %t, account %q", mode, pods, service, account)
		}
		if emitted := strings.Join(recordedEvents(w.events), "\n"); strings.Contains(emitted, "REST has no authentication") != warned {
			t.Errorf("%s: events %s", mode, emitted)
		}
	}
	w.settings.ServiceAccountName = "runner"
	w.reconcileUntilStable("ns")
	if _, _, account := w.hasProxy(); account != "runner" {
		t.Errorf("account %q, want %q", account, "runner")
	}
}

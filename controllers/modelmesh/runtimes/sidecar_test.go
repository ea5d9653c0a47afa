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

// newOpenShiftEnv returns an environment on OpenShift with OAuth, with a runtime and a model in ns.
func newOpenShiftEnv(t *testing.T) *testEnv {
	env := newTestEnv(t, newServingRuntime("r", "onnx"), newPredictor("m", "onnx"))
	env.served = capability.NewSet(append(plainAPIs, capability.Route, capability.OpenShiftIngress, capability.UserGroup)...)
	return env
}

// sidecarState reports whether the pods have the sidecar and the Service has its port, and returns the ServiceAccount of the pods.
func (env *testEnv) sidecarState() (pods, service bool, account string) {
	env.Helper()
	spec := env.deploymentOf("r").Spec.Template.Spec
	for _, c := range spec.Containers {
		pods = pods || c.Name == "oauth-proxy" || c.Name == "kube-rbac-proxy"
	}
	meshService := &corev1.Service{}
	env.get(meshService, "ns", "modelmesh-serving")
	for _, port := range meshService.Spec.Ports {
		service = service || port.Name == "https"
	}
	return pods, service, spec.ServiceAccountName
}

// [O4] [O5] In a single-namespace installation pods have no sidecar, because the controller that creates its ServiceAccount, cookie key and
// ClusterRoleBinding does not run. An Event reports settings that require a sidecar.
func TestNoSidecarInSingleNamespace(t *testing.T) {
	env := newOpenShiftEnv(t)
	env.reconcileUntilStable("ns")
	if pods, service, account := env.sidecarState(); !pods || !service || account != "modelmesh-serving-sa" {
		t.Errorf("all namespaces: proxy in pods %t, in Service %t, account %q, want the proxy in both and its account", pods, service, account)
	}

	for mode, wantEvent := range map[string]bool{meshsettings.AuthProxyAuto: false, meshsettings.AuthProxyAlways: true} {
		env = newOpenShiftEnv(t)
		env.settings.AuthProxy.Mode = mode
		env.create(newEtcdSecret("ns"), &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "modelmesh-controller", UID: "uid-of-the-operator"}})
		env.Namespaces = &modelmesh.Namespaces{OperatorNamespace: "ns"}
		env.reconcileUntilStable("ns")
		if pods, service, account := env.sidecarState(); pods || service || account != "" {
			t.Errorf("single namespace, mode %s: proxy in pods %t, in Service %t, account %q, want none", mode, pods, service, account)
		}
		if emitted := strings.Join(recordedEvents(env.events), "\n"); strings.Contains(emitted, "REST has no authentication") != wantEvent {
			t.Errorf("%s: events %s", mode, emitted)
		}
	}
	env.settings.ServiceAccountName = "runner"
	env.reconcileUntilStable("ns")
	if _, _, account := env.sidecarState(); account != "runner" {
		t.Errorf("account %q, want %q", account, "runner")
	}
}

package runtimes

import (
	"os"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/odh-platform/odh-platform-operator/controllers/modelmesh"
	"github.com/odh-platform/odh-platform-operator/controllers/modelmesh/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	pkgmodelmesh "github.com/odh-platform/odh-platform-operator/pkg/modelmesh"
)

// OpenShift accepts blockOwnerDeletion only from clients that can update the finalizers of the owner. The roles grant it for each kind of
// owner.
func TestRolesAllowBlockOwnerDeletion(t *testing.T) {
	scaled := localRuntime("r", "onnx")
	scaled.Annotations = map[string]string{pkgmodelmesh.AnnotationAutoscalerClass: pkgmodelmesh.AutoscalerHPA}
	w := newTestEnv(t, scaled, clusterRuntime("shared", "onnx"), predictorOf("m", "onnx"))
	w.reconcileUntilStable("ns")
	owners := w.blockingOwners("ns", "modelmesh-serving", "modelmesh-serving-r", "modelmesh-serving-shared", resources.MonitorName)

	manager := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "own", Name: "modelmesh-controller", UID: "uid-of-the-manager"}}
	w = newTestEnv(t, manager)
	w.Namespaces = &modelmesh.Namespaces{OperatorNamespace: "own"}
	w.reconcileUntilStable("own")
	owners = append(owners, w.blockingOwners("own", "modelmesh-serving")...)

	slices.Sort(owners)
	owners = slices.Compact(owners)
	w.expect("kinds of owners", owners, []string{"clusterservingruntimes", "deployments", "namespaces", "services", "servingruntimes"})
	granted := finalizerPermissions(t, "../../../config/rbac/modelmesh/role.yaml", "../../../config/rbac/modelmesh/runtimes/role.yaml")
	for _, owner := range owners {
		if !slices.Contains(granted, owner+"/finalizers") {
			t.Errorf("no role has the right to update %s/finalizers", owner)
		}
	}
}

// blockingOwners returns the resources of owners in owner references with blockOwnerDeletion.
func (env *testEnv) blockingOwners(namespace string, names ...string) []string {
	env.Helper()
	monitor := &unstructured.Unstructured{}
	monitor.SetGroupVersionKind(capability.ServiceMonitor)
	var out []string
	for _, o := range []client.Object{&corev1.Service{}, &appsv1.Deployment{}, &autoscalingv2.HorizontalPodAutoscaler{}, monitor} {
		for _, name := range names {
			found := o.DeepCopyObject().(client.Object)
			if !env.get(found, namespace, name) {
				continue
			}
			for _, ref := range found.GetOwnerReferences() {
				if ref.BlockOwnerDeletion != nil && *ref.BlockOwnerDeletion {
					out = append(out, strings.ToLower(ref.Kind)+"s")
				}
			}
		}
	}
	return out
}

// finalizerPermissions returns the resources whose finalizers roles allow to update.
func finalizerPermissions(t *testing.T, files ...string) []string {
	t.Helper()
	var out []string
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		role := &rbacv1.ClusterRole{}
		if err := yaml.Unmarshal(text, role); err != nil {
			t.Fatal(err)
		}
		for _, rule := range role.Rules {
			if slices.Contains(rule.Verbs, "update") {
				out = append(out, rule.Resources...)
			}
		}
	}
	return out
}

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

// The roles allow updating the finalizers of each kind of owner: OpenShift requires that permission to set blockOwnerDeletion.
func TestRolesAllowBlockOwnerDeletion(t *testing.T) {
	scaled := newServingRuntime("r", "onnx")
	scaled.Annotations = map[string]string{pkgmodelmesh.AnnotationAutoscalerClass: pkgmodelmesh.AutoscalerHPA}
	env := newTestEnv(t, scaled, newClusterServingRuntime("shared", "onnx"), newPredictor("m", "onnx"))
	env.reconcileUntilStable("ns")
	owners := env.blockingOwners("ns", "modelmesh-serving", "modelmesh-serving-r", "modelmesh-serving-shared", resources.MonitorName)

	operator := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "own", Name: "modelmesh-controller", UID: "uid-of-the-operator"}}
	env = newTestEnv(t, operator)
	env.Namespaces = &modelmesh.Namespaces{OperatorNamespace: "own"}
	env.reconcileUntilStable("own")
	owners = append(owners, env.blockingOwners("own", "modelmesh-serving")...)

	slices.Sort(owners)
	owners = slices.Compact(owners)
	env.expect("kinds of owners", owners, []string{"clusterservingruntimes", "deployments", "namespaces", "services", "servingruntimes"})
	granted := updatableResources(t, "../../../config/rbac/modelmesh/role.yaml", "../../../config/rbac/modelmesh/runtimes/role.yaml")
	for _, owner := range owners {
		if !slices.Contains(granted, owner+"/finalizers") {
			t.Errorf("no role allows updating %s/finalizers", owner)
		}
	}
}

// blockingOwners returns the resources of the owners that the given objects refer to with blockOwnerDeletion.
func (env *testEnv) blockingOwners(namespace string, names ...string) []string {
	env.Helper()
	monitor := &unstructured.Unstructured{}
	monitor.SetGroupVersionKind(capability.ServiceMonitor)
	var owners []string
	for _, o := range []client.Object{&corev1.Service{}, &appsv1.Deployment{}, &autoscalingv2.HorizontalPodAutoscaler{}, monitor} {
		for _, name := range names {
			object := o.DeepCopyObject().(client.Object)
			if !env.get(object, namespace, name) {
				continue
			}
			for _, ref := range object.GetOwnerReferences() {
				if ref.BlockOwnerDeletion != nil && *ref.BlockOwnerDeletion {
					owners = append(owners, strings.ToLower(ref.Kind)+"s")
				}
			}
		}
	}
	return owners
}

// updatableResources returns the resources that the roles in the files allow updating.
func updatableResources(t *testing.T, files ...string) []string {
	t.Helper()
	var allowed []string
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		role := &rbacv1.ClusterRole{}
		if err := yaml.Unmarshal(data, role); err != nil {
			t.Fatal(err)
		}
		for _, rule := range role.Rules {
			if slices.Contains(rule.Verbs, "update") {
				allowed = append(allowed, rule.Resources...)
			}
		}
	}
	return allowed
}

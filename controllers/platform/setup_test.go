package platform

import (
	"os"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/yaml"

	platformv1alpha1 "github.com/odh-platform/odh-platform-operator/apis/platform/v1alpha1"
)

// Creations and deletions enqueue the singleton AIHub.
func TestEnqueueAIHub(t *testing.T) {
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	defer queue.ShutDown()
	h := enqueue(platformv1alpha1.AIHubName)
	h.Create(t.Context(), event.CreateEvent{Object: &corev1.ConfigMap{}}, queue)
	h.Delete(t.Context(), event.DeleteEvent{Object: namespaceNamed("a")}, queue)
	if queue.Len() != 1 {
		t.Fatalf("got %d requests, want 1", queue.Len())
	}
	if got, _ := queue.Get(); got.NamespacedName != hubKey {
		t.Errorf("got request %v", got)
	}
}

// The shipped roles contain no wildcard, no access to Secrets and no permission to escalate. They restrict updates, patches and deletions
// to named objects.
func TestPlatformRoleIsRestricted(t *testing.T) {
	manifest, err := os.ReadFile("../../config/rbac/platform/role.yaml")
	if err != nil {
		t.Fatal(err)
	}
	documents := strings.Split(string(manifest), "\n---\n")
	if len(documents) != 2 {
		t.Fatalf("got %d roles, want 2", len(documents))
	}
	named := map[string]bool{"deployments": true, "aihubs/status": true, "aihubs/finalizers": true, "mlflowoperators/status": true}
	for _, document := range documents {
		role := &rbacv1.ClusterRole{}
		if err := yaml.UnmarshalStrict([]byte(document), role); err != nil {
			t.Fatal(err)
		}
		if len(role.Rules) == 0 {
			t.Errorf("%s %s is empty", role.Kind, role.Name)
		}
		for _, rule := range role.Rules {
			for _, word := range append(append(append([]string{}, rule.Verbs...), rule.Resources...), rule.APIGroups...) {
				if word == "*" || word == "escalate" || word == "bind" || word == "impersonate" || word == "secrets" || word == "deletecollection" {
					t.Errorf("role %s allows %v on %v", role.Name, rule.Verbs, rule.Resources)
				}
			}
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					changes := verb == "delete" || verb == "patch" || verb == "update"
					if (changes || named[resource]) && len(rule.ResourceNames) == 0 {
						t.Errorf("%s allows %s on %s without resourceNames", role.Name, verb, resource)
					}
				}
			}
		}
	}
}

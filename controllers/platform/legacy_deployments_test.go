package platform

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/yaml"

	platformv1alpha1 "github.com/odh-platform/odh-platform-operator/apis/platform/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/pkg/reconciler"
)

// Only Deployments that the legacy operator created for this AIHub are deleted. Recreated ones are reported instead.
func TestLegacyDeployments(t *testing.T) {
	for name, tc := range map[string]struct {
		namespace  string
		owner      types.UID
		deletedUID types.UID // recorded for an earlier deletion
		deleted    bool
		message    string
	}{
		"created for this AIHub":             {"apps", "hub", "", true, "waiting for Deployment apps/" + legacyRegistryDeployment},
		"in the manager's namespace":         {"manager", "hub", "", true, "waiting for Deployment manager/" + legacyRegistryDeployment},
		"in a namespace of a user":           {"team", "hub", "", false, ""},
		"recreated in a namespace of a user": {"team", "hub", "gone", false, ""},
		"created for a deleted AIHub":        {"apps", "another", "", false, ""},
		"without an owner":                   {"apps", "", "", false, ""},
		"deletion recorded before":           {"apps", "hub", "here", true, "waiting for Deployment"},
		"recreated":                          {"apps", "hub", "gone", false, "has been created again"},
	} {
		t.Run(name, func(t *testing.T) {
			deployment := newLegacyDeployment(legacyRegistryDeployment, "here", tc.owner)
			deployment.Namespace = tc.namespace
			h := newHubFixture(t, aiHubWith(), deployment)
			if tc.deletedUID != "" {
				h.logic.legacy.recordDeletion(client.ObjectKeyFromObject(deployment), tc.deletedUID)
			}
			message, err := h.logic.legacy.deleteAll(t.Context(), h.logic.applier, h.get())
			if _, waits := errors.AsType[*reconciler.Wait](err); waits != tc.deleted {
				t.Errorf("got error %v", err)
			}
			if err != nil {
				message = err.Error()
			}
			if !strings.Contains(message, tc.message) || tc.message == "" && message != "" {
				t.Errorf("message %q, want %q", message, tc.message)
			}
			if deleted := !h.exists(deployment); deleted != tc.deleted {
				t.Errorf("deleted %t, want %t", deleted, tc.deleted)
			}
		})
	}
}

// A failed read or deletion is an error, not a Wait.
func TestLegacyDeploymentErrors(t *testing.T) {
	h := newHubFixture(t, aiHubWith(), newLegacyDeployment(legacyCatalogDeployment, "here", "hub"))
	h.requestError = func(verb, kind string) error {
		if verb == "delete" && kind == "Deployment" {
			return errors.New("forbidden")
		}
		return nil
	}
	others, _, err := h.reconcile()
	if err == nil || !strings.Contains(err.Error(), "forbidden") {
		t.Errorf("got error %v, writes %q", err, others)
	}
	if c := h.condition("ProvisioningSucceeded"); !strings.Contains(c.Message, legacyCatalogDeployment) || !strings.Contains(c.Message, "forbidden") {
		t.Errorf("got condition %+v, want the legacy Deployment and the error of its deletion", c)
	}
	failingReader := interceptor.NewClient(h.server, interceptor.Funcs{Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
		return errors.New("cache not started")
	}})
	h.logic.legacy.readers[legacyCatalogDeployment] = failingReader
	if _, err := h.logic.legacy.deleteAll(t.Context(), h.logic.applier, h.get()); err == nil || !strings.Contains(err.Error(), "cache not started") {
		t.Errorf("got error %v", err)
	}
}

// recordDeletion accepts one UID for each Deployment, and another UID after reset.
func TestLegacyDeploymentsReset(t *testing.T) {
	f := &legacyDeployments{}
	key := types.NamespacedName{Namespace: "apps", Name: legacyRegistryDeployment}
	for range 2 {
		if !f.recordDeletion(key, "one") {
			t.Error("want true for the first UID of a name, also on a second call")
		}
	}
	if f.recordDeletion(key, "two") {
		t.Error("want false for a second UID of the name")
	}
	if other := (types.NamespacedName{Namespace: "other", Name: legacyRegistryDeployment}); !f.recordDeletion(other, "two") {
		t.Error("a Deployment in another namespace counts as already deleted")
	}
	if f.reset(); !f.recordDeletion(key, "two") {
		t.Error("reset kept the recorded deletion")
	}
}

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

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

// The rules decide which Deployments of a legacy operator are deleted, and how this is reported.
func TestLegacyDeployments(t *testing.T) {
	for name, tc := range map[string]struct {
		namespace string
		owner     types.UID
		before    types.UID // what was deleted under the name earlier
		deletes   bool
		says      string
	}{
		"created for this AIHub":      {"apps", "hub", "", true, "waiting for Deployment apps/" + legacyRegistryDeployment},
		"in the manager's namespace":  {"manager", "hub", "", true, "waiting for Deployment manager/" + legacyRegistryDeployment},
		"in a namespace of users":     {"team", "hub", "", false, ""},
		"in another namespace":        {"team", "hub", "gone", false, ""},
		"created for a deleted AIHub": {"apps", "another", "", false, ""},
		"without an owner":            {"apps", "", "", false, ""},
		"terminating":                 {"apps", "hub", "here", true, "waiting for Deployment"},
		"recreated":                   {"apps", "hub", "gone", false, "has been created again"},
	} {
		t.Run(name, func(t *testing.T) {
			program := programOf(legacyRegistryDeployment, "here", tc.owner)
			program.Namespace = tc.namespace
			b := newHubBench(t, aiHubWith(), program)
			if tc.before != "" {
				b.logic.legacy.isFirstDeletion(client.ObjectKeyFromObject(program), tc.before)
			}
			message, err := b.logic.legacy.deleteAll(t.Context(), b.logic.applier, b.get())
			if _, waits := errors.AsType[*reconciler.Wait](err); waits != tc.deletes {
				t.Errorf("error %v", err)
			}
			if err != nil {
				message = err.Error()
			}
			if !strings.Contains(message, tc.says) || tc.says == "" && message != "" {
				t.Errorf("message %q, want %q", message, tc.says)
			}
			if deleted := !b.exists(program); deleted != tc.deletes {
				t.Errorf("deleted %t, want %t", deleted, tc.deletes)
			}
		})
	}
}

// Trouble with them is trouble, and not a wait.
func TestLegacyDeploymentErrors(t *testing.T) {
	b := newHubBench(t, aiHubWith(), programOf(legacyCatalogDeployment, "here", "hub"))
	b.failing = func(verb, kind string) error {
		if verb == "delete" && kind == "Deployment" {
			return errors.New("not allowed today")
		}
		return nil
	}
	others, _, err := b.reconcile()
	if err == nil || !strings.Contains(err.Error(), "not allowed today") {
		t.Errorf("error %v, writes %q", err, others)
	}
	if c := b.condition("ProvisioningSucceeded"); !strings.Contains(c.Message, legacyCatalogDeployment) || !strings.Contains(c.Message, "not allowed today") {
		t.Errorf("got condition %+v, want the legacy Deployment and the error of its deletion", c)
	}
	broken := interceptor.NewClient(b.server, interceptor.Funcs{Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
		return errors.New("no cache")
	}})
	b.logic.legacy.readers[legacyCatalogDeployment] = broken
	if _, err := b.logic.legacy.deleteAll(t.Context(), b.logic.applier, b.get()); err == nil || !strings.Contains(err.Error(), "no cache") {
		t.Errorf("error %v", err)
	}
}

// A new AIHub starts with a clean slate.
func TestLegacyDeploymentsReset(t *testing.T) {
	f := &legacyDeployments{}
	key := types.NamespacedName{Namespace: "apps", Name: legacyRegistryDeployment}
	for range 2 {
		if !f.isFirstDeletion(key, "one") {
			t.Error("want true for the first UID of a name, also on a second call")
		}
	}
	if f.isFirstDeletion(key, "two") {
		t.Error("want false for a second UID of the name")
	}
	if other := (types.NamespacedName{Namespace: "elsewhere", Name: legacyRegistryDeployment}); !f.isFirstDeletion(other, "two") {
		t.Error("a Deployment in another namespace counts as already deleted")
	}
	if f.reset(); !f.isFirstDeletion(key, "two") {
		t.Error("reset kept the recorded deletion")
	}
}

// Every event leads to the one AIHub.
func TestEnqueueAIHub(t *testing.T) {
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	defer queue.ShutDown()
	h := enqueue(platformv1alpha1.AIHubName)
	h.Create(t.Context(), event.CreateEvent{Object: &corev1.ConfigMap{}}, queue)
	h.Delete(t.Context(), event.DeleteEvent{Object: namespaceNamed("a")}, queue)
	if queue.Len() != 1 {
		t.Fatalf("%d requests", queue.Len())
	}
	if got, _ := queue.Get(); got.NamespacedName != hubKey {
		t.Errorf("request %v", got)
	}
}

// The shipped role holds nothing that would let the program give itself or others more, and nothing without a limit that could
// have one.
func TestRoleOfThePlatformIsNarrow(t *testing.T) {
	raw, err := os.ReadFile("../../config/rbac/platform/role.yaml")
	if err != nil {
		t.Fatal(err)
	}
	documents := strings.Split(string(raw), "\n---\n")
	if len(documents) != 2 {
		t.Fatalf("%d documents", len(documents))
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
					t.Errorf("%s may %v %v", role.Name, rule.Verbs, rule.Resources)
				}
			}
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					changes := verb == "delete" || verb == "patch" || verb == "update"
					if (changes || named[resource]) && len(rule.ResourceNames) == 0 {
						t.Errorf("%s may %s any of %s", role.Name, verb, resource)
					}
				}
			}
		}
	}
}

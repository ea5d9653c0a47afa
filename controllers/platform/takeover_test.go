package platform

import (
	"context"
	"errors"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	platformv1alpha1 "github.com/odh-platform/odh-platform-operator/apis/platform/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/controllers/platform/takeover"
	"github.com/odh-platform/odh-platform-operator/pkg/reconciler"
)

// newTakeOverFixture returns a fixture whose controller takes over from the legacy operator. A restart of the fixture removes the take-over.
func newTakeOverFixture(t *testing.T, objects ...client.Object) *hubFixture {
	t.Helper()
	h := newHubFixture(t, objects...)
	h.logic.takeOver = &takeover.TakeOver{Applier: h.logic.applier, OperatorNamespace: "manager", Readers: map[string]client.Reader{
		legacyRegistryDeployment: h.logic.cached, legacyCatalogDeployment: h.logic.cached,
	}}
	return h
}

// newLegacyDeployment returns a Deployment that the AIHub with the UID owner controls, or none if owner is empty.
func newLegacyDeployment(name string, uid, owner types.UID) *appsv1.Deployment {
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "apps", Name: name, UID: uid}}
	setOwner(d, owner)
	return d
}

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
			h := newTakeOverFixture(t, aiHubWith())
			if tc.deletedUID != "" {
				earlier := newLegacyDeployment(legacyRegistryDeployment, tc.deletedUID, "hub")
				earlier.Namespace = tc.namespace
				created, _, deleted := h.server.Create(t.Context(), earlier), h.logic.takeOver.Prune(t.Context(), h.get(), nil), h.server.Delete(t.Context(), earlier)
				if err := errors.Join(created, client.IgnoreNotFound(deleted)); err != nil {
					t.Fatal(err)
				}
			}
			if err := h.server.Create(t.Context(), deployment); err != nil {
				t.Fatal(err)
			}
			err := h.logic.takeOver.Prune(t.Context(), h.get(), nil)
			if _, waits := errors.AsType[*reconciler.Wait](err); waits != tc.deleted {
				t.Errorf("got error %v", err)
			}
			message := ""
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
	h := newTakeOverFixture(t, aiHubWith(), newLegacyDeployment(legacyCatalogDeployment, "here", "hub"))
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
	failing := &takeover.TakeOver{Applier: h.logic.applier, OperatorNamespace: "manager", Readers: map[string]client.Reader{legacyCatalogDeployment: failingReader}}
	if err := failing.Prune(t.Context(), h.get(), nil); err == nil || !strings.Contains(err.Error(), "cache not started") {
		t.Errorf("got error %v", err)
	}
}

// The Deployments that the legacy operator created for the AIHub are deleted once, with their pods; Deployments of other owners are kept.
func TestAIHubDeletesLegacyDeployments(t *testing.T) {
	h := newTakeOverFixture(t, aiHubWith(), namespaceNamed("registries"), newLegacyDeployment(legacyRegistryDeployment, "one", "hub"), newLegacyDeployment(legacyCatalogDeployment, "two", "another"))
	terminating := newLegacyDeployment(legacyRegistryDeployment, "", "")
	h.exists(terminating)
	terminating.Finalizers = []string{"foregroundDeletion"}
	if err := h.server.Update(t.Context(), terminating); err != nil {
		t.Fatal(err)
	}
	h.expectReconcile("delete Deployment apps/" + legacyRegistryDeployment)
	if c := h.condition("ProvisioningSucceeded"); c.Reason != "DeployFailed" || !strings.Contains(c.Message, "waiting for Deployment apps/"+legacyRegistryDeployment) {
		t.Errorf("got condition %+v, want it to wait for the legacy Deployment", c)
	}
	h.expectIdle()
	h.exists(terminating)
	terminating.Finalizers = nil
	if err := h.server.Update(t.Context(), terminating); err != nil {
		t.Fatal(err)
	}
	h.expectReconcile(createCatalog)
	h.expectIdle()

	// A recreated Deployment is reported and not deleted, because its creator would create it again. Nothing is blocked.
	if err := h.server.Create(t.Context(), newLegacyDeployment(legacyRegistryDeployment, "three", "hub")); err != nil {
		t.Fatal(err)
	}
	h.expectReconcile()
	if c := h.condition("Degraded"); c.Status != "True" || c.Reason != ReasonLegacyOperator || !strings.Contains(c.Message, "delete Deployment aihub-controller-manager, which creates it, and then this one") {
		t.Errorf("got condition %+v, want the legacy operator reported as the cause", c)
	}
	if c := h.condition("Ready"); c.Status != "True" {
		t.Errorf("got condition %+v, want True", c)
	}
	h.expectIdle()
	if !h.exists(newLegacyDeployment(legacyCatalogDeployment, "", "")) {
		t.Error("the Deployment of another client was deleted")
	}
}

// The Deployments of another AIHub count as not deleted before.
func TestLegacyDeploymentOfRecreatedAIHub(t *testing.T) {
	h := newTakeOverFixture(t, aiHubWith(), newLegacyDeployment(legacyRegistryDeployment, "one", "hub"))
	another := h.get()
	another.UID = "another"
	for _, hub := range []*platformv1alpha1.AIHub{h.get(), another} {
		if _, waits := errors.AsType[*reconciler.Wait](h.logic.takeOver.Prune(t.Context(), hub, nil)); !waits {
			t.Errorf("want the Deployment of AIHub %s deleted", hub.UID)
		}
		if err := h.server.Create(t.Context(), newLegacyDeployment(legacyRegistryDeployment, "two", "another")); err != nil {
			t.Fatal(err)
		}
	}
}

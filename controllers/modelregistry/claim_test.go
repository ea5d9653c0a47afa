package modelregistry

import (
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/odh-platform/odh-platform-operator/apis/modelregistry/v1beta1"
	"github.com/odh-platform/odh-platform-operator/controllers/modelregistry/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/status/conditions"
)

func storageOf(size, class string) *v1beta1.PostgresStorage {
	s := &v1beta1.PostgresStorage{Size: new(resource.MustParse(size))}
	if class != "" {
		s.StorageClassName = &class
	}
	return s
}

// The claim of a generated database expands with the spec. An impossible change is reported and not retried.
func TestClaimFollowsTheSpec(t *testing.T) {
	refused := apierrors.NewForbidden(schema.GroupResource{Resource: "persistentvolumeclaims"}, "demo-postgres-storage", errors.New("the class does not support resize"))
	for name, test := range map[string]struct {
		before, after       *v1beta1.PostgresStorage
		fail                error
		size, wrote, reason string
	}{
		"larger":              {nil, storageOf("20Gi", ""), nil, "20Gi", "patch PersistentVolumeClaim demo-postgres-storage", ""},
		"larger, not granted": {nil, storageOf("20Gi", ""), refused, "5Gi", "", "cannot grow to 20Gi"},
		"smaller":             {storageOf("20Gi", ""), storageOf("10Gi", ""), nil, "20Gi", "", "spec.postgres.storage.size is 10Gi"},
		"of another class":    {storageOf("5Gi", "slow"), storageOf("5Gi", "fast"), nil, "5Gi", "", `spec.postgres.storage.storageClassName is "fast"`},
		"as before":           {storageOf("5Gi", "slow"), storageOf("5Gi", "slow"), nil, "5Gi", "", ""},
		"unset":               {storageOf("5Gi", "slow"), nil, nil, "5Gi", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newTestEnv(t, nil)
			m := newRegistry("demo", withGeneratedDatabase, func(s *v1beta1.ModelRegistrySpec) { s.Postgres.Storage = test.before })
			w.requireWait(w.reconcile(m), "available")
			w.takeWrites()
			attempts := 0
			w.fail = func(verb, kind string) error {
				if verb == "patch" && kind == "PersistentVolumeClaim" {
					attempts++
					return test.fail
				}
				return nil
			}
			m.Spec.Postgres.Storage = test.after
			w.requireWait(w.reconcile(m), "available")
			if got := w.takeWrites(); got != test.wrote {
				t.Errorf("wrote %q", got)
			}
			before := attempts
			w.requireWait(w.reconcile(m), "available")
			if got := w.takeWrites(); got != "" || attempts != before {
				t.Errorf("at rest it wrote %q, %d attempts", got, attempts-before)
			}
			claim := &corev1.PersistentVolumeClaim{}
			w.get(claim, "ns", "demo-postgres-storage")
			if got := claim.Spec.Resources.Requests.Storage().String(); got != test.size {
				t.Errorf("size %s", got)
			}
			c, _ := conditions.Get(m.Status.Conditions, ConditionStorage)
			if test.reason == "" && c.Reason != "" || test.reason != "" && (c.Reason != ReasonClaimDiffers || !strings.Contains(c.Message, test.reason)) {
				t.Errorf("condition %v", c)
			}
			w.forget(m.UID)
			w.requireWait(w.reconcile(m), "available")
			if test.fail != nil && attempts == before {
				t.Error("the refusal outlives what is remembered of the registry")
			}
		})
	}
}

// A lost Secret is recreated for the user in the annotations of the claim, regardless of the spec.
func TestLostCredentialsKeepTheUser(t *testing.T) {
	w := newTestEnv(t, nil)
	m := newRegistry("demo", withGeneratedDatabase, func(s *v1beta1.ModelRegistrySpec) { s.Postgres.Username, s.Postgres.Database = "first", "models" })
	w.requireWait(w.reconcile(m), "available")
	w.requireNoError(w.server.Delete(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "demo-postgres-credentials"}}))
	w.forget(m.UID) // a manager that has just started
	m.Spec.Postgres.Username, m.Spec.Postgres.Database = "second", "other"
	w.requireWait(w.reconcile(m), "available")
	secret := &corev1.Secret{}
	w.get(secret, "ns", "demo-postgres-credentials")
	if string(secret.Data[resources.KeyUsername]) != "first" || string(secret.Data[resources.KeyDatabase]) != "models" {
		t.Errorf("made for %s and %s", secret.Data[resources.KeyUsername], secret.Data[resources.KeyDatabase])
	}
}

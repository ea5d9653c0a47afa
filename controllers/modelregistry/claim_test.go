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

// The claim of a generated database is expanded with the spec. A rejected expansion is reported and retried only after expansionRetry.
func TestClaimFollowsTheSpec(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "persistentvolumeclaims"}, "demo-postgres-storage", errors.New("the class does not support resize"))
	for name, test := range map[string]struct {
		before, after         *v1beta1.PostgresStorage
		fail                  error
		size, writes, message string
	}{
		"larger":              {nil, storageOf("20Gi", ""), nil, "20Gi", "patch PersistentVolumeClaim demo-postgres-storage", ""},
		"larger, forbidden":   {nil, storageOf("20Gi", ""), forbidden, "5Gi", "", "cannot be expanded to 20Gi"},
		"smaller":             {storageOf("20Gi", ""), storageOf("10Gi", ""), nil, "20Gi", "", "spec.postgres.storage.size is 10Gi"},
		"other storage class": {storageOf("5Gi", "slow"), storageOf("5Gi", "fast"), nil, "5Gi", "", `spec.postgres.storage.storageClassName is "fast"`},
		"unchanged":           {storageOf("5Gi", "slow"), storageOf("5Gi", "slow"), nil, "5Gi", "", ""},
		"unset":               {storageOf("5Gi", "slow"), nil, nil, "5Gi", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			env := newTestEnv(t, nil)
			m := newRegistry("demo", withGeneratedDatabase, func(s *v1beta1.ModelRegistrySpec) { s.Postgres.Storage = test.before })
			env.requireWait(env.reconcile(m), "available")
			env.takeWrites()
			attempts := 0
			env.fail = func(verb, kind string) error {
				if verb == "patch" && kind == "PersistentVolumeClaim" {
					attempts++
					return test.fail
				}
				return nil
			}
			m.Spec.Postgres.Storage = test.after
			env.requireWait(env.reconcile(m), "available")
			if got := env.takeWrites(); got != test.writes {
				t.Errorf("wrote %q, want %q", got, test.writes)
			}
			previous := attempts
			env.requireWait(env.reconcile(m), "available")
			if got := env.takeWrites(); got != "" || attempts != previous {
				t.Errorf("in steady state, wrote %q in %d attempts", got, attempts-previous)
			}
			env.step(expansionRetry) // the quota may have been raised
			env.requireWait(env.reconcile(m), "available")
			if got := env.takeWrites(); got != "" || (attempts != previous) != (test.fail != nil) {
				t.Errorf("after %s, wrote %q in %d attempts", expansionRetry, got, attempts-previous)
			}
			previous = attempts
			claim := &corev1.PersistentVolumeClaim{}
			env.get(claim, "ns", "demo-postgres-storage")
			if got := claim.Spec.Resources.Requests.Storage().String(); got != test.size {
				t.Errorf("got size %s, want %s", got, test.size)
			}
			c, _ := conditions.Get(m.Status.Conditions, ConditionStorage)
			if test.message == "" && c.Reason != "" || test.message != "" && (c.Reason != ReasonClaimDiffers || !strings.Contains(c.Message, test.message)) {
				t.Errorf("got condition %v, want message %q", c, test.message)
			}
			env.forget(m.UID)
			env.requireWait(env.reconcile(m), "available")
			if test.fail != nil && attempts == previous {
				t.Error("the rejected size was not deleted with the state of the registry")
			}
		})
	}
}

// A lost Secret is recreated for the user in the annotations of the claim, regardless of the spec.
func TestLostCredentialsKeepTheUser(t *testing.T) {
	env := newTestEnv(t, nil)
	m := newRegistry("demo", withGeneratedDatabase, func(s *v1beta1.ModelRegistrySpec) { s.Postgres.Username, s.Postgres.Database = "first", "models" })
	env.requireWait(env.reconcile(m), "available")
	env.requireNoError(env.server.Delete(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "demo-postgres-credentials"}}))
	env.forget(m.UID) // as in a new manager process
	m.Spec.Postgres.Username, m.Spec.Postgres.Database = "second", "other"
	env.requireWait(env.reconcile(m), "available")
	secret := &corev1.Secret{}
	env.get(secret, "ns", "demo-postgres-credentials")
	if string(secret.Data[resources.KeyUsername]) != "first" || string(secret.Data[resources.KeyDatabase]) != "models" {
		t.Errorf("got user %s and database %s, want first and models", secret.Data[resources.KeyUsername], secret.Data[resources.KeyDatabase])
	}
}

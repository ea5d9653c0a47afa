package modelregistry

import (
	"errors"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/odh-platform/odh-platform-operator/apis/modelregistry/v1beta1"
	"github.com/odh-platform/odh-platform-operator/controllers/modelregistry/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/admission"
	"github.com/odh-platform/odh-platform-operator/pkg/names"
	"github.com/odh-platform/odh-platform-operator/pkg/status/conditions"
	"github.com/odh-platform/odh-platform-operator/pkg/status/serving"
	"github.com/odh-platform/odh-platform-operator/test/registrytest"
)

// catalogBinding returns the ClusterRoleBinding of the catalog's proxy, of this or the legacy operator.
func catalogBinding(namespace string, managed bool) *rbacv1.ClusterRoleBinding {
	labels := map[string]string{resources.LabelNamespace: namespace, resources.LabelApp: "model-catalog", resources.LabelComponent: "model-catalog", resources.LabelCreatedBy: resources.CreatedBy}
	if managed {
		for key, value := range names.Labels("modelcatalog") {
			labels[key] = value
		}
	}
	return &rbacv1.ClusterRoleBinding{
		TypeMeta:   metav1.TypeMeta{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRoleBinding"},
		ObjectMeta: metav1.ObjectMeta{Name: "model-catalog-auth-delegator", UID: "binding", Labels: labels},
		RoleRef:    rbacv1.RoleRef{APIGroup: "rbac.authorization.k8s.io", Kind: "ClusterRole", Name: "system:auth-delegator"},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "catalogs", Name: "model-catalog"}},
	}
}

// A registry named model-catalog neither adopts nor deletes the ClusterRoleBinding of a catalog in any namespace, and reports the Catalog.
func TestBindingOfTheCatalogIsNotDeleted(t *testing.T) {
	testBindingOfTheCatalogIsNotDeleted(t, newTestEnv)
}

func testBindingOfTheCatalogIsNotDeleted(t *testing.T, newEnv newEnvFunc) {
	for name, binding := range map[string]*rbacv1.ClusterRoleBinding{
		"of another namespace":                         catalogBinding("catalogs", true),
		"of the same namespace":                        catalogBinding("ns", true),
		"of the legacy operator":                       catalogBinding("catalogs", false),
		"of the legacy operator in the same namespace": catalogBinding("ns", false),
	} {
		t.Run(name, func(t *testing.T) {
			m := newRegistry("model-catalog", registrytest.AddProxy)
			setCondition(m, ConditionAvailable, metav1.ConditionTrue, serving.ReasonAvailable, "") // the name is rejected for new registries
			env := newEnv(t, nil, binding)
			env.requireWait(env.reconcile(m), "a conflict to be resolved")
			c, _ := conditions.Get(m.Status.Conditions, ConditionAvailable)
			if !strings.Contains(c.Message, "Catalog ") || !strings.Contains(c.Message, "model-catalog-auth-delegator") {
				t.Errorf("message %q", c.Message)
			}
			got := &rbacv1.ClusterRoleBinding{}
			env.get(got, "", binding.Name)
			if len(got.Subjects) != 1 || got.Subjects[0].Namespace != "catalogs" {
				t.Errorf("subjects %v labels %v", got.Subjects, got.Labels)
			}
			env.requireWait(env.finalize(t.Context(), m), "status")
			env.requireWait(env.finalize(t.Context(), m), "status")
			env.requireNoError(env.finalize(t.Context(), m))
			if !env.get(got, "", binding.Name) {
				t.Error("the deletion of the registry removed the ClusterRoleBinding")
			}
		})
	}
}

// Unused data loses the owner reference of an earlier spec: a foreground deletion would delete the data before the finalizer runs.
func TestUnusedDataIsOrphaned(t *testing.T) {
	otherDatabase := &v1beta1.PostgresConfig{Host: "db", Username: "u"}
	t.Run("of this registry", func(t *testing.T) {
		env := newTestEnv(t, nil)
		m := newRegistry("demo", withGeneratedDatabase, func(s *v1beta1.ModelRegistrySpec) { s.Postgres.RetentionPolicy = v1beta1.DeleteData })
		env.requireWait(env.reconcile(m), "available")
		m.Spec.Postgres = otherDatabase
		env.requireWait(env.reconcile(m), "available")
		env.requireDataWithoutOwner()
		env.takeWrites()
		env.requireWait(env.reconcile(m), "available")
		if got := env.takeWrites(); got != "" {
			t.Errorf("wrote\n%s", got)
		}
	})
	t.Run("of the legacy operator", func(t *testing.T) {
		m := newRegistry("demo", func(s *v1beta1.ModelRegistrySpec) { s.Postgres = otherDatabase })
		env := newTestEnv(t, nil, legacyObject(m, &corev1.PersistentVolumeClaim{}, "demo-postgres-storage", true), legacyObject(m, &corev1.Secret{}, "demo-postgres-credentials", true))
		env.requireWait(env.reconcile(m), "available")
		env.requireDataWithoutOwner()
	})
	t.Run("of another client", func(t *testing.T) {
		m := newRegistry("demo", func(s *v1beta1.ModelRegistrySpec) { s.Postgres = otherDatabase })
		env := newTestEnv(t, nil, &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "demo-postgres-storage"}})
		env.requireWait(env.reconcile(m), "available")
		if got := env.takeWrites(); strings.Contains(got, "PersistentVolumeClaim") {
			t.Errorf("wrote\n%s", got)
		}
	})
}

// After a restart of the manager, the data of an earlier spec is orphaned, except for a registry that was available in its current
// generation.
func TestUnusedDataIsOrphanedUnlessAvailable(t *testing.T) {
	for name, test := range map[string]struct {
		status v1beta1.ModelRegistryStatus
		want   bool
	}{
		"no status": {v1beta1.ModelRegistryStatus{}, true},
		"available registry": {v1beta1.ModelRegistryStatus{ObservedGeneration: 3, Conditions: []metav1.Condition{
			{Type: ConditionAvailable, Status: metav1.ConditionTrue, ObservedGeneration: 3},
		}}, false},
		"unavailable registry": {v1beta1.ModelRegistryStatus{ObservedGeneration: 3, Conditions: []metav1.Condition{
			{Type: ConditionAvailable, Status: metav1.ConditionFalse, ObservedGeneration: 3},
		}}, true},
		"available in an earlier generation": {v1beta1.ModelRegistryStatus{ObservedGeneration: 3, Conditions: []metav1.Condition{
			{Type: ConditionAvailable, Status: metav1.ConditionTrue, ObservedGeneration: 2},
		}}, true},
		"status of the legacy operator": {v1beta1.ModelRegistryStatus{Conditions: []metav1.Condition{{Type: ConditionAvailable, Status: metav1.ConditionTrue}}}, true},
	} {
		t.Run(name, func(t *testing.T) {
			env := newTestEnv(t, nil)
			m := newRegistry("demo", func(s *v1beta1.ModelRegistrySpec) { s.Postgres = &v1beta1.PostgresConfig{Host: "db", Username: "u"} })
			m.Generation, m.Status = 3, test.status
			env.requireNoError(env.ensureData(t.Context(), m))
			if got := env.stateOf(m).orphanedGeneration == m.Generation; got != test.want {
				t.Errorf("data orphaned: %t, want %t", got, test.want)
			}
		})
	}
}

func (env *testEnv) requireDataWithoutOwner() {
	env.Helper()
	claim, secret := &corev1.PersistentVolumeClaim{}, &corev1.Secret{}
	if !env.get(claim, "ns", "demo-postgres-storage") || !env.get(secret, "ns", "demo-postgres-credentials") {
		env.Fatal("the claim or the Secret was deleted")
	}
	if len(claim.OwnerReferences)+len(secret.OwnerReferences) > 0 {
		env.Errorf("got owner references %v and %v, want none", claim.OwnerReferences, secret.OwnerReferences)
	}
}

var errQuota = errors.New("exceeded quota")

// A foreign object does not hide other errors, which are retried and reported.
func TestErrorIsReportedWithForeignObject(t *testing.T) {
	env := newTestEnv(t, nil, &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "registry-user-demo", UID: "role"}})
	env.fail = func(_, kind string) error {
		if kind == "ServiceAccount" {
			return errQuota
		}
		return nil
	}
	m := newRegistry("demo")
	if err := env.reconcile(m); !errors.Is(err, errQuota) {
		t.Errorf("got error %v", err)
	}
	c, _ := conditions.Get(m.Status.Conditions, ConditionAvailable)
	for _, part := range []string{"exceeded quota", "was not created by this operator"} {
		if !strings.Contains(c.Message, part) {
			t.Errorf("message %q does not contain %q", c.Message, part)
		}
	}
}

// A rejected migration of the spec is reported.
func TestRejectedMigrationIsReported(t *testing.T) {
	m := newRegistry("demo", func(s *v1beta1.ModelRegistrySpec) { s.OAuthProxy = &v1beta1.ProxyConfig{} })
	env := newTestEnv(t, optionalKinds, m.DeepCopy())
	env.get(m, "ns", "demo")
	env.fail = func(verb, _ string) error {
		if verb == "patch" {
			return errors.New("admission webhook denied the request")
		}
		return nil
	}
	err := env.reconcile(m)
	c, _ := conditions.Get(m.Status.Conditions, ConditionAvailable)
	if err == nil || !strings.Contains(c.Message, "denied the request") {
		t.Errorf("got error %v, message %q", err, c.Message)
	}
}

// A rollout does not make an available server unavailable, and condition Available reports the problem of new pods.
func TestRolloutKeepsAvailable(t *testing.T) {
	env := newTestEnv(t, nil, newSecret("ns", "pg-login"))
	m := newRegistry("demo")
	env.requireWait(env.reconcile(m), "available")
	env.setRunning(m)
	env.requireNoError(env.reconcile(m))
	d := &appsv1.Deployment{}
	env.get(d, "ns", "demo")
	d.Status.Replicas, d.Status.AvailableReplicas, d.Status.UnavailableReplicas = 2, 1, 1
	env.requireNoError(env.server.Status().Update(t.Context(), d))
	env.requireWait(env.reconcile(m), "rollout")
	if c, _ := conditions.Get(m.Status.Conditions, ConditionAvailable); c.Status != metav1.ConditionTrue || c.Message != "Deployment is available" {
		t.Errorf("condition %v", c)
	}
	pod := podWith("next", waitingContainer("rest-container", "ImagePullBackOff"))
	pod.Namespace, pod.Labels = "ns", resources.ServerSelector(m)
	env.requireNoError(env.server.Create(t.Context(), &pod))
	env.requireWait(env.reconcile(m), "rollout")
	if c, _ := conditions.Get(m.Status.Conditions, ConditionAvailable); c.Status != metav1.ConditionTrue || !strings.Contains(c.Message, "ImagePullBackOff") {
		t.Errorf("condition %v", c)
	}
}

// A registry outside of the configured namespace is reported. Nothing in its namespace is read or written.
func TestRegistryInAnotherNamespace(t *testing.T) {
	env := newTestEnv(t, nil)
	env.settings.Namespace = "elsewhere"
	m := newRegistry("demo", registrytest.AddProxy)
	env.readError = func() error { return errors.New("unknown namespace for the cache") }
	env.requireWait(env.reconcile(m), "namespace elsewhere")
	c, _ := conditions.Get(m.Status.Conditions, ConditionAvailable)
	if c.Reason != ReasonMisplaced || c.Status != metav1.ConditionUnknown || !strings.Contains(c.Message, "REGISTRIES_NAMESPACE") || env.takeWrites() != "" {
		t.Errorf("condition %v", c)
	}
}

// A reserved name and a reference to an object of the manager are rejected, even if the webhooks have not validated the registry.
func TestForbiddenReferencesAndNames(t *testing.T) {
	rules := admission.Rules{Mode: admission.Off, Namespace: "ns", Account: "manager"}
	for name, test := range map[string]struct {
		m    *v1beta1.ModelRegistry
		want string
	}{
		"reserved name": {newRegistry("a-catalog"), "metadata.name: the name a-catalog is reserved for other objects"},
		"Secret of the manager": {newRegistry("demo", func(s *v1beta1.ModelRegistrySpec) {
			s.Postgres = &v1beta1.PostgresConfig{Host: "h", PasswordSecret: &v1beta1.SecretKeyValue{Name: "odh-platform-operator-webhook-cert", Key: "ca.key"}}
		}), "spec.postgres.passwordSecret.name: Secret"},
	} {
		t.Run(name, func(t *testing.T) {
			env := newTestEnv(t, nil)
			env.settings.AdmissionRules = rules
			for range 2 { // the rejection does not change
				env.requireWait(env.reconcile(test.m), "a valid spec")
				if c, _ := conditions.Get(test.m.Status.Conditions, ConditionAvailable); !strings.Contains(c.Message, test.want) {
					t.Errorf("message %q", c.Message)
				}
				if env.get(&appsv1.Deployment{}, "ns", test.m.Name) {
					t.Error("the Deployment was created despite the rejection")
				}
			}
		})
	}
}

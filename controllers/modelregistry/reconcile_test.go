package modelregistry

import (
	"errors"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/odh-platform/odh-platform-operator/apis/modelregistry/v1beta1"
	"github.com/odh-platform/odh-platform-operator/controllers/modelregistry/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/servers"
	"github.com/odh-platform/odh-platform-operator/pkg/status/conditions"
	"github.com/odh-platform/odh-platform-operator/pkg/status/serving"
	"github.com/odh-platform/odh-platform-operator/test/registrytest"
)

func reasonOf(m *v1beta1.ModelRegistry, conditionType string) string {
	c, _ := conditions.Get(m.Status.Conditions, conditionType)
	return c.Reason
}

// [modelregistry-101] All objects are written once, in order; the second reconcile writes nothing.
func TestReconcileWritesOnce(t *testing.T) {
	env := newTestEnv(t, nil)
	m := newRegistry("demo", registrytest.AddProxy)
	env.requireWait(env.reconcile(m), "available")
	want := `apply ClusterRoleBinding demo-auth-delegator
apply ServiceAccount demo
apply Role registry-user-demo
apply NetworkPolicy demo-egress
apply ConfigMap demo-kube-rbac-proxy-config
apply NetworkPolicy demo-ingress
apply Deployment demo
apply Service demo`
	if got := env.takeWrites(); got != want {
		t.Errorf("wrote\n%s\nwant\n%s", got, want)
	}
	if reasonOf(m, ConditionProgressing) != ReasonCreating || reasonOf(m, ConditionAvailable) != serving.ReasonStarting {
		t.Errorf("conditions %v", m.Status.Conditions)
	}
	env.setRunning(m)
	env.requireNoError(env.reconcile(m))
	if got := env.takeWrites(); got != "" {
		t.Errorf("wrote\n%s", got)
	}
	if reasonOf(m, ConditionProgressing) != ReasonCreated || reasonOf(m, ConditionAvailable) != serving.ReasonAvailable || reasonOf(m, ConditionProxy) != ReasonResourcesAvailable {
		t.Errorf("conditions %v", m.Status.Conditions)
	}
	if event := <-env.events.Events; !strings.HasPrefix(event, "Normal ServiceCreated Created service for custom resource demo in namespace ns") {
		t.Errorf("event %q", event)
	}
}

// [D11] A reconcile that changes only the Deployment sets Progressing.
func TestChangeOfDeploymentSetsProgressing(t *testing.T) {
	env := newTestEnv(t, nil)
	m := newRegistry("demo", withGeneratedDatabase)
	env.requireWait(env.reconcile(m), "available")
	env.takeWrites()
	m.Spec.Rest.Image = "rest:2"
	env.requireWait(env.reconcile(m), "available")
	if got := env.takeWrites(); got != "apply Deployment demo" || reasonOf(m, ConditionProgressing) != ReasonUpdating {
		t.Errorf("wrote %s, %v", got, m.Status.Conditions)
	}
}

// A generated database is written before the server, and its Secret with the password first.
func TestGeneratedDatabaseComesFirst(t *testing.T) {
	env := newTestEnv(t, nil)
	m := newRegistry("demo", withGeneratedDatabase)
	env.requireWait(env.reconcile(m), "available")
	got := strings.Split(env.takeWrites(), "\n")
	want := []string{"create Secret demo-postgres-credentials", "create PersistentVolumeClaim demo-postgres-storage",
		"apply NetworkPolicy demo-postgres", "apply NetworkPolicy demo-postgres-egress", "apply Deployment demo-postgres", "apply Service demo-postgres"}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("write %d is %q, want %q", i, got[i], want[i])
		}
	}
	secret := &corev1.Secret{}
	if !env.get(secret, "ns", "demo-postgres-credentials") || len(secret.Data["password"]) < 20 || len(secret.OwnerReferences) != 0 {
		t.Errorf("Secret %+v", secret.ObjectMeta)
	}
}

// A name that the database would reject is rejected before any object is created.
func TestRejectsNamesOfAGeneratedDatabase(t *testing.T) {
	env := newTestEnv(t, nil)
	m := newRegistry("demo", withGeneratedDatabase)
	m.Spec.Postgres.Database = "drop table;"
	env.requireWait(env.reconcile(m), "valid spec")
	if got := env.takeWrites(); got != "" || reasonOf(m, ConditionAvailable) != serving.ReasonUnavailable {
		t.Errorf("wrote %q, %v", got, m.Status.Conditions)
	}
}

// A foreign Secret is used without changes and must be complete.
func TestForeignCredentials(t *testing.T) {
	credentials := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "demo-postgres-credentials"}, Data: map[string][]byte{"username": []byte("ann")}}
	env := newTestEnv(t, nil, credentials)
	m := newRegistry("demo", withGeneratedDatabase)
	err := env.reconcile(m)
	if err == nil || !strings.Contains(err.Error(), "has no key password") {
		t.Errorf("got error %v", err)
	}
	credentials.Data["password"] = []byte("p")
	env.requireNoError(env.server.Update(t.Context(), credentials))
	env.requireWait(env.reconcile(m), "available")
	env.get(credentials, "ns", "demo-postgres-credentials")
	if len(credentials.Labels) != 0 {
		t.Errorf("labels were added to the foreign Secret: %v", credentials.Labels)
	}
}

// [modelregistry-100] A reconcile returns errors of apply and create requests, and condition Available quotes them.
func TestAPIErrorsAreReported(t *testing.T) {
	boom := errors.New("boom")
	for _, verb := range []string{"apply", "create"} {
		env := newTestEnv(t, nil)
		env.fail = func(v, _ string) error {
			if v == verb {
				return boom
			}
			return nil
		}
		m := newRegistry("demo", withGeneratedDatabase)
		err := env.reconcile(m)
		available, _ := conditions.Get(m.Status.Conditions, ConditionAvailable)
		if !errors.Is(err, boom) || !strings.HasPrefix(available.Message, "unexpected reconcile error: ") || !strings.Contains(available.Message, "boom") {
			t.Errorf("%s: got error %v and message %q, want %q in both", verb, err, available.Message, boom)
		}
		env.fail = nil
		env.requireWait(env.reconcile(m), "available")
	}
}

// [D30] A cluster-scoped object of a registry of the same name in another namespace is reported, not changed, and blocks the server. If
// that registry was deleted, the object is adopted.
func TestNamesOfClusterScope(t *testing.T) {
	other := newRegistry("demo", registrytest.AddProxy)
	other.Namespace, other.UID = "elsewhere", "other"
	env := newTestEnv(t, nil, other)
	env.requireWait(env.reconcile(other.DeepCopy()), "available")
	env.takeWrites()
	m := newRegistry("demo", registrytest.AddProxy)
	env.requireWait(env.reconcile(m), "to be resolved")
	available, _ := conditions.Get(m.Status.Conditions, ConditionAvailable)
	if !strings.Contains(available.Message, "belongs to ModelRegistry elsewhere/demo") {
		t.Errorf("message %q", available.Message)
	}
	if got := env.takeWrites(); got != "" {
		t.Errorf("objects were written for a server whose proxy cannot authenticate clients:\n%s", got)
	}
	env.requireNoError(env.server.Delete(t.Context(), other))
	env.requireWait(env.reconcile(m), "available")
	binding := &rbacv1.ClusterRoleBinding{}
	if !env.get(binding, "", "demo-auth-delegator") || binding.Labels[resources.LabelNamespace] != "ns" || binding.Subjects[0].Namespace != "ns" {
		t.Errorf("binding %+v", binding)
	}
}

// [D9] [D10] A Deployment is recreated only if its selector differs; other rejections are reported.
func TestRecreatesDeploymentOnSelectorChange(t *testing.T) {
	invalid := func(verb, kind string) error {
		if verb == "apply" && kind == "Deployment" {
			return apierrors.NewInvalid(servers.Deployment.GroupKind(), "demo", nil)
		}
		return nil
	}
	for name, test := range map[string]struct {
		change func(*appsv1.Deployment)
		want   string
	}{
		"other selector": {func(d *appsv1.Deployment) { d.Spec.Selector.MatchLabels = map[string]string{"old": "1"} }, "delete Deployment demo-postgres"},
		"match expressions": {func(d *appsv1.Deployment) {
			d.Spec.Selector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "a", Operator: metav1.LabelSelectorOpExists}}
		}, "delete Deployment demo-postgres"},
		"same selector": {func(*appsv1.Deployment) {}, ""},
		"foreign Deployment": {func(d *appsv1.Deployment) {
			d.OwnerReferences, d.Spec.Selector.MatchLabels = nil, map[string]string{"old": "1"}
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			env := newTestEnv(t, nil)
			m := newRegistry("demo", withGeneratedDatabase)
			env.requireWait(env.reconcile(m), "available")
			env.takeWrites()
			d := &appsv1.Deployment{}
			env.get(d, "ns", "demo-postgres")
			test.change(d)
			env.requireNoError(env.server.Update(t.Context(), d))
			env.fail = invalid
			m.Spec.Postgres.Image = "postgres:2"
			err := env.reconcile(m)
			got := env.takeWrites()
			if test.want != "" {
				env.requireWait(err, "recreated")
			} else if !apierrors.IsInvalid(err) {
				t.Errorf("got error %v", err)
			}
			if got != test.want {
				t.Errorf("wrote %q, want %q", got, test.want)
			}
		})
	}
}

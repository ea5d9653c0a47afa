package modelcatalog

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	aihubv1alpha1 "github.com/odh-platform/odh-platform-operator/apis/aihub/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/controllers/modelcatalog/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/reconciler"
	pkgresources "github.com/odh-platform/odh-platform-operator/pkg/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/singleton"
	"github.com/odh-platform/odh-platform-operator/pkg/status/conditions"
)

// plainCatalogObjects lists the objects of a Catalog on plain Kubernetes.
func plainCatalogObjects() []client.Object {
	return []client.Object{
		&corev1.ServiceAccount{ObjectMeta: nameMeta(resources.Name)}, &corev1.ConfigMap{ObjectMeta: nameMeta(resources.DefaultSources)},
		&corev1.ConfigMap{ObjectMeta: nameMeta(resources.ModelSources)}, &corev1.ConfigMap{ObjectMeta: nameMeta(resources.McpSources)}, &corev1.ConfigMap{ObjectMeta: nameMeta(resources.AgentSources)},
		&corev1.ConfigMap{ObjectMeta: nameMeta(resources.RuntimeSources)},
		&appsv1.Deployment{ObjectMeta: nameMeta(resources.Name)}, &corev1.Service{ObjectMeta: nameMeta(resources.Name)},
		&rbacv1.Role{ObjectMeta: nameMeta(resources.Name)}, &rbacv1.RoleBinding{ObjectMeta: nameMeta(resources.ReadersBinding)}, &rbacv1.Role{ObjectMeta: nameMeta(resources.AdminName)},
		&corev1.Secret{ObjectMeta: nameMeta(resources.DatabaseName)}, &appsv1.Deployment{ObjectMeta: nameMeta(resources.DatabaseName)}, &corev1.Service{ObjectMeta: nameMeta(resources.DatabaseName)},
		&networkingv1.NetworkPolicy{ObjectMeta: nameMeta(resources.DatabaseName)}, &networkingv1.NetworkPolicy{ObjectMeta: nameMeta(resources.IngressPolicy)},
		&networkingv1.NetworkPolicy{ObjectMeta: nameMeta(resources.DatabaseEgress)}, &networkingv1.NetworkPolicy{ObjectMeta: nameMeta(resources.EgressPolicy)},
		&corev1.ConfigMap{ObjectMeta: nameMeta(resources.ProxyConfig)}, &corev1.Secret{ObjectMeta: nameMeta(resources.CertificateSecret)},
		&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: resources.DelegatorBinding}},
	}
}

// Pods do not start without their NetworkPolicies, and the status reports the error, including one of a webhook. [modelregistry-131]
func TestNetworkPolicyErrorBlocksTheServer(t *testing.T) {
	for _, rejection := range []error{
		apierrors.NewForbidden(networkingv1.Resource("networkpolicies"), resources.EgressPolicy, errBroken),
		apierrors.NewInternalError(errBroken),
	} {
		env := newTestEnv(t, newCatalog())
		env.fail = func(string) error {
			if n := len(env.writes); n > 0 && strings.HasSuffix(env.writes[n-1], "/"+resources.EgressPolicy) {
				return rejection
			}
			return nil
		}
		if _, err := env.reconcile(); !errors.Is(err, rejection) {
			t.Errorf("got error %v, want %v", err, rejection)
		}
		got, _ := conditions.Get(mustGet(env, newCatalog()).Status.Conditions, ConditionAvailable)
		if got.Status != metav1.ConditionFalse || !strings.Contains(got.Message, "NetworkPolicy lab-registries/model-catalog-egress") || !strings.Contains(got.Message, errBroken.Error()) {
			t.Errorf("condition %+v", got)
		}
		if env.get(&appsv1.Deployment{ObjectMeta: nameMeta(resources.Name)}) {
			t.Error("the server was created without its NetworkPolicy")
		}
		env.fail = failRandomly(0)
		env.reconcileUntilStable()
		if got, _ := conditions.Get(mustGet(env, newCatalog()).Status.Conditions, ConditionAvailable); strings.Contains(got.Message, resources.EgressPolicy) {
			t.Errorf("got condition %+v after the NetworkPolicy was applied", got)
		}
	}
}

// [modelregistry-75] [modelregistry-80] One reconcile creates all objects, and the next ones write nothing.
func TestReconcileCreatesAllObjects(t *testing.T) {
	env := newTestEnv(t, newCatalog())
	if _, err := env.reconcile(); err != nil {
		t.Fatal(err)
	}
	for _, o := range plainCatalogObjects() {
		if !env.get(o) {
			t.Errorf("%T %s does not exist", o, o.GetName())
		}
	}
	c := mustGet(env, newCatalog())
	if c.Status.ObservedGeneration != c.Generation || !slices.Contains(c.Finalizers, aihubv1alpha1.Finalizer) {
		t.Errorf("status %+v, finalizers %v", c.Status, c.Finalizers)
	}
	for range 3 {
		env.writes = nil
		if _, err := env.reconcile(); err != nil || len(env.writes) > 0 {
			t.Errorf("in steady state, wrote %v, error %v", env.writes, err)
		}
	}
}

// After a crash between any two writes, a new process completes the reconcile, and the database keeps its password.
func TestCrashAfterEveryWrite(t *testing.T) {
	for writes := 1; ; writes++ {
		env := newTestEnv(t, newCatalog())
		remaining := writes
		env.fail = func(verb string) error { // only the first writes succeed
			if verb == "get" {
				return nil
			}
			if remaining--; remaining < 0 {
				return errBroken
			}
			return nil
		}
		_, err := env.reconcile()
		original := &corev1.Secret{ObjectMeta: nameMeta(resources.DatabaseName)}
		env.get(original)
		env.restart()
		env.fail = failRandomly(0)
		env.reconcileUntilStable()
		for _, o := range plainCatalogObjects() {
			mustGet(env, o)
		}
		secret := mustGet(env, &corev1.Secret{ObjectMeta: nameMeta(resources.DatabaseName)})
		if len(original.Data) > 0 && string(original.Data[resources.KeyPassword]) != string(secret.Data[resources.KeyPassword]) {
			t.Errorf("crash after write %d: the password has changed", writes)
		}
		if err == nil {
			if writes < 15 {
				t.Errorf("got only %d writes", writes)
			}
			return
		}
	}
}

// [modelregistry-100] Errors are returned, and reported in the status of a Catalog that was read. All objects are created afterwards.
func TestAPIErrorsAreReported(t *testing.T) {
	for _, verb := range []string{"get", "create", "apply"} {
		env := newTestEnv(t, newCatalog())
		env.fail = failRandomly(1, verb)
		if _, err := env.reconcile(); !errors.Is(err, errBroken) {
			t.Errorf("%s fails: got error %v, want the injected error", verb, err)
		}
		reported := conditionsOf(env)
		if verb != "get" && len(reported) == 0 {
			t.Errorf("%s fails: no condition reports the error", verb)
		}
		for _, c := range reported {
			if c.Type != reconciler.ConditionReconciled && c.Type != conditions.Ready || !strings.Contains(c.Message, errBroken.Error()) {
				t.Errorf("%s fails: unexpected condition %+v", verb, c)
			}
		}
		env.fail = failRandomly(0)
		env.reconcileUntilStable()
		for _, o := range plainCatalogObjects() {
			mustGet(env, o)
		}
	}
}

// [modelregistry-102] The controller converges despite random failures.
func TestRandomFaults(t *testing.T) {
	env := newTestEnv(t, newCatalog())
	env.fail = failRandomly(0.1, "get", "create", "apply", "patch")
	succeeded := false
	for range 1000 { // most reconciles fail, because each reads about forty objects
		if _, err := env.reconcile(); err == nil {
			succeeded = true
			break
		}
	}
	if !succeeded {
		t.Error("no reconcile succeeded")
	}
	env.fail = failRandomly(0)
	env.reconcileUntilStable()
	for _, o := range plainCatalogObjects() {
		mustGet(env, o)
	}
}

// [modelregistry-92] [modelregistry-93] [modelregistry-99] Changes of managed fields are reverted. Objects of users are not changed.
func TestReconcileRevertsManagedFieldsOnly(t *testing.T) {
	env := newTestEnv(t, newCatalog())
	env.reconcileUntilStable()
	defaultSources := &corev1.ConfigMap{ObjectMeta: nameMeta(resources.DefaultSources)}
	env.update(defaultSources, func() { defaultSources.Data[resources.SourcesKey] = "catalogs: []" })
	userSources := &corev1.ConfigMap{ObjectMeta: nameMeta(resources.ModelSources)}
	custom := "# ours\ncatalogs:\n    - {id:   mine, name: \"x\"}\n"
	env.update(userSources, func() { userSources.Data[resources.SourcesKey] = custom })
	proxyConfig := &corev1.ConfigMap{ObjectMeta: nameMeta(resources.ProxyConfig)}
	env.update(proxyConfig, func() { proxyConfig.Data = map[string]string{"config-file.yaml": "authorization: {}"} })
	policy := mustGet(env, &networkingv1.NetworkPolicy{ObjectMeta: nameMeta(resources.DatabaseName)})
	if err := env.server.Delete(t.Context(), policy); err != nil {
		t.Fatal(err)
	}
	env.reconcileUntilStable()
	if mustGet(env, defaultSources).Data[resources.SourcesKey] != resources.DefaultSourcesText {
		t.Error("the default sources were not restored")
	}
	if mustGet(env, userSources).Data[resources.SourcesKey] != custom {
		t.Errorf("the sources of users were changed to %q", userSources.Data[resources.SourcesKey])
	}
	if !strings.Contains(mustGet(env, proxyConfig).Data["config-file.yaml"], "services") {
		t.Error("[W1] the changed rule of the proxy was not reverted")
	}
	mustGet(env, &networkingv1.NetworkPolicy{ObjectMeta: nameMeta(resources.DatabaseName)})
}

// [modelregistry-85] The Secret is created with a random password. It keeps changed values, and gets missing keys.
func TestDatabaseSecret(t *testing.T) {
	env := newTestEnv(t, newCatalog())
	env.reconcileUntilStable()
	secret := mustGet(env, &corev1.Secret{ObjectMeta: nameMeta(resources.DatabaseName)})
	if string(secret.Data[resources.KeyDatabase]) != "model_catalog" || string(secret.Data[resources.KeyUser]) != "catalog_user" || len(secret.Data[resources.KeyPassword]) != 24 {
		t.Errorf("created a Secret with unexpected data %v", secret.Data)
	}
	env.update(secret, func() {
		secret.Data[resources.KeyPassword] = []byte("new")
		delete(secret.Data, resources.KeyUser)
	})
	env.reconcileUntilStable()
	if mustGet(env, secret); string(secret.Data[resources.KeyPassword]) != "new" || string(secret.Data[resources.KeyUser]) != "catalog_user" {
		t.Errorf("got data %v, want the password of the user and the missing key", secret.Data)
	}
}

// [D8] The managed labels of user-editable ConfigMaps are restored.
func TestLabelsOfUserSources(t *testing.T) {
	sources := &corev1.ConfigMap{ObjectMeta: nameMeta(resources.ModelSources), Data: map[string]string{resources.SourcesKey: "catalogs: ["}}
	env := newTestEnv(t, newCatalog(), sources)
	for range 2 {
		env.reconcileUntilStable()
		if !resources.IsManaged(mustGet(env, sources)) || sources.Data[resources.SourcesKey] != "catalogs: [" {
			t.Errorf("labels %v and data %v, want managed labels and unchanged data", sources.Labels, sources.Data)
		}
		env.update(sources, func() { sources.Labels = nil }) // in a cluster, this removes it from the cache
	}
}

// [modelregistry-68] Passwords are URL-safe and unique.
func TestNewPassword(t *testing.T) {
	seen := map[string]bool{}
	for range 100 {
		password := pkgresources.NewPassword()
		if len(password) < 20 || seen[password] || strings.Trim(password, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_=") != "" {
			t.Errorf("password %q", password)
		}
		seen[password] = true
	}
}

// [modelregistry-79] [modelregistry-98] The subjects of the RoleBinding are the groups of Auth.
func TestAdminBindingFollowsGroupsOfAuth(t *testing.T) {
	env := newTestEnv(t, newCatalog())
	env.reconcileUntilStable()
	resetAuth := func() { // as in a new process
		env.r.admins = singleton.NewValue(singleton.Options{}, singleton.Unknown, adminGroups)
		env.r.admins.SetServed(true)
	}
	resetAuth()
	if _, err := env.reconcile(); err != nil || env.get(&rbacv1.RoleBinding{ObjectMeta: nameMeta(resources.AdminBinding)}) {
		t.Errorf("want no RoleBinding before Auth is read, and no error; got error %v", err)
	}
	env.r.admins.OnUpdate(&unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"adminGroups": []any{"odh-admins"}}}})
	env.reconcileUntilStable()
	if binding := mustGet(env, &rbacv1.RoleBinding{ObjectMeta: nameMeta(resources.AdminBinding)}); binding.Subjects[0].Name != "odh-admins" || binding.RoleRef.Name != resources.AdminName {
		t.Errorf("binding %+v", binding)
	}
	resetAuth()
	env.reconcileUntilStable()
	mustGet(env, &rbacv1.RoleBinding{ObjectMeta: nameMeta(resources.AdminBinding)})
	env.r.admins.OnUpdate(nil)
	env.reconcileUntilStable()
	if env.get(&rbacv1.RoleBinding{ObjectMeta: nameMeta(resources.AdminBinding)}) {
		t.Error("the RoleBinding exists, although no group is configured")
	}
}

// [modelregistry-97] Sources are added and removed, and the status reports each of them [S10].
func TestLabelledSources(t *testing.T) {
	env := newTestEnv(t, newCatalog())
	env.reconcileUntilStable()
	mounts := func() []string {
		return mountedSources(mustGet(env, &appsv1.Deployment{ObjectMeta: nameMeta(resources.Name)}).Spec.Template.Spec.Volumes)
	}
	add := func(name string, data map[string]string) {
		m := &corev1.ConfigMap{ObjectMeta: nameMeta(name), Data: data}
		m.Labels = map[string]string{resources.SourceLabel: "true"}
		env.create(m)
	}
	content := map[string]string{resources.SourcesKey: "catalogs: []"}
	add("zebra", content)
	add("alpha", content)
	add("empty", nil)
	env.reconcileUntilStable()
	if got := mounts(); !slices.Equal(got, []string{"alpha", "zebra"}) {
		t.Errorf("mounted %v", got)
	}
	c := mustGet(env, newCatalog())
	if len(c.Status.Sources) != 3 || c.Status.Sources[1].State != aihubv1alpha1.SourceRejected {
		t.Errorf("status %+v", c.Status.Sources)
	}
	if err := env.server.Delete(t.Context(), mustGet(env, &corev1.ConfigMap{ObjectMeta: nameMeta("alpha")})); err != nil {
		t.Fatal(err)
	}
	env.reconcileUntilStable()
	if got := mounts(); !slices.Equal(got, []string{"zebra"}) {
		t.Errorf("mounted %v", got)
	}
	for _, name := range []string{"a", "b", "c", "d", "e", "f", "g"} { // the first additions have used one token of the limiter
		add(name, content)
		env.reconcileUntilStable()
	}
	if got := mounts(); !slices.Equal(got, []string{"a", "b", "c", "d", "e", "zebra"}) {
		t.Errorf("got mounted sources %v, want those within the limit of additions", got)
	}
	env.stepClock(time.Minute)
	env.reconcileUntilStable()
	if got := mounts(); !slices.Equal(got, []string{"a", "b", "c", "d", "e", "f", "g", "zebra"}) {
		t.Errorf("mounted sources after one minute are %v, want all", got)
	}
}

// [D23] An inactive Catalog creates no Deployment and reports the reason.
func TestInactiveCatalog(t *testing.T) {
	older := newCatalog()
	older.Namespace, older.UID, older.CreationTimestamp = "elsewhere", "older", metav1.NewTime(now.Add(-time.Hour))
	c := newCatalog()
	c.CreationTimestamp = metav1.NewTime(now)
	env := newTestEnv(t, c, older)
	env.reconcileUntilStable()
	if env.get(&appsv1.Deployment{ObjectMeta: nameMeta(resources.Name)}) {
		t.Error("an inactive Catalog created a Deployment")
	}
	got, _ := conditions.Get(mustGet(env, newCatalog()).Status.Conditions, ConditionAvailable)
	if got.Reason != ReasonNotActive || !strings.Contains(got.Message, "elsewhere") {
		t.Errorf("condition %+v", got)
	}
	if err := env.server.Delete(t.Context(), older); err != nil {
		t.Fatal(err)
	}
	env.reconcileUntilStable()
	mustGet(env, &appsv1.Deployment{ObjectMeta: nameMeta(resources.Name)})
}

// [D9] If the API server forbids the apply requests, no object is deleted.
func TestForbiddenDeletesNothing(t *testing.T) {
	env := newTestEnv(t, newCatalog())
	env.reconcileUntilStable()
	c := newCatalog()
	env.update(c, func() {
		c.Spec.Resources = &aihubv1alpha1.CatalogResources{Catalog: &corev1.ResourceRequirements{}}
	})
	env.fail = func(verb string) error {
		if verb == "apply" {
			return apierrors.NewForbidden(schema.GroupResource{Group: "apps", Resource: "deployments"}, resources.Name, errors.New("quota"))
		}
		return nil
	}
	env.writes = nil
	if _, err := env.reconcile(); !apierrors.IsForbidden(err) {
		t.Errorf("got error %v, want Forbidden", err)
	}
	mustGet(env, &appsv1.Deployment{ObjectMeta: nameMeta(resources.Name)})
	if slices.ContainsFunc(env.writes, func(w string) bool { return strings.HasPrefix(w, "delete") }) {
		t.Errorf("writes %v", env.writes)
	}
	got, _ := conditions.Get(mustGet(env, newCatalog()).Status.Conditions, ConditionAvailable)
	if !strings.Contains(got.Message, "quota") {
		t.Errorf("condition %+v", got)
	}
}

// [modelregistry-78] The finalizer deletes only the ClusterRoleBinding of its own Catalog.
func TestFinalize(t *testing.T) {
	binding := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: resources.DelegatorBinding}}
	env := newTestEnv(t, newCatalog())
	env.reconcileUntilStable()
	if err := env.server.Delete(t.Context(), mustGet(env, newCatalog())); err != nil {
		t.Fatal(err)
	}
	if _, err := env.reconcile(); err != nil || env.get(binding) || env.get(newCatalog()) {
		t.Errorf("ClusterRoleBinding exists: %t, Catalog exists: %t, error %v; want both deleted", env.get(binding), env.get(newCatalog()), err)
	}
	if !env.get(&corev1.ConfigMap{ObjectMeta: nameMeta(resources.ModelSources)}) {
		t.Error("the ConfigMap with the sources of users was deleted")
	}

	env = newTestEnv(t, newCatalog())
	env.reconcileUntilStable()
	env.update(binding, func() { binding.Labels[resources.LabelNamespace] = "another" })
	if err := env.server.Delete(t.Context(), mustGet(env, newCatalog())); err != nil {
		t.Fatal(err)
	}
	if _, err := env.reconcile(); err != nil || !env.get(binding) {
		t.Errorf("the ClusterRoleBinding of another Catalog was deleted, error %v", err)
	}
}

// The certificate is issued once and renewed before it expires. A certificate of the user is not changed.
func TestCertificateIsRenewedUnlessUserProvidesIt(t *testing.T) {
	env := newTestEnv(t, newCatalog())
	env.reconcileUntilStable()
	first := mustGet(env, &corev1.Secret{ObjectMeta: nameMeta(resources.CertificateSecret)})
	env.stepClock(365 * 24 * time.Hour * 3 / 4)
	env.reconcileUntilStable()
	if renewed := mustGet(env, &corev1.Secret{ObjectMeta: nameMeta(resources.CertificateSecret)}); string(renewed.Data["tls.crt"]) == string(first.Data["tls.crt"]) {
		t.Error("the certificate was not renewed")
	}
	result, err := env.reconcile()
	if err != nil || result.RequeueAfter <= 0 {
		t.Errorf("got result %+v and error %v, want a requeue for the next renewal", result, err)
	}
	foreign := &corev1.Secret{ObjectMeta: nameMeta(resources.CertificateSecret), Data: map[string][]byte{"tls.crt": []byte("theirs")}}
	env = newTestEnv(t, newCatalog(), foreign)
	env.reconcileUntilStable()
	if string(mustGet(env, foreign).Data["tls.crt"]) != "theirs" || len(foreign.OwnerReferences) > 0 {
		t.Error("the certificate of the user was modified")
	}
}

// conditionsOf returns the conditions of the Catalog.
func conditionsOf(env *testEnv) []metav1.Condition {
	c := newCatalog()
	env.get(c)
	return c.Status.Conditions
}

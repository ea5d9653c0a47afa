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
	"github.com/odh-platform/odh-platform-operator/pkg/servers"
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
	for _, refusal := range []error{
		apierrors.NewForbidden(networkingv1.Resource("networkpolicies"), resources.EgressPolicy, errBroken),
		apierrors.NewInternalError(errBroken),
	} {
		b := newTestEnv(t, sample())
		b.fail = func(string) error {
			if n := len(b.writes); n > 0 && strings.HasSuffix(b.writes[n-1], "/"+resources.EgressPolicy) {
				return refusal
			}
			return nil
		}
		if _, err := b.reconcile(); !errors.Is(err, refusal) {
			t.Errorf("ended with %v", err)
		}
		got, _ := conditions.Get(must(b, sample()).Status.Conditions, ConditionAvailable)
		if got.Status != metav1.ConditionFalse || !strings.Contains(got.Message, "NetworkPolicy lab-registries/model-catalog-egress") || !strings.Contains(got.Message, errBroken.Error()) {
			t.Errorf("condition %+v", got)
		}
		if b.get(&appsv1.Deployment{ObjectMeta: nameMeta(resources.Name)}) {
			t.Error("the server was created without its NetworkPolicy")
		}
		b.fail = failRandomly(0)
		b.reconcileUntilStable()
		if got, _ := conditions.Get(must(b, sample()).Status.Conditions, ConditionAvailable); strings.Contains(got.Message, resources.EgressPolicy) {
			t.Errorf("condition %+v after it was written", got)
		}
	}
}

// [modelregistry-75] [modelregistry-80] One reconcile creates all objects, and later ones write nothing.
func TestReconcileCreatesAllObjects(t *testing.T) {
	b := newTestEnv(t, sample())
	if _, err := b.reconcile(); err != nil {
		t.Fatal(err)
	}
	for _, o := range plainCatalogObjects() {
		if !b.get(o) {
			t.Errorf("%T %s is not there", o, o.GetName())
		}
	}
	c := must(b, sample())
	if c.Status.ObservedGeneration != c.Generation || !slices.Contains(c.Finalizers, aihubv1alpha1.Finalizer) {
		t.Errorf("status %+v, finalizers %v", c.Status, c.Finalizers)
	}
	b.reconcileUntilStable()
	if _, err := b.reconcile(); err != nil || len(b.writes) > 0 {
		t.Errorf("at rest it writes %v, %v", b.writes, err)
	}
}

// After a crash following any write, a new process completes the reconcile, and the database keeps its password.
func TestKilledAfterEveryWrite(t *testing.T) {
	for write := 1; ; write++ {
		b := newTestEnv(t, sample())
		left := write
		b.fail = func(verb string) error { // requests sent before are stored, later ones are not
			if verb == "get" {
				return nil
			}
			if left--; left < 0 {
				return errBroken
			}
			return nil
		}
		_, err := b.reconcile()
		password := &corev1.Secret{ObjectMeta: nameMeta(resources.DatabaseName)}
		b.get(password)
		b.restart()
		b.fail = failRandomly(0)
		b.reconcileUntilStable()
		for _, o := range plainCatalogObjects() {
			must(b, o)
		}
		after := must(b, &corev1.Secret{ObjectMeta: nameMeta(resources.DatabaseName)})
		if len(password.Data) > 0 && string(password.Data[resources.KeyPassword]) != string(after.Data[resources.KeyPassword]) {
			t.Errorf("killed after write %d: another password", write)
		}
		if err == nil {
			if write < 15 {
				t.Errorf("only %d writes", write)
			}
			return
		}
	}
}

// [modelregistry-100] An error of the API server is returned unchanged and reported in the status; without it all objects are created.
func TestFaultsSurface(t *testing.T) {
	for _, verb := range []string{"get", "create", "apply"} {
		b := newTestEnv(t, sample())
		b.fail = failRandomly(1, verb)
		if _, err := b.reconcile(); !errors.Is(err, errBroken) {
			t.Errorf("all of %s fail: %v", verb, err)
		}
		for _, c := range conditionsOf(b) {
			if c.Type != reconciler.ConditionReconciled && c.Type != conditions.Ready || !strings.Contains(c.Message, errBroken.Error()) {
				t.Errorf("all of %s fail: condition %+v", verb, c)
			}
		}
		b.fail = failRandomly(0)
		b.reconcileUntilStable()
		for _, o := range plainCatalogObjects() {
			must(b, o)
		}
	}
}

// [modelregistry-102] The controller converges with random failures.
func TestFaultsAtRandom(t *testing.T) {
	b := newTestEnv(t, sample())
	b.fail = failRandomly(0.1, "get", "create", "apply", "patch")
	done := false
	for range 1000 { // a reconcile reads some forty objects, and most of them meet a fault
		if _, err := b.reconcile(); err == nil {
			done = true
			break
		}
	}
	if !done {
		t.Error("no reconcile succeeded")
	}
	b.fail = failRandomly(0)
	b.reconcileUntilStable()
	for _, o := range plainCatalogObjects() {
		must(b, o)
	}
}

// [modelregistry-92] [modelregistry-93] [modelregistry-99] Managed fields are corrected; objects of users are not changed.
func TestReconcileRevertsManagedFieldsOnly(t *testing.T) {
	b := newTestEnv(t, sample())
	b.reconcileUntilStable()
	edited := &corev1.ConfigMap{ObjectMeta: nameMeta(resources.DefaultSources)}
	b.update(edited, func() { edited.Data[resources.SourcesKey] = "catalogs: []" })
	foreign := &corev1.ConfigMap{ObjectMeta: nameMeta(resources.ModelSources)}
	custom := "# ours\ncatalogs:\n    - {id:   mine, name: \"x\"}\n"
	b.update(foreign, func() { foreign.Data[resources.SourcesKey] = custom })
	rule := &corev1.ConfigMap{ObjectMeta: nameMeta(resources.ProxyConfig)}
	b.update(rule, func() { rule.Data = map[string]string{"config-file.yaml": "authorization: {}"} })
	policy := must(b, &networkingv1.NetworkPolicy{ObjectMeta: nameMeta(resources.DatabaseName)})
	if err := b.server.Delete(t.Context(), policy); err != nil {
		t.Fatal(err)
	}
	b.reconcileUntilStable()
	if must(b, edited).Data[resources.SourcesKey] != resources.DefaultSourcesText {
		t.Error("the default sources were not restored")
	}
	if must(b, foreign).Data[resources.SourcesKey] != custom {
		t.Errorf("sources of users became %q", foreign.Data[resources.SourcesKey])
	}
	if !strings.Contains(must(b, rule).Data["config-file.yaml"], "services") {
		t.Error("[W1] the changed rule of the proxy was not reverted")
	}
	must(b, &networkingv1.NetworkPolicy{ObjectMeta: nameMeta(resources.DatabaseName)})
}

// [modelregistry-94] [modelregistry-95] The legacy default entry is removed, malformed sources are kept, and neither is checked twice.
func TestCleanUserSources(t *testing.T) {
	old := &corev1.ConfigMap{ObjectMeta: nameMeta(resources.ModelSources), Data: map[string]string{
		resources.SourcesKey: "catalogs:\n- id: default_catalog\n- id: mine\n", "other": "kept",
	}}
	old.Annotations = map[string]string{servers.LegacyCopyAnnotation: "x", "theirs": "y"}
	old.OwnerReferences = []metav1.OwnerReference{{APIVersion: "components.platform.opendatahub.io/v1alpha1", Kind: "ModelRegistry", Name: "default-modelregistry", UID: "old"}}
	broken := &corev1.ConfigMap{ObjectMeta: nameMeta(resources.McpSources), Data: map[string]string{resources.SourcesKey: "catalogs: ["}}
	b := newTestEnv(t, sample(), old, broken)
	b.reconcileUntilStable()
	must(b, old)
	if old.Data[resources.SourcesKey] != "catalogs:\n  - id: mine\n" || old.Data["other"] != "kept" || len(old.OwnerReferences) > 0 {
		t.Errorf("became %+v, owners %v", old.Data, old.OwnerReferences)
	}
	if _, left := old.Annotations[servers.LegacyCopyAnnotation]; left || old.Annotations["theirs"] != "y" {
		t.Errorf("annotations %v", old.Annotations)
	}
	if must(b, broken).Data[resources.SourcesKey] != "catalogs: [" {
		t.Errorf("malformed sources became %q", broken.Data[resources.SourcesKey])
	}
	b.update(old, func() { old.Labels = nil }) // no longer in the cache
	b.reconcileUntilStable()
	if !isManaged(must(b, old)) {
		t.Error("[D8] the managed labels were not restored")
	}
}

// [modelregistry-85] The Secret is created with a random password; an existing one keeps its data and gets missing keys.
func TestDatabaseSecret(t *testing.T) {
	b := newTestEnv(t, sample())
	b.reconcileUntilStable()
	made := must(b, &corev1.Secret{ObjectMeta: nameMeta(resources.DatabaseName)})
	if string(made.Data[resources.KeyDatabase]) != "model_catalog" || string(made.Data[resources.KeyUser]) != "catalog_user" || len(made.Data[resources.KeyPassword]) != 24 {
		t.Errorf("made %v", made.Data)
	}
	old := &corev1.Secret{ObjectMeta: nameMeta(resources.DatabaseName), Data: map[string][]byte{resources.KeyPassword: []byte("p@ss"), "more": []byte("1")}}
	old.Annotations = map[string]string{servers.LegacyCopyAnnotation: "the password"}
	b = newTestEnv(t, sample(), old)
	b.reconcileUntilStable()
	must(b, old)
	if string(old.Data[resources.KeyPassword]) != "p@ss" || string(old.Data[resources.KeyUser]) != "catalog_user" || string(old.Data["more"]) != "1" {
		t.Errorf("adopted as %v", old.Data)
	}
	if len(old.Annotations) > 0 || !metav1.IsControlledBy(old, must(b, sample())) {
		t.Errorf("annotations %v, owners %v", old.Annotations, old.OwnerReferences)
	}
	b.update(old, func() { old.Data[resources.KeyPassword] = []byte("new") })
	b.reconcileUntilStable()
	if string(must(b, old).Data[resources.KeyPassword]) != "new" {
		t.Error("the password of the user was overwritten")
	}
}

// [modelregistry-68] Passwords are URL-safe and unique.
func TestNewPassword(t *testing.T) {
	seen := map[string]bool{}
	for range 100 {
		p := pkgresources.NewPassword()
		if len(p) < 20 || seen[p] || strings.Trim(p, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_=") != "" {
			t.Errorf("password %q", p)
		}
		seen[p] = true
	}
}

// [modelregistry-79] [modelregistry-98] Groups follow Auth.
func TestAdminBindingFollowsGroupsOfAuth(t *testing.T) {
	b := newTestEnv(t, sample())
	b.reconcileUntilStable()
	resetAuth := func() { // as a new process begins
		b.r.admins = singleton.NewValue(singleton.Options{}, singleton.Unknown, adminGroups)
		b.r.admins.SetServed(true)
	}
	resetAuth()
	if _, err := b.reconcile(); err != nil || b.get(&rbacv1.RoleBinding{ObjectMeta: nameMeta(resources.AdminBinding)}) {
		t.Errorf("want no RoleBinding before Auth is read, and no error; got error %v", err)
	}
	b.r.admins.OnUpdate(&unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"adminGroups": []any{"odh-admins"}}}})
	b.reconcileUntilStable()
	if binding := must(b, &rbacv1.RoleBinding{ObjectMeta: nameMeta(resources.AdminBinding)}); binding.Subjects[0].Name != "odh-admins" || binding.RoleRef.Name != resources.AdminName {
		t.Errorf("binding %+v", binding)
	}
	resetAuth()
	b.reconcileUntilStable()
	must(b, &rbacv1.RoleBinding{ObjectMeta: nameMeta(resources.AdminBinding)})
	b.r.admins.OnUpdate(nil)
	b.reconcileUntilStable()
	if b.get(&rbacv1.RoleBinding{ObjectMeta: nameMeta(resources.AdminBinding)}) {
		t.Error("the RoleBinding exists, although no group is configured")
	}
}

// [modelregistry-97] Sources are added and removed, and the status reports each [S10].
func TestLabelledSources(t *testing.T) {
	b := newTestEnv(t, sample())
	b.reconcileUntilStable()
	mounts := func() []string {
		return mountedSources(must(b, &appsv1.Deployment{ObjectMeta: nameMeta(resources.Name)}).Spec.Template.Spec.Volumes)
	}
	add := func(name string, data map[string]string) {
		m := &corev1.ConfigMap{ObjectMeta: nameMeta(name), Data: data}
		m.Labels = map[string]string{resources.SourceLabel: "true"}
		b.create(m)
	}
	content := map[string]string{resources.SourcesKey: "catalogs: []"}
	add("zebra", content)
	add("alpha", content)
	add("empty", nil)
	b.reconcileUntilStable()
	if got := mounts(); !slices.Equal(got, []string{"alpha", "zebra"}) {
		t.Errorf("mounted %v", got)
	}
	c := must(b, sample())
	if len(c.Status.Sources) != 3 || c.Status.Sources[1].State != aihubv1alpha1.SourceRejected {
		t.Errorf("status %+v", c.Status.Sources)
	}
	if err := b.server.Delete(t.Context(), must(b, &corev1.ConfigMap{ObjectMeta: nameMeta("alpha")})); err != nil {
		t.Fatal(err)
	}
	b.reconcileUntilStable()
	if got := mounts(); !slices.Equal(got, []string{"zebra"}) {
		t.Errorf("mounted %v", got)
	}
	for _, name := range []string{"a", "b", "c", "d", "e", "f", "g"} { // one addition is spent already
		add(name, content)
		b.reconcileUntilStable()
	}
	if got := mounts(); !slices.Equal(got, []string{"a", "b", "c", "d", "e", "zebra"}) {
		t.Errorf("more than the budget: %v", got)
	}
	b.stepClock(time.Minute)
	b.reconcileUntilStable()
	if got := mounts(); !slices.Equal(got, []string{"a", "b", "c", "d", "e", "f", "g", "zebra"}) {
		t.Errorf("mounted sources after one minute are %v, want all", got)
	}
}

// [D23] An inactive Catalog creates nothing and reports the reason.
func TestInactiveCatalog(t *testing.T) {
	catalog := sample()
	catalog.Namespace, catalog.UID, catalog.CreationTimestamp = "elsewhere", "older", metav1.NewTime(now.Add(-time.Hour))
	c := sample()
	c.CreationTimestamp = metav1.NewTime(now)
	b := newTestEnv(t, c, catalog)
	b.reconcileUntilStable()
	if b.get(&appsv1.Deployment{ObjectMeta: nameMeta(resources.Name)}) {
		t.Error("an inactive Catalog created a Deployment")
	}
	got, _ := conditions.Get(must(b, sample()).Status.Conditions, ConditionAvailable)
	if got.Reason != ReasonNotActive || !strings.Contains(got.Message, "elsewhere") {
		t.Errorf("condition %+v", got)
	}
	if err := b.server.Delete(t.Context(), catalog); err != nil {
		t.Fatal(err)
	}
	b.reconcileUntilStable()
	must(b, &appsv1.Deployment{ObjectMeta: nameMeta(resources.Name)})
}

// [D9] No rejected write deletes a Deployment.
func TestForbiddenDeletesNothing(t *testing.T) {
	b := newTestEnv(t, sample())
	b.reconcileUntilStable()
	c := sample()
	b.update(c, func() {
		c.Spec.Resources = &aihubv1alpha1.CatalogResources{Catalog: &corev1.ResourceRequirements{}}
	})
	b.fail = func(verb string) error {
		if verb == "apply" {
			return apierrors.NewForbidden(schema.GroupResource{Group: "apps", Resource: "deployments"}, resources.Name, errors.New("quota"))
		}
		return nil
	}
	b.writes = nil
	if _, err := b.reconcile(); !apierrors.IsForbidden(err) {
		t.Errorf("error %v", err)
	}
	must(b, &appsv1.Deployment{ObjectMeta: nameMeta(resources.Name)})
	if slices.ContainsFunc(b.writes, func(w string) bool { return strings.HasPrefix(w, "delete") }) {
		t.Errorf("writes %v", b.writes)
	}
	got, _ := conditions.Get(must(b, sample()).Status.Conditions, ConditionAvailable)
	if !strings.Contains(got.Message, "quota") {
		t.Errorf("condition %+v", got)
	}
}

// [modelregistry-78] The finalizer deletes the ClusterRoleBinding of this Catalog only.
func TestFinalize(t *testing.T) {
	binding := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: resources.DelegatorBinding}}
	b := newTestEnv(t, sample())
	b.reconcileUntilStable()
	if err := b.server.Delete(t.Context(), must(b, sample())); err != nil {
		t.Fatal(err)
	}
	if _, err := b.reconcile(); err != nil || b.get(binding) || b.get(sample()) {
		t.Errorf("binding left %v, Catalog left %v, %v", b.get(binding), b.get(sample()), err)
	}
	if !b.get(&corev1.ConfigMap{ObjectMeta: nameMeta(resources.ModelSources)}) {
		t.Error("the ConfigMap with the sources of users was deleted")
	}

	b = newTestEnv(t, sample())
	b.reconcileUntilStable()
	b.update(binding, func() { binding.Labels[resources.LabelNamespace] = "another" })
	if err := b.server.Delete(t.Context(), must(b, sample())); err != nil {
		t.Fatal(err)
	}
	if _, err := b.reconcile(); err != nil || !b.get(binding) {
		t.Errorf("the binding of another Catalog is gone, %v", err)
	}
}

// The certificate is issued once and renewed in time; one of the user is not changed.
func TestCertificateIsRenewedUnlessUserProvidesIt(t *testing.T) {
	b := newTestEnv(t, sample())
	b.reconcileUntilStable()
	first := must(b, &corev1.Secret{ObjectMeta: nameMeta(resources.CertificateSecret)})
	b.stepClock(365 * 24 * time.Hour * 3 / 4)
	b.reconcileUntilStable()
	if again := must(b, &corev1.Secret{ObjectMeta: nameMeta(resources.CertificateSecret)}); string(again.Data["tls.crt"]) == string(first.Data["tls.crt"]) {
		t.Error("the certificate was not renewed")
	}
	result, err := b.reconcile()
	if err != nil || result.RequeueAfter <= 0 {
		t.Errorf("no one comes back for the renewal: %+v, %v", result, err)
	}
	foreign := &corev1.Secret{ObjectMeta: nameMeta(resources.CertificateSecret), Data: map[string][]byte{"tls.crt": []byte("theirs")}}
	b = newTestEnv(t, sample(), foreign)
	b.reconcileUntilStable()
	if string(must(b, foreign).Data["tls.crt"]) != "theirs" || len(foreign.OwnerReferences) > 0 {
		t.Error("the certificate of the user was modified")
	}
}

// conditionsOf returns the conditions of the catalog.
func conditionsOf(b *testEnv) []metav1.Condition {
	c := sample()
	b.get(c)
	return c.Status.Conditions
}

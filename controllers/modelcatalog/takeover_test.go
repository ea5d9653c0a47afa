package modelcatalog

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	aihubv1alpha1 "github.com/odh-platform/odh-platform-operator/apis/aihub/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/controllers/modelcatalog/resources"
	"github.com/odh-platform/odh-platform-operator/controllers/modelcatalog/takeover"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/names"
	"github.com/odh-platform/odh-platform-operator/pkg/servers"
	"github.com/odh-platform/odh-platform-operator/pkg/status/conditions"
)

// newTakeOverEnv returns an environment with the take-over of legacy catalogs.
func newTakeOverEnv(t *testing.T, objects ...client.Object) *testEnv {
	t.Helper()
	env := newTestEnv(t, objects...)
	env.newTakeOver = func() TakeOver {
		return &takeover.TakeOver{
			Settings: env.r.settings, Applier: env.r.Applier, Recorder: events.NewFakeRecorder(10), Log: logr.Discard(),
			Platform: func() (servers.Platform, error) {
				return servers.DetectPlatform(env.r.settings.ModelRegistry, env.r.aihub, env.served, env.r.domain)
			},
		}
	}
	env.restart()
	return env
}

func platformOwner() metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: "components.platform.opendatahub.io/v1alpha1", Kind: "ModelRegistry", Name: "default-modelregistry", UID: "platform"}
}

func deploymentOwner(name string, uid types.UID) metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: "apps/v1", Kind: "Deployment", Name: name, UID: uid}
}

// legacyDeployment returns a Deployment as the legacy operator wrote it, with labels as selector.
func legacyDeployment(name string, labels map[string]string, refs ...metav1.OwnerReference) *appsv1.Deployment {
	d := &appsv1.Deployment{ObjectMeta: nameMeta(name)}
	d.UID, d.OwnerReferences = types.UID("old-"+name), refs
	d.Annotations = map[string]string{servers.LegacyCopyAnnotation: "x"}
	d.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
	d.Spec.Template.Labels = labels
	return d
}

// [modelregistry-77] Objects of the legacy operator are adopted: their owner references are replaced, legacy annotations are removed, and
// no object gets another name.
func TestAdoptionReplacesLegacyOwnerReferences(t *testing.T) {
	account := &corev1.ServiceAccount{ObjectMeta: nameMeta(resources.Name)}
	account.OwnerReferences = []metav1.OwnerReference{platformOwner()}
	account.Annotations = map[string]string{servers.LegacyCopyAnnotation: "x", "theirs": "y"}
	databaseService := &corev1.Service{ObjectMeta: nameMeta(resources.DatabaseName)}
	databaseService.OwnerReferences = []metav1.OwnerReference{deploymentOwner(resources.DatabaseName, "d")}
	databaseService.OwnerReferences[0].Controller = new(true)
	role := &rbacv1.Role{ObjectMeta: nameMeta(resources.Name)}
	role.OwnerReferences = []metav1.OwnerReference{deploymentOwner(resources.Name, "d")}
	env := newTakeOverEnv(t, newCatalog(), account, databaseService, role, legacyDeployment(resources.Name, resources.Selector(resources.Name), platformOwner()))
	env.reconcileUntilStable()
	for _, o := range []client.Object{account, databaseService, role, &appsv1.Deployment{ObjectMeta: nameMeta(resources.Name)}} {
		mustGet(env, o)
		refs := o.GetOwnerReferences()
		if len(refs) != 1 || !metav1.IsControlledBy(o, newCatalog()) {
			t.Errorf("%T has owner references %v, want the Catalog only", o, refs)
		}
		if _, found := o.GetAnnotations()[servers.LegacyCopyAnnotation]; found {
			t.Errorf("%T still has the annotation of the legacy operator: %v", o, o.GetAnnotations())
		}
	}
	if account.Annotations["theirs"] != "y" {
		t.Error("[D5] the annotation of a user was removed")
	}
	for _, o := range []client.Object{&appsv1.Deployment{ObjectMeta: nameMeta("catalog")}, &corev1.ServiceAccount{ObjectMeta: nameMeta("catalog")}} {
		if env.get(o) {
			t.Errorf("%T was created under the name of the Catalog", o)
		}
	}
}

// A Deployment with another selector, and the database Deployment with another strategy, are recreated once. Before that, the owner
// reference of the Service to its Deployment is removed.
func TestDeploymentWithOtherSelectorIsRecreatedOnce(t *testing.T) {
	service := &corev1.Service{ObjectMeta: nameMeta(resources.Name)}
	service.OwnerReferences = []metav1.OwnerReference{deploymentOwner(resources.Name, "old-"+resources.Name)}
	server := legacyDeployment(resources.Name, map[string]string{"component": resources.Name})
	database := legacyDeployment(resources.DatabaseName, resources.Selector(resources.DatabaseName))
	database.Spec.Strategy.RollingUpdate = &appsv1.RollingUpdateDeployment{} // invalid with the strategy Recreate
	env := newTakeOverEnv(t, newCatalog(), service, server, database)
	if _, err := env.reconcile(); err != nil {
		t.Fatal(err)
	}
	orphanWrite, deleteWrite := -1, -1
	for i, w := range env.writes {
		if w == "apply Service/"+resources.Name && orphanWrite < 0 {
			orphanWrite = i
		}
		if w == "delete Deployment/"+resources.Name {
			deleteWrite = i
		}
	}
	if orphanWrite < 0 || deleteWrite < orphanWrite || !metav1.IsControlledBy(mustGet(env, service), newCatalog()) || len(service.OwnerReferences) != 1 {
		t.Errorf("the Service lost its owner reference at write %d, the Deployment was deleted at write %d; want this order: %v", orphanWrite, deleteWrite, env.writes)
	}
	env.reconcileUntilStable()
	for _, name := range []string{resources.Name, resources.DatabaseName} {
		d := mustGet(env, &appsv1.Deployment{ObjectMeta: nameMeta(name)})
		if strings.HasPrefix(string(d.UID), "old-") || d.Spec.Selector.MatchLabels[resources.LabelName] != name {
			t.Errorf("%s: want a new Deployment with the current selector, got UID %s and %v", name, d.UID, d.Spec.Selector)
		}
	}
	env.restart()
	env.writes = nil
	if _, err := env.reconcile(); err != nil || strings.Contains(strings.Join(env.writes, " "), "delete") {
		t.Errorf("a reconcile after a restart deleted objects: writes %v, error %v", env.writes, err)
	}
}

// A foreign Deployment is kept, and the condition names it.
func TestForeignDeploymentIsReportedAndKept(t *testing.T) {
	foreignCatalogReference := metav1.OwnerReference{APIVersion: "example.com/v1", Kind: "Catalog", Name: "catalog", UID: "other", Controller: new(true)}
	for name, change := range map[string]func(*appsv1.Deployment){
		"without labels":                    func(*appsv1.Deployment) {},
		"of a Catalog in another API group": func(d *appsv1.Deployment) { d.OwnerReferences = []metav1.OwnerReference{foreignCatalogReference} },
		"of another component":              func(d *appsv1.Deployment) { d.Labels = names.Labels("mlflow") },
	} {
		t.Run(name, func(t *testing.T) {
			foreign := legacyDeployment(resources.DatabaseName, map[string]string{"app": "theirs"})
			foreign.Annotations, foreign.Spec.Strategy.RollingUpdate = nil, &appsv1.RollingUpdateDeployment{}
			change(foreign)
			env := newTakeOverEnv(t, newCatalog(), foreign)
			for range 2 {
				if _, err := env.reconcile(); err != nil {
					t.Fatal(err)
				}
			}
			if kept := mustGet(env, foreign); kept.UID != "old-"+resources.DatabaseName || kept.Spec.Selector.MatchLabels["app"] != "theirs" {
				t.Errorf("the foreign Deployment was replaced: %v", env.writes)
			}
			got, _ := conditions.Get(mustGet(env, newCatalog()).Status.Conditions, ConditionAvailable)
			if got.Status != metav1.ConditionFalse || !strings.Contains(got.Message, "Deployment "+foreign.Namespace+"/"+resources.DatabaseName) {
				t.Errorf("condition %+v, want False with the name of the Deployment", got)
			}
		})
	}
}

// [modelregistry-88] [modelregistry-89] [D24] Legacy objects are deleted if their labels identify the legacy operator.
func TestLegacyObjectsAreDeletedIfLabelled(t *testing.T) {
	all := func() []client.Object {
		return []client.Object{
			&corev1.PersistentVolumeClaim{ObjectMeta: nameMeta(resources.DatabaseName)}, &corev1.ConfigMap{ObjectMeta: nameMeta("model-catalog-default-sources")}, &corev1.Secret{ObjectMeta: nameMeta("model-catalog-oauth-cookie-secret")},
		}
	}
	env := newTakeOverEnv(t, append(all(), newCatalog())...)
	env.reconcileUntilStable()
	for _, o := range all() {
		mustGet(env, o) // has no labels of an operator
		env.update(o, func() { withComponentLabels(o, resources.Name) })
	}
	env.restart()
	env.reconcileUntilStable()
	for _, o := range all() {
		if env.get(o) {
			t.Errorf("%T %s was not deleted", o, o.GetName())
		}
	}
	mustGet(env, &corev1.ConfigMap{ObjectMeta: nameMeta(resources.DefaultSources)})
}

// A foreign Service is not changed, and the condition names its controller.
func TestForeignServiceIsReportedAndKept(t *testing.T) {
	foreign := &corev1.Service{ObjectMeta: nameMeta(resources.Name)}
	foreign.OwnerReferences = []metav1.OwnerReference{{APIVersion: "modelregistry.opendatahub.io/v1beta1", Kind: "ModelRegistry", Name: resources.Name, UID: "mr", Controller: new(true)}}
	env := newTakeOverEnv(t, newCatalog(), foreign)
	result, err := env.reconcile()
	if err != nil || result.RequeueAfter != time.Minute {
		t.Errorf("got %+v, error %v, want a requeue after one minute", result, err)
	}
	got, _ := conditions.Get(mustGet(env, newCatalog()).Status.Conditions, ConditionAvailable)
	if got.Status != metav1.ConditionFalse || !strings.Contains(got.Message, "belongs to ModelRegistry model-catalog") {
		t.Errorf("condition %+v, want False with the owner of the Service", got)
	}
	if len(mustGet(env, foreign).OwnerReferences) != 1 || len(foreign.Labels) > 0 {
		t.Error("the foreign object was changed")
	}
}

// A legacy ClusterRoleBinding without a namespace label belongs to the active Catalog.
func TestFinalizeInactiveCatalog(t *testing.T) {
	binding := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: resources.DelegatorBinding, Labels: map[string]string{resources.LabelCreatedBy: resources.CreatedBy}}}
	env := newTakeOverEnv(t, newCatalog(), binding)
	inactive := newCatalog()
	inactive.Namespace, inactive.UID = "elsewhere", "inactive"
	if err := env.r.finalize(t.Context(), inactive); err != nil {
		t.Fatal(err)
	}
	if !env.get(binding) {
		t.Error("the ClusterRoleBinding was deleted")
	}
}

// The ClusterRoleBinding of a registry or a user is not adopted, and the Catalog reports it.
func TestForeignBinding(t *testing.T) {
	for name, labels := range map[string]map[string]string{
		"of a registry":                  withLegacyLabels(names.Labels("modelregistry"), "model-registry"),
		"of a registry, legacy operator": withLegacyLabels(map[string]string{}, "model-registry"),
		"of a user":                      {"app": "model-catalog"},
	} {
		t.Run(name, func(t *testing.T) {
			binding := &rbacv1.ClusterRoleBinding{
				ObjectMeta: metav1.ObjectMeta{Name: resources.DelegatorBinding, Labels: labels},
				Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "theirs", Name: "model-catalog"}},
			}
			env := newTakeOverEnv(t, newCatalog(), binding)
			env.reconcileUntilStable()
			if !env.get(binding) || binding.Subjects[0].Namespace != "theirs" {
				t.Errorf("subjects %v", binding.Subjects)
			}
			c := newCatalog()
			env.get(c)
			got, _ := conditions.Get(c.Status.Conditions, ConditionAvailable)
			if got.Status != metav1.ConditionFalse || !strings.Contains(got.Message, resources.DelegatorBinding) {
				t.Errorf("condition %v", got)
			}
		})
	}
}

func withLegacyLabels(labels map[string]string, component string) map[string]string {
	labels[resources.LabelCreatedBy], labels[resources.LabelComponent] = resources.CreatedBy, component
	return labels
}

// A foreign HTTPRoute is reported and not adopted.
func TestForeignHTTPRoute(t *testing.T) {
	foreign := httpRouteIn("redhat-ods-applications")
	foreign.SetLabels(map[string]string{"app": "a user"})
	env := newTakeOverEnv(t, newCatalog(), foreign).onOpenShift()
	env.r.settings.Gateway.Domain = "gateway.example.com"
	if _, err := env.reconcile(); err != nil {
		t.Fatal(err)
	}
	if got := mustGet(env, newCatalog()).Status.Conditions[0].Message; !strings.Contains(got, "HTTPRoute redhat-ods-applications/model-catalog") {
		t.Errorf("got message %q, want one with the name of the foreign HTTPRoute", got)
	}
	if mustGet(env, foreign).GetLabels()["app"] != "a user" {
		t.Error("the foreign HTTPRoute was adopted")
	}
}

// [modelregistry-94] [modelregistry-95] The legacy default entry is removed, and malformed sources are kept.
func TestCleanUserSources(t *testing.T) {
	legacy := &corev1.ConfigMap{ObjectMeta: nameMeta(resources.ModelSources), Data: map[string]string{
		resources.SourcesKey: "catalogs:\n- id: default_catalog\n- id: mine\n", "other": "kept",
	}}
	legacy.Annotations = map[string]string{servers.LegacyCopyAnnotation: "x", "theirs": "y"}
	legacy.OwnerReferences = []metav1.OwnerReference{{APIVersion: "components.platform.opendatahub.io/v1alpha1", Kind: "ModelRegistry", Name: "default-modelregistry", UID: "old"}}
	malformed := &corev1.ConfigMap{ObjectMeta: nameMeta(resources.McpSources), Data: map[string]string{resources.SourcesKey: "catalogs: ["}}
	env := newTakeOverEnv(t, newCatalog(), legacy, malformed)
	env.reconcileUntilStable()
	mustGet(env, legacy)
	if legacy.Data[resources.SourcesKey] != "catalogs:\n  - id: mine\n" || legacy.Data["other"] != "kept" || len(legacy.OwnerReferences) > 0 {
		t.Errorf("unexpected data %+v or owner references %v", legacy.Data, legacy.OwnerReferences)
	}
	if _, found := legacy.Annotations[servers.LegacyCopyAnnotation]; found || legacy.Annotations["theirs"] != "y" {
		t.Errorf("unexpected annotations %v", legacy.Annotations)
	}
	if mustGet(env, malformed).Data[resources.SourcesKey] != "catalogs: [" {
		t.Errorf("malformed sources were changed to %q", malformed.Data[resources.SourcesKey])
	}
	env.update(legacy, func() { legacy.Labels = nil }) // in a cluster, this removes it from the cache
	env.reconcileUntilStable()
	if !resources.IsManaged(mustGet(env, legacy)) {
		t.Error("[D8] the managed labels were not restored")
	}
}

const sharedGrantDeletion = "delete ReferenceGrant/" + servers.SharedGrantName

// sharedGrant returns the legacy ReferenceGrant.
func sharedGrant() *unstructured.Unstructured {
	g := &unstructured.Unstructured{}
	g.SetGroupVersionKind(capability.ReferenceGrant)
	g.SetNamespace(newCatalog().Namespace)
	g.SetName(servers.SharedGrantName)
	g.SetLabels(map[string]string{resources.LabelCreatedBy: resources.CreatedBy})
	return g
}

// routeTo returns the HTTPRoute of a registry in a namespace.
func routeTo(namespace string) *unstructured.Unstructured {
	route := &unstructured.Unstructured{}
	route.SetGroupVersionKind(capability.HTTPRoute)
	route.SetNamespace("routes")
	route.SetName("model-registry-demo")
	route.Object["spec"] = map[string]any{"rules": []any{map[string]any{"backendRefs": []any{map[string]any{"name": "demo", "namespace": namespace}}}}}
	return route
}

// newGatewayEnv returns an environment whose API server serves the APIs of gateway mode.
func newGatewayEnv(t *testing.T, domain string) *testEnv {
	env := newTakeOverEnv(t, newCatalog())
	env.served = capability.NewSet(capability.Route, capability.HTTPRoute, capability.ReferenceGrant)
	env.r.settings.Gateway.Domain, env.r.settings.Gateway.RouteNamespace = domain, "routes"
	return env
}

// [D26] The shared ReferenceGrant is deleted when no HTTPRoute of a registry without its own ReferenceGrant refers to the namespace.
func TestSharedGrantIsDeleted(t *testing.T) {
	foreign := sharedGrant()
	foreign.SetLabels(nil)
	for name, test := range map[string]struct {
		domain string
		grant  *unstructured.Unstructured
		route  *unstructured.Unstructured
		want   bool
	}{
		"no registry":                      {"gateway.example.com", sharedGrant(), nil, true},
		"no registry, gateway mode is off": {"", sharedGrant(), nil, true},
		"registry without its own grant":   {"gateway.example.com", sharedGrant(), routeTo(newCatalog().Namespace), false},
		"registry in another namespace":    {"gateway.example.com", sharedGrant(), routeTo("elsewhere"), true},
		"created by another client":        {"gateway.example.com", foreign, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			env := newGatewayEnv(t, test.domain)
			env.create(test.grant)
			if test.route != nil {
				env.create(test.route)
			}
			env.reconcileUntilStable()
			if deleted := !env.get(test.grant); deleted != test.want {
				t.Errorf("shared ReferenceGrant deleted: %t, want %t", deleted, test.want)
			}
			catalogGrant := sharedGrant()
			catalogGrant.SetName(resources.GrantName)
			if got, want := env.get(catalogGrant), test.domain != ""; got != want {
				t.Errorf("ReferenceGrant of the catalog exists: %t, want %t", got, want)
			}
		})
	}
}

// [D26] The deletion of the shared ReferenceGrant is retried until it succeeds. A ReferenceGrant that is created again later is kept.
func TestSharedGrantIsDeletedOnce(t *testing.T) {
	env := newGatewayEnv(t, "gateway.example.com")
	env.create(sharedGrant())
	env.fail = func(verb string) error {
		if verb == "delete" {
			return errBroken
		}
		return nil
	}
	var err error
	for range 5 {
		if _, err = env.reconcile(); err != nil {
			break
		}
	}
	if !errors.Is(err, errBroken) || !slices.Contains(env.writes, sharedGrantDeletion) {
		t.Fatalf("got error %v after writes %v, want a failed deletion", err, env.writes)
	}
	env.fail = func(string) error { return nil }
	env.reconcileUntilStable()
	if env.get(sharedGrant()) {
		t.Error("the shared ReferenceGrant was not deleted")
	}
	env.create(sharedGrant())
	env.reconcileUntilStable()
	if !env.get(sharedGrant()) {
		t.Error("a ReferenceGrant that a user created later was deleted")
	}
}

// [D2] The shared ReferenceGrant is not deleted if the API is not served.
func TestSharedGrantWithoutItsAPI(t *testing.T) {
	env := newGatewayEnv(t, "gateway.example.com")
	env.served = capability.NewSet(capability.Route, capability.HTTPRoute)
	env.create(sharedGrant())
	env.reconcileUntilStable()
	if !env.get(sharedGrant()) {
		t.Error("the shared ReferenceGrant was deleted")
	}
}

func withComponentLabels(o client.Object, component string) client.Object {
	o.SetLabels(map[string]string{resources.LabelComponent: component, resources.LabelCreatedBy: resources.CreatedBy})
	return o
}

// legacyObjects returns the objects of a legacy catalog.
func legacyObjects() []client.Object {
	return []client.Object{
		withComponentLabels(&appsv1.Deployment{ObjectMeta: nameMeta(resources.Name)}, resources.Name), withComponentLabels(&corev1.ServiceAccount{ObjectMeta: nameMeta(resources.Name)}, resources.Name),
		withComponentLabels(&corev1.Secret{ObjectMeta: nameMeta("model-catalog-oauth-cookie-secret")}, resources.Name), withComponentLabels(&corev1.ConfigMap{ObjectMeta: nameMeta(resources.ProxyConfig)}, resources.Name),
		delegatorBinding(resources.Name),
		withComponentLabels(&appsv1.Deployment{ObjectMeta: nameMeta(resources.DatabaseName)}, resources.DatabaseName), withComponentLabels(&corev1.Service{ObjectMeta: nameMeta(resources.DatabaseName)}, resources.DatabaseName),
		withComponentLabels(&corev1.Secret{ObjectMeta: nameMeta(resources.DatabaseName)}, resources.DatabaseName), withComponentLabels(&corev1.PersistentVolumeClaim{ObjectMeta: nameMeta(resources.DatabaseName)}, resources.DatabaseName),
		withComponentLabels(&networkingv1.NetworkPolicy{ObjectMeta: nameMeta(resources.DatabaseName)}, resources.DatabaseName),
	}
}

// leftoverObjects returns the objects of a deleted Catalog before garbage collection.
func leftoverObjects() []client.Object {
	objects := legacyObjects()
	for _, o := range objects {
		o.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(newCatalog(), aihubv1alpha1.GroupVersion.WithKind(aihubv1alpha1.Kind))})
	}
	return objects
}

// [modelregistry-84] If the catalog is disabled, legacy objects are deleted and the sources of users are kept. Missing objects are not an
// error.
func TestBootstrapDeletesLegacyObjects(t *testing.T) {
	disabled := func(s *Settings) { s.EnableModelCatalog, s.Namespace = false, "lab-registries" }
	users := withComponentLabels(&corev1.ConfigMap{ObjectMeta: nameMeta(resources.ModelSources)}, resources.Name)
	foreign := &corev1.Service{ObjectMeta: nameMeta(resources.Name)} // no managed labels
	env := newTakeOverEnv(t, append(legacyObjects(), users, foreign)...)
	for range 2 {
		if err := env.newBootstrap(disabled).run(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for _, o := range legacyObjects() {
		if env.get(o) {
			t.Errorf("%T %s was not deleted", o, o.GetName())
		}
	}
	mustGet(env, users)
	mustGet(env, foreign)

	env = newTakeOverEnv(t, legacyObjects()...)
	if err := env.newBootstrap(func(s *Settings) { s.EnableModelCatalog, s.SkipCatalogDatabase = false, true }).run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if env.get(&appsv1.Deployment{ObjectMeta: nameMeta(resources.Name)}) || !env.get(&corev1.Secret{ObjectMeta: nameMeta(resources.DatabaseName)}) {
		t.Error("without a namespace in the settings, but with SkipCatalogDatabase: want the legacy server deleted and the Secret of the database kept")
	}
}

// If the catalog is disabled, objects that users may have created are kept, because users can set labels.
func TestBootstrapKeepsObjectsOfUsers(t *testing.T) {
	foreign := []client.Object{
		withComponentLabels(&appsv1.Deployment{ObjectMeta: nameMeta(resources.Name)}, resources.Name), withComponentLabels(&corev1.Secret{ObjectMeta: nameMeta(resources.DatabaseName)}, resources.DatabaseName),
	}
	env := newTakeOverEnv(t, foreign...)
	if err := env.newBootstrap(func(s *Settings) { s.EnableModelCatalog = false }).run(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, o := range foreign {
		mustGet(env, o)
	}
}

// A Catalog is created for a legacy catalog in a trusted namespace. Others are reported.
func TestBootstrapAdoptsLegacyCatalog(t *testing.T) {
	sameNamespace := func(s *Settings) { s.Namespace = "lab-registries" }
	otherNamespace := func(s *Settings) { s.Namespace = "another" }
	allNamespaces := func(*Settings) {}
	managerNamespace := func(s *Settings) { s.AdmissionRules.Namespace = "lab-registries" }
	server := func() client.Object {
		return withComponentLabels(&appsv1.Deployment{ObjectMeta: nameMeta(resources.Name)}, resources.Name)
	}
	withBinding := func(change func(*rbacv1.ClusterRoleBinding)) []client.Object {
		binding := delegatorBinding(resources.Name)
		change(binding)
		return []client.Object{server(), binding}
	}
	for name, test := range map[string]struct {
		objects  []client.Object
		settings func(*Settings)
		created  bool
		// reported is true if an Event explains why nothing was adopted.
		reported bool
	}{
		"legacy catalog":                      {legacyObjects(), allNamespaces, true, false},
		"legacy catalog in the namespace":     {legacyObjects(), sameNamespace, true, false},
		"legacy catalog in another namespace": {legacyObjects(), otherNamespace, false, false},
		"objects of a deleted Catalog":        {leftoverObjects(), allNamespaces, false, false},
		"namespace of the manager":            {[]client.Object{server()}, managerNamespace, true, false},
		"only labels of the legacy operator":  {[]client.Object{server()}, allNamespaces, false, true},
		"binding of a registry":               {[]client.Object{server(), delegatorBinding("model-registry")}, allNamespaces, false, true},
		"binding of another namespace":        {withBinding(func(binding *rbacv1.ClusterRoleBinding) { binding.Subjects[0].Namespace = "another" }), allNamespaces, false, true},
		"binding of another ServiceAccount":   {withBinding(func(binding *rbacv1.ClusterRoleBinding) { binding.Subjects[0].Name = "default" }), allNamespaces, false, true},
		"binding to another role":             {withBinding(func(binding *rbacv1.ClusterRoleBinding) { binding.RoleRef.Name = "view" }), allNamespaces, false, true},
		"binding without labels":              {withBinding(func(binding *rbacv1.ClusterRoleBinding) { binding.Labels = nil }), allNamespaces, false, true},
		"binding of this operator":            {withBinding(func(binding *rbacv1.ClusterRoleBinding) { maps.Copy(binding.Labels, names.Labels(ComponentName)) }), allNamespaces, false, true},
		"Deployment of a user":                {[]client.Object{&appsv1.Deployment{ObjectMeta: nameMeta(resources.Name)}}, allNamespaces, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			env := newTakeOverEnv(t, test.objects...)
			if err := env.newBootstrap(test.settings).run(t.Context()); err != nil {
				t.Fatal(err)
			}
			catalog := newCatalog()
			if created := env.get(catalog); created != test.created || created && catalog.Annotations[CreatedAtStart] != "true" {
				t.Errorf("Catalog created: %t with annotations %v, want %t", created, catalog.Annotations, test.created)
			}
			recorded := env.r.takeOver.(*takeover.TakeOver).Recorder.(*events.FakeRecorder).Events
			if reported := len(recorded) == 1; reported != test.reported {
				t.Errorf("got %d Events, want one: %t", len(recorded), test.reported)
			}
		})
	}
}

// If the catalog is disabled, the objects of an existing Catalog are not deleted by name: garbage collection deletes them.
func TestBootstrapKeepsObjectsOfCatalogs(t *testing.T) {
	for _, annotations := range []map[string]string{nil, {CreatedAtStart: "true"}} {
		catalog := newCatalog()
		catalog.Annotations = annotations
		env := newTakeOverEnv(t, append(legacyObjects(), catalog)...)
		if err := env.newBootstrap(func(s *Settings) { s.EnableModelCatalog, s.Namespace = false, "lab-registries" }).run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if exists := env.get(newCatalog()); exists != (annotations == nil) {
			t.Errorf("a Catalog with annotations %v exists: %t", annotations, exists)
		}
		for _, o := range legacyObjects() {
			mustGet(env, o)
		}
	}
}

// [modelregistry-85] An existing Secret keeps its data and gets missing keys.
func TestDatabaseSecretIsAdopted(t *testing.T) {
	existing := &corev1.Secret{ObjectMeta: nameMeta(resources.DatabaseName), Data: map[string][]byte{resources.KeyPassword: []byte("p@ss"), "more": []byte("1")}}
	existing.Annotations = map[string]string{servers.LegacyCopyAnnotation: "the password"}
	env := newTakeOverEnv(t, newCatalog(), existing)
	env.reconcileUntilStable()
	mustGet(env, existing)
	if string(existing.Data[resources.KeyPassword]) != "p@ss" || string(existing.Data[resources.KeyUser]) != "catalog_user" || string(existing.Data["more"]) != "1" {
		t.Errorf("adopted a Secret with unexpected data %v", existing.Data)
	}
	if len(existing.Annotations) > 0 || !metav1.IsControlledBy(existing, mustGet(env, newCatalog())) {
		t.Errorf("unexpected annotations %v or owner references %v", existing.Annotations, existing.OwnerReferences)
	}
}

// [modelregistry-78] The finalizer deletes a legacy HTTPRoute.
func TestFinalizeLegacyHTTPRoute(t *testing.T) {
	legacy := httpRouteIn("elsewhere")
	legacy.SetLabels(map[string]string{resources.LabelCreatedBy: resources.CreatedBy})
	env := newTakeOverEnv(t, newCatalog(), legacy).onOpenShift()
	env.r.settings.Gateway.RouteNamespace = "elsewhere"
	env.reconcileUntilStable()
	env.remove(mustGet(env, newCatalog()))
	if _, err := env.reconcile(); err != nil {
		t.Fatal(err)
	}
	if env.get(legacy) || env.get(newCatalog()) {
		t.Error("the HTTPRoute or the Catalog was not deleted")
	}
}

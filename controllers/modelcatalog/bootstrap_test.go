package modelcatalog

import (
	"context"
	"maps"
	"testing"
	"time"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	aihubv1alpha1 "github.com/odh-platform/odh-platform-operator/apis/aihub/v1alpha1"
	platformv1alpha1 "github.com/odh-platform/odh-platform-operator/apis/platform/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/controllers/modelcatalog/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/aihub"
	"github.com/odh-platform/odh-platform-operator/pkg/names"
)

// newBootstrap changes the settings of the environment and returns a bootstrap with them.
func (env *testEnv) newBootstrap(change func(*Settings)) *bootstrap {
	change(&env.r.settings)
	return &bootstrap{settings: env.r.settings, client: env.r.Cached, apiReader: env.r.APIReader, applier: env.r.Applier,
		recorder: events.NewFakeRecorder(10), clock: env.clock, log: logr.Discard()}
}

func withComponentLabels(o client.Object, component string) client.Object {
	o.SetLabels(map[string]string{resources.LabelComponent: component, resources.LabelCreatedBy: resources.CreatedBy})
	return o
}

// legacyObjects returns the objects of a legacy catalog.
func legacyObjects() []client.Object {
	return []client.Object{
		withComponentLabels(&appsv1.Deployment{ObjectMeta: nameMeta(resources.Name)}, resources.Name), withComponentLabels(&corev1.ServiceAccount{ObjectMeta: nameMeta(resources.Name)}, resources.Name),
		withComponentLabels(&corev1.Secret{ObjectMeta: nameMeta(legacyCookieSecret)}, resources.Name), withComponentLabels(&corev1.ConfigMap{ObjectMeta: nameMeta(resources.ProxyConfig)}, resources.Name),
		legacyBinding(resources.Name),
		withComponentLabels(&appsv1.Deployment{ObjectMeta: nameMeta(resources.DatabaseName)}, resources.DatabaseName), withComponentLabels(&corev1.Service{ObjectMeta: nameMeta(resources.DatabaseName)}, resources.DatabaseName),
		withComponentLabels(&corev1.Secret{ObjectMeta: nameMeta(resources.DatabaseName)}, resources.DatabaseName), withComponentLabels(&corev1.PersistentVolumeClaim{ObjectMeta: nameMeta(resources.DatabaseName)}, resources.DatabaseName),
		withComponentLabels(&networkingv1.NetworkPolicy{ObjectMeta: nameMeta(resources.DatabaseName)}, resources.DatabaseName),
	}
}

// legacyBinding returns the ClusterRoleBinding of a legacy catalog. A registry named model-catalog has one of the same name.
func legacyBinding(component string) *rbacv1.ClusterRoleBinding {
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: resources.DelegatorBinding},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "system:auth-delegator"},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: nameMeta("").Namespace, Name: resources.Name}},
	}
	withComponentLabels(binding, component)
	return binding
}

// leftoverObjects returns the objects of a deleted Catalog before garbage collection.
func leftoverObjects() []client.Object {
	objects := legacyObjects()
	for _, o := range objects {
		o.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(newCatalog(), aihubv1alpha1.GroupVersion.WithKind(aihubv1alpha1.Kind))})
	}
	return objects
}

func TestBootstrapCreatesCatalog(t *testing.T) {
	requested := func(s *Settings) { s.RequestModelCatalog, s.Namespace = true, "lab-registries" }
	sameNamespace := func(s *Settings) { s.Namespace = "lab-registries" }
	otherNamespace := func(s *Settings) { s.Namespace = "another" }
	allNamespaces := func(*Settings) {}
	managerNamespace := func(s *Settings) { s.AdmissionRules.Namespace = "lab-registries" }
	server := func() client.Object {
		return withComponentLabels(&appsv1.Deployment{ObjectMeta: nameMeta(resources.Name)}, resources.Name)
	}
	withBinding := func(change func(*rbacv1.ClusterRoleBinding)) []client.Object {
		binding := legacyBinding(resources.Name)
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
		"requested":                           {nil, requested, true, false},
		"legacy catalog":                      {legacyObjects(), allNamespaces, true, false},
		"legacy catalog in the namespace":     {legacyObjects(), sameNamespace, true, false},
		"legacy catalog in another namespace": {legacyObjects(), otherNamespace, false, false},
		"objects of a deleted Catalog":        {leftoverObjects(), allNamespaces, false, false},
		"not requested":                       {nil, sameNamespace, false, false},
		"namespace of the manager":            {[]client.Object{server()}, managerNamespace, true, false},
		"only labels of the legacy operator":  {[]client.Object{server()}, allNamespaces, false, true},
		"binding of a registry":               {[]client.Object{server(), legacyBinding("model-registry")}, allNamespaces, false, true},
		"binding of another namespace":        {withBinding(func(binding *rbacv1.ClusterRoleBinding) { binding.Subjects[0].Namespace = "another" }), allNamespaces, false, true},
		"binding of another ServiceAccount":   {withBinding(func(binding *rbacv1.ClusterRoleBinding) { binding.Subjects[0].Name = "default" }), allNamespaces, false, true},
		"binding to another role":             {withBinding(func(binding *rbacv1.ClusterRoleBinding) { binding.RoleRef.Name = "view" }), allNamespaces, false, true},
		"binding without labels":              {withBinding(func(binding *rbacv1.ClusterRoleBinding) { binding.Labels = nil }), allNamespaces, false, true},
		"binding of this operator":            {withBinding(func(binding *rbacv1.ClusterRoleBinding) { maps.Copy(binding.Labels, names.Labels(ComponentName)) }), allNamespaces, false, true},
		"Deployment of a user":                {[]client.Object{&appsv1.Deployment{ObjectMeta: nameMeta(resources.Name)}}, allNamespaces, false, false},
		"requested without a namespace":       {nil, func(s *Settings) { s.RequestModelCatalog = true }, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			env, recorder := newTestEnv(t, test.objects...), events.NewFakeRecorder(10)
			runner := env.newBootstrap(test.settings)
			runner.recorder = recorder
			if err := runner.run(t.Context()); err != nil {
				t.Fatal(err)
			}
			catalog := newCatalog()
			if created := env.get(catalog); created != test.created || created && catalog.Annotations[CreatedAtStart] != "true" {
				t.Errorf("Catalog created: %t with annotations %v, want %t", created, catalog.Annotations, test.created)
			}
			if reported := len(recorder.Events) == 1; reported != test.reported {
				t.Errorf("got %d Events, want one: %t", len(recorder.Events), test.reported)
			}
		})
	}
}

func TestBootstrapKeepsCatalogs(t *testing.T) {
	env := newTestEnv(t, append(legacyObjects(), newCatalog())...)
	env.writes = nil
	runner := env.newBootstrap(func(s *Settings) { s.RequestModelCatalog, s.Namespace = true, "lab-registries" })
	if err := runner.run(t.Context()); err != nil || len(env.writes) > 0 {
		t.Errorf("got writes %v and error %v, want none", env.writes, err)
	}
}

// The ClusterRoleBinding of a Catalog whose finalizer was removed is deleted at the next start. The one of an existing or legacy catalog is
// kept.
func TestBootstrapDeletesOrphanedBinding(t *testing.T) {
	for name, test := range map[string]struct {
		component string
		objects   []client.Object
		kept      bool
	}{
		"managed":        {ComponentName, nil, false},
		"legacy":         {"", nil, true},
		"with a Catalog": {ComponentName, []client.Object{newCatalog()}, true},
	} {
		binding := legacyBinding(resources.Name)
		if test.component != "" {
			binding.Labels[names.OperatorLabel], binding.Labels[names.ComponentLabel] = names.OperatorName, test.component
		}
		env := newTestEnv(t, append(test.objects, binding)...)
		if err := env.newBootstrap(func(s *Settings) { s.RequestModelCatalog = false }).run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if exists := env.server.Get(t.Context(), client.ObjectKeyFromObject(binding), binding) == nil; exists != test.kept {
			t.Errorf("%s: the ClusterRoleBinding exists: %t, want %t", name, exists, test.kept)
		}
	}
}

// [modelregistry-84] If the catalog is disabled, legacy objects are deleted and the sources of users are kept. Missing objects are not an
// error.
func TestBootstrapDeletesLegacyObjects(t *testing.T) {
	disabled := func(s *Settings) { s.EnableModelCatalog, s.Namespace = false, "lab-registries" }
	users := withComponentLabels(&corev1.ConfigMap{ObjectMeta: nameMeta(resources.ModelSources)}, resources.Name)
	foreign := &corev1.Service{ObjectMeta: nameMeta(resources.Name)} // no managed labels
	env := newTestEnv(t, append(legacyObjects(), users, foreign)...)
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

	env = newTestEnv(t, legacyObjects()...)
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
	env := newTestEnv(t, foreign...)
	if err := env.newBootstrap(func(s *Settings) { s.EnableModelCatalog = false }).run(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, o := range foreign {
		mustGet(env, o)
	}
}

// If the catalog is disabled, a Catalog created by bootstrap is deleted, and one of a user or an AIHub is kept.
func TestBootstrapDeletesItsCatalog(t *testing.T) {
	disabled := func(s *Settings) { s.EnableModelCatalog, s.Namespace = false, "lab-registries" }
	for name, test := range map[string]struct {
		change func(*aihubv1alpha1.Catalog)
		kept   bool
	}{
		"created at start":  {func(c *aihubv1alpha1.Catalog) { c.Annotations = map[string]string{CreatedAtStart: "true"} }, false},
		"created by a user": {func(*aihubv1alpha1.Catalog) {}, true},
		"adopted by an AIHub": {func(c *aihubv1alpha1.Catalog) {
			c.Annotations = map[string]string{CreatedAtStart: "true"}
			ownedByAIHub(c)
		}, true},
	} {
		catalog := newCatalog()
		test.change(catalog)
		env := newTestEnv(t, append(legacyObjects(), catalog)...)
		if err := env.newBootstrap(disabled).run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if exists := env.get(newCatalog()); exists != test.kept {
			t.Errorf("%s: the Catalog exists: %t, want %t", name, exists, test.kept)
		}
		mustGet(env, &appsv1.Deployment{ObjectMeta: nameMeta(resources.Name)}) // deleted with the Catalog by garbage collection
	}
}

func ownedByAIHub(c *aihubv1alpha1.Catalog) {
	c.OwnerReferences = []metav1.OwnerReference{{APIVersion: aihub.Kind.GroupVersion().String(), Kind: aihub.Kind.Kind, Name: platformv1alpha1.AIHubName, UID: "hub", Controller: new(true)}}
}

// A failed attempt is retried with a backoff until it succeeds or the process ends.
func TestBootstrapRetries(t *testing.T) {
	env := newTestEnv(t)
	attempts := 0
	env.fail = func(verb string) error {
		if verb == "create" {
			if attempts++; attempts < 3 {
				return errBroken
			}
		}
		return nil
	}
	runner := env.newBootstrap(func(s *Settings) { s.RequestModelCatalog, s.Namespace = true, "lab-registries" })
	done := make(chan error, 1)
	go func() { done <- runner.Start(t.Context()) }()
	for {
		select {
		case err := <-done:
			if err != nil || attempts != 3 {
				t.Errorf("got %d attempts and error %v, want 3 and no error", attempts, err)
			}
			mustGet(env, newCatalog())
			return
		default:
			if env.clock.HasWaiters() {
				env.stepClock(time.Minute)
			}
		}
	}
}

func TestBootstrapStops(t *testing.T) {
	env := newTestEnv(t)
	env.fail = failRandomly(1, "create")
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	runner := env.newBootstrap(func(s *Settings) { s.RequestModelCatalog, s.Namespace = true, "lab-registries" })
	go func() { done <- runner.Start(ctx) }()
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

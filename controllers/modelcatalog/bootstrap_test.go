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

// start returns the bootstrap of a process with these settings.
func (b *testEnv) start(change func(*Settings)) *bootstrap {
	change(&b.r.settings)
	return &bootstrap{settings: b.r.settings, client: b.r.Cached, apiReader: b.r.APIReader, applier: b.r.Applier,
		recorder: events.NewFakeRecorder(10), clock: b.clock, log: logr.Discard()}
}

func withComponentLabels(o client.Object, component string) client.Object {
	o.SetLabels(map[string]string{resources.LabelComponent: component, resources.LabelCreatedBy: resources.CreatedBy})
	return o
}

// legacy returns the objects of a legacy catalog.
func legacy() []client.Object {
	return []client.Object{
		withComponentLabels(&appsv1.Deployment{ObjectMeta: nameMeta(resources.Name)}, resources.Name), withComponentLabels(&corev1.ServiceAccount{ObjectMeta: nameMeta(resources.Name)}, resources.Name),
		withComponentLabels(&corev1.Secret{ObjectMeta: nameMeta(legacyCookieSecret)}, resources.Name), withComponentLabels(&corev1.ConfigMap{ObjectMeta: nameMeta(resources.ProxyConfig)}, resources.Name),
		delegation(resources.Name),
		withComponentLabels(&appsv1.Deployment{ObjectMeta: nameMeta(resources.DatabaseName)}, resources.DatabaseName), withComponentLabels(&corev1.Service{ObjectMeta: nameMeta(resources.DatabaseName)}, resources.DatabaseName),
		withComponentLabels(&corev1.Secret{ObjectMeta: nameMeta(resources.DatabaseName)}, resources.DatabaseName), withComponentLabels(&corev1.PersistentVolumeClaim{ObjectMeta: nameMeta(resources.DatabaseName)}, resources.DatabaseName),
		withComponentLabels(&networkingv1.NetworkPolicy{ObjectMeta: nameMeta(resources.DatabaseName)}, resources.DatabaseName),
	}
}

// delegation returns the ClusterRoleBinding of a legacy catalog. A registry named model-catalog has one of the same name.
func delegation(component string) *rbacv1.ClusterRoleBinding {
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
	objects := legacy()
	for _, o := range objects {
		o.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(sample(), aihubv1alpha1.GroupVersion.WithKind(aihubv1alpha1.Kind))})
	}
	return objects
}

func TestBootstrapCreatesCatalog(t *testing.T) {
	requested := func(s *Settings) { s.RequestModelCatalog, s.Namespace = true, "lab-registries" }
	confined := func(s *Settings) { s.Namespace = "lab-registries" }
	otherNamespace := func(s *Settings) { s.Namespace = "another" }
	open := func(*Settings) {}
	home := func(s *Settings) { s.Authors.Namespace = "lab-registries" }
	server := func() client.Object {
		return withComponentLabels(&appsv1.Deployment{ObjectMeta: nameMeta(resources.Name)}, resources.Name)
	}
	with := func(change func(*rbacv1.ClusterRoleBinding)) []client.Object {
		binding := delegation(resources.Name)
		change(binding)
		return []client.Object{server(), binding}
	}
	for name, c := range map[string]struct {
		objects  []client.Object
		settings func(*Settings)
		made     bool
		// reported: an Event explains why nothing was taken over.
		reported bool
	}{
		"requested":                           {nil, requested, true, false},
		"an older catalog runs":               {legacy(), open, true, false},
		"legacy catalog in the namespace":     {legacy(), confined, true, false},
		"legacy catalog in another namespace": {legacy(), otherNamespace, false, false},
		"a Catalog was just deleted":          {leftoverObjects(), open, false, false},
		"not requested":                       {nil, confined, false, false},
		"it runs in the manager's namespace":  {[]client.Object{server()}, home, true, false},
		"only labels of the legacy operator":  {[]client.Object{server()}, open, false, true},
		"a grant for a registry":              {[]client.Object{server(), delegation("model-registry")}, open, false, true},
		"a grant for another namespace":       {with(func(b *rbacv1.ClusterRoleBinding) { b.Subjects[0].Namespace = "another" }), open, false, true},
		"a grant for another account":         {with(func(b *rbacv1.ClusterRoleBinding) { b.Subjects[0].Name = "default" }), open, false, true},
		"a grant of another role":             {with(func(b *rbacv1.ClusterRoleBinding) { b.RoleRef.Name = "view" }), open, false, true},
		"a grant without a mark":              {with(func(b *rbacv1.ClusterRoleBinding) { b.Labels = nil }), open, false, true},
		"grant of this operator":              {with(func(b *rbacv1.ClusterRoleBinding) { maps.Copy(b.Labels, names.Labels(ComponentName)) }), open, false, true},
		"a user's Deployment of the name":     {[]client.Object{&appsv1.Deployment{ObjectMeta: nameMeta(resources.Name)}}, open, false, false},
		"requested without a namespace":       {nil, func(s *Settings) { s.RequestModelCatalog = true }, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			b, recorder := newTestEnv(t, c.objects...), events.NewFakeRecorder(10)
			start := b.start(c.settings)
			start.recorder = recorder
			if err := start.run(t.Context()); err != nil {
				t.Fatal(err)
			}
			made := sample()
			if b.get(made) != c.made || c.made && made.Annotations[CreatedAtStart] != "true" {
				t.Errorf("made %v %v", !c.made, made.Annotations)
			}
			if reported := len(recorder.Events) == 1; reported != c.reported {
				t.Errorf("%d Events", len(recorder.Events))
			}
		})
	}
}

func TestBootstrapKeepsCatalogs(t *testing.T) {
	b := newTestEnv(t, append(legacy(), sample())...)
	b.writes = nil
	start := b.start(func(s *Settings) { s.RequestModelCatalog, s.Namespace = true, "lab-registries" })
	if err := start.run(t.Context()); err != nil || len(b.writes) > 0 {
		t.Errorf("writes %v, %v", b.writes, err)
	}
}

// The ClusterRoleBinding of a Catalog whose finalizer was removed is deleted at the next start; that of an existing or legacy Catalog is
// kept.
func TestBootstrapDeletesOrphanedBinding(t *testing.T) {
	for name, c := range map[string]struct {
		component string
		objects   []client.Object
		stays     bool
	}{
		"managed":             {ComponentName, nil, false},
		"of an older program": {"", nil, true},
		"with a Catalog":      {ComponentName, []client.Object{sample()}, true},
	} {
		binding := delegation(resources.Name)
		if c.component != "" {
			binding.Labels[names.OperatorLabel], binding.Labels[names.ComponentLabel] = names.OperatorName, c.component
		}
		b := newTestEnv(t, append(c.objects, binding)...)
		if err := b.start(func(s *Settings) { s.RequestModelCatalog = false }).run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if left := b.server.Get(t.Context(), client.ObjectKeyFromObject(binding), binding) == nil; left != c.stays {
			t.Errorf("%s: the binding is there: %t", name, left)
		}
	}
}

// [modelregistry-84] If disabled, legacy objects are deleted and the sources of users are kept; missing objects are not an error.
func TestBootstrapDeletesLegacyObjects(t *testing.T) {
	off := func(s *Settings) { s.EnableModelCatalog, s.Namespace = false, "lab-registries" }
	users := withComponentLabels(&corev1.ConfigMap{ObjectMeta: nameMeta(resources.ModelSources)}, resources.Name)
	foreign := &corev1.Service{ObjectMeta: nameMeta(resources.Name)} // no managed labels
	b := newTestEnv(t, append(legacy(), users, foreign)...)
	for range 2 {
		if err := b.start(off).run(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for _, o := range legacy() {
		if b.get(o) {
			t.Errorf("%T %s is left", o, o.GetName())
		}
	}
	must(b, users)
	must(b, foreign)

	b = newTestEnv(t, legacy()...)
	if err := b.start(func(s *Settings) { s.EnableModelCatalog, s.SkipCatalogDatabase = false, true }).run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if b.get(&appsv1.Deployment{ObjectMeta: nameMeta(resources.Name)}) || !b.get(&corev1.Secret{ObjectMeta: nameMeta(resources.DatabaseName)}) {
		t.Error("without a namespace in the settings: want the legacy server deleted and the foreign Secret kept")
	}
}

// If disabled, objects that users may have created are kept: users can set labels.
func TestBootstrapKeepsObjectsOfUsers(t *testing.T) {
	foreign := []client.Object{
		withComponentLabels(&appsv1.Deployment{ObjectMeta: nameMeta(resources.Name)}, resources.Name), withComponentLabels(&corev1.Secret{ObjectMeta: nameMeta(resources.DatabaseName)}, resources.DatabaseName),
	}
	b := newTestEnv(t, foreign...)
	if err := b.start(func(s *Settings) { s.EnableModelCatalog = false }).run(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, o := range foreign {
		must(b, o)
	}
}

// If disabled, a Catalog created by bootstrap is deleted; that of a user or an AIHub is kept.
func TestBootstrapDeletesItsCatalog(t *testing.T) {
	off := func(s *Settings) { s.EnableModelCatalog, s.Namespace = false, "lab-registries" }
	for name, c := range map[string]struct {
		change func(*aihubv1alpha1.Catalog)
		stays  bool
	}{
		"created at start":  {func(c *aihubv1alpha1.Catalog) { c.Annotations = map[string]string{CreatedAtStart: "true"} }, false},
		"created by a user": {func(*aihubv1alpha1.Catalog) {}, true},
		"adopted by an AIHub": {func(c *aihubv1alpha1.Catalog) {
			c.Annotations = map[string]string{CreatedAtStart: "true"}
			withOwnImages(c)
		}, true},
	} {
		catalog := sample()
		c.change(catalog)
		b := newTestEnv(t, append(legacy(), catalog)...)
		if err := b.start(off).run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if b.get(sample()) != c.stays {
			t.Errorf("%s: stays %v", name, !c.stays)
		}
		must(b, &appsv1.Deployment{ObjectMeta: nameMeta(resources.Name)}) // it belongs to the Catalog
	}
}

func withOwnImages(c *aihubv1alpha1.Catalog) {
	c.OwnerReferences = []metav1.OwnerReference{{APIVersion: aihub.Kind.GroupVersion().String(), Kind: aihub.Kind.Kind, Name: platformv1alpha1.AIHubName, UID: "hub", Controller: new(true)}}
}

// A failed start is retried with pauses until it succeeds or the process ends.
func TestBootstrapRetries(t *testing.T) {
	b := newTestEnv(t)
	attempts := 0
	b.fail = func(verb string) error {
		if verb == "create" {
			if attempts++; attempts < 3 {
				return errBroken
			}
		}
		return nil
	}
	start := b.start(func(s *Settings) { s.RequestModelCatalog, s.Namespace = true, "lab-registries" })
	done := make(chan error, 1)
	go func() { done <- start.Start(t.Context()) }()
	for {
		select {
		case err := <-done:
			if err != nil || attempts != 3 {
				t.Errorf("%d attempts, %v", attempts, err)
			}
			must(b, sample())
			return
		default:
			if b.clock.HasWaiters() {
				b.stepClock(time.Minute)
			}
		}
	}
}

func TestBootstrapStops(t *testing.T) {
	b := newTestEnv(t)
	b.fail = failRandomly(1, "create")
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	start := b.start(func(s *Settings) { s.RequestModelCatalog, s.Namespace = true, "lab-registries" })
	go func() { done <- start.Start(ctx) }()
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

package modelcatalog

import (
	"context"
	"testing"
	"time"

	"github.com/go-logr/logr"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
	if env.newTakeOver != nil {
		env.r.takeOver = env.newTakeOver()
	}
	return &bootstrap{settings: env.r.settings, client: env.r.Cached, apiReader: env.r.APIReader, applier: env.r.Applier,
		takeOver: env.r.takeOver, clock: env.clock, log: logr.Discard()}
}

// delegatorBinding returns the ClusterRoleBinding of a catalog without the labels of this operator. A registry named model-catalog has one
// of the same name.
func delegatorBinding(component string) *rbacv1.ClusterRoleBinding {
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: resources.DelegatorBinding, Labels: map[string]string{
			resources.LabelComponent: component, resources.LabelCreatedBy: resources.CreatedBy,
		}},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "system:auth-delegator"},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: nameMeta("").Namespace, Name: resources.Name}},
	}
	return binding
}

func TestBootstrapCreatesCatalog(t *testing.T) {
	for name, test := range map[string]struct {
		settings func(*Settings)
		created  bool
	}{
		"requested":                     {func(s *Settings) { s.RequestModelCatalog, s.Namespace = true, "lab-registries" }, true},
		"not requested":                 {func(s *Settings) { s.Namespace = "lab-registries" }, false},
		"requested without a namespace": {func(s *Settings) { s.RequestModelCatalog = true }, false},
	} {
		t.Run(name, func(t *testing.T) {
			env := newTestEnv(t)
			if err := env.newBootstrap(test.settings).run(t.Context()); err != nil {
				t.Fatal(err)
			}
			catalog := newCatalog()
			if created := env.get(catalog); created != test.created || created && catalog.Annotations[CreatedAtStart] != "true" {
				t.Errorf("Catalog created: %t with annotations %v, want %t", created, catalog.Annotations, test.created)
			}
		})
	}
}

func TestBootstrapKeepsCatalogs(t *testing.T) {
	env := newTestEnv(t, newCatalog())
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
		binding := delegatorBinding(resources.Name)
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
		env := newTestEnv(t, catalog)
		if err := env.newBootstrap(disabled).run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if exists := env.get(newCatalog()); exists != test.kept {
			t.Errorf("%s: the Catalog exists: %t, want %t", name, exists, test.kept)
		}
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

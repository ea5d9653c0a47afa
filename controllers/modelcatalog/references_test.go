package modelcatalog

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	aihubv1alpha1 "github.com/odh-platform/odh-platform-operator/apis/aihub/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/controllers/modelcatalog/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/names"
	"github.com/odh-platform/odh-platform-operator/pkg/reference"
	"github.com/odh-platform/odh-platform-operator/pkg/servers"
	"github.com/odh-platform/odh-platform-operator/pkg/status/conditions"
	"github.com/odh-platform/odh-platform-operator/test/registrytest"
)

// The references contain all variables from Secrets, except those of an external database, whose Secret RBAC does not allow to read.
func TestSecretVariablesAreReferenced(t *testing.T) {
	for _, c := range []*aihubv1alpha1.Catalog{
		newCatalog(), newCatalog(withExternalDatabase(aihubv1alpha1.ExternalDatabase{Host: "h", SecretName: "db"})),
		newCatalog(withDatabase(aihubv1alpha1.CatalogDatabase{Connection: &aihubv1alpha1.DatabaseConnection{SecretName: "db"}})),
	} {
		env := newTestEnv(t, c)
		env.reconcileUntilStable()
		for _, name := range []string{resources.Name, resources.DatabaseName} {
			d := &appsv1.Deployment{ObjectMeta: nameMeta(name)}
			if !env.get(d) {
				continue
			}
			var read []reference.Reference
			for i := range d.Spec.Template.Spec.Containers {
				read = append(read, servers.EnvReferences(d.Spec.Template.Spec.Containers[i].Env)...)
				read = append(read, servers.EnvFromReferences(d.Spec.Template.Spec.Containers[i].EnvFrom)...)
			}
			want := slices.DeleteFunc(reference.Merge(read), func(r reference.Reference) bool { return r.Name == "db" })
			if diff := cmp.Diff(want, reference.Merge(deploymentReferences(c, name))); diff != "" {
				t.Errorf("%s (-variables +references):\n%s", name, diff)
			}
		}
	}
}

// takeRollouts returns the Deployments whose pods were replaced for a reference since the last call.
func (env *testEnv) takeRollouts() []string {
	env.Helper()
	var names []string
	for _, name := range []string{resources.Name, resources.DatabaseName} {
		d := &appsv1.Deployment{ObjectMeta: nameMeta(name)}
		if !env.get(d) {
			continue
		}
		if hash := d.Spec.Template.Annotations[reference.RolloutAnnotation]; hash != "" && hash != env.rollouts[name] {
			names = append(names, name)
			env.rollouts[name] = hash
		}
	}
	return names
}

// [W2]
func TestPodsRollWhenReferencesChange(t *testing.T) {
	env := newTestEnv(t, newCatalog(), &corev1.Secret{ObjectMeta: nameMeta("db"), Data: map[string][]byte{resources.KeyPassword: []byte("a"), resources.KeyUser: []byte("u"), resources.KeyDatabase: []byte("d")}})
	env.reconcileUntilStable()
	managed, external := &corev1.Secret{ObjectMeta: nameMeta(resources.DatabaseName)}, &corev1.Secret{ObjectMeta: nameMeta("db")}
	sources, server := &corev1.ConfigMap{ObjectMeta: nameMeta(resources.ModelSources)}, &appsv1.Deployment{ObjectMeta: nameMeta(resources.Name)}
	c := newCatalog()
	for _, step := range []struct {
		name string
		do   func()
		want []string
	}{
		{"new Catalog", func() {}, nil},
		{"restart of the manager", env.restart, nil},
		{"changed password", func() { env.update(managed, func() { managed.Data[resources.KeyPassword] = []byte("rotated") }) }, []string{resources.Name, resources.DatabaseName}},
		{"no change", func() {}, nil},
		{"key that no pod reads", func() { env.update(managed, func() { managed.Data["note"] = []byte("x") }) }, nil},
		{"sources, which the server reloads", func() { env.update(sources, func() { sources.Data[resources.SourcesKey] = "catalogs: [] # mine\n" }) }, nil},
		{"Secret that is not referenced", func() { env.update(external, func() { external.Data[resources.KeyPassword] = []byte("b") }) }, nil},
		{"restart without recorded hashes", func() {
			env.update(server, func() { delete(server.Annotations, reference.HashesAnnotation) })
			env.restart()
		}, nil},
		{"changed password after that", func() { env.update(managed, func() { managed.Data[resources.KeyPassword] = []byte("again") }) }, []string{resources.Name, resources.DatabaseName}},
		{"external database", func() {
			env.update(c, func() { withExternalDatabase(aihubv1alpha1.ExternalDatabase{Host: "db", SecretName: "db"})(&c.Spec) })
		}, nil},
		{"password of the external database", func() { env.update(external, func() { external.Data[resources.KeyPassword] = []byte("c") }) }, nil},
		{"managed database again", func() { env.update(c, func() { c.Spec = aihubv1alpha1.CatalogSpec{} }) }, nil},
		{"changed label", func() { env.update(managed, func() { managed.Labels["theirs"] = "1" }) }, nil},
		{"Deployment without the managed label", func() { env.update(server, func() { delete(server.Labels, names.OperatorLabel) }) }, nil},
		{"changed user", func() { env.update(managed, func() { managed.Data[resources.KeyUser] = []byte("another") }) }, []string{resources.Name, resources.DatabaseName}},
	} {
		step.do()
		env.reconcileUntilStable()
		if got := env.takeRollouts(); !slices.Equal(got, step.want) {
			t.Errorf("%s: got rollouts of %v, want %v", step.name, got, step.want)
		}
	}
	if mustGet(env, server).Annotations[reference.HashesAnnotation] == "" {
		t.Error("the Deployment has no annotation with the hashes of its references")
	}
}

// Pods must not start with unknown content of their references.
func TestUnreadableReferencesAreAnError(t *testing.T) {
	env := newTestEnv(t, newCatalog())
	env.reconcileUntilStable()
	env.restart()
	env.fail = func(verb string) error {
		if verb == "get" {
			return errBroken
		}
		return nil
	}
	objects := resources.Build(newCatalog(), kubernetesInputs())
	if err := env.r.applyRolloutHashes(t.Context(), newCatalog(), objects); err == nil {
		t.Error("got no error, although the references cannot be read")
	}
}

// Missing objects and keys of users are reported until they exist. Managed objects are created instead.
func TestMissingReferences(t *testing.T) {
	env := newTestEnv(t, newCatalog())
	secret := &corev1.Secret{ObjectMeta: nameMeta(resources.DatabaseName), Data: map[string][]byte{resources.KeyDatabase: []byte("d"), resources.KeyUser: []byte("u"), resources.KeyPassword: []byte("p")}}
	sources := &corev1.ConfigMap{ObjectMeta: nameMeta(resources.ModelSources)}
	c := newCatalog()
	for _, step := range []struct {
		name string
		do   func()
		want string
	}{
		{"new Catalog", func() {}, ""},
		{"managed Secret deleted", func() { env.remove(secret.DeepCopy()) }, ""},
		{"sources without their key", func() {
			env.update(sources, func() { sources.Data = map[string]string{"source.yaml": "catalogs: []"} })
		},
			"In namespace lab-registries: ConfigMap model-catalog-sources has no key sources.yaml; add it"},
		{"external database, Secret deleted", func() {
			env.update(c, func() {
				withExternalDatabase(aihubv1alpha1.ExternalDatabase{Host: "db", SecretName: resources.DatabaseName})(&c.Spec)
			})
			env.remove(secret.DeepCopy())
		}, "In namespace lab-registries: ConfigMap model-catalog-sources has no key sources.yaml; add it; Secret model-catalog-postgres does not exist; create it"},
		{"key and Secret created", func() {
			env.update(sources, func() { sources.Data = map[string]string{resources.SourcesKey: "catalogs: []"} })
			env.create(secret.DeepCopy())
		}, ""},
		{"Secret without the user", func() { env.update(secret, func() { delete(secret.Data, resources.KeyUser) }) },
			"In namespace lab-registries: Secret model-catalog-postgres has no key database-user; add it"},
		{"Secret that RBAC does not allow to read", func() { env.update(c, func() { c.Spec.Database.External.SecretName = "theirs" }) }, ""},
	} {
		step.do()
		env.reconcileUntilStable()
		got, _ := conditions.Get(mustGet(env, newCatalog()).Status.Conditions, reference.Condition)
		if got.Message != step.want || (got.Status == metav1.ConditionFalse) != (step.want != "") {
			t.Errorf("%s: condition %+v, want %q", step.name, got, step.want)
		}
	}
}

// Missing ConfigMaps and Secrets of spec.pods are reported until they exist. The controller does not watch them. Without permission to list
// them, they count as found.
func TestMissingVolumes(t *testing.T) {
	env := newTestEnv(t, newCatalog(func(s *aihubv1alpha1.CatalogSpec) { s.Pods = registrytest.Placed() }))
	for _, step := range []struct {
		name string
		do   func()
		want string
	}{
		{"all missing", func() {}, "In namespace lab-registries: ConfigMap authorities does not exist; create it; Secret client does not exist; create it; Secret mirror does not exist; create it"},
		{"ConfigMap created", func() { env.create(&corev1.ConfigMap{ObjectMeta: nameMeta("authorities")}) }, "In namespace lab-registries: Secret client does not exist; create it; Secret mirror does not exist; create it"},
		{"Secrets created", func() {
			env.create(&corev1.Secret{ObjectMeta: nameMeta("client")})
			env.create(&corev1.Secret{ObjectMeta: nameMeta("mirror")})
		}, ""},
	} {
		step.do()
		env.reconcileUntilStable()
		if got, _ := conditions.Get(mustGet(env, newCatalog()).Status.Conditions, reference.Condition); got.Message != step.want {
			t.Errorf("%s: condition %q, want %q", step.name, got.Message, step.want)
		}
	}
	env.remove(&corev1.Secret{ObjectMeta: nameMeta("mirror")})
	findMissing := func() ([]reference.Missing, error) {
		c := mustGet(env, newCatalog())
		return env.r.References.FindMissing(t.Context(), c.Namespace, servers.PodReferences(&c.Spec.Pods), func(ref reference.Reference) (bool, error) { return env.r.exists(t.Context(), c, ref) })
	}
	env.r.APIReader = nil
	if missing, err := findMissing(); err != nil || missing != nil {
		t.Errorf("got missing objects %v, error %v within the TTL, want none", missing, err)
	}
	env.r.forget(mustGet(env, newCatalog()).UID)
	env.r.APIReader = env.server
	if missing, err := findMissing(); err != nil || len(missing) != 1 {
		t.Errorf("got missing objects %v, error %v after a restart, want one", missing, err)
	}
	env.r.APIReader = forbiddenLister{env.server}
	if missing, err := findMissing(); err != nil || missing != nil {
		t.Errorf("got missing objects %v, error %v without the permission to list, want none", missing, err)
	}
}

// forbiddenLister is a reader without permission to list.
type forbiddenLister struct{ client.Reader }

func (forbiddenLister) List(context.Context, client.ObjectList, ...client.ListOption) error {
	return apierrors.NewForbidden(corev1.Resource("secrets"), "", errors.New("no permission"))
}

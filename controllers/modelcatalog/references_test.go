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
	"github.com/odh-platform/odh-platform-operator/pkg/status/conditions"
	"github.com/odh-platform/odh-platform-operator/test/registrytest"
)

// References are every variable from a Secret, except one of an external database, which the catalog may not read.
func TestSecretVariablesAreReferenced(t *testing.T) {
	for _, c := range []*aihubv1alpha1.Catalog{
		sample(), sample(withExternal(aihubv1alpha1.ExternalDatabase{Host: "h", SecretName: "db"})),
		sample(withDatabase(aihubv1alpha1.CatalogDatabase{Connection: &aihubv1alpha1.DatabaseConnection{SecretName: "db"}})),
	} {
		b := newTestEnv(t, c)
		b.reconcileUntilStable()
		for _, name := range []string{resources.Name, resources.DatabaseName} {
			d := &appsv1.Deployment{ObjectMeta: nameMeta(name)}
			if !b.get(d) {
				continue
			}
			var read []reference.Reference
			for i := range d.Spec.Template.Spec.Containers {
				read = append(read, reference.OfEnv(d.Spec.Template.Spec.Containers[i].Env)...)
				read = append(read, reference.OfEnvFrom(d.Spec.Template.Spec.Containers[i].EnvFrom)...)
			}
			want := slices.DeleteFunc(reference.Merge(read), func(r reference.Reference) bool { return r.Name == "db" })
			if diff := cmp.Diff(want, reference.Merge(deploymentReferences(c, name))); diff != "" {
				t.Errorf("%s (-reads +followed):\n%s", name, diff)
			}
		}
	}
}

// rolled returns the Deployments whose pods were replaced for a reference, and resets the list.
func (b *testEnv) rolled() []string {
	b.Helper()
	var names []string
	for _, name := range []string{resources.Name, resources.DatabaseName} {
		d := &appsv1.Deployment{ObjectMeta: nameMeta(name)}
		if !b.get(d) {
			continue
		}
		if now := d.Spec.Template.Annotations[reference.RolloutAnnotation]; now != "" && now != b.rollouts[name] {
			names = append(names, name)
			b.rollouts[name] = now
		}
	}
	return names
}

// [W2]
func TestPodsRollWhenReferencesChange(t *testing.T) {
	b := newTestEnv(t, sample(), &corev1.Secret{ObjectMeta: nameMeta("db"), Data: map[string][]byte{resources.KeyPassword: []byte("a"), resources.KeyUser: []byte("u"), resources.KeyDatabase: []byte("d")}})
	b.reconcileUntilStable()
	own, other := &corev1.Secret{ObjectMeta: nameMeta(resources.DatabaseName)}, &corev1.Secret{ObjectMeta: nameMeta("db")}
	sources, server := &corev1.ConfigMap{ObjectMeta: nameMeta(resources.ModelSources)}, &appsv1.Deployment{ObjectMeta: nameMeta(resources.Name)}
	c := sample()
	for _, step := range []struct {
		name string
		do   func()
		want []string
	}{
		{"a new catalog", func() {}, nil},
		{"a restart", b.restart, nil},
		{"a password", func() { b.update(own, func() { own.Data[resources.KeyPassword] = []byte("rotated") }) }, []string{resources.Name, resources.DatabaseName}},
		{"nothing since", func() {}, nil},
		{"a key that no pod reads", func() { b.update(own, func() { own.Data["note"] = []byte("x") }) }, nil},
		{"sources, which the server reads by itself", func() { b.update(sources, func() { sources.Data[resources.SourcesKey] = "catalogs: [] # mine\n" }) }, nil},
		{"a Secret that is not its own", func() { b.update(other, func() { other.Data[resources.KeyPassword] = []byte("b") }) }, nil},
		{"the manager of before, which recorded nothing", func() {
			b.update(server, func() { delete(server.Annotations, reference.HashesAnnotation) })
			b.restart()
		}, nil},
		{"a password after that", func() { b.update(own, func() { own.Data[resources.KeyPassword] = []byte("again") }) }, []string{resources.Name, resources.DatabaseName}},
		{"another database", func() {
			b.update(c, func() { withExternal(aihubv1alpha1.ExternalDatabase{Host: "db", SecretName: "db"})(&c.Spec) })
		}, nil},
		{"the password of that, which the catalog may not read", func() { b.update(other, func() { other.Data[resources.KeyPassword] = []byte("c") }) }, nil},
		{"its own again", func() { b.update(c, func() { c.Spec = aihubv1alpha1.CatalogSpec{} }) }, nil},
		{"a label", func() { b.update(own, func() { own.Labels["theirs"] = "1" }) }, nil},
		{"a Deployment that lost our label", func() { b.update(server, func() { delete(server.Labels, names.OperatorLabel) }) }, nil},
		{"the user", func() { b.update(own, func() { own.Data[resources.KeyUser] = []byte("another") }) }, []string{resources.Name, resources.DatabaseName}},
	} {
		step.do()
		b.reconcileUntilStable()
		if got := b.rolled(); !slices.Equal(got, step.want) {
			t.Errorf("%s: rolled %v, want %v", step.name, got, step.want)
		}
	}
	if must(b, server).Annotations[reference.HashesAnnotation] == "" {
		t.Error("the Deployment has no annotation with the hashes of its references")
	}
}

func TestReferencesCoverPodVolumes(t *testing.T) {
	b := newTestEnv(t, sample())
	b.reconcileUntilStable()
	b.restart()
	b.fail = func(verb string) error {
		if verb == "get" {
			return errors.New("not now")
		}
		return nil
	}
	objects := resources.Build(sample(), kubernetes())
	if err := b.r.applyRolloutHashes(t.Context(), sample(), objects); err == nil {
		t.Error("want an error while references cannot be read, so that no pod starts with unknown content")
	}
}

// Missing objects of users are reported until they exist. Managed objects are created instead.
func TestMissingReferences(t *testing.T) {
	b := newTestEnv(t, sample())
	own := &corev1.Secret{ObjectMeta: nameMeta(resources.DatabaseName), Data: map[string][]byte{resources.KeyDatabase: []byte("d"), resources.KeyUser: []byte("u"), resources.KeyPassword: []byte("p")}}
	sources := &corev1.ConfigMap{ObjectMeta: nameMeta(resources.ModelSources)}
	c := sample()
	for _, step := range []struct {
		name string
		do   func()
		want string
	}{
		{"a new catalog", func() {}, ""},
		{"its own Secret goes", func() { b.remove(own.DeepCopy()) }, ""},
		{"sources without their key", func() { b.update(sources, func() { sources.Data = map[string]string{"source.yaml": "catalogs: []"} }) },
			"In namespace lab-registries: ConfigMap model-catalog-sources has no key sources.yaml; add it"},
		{"a database elsewhere", func() {
			b.update(c, func() {
				withExternal(aihubv1alpha1.ExternalDatabase{Host: "db", SecretName: resources.DatabaseName})(&c.Spec)
			})
			b.remove(own.DeepCopy())
		}, "In namespace lab-registries: ConfigMap model-catalog-sources has no key sources.yaml; add it; Secret model-catalog-postgres does not exist; create it"},
		{"both again", func() {
			b.update(sources, func() { sources.Data = map[string]string{resources.SourcesKey: "catalogs: []"} })
			b.create(own.DeepCopy())
		}, ""},
		{"without the user", func() { b.update(own, func() { delete(own.Data, resources.KeyUser) }) },
			"In namespace lab-registries: Secret model-catalog-postgres has no key database-user; add it"},
		{"a Secret that the catalog may not read", func() { b.update(c, func() { c.Spec.Database.External.SecretName = "theirs" }) }, ""},
	} {
		step.do()
		b.reconcileUntilStable()
		got, _ := conditions.Get(must(b, sample()).Status.Conditions, reference.Condition)
		if got.Message != step.want || (got.Status == metav1.ConditionFalse) != (step.want != "") {
			t.Errorf("%s: condition %+v, want %q", step.name, got, step.want)
		}
	}
}

// Missing volumes are reported until they exist, which is detected without an event. Without permission to list Secrets, they count as
// found.
func TestMissingVolumes(t *testing.T) {
	b := newTestEnv(t, sample(func(s *aihubv1alpha1.CatalogSpec) { s.Pods = registrytest.Placed() }))
	for _, step := range []struct {
		name string
		do   func()
		want string
	}{
		{"nothing is there", func() {}, "In namespace lab-registries: ConfigMap authorities does not exist; create it; Secret client does not exist; create it; Secret mirror does not exist; create it"},
		{"one comes", func() { b.create(&corev1.ConfigMap{ObjectMeta: nameMeta("authorities")}) }, "In namespace lab-registries: Secret client does not exist; create it; Secret mirror does not exist; create it"},
		{"the others", func() {
			b.create(&corev1.Secret{ObjectMeta: nameMeta("client")})
			b.create(&corev1.Secret{ObjectMeta: nameMeta("mirror")})
		}, ""},
	} {
		step.do()
		b.reconcileUntilStable()
		if got, _ := conditions.Get(must(b, sample()).Status.Conditions, reference.Condition); got.Message != step.want {
			t.Errorf("%s: condition %q, want %q", step.name, got.Message, step.want)
		}
	}
	b.remove(&corev1.Secret{ObjectMeta: nameMeta("mirror")})
	findMissing := func() ([]reference.Missing, error) {
		c := must(b, sample())
		return b.r.References.FindMissing(t.Context(), c.Namespace, reference.OfPods(&c.Spec.Pods), func(ref reference.Reference) (bool, error) { return b.r.exists(t.Context(), c, ref) })
	}
	b.r.APIReader = nil
	if absent, err := findMissing(); err != nil || absent != nil {
		t.Errorf("what was found a moment ago is looked for again: %v, %v", absent, err)
	}
	b.r.forget(must(b, sample()).UID)
	b.r.APIReader = b.server
	if absent, err := findMissing(); err != nil || len(absent) != 1 {
		t.Errorf("got missing volumes %v, error %v after a restart, want one", absent, err)
	}
	b.r.APIReader = refusing{b.server}
	if absent, err := findMissing(); err != nil || absent != nil {
		t.Errorf("got missing volumes %v, error %v without the permission to list, want none", absent, err)
	}
}

// refusing rejects lists.
type refusing struct{ client.Reader }

func (refusing) List(context.Context, client.ObjectList, ...client.ListOption) error {
	return apierrors.NewForbidden(corev1.Resource("secrets"), "", errors.New("no right"))
}

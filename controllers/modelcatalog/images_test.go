package modelcatalog

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"

	aihubv1alpha1 "github.com/odh-platform/odh-platform-operator/apis/aihub/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/controllers/modelcatalog/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/status/conditions"
)

// imagesOf returns the data images in order.
func imagesOf(t *testing.T, c *aihubv1alpha1.Catalog, in resources.Inputs) []string {
	t.Helper()
	var images []string
	for _, container := range serverOf(t, c, in).Spec.Template.Spec.InitContainers {
		images = append(images, container.Image)
	}
	return images
}

// The version replaces tag and digest of the default image. [modelregistry-121]
func TestDataImages(t *testing.T) {
	for _, test := range []struct{ image, version, want string }{
		{"quay.io/example/data:v1", "", "quay.io/example/data:v1"},
		{"quay.io/example/data:v1", "  ", "quay.io/example/data:v1"},
		{"quay.io/example/data:v1", "v2.1", "quay.io/example/data:v2.1"},
		{"quay.io/example/data:v1", " v2.1\n", "quay.io/example/data:v2.1"},
		{"quay.io/example/data:v1", digest, "quay.io/example/data@" + digest},
		{"quay.io/example/data", "sha256", "quay.io/example/data:sha256"},
		{"quay.io/example/data@" + digest, "v2", "quay.io/example/data:v2"},
		{"quay.io/example/data:v1@" + digest, "v2", "quay.io/example/data:v2"},
		{"registry:5000/data", "v2", "registry:5000/data:v2"},
		{"registry:5000/data:v1", digest, "registry:5000/data@" + digest},
		{"registry:5000/a/b@" + digest, "v2", "registry:5000/a/b:v2"},
		{"data:v1", "v2", "data:v2"},
	} {
		in := kubernetesInputs()
		in.Images.CatalogData, in.Images.BenchmarkData = test.image, test.image
		first := imagesOf(t, newCatalog(func(s *aihubv1alpha1.CatalogSpec) { s.CatalogDataImage = test.version }), in)
		second := imagesOf(t, newCatalog(func(s *aihubv1alpha1.CatalogSpec) { s.BenchmarkDataImage = test.version }), in)
		if first[0] != test.want || first[1] != test.image || second[0] != test.image || second[1] != test.want {
			t.Errorf("version %q of image %s: got images %v and %v, want %s", test.version, test.image, first, second, test.want)
		}
	}
}

// An invalid version is reported in the status and changes no object. [modelregistry-122]
func TestInvalidImageVersions(t *testing.T) {
	for _, invalid := range []string{
		"quay.io/other/data:v1", "v1@" + digest, "sha256:abc", "sha512:" + strings.Repeat("a", 64), strings.ToUpper(digest), ".v1", "v 1", strings.Repeat("v", 129),
	} {
		for field, set := range map[string]func(*aihubv1alpha1.CatalogSpec){
			"spec.catalogDataImage":   func(s *aihubv1alpha1.CatalogSpec) { s.CatalogDataImage = invalid },
			"spec.benchmarkDataImage": func(s *aihubv1alpha1.CatalogSpec) { s.BenchmarkDataImage = invalid },
		} {
			err := resources.CheckImages(newCatalog(set))
			if err == nil || !strings.Contains(err.Error(), field) || !strings.Contains(err.Error(), invalid) || !strings.Contains(err.Error(), "must be the digest") {
				t.Errorf("%s %q: got error %v, want one with the field and the value", field, invalid, err)
			}
		}
	}
	for range 20 { // the order of a map would be random
		err := resources.CheckImages(newCatalog(func(s *aihubv1alpha1.CatalogSpec) { s.CatalogDataImage, s.BenchmarkDataImage = "v 1", "v 1" }))
		if err == nil || !strings.HasPrefix(err.Error(), "spec.catalogDataImage ") {
			t.Fatalf("two invalid versions: got error %v, want always one for spec.catalogDataImage", err)
		}
	}
	env := newTestEnv(t, newCatalog(func(s *aihubv1alpha1.CatalogSpec) { s.CatalogDataImage = "v2" }))
	env.reconcileUntilStable()
	server, c := &appsv1.Deployment{ObjectMeta: nameMeta(resources.Name)}, newCatalog()
	generation := mustGet(env, server).Generation
	env.update(c, func() { c.Spec.CatalogDataImage = "quay.io/other/data:v1" })
	env.reconcileUntilStable()
	got, _ := conditions.Get(mustGet(env, c).Status.Conditions, ConditionAvailable)
	if got.Reason != ReasonConfiguration || !strings.Contains(got.Message, `spec.catalogDataImage is "quay.io/other/data:v1"`) {
		t.Errorf("got condition %+v, want reason %s and the field with its value", got, ReasonConfiguration)
	}
	if image := mustGet(env, server).Spec.Template.Spec.InitContainers[0].Image; image != "quay.io/example/catalog-data:v2" || server.Generation != generation {
		t.Errorf("got image %s and generation %d of the server, want quay.io/example/catalog-data:v2 and generation %d", image, server.Generation, generation)
	}
	env.update(c, func() { c.Spec.CatalogDataImage = "v3" })
	env.reconcileUntilStable()
	if image := mustGet(env, server).Spec.Template.Spec.InitContainers[0].Image; image != "quay.io/example/catalog-data:v3" {
		t.Errorf("got image %s after the correction, want quay.io/example/catalog-data:v3", image)
	}
}

package main

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/odh-platform/odh-platform-operator/controllers/modelcatalog"
	"github.com/odh-platform/odh-platform-operator/controllers/modelregistry"
	"github.com/odh-platform/odh-platform-operator/controllers/platform"
	"github.com/odh-platform/odh-platform-operator/pkg/component"
	"github.com/odh-platform/odh-platform-operator/pkg/config"
)

// The settings of AIHub have the kinds and the enabled state of the component specs.
func TestHubSettingsMatchComponentSpecs(t *testing.T) {
	for name, tc := range map[string]struct {
		args              []string
		registry, catalog bool
	}{
		"default":                 {nil, true, true},
		"without catalog":         {[]string{"--enable-modelcatalog=false"}, true, false},
		"component platform only": {[]string{"--components=platform"}, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			known := program(process{specs: componentSpecs}).Components
			cfg, err := config.Load(config.Program{Components: known, MLflowVersion: "1"}, tc.args,
				func(name string) (string, bool) {
					v, ok := map[string]string{"REGISTRIES_NAMESPACE": "set"}[name]
					return v, ok
				}, func(string) ([]byte, error) { return nil, errLoaded })
			if err != nil {
				t.Fatal(err)
			}
			env := &Env{Config: cfg}
			got := hubSettings(env)
			if got.Registry.Enabled != tc.registry || got.Catalog.Enabled != tc.catalog || got.RegistriesNamespace != "set" {
				t.Errorf("got %+v, want registry %t and catalog %t", got, tc.registry, tc.catalog)
			}
			for _, c := range []platform.Component{got.Registry, got.Catalog} {
				i := slices.IndexFunc(componentSpecs(env), func(spec componentSpec) bool { return spec.Name == c.Component })
				if i < 0 || !slices.Equal(componentSpecs(env)[i].Requires, c.Requires) {
					t.Errorf("%s requires %v, unlike its component spec", c.Component, c.Requires)
				}
			}
		})
	}
}

func TestHubSettingsNames(t *testing.T) {
	got := hubSettings(&Env{})
	if got.Registry.Deployment != "model-registry-operator-controller-manager" || got.Registry.Component != modelregistry.ComponentName ||
		got.Catalog.Deployment != "catalog-controller-manager" || got.Catalog.Component != modelcatalog.ComponentName {
		t.Errorf("got %+v, want the Deployments of both legacy operators", got)
	}
	var names []string
	for _, r := range got.Releases {
		names = append(names, r.Name)
		if r.Version == "" || r.RepoURL == "" {
			t.Errorf("release %+v has no version or repository", r)
		}
	}
	if !slices.Equal(names, []string{"Kubeflow Model Registry", "Open Data Hub Model Registry Operator"}) {
		t.Errorf("releases %q, want %q", names, []string{"Kubeflow Model Registry", "Open Data Hub Model Registry Operator"})
	}
}

// Each kind of the platform has its own component, because a cluster may serve one without the other.
func TestPlatformSpecs(t *testing.T) {
	specs := platformSpecs(&Env{})
	var required []schema.GroupVersionKind
	for _, spec := range specs {
		if spec.Name != platform.ComponentName || len(spec.Requires) != 1 || spec.Controllers == nil {
			t.Errorf("got component %q that requires %v, want %q with one kind and controllers", spec.Name, spec.Requires, platform.ComponentName)
		}
		required = append(required, spec.Requires...)
	}
	if len(specs) != 2 || required[0] == required[1] {
		t.Errorf("the components of the platform require %v, want two kinds", required)
	}
	catalog := schema.GroupVersionKind{Group: "aihub.opendatahub.io", Version: "v1alpha1", Kind: "Catalog"}
	if watched := component.WatchedKinds(componentsOf(specs)); !watched.HasAll(append(required, catalog)...) {
		t.Errorf("the watched kinds %s lack one of %v and %s", watched, required, catalog)
	}
}

// Each component with controllers requires a kind, so its controllers start only after the first discovery.
func TestEveryComponentWaitsForDiscovery(t *testing.T) {
	for _, c := range componentsOf(componentSpecs(&Env{})) {
		if len(c.Requires) == 0 && c.Controllers != nil {
			t.Errorf("component %s requires no kind, so it would start before the first discovery", c.Name)
		}
	}
}

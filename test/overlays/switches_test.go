package overlays

import (
	"slices"
	"strings"
	"testing"

	"github.com/odh-platform/odh-platform-operator/pkg/config"
)

// components are those that an overlay enables by listing them.
var components = []string{"appwrapper", "mlflow", "modelcatalog", "modelmesh", "modelregistry", "raycluster"}

// load returns the settings of the overlay's manager, from the arguments and variables of its Deployment.
func load(t *testing.T, all objects) config.Config {
	t.Helper()
	cfg, err := loaded(t, all)
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

func loaded(t *testing.T, all objects) (config.Config, error) {
	t.Helper()
	env := all.variables(t)
	env["POD_NAMESPACE"] = all.deployment(t).Namespace
	program := config.Program{Components: append([]string{"platform"}, components...), MLflowVersion: "v3.14.0"}
	return config.Load(program, all.manager(t).Args, func(name string) (string, bool) {
		value, ok := env[name]
		return value, ok
	}, noFile)
}

// Every component is enabled in every overlay, except the hand-over of the platform, which the platform enables itself.
func TestEveryComponentIsOn(t *testing.T) {
	eachOverlay(t, func(t *testing.T, name string) {
		cfg := load(t, shipped(t, name))
		if got := cfg.EnabledComponents(); !slices.Equal(got, components) {
			t.Errorf("enabled components %v, want %v", got, components)
		}
		if err := cfg.CheckComplete(); err != nil {
			t.Error(err)
		}
		if platform := name == "odh" || name == "rhoai"; cfg.MLflow.NamespaceRBAC != platform {
			t.Errorf("namespace RBAC is %t", cfg.MLflow.NamespaceRBAC)
		}
		if m := cfg.ModelRegistry.StorageMigration; m.Source != "v1alpha1" || m.Target != "v1beta1" {
			t.Errorf("stored registries are moved %+v", m)
		}
		if cfg.Namespace != namespaces[name] || cfg.ModelRegistry.Gateway.RouteNamespace != namespaces[name] {
			t.Errorf("operands in %s, routes in %s", cfg.Namespace, cfg.ModelRegistry.Gateway.RouteNamespace)
		}
	})
}

// A component that an overlay omits is disabled, without roles and webhooks, but with its CRDs.
func TestOmittedComponentIsDisabled(t *testing.T) {
	names := map[string][]string{ // parts of the names of its webhook configurations
		"appwrapper": {"appwrapper-"}, "mlflow": nil, "modelcatalog": {"catalog-validating"}, "modelmesh": {"modelmesh-"},
		"modelregistry": {"model-registry-"}, "raycluster": {"codeflare-operator-"},
	}
	all := shipped(t, "kubernetes")
	for _, component := range components {
		t.Run(component, func(t *testing.T) {
			t.Parallel()
			copied := copyOf(t)
			copied.edit(t, "overlays/kubernetes/kustomization.yaml", func(text string) string {
				return strings.Replace(text, "  - ../../components/"+component+"\n", "", 1)
			})
			rendered := copied.render(t, "kubernetes")
			want := slices.DeleteFunc(slices.Clone(components), func(c string) bool { return c == component })
			if got := load(t, rendered).EnabledComponents(); !slices.Equal(got, want) {
				t.Errorf("enabled components %v, want %v", got, want)
			}
			for _, object := range all {
				omitted := rendered.find(object.GetKind(), object.GetName()) == nil
				if omitted && object.GetKind() == "CustomResourceDefinition" {
					t.Errorf("%s is missing", title(object))
				}
				name := object.GetName()
				foreign := name == "odh-platform-operator-"+component || slices.ContainsFunc(names[component], func(part string) bool {
					return strings.HasSuffix(object.GetKind(), "WebhookConfiguration") && strings.HasPrefix(name, part)
				})
				if foreign && !omitted {
					t.Errorf("%s is still there", title(object))
				}
			}
		})
	}
}

// The variable that the platform sets enables its hand-over, because no overlay disables it.
func TestPlatformVariableEnablesHandOver(t *testing.T) {
	eachOverlay(t, func(t *testing.T, name string) {
		all := shipped(t, name)
		env := all.variables(t)
		env["ENABLE_MLFLOW_OPERATOR_MODULE_CONTROLLER"], env["APPLICATIONS_NAMESPACE"] = "true", "apps"
		program := config.Program{Components: append([]string{"platform"}, components...), MLflowVersion: "v3.14.0"}
		cfg, err := config.Load(program, all.manager(t).Args, func(variable string) (string, bool) {
			value, ok := env[variable]
			return value, ok
		}, noFile)
		if err != nil || !cfg.Enabled("platform") || cfg.Namespace != "apps" {
			t.Errorf("%v: platform %t, operands in %s", err, cfg.Enabled("platform"), cfg.Namespace)
		}
	})
}

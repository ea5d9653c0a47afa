package overlays

import (
	"slices"
	"strings"
	"testing"

	"github.com/odh-platform/odh-platform-operator/pkg/config"
)

// components are the components that an overlay can enable.
var components = []string{"appwrapper", "mlflow", "modelcatalog", "modelmesh", "modelregistry", "raycluster"}

// load returns the settings of the manager, from the arguments and variables of its Deployment.
func load(t *testing.T, all objects) config.Config {
	t.Helper()
	cfg, err := tryLoad(t, all)
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

func tryLoad(t *testing.T, all objects) (config.Config, error) {
	t.Helper()
	env := all.variables(t)
	env["POD_NAMESPACE"] = all.deployment(t).Namespace
	program := config.Program{Components: append([]string{"platform"}, components...), MLflowVersion: "v3.14.0"}
	return config.Load(program, all.manager(t).Args, func(name string) (string, bool) {
		value, ok := env[name]
		return value, ok
	}, noFile)
}

// Every overlay enables all components, except the integration with the platform operator, which the platform enables.
func TestOverlaysEnableAllComponents(t *testing.T) {
	forEachOverlay(t, func(t *testing.T, name string) {
		cfg := load(t, shipped(t, name))
		if got := cfg.EnabledComponents(); !slices.Equal(got, components) {
			t.Errorf("enabled components %v, want %v", got, components)
		}
		if err := cfg.CheckComplete(); err != nil {
			t.Error(err)
		}
		if platform := name == "odh" || name == "rhoai"; cfg.MLflow.NamespaceRBAC != platform {
			t.Errorf("namespace RBAC is %t, want %t", cfg.MLflow.NamespaceRBAC, platform)
		}
		if m := cfg.ModelRegistry.StorageMigration; m.Source != "v1alpha1" || m.Target != "v1beta1" {
			t.Errorf("storage migration %+v, want v1alpha1 to v1beta1", m)
		}
		if cfg.Namespace != namespaces[name] || cfg.ModelRegistry.Gateway.RouteNamespace != namespaces[name] {
			t.Errorf("operands in %s, routes in %s, want %s", cfg.Namespace, cfg.ModelRegistry.Gateway.RouteNamespace, namespaces[name])
		}
	})
}

// Omitting a component disables it and removes its roles and webhooks, but not its CRDs.
func TestOmittedComponentIsDisabled(t *testing.T) {
	prefixes := map[string][]string{ // of the names of webhook configurations
		"appwrapper": {"appwrapper-"}, "mlflow": nil, "modelcatalog": {"catalog-validating"}, "modelmesh": {"modelmesh-"},
		"modelregistry": {"model-registry-"}, "raycluster": {"codeflare-operator-"},
	}
	all := shipped(t, "kubernetes")
	for _, component := range components {
		t.Run(component, func(t *testing.T) {
			t.Parallel()
			copied := copyConfig(t)
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
				disabled := name == "odh-platform-operator-"+component || slices.ContainsFunc(prefixes[component], func(prefix string) bool {
					return strings.HasSuffix(object.GetKind(), "WebhookConfiguration") && strings.HasPrefix(name, prefix)
				})
				if disabled && !omitted {
					t.Errorf("%s exists, want it to be omitted", title(object))
				}
			}
		})
	}
}

// The variable that the platform sets enables the integration in every overlay.
func TestPlatformVariableEnablesIntegration(t *testing.T) {
	forEachOverlay(t, func(t *testing.T, name string) {
		all := shipped(t, name)
		env := all.variables(t)
		env["ENABLE_MLFLOW_OPERATOR_MODULE_CONTROLLER"], env["APPLICATIONS_NAMESPACE"] = "true", "apps"
		program := config.Program{Components: append([]string{"platform"}, components...), MLflowVersion: "v3.14.0"}
		cfg, err := config.Load(program, all.manager(t).Args, func(variable string) (string, bool) {
			value, ok := env[variable]
			return value, ok
		}, noFile)
		if err != nil || !cfg.Enabled("platform") || cfg.Namespace != "apps" {
			t.Errorf("%v: platform enabled %t, operands in %s, want apps", err, cfg.Enabled("platform"), cfg.Namespace)
		}
	})
}

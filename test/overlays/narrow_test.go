package overlays

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// The components that limit permissions to one namespace can be listed before or after params. An API server rejects duplicate
// variables.
func TestOneNamespaceComponentsUseRoleBindings(t *testing.T) {
	const params = "  - ../../components/params\n"
	for name, lines := range map[string]string{
		"before params": "  - ../../components/modelregistry-one-namespace\n  - ../../components/modelmesh-one-namespace\n" + params,
		"after params":  params + "  - ../../components/modelregistry-one-namespace\n  - ../../components/modelmesh-one-namespace\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			copied := copyConfig(t)
			copied.edit(t, "overlays/rhoai/kustomization.yaml", func(text string) string { return strings.Replace(text, params, lines, 1) })
			all := copied.render(t, "rhoai")
			found := map[string][]corev1.EnvVar{}
			for _, variable := range all.manager(t).Env {
				found[variable.Name] = append(found[variable.Name], variable)
			}
			for variable, values := range found {
				if len(values) != 1 {
					t.Errorf("variable %s is set %d times, want once", variable, len(values))
				}
			}
			for variable, path := range map[string]string{"REGISTRIES_NAMESPACE": "metadata.namespace", "POD_NAME": "metadata.name"} {
				got := found[variable]
				if len(got) != 1 || got[0].Value != "" || got[0].ValueFrom == nil || got[0].ValueFrom.FieldRef.FieldPath != path {
					t.Errorf("%s is %+v, want %s", variable, got, path)
				}
			}
			if got := found["NAMESPACE_SCOPE"]; len(got) != 1 || got[0].Value != "true" {
				t.Errorf("NAMESPACE_SCOPE is %+v, want true", got)
			}
			for _, role := range []string{"modelregistry-namespaced", "modelcatalog-namespaced", "modelcatalog-huggingface", "modelmesh-runtimes"} {
				binding := "odh-platform-operator-" + role
				if all.find("ClusterRoleBinding", binding) != nil {
					t.Errorf("ClusterRoleBinding %s exists", binding)
				}
				if got := all.find("RoleBinding", binding); got == nil || got.GetNamespace() != namespaces["rhoai"] {
					t.Errorf("RoleBinding %s is %v, want namespace %s", binding, got, namespaces["rhoai"])
				}
			}
		})
	}
}

package overlays

import (
	"strings"
	"testing"
)

const aggregate = "rbac.authorization.k8s.io/aggregate-to-"

// One component aggregates more user roles to the built-in roles, another one aggregates none. Without them, the aggregation equals that of
// the legacy operators.
func TestUserRoleAggregation(t *testing.T) {
	const params = "  - ../../components/params\n"
	for name, tc := range map[string]struct {
		line string
		want map[string]string // role to the built-in roles
	}{
		"default": {"", map[string]string{
			"mlflow-operator-mlflow-view": "view edit admin", "modelregistry-viewer-role": "", "modelcatalog-editor-role": "", "modelmesh-predictor-admin-role": "",
			"codeflare-operator-viewer-role": "view", "model-serving-edit": "edit", "aihub-editor-role": "",
		}},
		"aggregated": {"user-roles-aggregated", map[string]string{
			"mlflow-operator-mlflow-view": "view edit admin", "modelregistry-viewer-role": "view", "modelcatalog-editor-role": "edit",
			"modelmesh-predictor-admin-role": "admin", "codeflare-operator-viewer-role": "view", "model-serving-edit": "edit", "aihub-editor-role": "",
		}},
		"separate": {"user-roles-separate", map[string]string{
			"mlflow-operator-mlflow-view": "", "mlflow-operator-mlflow-edit": "", "modelregistry-viewer-role": "", "codeflare-operator-viewer-role": "",
			"codeflare-operator-appwrapper-editor-role": "", "model-serving-view": "", "model-serving-edit": "", "model-serving-admin": "",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			copied := copyConfig(t)
			if tc.line != "" {
				copied.edit(t, "overlays/rhoai/kustomization.yaml", func(text string) string {
					return strings.Replace(text, params, params+"  - ../../components/"+tc.line+"\n", 1)
				})
			}
			all := copied.render(t, "rhoai")
			for role, want := range tc.want {
				found := all.find("ClusterRole", role)
				if found == nil {
					t.Errorf("ClusterRole %s does not exist", role)
					continue
				}
				var builtIns []string
				for _, builtIn := range []string{"view", "edit", "admin"} {
					if found.GetLabels()[aggregate+builtIn] == "true" {
						builtIns = append(builtIns, builtIn)
					}
				}
				if got := strings.Join(builtIns, " "); got != want {
					t.Errorf("%s is aggregated to %q, want %q", role, got, want)
				}
			}
		})
	}
}

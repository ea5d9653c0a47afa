package access

import (
	"os"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/odh-platform/odh-platform-operator/test/framework"
)

// pluginVersion is the tested release of mlflow-kubernetes-plugins.
const pluginVersion = "mlflow-kubernetes-plugins==1.7.1"

// pluginResources are ALLOWED_RESOURCES in auth/constants.py of that release, and skills, which release 2.1.0 adds.
var pluginResources = []string{
	"assistants", "datasets", "experiments", "mcpservers", "registeredmodels", "gatewaysecrets", "gatewayendpoints", "gatewaymodeldefinitions",
	"gatewaybudgets", "gatewayguardrails", "skills",
}

// The roles cover all resources that the server authorizes, but view does not grant gatewaysecrets.
func TestRolesCoverResourcesOfServer(t *testing.T) {
	if pinned, err := os.ReadFile("../../../test/node/images/mlflow.go"); err != nil || !strings.Contains(string(pinned), `"`+pluginVersion+`"`) {
		t.Errorf("%s is not the tested release: update pluginResources from ALLOWED_RESOURCES of that release (%v)", pluginVersion, err)
	}
	shipped, err := framework.ReadObjects("../../../config/rbac/mlflow/user_roles.yaml")
	if err != nil {
		t.Fatal(err)
	}
	granted := map[string]bool{} // role, verb and resource
	for _, object := range shipped {
		role := &rbacv1.ClusterRole{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, role); err != nil {
			t.Fatal(err)
		}
		for _, rule := range role.Rules {
			if !slices.Contains(rule.APIGroups, "mlflow.kubeflow.org") {
				continue
			}
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					granted[strings.TrimPrefix(role.Name, "mlflow-operator-mlflow-")+" "+verb+" "+resource] = true
				}
			}
		}
	}
	for _, resource := range pluginResources {
		want := []string{"view get", "view list", "edit create", "edit update", "edit delete"}
		if resource == "gatewaysecrets" {
			want = []string{"edit get", "edit list", "edit create", "edit update", "edit delete"}
		}
		for _, permission := range want {
			if !granted[permission+" "+resource] {
				t.Errorf("no role grants %s %s", permission, resource)
			}
		}
	}
	if granted["view get gatewaysecrets"] || granted["view list gatewaysecrets"] {
		t.Error("the role view grants gatewaysecrets")
	}
}

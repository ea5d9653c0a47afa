package modelregistry

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/odh-platform/odh-platform-operator/apis/modelregistry/v1beta1"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/config"
)

func registryObject(spec map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": v1beta1.GroupVersion.String(), "kind": v1beta1.Kind, "metadata": map[string]any{"name": "demo", "namespace": "ns"}, "spec": spec,
	}}
}

// The rendered objects depend on the served APIs, and include those of defaults, such as the proxy on OpenShift.
func TestRender(t *testing.T) {
	settings := Settings{ModelRegistry: config.ModelRegistry{DefaultDomain: "apps.example.com",
		Images: config.RegistryImages{REST: "rest:1", KubeRBACProxy: "proxy:1", Postgres: "postgres:1"}}}
	external := map[string]any{"rest": map[string]any{}, "postgres": map[string]any{"host": "db", "username": "u", "database": "d"}}
	generated := map[string]any{"rest": map[string]any{}, "postgres": map[string]any{"generateDeployment": true}}
	for name, test := range map[string]struct {
		spec   map[string]any
		served capability.Set
		want   []string
	}{
		"plain": {external, capability.NewSet(), []string{"ServiceAccount demo", "Role registry-user-demo", "NetworkPolicy demo-egress", "Service demo", "Deployment demo"}},
		"generated database": {generated, capability.NewSet(), []string{
			"PersistentVolumeClaim demo-postgres-storage", "NetworkPolicy demo-postgres", "NetworkPolicy demo-postgres-egress", "Service demo-postgres", "Deployment demo-postgres",
			"ServiceAccount demo", "Role registry-user-demo", "NetworkPolicy demo-egress", "Service demo", "Deployment demo"}},
		"OpenShift": {external, capability.NewSet(capability.Route, capability.UserGroup), []string{
			"ServiceAccount demo", "Role registry-user-demo", "NetworkPolicy demo-egress", "Group demo-users", "RoleBinding demo-users", "ConfigMap demo-kube-rbac-proxy-config",
			"ClusterRoleBinding demo-auth-delegator", "NetworkPolicy demo-ingress", "NetworkPolicy demo-https-route", "Service demo", "Deployment demo",
			"Route demo-https"}},
	} {
		t.Run(name, func(t *testing.T) {
			objects, err := Render(settings, test.served, registryObject(test.spec))
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, o := range objects {
				got = append(got, o.GetKind()+" "+o.GetName())
			}
			if strings.Join(got, "\n") != strings.Join(test.want, "\n") {
				t.Errorf("rendered\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(test.want, "\n"))
			}
		})
	}
}

func TestRenderErrors(t *testing.T) {
	for name, test := range map[string]struct {
		spec map[string]any
		want string
	}{
		"no database":   {map[string]any{"rest": map[string]any{}}, "required one of `postgres` or `mysql` database"},
		"unknown field": {map[string]any{"rest": map[string]any{"prot": int64(1)}}, `unknown field "spec.rest.prot"`},
		"host of a generated database": {map[string]any{"rest": map[string]any{}, "postgres": map[string]any{"generateDeployment": true, "host": "db"}},
			"host should not be set"},
		"invalid database name": {map[string]any{"rest": map[string]any{}, "postgres": map[string]any{"generateDeployment": true, "database": "a b", "username": "u"}},
			"a b"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Render(Settings{}, capability.NewSet(), registryObject(test.spec))
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}

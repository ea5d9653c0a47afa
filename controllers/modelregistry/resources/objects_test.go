package resources

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/odh-platform/odh-platform-operator/apis/modelregistry/v1beta1"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/test/registrytest"
)

// [modelregistry-29] [modelregistry-30] [modelregistry-32] The objects of a registry on each platform, with and without proxy, Routes and
// gateway.
func TestObjects(t *testing.T) {
	plainRouted := func(s *v1beta1.ModelRegistrySpec) { s.Rest.ServiceRoute = v1beta1.RouteEnabled }
	for name, test := range map[string]struct {
		m    *v1beta1.ModelRegistry
		in   Inputs
		want []string
	}{
		"plain": {registrytest.Registry(), plain, []string{
			"ServiceAccount/team-a", "Role/registry-user-team-a", "NetworkPolicy/team-a-egress", "Service/team-a", "Deployment/team-a",
		}},
		"plain with a proxy": {registrytest.Registry(registrytest.AddProxy), plain, []string{
			"ServiceAccount/team-a", "Role/registry-user-team-a", "NetworkPolicy/team-a-egress", "ConfigMap/team-a-kube-rbac-proxy-config",
			"ClusterRoleBinding/team-a-auth-delegator", "NetworkPolicy/team-a-ingress", "Service/team-a", "Deployment/team-a",
		}},
		"plain with a Route in the spec": {registrytest.Registry(plainRouted), plain, []string{
			"ServiceAccount/team-a", "Role/registry-user-team-a", "NetworkPolicy/team-a-egress", "Service/team-a", "Deployment/team-a",
		}},
		"OpenShift": {registrytest.Registry(registrytest.AddProxy), openshift, []string{
			"ServiceAccount/team-a", "Role/registry-user-team-a", "NetworkPolicy/team-a-egress", "Group/team-a-users", "RoleBinding/team-a-users",
			"ConfigMap/team-a-kube-rbac-proxy-config", "ClusterRoleBinding/team-a-auth-delegator", "NetworkPolicy/team-a-ingress",
			"NetworkPolicy/team-a-https-route", "Service/team-a", "Deployment/team-a", "Route/team-a-https",
		}},
		"OpenShift with both Routes": {registrytest.Registry(registrytest.AddProxy, plainRouted), openshift, []string{
			"ServiceAccount/team-a", "Role/registry-user-team-a", "NetworkPolicy/team-a-egress", "Group/team-a-users", "RoleBinding/team-a-users",
			"ConfigMap/team-a-kube-rbac-proxy-config", "ClusterRoleBinding/team-a-auth-delegator", "NetworkPolicy/team-a-ingress",
			"NetworkPolicy/team-a-https-route", "Service/team-a", "Deployment/team-a", "Route/team-a-http", "Route/team-a-https",
		}},
		"OpenShift without Routes": {registrytest.Registry(registrytest.AddProxy, registrytest.DisableRoute), openshift, []string{
			"ServiceAccount/team-a", "Role/registry-user-team-a", "NetworkPolicy/team-a-egress", "Group/team-a-users", "RoleBinding/team-a-users",
			"ConfigMap/team-a-kube-rbac-proxy-config", "ClusterRoleBinding/team-a-auth-delegator", "NetworkPolicy/team-a-ingress",
			"Service/team-a", "Deployment/team-a",
		}},
		"[modelregistry-54] OpenShift with groups of an identity provider": {registrytest.Registry(), with(openshift, func(in *Inputs) { unserve(in, capability.UserGroup) }), []string{
			"ServiceAccount/team-a", "Role/registry-user-team-a", "NetworkPolicy/team-a-egress", "RoleBinding/team-a-users", "Service/team-a", "Deployment/team-a",
		}},
		"[modelregistry-38] behind the gateway": {registrytest.Registry(registrytest.AddProxy), gateway, []string{
			"ServiceAccount/team-a", "Role/registry-user-team-a", "NetworkPolicy/team-a-egress", "Group/team-a-users", "RoleBinding/team-a-users",
			"ConfigMap/team-a-kube-rbac-proxy-config", "ClusterRoleBinding/team-a-auth-delegator", "NetworkPolicy/team-a-ingress",
			"NetworkPolicy/team-a-https-route", "Service/team-a", "Deployment/team-a", "Route/team-a-https",
			"ReferenceGrant/allow-gateway-httproutes-team-a", "HTTPRoute/model-registry-team-a",
		}},
		"a gateway whose API is not served": {registrytest.Registry(), with(gateway, func(in *Inputs) { unserve(in, capability.HTTPRoute) }), []string{
			"ServiceAccount/team-a", "Role/registry-user-team-a", "NetworkPolicy/team-a-egress", "Group/team-a-users", "RoleBinding/team-a-users", "Service/team-a", "Deployment/team-a",
		}},
		"a gateway without grants": {registrytest.Registry(), with(gateway, func(in *Inputs) { unserve(in, capability.ReferenceGrant) }), []string{
			"ServiceAccount/team-a", "Role/registry-user-team-a", "NetworkPolicy/team-a-egress", "Group/team-a-users", "RoleBinding/team-a-users",
			"Service/team-a", "Deployment/team-a", "HTTPRoute/model-registry-team-a",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, objectKeys(buildObjects(t, test.m, test.in))); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// [modelregistry-34] [modelregistry-35] The objects of a generated database, which other registries do not have.
func TestDatabaseObjects(t *testing.T) {
	want := []string{
		"Secret/team-a-postgres-credentials", "PersistentVolumeClaim/team-a-postgres-storage",
		"NetworkPolicy/team-a-postgres", "NetworkPolicy/team-a-postgres-egress", "Service/team-a-postgres", "Deployment/team-a-postgres",
	}
	if diff := cmp.Diff(want, objectKeys(buildDatabaseObjects(t, registrytest.Registry(), plain))); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	for _, o := range buildObjects(t, registrytest.Registry(registrytest.AddProxy), openshift) {
		if strings.HasPrefix(o.GetName(), "team-a-postgres") {
			t.Errorf("%s %s was built for an external database", o.GetKind(), o.GetName())
		}
	}
}

package main

import (
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
)

// [R36] The role has no wildcards, no permissions for the status of RayClusters, and no unused verbs of RayClusters and pods. It has
// resource names for kinds of which only one object is used.
func TestRayClusterRoleIsMinimal(t *testing.T) {
	roles := readManifests[rbacv1.ClusterRole](t, "rbac/raycluster/role.yaml")
	resourceNames := map[string][]string{
		"clusterroles": {"system:auth-delegator"}, "deployments": {"kuberay-operator"}, "dscinitializations": {"default-dsci"},
		"mutatingwebhookconfigurations": {"kuberay-mutating-webhook-configuration"},
	}
	seen := map[string]bool{}
	for _, rule := range roles[0].Rules {
		for _, resource := range rule.Resources {
			seen[resource] = true
			if resource == "*" || slices.Contains(rule.Verbs, "*") || resource == "rayclusters/status" {
				t.Errorf("unexpected verbs %v of %s", rule.Verbs, resource)
			}
			if want, limited := resourceNames[resource]; limited && !slices.Equal(rule.ResourceNames, want) {
				t.Errorf("%s is not limited to %v: %v", resource, want, rule.ResourceNames)
			}
			if resource == "rayclusters" && (slices.Contains(rule.Verbs, "delete") || slices.Contains(rule.Verbs, "update") || slices.Contains(rule.Verbs, "create")) {
				t.Errorf("unexpected verbs of rayclusters: %v", rule.Verbs)
			}
			if resource == "pods" && slices.Contains(rule.Verbs, "create") {
				t.Errorf("unexpected verbs of pods: %v", rule.Verbs)
			}
		}
	}
	for resource := range resourceNames {
		if !seen[resource] {
			t.Errorf("the role does not contain %s", resource)
		}
	}
	if roles[0].Name != "odh-platform-operator-raycluster" {
		t.Errorf("got role %s, want odh-platform-operator-raycluster", roles[0].Name)
	}
	for _, binding := range readManifests[rbacv1.ClusterRoleBinding](t, "rbac/raycluster/binding.yaml")[:1] {
		if binding.RoleRef.Name != roles[0].Name {
			t.Errorf("the binding is to %s, want %s", binding.RoleRef.Name, roles[0].Name)
		}
	}
}

// The component has the field owner of the CodeFlare operator, so that fields of the CodeFlare operator can be removed.
func TestRayClusterSpec(t *testing.T) {
	spec := rayClusterSpec(&Env{})
	if spec.Name != "raycluster" || spec.FieldOwner != "codeflare-raycluster-controller" {
		t.Errorf("unexpected component %s or field owner %s", spec.Name, spec.FieldOwner)
	}
	if len(spec.Requires) != 1 || spec.Requires[0].Kind != "RayCluster" {
		t.Errorf("got required kinds %v, want RayCluster", spec.Requires)
	}
	for _, target := range spec.CABundleTargets {
		if !strings.HasPrefix(target.Name, "codeflare-operator-") {
			t.Errorf("unexpected CA bundle target %s", target.Name)
		}
	}
}

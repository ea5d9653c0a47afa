package main

import (
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
)

// [R36] The role contains only permissions that are used: no status of RayClusters, no wildcards, and names where only some
// objects are read.
func TestRightsOfRay(t *testing.T) {
	roles := manifest[rbacv1.ClusterRole](t, "rbac/raycluster/role.yaml")
	named := map[string][]string{
		"clusterroles": {"system:auth-delegator"}, "deployments": {"kuberay-operator"}, "dscinitializations": {"default-dsci"},
	}
	seen := map[string]bool{}
	for _, rule := range roles[0].Rules {
		for _, resource := range rule.Resources {
			seen[resource] = true
			if resource == "*" || slices.Contains(rule.Verbs, "*") || resource == "rayclusters/status" {
				t.Errorf("%v of %s", rule.Verbs, resource)
			}
			if want, limited := named[resource]; limited && !slices.Equal(rule.ResourceNames, want) {
				t.Errorf("%s is not limited to %v: %v", resource, want, rule.ResourceNames)
			}
			if resource == "rayclusters" && (slices.Contains(rule.Verbs, "delete") || slices.Contains(rule.Verbs, "update") || slices.Contains(rule.Verbs, "create")) {
				t.Errorf("RayClusters are patched only: %v", rule.Verbs)
			}
			if resource == "pods" && slices.Contains(rule.Verbs, "create") {
				t.Errorf("pods are not made here: %v", rule.Verbs)
			}
		}
	}
	for resource := range named {
		if !seen[resource] {
			t.Errorf("no right to look at %s", resource)
		}
	}
	if roles[0].Name != "odh-platform-operator-raycluster" {
		t.Errorf("role %s", roles[0].Name)
	}
	for _, binding := range manifest[rbacv1.ClusterRoleBinding](t, "rbac/raycluster/binding.yaml")[:1] {
		if binding.RoleRef.Name != roles[0].Name {
			t.Errorf("the binding is to %s", binding.RoleRef.Name)
		}
	}
}

// The row names the field owner of the CodeFlare operator: fields that only the CodeFlare operator set are removed.
func TestRayClusterSpec(t *testing.T) {
	r := rayClusterSpec(&Env{})
	if r.Name != "raycluster" || r.FieldOwner != "codeflare-raycluster-controller" {
		t.Errorf("component %s, field owner %s", r.Name, r.FieldOwner)
	}
	if len(r.Requires) != 1 || r.Requires[0].Kind != "RayCluster" {
		t.Errorf("requires %v", r.Requires)
	}
	for _, target := range r.CABundleTargets {
		if !strings.HasPrefix(target.Name, "codeflare-operator-") {
			t.Errorf("trusts %s", target.Name)
		}
	}
}

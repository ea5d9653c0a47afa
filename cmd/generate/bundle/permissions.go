package main

import (
	"fmt"
	"maps"
	"slices"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// permissions are what OLM grants the manager in its namespace and in the cluster, one entry for each role that is bound to it.
func (s *sources) permissions() (namespaced, cluster []v1alpha1.StrategyDeploymentPermissions, err error) {
	for _, b := range s.roleBindings {
		if !s.bindsManager(b.Subjects) {
			return nil, nil, fmt.Errorf("RoleBinding %s binds somebody else than the manager: OLM cannot say that", b.Name)
		}
		if b.Namespace != s.deployment.Namespace {
			return nil, nil, fmt.Errorf("RoleBinding %s is in namespace %s: OLM grants rights in that of the manager or in all", b.Name, b.Namespace)
		}
		rules, found := s.rulesOf(b.RoleRef)
		if !found {
			return nil, nil, fmt.Errorf("RoleBinding %s names %s %s, which does not exist", b.Name, b.RoleRef.Kind, b.RoleRef.Name)
		}
		namespaced = s.grant(namespaced, rules)
	}
	for _, b := range s.clusterBindings {
		rules, found := s.rulesOf(b.RoleRef)
		if !found || !s.bindsManager(b.Subjects) {
			return nil, nil, fmt.Errorf("ClusterRoleBinding %s must bind a role of the kustomization to the manager", b.Name)
		}
		cluster = s.grant(cluster, rules)
	}
	return namespaced, cluster, nil
}

func (s *sources) grant(list []v1alpha1.StrategyDeploymentPermissions, rules []rbacv1.PolicyRule) []v1alpha1.StrategyDeploymentPermissions {
	rules = slices.DeleteFunc(slices.Clone(rules), s.forOwnCertificate)
	if len(rules) == 0 {
		return list
	}
	return append(list, v1alpha1.StrategyDeploymentPermissions{
		ServiceAccountName: s.deployment.Spec.Template.Spec.ServiceAccountName, Rules: rules,
	})
}

func (s *sources) bindsManager(subjects []rbacv1.Subject) bool {
	return len(subjects) == 1 && subjects[0].Kind == rbacv1.ServiceAccountKind &&
		subjects[0].Name == s.deployment.Spec.Template.Spec.ServiceAccountName
}

func (s *sources) rulesOf(ref rbacv1.RoleRef) ([]rbacv1.PolicyRule, bool) {
	if ref.Kind == "ClusterRole" {
		role, found := s.clusterRoles[ref.Name]
		return role.rules, found
	}
	role, found := s.roles[ref.Name]
	return role.rules, found
}

// forOwnCertificate finds the rules by which the manager writes the CA of a certificate of its own into webhook configurations and
// CRDs. OLM mounts a certificate and writes its CA, so nobody needs them; and a CSV that may patch CRDs is warned of.
func (s *sources) forOwnCertificate(rule rbacv1.PolicyRule) bool {
	switch {
	case slices.Equal(rule.APIGroups, []string{"admissionregistration.k8s.io"}):
		return true
	case !slices.Equal(rule.APIGroups, []string{"apiextensions.k8s.io"}) || !slices.Contains(rule.Verbs, "patch") || len(rule.ResourceNames) == 0:
		return false
	}
	return !slices.ContainsFunc(rule.ResourceNames, func(name string) bool { return !slices.Contains(s.converted(), name) })
}

// converted are the CRDs whose versions the manager converts.
func (s *sources) converted() []string {
	var names []string
	for _, d := range s.crds {
		if c := d.crd.Spec.Conversion; c != nil && c.Webhook != nil {
			names = append(names, d.crd.Name)
		}
	}
	return names
}

// unboundRoles are the ClusterRoles for people and for other programs, in the order of their names.
func (s *sources) unboundRoles() []*unstructured.Unstructured {
	bound := map[string]bool{}
	for _, b := range s.clusterBindings {
		bound[b.RoleRef.Name] = true
	}
	for _, b := range s.roleBindings {
		bound[b.RoleRef.Name] = true
	}
	var out []*unstructured.Unstructured
	for _, name := range slices.Sorted(maps.Keys(s.clusterRoles)) {
		if !bound[name] {
			out = append(out, s.clusterRoles[name].object)
		}
	}
	return out
}

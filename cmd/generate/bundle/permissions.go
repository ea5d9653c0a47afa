package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/odh-platform/odh-platform-operator/pkg/capability"
)

// permissions returns the permissions that OLM grants in the namespace of the manager and in the cluster: one for each binding with rules.
func (s *sources) permissions() (namespaced, cluster []v1alpha1.StrategyDeploymentPermissions, err error) {
	for _, b := range s.bindings {
		permission, err := s.permissionOf(b)
		switch {
		case err != nil:
			return nil, nil, fmt.Errorf("%s %s: %w", b.Kind, b.Name, err)
		case len(permission.Rules) == 0:
		case b.Kind == "ClusterRoleBinding":
			cluster = append(cluster, permission)
		case b.Namespace != s.deployment.Namespace:
			return nil, nil, fmt.Errorf("RoleBinding %s is in namespace %s: OLM grants permissions only in the namespace of the manager, or in all namespaces", b.Name, b.Namespace)
		default:
			namespaced = append(namespaced, permission)
		}
	}
	return namespaced, cluster, nil
}

func (s *sources) permissionOf(b rbacv1.RoleBinding) (v1alpha1.StrategyDeploymentPermissions, error) {
	role, found := s.roles[b.RoleRef]
	if !found {
		return v1alpha1.StrategyDeploymentPermissions{}, fmt.Errorf("there is no %s %s in the kustomization", b.RoleRef.Kind, b.RoleRef.Name)
	}
	if len(b.Subjects) != 1 || b.Subjects[0].Kind != rbacv1.ServiceAccountKind || b.Subjects[0].Namespace != s.deployment.Namespace {
		return v1alpha1.StrategyDeploymentPermissions{}, errors.New("bind it to one ServiceAccount in the namespace of the manager, because OLM supports no other subjects")
	}
	return v1alpha1.StrategyDeploymentPermissions{ServiceAccountName: b.Subjects[0].Name, Rules: s.withoutOwnCertificate(role.rules)}, nil
}

// bindsManager reports whether a binding is for the ServiceAccount of the manager.
func (s *sources) bindsManager(subjects []rbacv1.Subject) bool {
	return slices.ContainsFunc(subjects, func(subject rbacv1.Subject) bool {
		return subject.Kind == rbacv1.ServiceAccountKind && subject.Name == s.deployment.Spec.Template.Spec.ServiceAccountName
	})
}

// rayConfigurations are the webhook configurations that raycluster needs: it removes the webhooks of the CodeFlare operator, and detects the
// KubeRay of the platform.
var rayConfigurations = []string{"codeflare-operator-mutating-webhook-configuration", "codeflare-operator-validating-webhook-configuration", capability.PlatformKubeRayConfiguration}

// withoutOwnCertificate drops the rules for writing the manager's own CA into webhook configurations and CRDs, because OLM mounts a
// certificate and writes its CA. Bundle validators warn about permissions to patch CRDs.
func (s *sources) withoutOwnCertificate(rules []rbacv1.PolicyRule) []rbacv1.PolicyRule {
	var kept []rbacv1.PolicyRule
	for _, rule := range rules {
		if slices.Equal(rule.APIGroups, []string{"admissionregistration.k8s.io"}) {
			rule.ResourceNames = slices.DeleteFunc(slices.Clone(rule.ResourceNames), func(name string) bool { return !slices.Contains(rayConfigurations, name) })
			if len(rule.ResourceNames) == 0 {
				continue
			}
		}
		if !s.patchesConversion(rule) {
			kept = append(kept, rule)
		}
	}
	return kept
}

// patchesConversion reports whether a rule allows patching only CRDs whose versions the manager converts.
func (s *sources) patchesConversion(rule rbacv1.PolicyRule) bool {
	patchesCRDs := slices.Equal(rule.APIGroups, []string{"apiextensions.k8s.io"}) && slices.Equal(rule.Resources, []string{"customresourcedefinitions"}) &&
		slices.Contains(rule.Verbs, "patch")
	converted := s.convertedCRDs()
	return patchesCRDs && len(rule.ResourceNames) > 0 && !slices.ContainsFunc(rule.ResourceNames, func(name string) bool { return !slices.Contains(converted, name) })
}

// convertedCRDs returns the names of the CRDs whose versions the manager converts.
func (s *sources) convertedCRDs() []string {
	var names []string
	for _, d := range s.crds {
		if c := d.crd.Spec.Conversion; c != nil && c.Webhook != nil {
			names = append(names, d.crd.Name)
		}
	}
	return names
}

// rolesForOthers returns the ClusterRoles that are not bound to the manager, sorted by name.
func (s *sources) rolesForOthers() []*unstructured.Unstructured {
	bound := map[rbacv1.RoleRef]bool{}
	for _, b := range s.bindings {
		bound[b.RoleRef] = bound[b.RoleRef] || s.bindsManager(b.Subjects)
	}
	var out []*unstructured.Unstructured
	for ref, role := range s.roles {
		if ref.Kind == "ClusterRole" && !bound[ref] {
			out = append(out, role.object)
		}
	}
	slices.SortFunc(out, func(a, b *unstructured.Unstructured) int { return strings.Compare(a.GetName(), b.GetName()) })
	return out
}

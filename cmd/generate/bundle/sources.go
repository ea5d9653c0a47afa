package main

import (
	"fmt"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// sources is what the kustomization holds, by what becomes of it in a bundle.
type sources struct {
	// crds are in the order of their names, each beside the object that it was read from.
	crds []definition
	// deployment is that of the manager.
	deployment *appsv1.Deployment
	// roles and clusterRoles by their names; bound to the manager or not.
	roles, clusterRoles map[string]role
	// roleBindings and clusterBindings in the order of the kustomization.
	roleBindings    []rbacv1.RoleBinding
	clusterBindings []rbacv1.ClusterRoleBinding
	mutating        []admissionregistrationv1.MutatingWebhookConfiguration
	validating      []admissionregistrationv1.ValidatingWebhookConfiguration
	// others go into the bundle as they are.
	others []*unstructured.Unstructured
}

// definition is a CRD with the object that it was read from, which keeps what the type does not know.
type definition struct {
	crd    *apiextensionsv1.CustomResourceDefinition
	object *unstructured.Unstructured
}

// role is a Role or a ClusterRole.
type role struct {
	rules  []rbacv1.PolicyRule
	object *unstructured.Unstructured
}

// packaged are further kinds that OLM installs from a bundle.
var packaged = []string{
	"ConfigMap", "ConsoleLink", "ConsoleYAMLSample", "NetworkPolicy", "PodDisruptionBudget", "PrometheusRule", "Secret", "Service", "ServiceMonitor",
}

// dropped are kinds that OLM makes itself.
var dropped = []string{"Namespace", "ServiceAccount"}

// newSources sorts the objects of a kustomization. A kind for which a bundle has no place is an error: it would be lost.
func newSources(objects []*unstructured.Unstructured) (*sources, error) {
	s := &sources{roles: map[string]role{}, clusterRoles: map[string]role{}}
	for _, object := range objects {
		if err := s.add(object); err != nil {
			return nil, fmt.Errorf("%s %s: %w", object.GetKind(), object.GetName(), err)
		}
	}
	if s.deployment == nil {
		return nil, fmt.Errorf("the kustomization has no Deployment of the manager")
	}
	slices.SortFunc(s.crds, func(a, b definition) int { return strings.Compare(a.crd.Name, b.crd.Name) })
	return s, nil
}

func (s *sources) add(object *unstructured.Unstructured) error {
	var err error
	switch kind := object.GetKind(); kind {
	case "CustomResourceDefinition":
		d := definition{crd: &apiextensionsv1.CustomResourceDefinition{}, object: object}
		err = into(object, d.crd)
		s.crds = append(s.crds, d)
	case "Deployment":
		if s.deployment != nil {
			return fmt.Errorf("there is a second Deployment, %s: which is the manager?", s.deployment.Name)
		}
		s.deployment = &appsv1.Deployment{}
		err = into(object, s.deployment)
	case "Role":
		var r rbacv1.Role
		err = into(object, &r)
		s.roles[r.Name] = role{r.Rules, object}
	case "ClusterRole":
		var r rbacv1.ClusterRole
		err = into(object, &r)
		s.clusterRoles[r.Name] = role{r.Rules, object}
	case "RoleBinding":
		s.roleBindings, err = appended(s.roleBindings, object)
	case "ClusterRoleBinding":
		s.clusterBindings, err = appended(s.clusterBindings, object)
	case "MutatingWebhookConfiguration":
		s.mutating, err = appended(s.mutating, object)
	case "ValidatingWebhookConfiguration":
		s.validating, err = appended(s.validating, object)
	default:
		if slices.Contains(packaged, kind) {
			s.others = append(s.others, object)
		} else if !slices.Contains(dropped, kind) {
			err = fmt.Errorf("OLM installs no such kind from a bundle: leave it out of the kustomization")
		}
	}
	return err
}

// into reads an object strictly: a field that the type does not know would be lost.
func into(object *unstructured.Unstructured, typed any) error {
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(object.Object, typed, true); err != nil {
		return fmt.Errorf("decoding: %w", err)
	}
	return nil
}

func appended[T any](list []T, object *unstructured.Unstructured) ([]T, error) {
	var item T
	err := into(object, &item)
	return append(list, item), err
}

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

// sources are the objects of the kustomization by their use in a bundle.
type sources struct {
	// crds are sorted by name.
	crds []definition
	// deployment is the Deployment of the manager.
	deployment *appsv1.Deployment
	// roles holds all roles by kind and name, including those that are not bound to the manager.
	roles map[rbacv1.RoleRef]role
	// bindings of both kinds, which have the same fields, in the order of the kustomization.
	bindings []rbacv1.RoleBinding
	// configurations are webhook configurations, mutating ones first. The type includes all fields of validating ones.
	configurations []admissionregistrationv1.MutatingWebhookConfiguration
	// others are copied into the bundle.
	others []*unstructured.Unstructured
}

// definition is a CRD, decoded and raw. The bundle contains the raw one.
type definition struct {
	crd    *apiextensionsv1.CustomResourceDefinition
	object *unstructured.Unstructured
}

type role struct {
	rules  []rbacv1.PolicyRule
	object *unstructured.Unstructured
}

// packagedKinds are other kinds that OLM installs and every cluster serves. OLM fails for kinds that are not served.
var packagedKinds = []string{"ConfigMap", "NetworkPolicy", "PodDisruptionBudget", "PriorityClass", "Secret", "Service"}

// droppedKinds are omitted: OLM creates ServiceAccounts, and requires an existing namespace.
var droppedKinds = []string{"Namespace", "ServiceAccount"}

// newSources returns the objects of a kustomization by their use. A kind that a bundle cannot contain is an error.
func newSources(objects []*unstructured.Unstructured) (*sources, error) {
	s := &sources{roles: map[rbacv1.RoleRef]role{}}
	for _, object := range objects {
		if err := s.add(object); err != nil {
			return nil, fmt.Errorf("%s %s: %w", object.GetKind(), object.GetName(), err)
		}
	}
	if s.deployment == nil {
		return nil, fmt.Errorf("the kustomization has no Deployment of the manager")
	}
	slices.SortFunc(s.crds, func(a, b definition) int { return strings.Compare(a.crd.Name, b.crd.Name) })
	slices.SortStableFunc(s.configurations, func(a, b admissionregistrationv1.MutatingWebhookConfiguration) int {
		return strings.Compare(a.Kind, b.Kind)
	})
	return s, nil
}

func (s *sources) add(object *unstructured.Unstructured) error {
	var err error
	switch kind := object.GetKind(); kind {
	case "CustomResourceDefinition":
		d := definition{crd: &apiextensionsv1.CustomResourceDefinition{}, object: object}
		err = decodeStrict(object, d.crd)
		s.crds = append(s.crds, d)
	case "Deployment":
		if s.deployment != nil {
			return fmt.Errorf("there is a second Deployment, %s: keep only the Deployment of the manager", s.deployment.Name)
		}
		s.deployment = &appsv1.Deployment{}
		err = decodeStrict(object, s.deployment)
	case "Role", "ClusterRole":
		var r rbacv1.ClusterRole
		err = decodeStrict(object, &r)
		s.roles[rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: r.Name}] = role{r.Rules, object}
	case "RoleBinding", "ClusterRoleBinding":
		var b rbacv1.RoleBinding
		err = decodeStrict(object, &b)
		s.bindings = append(s.bindings, b)
	case "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration":
		var c admissionregistrationv1.MutatingWebhookConfiguration
		err = decodeStrict(object, &c)
		s.configurations = append(s.configurations, c)
	default:
		if slices.Contains(packagedKinds, kind) {
			s.others = append(s.others, object)
		} else if !slices.Contains(droppedKinds, kind) {
			err = fmt.Errorf("remove the object from the kustomization, because OLM does not install this kind on every cluster")
		}
	}
	return err
}

// decodeStrict decodes an object and fails for unknown fields, which would be lost.
func decodeStrict(object *unstructured.Unstructured, typed any) error {
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(object.Object, typed, true); err != nil {
		return fmt.Errorf("decoding: %w", err)
	}
	return nil
}

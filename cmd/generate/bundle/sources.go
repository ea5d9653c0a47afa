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
	// roles by kind and name; bound to the manager or not.
	roles map[rbacv1.RoleRef]role
	// bindings of both kinds, in the order of the kustomization; their types have the same fields.
	bindings []rbacv1.RoleBinding
	// configurations of webhooks, mutating ones first, whose type has all fields of the validating ones.
	configurations []admissionregistrationv1.MutatingWebhookConfiguration
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

// packaged are further kinds that OLM installs from a bundle and every cluster serves. OLM fails at one that the cluster does not serve.
var packagedKinds = []string{"ConfigMap", "NetworkPolicy", "PodDisruptionBudget", "PriorityClass", "Secret", "Service"}

// dropped are kinds that OLM makes itself.
var droppedKinds = []string{"Namespace", "ServiceAccount"}

// newSources sorts the objects of a kustomization. A kind for which a bundle has no place is an error: it would be lost.
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
			return fmt.Errorf("there is a second Deployment, %s: which is the manager?", s.deployment.Name)
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
			err = fmt.Errorf("OLM does not install this kind on every cluster: remove it from the kustomization")
		}
	}
	return err
}

// into reads an object strictly: a field that the type does not know would be lost.
func decodeStrict(object *unstructured.Unstructured, typed any) error {
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(object.Object, typed, true); err != nil {
		return fmt.Errorf("decoding: %w", err)
	}
	return nil
}

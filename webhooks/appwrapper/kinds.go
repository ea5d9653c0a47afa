package appwrapper

import (
	"fmt"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/odh-platform/odh-platform-operator/apis/appwrapper/v1beta2"
)

// grantingGroups are the groups of kinds that grant permissions. The API server compares the granted permissions with those of the creator. For
// a component, the creator is this operator. An access review does not cover the granted permissions.
var grantingGroups = map[string]bool{
	"rbac.authorization.k8s.io":  true,
	"authorization.openshift.io": true,
}

// createdByUserOnly are kinds whose pods are limited by the permissions of the creator. The creator of a component is the operator itself.
var createdByUserOnly = map[schema.GroupKind]bool{
	{Group: "modelregistry.opendatahub.io", Kind: "ModelRegistry"}: true,
	{Group: "aihub.opendatahub.io", Kind: "Catalog"}:               true,
	{Group: "serving.kserve.io", Kind: "ServingRuntime"}:           true,
}

const nestedAppWrapper = "Nested AppWrappers are forbidden: list the components of the inner one in the outer one"

// KindProblem returns the reason why a kind cannot be a component, or "". It does not depend on the user, so the controller calls it too, for
// objects that were stored without the webhook.
func KindProblem(mapping *meta.RESTMapping) string {
	kind := mapping.GroupVersionKind
	switch {
	case isAppWrapper(kind):
		return nestedAppWrapper
	case grantingGroups[kind.Group]:
		return fmt.Sprintf("AppWrappers cannot create %s: objects that grant permissions must be created by the user who grants them", kind.GroupKind())
	case createdByUserOnly[kind.GroupKind()]:
		return fmt.Sprintf("AppWrappers cannot create %s: the permissions of its creator limit its pods, so create it without an AppWrapper", kind.GroupKind())
	case mapping.Scope == nil || mapping.Scope.Name() != meta.RESTScopeNameNamespace:
		return fmt.Sprintf("AppWrappers cannot create cluster-scoped objects such as %s: ask an administrator to create it", kind.GroupKind())
	default:
		return ""
	}
}

// isAppWrapper reports whether a kind is an AppWrapper of any version.
func isAppWrapper(kind schema.GroupVersionKind) bool {
	return kind.Group == v1beta2.GroupVersion.Group && strings.EqualFold(kind.Kind, "AppWrapper")
}

// requiredPermissions returns the permissions that a user needs to create the object. The first permission is to create the kind.
func requiredPermissions(object *unstructured.Unstructured, resource schema.GroupVersionResource, namespace string) []authorizationv1.ResourceAttributes {
	create := authorizationv1.ResourceAttributes{
		Namespace: namespace, Verb: "create", Group: resource.Group, Version: resource.Version, Resource: resource.Resource,
	}
	permissions := []authorizationv1.ResourceAttributes{create}
	if resource.Group == "route.openshift.io" && resource.Resource == "routes" && hasCustomHost(object) {
		create.Subresource = "custom-host"
		permissions = append(permissions, create)
	}
	return permissions
}

// hasCustomHost reports whether a Route sets a host, subdomain, certificate or key. OpenShift requires a separate permission for these
// fields. This operator may have it, and the user may lack it.
func hasCustomHost(object *unstructured.Unstructured) bool {
	for _, path := range [][]string{
		{"spec", "host"}, {"spec", "subdomain"}, {"spec", "tls", "certificate"}, {"spec", "tls", "key"},
		{"spec", "tls", "caCertificate"}, {"spec", "tls", "destinationCACertificate"}, {"spec", "tls", "externalCertificate"},
	} {
		value, found, err := unstructured.NestedFieldNoCopy(object.Object, path...)
		if err != nil || found && value != nil && value != "" {
			return true
		}
	}
	return false
}

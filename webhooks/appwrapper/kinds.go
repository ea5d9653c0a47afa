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

// grantingGroups hold the kinds that hand out rights. The API server checks their creator against what they grant, and
// the creator of a component is this program: a user would be measured by its rights. The access review does not help,
// since it does not look at what is granted.
var grantingGroups = map[string]bool{
	"rbac.authorization.k8s.io":  true,
	"authorization.openshift.io": true,
}

// judged are kinds of ours. What their pods may use is held against the rights of their creator, who would be this program.
var createdByUserOnly = map[schema.GroupKind]bool{
	{Group: "modelregistry.opendatahub.io", Kind: "ModelRegistry"}: true,
	{Group: "aihub.opendatahub.io", Kind: "Catalog"}:               true,
	{Group: "serving.kserve.io", Kind: "ServingRuntime"}:           true,
}

const nestedRefusal = "Nested AppWrappers are forbidden: list the components of the inner one in the outer one"

// Refusal tells why a kind with that mapping can be no component; it is empty for one that can. Scope and group do not
// depend on the user, so the controller may ask as well, for objects that were stored while no webhook answered.
func KindProblem(mapping *meta.RESTMapping) string {
	kind := mapping.GroupVersionKind
	switch {
	case isAppWrapper(kind):
		return nestedRefusal
	case grantingGroups[kind.Group]:
		return fmt.Sprintf("AppWrappers cannot create %s: objects that grant permissions must be created by the user who grants them", kind.GroupKind())
	case createdByUserOnly[kind.GroupKind()]:
		return fmt.Sprintf("AppWrappers cannot create %s: what its pods may use depends on who creates it, so create it without an AppWrapper", kind.GroupKind())
	case mapping.Scope == nil || mapping.Scope.Name() != meta.RESTScopeNameNamespace:
		return fmt.Sprintf("AppWrappers cannot create cluster-scoped objects such as %s: ask an administrator to create it", kind.GroupKind())
	default:
		return ""
	}
}

// nested tells whether a kind is an AppWrapper, of whatever version.
func isAppWrapper(kind schema.GroupVersionKind) bool {
	return kind.Group == v1beta2.GroupVersion.Group && strings.EqualFold(kind.Kind, "AppWrapper")
}

// questions are the rights that a user needs to create the object without our help. The first is to create the kind.
func requiredRights(object *unstructured.Unstructured, resource schema.GroupVersionResource, namespace string) []authorizationv1.ResourceAttributes {
	create := authorizationv1.ResourceAttributes{
		Namespace: namespace, Verb: "create", Group: resource.Group, Version: resource.Version, Resource: resource.Resource,
	}
	all := []authorizationv1.ResourceAttributes{create}
	if resource.Group == "route.openshift.io" && resource.Resource == "routes" && hasCustomHost(object) {
		create.Subresource = "custom-host"
		all = append(all, create)
	}
	return all
}

// ownHost tells whether a Route asks for a host or a certificate of its own. OpenShift allows that to users who have a right
// of its own, which this program may have and the user may not.
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

// described names a right in a message.
func resourceName(right authorizationv1.ResourceAttributes) string {
	resource := right.Resource
	if right.Subresource != "" {
		resource += "/" + right.Subresource
	}
	return schema.GroupResource{Group: right.Group, Resource: resource}.String()
}

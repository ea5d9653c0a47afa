package rights

import (
	"encoding/json"
	"reflect"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// addImplied adds the permissions that the API server checked in addition for a successful request.
func (c *Collector) addImplied(e event, use Use) {
	created := e.Verb == "create" || e.Verb == "patch" && e.ResponseStatus.Code == 201
	if created {
		creation := use
		creation.Verb = "create"
		c.used[creation] = true
		c.addOwnerFinalizers(e)
	} else if response := e.ResponseObject.Metadata; response.UID != "" && !reflect.DeepEqual(c.owners[response.UID], response.OwnerReferences) {
		removal := use
		removal.Verb = "delete"
		c.used[removal] = true
	}
	if use.Verb == "create" || use.Verb == "patch" || use.Verb == "update" {
		c.addContent(e, use, created)
	}
}

// addContent adds the permissions that the content of a written object requires: those that a role or binding grants, and
// routes/custom-host.
func (c *Collector) addContent(e event, use Use, created bool) {
	switch {
	case use.Group == rbacv1.GroupName && (use.Resource == roles || use.Resource == clusterRoles):
		addRules(e.rules(), use.Namespace, c.granted)
	case use.Group == rbacv1.GroupName && e.ResponseObject.RoleRef.Kind == "ClusterRole":
		c.bound[Use{Name: e.ResponseObject.RoleRef.Name, Namespace: use.Namespace}] = true
	case use.Group == "route.openshift.io" && use.Resource == "routes" && hasHost(e.ResponseObject.Spec):
		host := use
		host.Resource, host.Verb = "routes/custom-host", "update"
		if created {
			host.Verb = "create"
		}
		c.used[host] = true
	}
}

// addOwnerFinalizers adds the permission to update the finalizers of owners whose deletion an owner reference blocks.
func (c *Collector) addOwnerFinalizers(e event) {
	for _, ref := range e.ResponseObject.Metadata.OwnerReferences {
		if ref.BlockOwnerDeletion == nil || !*ref.BlockOwnerDeletion {
			continue
		}
		version, err := schema.ParseGroupVersion(ref.APIVersion)
		if err != nil {
			continue // cannot happen: the API server validates it
		}
		resource, _ := meta.UnsafeGuessKindToResource(version.WithKind(ref.Kind))
		c.used[Use{Verb: "update", Group: version.Group, Resource: resource.Resource + "/finalizers", Name: ref.Name, Namespace: c.scope(e.ObjectRef.Namespace)}] = true
	}
}

// hasHost reports whether the spec of a Route has a host.
func hasHost(spec json.RawMessage) bool {
	var route struct{ Host string }
	return json.Unmarshal(spec, &route) == nil && route.Host != ""
}

// addRules adds the single permissions of rules in a namespace.
func addRules(rules []rbacv1.PolicyRule, namespace string, to map[Use]bool) {
	for _, rule := range rules {
		Expand(rule, func(use Use) {
			use.Namespace = namespace
			to[use] = true
		})
	}
}

// Expand calls visit for each single permission of a rule, without a namespace.
func Expand(rule rbacv1.PolicyRule, visit func(Use)) {
	names := rule.ResourceNames
	if len(names) == 0 {
		names = []string{""}
	}
	for _, verb := range rule.Verbs {
		for _, path := range rule.NonResourceURLs {
			visit(Use{Verb: verb, Path: path})
		}
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				for _, name := range names {
					visit(Use{Verb: verb, Group: group, Resource: resource, Name: name})
				}
			}
		}
	}
}

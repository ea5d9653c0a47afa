package rights

import (
	"encoding/json"
	"reflect"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// derive adds the rights that the API server checked in the course of a successful request.
func (c *Collector) derive(e event, use Use) {
	created := e.Verb == "create" || e.Verb == "patch" && e.ResponseStatus.Code == 201
	if created {
		creation := use
		creation.Verb = "create"
		c.used[creation] = true
		c.blocking(e)
	} else if response := e.ResponseObject.Metadata; response.UID != "" && !reflect.DeepEqual(c.owners[response.UID], response.OwnerReferences) {
		removal := use
		removal.Verb = "delete"
		c.used[removal] = true
	}
	if use.Verb == "create" || use.Verb == "patch" || use.Verb == "update" {
		c.deriveContent(e, use, created)
	}
}

// deriveContent adds the rights that the content of a written object requires: those that it grants, and the host of a Route.
func (c *Collector) deriveContent(e event, use Use, created bool) {
	switch {
	case use.Group == rbacv1.GroupName && (use.Resource == roles || use.Resource == clusterRoles):
		grants(e.rules(), use.Namespace, c.granted)
	case use.Group == rbacv1.GroupName && e.ResponseObject.RoleRef.Kind == "ClusterRole":
		c.bound[Use{Name: e.ResponseObject.RoleRef.Name, Namespace: use.Namespace}] = true
	case use.Group == "route.openshift.io" && use.Resource == "routes" && hosted(e.ResponseObject.Spec):
		host := use
		host.Resource, host.Verb = "routes/custom-host", "update"
		if created {
			host.Verb = "create"
		}
		c.used[host] = true
	}
}

// blocking adds the right to update the finalizers of owners whose deletion an owner reference blocks. An owner without a namespace
// is recorded without one.
func (c *Collector) blocking(e event) {
	for _, ref := range e.ResponseObject.Metadata.OwnerReferences {
		if ref.BlockOwnerDeletion == nil || !*ref.BlockOwnerDeletion {
			continue
		}
		version, err := schema.ParseGroupVersion(ref.APIVersion)
		if err != nil {
			continue // the API server has validated it
		}
		resource, _ := meta.UnsafeGuessKindToResource(version.WithKind(ref.Kind))
		c.used[Use{Verb: "update", Group: version.Group, Resource: resource.Resource + "/finalizers", Name: ref.Name, Namespace: c.scope(e.ObjectRef.Namespace)}] = true
	}
}

// hosted reports whether the spec of a Route has a host.
func hosted(spec json.RawMessage) bool {
	var route struct{ Host string }
	return json.Unmarshal(spec, &route) == nil && route.Host != ""
}

// grants adds each single right of rules in a namespace.
func grants(rules []rbacv1.PolicyRule, namespace string, to map[Use]bool) {
	for _, rule := range rules {
		Expand(rule, func(use Use) {
			use.Namespace = namespace
			to[use] = true
		})
	}
}

// Expand calls a function for each single right of a rule, without a namespace.
func Expand(rule rbacv1.PolicyRule, each func(Use)) {
	names := rule.ResourceNames
	if len(names) == 0 {
		names = []string{""}
	}
	for _, verb := range rule.Verbs {
		for _, path := range rule.NonResourceURLs {
			each(Use{Verb: verb, Path: path})
		}
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				for _, name := range names {
					each(Use{Verb: verb, Group: group, Resource: resource, Name: name})
				}
			}
		}
	}
}

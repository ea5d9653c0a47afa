package doctor

import (
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
)

// right is a single thing that an account may do.
type right struct {
	group, resource, verb, name string // name "" is every object
	path                        string // of requests that concern no resource
}

func (r right) String() string {
	if r.path != "" {
		return r.verb + " " + r.path
	}
	what := r.resource
	if r.group != "" {
		base, sub, has := strings.Cut(r.resource, "/")
		what = base + "." + r.group
		if has {
			what += "/" + sub
		}
	}
	if r.name != "" {
		what += " " + r.name
	}
	return r.verb + " " + what
}

// rightsOf takes rules apart.
func rightsOf(rules []rbacv1.PolicyRule) []right {
	var out []right
	for _, rule := range rules {
		for _, verb := range rule.Verbs {
			out = append(out, rightsTo(verb, rule)...)
		}
	}
	return out
}

// rightsTo are those of a rule with one verb.
func rightsTo(verb string, rule rbacv1.PolicyRule) []right {
	var out []right
	names := rule.ResourceNames
	if len(names) == 0 {
		names = []string{""}
	}
	for _, path := range rule.NonResourceURLs {
		out = append(out, right{verb: verb, path: path})
	}
	for _, group := range rule.APIGroups {
		for _, resource := range rule.Resources {
			for _, name := range names {
				out = append(out, right{group: group, resource: resource, verb: verb, name: name})
			}
		}
	}
	return out
}

// grants tells whether one of the rules allows it, as the API server would.
func grants(rules []rbacv1.PolicyRule, r right) bool {
	return slices.ContainsFunc(rules, func(rule rbacv1.PolicyRule) bool {
		if !among(rule.Verbs, r.verb) {
			return false
		}
		if r.path != "" {
			return slices.ContainsFunc(rule.NonResourceURLs, func(p string) bool {
				prefix, all := strings.CutSuffix(p, "*")
				return p == r.path || all && strings.HasPrefix(r.path, prefix)
			})
		}
		_, sub, _ := strings.Cut(r.resource, "/")
		resource := among(rule.Resources, r.resource) || sub != "" && slices.Contains(rule.Resources, "*/"+sub)
		return among(rule.APIGroups, r.group) && resource && (len(rule.ResourceNames) == 0 || r.name != "" && slices.Contains(rule.ResourceNames, r.name))
	})
}

func among(list []string, wanted string) bool {
	return slices.Contains(list, wanted) || slices.Contains(list, "*")
}

package rbac

import (
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/odh-platform/odh-platform-operator/test/rights"
)

// unused returns the grants that no record requires.
func unused(grants []grant, records []*rights.Record) []grant {
	var out []grant
	for _, g := range grants {
		needed := slices.ContainsFunc(records, func(record *rights.Record) bool {
			return slices.ContainsFunc(record.Runs, func(run rights.Run) bool { return g.neededBy(run, grants) })
		})
		if !needed {
			out = append(out, g)
		}
	}
	return out
}

// neededBy reports whether a manager with the component of the grant used the permission or granted it to others.
func (g grant) neededBy(run rights.Run, all []grant) bool {
	if g.component != "" && len(run.Components) > 0 && !slices.Contains(run.Components, g.component) {
		return false
	}
	return slices.ContainsFunc(run.Used, g.usedBy) || slices.ContainsFunc(run.Granted, g.covers) ||
		slices.ContainsFunc(run.Bound, func(bound rights.Bound) bool { return g.neededToBind(bound, all) })
}

// usedBy reports whether a grant is required for a use. A watch requires list too, because older API servers do not send the initial
// objects of a watch.
//
// A patch requires get too, because pkg/apply reads an object that is not in the cache before it writes it; this depends on the order
// of events.
func (g grant) usedBy(use rights.Use) bool {
	if g.Verb == "list" && use.Verb == "watch" || g.Verb == "get" && use.Verb == "patch" {
		use.Verb = g.Verb
	}
	return g.covers(use)
}

// neededToBind reports whether a grant is required to bind a ClusterRole: the verb bind, or, if no grant has this verb for the role,
// a permission of the role.
func (g grant) neededToBind(bound rights.Bound, all []grant) bool {
	bind := rights.Use{Verb: "bind", Group: rbacv1.GroupName, Resource: "clusterroles", Name: bound.Name, Namespace: bound.Namespace}
	if slices.ContainsFunc(all, func(other grant) bool { return other.covers(bind) }) {
		return g.covers(bind)
	}
	return slices.ContainsFunc(bound.Rules, g.covers)
}

// redundant returns the grants that another grant of the same role includes.
func redundant(grants []grant) []grant {
	var out []grant
	for _, g := range grants {
		if slices.ContainsFunc(grants, func(other grant) bool {
			return other != g && other.role == g.role && other.covers(g.Use)
		}) {
			out = append(out, g)
		}
	}
	return out
}

// forbiddenRequests returns the forbidden requests in the records that no spec expected.
func forbiddenRequests(records []*rights.Record) []string {
	var messages []string
	for _, record := range records {
		for _, run := range record.Runs {
			for _, refusal := range run.Refused {
				if !refusal.Expected {
					messages = append(messages, record.Suite+": "+refusal.String()+": "+refusal.Message)
				}
			}
		}
	}
	return messages
}

// missing returns the suites without a complete record.
func missing(suites []string, records []*rights.Record) []string {
	var out []string
	for _, suite := range suites {
		if !slices.ContainsFunc(records, func(r *rights.Record) bool { return r.Suite == suite && r.Complete }) {
			out = append(out, suite)
		}
	}
	return out
}

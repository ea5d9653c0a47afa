package rbac

import (
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/odh-platform/odh-platform-operator/test/rights"
)

// unused returns the grants whose use no record shows.
func unused(grants []grant, records []*rights.Record) []grant {
	var left []grant
	for _, g := range grants {
		needed := slices.ContainsFunc(records, func(record *rights.Record) bool {
			return slices.ContainsFunc(record.Runs, func(run rights.Run) bool { return g.neededBy(run, grants) })
		})
		if !needed {
			left = append(left, g)
		}
	}
	return left
}

// neededBy reports whether managers with the component of the grant used it or granted it to others.
func (g grant) neededBy(run rights.Run, all []grant) bool {
	if g.component != "" && len(run.Components) > 0 && !slices.Contains(run.Components, g.component) {
		return false
	}
	return slices.ContainsFunc(run.Used, g.usedBy) || slices.ContainsFunc(run.Granted, g.covers) ||
		slices.ContainsFunc(run.Bound, func(bound rights.Bound) bool { return g.neededToBind(bound, all) })
}

// usedBy reports whether a grant was used. A watch also uses list: the client lists before it watches if the API server
// does not send the initial objects of a watch, as older servers do not.
//
// A patch also uses get: pkg/apply reads an object that neither it nor the cache knows before it writes, and whether that happens in a
// run depends on the order of events.
func (g grant) usedBy(use rights.Use) bool {
	if g.Verb == "list" && use.Verb == "watch" || g.Verb == "get" && use.Verb == "patch" {
		use.Verb = g.Verb
	}
	return g.covers(use)
}

// neededToBind reports whether a grant lets the manager bind a ClusterRole: by the verb bind or, if no grant has that verb for
// the role, by containing a right of the role.
func (g grant) neededToBind(bound rights.Bound, all []grant) bool {
	bind := rights.Use{Verb: "bind", Group: rbacv1.GroupName, Resource: "clusterroles", Name: bound.Name, Namespace: bound.Namespace}
	if slices.ContainsFunc(all, func(other grant) bool { return other.covers(bind) }) {
		return g.covers(bind)
	}
	return slices.ContainsFunc(bound.Rules, g.covers)
}

// redundant returns the grants that another one of the same role contains.
func redundant(grants []grant) []grant {
	var left []grant
	for _, g := range grants {
		if slices.ContainsFunc(grants, func(other grant) bool {
			return other != g && other.role == g.role && other.covers(g.Use)
		}) {
			left = append(left, g)
		}
	}
	return left
}

// rejections returns the refused requests of all records that no spec expected.
func rejections(records []*rights.Record) []string {
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

// missing returns the suites without a record of a complete run.
func missing(suites []string, records []*rights.Record) []string {
	var left []string
	for _, suite := range suites {
		if !slices.ContainsFunc(records, func(r *rights.Record) bool { return r.Suite == suite && r.Complete }) {
			left = append(left, suite)
		}
	}
	return left
}

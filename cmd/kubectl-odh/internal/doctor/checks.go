package doctor

import (
	"cmp"
	"slices"
)

// check is one question to the facts.
type check struct {
	name string
	// why says what a problem leads to, unless a finding has its own.
	why string
	// run returns the problems, and what to say where there are none; "" where the check does not apply.
	run func(*Facts, Shipped) (problems []Finding, fine string)
}

// Names of the checks under which the gatherer reports what it could not read.
const (
	manager     = "manager"
	originals   = "originals"
	crds        = "crds"
	rights      = "rights"
	certificate = "certificate"
	webhooks    = "webhooks"
	references  = "references"
	runtimes    = "runtimes"
)

// checks in the order in which they are shown.
var checks = []check{
	{"server", "older API servers lack kinds and fields that the operator uses", checkServer},
	{manager, "without a running manager nothing is reconciled; what runs keeps running", checkManager},
	{"version", "this program checks against the manifests of its own version", checkVersion},
	{"settings", "a manager does not start with settings that contradict each other", checkSettings},
	{originals, "a former operator and this one write the same objects in turns", checkOriginals},
	{crds, "a manager that meets older CRDs loses fields or cannot store what it writes", checkCRDs},
	{"capabilities", "components wait while the APIs that they require are not served", checkCapabilities},
	{rights, "the manager cannot do its work; conditions and its log show what was denied", checkRights},
	{certificate, "API servers do not call webhooks whose certificate they do not trust", checkCertificate},
	{webhooks, "while a webhook with failurePolicy Fail does not answer, its kinds can be neither created nor changed", checkWebhooks},
	{references, "pods that use them do not start, or keep running with the values that they were started with", checkReferences},
	{runtimes, "models of the runtime are not served, or by the pods of an earlier spec", checkRuntimes},
}

// judge runs all checks. Findings have the name of their check, the bad ones first within each.
func judge(f *Facts, ships Shipped) []Finding {
	var all []Finding
	for _, c := range checks {
		problems, fine := c.run(f, ships)
		found := slices.Concat(f.Unread[c.name], problems)
		if len(found) == 0 && fine != "" {
			found = []Finding{{Result: OK, Found: fine}}
		}
		for i := range found {
			found[i].Check = c.name
			if found[i].Result == Fail || found[i].Result == Warn {
				found[i].Why = cmp.Or(found[i].Why, c.why)
			}
		}
		slices.SortStableFunc(found, byResult)
		all = append(all, found...)
	}
	return all
}

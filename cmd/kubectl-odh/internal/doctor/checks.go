package doctor

import "slices"

// check is one question to the facts.
type check struct {
	name string
	// why says what follows when it is not well, unless a finding says it itself.
	why string
	run func(*Facts, Shipped) []Finding
}

// checks are all questions, in the order in which they are shown.
var checks = []check{
	{"server", "kinds and fields that the operator uses are not there on older API servers", checkServer},
	{"manager", "without a running manager nothing is reconciled; what runs keeps running", checkManager},
	{"replicas", "two managers write the same objects, and undo what the other did", checkReplicas},
	{"version", "what this program says fits managers of its own version", checkVersion},
	{"settings", "a manager does not start with settings that contradict each other", checkSettings},
	{"originals", "a former operator and this one write the same objects in turns", checkOriginals},
	{"crds", "a manager that meets older CRDs loses fields or cannot store what it writes", checkCRDs},
	{"capabilities", "components rest while the APIs that they require are not served", checkCapabilities},
	{"rights", "the manager cannot do what it was refused; conditions and its log tell", checkRights},
	{"userroles", "users without these roles may neither see nor make the resources", checkUserRoles},
	{"certificate", "API servers do not call webhooks whose certificate they do not trust", checkCertificate},
	{"webhooks", "while a webhook with failurePolicy Fail does not answer, its kinds can be neither created nor changed", checkWebhooks},
	{"modelmesh", "models are not loaded", checkMesh},
	{"platform", "what only OpenShift provides is missing", checkPlatform},
	{"references", "pods that name them do not start, or run on with what they were started with", checkReferences},
	{"resources", "users do not have what they asked for", checkResources},
}

// judge asks all questions. Findings bear the name of their check, the bad ones first within each.
func judge(f *Facts, ships Shipped) []Finding {
	var all []Finding
	for _, c := range checks {
		found := c.run(f, ships)
		for i := range found {
			found[i].Check = c.name
			if found[i].Why == "" && found[i].Result != OK && found[i].Result != Unknown {
				found[i].Why = c.why
			}
		}
		slices.SortStableFunc(found, byResult)
		all = append(all, found...)
	}
	return all
}

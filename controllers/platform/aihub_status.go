package platform

import (
	"cmp"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	platformv1alpha1 "github.com/odh-platform/odh-platform-operator/apis/platform/v1alpha1"
)

// Conditions of an AIHub beside Ready. The platform shows ModelRegistryReady as its own.
const (
	ConditionProvisioned   = "ProvisioningSucceeded"
	ConditionRegistryReady = "ModelRegistryReady"
	ConditionCatalogReady  = "CatalogReady"
	ConditionDegraded      = "Degraded"
)

// Reasons of these conditions.
const (
	ReasonApplied            = "AllResourcesApplied"
	ReasonDeployFailed       = "DeployFailed"
	ReasonAvailable          = "AllDeploymentsAvailable"
	ReasonChildNotReady      = "ChildDeploymentNotReady"
	ReasonHealthy            = "AllDependentsHealthy"
	ReasonProvisioningFailed = "ProvisioningFailed"
	ReasonNoGatewayDomain    = "GatewayDomainUnavailable"
	ReasonNoDegradation      = "NoDegradation"
)

// order is that of the conditions that come first; all others follow by their names.
var order = []string{ConditionReady, ConditionProvisioned, ConditionRegistryReady, ConditionCatalogReady}

// dependents are the conditions on which Ready depends.
var dependents = order[1:]

// hubFacts are what the status of an AIHub is made of.
type hubFacts struct {
	generation int64
	// failure says why something that was to be made is not there; empty when all is.
	failure string
	// note says what is special about what was made; empty when nothing is.
	note string
	// registry and catalog say why these do not run; empty when they do.
	registry, catalog string
	// domain of the gateway; empty when there is none.
	domain string
}

// hubConditions judges everything but Ready.
func hubConditions(f hubFacts) []platformv1alpha1.Condition {
	provisioned := platformv1alpha1.Condition{
		Type: ConditionProvisioned, Status: metav1.ConditionTrue, Reason: ReasonApplied,
		Message: cmp.Or(f.note, "everything that registries and the catalog need was made"),
	}
	if f.failure != "" {
		provisioned.Status, provisioned.Reason, provisioned.Message = metav1.ConditionFalse, ReasonDeployFailed, f.failure
	}
	all := []platformv1alpha1.Condition{
		provisioned,
		child(ConditionRegistryReady, "the controllers of model registries run", f.registry),
		child(ConditionCatalogReady, "the controllers of the catalog run", f.catalog),
		degraded(f),
	}
	for i := range all {
		all[i].ObservedGeneration = f.generation
	}
	return all
}

func child(kind, good, problem string) platformv1alpha1.Condition {
	if problem != "" {
		return platformv1alpha1.Condition{Type: kind, Status: metav1.ConditionFalse, Reason: ReasonChildNotReady, Message: problem}
	}
	return platformv1alpha1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: ReasonAvailable, Message: good}
}

// degraded reports what is worth knowing and blocks nothing, unless something failed, which Ready reports too.
func degraded(f hubFacts) platformv1alpha1.Condition {
	c := platformv1alpha1.Condition{Type: ConditionDegraded, Severity: platformv1alpha1.SeverityInfo}
	switch {
	case f.failure != "":
		c.Status, c.Reason, c.Message, c.Severity = metav1.ConditionTrue, ReasonProvisioningFailed, f.failure, platformv1alpha1.SeverityError
	case f.registry == "" && f.catalog == "" && f.domain == "":
		c.Status, c.Reason = metav1.ConditionTrue, ReasonNoGatewayDomain
		c.Message = "no gateway publishes registries and the catalog, unless a setting names its domain; set spec.gateway.domain"
	default:
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, ReasonNoDegradation, "nothing is degraded"
	}
	return c
}

// aggregate derives Ready: it repeats the first dependent that is unhappy, a False one before an Unknown one, and among those the
// one that changed last. What is merely worth knowing does not count.
func aggregate(list []platformv1alpha1.Condition, generation int64) platformv1alpha1.Condition {
	var unhappy []platformv1alpha1.Condition
	for _, kind := range dependents {
		c := platformv1alpha1.Condition{Type: kind, Status: metav1.ConditionUnknown}
		if i := slices.IndexFunc(list, ofType(kind)); i >= 0 {
			c = list[i]
		}
		if c.Status != metav1.ConditionTrue && c.Severity != platformv1alpha1.SeverityInfo {
			unhappy = append(unhappy, c)
		}
	}
	ready := platformv1alpha1.Condition{
		Type: ConditionReady, Status: metav1.ConditionTrue, Reason: ReasonHealthy, ObservedGeneration: generation,
		Message: "registries and the catalog are reconciled",
	}
	if len(unhappy) == 0 {
		return ready
	}
	slices.SortStableFunc(unhappy, func(a, b platformv1alpha1.Condition) int {
		return cmp.Or(badness(a)-badness(b), b.LastTransitionTime.Compare(a.LastTransitionTime.Time))
	})
	first := unhappy[0]
	ready.Status, ready.Reason, ready.Message = first.Status, first.Reason, first.Message
	return ready
}

func badness(c platformv1alpha1.Condition) int {
	if c.Status == metav1.ConditionFalse {
		return 0
	}
	return 1
}

// reportHub writes the facts into a status. Foreign conditions stay, each in its place in the order.
func reportHub(status *platformv1alpha1.AIHubStatus, now metav1.Time, f hubFacts) {
	for _, c := range hubConditions(f) {
		mergeCondition(&status.Conditions, now, c)
	}
	summarizeHub(status, now, f.generation)
}

// summarizeHub derives Ready and the phase, and puts the conditions into their order.
func summarizeHub(status *platformv1alpha1.AIHubStatus, now metav1.Time, generation int64) {
	ready := aggregate(status.Conditions, generation)
	mergeCondition(&status.Conditions, now, ready)
	status.Phase = platformv1alpha1.PhaseNotReady
	if ready.Status == metav1.ConditionTrue {
		status.Phase = platformv1alpha1.PhaseReady
	}
	slices.SortStableFunc(status.Conditions, func(a, b platformv1alpha1.Condition) int {
		return cmp.Or(rank(a.Type)-rank(b.Type), cmp.Compare(a.Type, b.Type))
	})
}

// rank is the place of a condition; those that share one go by their names.
func rank(kind string) int {
	if i := slices.Index(order, kind); i >= 0 {
		return i
	}
	return len(order)
}

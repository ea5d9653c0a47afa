package platform

import (
	"cmp"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	platformv1alpha1 "github.com/odh-platform/odh-platform-operator/apis/platform/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/pkg/reconciler"
	"github.com/odh-platform/odh-platform-operator/pkg/status/conditions"
)

// ConditionReady says whether the area has all it needs. The platform waits for it.
const ConditionReady = "Ready"

// mergeCondition adds or updates one condition and leaves foreign ones alone. The transition time moves with the status,
// the heartbeat with any change; neither moves when nothing changes.
func mergeCondition(list *[]platformv1alpha1.Condition, now metav1.Time, c platformv1alpha1.Condition) {
	c.Message = conditions.Clip(c.Message, conditions.MaxMessage)
	c.LastTransitionTime, c.LastHeartbeatTime = now, &now
	i := slices.IndexFunc(*list, ofType(c.Type))
	if i < 0 {
		*list = append(*list, c)
		return
	}
	old := (*list)[i]
	if old.Status == c.Status && old.Reason == c.Reason && old.Message == c.Message &&
		old.ObservedGeneration == c.ObservedGeneration && old.Severity == c.Severity {
		return
	}
	if old.Status == c.Status && !old.LastTransitionTime.IsZero() {
		c.LastTransitionTime = old.LastTransitionTime
	}
	(*list)[i] = c
}

// removeCondition drops a condition of ours.
func removeCondition(list *[]platformv1alpha1.Condition, kind string) {
	*list = slices.DeleteFunc(*list, ofType(kind))
}

// access lets the shell of reconciles see and set the conditions of a resource of the platform.
func conditionAccess[T reconciler.StatusObject](of func(T) *[]platformv1alpha1.Condition, now func() metav1.Time) reconciler.Conditions[T] {
	return reconciler.Conditions[T]{
		List: func(o T) []metav1.Condition { return toMetaConditions(*of(o)) },
		Set: func(o T, c metav1.Condition) {
			mergeCondition(of(o), now(), platformv1alpha1.Condition{
				Type: c.Type, Status: c.Status, Reason: c.Reason, Message: c.Message,
				ObservedGeneration: c.ObservedGeneration, Severity: platformv1alpha1.SeverityInfo,
			})
		},
		Remove: func(o T, kind string) { removeCondition(of(o), kind) },
	}
}

func ofType(kind string) func(platformv1alpha1.Condition) bool {
	return func(c platformv1alpha1.Condition) bool { return c.Type == kind }
}

// standard returns the conditions as those of Kubernetes, for events and metrics.
func toMetaConditions(list []platformv1alpha1.Condition) []metav1.Condition {
	out := make([]metav1.Condition, 0, len(list))
	for _, c := range list {
		out = append(out, metav1.Condition{
			Type: c.Type, Status: c.Status, Reason: c.Reason, Message: c.Message,
			ObservedGeneration: c.ObservedGeneration, LastTransitionTime: c.LastTransitionTime,
		})
	}
	return out
}

// summarize derives the phase from the condition Ready.
func setPhase(status *platformv1alpha1.Status) {
	status.Phase = platformv1alpha1.PhaseProgressing
	i := slices.IndexFunc(status.Conditions, ofType(ConditionReady))
	if i >= 0 && status.Conditions[i].Status == metav1.ConditionTrue {
		status.Phase = platformv1alpha1.PhaseReady
	}
}

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
	ReasonLegacyOperator     = "EarlierOperatorRuns"
	ReasonNoDegradation      = "NoDegradation"
)

// order is that of the conditions that come first; all others follow by their names.
var conditionOrder = []string{ConditionReady, ConditionProvisioned, ConditionRegistryReady, ConditionCatalogReady}

// dependents are the conditions on which Ready depends.
var dependents = conditionOrder[1:]

// hubFacts are what the status of an AIHub is made of.
type aihubFacts struct {
	generation int64
	// failure says why something that was to be made is not there; empty when all is.
	failure string
	// note says what is special about what was made; empty when nothing is.
	provisionedMessage string
	// warning is what an administrator has to end although everything is there; empty for nothing.
	warning string
	// registry and catalog say why these do not run; empty when they do.
	registry, catalog string
	// domain of the gateway; empty when there is none.
	domain string
}

// hubConditions judges everything but Ready.
func aihubConditions(f aihubFacts) []platformv1alpha1.Condition {
	condition := func(kind string, status metav1.ConditionStatus, reason, message string) platformv1alpha1.Condition {
		return platformv1alpha1.Condition{Type: kind, Status: status, Reason: reason, Message: message, ObservedGeneration: f.generation}
	}
	child := func(kind, good, problem string) platformv1alpha1.Condition {
		if problem != "" {
			return condition(kind, metav1.ConditionFalse, ReasonChildNotReady, problem)
		}
		return condition(kind, metav1.ConditionTrue, ReasonAvailable, good)
	}
	registry := child(ConditionRegistryReady, "the controllers of model registries run", f.registry)
	catalog := child(ConditionCatalogReady, "the controllers of the catalog run", f.catalog)
	provisioned := condition(ConditionProvisioned, metav1.ConditionTrue, ReasonApplied,
		cmp.Or(f.provisionedMessage, "everything that registries and the catalog need was made"))
	// It reports what is worth knowing and blocks nothing, unless something failed, which Ready reports too.
	degraded := condition(ConditionDegraded, metav1.ConditionFalse, ReasonNoDegradation, "nothing is degraded")
	severity := platformv1alpha1.SeverityInfo
	switch {
	case f.failure != "":
		provisioned = condition(ConditionProvisioned, metav1.ConditionFalse, ReasonDeployFailed, f.failure)
		degraded = condition(ConditionDegraded, metav1.ConditionTrue, ReasonProvisioningFailed, f.failure)
		severity = platformv1alpha1.SeverityError
	case f.warning != "":
		degraded = condition(ConditionDegraded, metav1.ConditionTrue, ReasonLegacyOperator, f.warning)
	case f.registry == "" && f.catalog == "" && f.domain == "":
		degraded = condition(ConditionDegraded, metav1.ConditionTrue, ReasonNoGatewayDomain,
			"no gateway publishes registries and the catalog, unless a setting names its domain; set spec.gateway.domain")
	}
	degraded.Severity = severity
	return []platformv1alpha1.Condition{provisioned, registry, catalog, degraded}
}

// aggregate derives Ready: it repeats the first dependent that is unhappy, a False one before an Unknown one, and among those the
// one that changed last. What is merely worth knowing does not count.
func readyCondition(list []platformv1alpha1.Condition, generation int64) platformv1alpha1.Condition {
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
	first := slices.MinFunc(unhappy, func(a, b platformv1alpha1.Condition) int {
		return cmp.Or(statusPriority(a)-statusPriority(b), b.LastTransitionTime.Compare(a.LastTransitionTime.Time))
	})
	ready.Status, ready.Reason, ready.Message = first.Status, first.Reason, first.Message
	return ready
}

func statusPriority(c platformv1alpha1.Condition) int {
	if c.Status == metav1.ConditionFalse {
		return 0
	}
	return 1
}

// reportHub writes the facts into a status. Foreign conditions stay, each in its place in the order.
func reportAIHub(status *platformv1alpha1.AIHubStatus, now metav1.Time, f aihubFacts) {
	for _, c := range aihubConditions(f) {
		mergeCondition(&status.Conditions, now, c)
	}
	setReadyAndPhase(status, now, f.generation)
}

// summarizeHub derives Ready and the phase, and puts the conditions into their order.
func setReadyAndPhase(status *platformv1alpha1.AIHubStatus, now metav1.Time, generation int64) {
	ready := readyCondition(status.Conditions, generation)
	mergeCondition(&status.Conditions, now, ready)
	status.Phase = platformv1alpha1.PhaseNotReady
	if ready.Status == metav1.ConditionTrue {
		status.Phase = platformv1alpha1.PhaseReady
	}
	slices.SortStableFunc(status.Conditions, func(a, b platformv1alpha1.Condition) int {
		return cmp.Or(conditionIndex(a.Type)-conditionIndex(b.Type), cmp.Compare(a.Type, b.Type))
	})
}

// rank is the place of a condition; those that share one go by their names.
func conditionIndex(kind string) int {
	if i := slices.Index(conditionOrder, kind); i >= 0 {
		return i
	}
	return len(conditionOrder)
}

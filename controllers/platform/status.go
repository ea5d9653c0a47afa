package platform

import (
	"cmp"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	platformv1alpha1 "github.com/odh-platform/odh-platform-operator/apis/platform/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/pkg/reconciler"
	"github.com/odh-platform/odh-platform-operator/pkg/redact"
	"github.com/odh-platform/odh-platform-operator/pkg/status/conditions"
)

// ConditionReady is the condition for which the platform waits.
const ConditionReady = "Ready"

// mergeCondition adds or updates a condition. LastTransitionTime changes with the status, LastHeartbeatTime with any change.
func mergeCondition(list *[]platformv1alpha1.Condition, now metav1.Time, c platformv1alpha1.Condition) {
	c.Message = redact.Clip(c.Message, conditions.MaxMessage)
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

func removeCondition(list *[]platformv1alpha1.Condition, conditionType string) {
	*list = slices.DeleteFunc(*list, ofType(conditionType))
}

// conditionAccess makes the conditions of a platform resource accessible to pkg/reconciler.
func conditionAccess[T reconciler.StatusObject](conditionsOf func(T) *[]platformv1alpha1.Condition, now func() metav1.Time) reconciler.Conditions[T] {
	return reconciler.Conditions[T]{
		List: func(o T) []metav1.Condition { return toMetaConditions(*conditionsOf(o)) },
		Set: func(o T, c metav1.Condition) {
			mergeCondition(conditionsOf(o), now(), platformv1alpha1.Condition{
				Type: c.Type, Status: c.Status, Reason: c.Reason, Message: c.Message,
				ObservedGeneration: c.ObservedGeneration, Severity: platformv1alpha1.SeverityInfo,
			})
		},
		Remove: func(o T, conditionType string) { removeCondition(conditionsOf(o), conditionType) },
	}
}

func ofType(conditionType string) func(platformv1alpha1.Condition) bool {
	return func(c platformv1alpha1.Condition) bool { return c.Type == conditionType }
}

// toMetaConditions converts conditions for events and metrics.
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

// setPhase sets the phase according to the condition Ready.
func setPhase(status *platformv1alpha1.Status) {
	status.Phase = platformv1alpha1.PhaseProgressing
	i := slices.IndexFunc(status.Conditions, ofType(ConditionReady))
	if i >= 0 && status.Conditions[i].Status == metav1.ConditionTrue {
		status.Phase = platformv1alpha1.PhaseReady
	}
}

// Conditions of an AIHub in addition to Ready. The platform repeats ModelRegistryReady in its own status.
const (
	ConditionProvisioned   = "ProvisioningSucceeded"
	ConditionRegistryReady = "ModelRegistryReady"
	ConditionCatalogReady  = "CatalogReady"
	ConditionDegraded      = "Degraded"
)

// Reasons of these conditions and of Ready.
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
	ReasonFirstReconcile     = "FirstReconcile"
)

// conditionOrder lists the first conditions; all others follow by name.
var conditionOrder = []string{ConditionReady, ConditionProvisioned, ConditionRegistryReady, ConditionCatalogReady}

// dependents lists the conditions on which Ready depends.
var dependents = conditionOrder[1:]

// aihubFacts holds the inputs of the status of an AIHub. Messages are empty if they do not apply.
type aihubFacts struct {
	generation int64
	// failure is the error of the reconcile, or why the reconcile or the deletion waits.
	failure string
	// provisionedMessage is the message of ConditionProvisioned without a failure.
	provisionedMessage string
	// warning is a problem that an administrator has to solve but that blocks nothing.
	warning string
	// registry and catalog are the reasons why these components do not run.
	registry, catalog string
	// domain is the domain of the gateway.
	domain string
}

// aihubConditions returns all conditions except Ready.
func aihubConditions(f aihubFacts) []platformv1alpha1.Condition {
	condition := func(conditionType string, status metav1.ConditionStatus, reason, message string) platformv1alpha1.Condition {
		return platformv1alpha1.Condition{Type: conditionType, Status: status, Reason: reason, Message: message, ObservedGeneration: f.generation}
	}
	child := func(conditionType, readyMessage, problem string) platformv1alpha1.Condition {
		if problem != "" {
			return condition(conditionType, metav1.ConditionFalse, ReasonChildNotReady, problem)
		}
		return condition(conditionType, metav1.ConditionTrue, ReasonAvailable, readyMessage)
	}
	registry := child(ConditionRegistryReady, "the controllers of model registries run", f.registry)
	catalog := child(ConditionCatalogReady, "the controllers of the catalog run", f.catalog)
	provisioned := condition(ConditionProvisioned, metav1.ConditionTrue, ReasonApplied,
		cmp.Or(f.provisionedMessage, "all objects that registries and the catalog need exist"))
	// Degraded is informational unless the reconcile failed, which Ready reports too.
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
			"spec.gateway.domain is empty; set it, unless a setting of the operator contains the domain of the gateway: without a domain no gateway publishes registries and the catalog")
	}
	degraded.Severity = severity
	return []platformv1alpha1.Condition{provisioned, registry, catalog, degraded}
}

// readyCondition returns Ready. If dependents are not True, Ready has the values of one: a False dependent takes precedence over an Unknown
// one, and a later transition over an earlier one. Dependents of severity Info are ignored.
func readyCondition(list []platformv1alpha1.Condition, generation int64) platformv1alpha1.Condition {
	var notTrue []platformv1alpha1.Condition
	for _, dependent := range dependents {
		c := platformv1alpha1.Condition{
			Type: dependent, Status: metav1.ConditionUnknown, Reason: ReasonFirstReconcile, Message: dependent + " is not known before the first complete reconcile",
		}
		if i := slices.IndexFunc(list, ofType(dependent)); i >= 0 {
			c = list[i]
		}
		if c.Status != metav1.ConditionTrue && c.Severity != platformv1alpha1.SeverityInfo {
			notTrue = append(notTrue, c)
		}
	}
	ready := platformv1alpha1.Condition{
		Type: ConditionReady, Status: metav1.ConditionTrue, Reason: ReasonHealthy, ObservedGeneration: generation,
		Message: "registries and the catalog are reconciled",
	}
	if len(notTrue) == 0 {
		return ready
	}
	first := slices.MinFunc(notTrue, func(a, b platformv1alpha1.Condition) int {
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

// reportAIHub sets the conditions and the phase. It keeps conditions of other types.
func reportAIHub(status *platformv1alpha1.AIHubStatus, now metav1.Time, f aihubFacts) {
	for _, c := range aihubConditions(f) {
		mergeCondition(&status.Conditions, now, c)
	}
	setReadyAndPhase(status, now, f.generation)
}

// setReadyAndPhase sets Ready and the phase, and sorts the conditions.
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

// conditionIndex returns the position of a condition; equal positions are sorted by name.
func conditionIndex(conditionType string) int {
	if i := slices.Index(conditionOrder, conditionType); i >= 0 {
		return i
	}
	return len(conditionOrder)
}

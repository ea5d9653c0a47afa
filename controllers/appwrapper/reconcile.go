package appwrapper

import (
	"context"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"

	awv1beta2 "github.com/odh-platform/odh-platform-operator/apis/appwrapper/v1beta2"
	"github.com/odh-platform/odh-platform-operator/controllers/appwrapper/rules"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/reconciler"
	"github.com/odh-platform/odh-platform-operator/pkg/status/conditions"
)

// workloadReconciler executes the decisions of the rules.
type workloadReconciler struct {
	settings Settings
	applier  *apply.Applier
	kinds    *kindReader
	mapper   meta.RESTMapper
	memory   *memory
	nodes    nodeHealth
	recorder events.EventRecorder
}

// newWorkloadReconciler returns a reconciler with an empty memory.
func newWorkloadReconciler(settings Settings, applier *apply.Applier, kinds *kindReader, mapper meta.RESTMapper) *workloadReconciler {
	return &workloadReconciler{settings: settings, applier: applier, kinds: kinds, mapper: mapper, memory: &memory{clock: settings.Clock, states: map[types.UID]*workloadState{}}}
}

// logic returns the logic of the base reconciler.
func (w *workloadReconciler) logic() reconciler.Logic[*awv1beta2.AppWrapper] {
	return reconciler.Logic[*awv1beta2.AppWrapper]{
		Phases:            []reconciler.Phase[*awv1beta2.AppWrapper]{{Name: "deciding", Run: w.step}},
		ReadyCondition:    conditions.Ready,
		Summary:           w.setReady,
		IgnoresPause:      func(aw *awv1beta2.AppWrapper) bool { return aw.Spec.Suspend },
		Finalizer:         awv1beta2.Finalizer,
		NeedsFinalizer:    needsFinalizer,
		Finalize:          w.finalize,
		OnDeleted:         w.memory.forget,
		MayWait:           onlyMessagesDiffer,
		AfterStatusUpdate: w.recordTransition,
	}
}

// onlyMessagesDiffer reports whether two statuses differ only in messages of conditions, such as the number of pods that ended.
func onlyMessagesDiffer(a, b *awv1beta2.AppWrapper) bool {
	statuses := [2]*awv1beta2.AppWrapperStatus{a.Status.DeepCopy(), b.Status.DeepCopy()}
	for _, status := range statuses {
		for i := range status.Conditions {
			status.Conditions[i].Message = ""
		}
	}
	return equality.Semantic.DeepEqual(statuses[0], statuses[1])
}

// needsFinalizer reports whether this operator manages the AppWrapper, and its resources are deployed or about to be deployed.
func needsFinalizer(aw *awv1beta2.AppWrapper) bool {
	willStart := (aw.Status.Phase == awv1beta2.PhaseEmpty || aw.Status.Phase == awv1beta2.PhaseSuspended) && !aw.Spec.Suspend
	return aw.IsManaged() && (willStart || meta.IsStatusConditionTrue(aw.Status.Conditions, awv1beta2.ConditionResourcesDeployed))
}

// step makes one decision about a managed AppWrapper that is not being deleted.
func (w *workloadReconciler) step(ctx context.Context, aw *awv1beta2.AppWrapper) error {
	if !aw.IsManaged() {
		return nil
	}
	decision, err := w.decideAndExecute(ctx, aw, rules.ByPhase[aw.Status.Phase])
	failed := aw.Status.Phase == awv1beta2.PhaseFailed
	if err != nil || decision.RequeueAfter == 0 && !failed {
		return err
	}
	return &reconciler.Wait{For: "the next decision after rule " + decision.Rule, Retry: decision.RequeueAfter, Stalled: failed}
}

// finalize makes one decision about an AppWrapper that is being deleted, even if another controller manages it now, because this operator
// created its objects.
func (w *workloadReconciler) finalize(ctx context.Context, aw *awv1beta2.AppWrapper) error {
	decision, err := w.decideAndExecute(ctx, aw, rules.WhileTerminating)
	if err != nil || decision.RemoveFinalizer {
		return err
	}
	w.setReady(aw)
	return &reconciler.Wait{For: "the next decision after rule " + decision.Rule, Retry: decision.RequeueAfter}
}

// decideAndExecute collects facts, evaluates the rules, executes the requested action, and applies the final decision to the status.
func (w *workloadReconciler) decideAndExecute(ctx context.Context, aw *awv1beta2.AppWrapper, list []rules.Rule) (rules.Decision, error) {
	stored := aw.Status.DeepCopy().ComponentStatus
	w.memory.restoreDeferred(aw)
	facts, err := w.collectFacts(ctx, aw)
	if err != nil {
		return rules.Decision{}, err
	}
	decision := rules.Decide(list, facts)
	switch decision.Action {
	case rules.CreateComponents:
		if err := w.loadTemplates(ctx, aw); err != nil {
			return rules.Decision{}, err
		}
		facts.Created = w.createComponents(ctx, aw)
		decision = rules.Decide(list, facts)
	case rules.DeleteComponents, rules.ForceDeletion:
		facts.Deleted = w.deleteComponents(ctx, aw, decision.Action == rules.ForceDeletion)
		if _, waits := reconciler.AsWait(facts.Deleted.Err); waits { // for the first list of a kind
			return rules.Decision{}, facts.Deleted.Err
		}
		decision = rules.Decide(list, facts)
	case rules.Nothing:
	}
	if ctx.Err() != nil {
		return rules.Decision{}, ctx.Err()
	}
	if decision.Announce {
		if err := w.loadTemplates(ctx, aw); err != nil {
			return rules.Decision{}, err
		}
	}
	if decision.Defer {
		w.memory.withState(aw.UID, func(state *workloadState) { state.deferred = aw.Status.ComponentStatus })
		aw.Status.ComponentStatus = stored
	}
	ctrl.LoggerFrom(ctx).V(2).Info("Decided", "rule", decision.Rule, "from", aw.Status.Phase, "to", decision.NextPhase)
	if decision.NextPhase == "" && aw.Status.Phase == awv1beta2.PhaseRunning {
		recordSucceeded(facts, aw, facts.Now)
	}
	applyDecision(decision, aw, facts.Now)
	if decision.NextPhase == "" {
		decision.RequeueAfter = reconciler.Sooner(decision.RequeueAfter, facts.RequeueAfter)
	}
	return decision, nil
}

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
	nodes    nodeTaints
	recorder events.EventRecorder
}

// newWorkloadReconciler returns a reconciler with an empty memory.
func newWorkloadReconciler(settings Settings, applier *apply.Applier, kinds *kindReader, mapper meta.RESTMapper) *workloadReconciler {
	return &workloadReconciler{settings: settings, applier: applier, kinds: kinds, mapper: mapper, memory: &memory{clock: settings.Clock, objects: map[types.UID]*workloadState{}}}
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

// needsFinalizer reports whether the AppWrapper runs or is about to run.
func needsFinalizer(aw *awv1beta2.AppWrapper) bool {
	starts := (aw.Status.Phase == awv1beta2.PhaseEmpty || aw.Status.Phase == awv1beta2.PhaseSuspended) && !aw.Spec.Suspend
	return aw.IsManaged() && (starts || meta.IsStatusConditionTrue(aw.Status.Conditions, awv1beta2.ConditionResourcesDeployed))
}

// step makes one decision about an AppWrapper that is not being deleted.
func (w *workloadReconciler) step(ctx context.Context, aw *awv1beta2.AppWrapper) error {
	if !aw.IsManaged() {
		return nil
	}
	d, err := w.decideAndExecute(ctx, aw, rules.ByPhase[aw.Status.Phase])
	failed := aw.Status.Phase == awv1beta2.PhaseFailed
	if err != nil || d.RequeueAfter == 0 && !failed {
		return err
	}
	return &reconciler.Wait{For: "the next decision after rule " + d.Rule, Retry: d.RequeueAfter, Stalled: failed}
}

// finalize makes one decision about an AppWrapper that is being deleted, also if another controller manages it now: this operator created its
// objects.
func (w *workloadReconciler) finalize(ctx context.Context, aw *awv1beta2.AppWrapper) error {
	d, err := w.decideAndExecute(ctx, aw, rules.WhileTerminating)
	if err != nil || d.RemoveFinalizer {
		return err
	}
	w.setReady(aw)
	return &reconciler.Wait{For: "the next decision after rule " + d.Rule, Retry: d.RequeueAfter}
}

// decideAndExecute collects facts, evaluates the rules, executes the requested action, and applies the final decision to the status.
func (w *workloadReconciler) decideAndExecute(ctx context.Context, aw *awv1beta2.AppWrapper, list []rules.Rule) (rules.Decision, error) {
	stored := aw.Status.DeepCopy().ComponentStatus
	w.memory.restoreDeferred(aw)
	f, err := w.collectFacts(ctx, aw)
	if err != nil {
		return rules.Decision{}, err
	}
	d := rules.Decide(list, f)
	switch d.Action {
	case rules.CreateComponents:
		if err := w.loadTemplates(ctx, aw); err != nil {
			return rules.Decision{}, err
		}
		f.Created = w.createComponents(ctx, aw)
		d = rules.Decide(list, f)
	case rules.DeleteComponents, rules.ForceDeletion:
		f.Deleted = w.deleteComponents(ctx, aw, d.Action == rules.ForceDeletion)
		d = rules.Decide(list, f)
	case rules.Nothing:
	}
	if ctx.Err() != nil {
		return rules.Decision{}, ctx.Err()
	}
	if d.Announce {
		if err := w.loadTemplates(ctx, aw); err != nil {
			return rules.Decision{}, err
		}
	}
	if d.Defer {
		w.memory.withState(aw.UID, func(r *workloadState) { r.deferred = aw.Status.ComponentStatus })
		aw.Status.ComponentStatus = stored
	}
	ctrl.LoggerFrom(ctx).V(2).Info("Decided", "rule", d.Rule, "from", aw.Status.Phase, "to", d.NextPhase)
	if d.NextPhase == "" && aw.Status.Phase == awv1beta2.PhaseRunning {
		recordSucceeded(f, aw, f.Now)
	}
	applyDecision(d, aw, f.Now)
	if d.NextPhase == "" && f.RequeueAfter > 0 && (d.RequeueAfter == 0 || d.RequeueAfter > f.RequeueAfter) {
		d.RequeueAfter = f.RequeueAfter
	}
	return d, nil
}

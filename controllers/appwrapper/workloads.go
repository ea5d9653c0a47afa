package appwrapper

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"

	awv1beta2 "github.com/odh-platform/odh-platform-operator/apis/appwrapper/v1beta2"
	"github.com/odh-platform/odh-platform-operator/controllers/appwrapper/rules"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/reconciler"
	"github.com/odh-platform/odh-platform-operator/pkg/status/conditions"
)

// workloads carries out what the rules decide.
type workloads struct {
	settings Settings
	applier  *apply.Applier
	kinds    *kinds
	mapper   meta.RESTMapper
	memory   *memory
	nodes    nodeHealth
	recorder events.EventRecorder
}

// newWorkloads returns what carries out decisions, with an empty memory.
func newWorkloads(settings Settings, applier *apply.Applier, k *kinds, mapper meta.RESTMapper) *workloads {
	return &workloads{settings: settings, applier: applier, kinds: k, mapper: mapper, memory: newMemory(settings.Clock)}
}

// logic is what the shell runs.
func (w *workloads) logic() reconciler.Logic[*awv1beta2.AppWrapper] {
	return reconciler.Logic[*awv1beta2.AppWrapper]{
		Phases:            []reconciler.Phase[*awv1beta2.AppWrapper]{{Name: "deciding", Run: w.step}},
		ReadyCondition:    conditions.Ready,
		Summary:           w.summarize,
		IgnoresPause:      func(aw *awv1beta2.AppWrapper) bool { return aw.Spec.Suspend },
		Finalizer:         awv1beta2.Finalizer,
		NeedsFinalizer:    needsFinalizer,
		Finalize:          w.finalize,
		OnDeleted:         w.memory.forget,
		AfterStatusUpdate: w.written,
	}
}

// needsFinalizer: an AppWrapper that never ran goes at once when it is deleted.
func needsFinalizer(aw *awv1beta2.AppWrapper) bool {
	starts := aw.Status.Phase == awv1beta2.PhaseSuspended && !aw.Spec.Suspend
	return aw.Ours() && (starts || meta.IsStatusConditionTrue(aw.Status.Conditions, awv1beta2.ConditionResourcesDeployed))
}

// step takes one decision about an AppWrapper that lives on.
func (w *workloads) step(ctx context.Context, aw *awv1beta2.AppWrapper) error {
	if !aw.Ours() {
		return nil
	}
	d, err := w.advance(ctx, aw, rules.ByPhase[aw.Status.Phase])
	failed := aw.Status.Phase == awv1beta2.PhaseFailed
	if err != nil || d.Again == 0 && !failed {
		return err
	}
	return &reconciler.Wait{For: d.Rule, Retry: d.Again, Stalled: failed}
}

// finalize takes one decision about an AppWrapper that is being deleted, even if another controller manages it by now: what was deployed for it
// was deployed by us.
func (w *workloads) finalize(ctx context.Context, aw *awv1beta2.AppWrapper) error {
	d, err := w.advance(ctx, aw, rules.WhileTerminating)
	if err != nil || d.Release {
		return err
	}
	return &reconciler.Wait{For: d.Rule, Retry: d.Again}
}

// advance gathers facts, asks the rules, does what they want to know the outcome of, and carries out what they decide.
func (w *workloads) advance(ctx context.Context, aw *awv1beta2.AppWrapper, list []rules.Rule) (rules.Decision, error) {
	f, err := w.gather(ctx, aw)
	if err != nil {
		return rules.Decision{}, err
	}
	d := rules.Decide(list, f)
	switch d.Act {
	case rules.CreateComponents:
		if err := w.complete(ctx, aw); err != nil {
			return rules.Decision{}, err
		}
		f.Created = w.create(ctx, aw)
		d = rules.Decide(list, f)
	case rules.DeleteComponents, rules.ForceDeletion:
		f.Deleted = w.remove(ctx, aw, d.Act == rules.ForceDeletion)
		d = rules.Decide(list, f)
	case rules.Nothing:
	}
	if ctx.Err() != nil {
		return rules.Decision{}, ctx.Err()
	}
	if d.Announce {
		if err := w.complete(ctx, aw); err != nil {
			return rules.Decision{}, err
		}
	}
	ctrl.LoggerFrom(ctx).V(2).Info("Decided", "rule", d.Rule, "from", aw.Status.Phase, "to", d.Next)
	if d.Next == "" && aw.Status.Phase == awv1beta2.PhaseRunning {
		recordDone(f, aw, f.Now)
	}
	carryOut(d, aw, f.Now)
	if d.Next == "" && f.Recheck > 0 && (d.Again == 0 || d.Again > f.Recheck) {
		d.Again = f.Recheck
	}
	return d, nil
}

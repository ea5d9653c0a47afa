package appwrapper

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	awv1beta2 "github.com/odh-platform/odh-platform-operator/apis/appwrapper/v1beta2"
	"github.com/odh-platform/odh-platform-operator/pkg/podset"
)

// blindCheck is how often components that cannot be watched are looked at while the AppWrapper runs.
const blindCheck = time.Minute

// podIndex is the field by which the cache finds the pods of an AppWrapper.
const podIndex = "appwrapper"

// gather collects the facts. Components are looked at only while the AppWrapper runs; their creation and deletion look at
// them themselves.
func (w *workloads) gather(ctx context.Context, aw *awv1beta2.AppWrapper) (*facts, error) {
	terms, warnings := termsOf(aw.Annotations, w.settings.FaultTolerance)
	for _, warning := range warnings {
		w.log(ctx).V(1).Info("An annotation cannot be read", "cause", warning)
	}
	f := &facts{
		now: w.settings.Clock.Now(), phase: aw.Status.Phase, suspend: aw.Spec.Suspend, retries: aw.Status.Retries, terms: terms,
		conditions: aw.Status.Conditions, completed: aw.Status.CompletionTime,
	}
	if err := w.fillIn(aw); err != nil {
		return nil, err
	}
	switch aw.Status.Phase {
	case awv1beta2.PhaseEmpty, awv1beta2.PhaseSuspended:
		if aw.DeletionTimestamp == nil {
			return f, nil
		}
	}
	pods, err := w.pods(ctx, aw)
	if err != nil {
		return nil, err
	}
	var done []func(*corev1.Pod) bool
	for i := range aw.Status.ComponentStatus {
		c, uid, err := w.component(ctx, aw, i, f)
		if err != nil {
			return nil, err
		}
		f.components = append(f.components, c)
		if status := aw.Status.ComponentStatus[i]; c.done() {
			done = append(done, func(pod *corev1.Pod) bool { return belongsTo(pod, status.Kind, status.Name, uid) })
		}
	}
	left := func(pod *corev1.Pod) bool {
		for _, is := range done {
			if is(pod) {
				return true
			}
		}
		return false
	}
	f.pods = podsOf{pods: pods, born: aw.CreationTimestamp, left: left, terms: terms, nodes: w.nodes}.observe()
	return f, nil
}

// fillIn gives every component its entry in the status. The pod sets in it are found once, and trusted ever after.
func (w *workloads) fillIn(aw *awv1beta2.AppWrapper) error {
	for i := len(aw.Status.ComponentStatus); i < len(aw.Spec.Components); i++ {
		sets, err := podset.Of(&aw.Spec.Components[i])
		if err != nil {
			return fmt.Errorf("finding the pod sets of component %d: %w", i, err)
		}
		aw.Status.ComponentStatus = append(aw.Status.ComponentStatus, awv1beta2.AppWrapperComponentStatus{PodSets: sets})
	}
	return nil
}

// pods returns the labelled pods, as part of the cache: they must not be changed.
func (w *workloads) pods(ctx context.Context, aw *awv1beta2.AppWrapper) ([]corev1.Pod, error) {
	list := &corev1.PodList{}
	err := w.kinds.cache.List(ctx, list, client.InNamespace(aw.Namespace), client.MatchingFields{podIndex: aw.Name}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, fmt.Errorf("listing the pods of the AppWrapper: %w", err)
	}
	return list.Items, nil
}

// component returns what is known of one component, and its uid if it exists.
func (w *workloads) component(ctx context.Context, aw *awv1beta2.AppWrapper, index int, f *facts) (componentFact, types.UID, error) {
	status := &aw.Status.ComponentStatus[index]
	kind := kindOf(status)
	out := componentFact{
		title: status.Kind + " " + status.Name, stage: stageOf(status), replicas: int(podset.Total(status.PodSets)),
		judges: judges[kind].completes, completed: meta.IsStatusConditionTrue(status.Conditions, awv1beta2.ConditionCompleted),
	}
	out.least = out.replicas
	if c := meta.FindStatusCondition(status.Conditions, awv1beta2.ConditionResourcesDeployed); c != nil {
		out.since = c.LastTransitionTime.Time
	}
	if aw.Status.Phase != awv1beta2.PhaseRunning || aw.DeletionTimestamp != nil || out.completed {
		return out, "", nil
	}
	if status.Name == "" || status.Kind == "" {
		out.missing = true
		return out, "", nil
	}
	seen, err := w.sight(ctx, aw, index)
	if err != nil {
		return out, "", err
	}
	if template, err := podset.Decode(&aw.Spec.Components[index]); err == nil {
		out.least = int(podset.Least(template, status.PodSets))
	}
	if seen.blind {
		f.check(blindCheck)
	}
	if seen.unreadable {
		return out, "", nil // the status says that it was deployed, and nothing contradicts
	}
	if seen.object == nil {
		if out.missing = !w.memory.isNew(aw.UID, index); !out.missing {
			f.check(creationLag)
		}
		if w.memory.wasDone(aw.UID, index) {
			out.outcome = succeeded
		}
		return out, "", nil
	}
	w.memory.saw(aw.UID, index, seen.object.GetUID())
	v := judged(kind, whole(seen.object))
	out.outcome, out.message = v.outcome, v.message
	return out, seen.object.GetUID(), nil
}

// sight looks for the object of a component that is ours and not on its way out. What the cache does not show is asked of
// the API server before it is believed, unless it was created a moment ago.
func (w *workloads) sight(ctx context.Context, aw *awv1beta2.AppWrapper, index int) (sighting, error) {
	status := &aw.Status.ComponentStatus[index]
	key := types.NamespacedName{Namespace: aw.Namespace, Name: status.Name}
	seen, err := w.kinds.look(ctx, kindOf(status), key)
	if err != nil {
		return seen, err
	}
	if !w.alive(aw, seen) && !seen.live && !w.memory.isNew(aw.UID, index) {
		if seen, err = w.kinds.ask(ctx, kindOf(status), key); err != nil {
			return seen, err
		}
	}
	if !seen.unreadable && !w.alive(aw, seen) {
		seen.object = nil
	}
	return seen, nil
}

// alive: the object exists, is controlled by the AppWrapper and is not being deleted.
func (*workloads) alive(aw *awv1beta2.AppWrapper, s sighting) bool {
	return s.object != nil && s.object.GetDeletionTimestamp() == nil && controls(aw, s.object)
}

package appwrapper

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	awv1beta2 "github.com/odh-platform/odh-platform-operator/apis/appwrapper/v1beta2"
	"github.com/odh-platform/odh-platform-operator/controllers/appwrapper/rules"
	"github.com/odh-platform/odh-platform-operator/pkg/appwrapper/podset"
)

// blindCheck is how often components that cannot be watched are read while the AppWrapper runs.
const blindCheck = time.Minute

// podIndex is the field by which the cache finds the pods of an AppWrapper.
const podIndex = "appwrapper"

// gather collects the facts. Components are read only while the AppWrapper runs; their creation and deletion read
// them themselves.
func (w *workloads) gather(ctx context.Context, aw *awv1beta2.AppWrapper) (*rules.Facts, error) {
	terms := rules.TermsOf(aw.Annotations, w.settings.FaultTolerance)
	f := &rules.Facts{
		Now: w.settings.Clock.Now(), Phase: aw.Status.Phase, Suspend: aw.Spec.Suspend, Retries: aw.Status.Retries, Terms: terms,
		Conditions: aw.Status.Conditions, Completed: aw.Status.CompletionTime,
		Unreviewed: w.settings.UserRBACAdmissionCheck && neverReviewed(aw),
	}
	if err := w.fillInStatus(ctx, aw); err != nil {
		return nil, err
	}
	f.Changed = len(aw.Status.ComponentStatus) != len(aw.Spec.Components)
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
	var done []podOwner
	since := aw.CreationTimestamp
	for i := range aw.Status.ComponentStatus {
		if f.Changed {
			break
		}
		c, owner, err := w.component(ctx, aw, i, f)
		if err != nil {
			return nil, err
		}
		f.Components = append(f.Components, c)
		if owner.restored {
			since = metav1.Time{}
		}
		if c.Done() {
			done = append(done, owner)
		}
	}
	componentDone := func(pod *corev1.Pod) bool {
		return slices.ContainsFunc(done, func(o podOwner) bool { return o.owns(pod) })
	}
	f.Pods = podsOf{pods: pods, createdAt: since, componentDone: componentDone, terms: terms, nodes: w.nodes}.observe()
	w.explainMissing(ctx, aw, f)
	return f, nil
}

// neverReviewed tells whether an AppWrapper that never ran lacks the labels of its creator, which the webhooks give to everyone.
func neverReviewed(aw *awv1beta2.AppWrapper) bool {
	_, named := aw.Labels[awv1beta2.LabelUser]
	return !named && meta.FindStatusCondition(aw.Status.Conditions, awv1beta2.ConditionResourcesDeployed) == nil
}

// fillInStatus is fillIn after reading the templates, if the cache leaves them out and they are needed.
func (w *workloads) fillInStatus(ctx context.Context, aw *awv1beta2.AppWrapper) error {
	if len(aw.Status.ComponentStatus) == 0 {
		if err := w.complete(ctx, aw); err != nil {
			return err
		}
	}
	return fillIn(aw)
}

// fillIn gives every component its entry in the status. The pod sets in it are found once, and trusted ever after.
func fillIn(aw *awv1beta2.AppWrapper) error {
	if len(aw.Status.ComponentStatus) > 0 {
		return nil
	}
	for i := range aw.Spec.Components {
		sets, err := podset.Of(&aw.Spec.Components[i])
		if err != nil {
			return fmt.Errorf("finding the pod sets of spec.components[%d]: %w", i, err)
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

// recorded is what the status says of a component.
func recorded(status *awv1beta2.AppWrapperComponentStatus) rules.ComponentFact {
	out := rules.ComponentFact{
		Title: status.Kind + " " + status.Name, Stage: stageOf(status), Replicas: int(podset.Total(status.PodSets)),
		Judges: judges[kindOf(status)].completes, Completed: meta.IsStatusConditionTrue(status.Conditions, awv1beta2.ConditionCompleted),
	}
	out.MinReady = out.Replicas
	if c := meta.FindStatusCondition(status.Conditions, awv1beta2.ConditionResourcesDeployed); c != nil {
		out.Since = c.LastTransitionTime.Time
	}
	return out
}

// component returns what is known of one component, and how its pods are known.
func (w *workloads) component(ctx context.Context, aw *awv1beta2.AppWrapper, index int, f *rules.Facts) (rules.ComponentFact, podOwner, error) {
	status := &aw.Status.ComponentStatus[index]
	kind := kindOf(status)
	owner := podOwner{kind: status.Kind, name: status.Name}
	out := recorded(status)
	if aw.Status.Phase != awv1beta2.PhaseRunning || aw.DeletionTimestamp != nil || out.Completed && kind != rayJobKind {
		return out, owner, nil
	}
	if status.Name == "" || status.Kind == "" {
		out.Missing = true
		return out, owner, nil
	}
	isNew := w.memory.isNew(aw.UID, index)
	seen, err := w.find(ctx, aw, index, isNew, func(o client.Object) bool { return controls(aw, o) && o.GetDeletionTimestamp() == nil })
	if err != nil {
		return out, owner, err
	}
	if out.MinReady, err = w.minReady(ctx, aw, index, out.Replicas); err != nil {
		return out, owner, err
	}
	if seen.blind {
		f.CheckAfter(blindCheck)
	}
	if seen.unreadable != nil {
		return out, owner, nil // the status says that it was deployed, and nothing contradicts
	}
	if seen.object == nil {
		if out.Missing = !isNew; isNew {
			f.CheckAfter(creationLag)
		}
		if w.memory.wasDone(aw.UID, index) {
			out.Outcome = rules.Succeeded
		}
		return out, owner, nil
	}
	w.memory.saw(aw.UID, index, seen.object.GetUID())
	v := judged(kind, whole(seen.object))
	out.Outcome, out.Message = v.outcome, v.message
	owner.uid, owner.rayCluster = seen.object.GetUID(), v.rayCluster
	owner.restored = w.restored(aw, index, seen.object)
	return out, owner, nil
}

// restored reports whether a component was there before its AppWrapper, so that its pods may be older too.
func (w *workloads) restored(aw *awv1beta2.AppWrapper, index int, object client.Object) bool {
	created := object.GetCreationTimestamp()
	return created.Before(&aw.CreationTimestamp) || w.memory.wasAdopted(aw.UID, index)
}

// find returns the object of a component if it is ours. When the cache does not show it the API server is queried, unless the cache is
// trusted.
func (w *workloads) find(ctx context.Context, aw *awv1beta2.AppWrapper, index int, trusted bool, isOurs func(client.Object) bool) (sighting, error) {
	status := &aw.Status.ComponentStatus[index]
	kind, key := kindOf(status), types.NamespacedName{Namespace: aw.Namespace, Name: status.Name}
	seen, err := w.kinds.look(ctx, kind, key)
	if err == nil && !seen.live && !trusted && (seen.object == nil || !isOurs(seen.object)) {
		seen, err = w.kinds.ask(ctx, kind, key)
	}
	if seen.object != nil && !isOurs(seen.object) {
		seen.object = nil
	}
	return seen, err
}

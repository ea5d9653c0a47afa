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

// pollInterval is the interval of reconciles of a running AppWrapper with unwatched components or missing pods.
const pollInterval = time.Minute

// podIndex is the index of pods by AppWrapper.
const podIndex = "appwrapper"

// collectFacts collects the inputs of the rules. It reads components only while the AppWrapper runs. In other phases, createComponents and
// deleteComponents read the components that they need.
func (w *workloadReconciler) collectFacts(ctx context.Context, aw *awv1beta2.AppWrapper) (*rules.Facts, error) {
	terms := rules.TermsOf(aw.Annotations, w.settings.FaultTolerance)
	facts := &rules.Facts{
		Now: w.settings.Clock.Now(), Phase: aw.Status.Phase, Suspend: aw.Spec.Suspend, Retries: aw.Status.Retries, Terms: terms,
		Conditions: aw.Status.Conditions, CompletionTime: aw.Status.CompletionTime,
		Unreviewed: w.settings.UserRBACAdmissionCheck && isUnreviewed(aw),
	}
	if err := w.ensureComponentStatus(ctx, aw, facts); err != nil {
		return nil, err
	}
	facts.ComponentsChanged = len(aw.Status.ComponentStatus) != len(aw.Spec.Components)
	switch aw.Status.Phase {
	case awv1beta2.PhaseEmpty, awv1beta2.PhaseSuspended:
		if aw.DeletionTimestamp == nil {
			return facts, nil
		}
	}
	pods, err := w.pods(ctx, aw)
	if err != nil {
		return nil, err
	}
	var doneSelectors []podSelector
	createdAt := aw.CreationTimestamp
	for i := range aw.Status.ComponentStatus {
		if facts.ComponentsChanged {
			break
		}
		component, selector, err := w.componentFact(ctx, aw, i, facts)
		if err != nil {
			return nil, err
		}
		facts.Components = append(facts.Components, component)
		if selector.isRestored {
			createdAt = metav1.Time{}
		}
		if component.Done() {
			doneSelectors = append(doneSelectors, selector)
		}
	}
	componentDone := func(pod *corev1.Pod) bool {
		return slices.ContainsFunc(doneSelectors, func(s podSelector) bool { return s.matches(pod) })
	}
	facts.Pods = podObserver{pods: pods, createdAt: createdAt, componentDone: componentDone, terms: terms, nodes: w.nodes}.observe()
	w.diagnoseMissingPods(ctx, aw, facts)
	return facts, nil
}

// isUnreviewed reports whether an AppWrapper that never started lacks the label of its creator, which the webhooks set.
func isUnreviewed(aw *awv1beta2.AppWrapper) bool {
	_, found := aw.Labels[awv1beta2.LabelUser]
	return !found && meta.FindStatusCondition(aw.Status.Conditions, awv1beta2.ConditionResourcesDeployed) == nil
}

// ensureComponentStatus calls initComponentStatus, after reading templates that the cache does not hold. In the phases Empty, Suspended and
// Failed, it stores an error of initComponentStatus in facts instead of returning it. A deletion needs no new status: an AppWrapper without
// one has created nothing.
func (w *workloadReconciler) ensureComponentStatus(ctx context.Context, aw *awv1beta2.AppWrapper, facts *rules.Facts) error {
	if len(aw.Status.ComponentStatus) > 0 || aw.DeletionTimestamp != nil {
		return nil
	}
	if err := w.loadTemplates(ctx, aw); err != nil {
		return err
	}
	err := initComponentStatus(aw)
	switch aw.Status.Phase {
	case awv1beta2.PhaseEmpty, awv1beta2.PhaseSuspended, awv1beta2.PhaseFailed:
		facts.PodSetsUnknown, err = err, nil
	}
	return err
}

// initComponentStatus sets the status of each component, with its pod sets, unless the status lists components already.
func initComponentStatus(aw *awv1beta2.AppWrapper) error {
	if len(aw.Status.ComponentStatus) > 0 {
		return nil
	}
	var statuses []awv1beta2.AppWrapperComponentStatus
	for i := range aw.Spec.Components {
		sets, err := podset.ForComponent(&aw.Spec.Components[i])
		if err != nil {
			return fmt.Errorf("finding the pod sets of spec.components[%d]: %w", i, err)
		}
		statuses = append(statuses, awv1beta2.AppWrapperComponentStatus{PodSets: sets})
	}
	aw.Status.ComponentStatus = statuses
	return nil
}

// pods returns the labeled pods from the cache without copying them: callers must not modify them.
func (w *workloadReconciler) pods(ctx context.Context, aw *awv1beta2.AppWrapper) ([]corev1.Pod, error) {
	list := &corev1.PodList{}
	err := w.kinds.cache.List(ctx, list, client.InNamespace(aw.Namespace), client.MatchingFields{podIndex: aw.Name}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, fmt.Errorf("listing the pods of the AppWrapper: %w", err)
	}
	return list.Items, nil
}

// storedFact returns the stored state of a component.
func storedFact(status *awv1beta2.AppWrapperComponentStatus) rules.ComponentFact {
	fact := rules.ComponentFact{
		Title: status.Kind + " " + status.Name, Stage: stageOf(status), Replicas: int(podset.Total(status.PodSets)),
		ReportsCompletion: statusReaders[kindOf(status)].reportsCompletion, Completed: meta.IsStatusConditionTrue(status.Conditions, awv1beta2.ConditionCompleted),
	}
	fact.MinReady = fact.Replicas
	if c := meta.FindStatusCondition(status.Conditions, awv1beta2.ConditionResourcesDeployed); c != nil {
		fact.Since = c.LastTransitionTime.Time
	}
	return fact
}

// componentFact returns the observed state of one component, and the selector of its pods.
func (w *workloadReconciler) componentFact(ctx context.Context, aw *awv1beta2.AppWrapper, index int, facts *rules.Facts) (rules.ComponentFact, podSelector, error) {
	status := &aw.Status.ComponentStatus[index]
	kind := kindOf(status)
	selector := podSelector{kind: status.Kind, name: status.Name}
	fact := storedFact(status)
	if aw.Status.Phase != awv1beta2.PhaseRunning || aw.DeletionTimestamp != nil || fact.Completed && kind != rayJobKind {
		return fact, selector, nil
	}
	if status.Name == "" || status.Kind == "" {
		fact.Missing = true
		return fact, selector, nil
	}
	stored, _ := w.memory.component(aw.UID, index)
	recentlyCreated := w.settings.Clock.Since(stored.createdAt) < creationLag // the cache may not hold the object yet
	observed, err := w.findComponent(ctx, aw, index, recentlyCreated, func(o client.Object) bool { return controls(aw, o) && o.GetDeletionTimestamp() == nil })
	if err != nil {
		return fact, selector, err
	}
	if fact.MinReady, err = w.minReady(ctx, aw, index, fact.Replicas); err != nil {
		return fact, selector, err
	}
	if observed.unwatched {
		facts.RequireRequeue(pollInterval)
	}
	if observed.unreadable != nil {
		return fact, selector, nil // the object counts as deployed
	}
	if observed.object == nil {
		if fact.Missing = !recentlyCreated; recentlyCreated {
			facts.RequireRequeue(creationLag)
		}
		if _, succeeded := w.memory.component(aw.UID, index); succeeded { // the component may have reported success before its deletion
			fact.Outcome = rules.Succeeded
		}
		return fact, selector, nil
	}
	w.memory.setObserved(aw.UID, index, observed.object.GetUID())
	state := readState(kind, observed.object)
	fact.Outcome, fact.Message = state.outcome, state.message
	selector.uid, selector.rayCluster = observed.object.GetUID(), state.rayCluster
	selector.isRestored = w.isRestored(aw, index, observed.object)
	return fact, selector, nil
}

// isRestored reports whether a component is older than its AppWrapper or was adopted. Its pods may then be older than the AppWrapper too.
func (w *workloadReconciler) isRestored(aw *awv1beta2.AppWrapper, index int, o client.Object) bool {
	stored, _ := w.memory.component(aw.UID, index)
	created := o.GetCreationTimestamp()
	return created.Before(&aw.CreationTimestamp) || stored.adopted
}

// findComponent returns the object of a component if matches accepts it. If the cache holds no such object, it reads from the API server,
// unless trustCache is set.
func (w *workloadReconciler) findComponent(ctx context.Context, aw *awv1beta2.AppWrapper, index int, trustCache bool, matches func(client.Object) bool) (observedObject, error) {
	status := &aw.Status.ComponentStatus[index]
	kind, key := kindOf(status), types.NamespacedName{Namespace: aw.Namespace, Name: status.Name}
	observed, err := w.kinds.get(ctx, kind, key)
	if err == nil && !observed.live && !trustCache && (observed.object == nil || !matches(observed.object)) {
		observed, err = w.kinds.getLive(ctx, kind, key)
	}
	if observed.object != nil && !matches(observed.object) {
		observed.object = nil
	}
	return observed, err
}

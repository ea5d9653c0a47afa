package appwrapper

import (
	"context"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	awv1beta2 "github.com/odh-platform/odh-platform-operator/apis/appwrapper/v1beta2"
	"github.com/odh-platform/odh-platform-operator/controllers/appwrapper/rules"
	"github.com/odh-platform/odh-platform-operator/pkg/status/conditions"
)

const (
	// eventsInterval is the time from the start of the workload until Events about missing pods are read, and the minimum interval of
	// reading them.
	eventsInterval = 10 * time.Second
	// maxEvents limits the Events of one read.
	maxEvents = 500
)

// diagnoseMissingPods sets the diagnosis of missing pods once the workload has run for eventsInterval. Before that, it requests a reconcile
// at that time.
func (w *workloadReconciler) diagnoseMissingPods(ctx context.Context, aw *awv1beta2.AppWrapper, facts *rules.Facts) {
	missingFor := facts.PodsMissingFor()
	if missingFor == 0 || facts.Pods.Diagnosis != "" || aw.DeletionTimestamp != nil {
		return
	}
	facts.RequireRequeue(pollInterval)
	if missingFor < eventsInterval {
		facts.RequireRequeue(eventsInterval - missingFor)
		return
	}
	facts.Pods.Diagnosis = w.podCreationFailure(ctx, aw)
}

// podCreationFailure returns the reason why controllers could not create pods of an AppWrapper, such as a quota, a LimitRange, Pod Security
// or SecurityContextConstraints. It reads Events, because most kinds have no condition for it. The result changes only messages.
func (w *workloadReconciler) podCreationFailure(ctx context.Context, aw *awv1beta2.AppWrapper) string {
	var stored creationFailure
	w.memory.withState(aw.UID, func(state *workloadState) { stored = state.creationFailure })
	if w.settings.Clock.Since(stored.readAt) < eventsInterval {
		return stored.message
	}
	list := &corev1.EventList{}
	err := w.kinds.apiReader.List(ctx, list, client.InNamespace(aw.Namespace), client.MatchingFields{"type": corev1.EventTypeWarning}, client.Limit(maxEvents))
	if err != nil {
		ctrl.LoggerFrom(ctx).V(1).Info("Cannot read the Events that explain why pods are missing", "reason", err.Error())
	}
	message := conditions.PodCreationFailure(list.Items, aw.CreationTimestamp.Time, func(name string) bool { return isComponent(aw, name) })
	w.memory.withState(aw.UID, func(state *workloadState) { state.creationFailure = creationFailure{w.settings.Clock.Now(), message} })
	return message
}

// isComponent reports whether a name is that of a component, or starts with it and a hyphen, as the names of its ReplicaSets and Jobs do.
func isComponent(aw *awv1beta2.AppWrapper, name string) bool {
	return slices.ContainsFunc(aw.Status.ComponentStatus, func(c awv1beta2.AppWrapperComponentStatus) bool {
		return c.Name != "" && (name == c.Name || strings.HasPrefix(name, c.Name+"-"))
	})
}

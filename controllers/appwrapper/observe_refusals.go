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
	// refusalDelay is how long pods may be missing before the Events say why, and the least time between two readings of them.
	refusalDelay = 10 * time.Second
	// maxEvents bounds how many Events of a namespace are read.
	maxEvents = 500
)

// explainMissing looks for the cause where pods have been missing for a while, and makes sure that it is looked for then.
func (w *workloads) explainMissing(ctx context.Context, aw *awv1beta2.AppWrapper, f *rules.Facts) {
	missing := f.PodsMissingFor()
	if missing == 0 || f.Pods.Diagnosis != "" || aw.DeletionTimestamp != nil {
		return
	}
	f.CheckAfter(blindCheck)
	if missing < refusalDelay {
		f.CheckAfter(refusalDelay - missing)
		return
	}
	f.Pods.Diagnosis = w.refused(ctx, aw)
}

// refused returns why controllers could not create pods of an AppWrapper, by their Events: most kinds have no condition for it. Quotas,
// LimitRanges, Pod Security and SecurityContextConstraints refuse pods. The answer helps people and decides nothing.
func (w *workloads) refused(ctx context.Context, aw *awv1beta2.AppWrapper) string {
	var known refusal
	w.memory.in(aw.UID, func(r *remembered) { known = r.refused })
	if w.settings.Clock.Since(known.at) < refusalDelay {
		return known.text
	}
	list := &corev1.EventList{}
	err := w.kinds.live.List(ctx, list, client.InNamespace(aw.Namespace), client.MatchingFields{"type": corev1.EventTypeWarning}, client.Limit(maxEvents))
	if err != nil {
		ctrl.LoggerFrom(ctx).V(1).Info("The Events that say why there are no pods cannot be read", "reason", err.Error())
	}
	text := conditions.PodCreationFailure(list.Items, aw.CreationTimestamp.Time, func(name string) bool { return isComponent(aw, name) })
	w.memory.in(aw.UID, func(r *remembered) { r.refused = refusal{w.settings.Clock.Now(), text} })
	return text
}

// isComponent reports whether a name is that of a component, or of a ReplicaSet or Job of it.
func isComponent(aw *awv1beta2.AppWrapper, name string) bool {
	return slices.ContainsFunc(aw.Status.ComponentStatus, func(c awv1beta2.AppWrapperComponentStatus) bool {
		return c.Name != "" && (name == c.Name || strings.HasPrefix(name, c.Name+"-"))
	})
}

package appwrapper

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	awv1beta2 "github.com/odh-platform/odh-platform-operator/apis/appwrapper/v1beta2"
	"github.com/odh-platform/odh-platform-operator/pkg/appwrapper/podset"
	"github.com/odh-platform/odh-platform-operator/pkg/reconciler"
)

// cachedTemplates is how many bytes the templates of an AppWrapper may have together to be kept in memory. Larger ones are read when they
// are needed: a thousand of a megabyte each would need more than the manager has.
const cachedTemplates = 64 << 10

// Transform leaves the templates of large AppWrappers out of the cache, and what `kubectl apply` has copied into an annotation.
func Transform(in any) (any, error) {
	aw, ok := in.(*awv1beta2.AppWrapper)
	if !ok {
		return in, nil
	}
	delete(aw.Annotations, corev1.LastAppliedConfigAnnotation)
	size := 0
	for _, c := range aw.Spec.Components {
		size += len(c.Template.Raw)
	}
	if size > cachedTemplates {
		for i := range aw.Spec.Components {
			aw.Spec.Components[i].Template = runtime.RawExtension{}
		}
	}
	return aw, nil
}

// complete reads templates that the cache leaves out.
func (w *workloads) complete(ctx context.Context, aw *awv1beta2.AppWrapper) error {
	if !slices.ContainsFunc(aw.Spec.Components, func(c awv1beta2.AppWrapperComponent) bool { return c.Template.Raw == nil && c.Template.Object == nil }) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	stored := &awv1beta2.AppWrapper{}
	if err := w.kinds.live.Get(ctx, client.ObjectKeyFromObject(aw), stored); err != nil {
		return fmt.Errorf("reading the templates: %w", err)
	}
	if stored.UID != aw.UID || stored.Generation != aw.Generation {
		return &reconciler.Wait{For: "the cache to show the AppWrapper as it is", Retry: reconciler.ConflictRetry}
	}
	aw.Spec.Components = stored.Spec.Components
	return nil
}

// minReady returns how many of all pods of a component are enough for it to work.
func (w *workloads) minReady(ctx context.Context, aw *awv1beta2.AppWrapper, index, all int) (int, error) {
	if least, known := w.memory.leastOf(aw.UID, index); known {
		return least, nil
	}
	if err := w.complete(ctx, aw); err != nil {
		return 0, err
	}
	least := all
	if template, err := podset.Decode(&aw.Spec.Components[index]); err == nil {
		least = int(podset.Least(template, aw.Status.ComponentStatus[index].PodSets))
	}
	w.memory.setLeast(aw.UID, index, least)
	return least, nil
}

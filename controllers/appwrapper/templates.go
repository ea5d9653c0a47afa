package appwrapper

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	awv1beta2 "github.com/odh-platform/odh-platform-operator/apis/appwrapper/v1beta2"
	"github.com/odh-platform/odh-platform-operator/pkg/appwrapper/podset"
	"github.com/odh-platform/odh-platform-operator/pkg/reconciler"
)

// maxCachedTemplateBytes is the maximum size of the cached templates of an AppWrapper. Larger ones are read from the API server when needed: a
// thousand templates of a megabyte would exceed the memory limit of the manager.
const maxCachedTemplateBytes = 64 << 10

// Transform removes the templates of large AppWrappers from the cache.
func Transform(in any) (any, error) {
	aw, ok := in.(*awv1beta2.AppWrapper)
	if !ok {
		return in, nil
	}
	size := 0
	for _, c := range aw.Spec.Components {
		size += len(c.Template.Raw)
	}
	if size > maxCachedTemplateBytes {
		for i := range aw.Spec.Components {
			aw.Spec.Components[i].Template = runtime.RawExtension{}
		}
	}
	return aw, nil
}

// loadTemplates reads templates that the cache does not hold.
func (w *workloadReconciler) loadTemplates(ctx context.Context, aw *awv1beta2.AppWrapper) error {
	if !slices.ContainsFunc(aw.Spec.Components, func(c awv1beta2.AppWrapperComponent) bool { return c.Template.Raw == nil && c.Template.Object == nil }) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	stored := &awv1beta2.AppWrapper{}
	if err := w.kinds.apiReader.Get(ctx, client.ObjectKeyFromObject(aw), stored); err != nil {
		return fmt.Errorf("reading the templates: %w", err)
	}
	if stored.UID != aw.UID || stored.Generation != aw.Generation {
		return &reconciler.Wait{For: "the cache to contain the current AppWrapper", Retry: reconciler.ConflictRetry}
	}
	aw.Spec.Components = stored.Spec.Components
	return nil
}

// minReady returns the number of ready pods that a component needs. replicas is the number of its pods.
func (w *workloadReconciler) minReady(ctx context.Context, aw *awv1beta2.AppWrapper, index, replicas int) (int, error) {
	if count, ok := w.memory.minReady(aw.UID, index); ok {
		return count, nil
	}
	if err := w.loadTemplates(ctx, aw); err != nil {
		return 0, err
	}
	count := replicas
	if template, err := podset.Decode(&aw.Spec.Components[index]); err == nil {
		count = int(podset.MinReady(template, aw.Status.ComponentStatus[index].PodSets))
	}
	w.memory.withState(aw.UID, func(state *workloadState) { state.minReady[index] = count })
	return count, nil
}

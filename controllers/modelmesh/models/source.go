package models

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/apis/serving/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/apis/serving/v1beta1"
	modelmeshcontroller "github.com/odh-platform/odh-platform-operator/controllers/modelmesh"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/modelmesh"
	"github.com/odh-platform/odh-platform-operator/pkg/names"
	"github.com/odh-platform/odh-platform-operator/pkg/reconciler"
	"github.com/odh-platform/odh-platform-operator/pkg/reference"
	"github.com/odh-platform/odh-platform-operator/pkg/status/conditions"
)

// errSourceUnavailable is returned if the API of a source is not served: the existence of its models is unknown.
var errSourceUnavailable = errors.New("the API of the model is not served")

// resourceModel is the model and the status of one resource.
type resourceModel struct {
	modelmesh.Model
	status v1alpha1.PredictorStatus
	// writes holds the last status updates of all resources of the kind.
	writes *reconciler.StatusWrites
	// specError is the error of an invalid spec; empty for a valid spec.
	specError string
	object    client.Object
}

// modelID returns the ID of the concrete model, or "" for an invalid spec without a model type.
func (r *resourceModel) modelID() string {
	if r.Spec.ModelType.Name == "" && r.specError != "" {
		return ""
	}
	return r.ID()
}

func (r *resourceModel) isPaused() bool {
	paused, _ := names.Paused(r.object.GetAnnotations())
	return paused
}

// modelSource reads and updates resources of one kind.
type modelSource interface {
	// get returns nil for a resource that does not exist or that another controller reconciles.
	get(ctx context.Context, name types.NamespacedName) (*resourceModel, error)
	// updateStatus writes a status that differs from the stored one, and reports whether it did. It returns a conflict if the object has
	// changed since it was read.
	updateStatus(ctx context.Context, r *resourceModel, status v1alpha1.PredictorStatus) (written bool, err error)
}

// predictorSource is the source of Predictors.
type predictorSource struct {
	client client.Client
	series *conditions.NotReadySeries
	// missingReferences returns the references of a Predictor to missing objects, and false if they are unknown.
	missingReferences func(namespace, name string) ([]reference.Missing, bool)
	writes            *reconciler.StatusWrites
}

func (p *predictorSource) get(ctx context.Context, name types.NamespacedName) (*resourceModel, error) {
	predictor := &v1alpha1.Predictor{}
	err := p.client.Get(ctx, name, predictor)
	if apierrors.IsNotFound(err) {
		p.series.Forget(name)
		p.writes.Forget(name)
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the Predictor: %w", err)
	}
	m := modelmesh.FromPredictor(predictor)
	return &resourceModel{Model: m, status: *predictor.Status.DeepCopy(), writes: p.writes, specError: m.ValidationMessage(), object: predictor}, nil
}

func (p *predictorSource) updateStatus(ctx context.Context, r *resourceModel, status v1alpha1.PredictorStatus) (bool, error) {
	original, ok := r.object.(*v1alpha1.Predictor)
	if !ok {
		return false, fmt.Errorf("writing the status of a %T as that of a Predictor", r.object)
	}
	status.Conditions = slices.Clone(status.Conditions)
	if missing, known := p.missingReferences(r.Namespace, r.Name); known {
		reference.SetCondition(&status.Conditions, status.ObservedGeneration, r.Namespace, missing)
	}
	status = withConditions(status, original.Generation)
	if r.isPaused() {
		conditions.Set(&status.Conditions, reconciler.ConditionPaused, metav1.ConditionTrue, "Annotation", "the model in ModelMesh does not change until the annotation "+
			names.PausedAnnotation+" is removed or false", original.Generation)
	} else {
		meta.RemoveStatusCondition(&status.Conditions, reconciler.ConditionPaused)
	}
	p.series.Observe(client.ObjectKeyFromObject(original), status.Conditions)
	if equality.Semantic.DeepEqual(original.Status, status) {
		return false, nil
	}
	patch := buildPredictorPatch(original.ResourceVersion, status)
	updated := original.DeepCopy()
	updated.Status = status
	return patchStatus(ctx, p.client, p.writes, original, updated, client.RawPatch(types.MergePatchType, patch))
}

// buildPredictorPatch returns a merge patch that sets the fields of the status, including empty ones, and removes the fields of an earlier
// failure.
func buildPredictorPatch(version string, s v1alpha1.PredictorStatus) []byte {
	status := map[string]any{
		"available": s.Available, "transitionStatus": s.TransitionStatus, "activeModelState": s.ActiveModelState,
		"targetModelState": s.TargetModelState, "httpEndpoint": s.HTTPEndpoint, "grpcEndpoint": s.GRPCEndpoint,
		"failedCopies": s.FailedCopies, "totalCopies": s.TotalCopies, "lastFailureInfo": nil,
		"conditions": s.Conditions,
	}
	if s.ObservedGeneration > 0 {
		status["observedGeneration"] = s.ObservedGeneration
	}
	if f := s.LastFailureInfo; f != nil {
		status["lastFailureInfo"] = map[string]any{
			"reason": nilIfEmpty(f.Reason), "message": nilIfEmpty(f.Message), "modelId": nilIfEmpty(f.ModelID), "location": nilIfEmpty(f.Location), "time": f.Time,
		}
	}
	patch, _ := json.Marshal(map[string]any{"metadata": map[string]any{"resourceVersion": version}, "status": status}) // cannot fail for a status
	return patch
}

// nilIfEmpty returns nil for "": a merge patch then removes the field.
func nilIfEmpty[T ~string](s T) any {
	if s == "" {
		return nil
	}
	return s
}

// inferenceServiceSource is the source of InferenceServices in ModelMesh mode. Their API can be installed and removed at any time.
type inferenceServiceSource struct {
	client client.Client
	served func() capability.Set
	clock  clock.PassiveClock
	writes *reconciler.StatusWrites
}

func (s *inferenceServiceSource) get(ctx context.Context, name types.NamespacedName) (*resourceModel, error) {
	if !s.served().Has(capability.InferenceService) {
		return nil, errSourceUnavailable
	}
	inferenceService := &v1beta1.InferenceService{}
	err := s.client.Get(ctx, name, inferenceService)
	if apierrors.IsNotFound(err) {
		s.writes.Forget(name)
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the InferenceService: %w", err)
	}
	m, isModelMesh, err := modelmesh.FromInferenceService(inferenceService)
	if !isModelMesh {
		return nil, nil // another controller reconciles it
	}
	r := &resourceModel{Model: m, status: toPredictorStatus(&inferenceService.Status), writes: s.writes, specError: m.ValidationMessage(), object: inferenceService}
	if err != nil {
		r.specError = err.Error()
	}
	return r, nil
}

func (s *inferenceServiceSource) updateStatus(ctx context.Context, r *resourceModel, status v1alpha1.PredictorStatus) (bool, error) {
	original, ok := r.object.(*v1beta1.InferenceService)
	if !ok {
		return false, fmt.Errorf("writing the status of a %T as that of an InferenceService", r.object)
	}
	updated := original.DeepCopy()
	setModelStatus(&updated.Status, status, r.Name, s.clock.Now())
	if equality.Semantic.DeepEqual(original.Status, updated.Status) {
		return false, nil
	}
	// The merge patch contains only the difference, because KServe owns the other fields of the status.
	return patchStatus(ctx, s.client, s.writes, original, updated, client.MergeFromWithOptions(original, client.MergeFromWithOptimisticLock{}))
}

// patchStatus patches the status and reports whether it did. It ignores a deleted object, and skips an update of fields that the API server
// dropped before.
func patchStatus(ctx context.Context, c client.Client, writes *reconciler.StatusWrites, original, updated client.Object, patch client.Patch) (written bool, err error) {
	if writes.Covers(original, updated) {
		return false, nil
	}
	patched := updated.DeepCopyObject().(client.Object)
	err = c.Status().Patch(ctx, patched, patch, client.FieldOwner(modelmeshcontroller.FieldOwner))
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("writing the status: %w", err)
	}
	writes.Record(ctx, c, updated, patched)
	return true, nil
}

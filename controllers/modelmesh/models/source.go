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

// errAway says that a source cannot tell now whether a model is there, so that nothing must be concluded from its silence.
var errAway = errors.New("the source of the model is away")

// record is a model with its status, as its source has them.
type record struct {
	modelmesh.Model
	status v1alpha1.PredictorStatus
	// problem says why there is no model that could be served; empty for none.
	problem string
	// object is what has the status, and what events are about.
	object client.Object
}

// id is that of the concrete model; empty where the spec describes none.
func (r *record) id() string {
	if r.Spec.ModelType.Name == "" && r.problem != "" {
		return ""
	}
	return r.ID()
}

// paused tells that mesh and status are left as they are.
func (r *record) paused() bool {
	paused, _ := names.Paused(r.object.GetAnnotations())
	return paused
}

// origin is where models come from.
type origin interface {
	// get returns nil for a model that is not there, or that another controller serves; errAway where that is not known.
	get(ctx context.Context, name types.NamespacedName) (*record, error)
	// write stores a status if that changes anything, and reports whether it did. Nothing is written over an object that has changed
	// since it was read: its event starts another reconcile.
	write(ctx context.Context, r *record, status v1alpha1.PredictorStatus) (written bool, err error)
}

// predictors are the resources of our own.
type predictors struct {
	client client.Client
	series *conditions.Series
	// missing are references of a Predictor that lead nowhere; false while that is not known.
	missing  func(namespace, name string) ([]reference.Missing, bool)
	unstored reconciler.RejectedStatuses
}

func (p *predictors) get(ctx context.Context, name types.NamespacedName) (*record, error) {
	predictor := &v1alpha1.Predictor{}
	err := p.client.Get(ctx, name, predictor)
	if apierrors.IsNotFound(err) {
		p.series.Forget(name)
		p.unstored.Forget(name)
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the Predictor: %w", err)
	}
	m := modelmesh.FromPredictor(predictor)
	return &record{Model: m, status: *predictor.Status.DeepCopy(), problem: m.ValidationMessage(), object: predictor}, nil
}

func (p *predictors) write(ctx context.Context, r *record, status v1alpha1.PredictorStatus) (bool, error) {
	before, ok := r.object.(*v1alpha1.Predictor)
	if !ok {
		return false, fmt.Errorf("writing the status of a %T as that of a Predictor", r.object)
	}
	status.Conditions = slices.Clone(status.Conditions)
	if missing, known := p.missing(r.Namespace, r.Name); known {
		reference.Report(&status.Conditions, status.ObservedGeneration, r.Namespace, missing)
	}
	status = summarized(status, before.Generation)
	if r.paused() {
		conditions.Set(&status.Conditions, reconciler.ConditionPaused, metav1.ConditionTrue, "Annotation", "the mesh is left as it is until the annotation "+
			names.PausedAnnotation+" is removed", before.Generation)
	} else {
		meta.RemoveStatusCondition(&status.Conditions, reconciler.ConditionPaused)
	}
	p.series.Observe(client.ObjectKeyFromObject(before), status.Conditions)
	if equality.Semantic.DeepEqual(before.Status, status) {
		return false, nil
	}
	patch, err := predictorPatch(before.ResourceVersion, status)
	if err != nil {
		return false, err
	}
	after := before.DeepCopy()
	after.Status = status
	return patchStatus(ctx, p.client, &p.unstored, before, after, client.RawPatch(types.MergePatchType, patch))
}

// predictorPatch sets the whole status, also what is empty, as clients know it. What it has not is removed, so that no part of an earlier
// failure stays.
func predictorPatch(version string, s v1alpha1.PredictorStatus) ([]byte, error) {
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
			"reason": orNull(f.Reason), "message": orNull(f.Message), "modelId": orNull(f.ModelID), "location": orNull(f.Location), "time": f.Time,
		}
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"resourceVersion": version}, "status": status})
	if err != nil {
		return nil, fmt.Errorf("encoding the status: %w", err)
	}
	return patch, nil
}

// orNull leaves an empty text out of a merge patch's result.
func orNull[T ~string](s T) any {
	if s == "" {
		return nil
	}
	return s
}

// services are the InferenceServices in ModelMesh mode. Their API may come and go.
type services struct {
	client client.Client
	served func() capability.Set
	clock  clock.PassiveClock

	unstored reconciler.RejectedStatuses
}

func (s *services) get(ctx context.Context, name types.NamespacedName) (*record, error) {
	if !s.served().Has(capability.InferenceService) {
		return nil, errAway
	}
	service := &v1beta1.InferenceService{}
	err := s.client.Get(ctx, name, service)
	if apierrors.IsNotFound(err) {
		s.unstored.Forget(name)
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the InferenceService: %w", err)
	}
	m, ours, err := modelmesh.FromInferenceService(service)
	if !ours {
		return nil, nil // another controller serves it
	}
	r := &record{Model: m, status: predictorStatus(&service.Status), problem: m.ValidationMessage(), object: service}
	if err != nil {
		r.problem = err.Error()
	}
	return r, nil
}

func (s *services) write(ctx context.Context, r *record, status v1alpha1.PredictorStatus) (bool, error) {
	before, ok := r.object.(*v1beta1.InferenceService)
	if !ok {
		return false, fmt.Errorf("writing the status of a %T as that of an InferenceService", r.object)
	}
	after := before.DeepCopy()
	putStatus(&after.Status, status, r.Name, s.clock.Now())
	if equality.Semantic.DeepEqual(before.Status, after.Status) {
		return false, nil
	}
	// What differs: the rest of the status belongs to KServe.
	return patchStatus(ctx, s.client, &s.unstored, before, after, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
}

// patchStatus writes, unless the object has gone or the API server does not store what differs.
func patchStatus(ctx context.Context, c client.Client, unstored *reconciler.RejectedStatuses, before, after client.Object, patch client.Patch) (written bool, err error) {
	if unstored.Covers(before, after) {
		return false, nil
	}
	answer := after.DeepCopyObject().(client.Object)
	err = c.Status().Patch(ctx, answer, patch, client.FieldOwner(modelmeshcontroller.FieldOwner))
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("writing the status: %w", err)
	}
	unstored.Note(ctx, c, after, answer)
	return true, nil
}

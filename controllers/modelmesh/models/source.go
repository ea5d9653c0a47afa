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
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/apis/serving/v1alpha1"
	modelmeshcontroller "github.com/odh-platform/odh-platform-operator/controllers/modelmesh"
	"github.com/odh-platform/odh-platform-operator/pkg/modelmesh"
	"github.com/odh-platform/odh-platform-operator/pkg/names"
	"github.com/odh-platform/odh-platform-operator/pkg/reconciler"
	"github.com/odh-platform/odh-platform-operator/pkg/reference"
	"github.com/odh-platform/odh-platform-operator/pkg/status/conditions"
)

// errAway says that a source cannot tell now whether a model is there, so that nothing must be concluded from its silence.
var errAway = errors.New("the source of the model is away")

// fieldOwner is the manager of the status fields.
const fieldOwner = modelmeshcontroller.FieldOwner

// record is a model with its status, as its source has them.
type record struct {
	modelmesh.Model
	status v1alpha1.PredictorStatus
	// problem says why there is no model that could be served; empty for none.
	problem string
	// object is what events are about; nil where the source has no object.
	object client.Object
}

// id is that of the concrete model; empty where the spec describes none.
func (r *record) id() string {
	if r.Spec.ModelType.Name == "" && r.problem != "" {
		return ""
	}
	return r.ID()
}

// generation is that of the object.
func (r *record) generation() int64 {
	if r.object == nil {
		return 0
	}
	return r.object.GetGeneration()
}

// paused tells that mesh and status are left as they are.
func (r *record) paused() bool {
	if r.object == nil {
		return false
	}
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
	missing func(namespace, name string) ([]reference.Missing, bool)
}

func (p *predictors) get(ctx context.Context, name types.NamespacedName) (*record, error) {
	predictor := &v1alpha1.Predictor{}
	err := p.client.Get(ctx, name, predictor)
	if apierrors.IsNotFound(err) {
		p.series.Forget(name)
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the Predictor: %w", err)
	}
	m := modelmesh.FromPredictor(predictor)
	return &record{Model: m, status: *predictor.Status.DeepCopy(), problem: m.Invalid(), object: predictor}, nil
}

func (p *predictors) write(ctx context.Context, r *record, status v1alpha1.PredictorStatus) (bool, error) {
	status.Conditions = slices.Clone(status.Conditions)
	if missing, known := p.missing(r.Namespace, r.Name); known {
		reference.Report(&status.Conditions, status.ObservedGeneration, r.Namespace, missing)
	}
	status = summarized(status, r.generation())
	if r.paused() {
		conditions.Set(&status.Conditions, reconciler.ConditionPaused, metav1.ConditionTrue, "Annotation", "the mesh is left as it is until the annotation "+
			names.PausedAnnotation+" is removed", r.generation())
	} else {
		meta.RemoveStatusCondition(&status.Conditions, reconciler.ConditionPaused)
	}
	p.series.Observe(client.ObjectKeyFromObject(r.object), status.Conditions)
	if equality.Semantic.DeepEqual(r.status, status) {
		return false, nil
	}
	patch, err := predictorPatch(r.object.GetResourceVersion(), status)
	if err != nil {
		return false, err
	}
	return patchStatus(ctx, p.client, r.object, patch)
}

// predictorPatch sets the whole status. What it has not is removed, so that no part of an earlier failure stays.
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

// patchStatus writes, unless the object has gone.
func patchStatus(ctx context.Context, c client.Client, object client.Object, patch []byte) (written bool, err error) {
	err = c.Status().Patch(ctx, object, client.RawPatch(types.MergePatchType, patch), client.FieldOwner(fieldOwner))
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("writing the status: %w", err)
	}
	return true, nil
}

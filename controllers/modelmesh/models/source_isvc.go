package models

import (
	"context"
	"encoding/json"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/apis/serving/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/apis/serving/v1beta1"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/modelmesh"
)

// services are the InferenceServices in ModelMesh mode. Their API may come and go.
type services struct {
	client client.Client
	served func() capability.Set
	clock  clock.PassiveClock
}

func (s *services) get(ctx context.Context, name types.NamespacedName) (*record, error) {
	if !s.served().Has(capability.InferenceService) {
		return nil, errAway
	}
	service := &v1beta1.InferenceService{}
	err := s.client.Get(ctx, name, service)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the InferenceService: %w", err)
	}
	m, ours, err := modelmesh.FromInferenceService(service)
	if !ours {
		return nil, nil // another controller serves it
	}
	r := &record{Model: m, status: predictorStatus(&service.Status), problem: m.Invalid(), object: service}
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
	patch, err := servicePatch(before, after)
	if err != nil || patch == nil {
		return false, err
	}
	return patchStatus(ctx, s.client, before, patch)
}

// servicePatch has of the status what differs, and nothing else: the rest belongs to KServe. It is nil where nothing does.
func servicePatch(before, after *v1beta1.InferenceService) ([]byte, error) {
	whole, err := client.MergeFrom(before).Data(after)
	if err != nil {
		return nil, fmt.Errorf("computing the status patch: %w", err)
	}
	var difference struct {
		Status json.RawMessage `json:"status"`
	}
	if err := json.Unmarshal(whole, &difference); err != nil {
		return nil, fmt.Errorf("reading the status patch: %w", err)
	}
	if len(difference.Status) == 0 {
		return nil, nil
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"resourceVersion": before.ResourceVersion}, "status": difference.Status})
	if err != nil {
		return nil, fmt.Errorf("encoding the status patch: %w", err)
	}
	return patch, nil
}

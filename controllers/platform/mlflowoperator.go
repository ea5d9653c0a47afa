package platform

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
	platformv1alpha1 "github.com/odh-platform/odh-platform-operator/apis/platform/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/reconciler"
)

// Reasons of the condition Ready.
const (
	ReasonReady            = "Ready"
	ReasonConfigPending    = "ConfigPending"
	ReasonInstancesPresent = "MLflowInstancesPresent"
)

const (
	messageReady   = "MLflowOperator is ready to manage MLflow custom resources"
	messagePending = "Waiting for MLflowOperator spec fields before managing MLflow custom resources: "

	mlflowRelease    = "MLflow"
	mlflowRepository = "https://github.com/mlflow/mlflow"
)

// mlflowOperator reconciles the MLflowOperator.
type mlflowOperator struct {
	cached    client.Client
	apiReader client.Reader
	clock     clock.PassiveClock
	served    func() capability.Set
	// versions reads versionConfigMap, which contains the platform's version; nil if the namespace of the ConfigMap is unknown.
	versions         client.Reader
	versionConfigMap client.ObjectKey
	// platformType is the product that runs this operator, or empty.
	platformType string
	// release is the oldest MLflow version that this build supports.
	release string
}

func (r *mlflowOperator) logic() reconciler.Logic[*platformv1alpha1.MLflowOperator] {
	return reconciler.Logic[*platformv1alpha1.MLflowOperator]{
		Phases: []reconciler.Phase[*platformv1alpha1.MLflowOperator]{
			{Name: "reporting", Run: r.report},
		},
		ReadyCondition: ConditionReady,
		Summary:        func(m *platformv1alpha1.MLflowOperator) { setPhase(&m.Status.Status) },
		Finalizer:      platformv1alpha1.MLflowOperatorFinalizer,
		Finalize:       r.finalize,
	}
}

func (r *mlflowOperator) conditionAccess() reconciler.Conditions[*platformv1alpha1.MLflowOperator] {
	return conditionAccess(func(m *platformv1alpha1.MLflowOperator) *[]platformv1alpha1.Condition { return &m.Status.Conditions }, r.now)
}

func (r *mlflowOperator) now() metav1.Time { return metav1.NewTime(r.clock.Now()) }

// missingFields returns the unset fields without which Ready is False.
func missingFields(spec platformv1alpha1.MLflowOperatorSpec) []string {
	var missing []string
	if strings.TrimSpace(spec.GatewayName) == "" {
		missing = append(missing, "spec.gatewayName")
	}
	if strings.TrimSpace(spec.SectionTitle) == "" {
		missing = append(missing, "spec.sectionTitle")
	}
	return missing
}

// report sets Ready and the releases, and returns a stalled Wait for an incomplete spec.
func (r *mlflowOperator) report(ctx context.Context, m *platformv1alpha1.MLflowOperator) error {
	missing := missingFields(m.Spec)
	if len(missing) > 0 {
		r.setReady(m, metav1.ConditionFalse, ReasonConfigPending, messagePending+strings.Join(missing, ", "))
	} else {
		r.setReady(m, metav1.ConditionTrue, ReasonReady, messageReady)
	}
	if err := r.listReleases(ctx, m); err != nil || len(missing) == 0 {
		return err
	}
	return &reconciler.Wait{For: "a complete spec", Stalled: true}
}

func (r *mlflowOperator) setReady(m *platformv1alpha1.MLflowOperator, status metav1.ConditionStatus, reason, message string) {
	mergeCondition(&m.Status.Conditions, r.now(), platformv1alpha1.Condition{
		Type: ConditionReady, Status: status, Reason: reason, Message: message, ObservedGeneration: m.Generation,
	})
}

// listReleases sets the releases of the platform and MLflow. An invalid version of the platform is reported in ConditionVersion and
// omitted.
func (r *mlflowOperator) listReleases(ctx context.Context, m *platformv1alpha1.MLflowOperator) error {
	version := ""
	if r.versions != nil {
		var err error
		if version, err = readVersion(ctx, r.versions, r.versionConfigMap); err != nil {
			return err
		}
	}
	m.Status.Releases = []platformv1alpha1.Release{{Name: mlflowRelease, Version: r.release, RepoURL: mlflowRepository}}
	if err := validateVersion(version); version != "" && err != nil {
		mergeCondition(&m.Status.Conditions, r.now(), platformv1alpha1.Condition{
			Type: ConditionVersion, Status: metav1.ConditionFalse, Reason: ReasonInvalidVersion,
			Severity: platformv1alpha1.SeverityInfo, ObservedGeneration: m.Generation,
			Message: fmt.Sprintf("invalid platform version in %s: %s %q: %v; write a semantic version such as 2.30.0 or v2.30.0",
				r.versionConfigMap, versionKey, version, err),
		})
		version = ""
	} else {
		removeCondition(&m.Status.Conditions, ConditionVersion)
	}
	m.Status.Distribution = distribution(r.platformType, version)
	if version != "" {
		m.Status.Releases = slices.Insert(m.Status.Releases, 0, platformv1alpha1.Release{Name: platformRelease, Version: version})
	}
	return nil
}

// finalize returns a Wait while MLflow objects exist. MLflow objects are still reconciled.
func (r *mlflowOperator) finalize(ctx context.Context, m *platformv1alpha1.MLflowOperator) error {
	count, err := r.countMLflows(ctx)
	if err != nil || count == 0 {
		return err
	}
	r.setReady(m, metav1.ConditionFalse, ReasonInstancesPresent,
		fmt.Sprintf("cannot delete MLflowOperator while %d MLflow instance(s) still exist: delete them first", count))
	m.ObserveGeneration()
	setPhase(&m.Status.Status)
	if err := r.listReleases(ctx, m); err != nil {
		return err
	}
	return &reconciler.Wait{For: "the MLflow objects to be deleted"}
}

// countMLflows returns the number of MLflow objects. It reads from the API server if discovery, which may be stale, does not list the kind.
func (r *mlflowOperator) countMLflows(ctx context.Context) (int, error) {
	list := &mlflowv1.MLflowList{}
	var reader client.Reader = r.cached
	if !r.served().Has(mlflowKind) {
		reader = r.apiReader
	}
	err := reader.List(ctx, list, client.UnsafeDisableDeepCopy)
	if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("listing MLflow objects: %w", err)
	}
	return len(list.Items), nil
}

package mlflow

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"unicode"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
	platformv1alpha1 "github.com/odh-platform/odh-platform-operator/apis/platform/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/controllers/mlflow/migration"
	"github.com/odh-platform/odh-platform-operator/controllers/mlflow/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/objectmeta"
	"github.com/odh-platform/odh-platform-operator/pkg/reconciler"
	"github.com/odh-platform/odh-platform-operator/pkg/status/conditions"
)

// ConditionMLflowOperator is True while the MLflowOperator is ready. It exists only while the component platform is enabled.
const ConditionMLflowOperator = "MLflowOperatorReady"

// Reasons of ConditionMLflowOperator, in addition to those of the MLflowOperator's own Ready condition.
const (
	ReasonMLflowOperatorReady    = "Ready"
	ReasonMLflowOperatorMissing  = "MLflowOperatorMissing"
	ReasonMLflowOperatorStale    = "MLflowOperatorStatusStale"
	ReasonMLflowOperatorNotReady = "MLflowOperatorNotReady"

	// reasonInstancesPresent is the reason of an MLflowOperator whose deletion waits for the MLflow objects.
	reasonInstancesPresent = "MLflowInstancesPresent"
)

const (
	messageMLflowOperatorWaiting = "Waiting for MLflowOperator to become ready before reconciling MLflow custom resources"
	messageMLflowOperatorReady   = "MLflowOperator is ready to manage MLflow custom resources"
)

// mlflowOperatorKind is the kind by which the platform enables MLflow.
var mlflowOperatorKind = platformv1alpha1.GroupVersion.WithKind("MLflowOperator")

// gateState is the effect of the MLflowOperator on MLflow objects.
type gateState struct {
	// open allows the reconcile of MLflow objects.
	open bool
	// ready, reason and message are those of ConditionMLflowOperator, which is not changed if ready is empty.
	ready           metav1.ConditionStatus
	reason, message string
}

func closedGate(reason, detail string) gateState {
	return gateState{ready: metav1.ConditionFalse, reason: reason, message: migration.WithCause(messageMLflowOperatorWaiting, detail)}
}

// gateStateOf returns the state for an MLflowOperator, or for nil if none exists. A terminating MLflowOperator keeps the gate open
// while it waits for MLflow objects, so that their servers are still reconciled.
func gateStateOf(operator *platformv1alpha1.MLflowOperator) gateState {
	if operator == nil {
		return closedGate(ReasonMLflowOperatorMissing, "MLflowOperator "+platformv1alpha1.MLflowOperatorName+" does not exist; create it")
	}
	var ready platformv1alpha1.Condition
	if i := slices.IndexFunc(operator.Status.Conditions, func(c platformv1alpha1.Condition) bool { return c.Type == "Ready" }); i >= 0 {
		ready = operator.Status.Conditions[i]
	}
	terminating, isReady := operator.DeletionTimestamp != nil, ready.Status == metav1.ConditionTrue
	switch observed := operator.Status.ObservedGeneration; {
	case terminating && ready.Reason == reasonInstancesPresent:
		return gateState{open: true, ready: metav1.ConditionFalse, reason: ready.Reason, message: ready.Message}
	case terminating && isReady: // the status does not report the deletion yet
		return gateState{open: true}
	case observed > 0 && observed < operator.Generation:
		return closedGate(ReasonMLflowOperatorStale, fmt.Sprintf("its status.observedGeneration is %d, but its generation is %d: check the log of the manager", observed, operator.Generation))
	case isReady:
		return gateState{open: true, ready: metav1.ConditionTrue, reason: ReasonMLflowOperatorReady, message: messageMLflowOperatorReady}
	}
	return closedGate(cmp.Or(ready.Reason, ReasonMLflowOperatorNotReady), ready.Message)
}

// platformGate makes MLflow objects wait for a ready MLflowOperator. It is always open without the component platform.
type platformGate struct {
	settings Settings
	cached   client.Reader
	served   func() capability.Set
	// spec is the spec of the MLflowOperator that the last reconcile read, or nil.
	spec atomic.Pointer[platformv1alpha1.MLflowOperatorSpec]
}

// wait is a phase that returns a Wait until the gate is open. An event of the MLflowOperator or of its API triggers the next reconcile.
func (g *platformGate) wait(ctx context.Context, m *mlflowv1.MLflow) error {
	if !g.settings.Platform {
		conditions.Remove(&m.Status.Conditions, ConditionMLflowOperator)
		return nil
	}
	state, err := g.currentState(ctx)
	if err != nil {
		return err
	}
	if state.ready != "" {
		setCondition(m, ConditionMLflowOperator, state.ready, state.reason, state.message)
	}
	if state.open {
		return nil
	}
	setCondition(m, ConditionAvailable, metav1.ConditionFalse, state.reason, state.message)
	setCondition(m, ConditionProgressing, metav1.ConditionTrue, state.reason, state.message)
	return &reconciler.Wait{For: "MLflowOperator " + platformv1alpha1.MLflowOperatorName}
}

// currentState returns the state for the cached MLflowOperator, and stores its spec for inputs.
func (g *platformGate) currentState(ctx context.Context) (gateState, error) {
	g.spec.Store(nil)
	if !g.served().Has(mlflowOperatorKind) {
		return closedGate(ReasonMLflowOperatorMissing, "the cluster does not serve "+mlflowOperatorKind.GroupKind().String()+"; install its CustomResourceDefinition"), nil
	}
	found := &platformv1alpha1.MLflowOperator{}
	err := g.cached.Get(ctx, client.ObjectKey{Name: platformv1alpha1.MLflowOperatorName}, found)
	switch {
	case apierrors.IsNotFound(err):
		return gateStateOf(nil), nil
	case err != nil:
		return gateState{}, fmt.Errorf("reading MLflowOperator %s: %w", platformv1alpha1.MLflowOperatorName, err)
	}
	g.spec.Store(&found.Spec)
	return gateStateOf(found), nil
}

// inputs returns the settings, overridden by the fields that the MLflowOperator sets. The domain of its Gateway is ignored with an Ingress.
func (g *platformGate) inputs() resources.Inputs {
	in, spec := g.settings.InputsFor(g.served()), g.spec.Load()
	if spec == nil {
		return in
	}
	in.GatewayName = cmp.Or(strings.TrimSpace(spec.GatewayName), in.GatewayName)
	in.SectionTitle = cmp.Or(strings.TrimSpace(spec.SectionTitle), in.SectionTitle)
	if spec.Gateway != nil && !in.Exposure.UsesIngress() {
		in.ExternalURL = cmp.Or(gatewayURL(spec.Gateway.Domain), in.ExternalURL)
	}
	return in
}

// gatewayURL returns the base of public URLs for the domain of a gateway, or "".
func gatewayURL(domain string) string {
	domain = strings.TrimRightFunc(strings.TrimSpace(domain), func(r rune) bool { return r == '/' || unicode.IsSpace(r) })
	if domain == "" || strings.HasPrefix(domain, "http://") || strings.HasPrefix(domain, "https://") {
		return domain
	}
	return "https://" + domain
}

// isDefaultMLflowOperator accepts events of the singleton MLflowOperator.
func isDefaultMLflowOperator() predicate.Predicate {
	return predicate.NewPredicateFuncs(func(o client.Object) bool { return o.GetName() == platformv1alpha1.MLflowOperatorName })
}

// Permissions of the gate and of the finalizerRemover.

// +kubebuilder:rbac:groups=components.platform.opendatahub.io,resources=mlflowoperators,verbs=list;watch
// +kubebuilder:rbac:groups=components.platform.opendatahub.io,resources=mlflowoperators,resourceNames=default-mlflowoperator,verbs=patch

// finalizerRemover removes the operator's finalizer from a terminating MLflowOperator.
type finalizerRemover struct{ client client.Client }

// setupFinalizerRemover registers a finalizerRemover that runs while the API is served.
func setupFinalizerRemover(mgr ctrl.Manager, served *capability.Watcher) error {
	err := reconciler.NewController(mgr, "mlflowoperator-release").
		WatchesRawSource(served.Kind(mgr.GetCache(), mlflowOperatorKind, nil, &handler.EnqueueRequestForObject{})).
		Complete(reconciler.ClassifyErrors(&finalizerRemover{client: mgr.GetClient()}))
	if err != nil {
		return fmt.Errorf("building the controller that removes finalizers of MLflowOperators: %w", err)
	}
	return nil
}

// Reconcile implements reconcile.Reconciler.
func (r *finalizerRemover) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	operator := objectmeta.New(mlflowOperatorKind)
	if err := r.client.Get(ctx, request.NamespacedName, operator); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	original := operator.DeepCopy()
	if operator.DeletionTimestamp == nil || !controllerutil.RemoveFinalizer(operator, platformv1alpha1.MLflowOperatorFinalizer) {
		return reconcile.Result{}, nil
	}
	ctrl.LoggerFrom(ctx).Info("Removing the finalizer of an MLflowOperator, because the component platform is disabled")
	err := r.client.Patch(ctx, operator, client.MergeFromWithOptions(original, client.MergeFromWithOptimisticLock{}))
	if client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, fmt.Errorf("removing the finalizer of MLflowOperator %s: %w", request.Name, err)
	}
	return reconcile.Result{}, nil
}

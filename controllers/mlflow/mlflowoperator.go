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
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
	platformv1alpha1 "github.com/odh-platform/odh-platform-operator/apis/platform/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/controllers/mlflow/migration"
	"github.com/odh-platform/odh-platform-operator/controllers/mlflow/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/reconciler"
	"github.com/odh-platform/odh-platform-operator/pkg/status/conditions"
)

// ConditionModule says whether the platform has handed MLflow over. It exists only while the component platform is on.
const ConditionMLflowOperator = "MLflowOperatorReady"

// Reasons of ConditionModule beside those of the MLflowOperator itself.
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

// mlflowOperatorKind is the resource with which the platform hands MLflow over.
var mlflowOperatorKind = platformv1alpha1.GroupVersion.WithKind("MLflowOperator")

// verdict is what an MLflowOperator means for the MLflow objects.
type gateState struct {
	// open: they are reconciled.
	open bool
	// ready, reason and message are those of ConditionModule, which stays as it is where ready is empty.
	ready           metav1.ConditionStatus
	reason, message string
}

func closedGate(reason, detail string) gateState {
	return gateState{ready: metav1.ConditionFalse, reason: reason, message: migration.WithCause(messageMLflowOperatorWaiting, detail)}
}

// judge decides from the MLflowOperator, or nil when there is none. One that is being deleted keeps the servers
// that it let in: their end was not requested, so they are repaired like all others.
func gateStateOf(module *platformv1alpha1.MLflowOperator) gateState {
	if module == nil {
		return closedGate(ReasonMLflowOperatorMissing, "there is no MLflowOperator "+platformv1alpha1.MLflowOperatorName)
	}
	var ready platformv1alpha1.Condition
	if i := slices.IndexFunc(module.Status.Conditions, func(c platformv1alpha1.Condition) bool { return c.Type == "Ready" }); i >= 0 {
		ready = module.Status.Conditions[i]
	}
	deleting, isReady := module.DeletionTimestamp != nil, ready.Status == metav1.ConditionTrue
	switch observed := module.Status.ObservedGeneration; {
	case deleting && ready.Reason == reasonInstancesPresent:
		return gateState{open: true, ready: metav1.ConditionFalse, reason: ready.Reason, message: ready.Message}
	case deleting && isReady: // its status is about to report more
		return gateState{open: true}
	case observed > 0 && observed < module.Generation:
		return closedGate(ReasonMLflowOperatorStale, fmt.Sprintf("its status is about generation %d, and it has generation %d", observed, module.Generation))
	case isReady:
		return gateState{open: true, ready: metav1.ConditionTrue, reason: ReasonMLflowOperatorReady, message: messageMLflowOperatorReady}
	}
	return closedGate(cmp.Or(ready.Reason, ReasonMLflowOperatorNotReady), ready.Message)
}

// module is the gate between the platform and the MLflow objects. With the component platform off it is always open.
type platformGate struct {
	settings Settings
	cached   client.Reader
	served   func() capability.Set
	// spec is that of the MLflowOperator as the last reconciliation saw it; nil when there is none.
	spec atomic.Pointer[platformv1alpha1.MLflowOperatorSpec]
}

// pass is the phase that lets an MLflow through, or says what it waits for. Events of the MLflowOperator and its API wake it.
func (g *platformGate) wait(ctx context.Context, m *mlflowv1.MLflow) error {
	if !g.settings.Platform {
		conditions.Remove(&m.Status.Conditions, ConditionMLflowOperator)
		return nil
	}
	v, err := g.currentState(ctx)
	if err != nil {
		return err
	}
	if v.ready != "" {
		setCondition(m, ConditionMLflowOperator, v.ready, v.reason, v.message)
	}
	if v.open {
		return nil
	}
	setCondition(m, ConditionAvailable, metav1.ConditionFalse, v.reason, v.message)
	setCondition(m, ConditionProgressing, metav1.ConditionTrue, v.reason, v.message)
	return &reconciler.Wait{For: "MLflowOperator " + platformv1alpha1.MLflowOperatorName}
}

// look judges the MLflowOperator that the cache has, and remembers its spec for the inputs of this reconciliation.
func (g *platformGate) currentState(ctx context.Context) (gateState, error) {
	g.spec.Store(nil)
	if !g.served().Has(mlflowOperatorKind) {
		return closedGate(ReasonMLflowOperatorMissing, "the cluster does not serve "+mlflowOperatorKind.GroupKind().String()+"; install its definition"), nil
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

// inputs joins the settings, what the cluster serves and what the platform decided, as far as it decided anything.
func (g *platformGate) inputs() resources.Inputs {
	in, spec := g.settings.InputsFor(g.served()), g.spec.Load()
	if spec == nil {
		return in
	}
	in.GatewayName = cmp.Or(strings.TrimSpace(spec.GatewayName), in.GatewayName)
	in.SectionTitle = cmp.Or(strings.TrimSpace(spec.SectionTitle), in.SectionTitle)
	if spec.Gateway != nil && !in.Exposure.Ingress() {
		in.ExternalURL = cmp.Or(gatewayURL(spec.Gateway.Domain), in.ExternalURL)
	}
	return in
}

// domainURL makes the base of public URLs of the domain of a gateway; "" when it names none.
func gatewayURL(domain string) string {
	domain = strings.TrimRightFunc(strings.TrimSpace(domain), func(r rune) bool { return r == '/' || unicode.IsSpace(r) })
	if domain == "" || strings.HasPrefix(domain, "http://") || strings.HasPrefix(domain, "https://") {
		return domain
	}
	return "https://" + domain
}

// isModule admits events of the one MLflowOperator that counts.
func isDefaultMLflowOperator() predicate.Predicate {
	return predicate.NewPredicateFuncs(func(o client.Object) bool { return o.GetName() == platformv1alpha1.MLflowOperatorName })
}

// follow wakes every MLflow when the MLflowOperator changes. Without the component platform no controller looks after the
// finalizer of an MLflowOperator that it left behind, so it is taken off when that one is deleted.
func (g *platformGate) setup(ctx context.Context, mgr ctrl.Manager, served *capability.Watcher, c capability.Controller, every handler.EventHandler) error {
	if !g.settings.Platform {
		return setupFinalizerRemover(ctx, mgr, served)
	}
	served.Watch(ctx, c, mlflowOperatorKind, func() source.Source {
		return source.Kind(mgr.GetCache(), client.Object(&platformv1alpha1.MLflowOperator{}), every, isDefaultMLflowOperator())
	})
	return nil
}

// The right for the gate, and to let go of an MLflowOperator that the component platform left behind.

// +kubebuilder:rbac:groups=components.platform.opendatahub.io,resources=mlflowoperators,verbs=list;watch
// +kubebuilder:rbac:groups=components.platform.opendatahub.io,resources=mlflowoperators,resourceNames=default-mlflowoperator,verbs=patch

// releaser takes our finalizer off an MLflowOperator that is being deleted.
type finalizerRemover struct{ client client.Client }

// releaseModule runs a releaser for as long as the API is served.
func setupFinalizerRemover(ctx context.Context, mgr ctrl.Manager, served *capability.Watcher) error {
	c, err := controller.New("mlflowoperator-release", mgr, reconciler.ControllerOptionsFor(&finalizerRemover{client: mgr.GetClient()}))
	if err != nil {
		return fmt.Errorf("building the controller that releases MLflowOperators: %w", err)
	}
	served.WatchMetadata(ctx, c, mlflowOperatorKind, &handler.EnqueueRequestForObject{})
	return nil
}

// Reconcile implements reconcile.Reconciler.
func (r *finalizerRemover) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	head := capability.MetadataOf(mlflowOperatorKind)
	if err := r.client.Get(ctx, request.NamespacedName, head); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	before := head.DeepCopy()
	if head.DeletionTimestamp == nil || !controllerutil.RemoveFinalizer(head, platformv1alpha1.MLflowOperatorFinalizer) {
		return reconcile.Result{}, nil
	}
	ctrl.LoggerFrom(ctx).Info("Letting go of an MLflowOperator, since the component platform is switched off")
	err := r.client.Patch(ctx, head, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	if client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, fmt.Errorf("taking the finalizer off MLflowOperator %s: %w", request.Name, err)
	}
	return reconcile.Result{}, nil
}

package mlflow

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	platformv1alpha1 "github.com/odh-platform/odh-platform-operator/apis/platform/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/reconciler"
)

// The right for the gate, and to let go of an MLflowOperator that the component platform left behind.

// +kubebuilder:rbac:groups=components.platform.opendatahub.io,resources=mlflowoperators,verbs=list;watch
// +kubebuilder:rbac:groups=components.platform.opendatahub.io,resources=mlflowoperators,resourceNames=default-mlflowoperator,verbs=patch

// releaser takes our finalizer off an MLflowOperator that is being deleted.
type releaser struct{ client client.Client }

// releaseModule runs a releaser for as long as the API is served.
func releaseModule(ctx context.Context, mgr ctrl.Manager, served *capability.Watcher) error {
	c, err := controller.New("mlflowoperator-release", mgr, reconciler.ControllerOptionsFor(&releaser{client: mgr.GetClient()}))
	if err != nil {
		return fmt.Errorf("building the controller that releases MLflowOperators: %w", err)
	}
	served.WatchMetadata(ctx, c, mlflowOperatorKind, &handler.EnqueueRequestForObject{})
	return nil
}

// Reconcile implements reconcile.Reconciler.
func (r *releaser) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	head := &metav1.PartialObjectMetadata{}
	head.SetGroupVersionKind(mlflowOperatorKind)
	if err := r.client.Get(ctx, request.NamespacedName, head); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if head.DeletionTimestamp == nil || !controllerutil.ContainsFinalizer(head, platformv1alpha1.MLflowOperatorFinalizer) {
		return reconcile.Result{}, nil
	}
	before := head.DeepCopy()
	controllerutil.RemoveFinalizer(head, platformv1alpha1.MLflowOperatorFinalizer)
	ctrl.LoggerFrom(ctx).Info("Letting go of an MLflowOperator, since the component platform is switched off")
	err := r.client.Patch(ctx, head, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	if client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, fmt.Errorf("taking the finalizer off MLflowOperator %s: %w", request.Name, err)
	}
	return reconcile.Result{}, nil
}

// Package artifactstore reports on MLflowConfigs. The servers of MLflow read these themselves and ignore one whose Secret is missing
// or names no bucket, so a condition reports it before artifacts end up in the bucket that all share.
package artifactstore

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflowconfig/v1"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/component"
	"github.com/odh-platform/odh-platform-operator/pkg/reconciler"
	"github.com/odh-platform/odh-platform-operator/pkg/reference"
	"github.com/odh-platform/odh-platform-operator/pkg/status/conditions"
)

const (
	controllerName = "mlflowconfig"
	// secretName is the only Secret that the API admits, and bucketKey the only key of it that servers use; their credentials come
	// from their own environment.
	secretName, bucketKey = "mlflow-artifact-connection", "AWS_S3_BUCKET"
)

// ReasonFound is the reason of reference.Condition, which is always there, while the Secret of an MLflowConfig names a bucket.
const ReasonFound = "ReferencesFound"

// Kind is the kind that is reported on while it is served.
var Kind = mlflowv1.GroupVersion.WithKind("MLflowConfig")

// reporter holds what the controller needs.
type reporter struct {
	references *reference.Tracker
}

// Setup registers the controller with a manager.
func Setup(ctx context.Context, mgr ctrl.Manager, served *capability.Watcher) error {
	secret := &metav1.PartialObjectMetadata{}
	secret.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	secrets, err := component.Narrow(mgr, secret, cache.ByObject{Field: fields.OneTermEqualSelector("metadata.name", secretName)}, apply.Transform())
	if err != nil {
		return err
	}
	r := &reporter{references: reference.NewTracker(secrets, mgr.GetAPIReader())}
	shell := reconciler.New(reconciler.Options{
		Client: mgr.GetClient(), Recorder: mgr.GetEventRecorder(controllerName), Component: "mlflow",
	}, reconciler.Logic[*mlflowv1.MLflowConfig]{
		Phases: []reconciler.Phase[*mlflowv1.MLflowConfig]{{Name: "looking for the Secret", Run: r.report}},
		Gone:   r.references.Forget,
	})
	options := reconciler.ControllerOptions()
	options.Reconciler = shell
	c, err := controller.New(controllerName, mgr, options)
	if err != nil {
		return fmt.Errorf("building the controller %s: %w", controllerName, err)
	}
	if err := c.Watch(source.Kind(secrets, client.Object(secret), toConfig())); err != nil {
		return fmt.Errorf("watching for %s: %w", controllerName, err)
	}
	changed := predicate.Or(predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{})
	served.Watch(ctx, c, Kind, func() source.Source {
		return source.Kind[client.Object](mgr.GetCache(), &mlflowv1.MLflowConfig{}, &handler.EnqueueRequestForObject{}, changed)
	})
	return nil
}

// toConfig maps a Secret to the MLflowConfig of its namespace.
func toConfig() handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(_ context.Context, secret client.Object) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: secret.GetNamespace(), Name: mlflowv1.Name}}}
	})
}

// report is the only phase.
func (r *reporter) report(ctx context.Context, config *mlflowv1.MLflowConfig) error {
	resolved, err := r.references.Resolve(ctx, config.UID, config.Namespace, []reference.Reference{
		{Kind: reference.Secret, Name: config.Spec.ArtifactRootSecret, Keys: []string{bucketKey}},
	})
	if err != nil {
		return err
	}
	status, reason, message := metav1.ConditionTrue, ReasonFound, "Secret "+config.Spec.ArtifactRootSecret+" names a bucket"
	if len(resolved.Missing) > 0 {
		status, reason = metav1.ConditionFalse, reference.ReasonMissing
		message = reference.Describe(config.Namespace, resolved.Missing) + "; until then artifacts go to the bucket of the server"
	}
	conditions.Set(&config.Status.Conditions, reference.Condition, status, reason, message, config.Generation)
	return nil
}

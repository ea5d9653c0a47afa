// Package artifactstore reconciles the status of MLflowConfigs. If a Secret of an MLflowConfig is missing or names no bucket, the MLflow
// server writes to its own bucket, which all workspaces share; a condition reports this case.
package artifactstore

import (
	"context"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	mlflowconfigv1 "github.com/odh-platform/odh-platform-operator/apis/mlflowconfig/v1"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/caches"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/objectmeta"
	"github.com/odh-platform/odh-platform-operator/pkg/reconciler"
	"github.com/odh-platform/odh-platform-operator/pkg/reference"
	"github.com/odh-platform/odh-platform-operator/pkg/servers"
	"github.com/odh-platform/odh-platform-operator/pkg/status/conditions"
)

const (
	controllerName = "mlflowconfig"
	// artifactSecret and archiveSecret are the only Secret names that the API accepts. Servers read only bucketKey from these
	// Secrets; credentials come from the environment of the servers.
	artifactSecret, archiveSecret, bucketKey = "mlflow-artifact-connection", "mlflow-archive-secret", "AWS_S3_BUCKET"
)

// ReasonFound is the reason of reference.Condition while each Secret of an MLflowConfig names a bucket, or no Secret is configured.
const ReasonFound = "ReferencesFound"

// Kind is the kind of MLflowConfig, which is watched while it is served.
var Kind = mlflowconfigv1.GroupVersion.WithKind("MLflowConfig")

type configReconciler struct {
	references *reference.Tracker
}

// Setup registers the controller with a manager.
func Setup(mgr ctrl.Manager, served *capability.Watcher) error {
	secrets, err := servers.NamedCaches(mgr, "", apply.Transform(), artifactSecret, archiveSecret)
	if err != nil {
		return err
	}
	sources := []source.Source{served.Kind(mgr.GetCache(), Kind, &mlflowconfigv1.MLflowConfig{}, &handler.EnqueueRequestForObject{}, reconciler.Changed())}
	for _, named := range secrets {
		sources = append(sources, source.Kind(named, client.Object(objectmeta.New(servers.Secret)), enqueueConfig()))
	}
	cached := &caches.DelegatingClient{Client: mgr.GetClient(), Route: func(key client.ObjectKey, _ client.Object) client.Reader { return secrets[key.Name] }}
	r := &configReconciler{references: reference.NewTracker(cached, mgr.GetAPIReader())}
	base := reconciler.New(reconciler.Options{
		Client: mgr.GetClient(), Recorder: mgr.GetEventRecorder(controllerName), Component: "mlflow",
	}, reconciler.Logic[*mlflowconfigv1.MLflowConfig]{
		Phases:         []reconciler.Phase[*mlflowconfigv1.MLflowConfig]{{Name: "checking the Secrets", Run: r.report}},
		ReadyCondition: reference.Condition,
	})
	if err := reconciler.NewController(mgr, controllerName, sources...).Complete(base); err != nil {
		return fmt.Errorf("building the controller %s: %w", controllerName, err)
	}
	return nil
}

// enqueueConfig enqueues the MLflowConfig in the namespace of a Secret.
func enqueueConfig() handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(_ context.Context, secret client.Object) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: secret.GetNamespace(), Name: mlflowconfigv1.Name}}}
	})
}

// secretContent maps the name of a Secret to the content of its bucket.
var secretContent = map[string]string{artifactSecret: "artifacts", archiveSecret: "archived traces"}

func (r *configReconciler) report(ctx context.Context, config *mlflowconfigv1.MLflowConfig) error {
	var refs []reference.Reference
	var messages []string
	for _, name := range []string{config.Spec.ArtifactRootSecret, config.Spec.ArchiveRootSecret} {
		if name != "" {
			refs, messages = append(refs, reference.Reference{Kind: reference.Secret, Name: name, Keys: []string{bucketKey}, NonEmpty: true}), append(messages, "Secret "+name+" names a bucket")
		}
	}
	resolved, err := r.references.Resolve(ctx, config.Namespace, refs)
	if err != nil {
		return err
	}
	status, reason, message := metav1.ConditionTrue, ReasonFound, strings.Join(messages, "; ")
	if len(messages) == 0 {
		message = "No Secret is configured; artifacts and archived traces go to the buckets of the server"
	}
	if len(resolved.Missing) > 0 {
		var affected []string
		for _, missing := range slices.Backward(resolved.Missing) { // the artifacts first
			affected = append(affected, secretContent[missing.Name])
		}
		status, reason = metav1.ConditionFalse, reference.ReasonMissing
		message = reference.Describe(config.Namespace, resolved.Missing) +
			"; until then " + strings.Join(affected, " and ") + " go to the bucket of the server"
	}
	conditions.Set(&config.Status.Conditions, reference.Condition, status, reason, message, config.Generation)
	return nil
}

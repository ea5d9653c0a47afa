package mlflow

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
	"github.com/odh-platform/odh-platform-operator/controllers/mlflow/migration"
	"github.com/odh-platform/odh-platform-operator/controllers/mlflow/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/reconciler"
	"github.com/odh-platform/odh-platform-operator/pkg/reference"
	"github.com/odh-platform/odh-platform-operator/pkg/servers"
)

// checkArtifactsServer blocks the reconcile while a separate artifacts server cannot work: it needs an HTTPRoute and stores that
// two servers can share. Running pods are unaffected.
func (r *mlflowReconciler) checkArtifactsServer(ctx context.Context, m *mlflowv1.MLflow) error {
	if !resources.HasArtifactsServer(m) {
		return nil
	}
	in := r.inputs()
	if !in.ViaGateway() {
		fail(m, ReasonHTTPRouteFailed, "spec.artifactsServer.enabled needs an HTTPRoute, but the cluster does not serve that API (gateway.networking.k8s.io), --exposure does not use it, "+
			"or no Gateway is configured: install the Gateway API, publish behind a Gateway, or set spec.artifactsServer.enabled to false")
		return &reconciler.Wait{For: "an HTTPRoute"}
	}
	for _, store := range resources.Stores(m) {
		problem, err := r.checkStore(ctx, in.Namespace, store)
		if err != nil {
			fail(m, ReasonMetadataStore, fmt.Sprintf("Failed to check spec.%sFrom: %v", store.Field, err))
			return err
		}
		if problem != "" {
			fail(m, ReasonMetadataStore, problem)
			return &reconciler.Wait{For: "a store that two servers may use"}
		}
	}
	return nil
}

// newStoreCache returns a cache that reports, by key of a Secret, whether the value is the URI of a database server.
func newStoreCache(cached, apiReader client.Reader) *reference.ContentCache[map[string]bool] {
	return reference.NewContentCache(cached, apiReader, func(secret *corev1.Secret) map[string]bool {
		keys := map[string]bool{}
		for key, value := range secret.Data {
			keys[key] = resources.IsDatabaseServer(string(value))
		}
		return keys
	})
}

// checkStore returns the problem with a store, or "". A Secret that is optional for pods is required here.
func (r *mlflowReconciler) checkStore(ctx context.Context, namespace string, store resources.Store) (string, error) {
	if store.From == nil {
		return "", nil // the schema validates a URI in the spec
	}
	name := client.ObjectKey{Namespace: namespace, Name: store.From.Name}
	keys, found, err := r.stores.Get(ctx, name)
	switch isDatabaseServer, hasKey := keys[store.From.Key]; {
	case err != nil:
		return "", err
	case !found:
		return missingStoreMessage(namespace, store, ""), nil
	case !hasKey:
		return missingStoreMessage(namespace, store, store.From.Key), nil
	case !isDatabaseServer:
		return fmt.Sprintf("spec.%sFrom: key %s of Secret %s must hold a postgresql or mysql URI, because with "+
			"spec.artifactsServer.enabled two servers use the store at the same time: write such a URI, or set spec.artifactsServer.enabled to false",
			store.Field, store.From.Key, name), nil
	}
	return "", nil
}

func missingStoreMessage(namespace string, store resources.Store, key string) string {
	missing := reference.Missing{Reference: reference.Reference{Kind: reference.Secret, Name: store.From.Name}, Key: key}
	return fmt.Sprintf("spec.%sFrom: in namespace %s: %s; spec.artifactsServer.enabled requires it, because two servers share the store",
		store.Field, namespace, missing)
}

// scaleDownArtifactsServer scales an artifacts server that is no longer desired to zero while a migration needs exclusive access to
// the database. Its Deployment is deleted after the migration, because the migration waits for the pods of the Deployment.
func (r *mlflowReconciler) scaleDownArtifactsServer(ctx context.Context, m *mlflowv1.MLflow, d *migration.Decision) error {
	if resources.HasArtifactsServer(m) || d.Workloads != migration.ScaleToZero {
		return nil
	}
	existing, err := servers.DeploymentFrom(ctx, r.inputs().Namespace, resources.Artifacts(m).Name, r.Cached)
	if err != nil || !metav1.IsControlledBy(existing, m) {
		return err
	}
	return r.Applier.PatchExisting(ctx, existing, func() { existing.Spec.Replicas = new(int32(0)) })
}

package mlflow

import (
	"context"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
	"github.com/odh-platform/odh-platform-operator/controllers/mlflow/migration"
	"github.com/odh-platform/odh-platform-operator/controllers/mlflow/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
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
		fail(m, ReasonHTTPRouteFailed, "spec.artifactsServer.enabled needs the HTTPRoute API (gateway.networking.k8s.io), which the cluster does not serve or --exposure does not use: "+
			"install the Gateway API, publish behind a Gateway, or set spec.artifactsServer.enabled to false")
		return &reconciler.Wait{For: "the HTTPRoute API"}
	}
	for _, store := range resources.Stores(m) {
		problem, err := r.stores.check(ctx, in.Namespace, store)
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

// storeChecker checks that two servers can share the stores whose URIs are in Secrets. It stores the result for one version of
// each Secret, but none of the content.
type storeChecker struct {
	// cached reads the metadata of Secrets, apiReader their content.
	cached, apiReader client.Reader
	results           sync.Map // field of the spec to storeResult
}

// storeResult is the problem with a key in one version of a Secret, or "".
type storeResult struct {
	key     string
	uid     types.UID
	version string
	problem string
}

// check returns the problem with a store, or "". A Secret that is optional for pods is required here.
func (c *storeChecker) check(ctx context.Context, namespace string, store resources.Store) (string, error) {
	if store.From == nil {
		return "", nil // the schema validates a URI in the spec
	}
	name := client.ObjectKey{Namespace: namespace, Name: store.From.Name}
	metadata, err := capability.GetMetadata(ctx, c.cached, servers.Secret, name)
	if err != nil {
		return "", err
	}
	if metadata == nil {
		return missingStoreMessage(namespace, store, ""), nil
	}
	result := storeResult{key: store.From.Key, uid: metadata.UID, version: metadata.ResourceVersion}
	if stored, found := c.results.Load(store.Field); found {
		if last, _ := stored.(storeResult); last.key == result.key && last.uid == result.uid && last.version == result.version {
			return last.problem, nil
		}
	}
	secret := &corev1.Secret{}
	if err := c.apiReader.Get(ctx, name, secret); err != nil {
		return "", fmt.Errorf("reading Secret %s: %w", name, err)
	}
	if uri, found := secret.Data[store.From.Key]; !found {
		result.problem = missingStoreMessage(namespace, store, store.From.Key)
	} else if !resources.IsSQLServer(string(uri)) {
		result.problem = fmt.Sprintf("spec.%sFrom: key %s of Secret %s must hold a postgresql or mysql URI, because with "+
			"spec.artifactsServer.enabled two servers use the store at the same time: write such a URI, or set spec.artifactsServer.enabled to false",
			store.Field, store.From.Key, name)
	}
	c.results.Store(store.Field, result)
	return result.problem, nil
}

func missingStoreMessage(namespace string, store resources.Store, key string) string {
	missing := reference.Missing{Reference: reference.Reference{Kind: reference.Secret, Name: store.From.Name}, Key: key}
	return fmt.Sprintf("spec.%sFrom: in namespace %s: %s; spec.artifactsServer.enabled needs it to know the store",
		store.Field, namespace, missing)
}

// scaleDownArtifactsServer scales an artifacts server that is no longer desired to zero while a migration needs exclusive access to
// the database. Its Deployment is deleted after the migration, which waits for its pods.
func (r *mlflowReconciler) scaleDownArtifactsServer(ctx context.Context, m *mlflowv1.MLflow, d *migration.Decision) error {
	if resources.HasArtifactsServer(m) || d.Workloads != migration.ScaleToZero {
		return nil
	}
	existing, err := r.deployment(ctx, resources.Artifacts(m), r.Cached)
	if err != nil || !metav1.IsControlledBy(existing, m) {
		return client.IgnoreNotFound(err)
	}
	return r.Applier.PatchExisting(ctx, existing, func() { existing.Spec.Replicas = new(int32(0)) })
}

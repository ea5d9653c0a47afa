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
)

// checkArtifactsServer holds back everything while a server for artifacts could not work: nothing would lead to it, or it would open
// the files of another server. What runs continues as it is.
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

// storeJudge says whether the stores in Secrets are such that two servers may use them. It remembers what it said about the last version
// of each Secret, and nothing of its content.
type storeChecker struct {
	// cached holds the metadata of Secrets, live their content.
	cached, apiReader client.Reader
	results           sync.Map // of fields of the spec to storeVerdict
}

// storeVerdict is what is wrong with a key in one version of a Secret.
type storeResult struct {
	key     string
	uid     types.UID
	version string
	problem string
}

// judge says what is wrong with a store; empty when nothing is. A Secret that the pods may do without is needed here.
func (j *storeChecker) check(ctx context.Context, namespace string, store resources.Store) (string, error) {
	if store.From == nil {
		return "", nil // what stands in the spec, the schema judges
	}
	name := client.ObjectKey{Namespace: namespace, Name: store.From.Name}
	head, err := capability.GetMetadata(ctx, j.cached, secretKind, name)
	if err != nil {
		return "", err
	}
	if head == nil {
		return missingStoreMessage(namespace, store, ""), nil
	}
	verdict := storeResult{key: store.From.Key, uid: head.UID, version: head.ResourceVersion}
	if last, known := j.results.Load(store.Field); known {
		if before, _ := last.(storeResult); before.key == verdict.key && before.uid == verdict.uid && before.version == verdict.version {
			return before.problem, nil
		}
	}
	secret := &corev1.Secret{}
	if err := j.apiReader.Get(ctx, name, secret); err != nil {
		return "", fmt.Errorf("reading Secret %s: %w", name, err)
	}
	if uri, found := secret.Data[store.From.Key]; !found {
		verdict.problem = missingStoreMessage(namespace, store, store.From.Key)
	} else if !resources.IsSQLServer(string(uri)) {
		verdict.problem = fmt.Sprintf("spec.%sFrom: key %s of Secret %s must hold a postgresql or mysql URI, because with "+
			"spec.artifactsServer.enabled two servers use the store at once: write such a URI, or set spec.artifactsServer.enabled to false",
			store.Field, store.From.Key, name)
	}
	j.results.Store(store.Field, verdict)
	return verdict.problem, nil
}

func missingStoreMessage(namespace string, store resources.Store, key string) string {
	what := reference.Missing{Reference: reference.Reference{Kind: reference.Secret, Name: store.From.Name}, Key: key}
	return fmt.Sprintf("spec.%sFrom: in namespace %s: %s; spec.artifactsServer.enabled needs it to know the store",
		store.Field, namespace, what)
}

// stopArtifacts scales a server for artifacts that is no longer wanted to zero while a migration needs the database for itself. Its
// Deployment stays until the migration is over, so that it is waited for.
func (r *mlflowReconciler) scaleDownArtifactsServer(ctx context.Context, m *mlflowv1.MLflow, d *migration.Decision) error {
	if resources.HasArtifactsServer(m) || d.Workloads != migration.ScaleToZero {
		return nil
	}
	unwanted, err := r.deployment(ctx, resources.Artifacts(m), r.cached)
	if err != nil || !metav1.IsControlledBy(unwanted, m) {
		return client.IgnoreNotFound(err)
	}
	return r.applier.PatchExisting(ctx, unwanted, func() { unwanted.Spec.Replicas = new(int32(0)) })
}

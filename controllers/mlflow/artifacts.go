package mlflow

import (
	"context"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
	"github.com/odh-platform/odh-platform-operator/controllers/mlflow/migration"
	"github.com/odh-platform/odh-platform-operator/controllers/mlflow/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/reconciler"
	"github.com/odh-platform/odh-platform-operator/pkg/reference"
)

// checkArtifactsServer holds back everything while a server for artifacts could not work: nothing would lead to it, or it would open
// the files of another server. What runs continues as it is.
func (r *objects) checkArtifactsServer(ctx context.Context, m *mlflowv1.MLflow) error {
	if !resources.Splits(m) {
		return nil
	}
	in := r.inputs()
	if !in.ViaGateway() {
		fail(m, ReasonHTTPRouteFailed, "spec.artifactsServer.enabled needs the HTTPRoute API (gateway.networking.k8s.io), which the cluster does not serve or --exposure does not use: "+
			"install the Gateway API, publish behind a Gateway, or set spec.artifactsServer.enabled to false")
		return &reconciler.Wait{For: "the HTTPRoute API"}
	}
	for _, store := range resources.SecretStores(m) {
		problem, err := r.stores.judge(ctx, m.UID, in.Namespace, store)
		if err != nil {
			fail(m, ReasonMetadataStore, fmt.Sprintf("Failed to check spec.%s: %v", store.Field, err))
			return err
		}
		if problem != "" {
			fail(m, ReasonMetadataStore, problem)
			return &reconciler.Wait{For: "a store that two servers may use"}
		}
	}
	return nil
}

// storeJudge says whether the stores in Secrets are such that two servers may use them. It remembers what it said about each version
// of a Secret, and nothing of its content.
type storeJudge struct {
	// cached holds the metadata of Secrets, live their content.
	cached, live client.Reader
	said         sync.Map // of storeKey to storeVerdict
}

type storeKey struct {
	owner types.UID
	field string
}

// storeVersion is what a verdict is about: a key in one version of a Secret.
type storeVersion struct {
	key     string
	uid     types.UID
	version string
}

type storeVerdict struct {
	on      storeVersion
	problem string
}

// judge says what is wrong with a store; empty when nothing is. A Secret that the pods may do without is needed here.
func (j *storeJudge) judge(ctx context.Context, owner types.UID, namespace string, store resources.SecretStore) (string, error) {
	head := &metav1.PartialObjectMetadata{}
	head.SetGroupVersionKind(secretKind)
	name := client.ObjectKey{Namespace: namespace, Name: store.From.Name}
	err := j.cached.Get(ctx, name, head)
	if apierrors.IsNotFound(err) {
		return missing(namespace, store, ""), nil
	}
	if err != nil {
		return "", fmt.Errorf("reading metadata of Secret %s: %w", name, err)
	}
	now := storeVerdict{on: storeVersion{store.From.Key, head.UID, head.ResourceVersion}}
	said, _ := j.said.Load(storeKey{owner, store.Field})
	if before, known := said.(storeVerdict); known && before.on == now.on {
		return before.problem, nil
	}
	secret := &corev1.Secret{}
	err = j.live.Get(ctx, name, secret)
	if apierrors.IsNotFound(err) {
		return missing(namespace, store, ""), nil
	}
	if err != nil {
		return "", fmt.Errorf("reading Secret %s: %w", name, err)
	}
	if uri, found := secret.Data[store.From.Key]; !found {
		now.problem = missing(namespace, store, store.From.Key)
	} else if !resources.IsShared(string(uri)) {
		now.problem = fmt.Sprintf("spec.%s: key %s of Secret %s/%s must hold a postgresql or mysql URI, because with spec.artifactsServer.enabled two servers use "+
			"the store at once: write such a URI, or set spec.artifactsServer.enabled to false", store.Field, store.From.Key, namespace, store.From.Name)
	}
	j.said.Store(storeKey{owner, store.Field}, now)
	return now.problem, nil
}

func missing(namespace string, store resources.SecretStore, key string) string {
	what := reference.Missing{Reference: reference.Reference{Kind: reference.Secret, Name: store.From.Name}, Key: key}
	return fmt.Sprintf("spec.%s: in namespace %s: %s; spec.artifactsServer.enabled needs it to know the store", store.Field, namespace, what)
}

// forget drops what is remembered for an owner that is gone.
func (j *storeJudge) forget(owner types.UID) {
	j.said.Range(func(key, _ any) bool {
		if k, ok := key.(storeKey); ok && k.owner == owner {
			j.said.Delete(key)
		}
		return true
	})
}

// stopArtifacts scales a server for artifacts that is no longer wanted to zero while a migration needs the database for itself. Its
// Deployment stays until the migration is over, so that it is waited for.
func (r *objects) stopArtifacts(ctx context.Context, m *mlflowv1.MLflow, d *migration.Decision) error {
	if resources.Splits(m) || d.Workloads != migration.ScaleToZero {
		return nil
	}
	unwanted, err := r.deployment(ctx, resources.Artifacts(m))
	if apierrors.IsNotFound(err) || err == nil && !metav1.IsControlledBy(unwanted, m) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading Deployment %s: %w", resources.Artifacts(m).Name, err)
	}
	return r.applier.Adjust(ctx, unwanted, func() { unwanted.Spec.Replicas = new(int32(0)) })
}

// pruneArtifacts removes the server for artifacts once it is no longer wanted and no migration waits for its end.
func (r *objects) pruneArtifacts(ctx context.Context, m *mlflowv1.MLflow, desired apply.Desired, d *migration.Decision) error {
	if resources.Splits(m) || d.Workloads != migration.RunAsSpecified {
		return nil
	}
	if err := r.applier.Prune(ctx, m, desired, artifactsKinds, nil); err != nil {
		return err
	}
	head := &metav1.PartialObjectMetadata{}
	head.SetGroupVersionKind(secretKind)
	s := resources.Artifacts(m)
	err := r.cached.Get(ctx, client.ObjectKey{Namespace: r.inputs().Namespace, Name: s.Secret}, head)
	if err != nil || !apply.IsOurs(head, ComponentName) || !metav1.IsControlledBy(head, m) {
		return client.IgnoreNotFound(err)
	}
	return r.applier.Remove(ctx, m.UID, head)
}

// Package mlflowtest provides MLflow objects for the tests of several packages.
package mlflowtest

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
)

// MLflow returns an MLflow with a remote database and remote artifacts, modified by changes.
func MLflow(changes ...func(*mlflowv1.MLflowSpec)) *mlflowv1.MLflow {
	m := &mlflowv1.MLflow{}
	m.SetGroupVersionKind(mlflowv1.GroupVersion.WithKind("MLflow"))
	m.Name = mlflowv1.SingletonName
	m.UID = "7f0c2f5e-0000-4000-8000-000000000001"
	m.Spec = mlflowv1.MLflowSpec{
		BackendStoreURI:      "postgresql://tracker@db.data.example.com:5432/tracking",
		ArtifactsDestination: "s3://team-artifacts",
		ServeArtifacts:       true,
	}
	for _, f := range changes {
		f(&m.Spec)
	}
	return m
}

// Object returns the object with the kind and name, or nil.
func Object(objects []*unstructured.Unstructured, kind, name string) *unstructured.Unstructured {
	for _, o := range objects {
		if o.GetKind() == kind && o.GetName() == name {
			return o
		}
	}
	return nil
}

// WithEnv sets the environment variables of an MLflow.
func WithEnv(env ...corev1.EnvVar) func(*mlflowv1.MLflowSpec) {
	return func(s *mlflowv1.MLflowSpec) { s.Env = env }
}

// WithGarbageCollection enables garbage collection.
func WithGarbageCollection(s *mlflowv1.MLflowSpec) {
	s.GarbageCollection = &mlflowv1.GarbageCollectionConfig{Schedule: "15 3 * * 0", OlderThan: "30d"}
}

// WithTraceArchival enables the archival of traces.
func WithTraceArchival(s *mlflowv1.MLflowSpec) {
	s.TraceArchival = &mlflowv1.TraceArchivalConfig{
		Enabled: true, Schedule: "*/30 * * * *", Location: "s3://archive", Retention: "14d",
		MaxTracesPerPass: new(int32(250)), LongRetentionAllowlist: []string{"7", "yes", "1e3"},
	}
}

// StorageRequest returns a request for the size of a volume.
func StorageRequest(size string) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)}
}

// WithStorage adds a volume with an SQLite database to an MLflow.
func WithStorage(claim corev1.PersistentVolumeClaimSpec) func(*mlflowv1.MLflowSpec) {
	return func(s *mlflowv1.MLflowSpec) { s.Storage, s.BackendStoreURI = &claim, "sqlite:////mlflow/mlflow.db" }
}

// SecretKey returns a selector of a key of a Secret.
func SecretKey(name, key string) *corev1.SecretKeySelector {
	return &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: name}, Key: key}
}

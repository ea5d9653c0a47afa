package mlflow

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kjson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"

	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
	author "github.com/odh-platform/odh-platform-operator/pkg/admission"
)

func referencesOf(namespace string) author.ReferencesOf {
	return func(rules author.Rules, raw []byte, _ string) (author.References, error) {
		m := &mlflowv1.MLflow{}
		if err := kjson.Unmarshal(raw, m); err != nil {
			return author.References{}, fmt.Errorf("decoding the MLflow: %w", err)
		}
		return References(rules, m, namespace), nil
	}
}

// Uses lists what the pods of an MLflow, which run in the namespace, use by the word of its author.
func References(rules author.Rules, m *mlflowv1.MLflow, namespace string) author.References {
	spec, path := &m.Spec, field.NewPath("spec")
	u := author.References{Namespace: namespace}
	u.AddReferences(spec, path) // Secrets, ConfigMaps and the account
	u.Without(author.Account, mlflowv1.DefaultServiceAccount)
	if spec.Image != nil {
		u.Add(author.Image, spec.Image.Image, path.Child("image", "image"))
	}
	u.AddMetadata(author.Label, spec.PodLabels, path.Child("podLabels"))
	u.AddMetadata(author.Annotation, spec.PodAnnotations, path.Child("podAnnotations"))
	u.AddMetadata(author.AccountNote, spec.ServiceAccountAnnotations, path.Child("serviceAccountAnnotations"))
	for i, claim := range spec.ResourceClaims {
		u.AddContent(author.Device, claim.Name, claim, path.Child("resourceClaims").Index(i))
	}
	if spec.ArtifactsServer != nil {
		for i, claim := range spec.ArtifactsServer.ResourceClaims {
			u.AddContent(author.Device, claim.Name, claim, path.Child("artifactsServer", "resourceClaims").Index(i))
		}
	}
	u.AddServer(&spec.More, path)
	addClaim(&u, spec.Storage, path.Child("storage"))
	u.AddPrivileges(rules.Level, &metav1.ObjectMeta{Labels: spec.PodLabels, Annotations: spec.PodAnnotations}, &corev1.PodSpec{
		SecurityContext: spec.PodSecurityContext,
		Containers:      []corev1.Container{{Name: "mlflow", SecurityContext: spec.SecurityContext}},
	}, path)
	return u
}

// addClaim adds existing data that the volume of the server is to hold: a volume by name, or a copy of another claim or a snapshot.
func addClaim(u *author.References, claim *corev1.PersistentVolumeClaimSpec, path *field.Path) {
	if claim == nil {
		return
	}
	u.Add(author.Claim, claim.VolumeName, path.Child("volumeName"))
	if claim.DataSource != nil {
		u.AddContent(author.Claim, claim.DataSource.Name, claim.DataSource, path.Child("dataSource"))
	}
	if claim.DataSourceRef != nil {
		u.AddContent(author.Claim, claim.DataSourceRef.Name, claim.DataSourceRef, path.Child("dataSourceRef"))
	}
}

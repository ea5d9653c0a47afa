package mlflow

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kjson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"

	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
	pkgadmission "github.com/odh-platform/odh-platform-operator/pkg/admission"
)

func referencesOf(namespace string) pkgadmission.ReferencesOf {
	return func(rules pkgadmission.Rules, raw []byte, _ string) (pkgadmission.References, error) {
		m := &mlflowv1.MLflow{}
		if err := kjson.Unmarshal(raw, m); err != nil {
			return pkgadmission.References{}, fmt.Errorf("decoding the MLflow: %w", err)
		}
		return References(rules, m, namespace), nil
	}
}

// References returns the objects and settings that the author of an MLflow gives to its pods, which run in the namespace.
func References(rules pkgadmission.Rules, m *mlflowv1.MLflow, namespace string) pkgadmission.References {
	spec, path := &m.Spec, field.NewPath("spec")
	refs := pkgadmission.References{Namespace: namespace}
	refs.AddReferences(spec, path) // Secrets, ConfigMaps and the ServiceAccount
	refs.Remove(pkgadmission.Account, mlflowv1.DefaultServiceAccount)
	if spec.Image != nil {
		refs.Add(pkgadmission.Image, spec.Image.Image, path.Child("image", "image"))
	}
	refs.AddMetadata(pkgadmission.Label, spec.PodLabels, path.Child("podLabels"))
	refs.AddMetadata(pkgadmission.Annotation, spec.PodAnnotations, path.Child("podAnnotations"))
	refs.AddMetadata(pkgadmission.ServiceAccountAnnotation, spec.ServiceAccountAnnotations, path.Child("serviceAccountAnnotations"))
	for i, claim := range spec.ResourceClaims {
		refs.AddContent(pkgadmission.ResourceClaim, claim.Name, claim, path.Child("resourceClaims").Index(i))
	}
	if spec.ArtifactsServer != nil {
		for i, claim := range spec.ArtifactsServer.ResourceClaims {
			refs.AddContent(pkgadmission.ResourceClaim, claim.Name, claim, path.Child("artifactsServer", "resourceClaims").Index(i))
		}
	}
	refs.AddServer(&spec.CommonPods, path)
	addClaim(&refs, spec.Storage, path.Child("storage"))
	refs.AddPodSecurityViolations(rules.Level, &metav1.ObjectMeta{Labels: spec.PodLabels, Annotations: spec.PodAnnotations}, &corev1.PodSpec{
		SecurityContext: spec.PodSecurityContext,
		Containers:      []corev1.Container{{Name: "mlflow", SecurityContext: spec.SecurityContext}},
	}, path)
	return refs
}

// addClaim adds the existing data that the claim uses: a volume, volumes with labels, or the source of a copy.
func addClaim(refs *pkgadmission.References, claim *corev1.PersistentVolumeClaimSpec, path *field.Path) {
	if claim == nil {
		return
	}
	refs.Add(pkgadmission.ExistingData, claim.VolumeName, path.Child("volumeName"))
	if claim.Selector != nil {
		refs.AddContent(pkgadmission.ExistingData, "selector", claim.Selector, path.Child("selector"))
	}
	if claim.DataSource != nil {
		refs.AddContent(pkgadmission.ExistingData, claim.DataSource.Name, claim.DataSource, path.Child("dataSource"))
	}
	if claim.DataSourceRef != nil {
		refs.AddContent(pkgadmission.ExistingData, claim.DataSourceRef.Name, claim.DataSourceRef, path.Child("dataSourceRef"))
	}
}

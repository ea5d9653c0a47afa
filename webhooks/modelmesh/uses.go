package modelmesh

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/odh-platform/odh-platform-operator/apis/serving/v1alpha1"
	author "github.com/odh-platform/odh-platform-operator/pkg/admission"
	mm "github.com/odh-platform/odh-platform-operator/pkg/modelmesh"
)

func usesOf(rules author.Rules, raw []byte, namespace string) (author.Uses, error) {
	r, err := decode(raw)
	if err != nil || !mm.MultiModel(&r.Spec) { // for all other runtimes the manager makes no pods
		return author.Uses{}, err
	}
	return Uses(rules, &r.Spec, namespace), nil
}

// Uses lists what the pods of a runtime for ModelMesh use by the word of its author. The namespace is empty for those of a
// ClusterServingRuntime, which run in all that are served.
func Uses(rules author.Rules, spec *v1alpha1.ServingRuntimeSpec, namespace string) author.Uses {
	path := field.NewPath("spec")
	pod := &corev1.PodSpec{Containers: spec.Containers, Volumes: spec.Volumes, ImagePullSecrets: spec.ImagePullSecrets}
	u := author.Uses{Namespace: namespace}
	u.AddPod(pod, path)
	u.AddMetadata(author.Label, spec.Labels, path.Child("labels"))
	u.AddMetadata(author.Annotation, spec.Annotations, path.Child("annotations"))
	if adapter := spec.BuiltInAdapter; adapter != nil && len(adapter.Env) > 0 {
		at := path.Child("builtInAdapter", "env")
		u.AddReferences(adapter.Env, at)
		u.AddContent(author.Container, "adapter", adapter.Env, at)
	}
	u.AddPrivileges(rules.Level, &metav1.ObjectMeta{Labels: spec.Labels, Annotations: spec.Annotations}, pod, path)
	return u
}

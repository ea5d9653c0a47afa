package raycluster

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/odh-platform/odh-platform-operator/pkg/nested"
)

const (
	// KubeRayName is what KubeRay calls its Deployment, its account and its ClusterRoleBinding, in Helm and in kustomize.
	KubeRayName = "kuberay-operator"
	// InitializationName is the one DSCInitialization that a platform has.
	InitializationName = "default-dsci"
)

// KubeRayNamespaces are the namespaces of KubeRay, sorted: those of the accounts in its ClusterRoleBinding, that of its Deployment
// beside the manager, and that which the DSCInitialization of the platform names; nil for an object that is not there. Only
// administrators write these. Labels of pods say nothing, nor do namespaces of a well-known name: tenants can make both.
func KubeRayNamespaces(binding, deployment, initialization *unstructured.Unstructured) []string {
	var found []string
	if binding != nil {
		for _, subject := range nested.List(binding.Object, "subjects") {
			found = append(found, nested.Text(subject, "namespace"))
		}
	}
	if deployment != nil {
		found = append(found, deployment.GetNamespace())
	}
	if initialization != nil {
		found = append(found, nested.Text(initialization.Object, "spec", "applicationsNamespace"))
	}
	found = slices.DeleteFunc(found, func(namespace string) bool { return namespace == "" })
	slices.Sort(found)
	return slices.Compact(found)
}

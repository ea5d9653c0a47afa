package resources

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Literal is an object of a kind whose Go types are not worth their weight: optional APIs of which few fields are used. The
// namespace is empty for kinds of cluster scope. Fields are the top-level fields, spec as a rule, of metadata the
// annotations at most; numbers in them must be int64, and nil is no field at all.
func Literal(apiVersion, kind, name, namespace string, labels map[string]string, fields map[string]any) runtime.ApplyConfiguration {
	u := &unstructured.Unstructured{Object: map[string]any{}}
	for key, value := range fields {
		u.Object[key] = value
	}
	u.SetAPIVersion(apiVersion)
	u.SetKind(kind)
	u.SetName(name)
	u.SetNamespace(namespace)
	u.SetLabels(labels)
	return client.ApplyConfigurationFromUnstructured(u)
}

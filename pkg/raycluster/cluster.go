package raycluster

import (
	"fmt"
	"slices"

	rayv1 "github.com/ray-project/kuberay/ray-operator/apis/ray/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	kjson "sigs.k8s.io/json"

	"github.com/odh-platform/odh-platform-operator/pkg/nested"
)

// Cluster is a read-only view of a raw RayCluster. A field of an unexpected type counts as unset. The zero value is an empty object.
type Cluster struct {
	object map[string]any
	spec   spec
}

// spec holds the fields that are decoded into KubeRay's types. Pod templates are not decoded: all their fields matter, and quantities of
// users must not be parsed.
type spec struct {
	rayv1.RayClusterSpec
	// TLSOptions and NetworkPolicy exist since KubeRay 1.7.
	TLSOptions struct {
		Enabled bool `json:"enabled"`
	} `json:"tlsOptions"`
	NetworkPolicy map[string]any `json:"networkPolicy"`
}

// View returns the view of an object, such as the content of an Unstructured, without copying it.
func View(object map[string]any) Cluster {
	return Cluster{object, nested.Decode[spec](nested.Pick(nested.Map(object, "spec"),
		"suspend", "managedBy", "enableInTreeAutoscaling", "authOptions", "tlsOptions", "networkPolicy"))}
}

// Parse decodes a RayCluster. It fails if raw is neither a JSON object nor null.
func Parse(raw []byte) (Cluster, error) {
	var object map[string]any
	if err := kjson.UnmarshalCaseSensitivePreserveInts(raw, &object); err != nil {
		return Cluster{}, fmt.Errorf("reading the RayCluster: %w", err)
	}
	return View(object), nil
}

// Object returns the object of the view. It must not be changed.
func (c Cluster) Object() map[string]any { return c.object }

// Name returns the name of the RayCluster.
func (c Cluster) Name() string { return nested.String(c.object, "metadata", "name") }

// Namespace returns the namespace of the RayCluster.
func (c Cluster) Namespace() string { return nested.String(c.object, "metadata", "namespace") }

// Annotation returns the value of an annotation, and whether it is set.
func (c Cluster) Annotation(key string) (string, bool) {
	value, found := nested.At(c.object, "metadata", "annotations", key).(string)
	return value, found
}

// HasHashedNames reports whether Names returns HashedNames.
func (c Cluster) HasHashedNames() bool {
	_, found := c.Annotation(AnnotationVersion)
	return found
}

// Terminating reports whether the cluster is being deleted.
func (c Cluster) Terminating() bool {
	return nested.At(c.object, "metadata", "deletionTimestamp") != nil
}

// Suspended reports whether the cluster should have no pods.
func (c Cluster) Suspended() bool { return ptr.Deref(c.spec.Suspend, false) }

// HasAutoscaler reports whether KubeRay adds its autoscaler to the head.
func (c Cluster) HasAutoscaler() bool { return ptr.Deref(c.spec.EnableInTreeAutoscaling, false) }

// ManagedBy returns spec.managedBy; "" means KubeRay.
func (c Cluster) ManagedBy() string { return ptr.Deref(c.spec.ManagedBy, "") }

// ManagedElsewhere reports whether a manager other than the KubeRay of this Kubernetes cluster runs the pods.
func (c Cluster) ManagedElsewhere() bool {
	by := c.ManagedBy()
	return by != "" && by != ManagerKubeRay
}

// OwnerKind returns the kind of the controlling owner, such as RayJob, or "".
func (c Cluster) OwnerKind() string {
	for _, owner := range nested.List(c.object, "metadata", "ownerReferences") {
		if nested.At(owner, "controller") == true {
			return nested.String(owner, "kind")
		}
	}
	return ""
}

// HeadServiceAccount returns the ServiceAccount of the head template; "" for the default one.
func (c Cluster) HeadServiceAccount() string { return nested.String(c.headPod(), "serviceAccountName") }

// HasPullSecrets reports whether the pod template of the worker group with this name lists imagePullSecrets. Other names select the head.
func (c Cluster) HasPullSecrets(group string) bool {
	pod := c.headPod()
	for _, workers := range nested.List(c.object, "spec", "workerGroupSpecs") {
		if nested.String(workers, "groupName") == group {
			pod = nested.At(workers, "template", "spec")
		}
	}
	return len(nested.List(pod, "imagePullSecrets")) > 0
}

// Port returns the number of a port of Ray: that of the head template, or else the default.
func (c Cluster) Port(name Port) int32 {
	ports := nested.List(nested.At(c.headPod(), "containers", "0"), "ports")
	port := nested.Decode[corev1.ContainerPort](nested.Pick(nested.ByName(ports, string(name)), "containerPort"))
	if port.ContainerPort > 0 {
		return port.ContainerPort
	}
	return defaultPorts[name]
}

// WorkerGroupCount returns the number of worker groups.
func (c Cluster) WorkerGroupCount() int {
	return len(nested.List(c.object, "spec", "workerGroupSpecs"))
}

const (
	// KubeRayName is the name of KubeRay's Deployment, ServiceAccount and ClusterRoleBinding, in Helm and in kustomize.
	KubeRayName = "kuberay-operator"
	// DSCInitializationName is the name of the only DSCInitialization of a platform.
	DSCInitializationName = "default-dsci"
)

// KubeRayNamespaces returns the sorted namespaces of KubeRay: of the subjects of its ClusterRoleBinding, of its Deployment in the namespace
// of the manager, and spec.applicationsNamespace of the DSCInitialization. It skips nil objects. Only administrators can write these
// objects; pod labels and well-known namespace names are not trusted, because tenants can create both.
func KubeRayNamespaces(objects ...*unstructured.Unstructured) []string {
	var found []string
	for _, object := range objects {
		if object == nil {
			continue
		}
		found = append(found, object.GetNamespace(), nested.String(object.Object, "spec", "applicationsNamespace"))
		for _, subject := range nested.List(object.Object, "subjects") {
			found = append(found, nested.String(subject, "namespace"))
		}
	}
	found = slices.DeleteFunc(found, func(namespace string) bool { return namespace == "" })
	slices.Sort(found)
	return slices.Compact(found)
}

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

// Cluster is a view of a RayCluster as it came over the wire. Fields of another type than expected count as absent, so that
// no input can be a surprise. The zero value is an object without fields.
type Cluster struct {
	object map[string]any
	spec   spec
}

// spec is what is read into KubeRay's types. Pod templates are read as they came: every field of them counts, and quantities of
// users are not to be parsed.
type spec struct {
	rayv1.RayClusterSpec
	// TLSOptions and NetworkPolicy are of KubeRay 1.7.
	TLSOptions struct {
		Enabled bool `json:"enabled"`
	} `json:"tlsOptions"`
	NetworkPolicy map[string]any `json:"networkPolicy"`
}

// View looks at an object, such as the content of an unstructured one. It is not copied, and never changed.
func View(object map[string]any) Cluster {
	return Cluster{object, nested.Decode[spec](nested.Pick(nested.Map(object, "spec"),
		"suspend", "managedBy", "enableInTreeAutoscaling", "authOptions", "tlsOptions", "networkPolicy"))}
}

// Parse reads a RayCluster. An error means that the text is no JSON object.
func Parse(raw []byte) (Cluster, error) {
	var object map[string]any
	if err := kjson.UnmarshalCaseSensitivePreserveInts(raw, &object); err != nil {
		return Cluster{}, fmt.Errorf("reading the RayCluster: %w", err)
	}
	return View(object), nil
}

// Object is what the view is of. It must not be changed.
func (c Cluster) Object() map[string]any { return c.object }

// Name of the cluster.
func (c Cluster) Name() string { return nested.Text(c.object, "metadata", "name") }

// Namespace of the cluster.
func (c Cluster) Namespace() string { return nested.Text(c.object, "metadata", "namespace") }

// Annotation returns the value of an annotation, and whether it is there.
func (c Cluster) Annotation(key string) (string, bool) {
	value, found := nested.At(c.object, "metadata", "annotations", key).(string)
	return value, found
}

// Hashed tells whether the objects around the cluster have hashed names.
func (c Cluster) HasHashedNames() bool {
	_, found := c.Annotation(AnnotationVersion)
	return found
}

// Deleted tells whether the cluster is being deleted.
func (c Cluster) Terminating() bool {
	return nested.At(c.object, "metadata", "deletionTimestamp") != nil
}

// Suspended tells whether the cluster shall have no pods.
func (c Cluster) Suspended() bool { return ptr.Deref(c.spec.Suspend, false) }

// Autoscaled tells whether KubeRay adds its autoscaler to the head.
func (c Cluster) HasAutoscaler() bool { return ptr.Deref(c.spec.EnableInTreeAutoscaling, false) }

// ManagedBy is who runs the cluster; empty for KubeRay.
func (c Cluster) ManagedBy() string { return ptr.Deref(c.spec.ManagedBy, "") }

// ManagedElsewhere tells whether another program than KubeRay in this Kubernetes cluster runs the pods, so that there is
// nothing here to be secured.
func (c Cluster) ManagedElsewhere() bool {
	by := c.ManagedBy()
	return by != "" && by != ManagerKubeRay
}

// Owner returns the kind of the owner that controls the cluster, such as RayJob; empty for none.
func (c Cluster) Owner() string {
	for _, owner := range nested.List(c.object, "metadata", "ownerReferences") {
		if nested.At(owner, "controller") == true {
			return nested.Text(owner, "kind")
		}
	}
	return ""
}

// HeadAccount is the account of the head template; empty for that of the namespace.
func (c Cluster) HeadServiceAccount() string { return nested.Text(c.headPod(), "serviceAccountName") }

// HasPullSecrets tells whether the head template lists pull secrets of its own.
func (c Cluster) HasPullSecrets() bool { return len(nested.List(c.headPod(), "imagePullSecrets")) > 0 }

// Port returns the number of a port of Ray.
func (c Cluster) Port(name Port) int32 {
	ports := nested.List(nested.At(c.headPod(), "containers", "0"), "ports")
	port := nested.Decode[corev1.ContainerPort](nested.Pick(nested.Named(ports, string(name)), "containerPort"))
	if port.ContainerPort > 0 {
		return port.ContainerPort
	}
	return defaultPorts[name]
}

// Workers returns the number of worker groups.
func (c Cluster) Workers() int { return len(nested.List(c.object, "spec", "workerGroupSpecs")) }

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

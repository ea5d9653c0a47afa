package ray

import (
	"fmt"
	"strconv"

	kjson "sigs.k8s.io/json"
)

// Cluster is a view of a RayCluster as it came over the wire. Fields of another type than expected count as absent, so that
// no input can be a surprise. The zero value is an object without fields.
type Cluster struct{ object map[string]any }

// View looks at an object, such as the content of an unstructured one. It is not copied, and never changed.
func View(object map[string]any) Cluster { return Cluster{object} }

// Parse reads a RayCluster. An error means that the text is no JSON object.
func Parse(raw []byte) (Cluster, error) {
	var object map[string]any
	if err := kjson.UnmarshalCaseSensitivePreserveInts(raw, &object); err != nil {
		return Cluster{}, fmt.Errorf("reading the RayCluster: %w", err)
	}
	return Cluster{object}, nil
}

// Object is what is looked at. It must not be changed.
func (c Cluster) Object() map[string]any { return c.object }

// Name of the cluster.
func (c Cluster) Name() string { return text(c.object, "metadata", "name") }

// Namespace of the cluster.
func (c Cluster) Namespace() string { return text(c.object, "metadata", "namespace") }

// Annotation returns the value of an annotation, and whether it is there.
func (c Cluster) Annotation(key string) (string, bool) {
	value, found := At(c.object, "metadata", "annotations", key).(string)
	return value, found
}

// Hashed tells whether the objects around the cluster have hashed names.
func (c Cluster) Hashed() bool {
	_, found := c.Annotation(AnnotationVersion)
	return found
}

// Deleted tells whether the cluster is being deleted.
func (c Cluster) Deleted() bool { return At(c.object, "metadata", "deletionTimestamp") != nil }

// Suspended tells whether the cluster shall have no pods.
func (c Cluster) Suspended() bool { return At(c.object, "spec", "suspend") == true }

// Autoscaled tells whether KubeRay adds its autoscaler to the head.
func (c Cluster) Autoscaled() bool {
	return At(c.object, "spec", "enableInTreeAutoscaling") == true
}

// ManagedBy is who runs the cluster; empty for KubeRay.
func (c Cluster) ManagedBy() string { return text(c.object, "spec", "managedBy") }

// ManagedElsewhere tells whether another program than KubeRay in this Kubernetes cluster runs the pods, so that there is
// nothing here to be secured.
func (c Cluster) ManagedElsewhere() bool {
	by := c.ManagedBy()
	return by != "" && by != ManagerKubeRay
}

// Owner returns the kind of the owner that controls the cluster, such as RayJob; empty for none.
func (c Cluster) Owner() string {
	owners, _ := At(c.object, "metadata", "ownerReferences").([]any)
	for _, owner := range owners {
		if At(owner, "controller") == true {
			return text(owner, "kind")
		}
	}
	return ""
}

// HeadAccount is the account of the head template; empty for that of the namespace.
func (c Cluster) HeadAccount() string {
	return text(c.object, "spec", "headGroupSpec", "template", "spec", "serviceAccountName")
}

// HasPullSecrets tells whether the head template lists pull secrets of its own.
func (c Cluster) HasPullSecrets() bool {
	list, _ := At(c.object, "spec", "headGroupSpec", "template", "spec", "imagePullSecrets").([]any)
	return len(list) > 0
}

// Workers returns the number of worker groups.
func (c Cluster) Workers() int {
	groups, _ := At(c.object, "spec", "workerGroupSpecs").([]any)
	return len(groups)
}

// At follows fields through objects, and indexes written as numbers through lists; nil when nothing stands there.
func At(value any, path ...string) any {
	for _, name := range path {
		switch node := value.(type) {
		case map[string]any:
			value = node[name]
		case []any:
			i, err := strconv.Atoi(name)
			if err != nil || i < 0 || i >= len(node) {
				return nil
			}
			value = node[i]
		default:
			return nil
		}
	}
	return value
}

// text is At for texts; empty when there is none.
func text(value any, path ...string) string {
	s, _ := At(value, path...).(string)
	return s
}

package tree

import (
	"cmp"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/odh-platform/odh-platform-operator/cmd/kubectl-odh/internal/served"
	"github.com/odh-platform/odh-platform-operator/pkg/status/health"
)

// item is an object of which the metadata is known.
type item struct {
	kind served.Kind
	meta metav1.ObjectMeta
}

// controller is the uid of the object that controls it; empty for none.
func (i *item) controller() types.UID {
	if ref := metav1.GetControllerOfNoCopy(&i.meta); ref != nil {
		return ref.UID
	}
	return ""
}

// Relation says why an object is part of a tree.
type Relation string

// Relations to the object above.
const (
	// Owned objects name the one above as their owner and go with it.
	Owned Relation = "owned"
	// Labelled objects are found by their labels; the manager removes them when the one above goes.
	Labelled Relation = "labelled"
	// Kept objects are found by their labels and stay when the one above goes: data.
	Kept Relation = "kept"
	// Serving objects serve the one above, and others too.
	Serving Relation = "serving"
)

// Node is an object in a tree.
type Node struct {
	APIVersion string    `json:"apiVersion"`
	Kind       string    `json:"kind"`
	Namespace  string    `json:"namespace,omitempty"`
	Name       string    `json:"name"`
	Relation   Relation  `json:"relation,omitempty"`
	Created    time.Time `json:"created,omitzero"`
	health.Verdict
	Children []*Node `json:"children,omitempty"`

	item *item
	// hidden tells that you are not allowed to read it, so that its state is not known.
	hidden bool
}

func newNode(i *item, relation Relation) *Node {
	return &Node{
		APIVersion: i.kind.GroupVersion().String(), Kind: i.kind.Kind, Namespace: i.meta.Namespace, Name: i.meta.Name,
		Relation: relation, Created: i.meta.CreationTimestamp.Time, Verdict: health.Verdict{State: health.Healthy}, item: i,
	}
}

// walk visits a node and all below it.
func (n *Node) walk(visit func(*Node)) {
	visit(n)
	for _, child := range n.Children {
		child.walk(visit)
	}
}

// order of kinds below a node: what runs, how it is reached, what it keeps; all others follow by their names.
var order = []string{
	"RayCluster", "AppWrapper", "ServingRuntime", "ClusterServingRuntime", "Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "Job", "CronJob", "Pod",
	"Service", "Route", "HTTPRoute", "Ingress", "PersistentVolumeClaim", "ConfigMap", "Secret",
}

func rank(kind string) int {
	if i := slices.Index(order, kind); i >= 0 {
		return i
	}
	return len(order)
}

func (n *Node) sort() {
	slices.SortFunc(n.Children, func(a, b *Node) int {
		return cmp.Or(cmp.Compare(rank(a.Kind), rank(b.Kind)), strings.Compare(a.Kind, b.Kind), strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	})
	for _, child := range n.Children {
		child.sort()
	}
}

package tree

import (
	"cmp"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	awv1beta2 "github.com/odh-platform/odh-platform-operator/apis/appwrapper/v1beta2"
	"github.com/odh-platform/odh-platform-operator/cmd/kubectl-odh/internal/fetch"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/raycluster"
	"github.com/odh-platform/odh-platform-operator/pkg/status/health"
)

// item is an object of which the metadata is known.
type item struct {
	kind fetch.Kind
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

	// Live is the object, after [Read]; nil when it no longer exists, or could not be read.
	Live *unstructured.Unstructured `json:"-"`
	err  error

	item *item
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

// order of kinds below a node, the last one first: what it keeps, how it is reached, what runs. All others follow by their names.
var order = []string{
	"Secret", "ConfigMap", "PersistentVolumeClaim", "Ingress", "HTTPRoute", "Route", "Service", "Pod", "CronJob", "Job", "ReplicaSet",
	"DaemonSet", "StatefulSet", "Deployment", "ClusterServingRuntime", "ServingRuntime", "AppWrapper", "RayCluster",
}

func (n *Node) sort() {
	slices.SortFunc(n.Children, func(a, b *Node) int {
		return cmp.Or(cmp.Compare(slices.Index(order, b.Kind), slices.Index(order, a.Kind)), strings.Compare(a.Kind, b.Kind),
			strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	})
	for _, child := range n.Children {
		child.sort()
	}
}

// forest is all that is known of the objects around some roots.
type forest struct {
	byUID   map[types.UID]*item
	ownedBy map[types.UID][]*item
	all     []*item
}

func newForest() *forest {
	return &forest{byUID: map[types.UID]*item{}, ownedBy: map[types.UID][]*item{}}
}

// add records an object once: some objects are served in several API groups.
func (f *forest) add(i *item) {
	if f.byUID[i.meta.UID] != nil {
		return
	}
	f.byUID[i.meta.UID] = i
	f.all = append(f.all, i)
	for _, ref := range i.meta.OwnerReferences {
		f.ownedBy[ref.UID] = append(f.ownedBy[ref.UID], i)
	}
}

// grow returns the tree below a root. Each object is in it once: below its controller, else below the owner that comes first.
func (f *forest) grow(root *item) *Node {
	return f.growBeside(root, "", map[types.UID]bool{})
}

func (f *forest) growBeside(root *item, relation Relation, placed map[types.UID]bool) *Node {
	placed[root.meta.UID] = true
	top := newNode(root, relation)
	f.branch(top, placed)
	tied := kin[root.kind.GroupKind()]
	for _, i := range f.all {
		relation := Labelled
		if i.kind.Kind == "PersistentVolumeClaim" {
			relation = Kept
		}
		if tied != nil && tied(root, i) && f.byUID[i.controller()] == nil {
			f.attach(top, i, relation, placed)
		}
	}
	top.sort()
	return top
}

// branch adds what a node owns, and what that owns.
func (f *forest) branch(n *Node, placed map[types.UID]bool) {
	for _, i := range f.ownedBy[n.item.meta.UID] {
		if above := i.controller(); above == n.item.meta.UID || f.byUID[above] == nil {
			f.attach(n, i, Owned, placed)
		}
	}
}

// attach adds an object that has no place yet to a node, and what it owns.
func (f *forest) attach(n *Node, i *item, relation Relation, placed map[types.UID]bool) {
	if placed[i.meta.UID] {
		return
	}
	placed[i.meta.UID] = true
	child := newNode(i, relation)
	n.Children = append(n.Children, child)
	f.branch(child, placed)
}

// namespaces of a node and all below it.
func (n *Node) namespaces() map[string]bool {
	out := map[string]bool{}
	n.walk(func(n *Node) {
		if n.Namespace != "" {
			out[n.Namespace] = true
		}
	})
	return out
}

// Labels by which objects without an owner are assigned to their resource.
const (
	labelApp       = "app"
	labelComponent = "component"
	labelCreatedBy = "app.kubernetes.io/created-by"
	// labelNamespace of an object outside the namespace of its registry or catalog names that.
	labelNamespace = "modelregistry.opendatahub.io/namespace"
	// labelRay is KubeRay's.
	labelRay = "ray.io/cluster"

	createdByRegistries = "model-registry-operator"
)

// kin lists how objects without an owner are recognized, for each kind of resource.
var kin = map[schema.GroupKind]func(root, i *item) bool{
	{Group: "mlflow.opendatahub.io", Kind: "MLflow"}: func(_, i *item) bool {
		return apply.IsOurs(&i.meta, "mlflow") // there is one MLflow at most
	},
	{Group: "components.platform.opendatahub.io", Kind: "AIHub"}: func(_, i *item) bool {
		return apply.IsOurs(&i.meta, "platform")
	},
	{Group: "modelregistry.opendatahub.io", Kind: "ModelRegistry"}: func(root, i *item) bool {
		app := i.meta.Labels[labelApp]
		named := app == root.meta.Name || app == root.meta.Name+"-postgres"
		return apply.IsOurs(&i.meta, "modelregistry") && named && near(root, i, labelNamespace)
	},
	{Group: "aihub.opendatahub.io", Kind: "Catalog"}: func(root, i *item) bool {
		component := i.meta.Labels[labelComponent]
		return i.meta.Labels[labelCreatedBy] == createdByRegistries && (component == "model-catalog" || component == "model-catalog-postgres") &&
			near(root, i, labelNamespace)
	},
	{Group: "ray.io", Kind: "RayCluster"}: func(root, i *item) bool {
		named := i.meta.Labels[raycluster.LabelClusterName] == root.meta.Name || i.meta.Labels[labelRay] == root.meta.Name
		return named && near(root, i, raycluster.LabelClusterNamespace)
	},
	{Group: "workload.codeflare.dev", Kind: "AppWrapper"}: func(root, i *item) bool {
		return i.meta.Labels[awv1beta2.LabelAppWrapper] == root.meta.Name && i.meta.Namespace == root.meta.Namespace
	},
}

// near tells whether an object is in the namespace of a resource, or says by a label that it is for that namespace.
func near(root, i *item, label string) bool {
	return i.meta.Namespace == root.meta.Namespace || i.meta.Labels[label] == root.meta.Namespace
}

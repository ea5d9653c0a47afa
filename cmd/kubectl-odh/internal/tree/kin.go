package tree

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	awv1beta2 "github.com/odh-platform/odh-platform-operator/apis/appwrapper/v1beta2"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/raycluster"
)

// Labels by which objects without an owner are led to the resource that they are for.
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
		return byComponent(i, "mlflow") // there is one MLflow at most
	},
	{Group: "components.platform.opendatahub.io", Kind: "AIHub"}: func(_, i *item) bool {
		return byComponent(i, "platform")
	},
	{Group: "modelregistry.opendatahub.io", Kind: "ModelRegistry"}: func(root, i *item) bool {
		app := i.meta.Labels[labelApp]
		return byComponent(i, "modelregistry") && (app == root.meta.Name || app == root.meta.Name+"-postgres") && near(root, i, labelNamespace)
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

// ties tells which objects belong to a resource by their labels.
func ties(root *item) func(*item) bool {
	found := kin[root.kind.GroupKind()]
	return func(i *item) bool { return found != nil && found(root, i) }
}

// byComponent tells whether a component of the manager made an object.
func byComponent(i *item, component string) bool {
	return apply.IsOurs(&i.meta, component)
}

// near tells whether an object is in the namespace of a resource, or says by a label that it is for that namespace.
func near(root, i *item, label string) bool {
	return i.meta.Namespace == root.meta.Namespace || i.meta.Labels[label] == root.meta.Namespace
}

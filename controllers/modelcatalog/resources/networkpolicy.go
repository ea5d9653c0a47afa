package resources

import (
	"k8s.io/apimachinery/pkg/runtime"

	aihubv1alpha1 "github.com/odh-platform/odh-platform-operator/apis/aihub/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/pkg/resources"
)

// routerPolicy admits the routers and the namespaces of the dashboard.
func routerPolicy(c *aihubv1alpha1.Catalog) runtime.ApplyConfiguration {
	return resources.RouterPolicy(metaOf(c, RoutePolicy), Selector(Name), endpointOf(c).port)
}

// openPolicy admits all clients to the port where callers are authenticated, and none to the server behind it.
func openPolicy(c *aihubv1alpha1.Catalog) runtime.ApplyConfiguration {
	return resources.IngressPolicy(metaOf(c, IngressPolicy), Selector(Name), resources.AllowTCP(endpointOf(c).port))
}

// databasePolicy admits the server alone.
func databasePolicy(c *aihubv1alpha1.Catalog) runtime.ApplyConfiguration {
	meta := metaOf(c, DatabaseName)
	meta.Labels = Labels(DatabaseName)
	return resources.IngressPolicy(meta, Selector(DatabaseName),
		resources.AllowTCP(databasePort).WithFrom(resources.PodsWith(Selector(Name))))
}

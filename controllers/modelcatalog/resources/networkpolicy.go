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

// egressPolicy lets the server out: to its database, to sources of models, and to the API server for its proxy.
func egressPolicy(c *aihubv1alpha1.Catalog) runtime.ApplyConfiguration {
	return resources.EgressPolicy(metaOf(c, EgressPolicy), Selector(Name), resources.Anywhere())
}

// databaseEgress keeps the database from calling anyone; it answers all the same.
func databaseEgress(c *aihubv1alpha1.Catalog) runtime.ApplyConfiguration {
	meta := metaOf(c, DatabaseEgress)
	meta.Labels = Labels(DatabaseName)
	return resources.EgressPolicy(meta, Selector(DatabaseName))
}

// databasePolicy admits the server alone.
func databasePolicy(c *aihubv1alpha1.Catalog) runtime.ApplyConfiguration {
	meta := metaOf(c, DatabaseName)
	meta.Labels = Labels(DatabaseName)
	return resources.IngressPolicy(meta, Selector(DatabaseName),
		resources.AllowTCP(databasePort).WithFrom(resources.PodsWith(Selector(Name))))
}

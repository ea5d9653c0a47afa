package resources

import (
	"k8s.io/apimachinery/pkg/runtime"

	aihubv1alpha1 "github.com/odh-platform/odh-platform-operator/apis/aihub/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/pkg/resources"
)

// routerPolicy admits the routers and the namespaces of the dashboard.
func routerPolicy(c *aihubv1alpha1.Catalog) runtime.ApplyConfiguration {
	return resources.RouterPolicy(objectMeta(c, RoutePolicy), Selector(Name), publishedServer(c).Port)
}

// ingressPolicy admits all clients to the port of the proxy, and none to the server behind it.
func ingressPolicy(c *aihubv1alpha1.Catalog) runtime.ApplyConfiguration {
	return resources.IngressPolicy(objectMeta(c, IngressPolicy), Selector(Name), resources.AllowTCP(publishedServer(c).Port))
}

// egressPolicy allows all egress: the server connects to its database and to model sources, the proxy to the API server.
func egressPolicy(c *aihubv1alpha1.Catalog) runtime.ApplyConfiguration {
	return resources.EgressPolicy(objectMeta(c, EgressPolicy), Selector(Name), resources.AllowAllEgress())
}

// databaseEgressPolicy denies all egress of the database; NetworkPolicies do not affect replies.
func databaseEgressPolicy(c *aihubv1alpha1.Catalog) runtime.ApplyConfiguration {
	return resources.EgressPolicy(databaseMeta(c, DatabaseEgress), Selector(DatabaseName))
}

// databaseIngressPolicy admits only the server.
func databaseIngressPolicy(c *aihubv1alpha1.Catalog) runtime.ApplyConfiguration {
	return resources.IngressPolicy(databaseMeta(c, DatabaseName), Selector(DatabaseName),
		resources.AllowTCP(databasePort).WithFrom(resources.PodPeer(Selector(Name))))
}

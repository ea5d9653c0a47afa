package modelcatalog

import (
	"github.com/go-logr/logr"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/clock"

	aihubv1alpha1 "github.com/odh-platform/odh-platform-operator/apis/aihub/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/controllers/modelcatalog/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/follow"
	"github.com/odh-platform/odh-platform-operator/pkg/reconciler"
)

// clusterProxyName is the name of the one proxy configuration that an OpenShift cluster has.
const clusterProxyName = "cluster"

// newClusterProxy follows the proxy of the cluster. One that may not be read is none: the server then runs as it would elsewhere. One that
// was read stays in force, or the loss of a right would replace the pod.
func newClusterProxy(dyn dynamic.Interface, clk clock.Clock, log logr.Logger) *follow.Value[resources.EgressProxy] {
	resource := capability.OpenShiftProxy.GroupVersion().WithResource("proxies")
	var proxy *follow.Value[resources.EgressProxy]
	proxy = follow.NewValue(follow.Options{
		Client: dyn.Resource(resource), Resource: resource.GroupResource(), Name: clusterProxyName, Clock: clk, Log: log.WithName("proxy"),
		Denied: func() {
			if _, known := proxy.Current(); !known {
				proxy.Take(nil)
			}
		},
	}, resources.ClusterProxy)
	return proxy
}

// proxyFor returns the proxy of the cluster for a Catalog that names none. Until it is known the server stays as it is.
func (r *catalogs) proxyFor(c *aihubv1alpha1.Catalog) (resources.EgressProxy, error) {
	if resources.ChoosesProxy(c) {
		return resources.EgressProxy{}, nil
	}
	proxy, known := r.proxy.Current()
	if !known {
		return resources.EgressProxy{}, &reconciler.Wait{For: "the proxy of the cluster", Retry: soon}
	}
	return proxy, nil
}

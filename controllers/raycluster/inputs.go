package raycluster

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/controllers/raycluster/certificates"
	"github.com/odh-platform/odh-platform-operator/controllers/raycluster/pods"
	"github.com/odh-platform/odh-platform-operator/controllers/raycluster/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/clusterdomain"
	"github.com/odh-platform/odh-platform-operator/pkg/config"
	"github.com/odh-platform/odh-platform-operator/pkg/raycluster"
	"github.com/odh-platform/odh-platform-operator/pkg/reconciler"
	"github.com/odh-platform/odh-platform-operator/pkg/resources/oauthproxy"
)

// newInputs are what the objects depend on where there are no pods and no Secrets yet.
func newInputs(c raycluster.Cluster, settings config.RayCluster, served capability.Set, domain string) resources.Inputs {
	settings = settings.On(served.OpenShift())
	in := resources.Inputs{
		RayCluster: settings, OpenShift: served.OpenShift(), Gateway: served.Has(capability.HTTPRoute), BackendTLSPolicies: served.Has(capability.BackendTLSPolicy),
		CertManager: served.Has(capability.Certificate), Domain: clusterdomain.Prefer(settings.IngressDomain, domain),
	}
	in.Mode = raycluster.Decide(settings, in.OpenShift, c, c)
	return in
}

// inputs gathers what the objects depend on.
func (r *clusters) inputs(ctx context.Context, cluster *unstructured.Unstructured, c raycluster.Cluster) (resources.Inputs, error) {
	settings, err := r.settings(ctx)
	if err != nil {
		return resources.Inputs{}, err
	}
	in := newInputs(c, settings, r.served(), r.domain())
	var known bool
	if in.KubeRay, known = r.kubeRay(settings); !known {
		return in, &reconciler.Wait{For: "the namespaces of KubeRay", Retry: lookAgain}
	}
	if in.Pods, err = pods.Of(ctx, r.pods, c.Namespace(), cluster.GetUID()); err != nil {
		return in, err
	}
	in.Heads, in.Mounted = pods.Injected(c, in.Pods)
	if in.Mode.Active() && in.Guard(c) == raycluster.AuthOAuth && !in.Lingers(c) && in.Published(c) {
		known := r.memory.of(cluster)
		key := client.ObjectKey{Namespace: c.Namespace(), Name: c.Names().CookieSecret}
		known.cookie, err = oauthproxy.Cookie(ctx, r.cached, r.live, key, known.cookie)
		in.Cookie = known.cookie
	}
	return in, err
}

// forCertificates are the inputs of the certificates, in the mode as the pods are made.
func forCertificates(in resources.Inputs, c raycluster.Cluster) certificates.Inputs {
	return certificates.Inputs{RayCluster: in.RayCluster, Mode: in.InForce(c), Domain: in.Domain, CertManager: in.CertManager, Pods: in.Pods}
}

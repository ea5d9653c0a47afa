package raycluster

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/controllers/raycluster/pods"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/clusterdomain"
	"github.com/odh-platform/odh-platform-operator/pkg/raycluster"
	"github.com/odh-platform/odh-platform-operator/pkg/resources/oauthproxy"
	webhook "github.com/odh-platform/odh-platform-operator/webhooks/raycluster"
)

// inputs gathers what the objects depend on; false says that it is not known yet.
func (r *clusters) inputs(ctx context.Context, cluster *unstructured.Unstructured, c raycluster.Cluster) (Inputs, bool, error) {
	settings, err := r.settings(ctx)
	if err != nil {
		return Inputs{}, false, err
	}
	served := r.served()
	in := Inputs{
		RayCluster: settings, OpenShift: served.OpenShift(), Gateway: served.Has(capability.HTTPRoute),
		Domain: clusterdomain.Prefer(settings.IngressDomain, r.domain()),
	}
	in.Mode = raycluster.Decide(webhook.WishesOf(settings), raycluster.Platform{OpenShift: in.OpenShift}, c, c)
	var known bool
	if in.KubeRay, known = r.kubeRay(settings); !known {
		return in, false, nil
	}
	all, err := pods.Of(ctx, r.pods, c.Namespace(), cluster.GetUID())
	if err != nil {
		return in, false, err
	}
	if in.Heads, in.Mounted, err = pods.Injected(c, all); err != nil {
		return in, false, err
	}
	if in.Mode.Active() && in.guard(c) == raycluster.AuthOAuth && !in.lingers(c) && in.published(c) {
		in.Cookie, err = r.cookie(ctx, cluster, c)
	}
	return in, true, err
}

// cookie returns the key of the sidecar's cookies. It is read once in the life of the process, and again when its Secret is gone.
func (r *clusters) cookie(ctx context.Context, cluster *unstructured.Unstructured, c raycluster.Cluster) ([]byte, error) {
	known := r.memory.of(cluster)
	key := client.ObjectKey{Namespace: c.Namespace(), Name: c.Names().CookieSecret}
	cookie, err := oauthproxy.Cookie(ctx, r.cached, r.live, key, known.cookie)
	if err != nil {
		return nil, err
	}
	known.cookie = cookie
	return cookie, nil
}

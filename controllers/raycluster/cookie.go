package raycluster

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/pkg/oauthproxy"
	"github.com/odh-platform/odh-platform-operator/pkg/ray"
)

// cookie returns the key of the sidecar's cookies. It is read once in the life of the process, and again when its Secret is gone.
func (r *clusters) cookie(ctx context.Context, cluster *unstructured.Unstructured, c ray.Cluster) ([]byte, error) {
	known := r.memory.of(cluster)
	key := client.ObjectKey{Namespace: c.Namespace(), Name: c.Names().CookieSecret}
	cookie, err := oauthproxy.Cookie(ctx, r.cached, r.live, key, known.cookie)
	if err != nil {
		return nil, err
	}
	known.cookie = cookie
	return cookie, nil
}

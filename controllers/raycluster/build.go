package raycluster

import (
	"maps"

	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/config"
	"github.com/odh-platform/odh-platform-operator/pkg/ray"
)

// Inputs is what the objects around a RayCluster depend on beside the cluster itself.
type Inputs struct {
	config.RayCluster
	// Mode is what is done for this cluster.
	Mode ray.Mode
	// OpenShift: the cluster serves Routes and signs serving certificates.
	OpenShift bool
	// Gateway: HTTPRoutes are served.
	Gateway bool
	// Domain is the ingress domain, set or discovered; "" when none is known.
	Domain string
	// KubeRay are the namespaces from which KubeRay reaches the heads.
	KubeRay []string
	// Cookie is the key of the sidecar's cookies.
	Cookie []byte
}

// guard is how the dashboard is guarded: as it is wanted, or as the pods are made while the wish has not reached them.
func (in Inputs) guard(c ray.Cluster) ray.Auth {
	if in.Mode.Auth == ray.AuthNone {
		return c.Injected().Sidecar
	}
	return in.Mode.Auth
}

// encrypted tells whether the client port speaks TLS: a wish alone encrypts nothing.
func (in Inputs) encrypted(c ray.Cluster) bool { return in.Mode.MTLS && c.Injected().MTLS }

// published tells whether there are pods to be reached.
func (in Inputs) published(c ray.Cluster) bool { return !c.Suspended() }

// plan is everything around one RayCluster, in the order in which it is made.
type plan struct {
	// policies come before anything that exposes the cluster.
	policies apply.Desired
	// binding lets the sidecar's account review tokens; nil when there is no sidecar.
	binding *apply.Object
	// objects are all others.
	objects apply.Desired
	// kept stay as they are if they exist, and are not made: a suspended cluster keeps its identity.
	kept apply.Desired
}

// Build plans the objects around a cluster. It is a pure function.
func Build(c ray.Cluster, in Inputs) (plan, error) {
	if !in.Mode.Active() {
		return plan{}, nil
	}
	p := plan{policies: policies(c, in)}
	identity, err := guardObjects(c, in)
	if err != nil {
		return plan{}, err
	}
	if !in.published(c) {
		p.kept = identity
		return p, nil
	}
	p.objects = append(identity, publication(c, in)...)
	if in.guard(c).Sidecar() {
		p.binding = binding(c)
	}
	return p, nil
}

// marks are the labels on every object.
func marks(c ray.Cluster, more map[string]string) map[string]string {
	all := map[string]string{ray.LabelClusterName: c.Name()}
	maps.Copy(all, more)
	return all
}

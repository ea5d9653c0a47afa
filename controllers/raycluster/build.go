package raycluster

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/config"
	"github.com/odh-platform/odh-platform-operator/pkg/raycluster"
)

// Inputs is what the objects around a RayCluster depend on beside the cluster itself.
type Inputs struct {
	config.RayCluster
	// Mode is what is done for this cluster.
	Mode raycluster.Mode
	// OpenShift: the cluster serves Routes and signs serving certificates.
	OpenShift bool
	// Gateway: HTTPRoutes are served. CertManager: Certificates of cert-manager are.
	Gateway, CertManager bool
	// Domain is the ingress domain, set or discovered; "" when none is known.
	Domain string
	// KubeRay are the namespaces from which KubeRay reaches the heads.
	KubeRay []string
	// Pods are those that the cluster controls.
	Pods []corev1.Pod
	// Heads are what the pods of the head have of ours, those that are not over.
	Heads []raycluster.Injected
	// Mounted is what pods have of our certificates, workers too: the first of those that have any.
	Mounted raycluster.Injected
	// Cookie is the key of the sidecar's cookies.
	Cookie []byte
}

// guard is how the dashboard is guarded: as it is wanted, or by a sidecar that pods have, or will have, though it is not wanted
// any more.
func (in Inputs) guard(c raycluster.Cluster) raycluster.Auth {
	for _, has := range append(slices.Clone(in.Heads), c.Injected()) {
		if !in.Mode.Auth.Sidecar() && has.Sidecar.Sidecar() {
			return has.Sidecar
		}
	}
	return in.Mode.Auth
}

// inForce is the mode as the pods are made: what is switched off stays in force while pods or their templates need it.
func (in Inputs) inForce(c raycluster.Cluster) raycluster.Mode {
	mode := in.Mode
	if !mode.Active() {
		return mode
	}
	mode.Auth = in.guard(c)
	for _, has := range []raycluster.Injected{c.Injected(), in.Mounted} {
		if !mode.MTLS && has.MTLS {
			mode = mode.WithCertificatesOf(has)
		}
	}
	return mode
}

// lingers tells that a sidecar is there which is not wanted any more. What it needs is kept, but not made: a user can write a
// sidecar like ours into the template while nothing keeps them from it.
func (in Inputs) lingers(c raycluster.Cluster) bool { return in.guard(c) != in.Mode.Auth }

// encrypted tells whether the client port speaks TLS: all heads that run have to, and the next one too where none runs. A wish
// alone encrypts nothing, nor does a template in front of older pods.
func (in Inputs) encrypted(c raycluster.Cluster) bool {
	plain := func(has raycluster.Injected) bool { return !has.Encrypted }
	if len(in.Heads) == 0 {
		return in.Mode.MTLS && !plain(c.Injected())
	}
	return in.Mode.MTLS && !slices.ContainsFunc(in.Heads, plain)
}

// exposure is how far a dashboard is published.
type exposure int

const (
	unpublished exposure = iota
	// untouched publishes what is published already, and nothing else: there is no pod to be judged by.
	untouched
	guarded
	// bare publishes the port of the dashboard itself.
	bare
)

// exposure of the dashboard. Its own port is published by the word of an administrator only, and where that is that Ray asks for
// a token, while all heads that run do.
func (in Inputs) exposure(c raycluster.Cluster) exposure {
	switch {
	case in.Publish == config.PublishNone || !in.published(c):
		return unpublished
	case in.guard(c).Sidecar() && in.viaGateway():
		return unpublished // a gateway speaks plain text to what it leads to, and a sidecar TLS
	case in.lingers(c):
		return untouched
	case in.guard(c).Sidecar():
		return guarded
	case in.Mode.Auth == raycluster.AuthRay && len(in.Heads) == 0:
		return untouched
	case in.Mode.Auth == raycluster.AuthRay && slices.ContainsFunc(in.Heads, func(has raycluster.Injected) bool { return !has.RayToken }),
		in.Mode.Auth == raycluster.AuthNone && in.OpenShift && in.Publish == config.PublishAuto:
		return unpublished
	default:
		return bare
	}
}

// viaGateway tells whether dashboards are published by a gateway.
func (in Inputs) viaGateway() bool { return in.Publish == config.PublishGateway && in.Gateway }

// published tells whether there are pods to be reached.
func (in Inputs) published(c raycluster.Cluster) bool { return !c.Suspended() }

// plan is everything around one RayCluster, in the order in which it is made.
type plan struct {
	// policies keep strangers from the pods, guards are what the sidecar needs.
	policies, guards apply.Desired
	// binding lets the sidecar's account review tokens; nil when there is no sidecar. With keepsBinding it is not made.
	binding      *apply.Object
	keepsBinding bool
	// exposing are Services, Routes and the like. They come when all before stands.
	exposing apply.Desired
	// kept stay as they are if they exist, and are not made: a suspended cluster keeps its identity.
	kept apply.Desired
}

// all are the objects in the namespace of the cluster that are not removed.
func (p plan) all() apply.Desired {
	return slices.Concat(p.policies, p.guards, p.exposing, p.kept)
}

// Build plans the objects around a cluster. It is a pure function.
func Build(c raycluster.Cluster, in Inputs) (plan, error) {
	if !in.Mode.Active() {
		return plan{}, nil
	}
	p := plan{policies: policies(c, in)}
	guards, err := guardObjects(c, in)
	if err != nil {
		return plan{}, err
	}
	var front apply.Desired
	if in.guard(c).Sidecar() {
		front.Add(proxyService(c, in.guard(c)))
	}
	if p.keepsBinding = in.lingers(c); p.keepsBinding || !in.published(c) {
		p.kept = append(guards, front...)
	} else {
		p.guards, p.exposing = guards, front
	}
	if in.guard(c).Sidecar() && in.published(c) {
		p.binding = binding(c)
	}
	switch in.exposure(c) {
	case untouched:
		p.kept = append(p.kept, dashboard(c, in)...)
	case guarded, bare:
		p.exposing = append(p.exposing, dashboard(c, in)...)
	}
	p.exposing = append(p.exposing, clientPort(c, in)...)
	return p, nil
}

// marks are the labels on every object.
func marks(c raycluster.Cluster, more map[string]string) map[string]string {
	all := map[string]string{raycluster.LabelClusterName: c.Name()}
	maps.Copy(all, more)
	return all
}

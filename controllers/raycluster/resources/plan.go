package resources

import (
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
	raycluster.Platform
	// PlatformKubeRay: KubeRay is the one of the platform, which removes NetworkPolicies of legacy names where it does not make them.
	PlatformKubeRay bool
	// Gateway: HTTPRoutes are served. CertManager: Certificates of cert-manager are.
	Gateway, BackendTLSPolicies, CertManager bool
	// Domain is the ingress domain, set or discovered; "" when none is known.
	Domain string
	// HostTaken: an older RayCluster has the same host below Domain.
	HostTaken bool
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

// Guard is how the dashboard is guarded: as it is wanted, or by a sidecar that pods have, or will have, though it is not wanted
// any more.
func (in Inputs) Guard(c raycluster.Cluster) raycluster.Auth {
	for _, has := range append(slices.Clone(in.Heads), c.Injected()) {
		if !in.Mode.Auth.Sidecar() && has.Sidecar.Sidecar() {
			return has.Sidecar
		}
	}
	return in.Mode.Auth
}

// InForce is the mode as the pods are made: what is switched off stays in force while pods or their templates need it.
func (in Inputs) InForce(c raycluster.Cluster) raycluster.Mode {
	mode := in.Mode
	if !mode.Active() {
		return mode
	}
	mode.Auth = in.Guard(c)
	for _, has := range []raycluster.Injected{c.Injected(), in.Mounted} {
		if !mode.MTLS && has.MTLS {
			mode = mode.WithCertificatesOf(has)
		}
	}
	return mode
}

// Lingers tells that a sidecar is there which is not wanted any more. What it needs is kept, but not made: a user can write a
// sidecar like ours into the template while nothing keeps them from it.
func (in Inputs) Lingers(c raycluster.Cluster) bool { return in.Guard(c) != in.Mode.Auth }

// encrypted tells whether the client port speaks TLS: all heads that run have to, and the next one too where none runs. A wish
// alone encrypts nothing, nor does a template in front of older pods.
func (in Inputs) encrypted(c raycluster.Cluster) bool {
	plain := func(has raycluster.Injected) bool { return !has.Encrypted }
	if len(in.Heads) == 0 {
		return in.Mode.MTLS && !plain(c.Injected())
	}
	return in.Mode.MTLS && !slices.ContainsFunc(in.Heads, plain)
}

// Exposure is how far a dashboard is published.
type Exposure int

const (
	// Unpublished publishes nothing.
	Unpublished Exposure = iota
	// Untouched publishes what is published already, and nothing else: there is no pod to be judged by.
	Untouched
	// Guarded publishes the sidecar.
	Guarded
	// Bare publishes the port of the dashboard itself.
	Bare
)

// Exposure of the dashboard. Its own port is published by the word of an administrator only, and where that is that Ray asks for
// a token, while all heads that run do.
func (in Inputs) Exposure(c raycluster.Cluster) Exposure {
	switch {
	case in.Publish == config.PublishNone || !in.Published(c), in.Mode.ByKubeRay && !in.Lingers(c):
		return Unpublished
	case in.Guard(c).Sidecar() && in.ViaGateway() && !in.trusted(c):
		return Unpublished // a gateway speaks plain text to what it leads to, and a sidecar TLS
	case in.Lingers(c):
		return Untouched
	case in.Guard(c).Sidecar():
		return Guarded
	case in.Mode.Auth == raycluster.AuthRay && len(in.Heads) == 0:
		return Untouched
	case in.Mode.Auth == raycluster.AuthRay && slices.ContainsFunc(in.Heads, func(has raycluster.Injected) bool { return !has.RayToken }),
		in.Mode.Auth == raycluster.AuthNone && in.OpenShift && in.Publish == config.PublishAuto:
		return Unpublished
	default:
		return Bare
	}
}

// ViaGateway tells whether dashboards are published by a gateway.
func (in Inputs) ViaGateway() bool {
	return in.Publish == config.PublishGateway && in.Gateway && in.GatewayNamespace != ""
}

// trusted reports whether a Gateway speaks TLS to the sidecar. On OpenShift, the OAuth proxy needs a Route, to which it redirects after the
// login, and a BackendTLSPolicy cannot name the CA of the certificates.
func (in Inputs) trusted(c raycluster.Cluster) bool {
	return in.BackendTLSPolicies && !in.OpenShift && in.Guard(c) == raycluster.AuthProxy
}

// Published tells whether there are pods to be reached.
func (in Inputs) Published(c raycluster.Cluster) bool { return !c.Suspended() }

// Plan is everything around one RayCluster, in the order in which it is made.
type Plan struct {
	// policies keep strangers from the pods, guards are what the sidecar needs.
	Policies, Guards apply.Desired
	// binding lets the sidecar's account review tokens; nil when there is no sidecar. With keepsBinding it is not made.
	Binding      *apply.Object
	KeepsBinding bool
	// exposing are Services, Routes and the like. They come when all before stands.
	Exposing apply.Desired
	// kept stay as they are if they exist, and are not made: a suspended cluster keeps its identity.
	Kept apply.Desired
}

// All are the objects in the namespace of the cluster that are not removed.
func (p Plan) All() apply.Desired {
	return slices.Concat(p.Policies, p.Guards, p.Exposing, p.Kept)
}

// Build plans the objects around a cluster. It is a pure function.
func Build(c raycluster.Cluster, in Inputs) Plan {
	if !in.Mode.Active() {
		return Plan{}
	}
	p, guards := Plan{Policies: policies(c, in)}, guardObjects(c, in)
	var front apply.Desired
	if in.Guard(c).Sidecar() {
		front.Add(proxyService(c, in))
	}
	if p.KeepsBinding = in.Lingers(c); p.KeepsBinding || !in.Published(c) {
		p.Kept = append(guards, front...)
	} else {
		p.Guards, p.Exposing = guards, front
	}
	if in.Guard(c).Sidecar() && in.Published(c) {
		p.Binding = binding(c)
	}
	switch in.Exposure(c) {
	case Untouched:
		p.Kept = append(p.Kept, dashboard(c, in)...)
	case Guarded, Bare:
		p.Exposing = append(p.Exposing, dashboard(c, in)...)
	}
	p.Exposing = append(p.Exposing, clientPort(c, in)...)
	return p
}

// AddTrust adds what a gateway verifies the sidecar by: the CA of its certificate. What is there stays while the CA is not known.
func (p *Plan) AddTrust(c raycluster.Cluster, in Inputs, authority []byte, known bool) {
	exposure := in.Exposure(c)
	if !in.ViaGateway() || !in.trusted(c) || exposure == Unpublished || known && len(authority) == 0 {
		return
	}
	var trust apply.Desired
	trust.Add(publishedDashboard(c, in).BackendTLS(metaOf(c, c.Names().Dashboard+"-ca"), authority)...)
	if known && exposure == Guarded {
		p.Exposing = append(trust, p.Exposing...)
	} else {
		p.Kept = append(p.Kept, trust...)
	}
}

// marks are the labels on every object.
func marks(c raycluster.Cluster) map[string]string {
	return map[string]string{raycluster.LabelClusterName: c.Name()}
}

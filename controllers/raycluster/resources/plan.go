package resources

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/config"
	"github.com/odh-platform/odh-platform-operator/pkg/raycluster"
)

// Inputs are the inputs of Build in addition to the cluster.
type Inputs struct {
	config.RayCluster
	Mode raycluster.Mode
	raycluster.Platform
	// HasPlatformKubeRay reports whether the platform installed KubeRay. That KubeRay deletes NetworkPolicies with legacy names that it did
	// not create.
	HasPlatformKubeRay bool
	// HasHTTPRoutes, HasBackendTLSPolicies and HasCertManager report whether HTTPRoutes, BackendTLSPolicies and Certificates are served.
	HasHTTPRoutes, HasBackendTLSPolicies, HasCertManager bool
	// Domain is the ingress domain, from settings or discovered; "" if unknown.
	Domain string
	// KubeRay are the namespaces from which KubeRay connects to the pods.
	KubeRay []string
	// Pods are the pods that the cluster controls.
	Pods []corev1.Pod
	// Heads are the injections of each head pod that has not finished.
	Heads []raycluster.Injected
	// Mounted are the injections of the first pod with certificates, workers included; without MTLS if there is none.
	Mounted raycluster.Injected
	// Cookie is the key of the sidecar's cookies.
	Cookie []byte
}

// EffectiveAuth returns the authentication of the dashboard: that of the mode, or that of a sidecar that still exists in a head or the head
// template although the mode has none.
func (in Inputs) EffectiveAuth(c raycluster.Cluster) raycluster.Auth {
	for _, injected := range append(slices.Clone(in.Heads), c.Injected()) {
		if !in.Mode.Auth.UsesSidecar() && injected.Sidecar.UsesSidecar() {
			return injected.Sidecar
		}
	}
	return in.Mode.Auth
}

// EffectiveMode returns the mode of the existing pods: features that pods or the head template still use stay enabled.
func (in Inputs) EffectiveMode(c raycluster.Cluster) raycluster.Mode {
	mode := in.Mode
	if !mode.Active() {
		return mode
	}
	mode.Auth = in.EffectiveAuth(c)
	for _, injected := range []raycluster.Injected{c.Injected(), in.Mounted} {
		if !mode.MTLS && injected.MTLS {
			mode = mode.WithCertificatesOf(injected)
		}
	}
	return mode
}

// RetainsSidecar reports whether a sidecar still exists although the mode has none. Its objects are retained but not created: users can
// write such a sidecar into the template as long as the webhook does not reject it.
func (in Inputs) RetainsSidecar(c raycluster.Cluster) bool {
	return in.EffectiveAuth(c) != in.Mode.Auth
}

// clientPortEncrypted reports whether mutual TLS is enabled and the client port uses it: in all running heads, or in the template if none
// runs. Neither the setting nor a newer template encrypts the port of a running head.
func (in Inputs) clientPortEncrypted(c raycluster.Cluster) bool {
	isPlain := func(injected raycluster.Injected) bool { return !injected.Encrypted }
	if len(in.Heads) == 0 {
		return in.Mode.MTLS && !isPlain(c.Injected())
	}
	return in.Mode.MTLS && !slices.ContainsFunc(in.Heads, isPlain)
}

// Exposure is how a dashboard is published.
type Exposure int

const (
	// Unpublished creates no route and deletes existing ones.
	Unpublished Exposure = iota
	// Unchanged retains existing routes and creates none, until the pods determine the exposure.
	Unchanged
	// ViaSidecar publishes the port of the sidecar.
	ViaSidecar
	// Direct publishes the port of the dashboard.
	Direct
)

// Exposure returns how the dashboard is published. Direct requires that an administrator allows it. If that depends on a Ray token, all
// running heads must require the token.
func (in Inputs) Exposure(c raycluster.Cluster) Exposure {
	switch {
	case in.Publish == config.PublishNone || c.Suspended(), in.Mode.ByKubeRay && !in.RetainsSidecar(c):
		return Unpublished
	case in.EffectiveAuth(c).UsesSidecar() && in.ViaGateway() && !in.gatewaySupportsSidecar(c):
		return Unpublished // the gateway would send plain text to the TLS port of the sidecar
	case in.RetainsSidecar(c):
		return Unchanged
	case in.EffectiveAuth(c).UsesSidecar():
		return ViaSidecar
	case in.Mode.Auth == raycluster.AuthRay && len(in.Heads) == 0:
		return Unchanged
	case in.Mode.Auth == raycluster.AuthRay && slices.ContainsFunc(in.Heads, func(injected raycluster.Injected) bool { return !injected.RayToken }),
		in.Mode.Auth == raycluster.AuthNone && in.OpenShift && in.Publish != config.PublishOpen && !in.ViaGateway():
		return Unpublished
	default:
		return Direct
	}
}

// ViaGateway reports whether dashboards are published by HTTPRoutes.
func (in Inputs) ViaGateway() bool {
	return in.Publish == config.PublishGateway && in.HasHTTPRoutes && in.GatewayNamespace != ""
}

// gatewaySupportsSidecar reports whether a Gateway can connect to the sidecar by TLS. On OpenShift, the OAuth proxy needs a Route for the
// redirect after login, and a BackendTLSPolicy cannot name the CA of the certificates.
func (in Inputs) gatewaySupportsSidecar(c raycluster.Cluster) bool {
	return in.HasBackendTLSPolicies && !in.OpenShift && in.EffectiveAuth(c) == raycluster.AuthProxy
}

// Plan holds the objects of one RayCluster except the certificates, in the order of their creation.
type Plan struct {
	// Policies are the NetworkPolicies, SidecarObjects the objects that the sidecar needs to start.
	Policies, SidecarObjects apply.Desired
	// Binding allows the sidecar's ServiceAccount to review tokens; nil without a sidecar, or if suspended. With RetainsBinding it is
	// not created.
	Binding        *apply.Object
	RetainsBinding bool
	// Exposure are the Services, routes, and BackendTLSPolicies with their CA. They are applied once all objects above exist.
	Exposure apply.Desired
	// Retained are objects that are neither created, changed nor deleted: a suspended cluster keeps its ServiceAccount.
	Retained apply.Desired
}

// All returns the namespaced objects that must not be pruned.
func (p Plan) All() apply.Desired {
	return slices.Concat(p.Policies, p.SidecarObjects, p.Exposure, p.Retained)
}

// Build returns the objects of a cluster. It is a pure function.
func Build(c raycluster.Cluster, in Inputs) Plan {
	if !in.Mode.Active() {
		return Plan{}
	}
	plan, sidecar := Plan{Policies: networkPolicies(c, in)}, sidecarObjects(c, in)
	var service apply.Desired
	if in.EffectiveAuth(c).UsesSidecar() {
		service.Add(proxyService(c, in))
	}
	if plan.RetainsBinding = in.RetainsSidecar(c); plan.RetainsBinding || c.Suspended() {
		plan.Retained = append(sidecar, service...)
	} else {
		plan.SidecarObjects, plan.Exposure = sidecar, service
	}
	if in.EffectiveAuth(c).UsesSidecar() && !c.Suspended() {
		plan.Binding = clusterRoleBinding(c)
	}
	switch in.Exposure(c) {
	case Unchanged:
		plan.Retained = append(plan.Retained, dashboardRoutes(c, in)...)
	case ViaSidecar, Direct:
		plan.Exposure = append(plan.Exposure, dashboardRoutes(c, in)...)
	}
	plan.Exposure = append(plan.Exposure, clientPortRoutes(c, in)...)
	return plan
}

// AddBackendTLSPolicy adds the BackendTLSPolicy for the sidecar and the ConfigMap with its CA. While the CA or the exposure is unknown, it
// only retains existing objects.
func (p *Plan) AddBackendTLSPolicy(c raycluster.Cluster, in Inputs, authority []byte, known bool) {
	exposure := in.Exposure(c)
	if !in.ViaGateway() || !in.gatewaySupportsSidecar(c) || exposure == Unpublished || known && len(authority) == 0 {
		return
	}
	var tlsPolicy apply.Desired
	tlsPolicy.Add(dashboardBackend(c, in).BackendTLS(objectMeta(c, c.Names().Dashboard+"-ca"), authority)...)
	if known && exposure == ViaSidecar {
		p.Exposure = append(tlsPolicy, p.Exposure...)
	} else {
		p.Retained = append(p.Retained, tlsPolicy...)
	}
}

func clusterLabels(c raycluster.Cluster) map[string]string {
	return map[string]string{raycluster.LabelClusterName: c.Name()}
}

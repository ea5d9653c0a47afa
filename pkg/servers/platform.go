package servers

import (
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/odh-platform/odh-platform-operator/pkg/aihub"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/config"
	"github.com/odh-platform/odh-platform-operator/pkg/reconciler"
	"github.com/odh-platform/odh-platform-operator/pkg/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/routestatus"
	"github.com/odh-platform/odh-platform-operator/pkg/tlsprofile"
)

// Domain is the part of *clusterdomain.Watcher with the domain of OpenShift's routers.
type Domain interface {
	Domain() string
	HasSynced() bool
}

// Platform holds the platform settings of a server. It is a snapshot from the start of a reconcile, so that all objects use the same
// settings.
type Platform struct {
	// ModelRegistry holds the settings of the process, overridden by those of the AIHub.
	config.ModelRegistry
	// Served is the set of optional APIs of the cluster.
	Served capability.Set
	// RouterDomain is the domain of OpenShift's routers, or "".
	RouterDomain string
	domainKnown  bool
}

// DetectPlatform returns a snapshot of the platform, or a Wait until the AIHub is read. The hub may be nil.
func DetectPlatform(settings config.ModelRegistry, hub *aihub.Watcher, served capability.Set, domain Domain) (Platform, error) {
	p := Platform{ModelRegistry: hub.Merge(settings), Served: served}
	p.Gateway = p.Gateway.ForPlatform(served.Has(capability.Route))
	if domain != nil {
		p.RouterDomain, p.domainKnown = domain.Domain(), domain.HasSynced()
	}
	return p, hub.WaitForSpec()
}

// WaitForDomain returns a Wait until the domain of the cluster, or its absence, is known: otherwise a restart of the manager would remove
// the host of a Route.
func (p *Platform) WaitForDomain() error {
	if p.DefaultDomain == "" && p.Served.Has(capability.OpenShiftIngress) && !p.domainKnown {
		return &reconciler.Wait{For: "the domain of the cluster", Retry: time.Second}
	}
	return nil
}

// Publishing returns how the platform exposes a server. On OpenShift Exposure is empty, because Routes are used.
func (p *Platform) Publishing() Publishing {
	publishing := Publishing{Served: p.Served, Gateway: p.Gateway, TLS: p.TLS}
	if !publishing.IsOpenShift() {
		publishing.Exposure = p.Exposure
	}
	return publishing
}

// Publishing holds the APIs and settings for the exposure of a server.
type Publishing struct {
	// Served is the set of optional APIs of the cluster.
	Served capability.Set
	// Exposure selects Ingress or Gateway; empty on OpenShift.
	Exposure config.Exposure
	// Authority is the CA of the serving certificate, if the operator issued it.
	Authority []byte
	// Gateway is the Gateway for HTTPRoutes, which are disabled without a domain.
	Gateway config.RegistryGateway
	// TLS is the TLS profile of the proxy.
	TLS tlsprofile.Profile
	// RouteReport is the status of the routes of the server, as reported by Gateway and routers.
	RouteReport routestatus.Report
}

// IsOpenShift reports whether the cluster serves Routes. Such a cluster also signs serving certificates and assigns pods a group.
func (p *Publishing) IsOpenShift() bool { return p.Served.Has(capability.Route) }

func (p *Publishing) gateway() resources.Gateway {
	return resources.Gateway{Name: p.Gateway.Name, Namespace: p.Gateway.Namespace}
}

// HasGatewayAddress reports whether the server is exposed by the gateway and the gateway rejects none of its objects.
func (p *Publishing) HasGatewayAddress() bool {
	return p.ViaGateway() && !p.RouteReport.RejectedByGateway()
}

// ViaGateway reports whether the server is exposed by the gateway of the platform.
func (p *Publishing) ViaGateway() bool {
	return (p.IsOpenShift() || p.Exposure.UsesGateway()) && p.Served.Has(capability.HTTPRoute) && p.Gateway.Domain != "" && !p.Gateway.NamespacesUnset
}

// Prunable returns the kinds of a server whose objects are pruned, without optional kinds that are not served.
func (p *Publishing) Prunable(additional ...schema.GroupVersionKind) []schema.GroupVersionKind {
	kinds := append(additional, Deployment, Service, ConfigMap, NetworkPolicy, DisruptionBudget, Ingress)
	return append(kinds, p.Served.Filter(capability.Route, capability.ReferenceGrant, capability.BackendTLSPolicy)...)
}

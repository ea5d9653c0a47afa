package resources

import (
	"encoding/json"
	"fmt"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/odh-platform/odh-platform-operator/apis/modelregistry/v1beta1"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/config"
	"github.com/odh-platform/odh-platform-operator/pkg/reference"
	"github.com/odh-platform/odh-platform-operator/pkg/resources"
)

// Inputs is what the objects of a registry depend on beside its spec.
type Inputs struct {
	// OpenShift: Routes are served, and the platform signs serving certificates and gives pods their groups.
	OpenShift bool
	// HasUserAPI, HTTPRoutes, ReferenceGrants and BackendTLSPolicies say which optional kinds are served.
	HasUserAPI, HTTPRoutes, ReferenceGrants, BackendTLSPolicies bool
	// Exposure says what publishes the registry; empty on OpenShift.
	Exposure config.Exposure
	// Authority is the CA of the certificate, if that was issued here.
	Authority []byte
	// Gateway says how HTTPRoutes are published; a domain switches that on.
	Gateway config.RegistryGateway
	// ServingCertificate: the stored spec names no certificate, so the Service requests one of the platform.
	ServingCertificate bool
	// Opening: the pods that serve still run without the proxy that the spec asks for, so the Service leads to them.
	Opening bool
	// NamedDomain: the stored spec names the domain, so that the host in it is the user's own.
	NamedDomain bool
	// Stamp says what the pods of the server have read, PostgresStamp those of a generated database.
	Stamp, PostgresStamp reference.Stamp
	// Adopts decides whether objects outside of the owner's reach may be taken over; nil is never.
	Adopts func(live *unstructured.Unstructured) bool
}

// GatewayMode reports whether the registry is published behind the gateway of the platform.
func (in Inputs) GatewayMode() bool {
	return (in.OpenShift || in.Exposure.Gateway()) && in.HTTPRoutes && in.Gateway.Domain != ""
}

// Build lists the objects of a registry but for its generated database, in the order in which they are to be written:
// identity and rights, what guards the network, the server, and at last what publishes it. The spec has its defaults, and
// spec.postgres names a database that exists, see BuildDatabase. It fails when the spec cannot be translated; the error
// names the field.
func Build(m *v1beta1.ModelRegistry, in Inputs) (apply.Desired, error) {
	server, err := deployment(m, in)
	if err != nil {
		return nil, err
	}
	var desired apply.Desired
	desired.Add(serviceAccount(m), role(m), egressPolicy(m))
	if in.OpenShift {
		if in.HasUserAPI {
			desired = append(desired, in.unowned(Group(m, nil)))
		}
		desired.Add(roleBinding(m))
	}
	if m.Spec.KubeRBACProxy != nil {
		file, err := proxyConfig(m)
		if err != nil {
			return nil, err
		}
		desired = append(desired, apply.Object{Config: file}, in.unowned(DelegatorBinding(m)))
		desired.Add(ingressPolicy(m, in))
		if routed(m, in) {
			desired.Add(routePolicy(m))
		}
	}
	desired.Add(service(m, in), server)
	if resources.OrOne(m.Spec.Replicas) > 1 {
		desired.Add(resources.DisruptionBudget(metaOf(m, ServiceName(m)), ServerSelector(m)))
	}
	return append(desired, publication(m, in)...), nil
}

// publication lists what makes the server reachable from outside of the cluster. Routes stay beside an HTTPRoute, because
// clients know their addresses.
func publication(m *v1beta1.ModelRegistry, in Inputs) apply.Desired {
	var desired apply.Desired
	if in.OpenShift && m.Spec.Rest.ServiceRoute == v1beta1.RouteEnabled {
		desired.Add(plainRoute(m))
	}
	if routed(m, in) {
		desired.Add(secureRoute(m))
	}
	if published(m, in) {
		desired.Add(ingress(m, in))
	}
	if !in.GatewayMode() {
		return desired
	}
	desired.Add(trust(m, in)...)
	if in.ReferenceGrants {
		desired.Add(referenceGrant(m, in))
	}
	return append(desired, in.unowned(httpRoute(m, in)))
}

// unowned objects are shared, or live where the registry cannot own anything.
func (in Inputs) unowned(config runtime.ApplyConfiguration) apply.Object {
	return apply.Object{Config: config, Ownership: apply.Unowned, Adopts: in.Adopts}
}

// routed reports whether there is a Route to the proxy.
func routed(m *v1beta1.ModelRegistry, in Inputs) bool {
	proxy := m.Spec.KubeRBACProxy
	return in.OpenShift && proxy != nil && proxy.ServiceRoute != v1beta1.RouteDisabled
}

func orDefault(number *int32, otherwise int32) int32 {
	if number == nil || *number == 0 {
		return otherwise
	}
	return *number
}

func restPort(m *v1beta1.ModelRegistry) int32 {
	return orDefault(m.Spec.Rest.Port, v1beta1.DefaultRESTPort)
}

func proxyPort(m *v1beta1.ModelRegistry) int32 {
	return orDefault(m.Spec.KubeRBACProxy.Port, v1beta1.DefaultProxyPort)
}

// servingPort is the one of the Service: that of the proxy, if there is one before the pods that serve.
func servingPort(m *v1beta1.ModelRegistry, in Inputs) int32 {
	if m.Spec.KubeRBACProxy == nil || in.Opening {
		return restPort(m)
	}
	return proxyPort(m)
}

// SpecDefaults is the JSON merge patch (RFC 7396) that makes the spec which is used out of the stored one, "{}" when they are
// equal.
func SpecDefaults(stored, used *v1beta1.ModelRegistrySpec) (string, error) {
	before, err := json.Marshal(stored)
	if err != nil {
		return "", fmt.Errorf("encoding the stored spec: %w", err)
	}
	after, err := json.Marshal(used)
	if err != nil {
		return "", fmt.Errorf("encoding the spec with its defaults: %w", err)
	}
	patch, err := jsonpatch.CreateMergePatch(before, after)
	if err != nil {
		return "", fmt.Errorf("comparing the spec with its defaults: %w", err)
	}
	return string(patch), nil
}

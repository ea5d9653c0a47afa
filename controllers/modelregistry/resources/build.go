package resources

import (
	"encoding/json"
	"fmt"

	jsonpatch "github.com/evanphx/json-patch/v5"

	"github.com/odh-platform/odh-platform-operator/apis/modelregistry/v1beta1"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/reference"
	"github.com/odh-platform/odh-platform-operator/pkg/registry"
	"github.com/odh-platform/odh-platform-operator/pkg/resources"
)

// Inputs holds the parameters of the objects that are not in the spec.
type Inputs struct {
	registry.Publishing
	// HasUserAPI is set if OpenShift serves Groups.
	HasUserAPI bool
	// ServingCertificate: the spec names no certificate, so that the Service requests one from the platform.
	ServingCertificate bool
	// ProxyPending: the ready pods run without the proxy of the spec, so that the Service must bypass it.
	ProxyPending bool
	// HasCustomDomain: the spec names the domain, so that the user provides the host.
	HasCustomDomain bool
	// ServerHash and DatabaseHash are the hashes of the objects that the pods consume.
	ServerHash, DatabaseHash reference.RolloutHash
}

// Build returns the objects of a registry, without its generated database, in the order in which they are applied: RBAC, NetworkPolicies,
// the server and its exposure. The spec has all defaults, and spec.postgres is a connection, see BuildDatabase. An error names the invalid
// field.
func Build(m *v1beta1.ModelRegistry, in Inputs) (apply.Desired, error) {
	server, err := deployment(m, in)
	if err != nil {
		return nil, err
	}
	var desired apply.Desired
	desired.Add(serviceAccount(m), userRole(m), egressPolicy(m))
	if in.OpenShift {
		if in.HasUserAPI {
			desired = append(desired, apply.Object{Config: Group(m, nil), Ownership: apply.Unowned})
		}
		desired.Add(userRoleBinding(m))
	}
	if m.Spec.KubeRBACProxy != nil {
		file, err := proxyConfig(m)
		if err != nil {
			return nil, err
		}
		desired = append(desired, apply.Object{Config: file}, apply.Object{Config: DelegatorBinding(m), Ownership: apply.Unowned})
		desired.Add(ingressPolicy(m, in))
		if hasRoute(m, in) {
			desired.Add(routeIngressPolicy(m))
		}
	}
	desired.Add(service(m, in), server)
	if resources.ReplicasOrOne(m.Spec.Replicas) > 1 {
		desired.Add(resources.DisruptionBudget(objectMeta(m, ServiceName(m)), ServerSelector(m)))
	}
	return append(desired, Published(m, in)...), nil
}

func orDefault(value *int32, fallback int32) int32 {
	if value == nil || *value == 0 {
		return fallback
	}
	return *value
}

func restPort(m *v1beta1.ModelRegistry) int32 {
	return orDefault(m.Spec.Rest.Port, v1beta1.DefaultRESTPort)
}

func proxyPort(m *v1beta1.ModelRegistry) int32 {
	return orDefault(m.Spec.KubeRBACProxy.Port, v1beta1.DefaultProxyPort)
}

// SpecDefaults returns the JSON merge patch (RFC 7396) from the stored spec to the one with defaults, "{}" if they are equal.
func SpecDefaults(stored, effective *v1beta1.ModelRegistrySpec) (string, error) {
	storedJSON, err := json.Marshal(stored)
	if err != nil {
		return "", fmt.Errorf("encoding the stored spec: %w", err)
	}
	effectiveJSON, err := json.Marshal(effective)
	if err != nil {
		return "", fmt.Errorf("encoding the spec with its defaults: %w", err)
	}
	patch, err := jsonpatch.CreateMergePatch(storedJSON, effectiveJSON)
	if err != nil {
		return "", fmt.Errorf("comparing the spec with its defaults: %w", err)
	}
	return string(patch), nil
}

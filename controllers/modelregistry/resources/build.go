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

// Inputs is what the objects of a registry depend on beside its spec.
type Inputs struct {
	registry.Publishing
	// HasUserAPI says whether OpenShift serves Groups.
	HasUserAPI bool
	// ServingCertificate: the stored spec names no certificate, so the Service requests one of the platform.
	ServingCertificate bool
	// Opening: the pods that serve still run without the proxy that the spec asks for, so the Service leads to them.
	ProxyPending bool
	// NamedDomain: the stored spec names the domain, so that the host in it is the user's own.
	HasCustomDomain bool
	// Stamp says what the pods of the server have read, PostgresStamp those of a generated database.
	ServerHash, DatabaseHash reference.RolloutHash
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
			desired = append(desired, apply.Object{Config: Group(m, nil), Ownership: apply.Unowned})
		}
		desired.Add(roleBinding(m))
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
	if resources.OrOne(m.Spec.Replicas) > 1 {
		desired.Add(resources.DisruptionBudget(objectMeta(m, ServiceName(m)), ServerSelector(m)))
	}
	return append(desired, Published(m, in)...), nil
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

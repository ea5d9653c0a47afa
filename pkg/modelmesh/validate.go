package modelmesh

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/odh-platform/odh-platform-operator/apis/serving/v1alpha1"
)

// reservedPrefix is the prefix of names that are reserved for ModelMesh.
const reservedPrefix = "mm-"

// Names and ports that are reserved for ModelMesh in all runtimes.
var (
	reservedContainers = []string{"mm", "rest-proxy", "puller"}
	reservedMounts     = []string{"storage-config", "etcd-config", "tc-config", "domain-socket"}
	reservedVolumes    = append(slices.Clone(reservedMounts), ModelsVolume)
	reservedPortNames  = []string{"grpc", "http", "prometheus"}
	reservedPorts      = []int32{8080, 8085, 8089, 8090}
)

// The reserved range of ports.
const (
	firstReservedPort = 11881
	lastReservedPort  = 11899
)

// MaxReplicas is the maximum of spec.replicas in the API of KServe, where it is an unsigned 16-bit integer.
const MaxReplicas = math.MaxUint16

// ModelsVolume is the volume with the models. Runtimes can mount but not define it.
const ModelsVolume = "models-dir"

// Messages that begin as in the legacy controller.
const (
	managedFieldsMessage = "ReadinessProbe and Lifecycle are managed by modelmesh and cannot be set: remove them"
	reservedPortFormat   = "Port %d is reserved for internal use: choose another"
	reservedRangeFormat  = "Port range [%d-%d] is reserved for internal use: choose another port"
)

// Validate returns all errors in the spec of a multi-model runtime as one error. serverTypes are the server types with a built-in adapter.
func Validate(spec *v1alpha1.ServingRuntimeSpec, serverTypes []string) error {
	problems := adapterProblems(spec, serverTypes)
	for i := range spec.Containers {
		c := &spec.Containers[i]
		for _, problem := range containerProblems(c) {
			problems = append(problems, fmt.Sprintf("container spec for %s is invalid: %s", c.Name, problem))
		}
	}
	for _, v := range spec.Volumes {
		if isReserved(v.Name, reservedVolumes) {
			problems = append(problems, fmt.Sprintf("volume %s is reserved for internal use: choose another name", v.Name))
		}
	}
	if _, err := EndpointsOf(spec); err != nil {
		problems = append(problems, err.Error())
	}
	if n := spec.Replicas; n != nil && (*n < 0 || *n > MaxReplicas) {
		problems = append(problems, fmt.Sprintf("spec.replicas %d must be between 0 and %d", *n, MaxReplicas))
	}
	if len(problems) == 0 {
		return nil
	}
	return errors.New(strings.Join(problems, "; "))
}

func adapterProblems(spec *v1alpha1.ServingRuntimeSpec, serverTypes []string) []string {
	if spec.BuiltInAdapter == nil {
		return nil
	}
	var problems []string
	server := spec.BuiltInAdapter.ServerType
	if !slices.Contains(serverTypes, server) {
		problems = append(problems, "unrecognized built-in runtime server type "+server+": use one of "+strings.Join(serverTypes, ", "))
	}
	if !slices.ContainsFunc(spec.Containers, func(c corev1.Container) bool { return c.Name == server }) {
		problems = append(problems, "must include runtime container with name "+server)
	}
	return problems
}

func containerProblems(c *corev1.Container) []string {
	var problems []string
	switch {
	case slices.Contains(reservedContainers, c.Name):
		problems = append(problems, fmt.Sprintf("container name %s is reserved for internal use: choose another", c.Name))
	case strings.HasPrefix(c.Name, reservedPrefix):
		problems = append(problems, fmt.Sprintf("container name cannot start with %q, that is reserved for internal use: choose another name", reservedPrefix))
	}
	if c.ReadinessProbe != nil || c.Lifecycle != nil {
		problems = append(problems, managedFieldsMessage)
	}
	for _, mount := range c.VolumeMounts {
		if isReserved(mount.Name, reservedMounts) {
			problems = append(problems, fmt.Sprintf("volume %s is reserved for internal use: choose another name", mount.Name))
		}
	}
	for _, port := range c.Ports {
		if isReserved(port.Name, reservedPortNames) {
			problems = append(problems, fmt.Sprintf("port name %s is reserved for internal use: choose another", port.Name))
		}
		switch n := port.ContainerPort; {
		case slices.Contains(reservedPorts, n):
			problems = append(problems, fmt.Sprintf(reservedPortFormat, n))
		case n >= firstReservedPort && n <= lastReservedPort:
			problems = append(problems, fmt.Sprintf(reservedRangeFormat, firstReservedPort, lastReservedPort))
		}
	}
	return problems
}

func isReserved(name string, names []string) bool {
	return slices.Contains(names, name) || strings.HasPrefix(name, reservedPrefix)
}

// Names and ports that runtime pods use only with some settings or specs, such as TLS, the authentication proxy or the puller. Runtimes
// that use them are valid, because they work in the other cases.
var (
	conditionalContainers = []string{"oauth-proxy", "kube-rbac-proxy"}
	conditionalVolumes    = []string{"tls-certs", "proxy-tls", "kube-rbac-proxy-config"}
	conditionalPortNames  = []string{"https"}
	conditionalPorts      = []int32{8033, 8008, 2112, 8443, 8444, 8086}
)

// Warnings returns the errors of [Validate], fields without effect, and conflicts with adapters or, under some settings, with ModelMesh.
func Warnings(spec *v1alpha1.ServingRuntimeSpec, serverTypes []string) []string {
	var warnings []string
	if err := Validate(spec, serverTypes); err != nil {
		warnings = append(warnings, "no pods are created: "+err.Error())
	}
	warnings = append(warnings, IgnoredFieldWarnings(spec)...)
	for i := range spec.Containers {
		warnings = append(warnings, containerWarnings(&spec.Containers[i], serverTypes)...)
	}
	for _, v := range spec.Volumes {
		if slices.Contains(conditionalVolumes, v.Name) {
			warnings = append(warnings, fmt.Sprintf("spec.volumes[%s]: ModelMesh has a volume of that name: choose another", v.Name))
		}
	}
	return warnings
}

// IgnoredFieldWarnings returns a warning for each field of the spec that ModelMesh ignores.
func IgnoredFieldWarnings(spec *v1alpha1.ServingRuntimeSpec) []string {
	var warnings []string
	for _, name := range spec.Ignored {
		warnings = append(warnings, "spec."+name+" has no effect on pods of ModelMesh: remove it")
	}
	return warnings
}

func containerWarnings(c *corev1.Container, serverTypes []string) []string {
	var warnings []string
	field := "spec.containers[" + c.Name + "]"
	if slices.Contains(conditionalContainers, c.Name) || isAdapterContainer(c.Name, serverTypes) {
		warnings = append(warnings, field+": ModelMesh has a container of that name: choose another")
	}
	for _, port := range c.Ports {
		if slices.Contains(conditionalPortNames, port.Name) {
			warnings = append(warnings, fmt.Sprintf("%s: ModelMesh has a port named %s: choose another name", field, port.Name))
		}
		if slices.Contains(conditionalPorts, port.ContainerPort) {
			warnings = append(warnings, fmt.Sprintf("%s: ModelMesh listens on port %d: choose another", field, port.ContainerPort))
		}
	}
	return warnings
}

func isAdapterContainer(container string, serverTypes []string) bool {
	return slices.ContainsFunc(serverTypes, func(server string) bool { return container == AdapterContainer(server) })
}

// AdapterContainer returns the name of the adapter container for a server type.
func AdapterContainer(serverType string) string { return serverType + "-adapter" }

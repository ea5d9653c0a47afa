package modelmesh

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/odh-platform/odh-platform-operator/apis/serving/v1alpha1"
)

// Names and ports that pods of runtimes have in some settings only: with TLS, with a proxy for authentication, or unless the
// settings move them. Runtimes that use them work until then, so they are not refused.
var (
	riskyContainers = []string{"oauth-proxy", "kube-rbac-proxy"}
	riskyVolumes    = []string{"tls-certs", "proxy-tls", "kube-rbac-proxy-config"}
	riskyPortNames  = []string{"https"}
	riskyPorts      = []int32{8033, 8008, 2112, 8443, 8444, 8086}
)

// Warnings tell the author of a multi-model runtime what [Validate] refuses, and what clashes with ModelMesh in other settings
// than the present ones.
func Warnings(spec *v1alpha1.ServingRuntimeSpec, serverTypes []string) []string {
	var warnings []string
	if err := Validate(spec, serverTypes); err != nil {
		warnings = append(warnings, "no pods will be made: "+err.Error())
	}
	for i := range spec.Containers {
		warnings = append(warnings, containerWarnings(&spec.Containers[i], serverTypes)...)
	}
	for _, v := range spec.Volumes {
		if slices.Contains(riskyVolumes, v.Name) {
			warnings = append(warnings, fmt.Sprintf("spec.volumes[%s]: ModelMesh has a volume of that name: choose another", v.Name))
		}
	}
	return warnings
}

func containerWarnings(c *corev1.Container, serverTypes []string) []string {
	var warnings []string
	at := "spec.containers[" + c.Name + "]"
	if slices.Contains(riskyContainers, c.Name) || isAdapter(c.Name, serverTypes) {
		warnings = append(warnings, at+": ModelMesh has a container of that name: choose another")
	}
	for _, port := range c.Ports {
		if slices.Contains(riskyPortNames, port.Name) {
			warnings = append(warnings, fmt.Sprintf("%s: ModelMesh has a port named %s: choose another name", at, port.Name))
		}
		if slices.Contains(riskyPorts, port.ContainerPort) {
			warnings = append(warnings, fmt.Sprintf("%s: ModelMesh listens on port %d: choose another", at, port.ContainerPort))
		}
	}
	return warnings
}

func isAdapter(container string, serverTypes []string) bool {
	return slices.ContainsFunc(serverTypes, func(server string) bool { return container == AdapterContainer(server) })
}

// AdapterContainer is the name of the container that adapts a server of a type.
func AdapterContainer(serverType string) string { return serverType + "-adapter" }

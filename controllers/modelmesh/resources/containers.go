package resources

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/utils/ptr"

	"github.com/odh-platform/odh-platform-operator/pkg/modelmesh"
	"github.com/odh-platform/odh-platform-operator/pkg/resources"
)

// Names of containers and volumes.
const (
	meshContainer   = "mm"
	restContainer   = "rest-proxy"
	pullerContainer = "puller"

	volumeSocket      = "domain-socket"
	volumeStorage     = "storage-config"
	volumeConstraints = "tc-config"
	volumeEtcd        = "etcd-config"
	volumeTLS         = "tls-certs"
)

// Directories in the pods.
const (
	modelsDir      = "/models"
	claimsDir      = "/pvc_mounts"
	storageDir     = "/storage-config"
	constraintsDir = "/etc/watson/mmesh/config"
	etcdDir        = "/opt/kserve/mmesh/etcd"
	tlsDir         = "/opt/kserve/mmesh/tls"
)

// preStopPort is the port of the mesh for preStop hooks.
const preStopPort = 8090

// buildContainers returns the containers in start order. The mesh waits a limited time for the model server, so the image of the model
// server must be pulled first: the mesh is swapped with the last container before the puller is appended.
func (p *podBuilder) buildContainers() ([]*corev1ac.ContainerApplyConfiguration, error) {
	containers := []*corev1ac.ContainerApplyConfiguration{p.buildMesh()}
	if p.Proxy != nil {
		containers = append(containers, p.Proxy.Container())
	}
	ownCount := len(containers)
	for i := range p.Spec.Containers {
		c := p.buildRuntime(&p.Spec.Containers[i])
		if slices.ContainsFunc(containers[:ownCount], func(o *corev1ac.ContainerApplyConfiguration) bool { return *o.Name == *c.Name }) {
			return nil, fmt.Errorf("spec.containers: ModelMesh has a container named %q itself: choose another name", *c.Name)
		}
		containers = replaceOrAppend(containers, c, containerName)
	}
	if p.Spec.BuiltInAdapter != nil {
		containers = replaceOrAppend(containers, p.buildAdapter(), containerName)
	}
	if p.Settings.RESTProxy.Enabled {
		containers = append(containers, p.buildRESTProxy())
	}
	last := len(containers) - 1
	containers[0], containers[last] = containers[last], containers[0]
	if p.needsPuller() {
		containers = append(containers, p.buildPuller())
	}
	return containers, nil
}

func containerName(c *corev1ac.ContainerApplyConfiguration) string { return *c.Name }

// replaceOrAppend replaces the item of the same name, or appends the item.
func replaceOrAppend[T any](items []T, item T, name func(T) string) []T {
	if i := slices.IndexFunc(items, func(other T) bool { return name(other) == name(item) }); i >= 0 {
		items[i] = item
		return items
	}
	return append(items, item)
}

// buildRuntime builds a container of the runtime. It has no readiness probe: the mesh determines the readiness of the pod.
func (p *podBuilder) buildRuntime(container *corev1.Container) *corev1ac.ContainerApplyConfiguration {
	c := resources.MustConvert[corev1ac.ContainerApplyConfiguration](container)
	c.WithName(container.Name) // the conversion omits an empty name
	c.Env, c.Ports = p.dedupEnv(container.Name, c.Env), p.dedupPorts(container.Name, c.Ports)
	runtimeMounts := c.VolumeMounts
	c.VolumeMounts = nil
	if !slices.ContainsFunc(runtimeMounts, func(m corev1ac.VolumeMountApplyConfiguration) bool {
		return ptr.Deref(m.Name, "") == modelmesh.ModelsVolume && ptr.Deref(m.MountPath, "") == modelsDir
	}) {
		c.WithVolumeMounts(resources.Mount(modelmesh.ModelsVolume, modelsDir))
	}
	c.WithVolumeMounts(p.claimMounts()...)
	for i := range runtimeMounts {
		m := &runtimeMounts[i]
		c.WithVolumeMounts(m.WithName(ptr.Deref(m.Name, "")).WithMountPath(ptr.Deref(m.MountPath, ""))) // the conversion omits empty values
	}
	if dir := p.endpoints.SocketDir(); dir != "" {
		c.WithVolumeMounts(resources.Mount(volumeSocket, dir))
	}
	c.SecurityContext = p.runtimeSecurity(c.SecurityContext)
	return c.WithLifecycle(preStopLifecycle())
}

// preStopLifecycle returns the preStop hook that waits until the models of the pod were moved to other pods.
func preStopLifecycle() *corev1ac.LifecycleApplyConfiguration {
	return corev1ac.Lifecycle().WithPreStop(corev1ac.LifecycleHandler().WithHTTPGet(
		corev1ac.HTTPGetAction().WithPath("/prestop").WithPort(intstr.FromInt32(preStopPort))))
}

func tcpPort(name string, number int32) *corev1ac.ContainerPortApplyConfiguration {
	return corev1ac.ContainerPort().WithName(name).WithContainerPort(number).WithProtocol(corev1.ProtocolTCP)
}

func requirements(r corev1.ResourceRequirements) *corev1ac.ResourceRequirementsApplyConfiguration {
	return resources.Requirements(r.Requests, r.Limits)
}

// runtimeUID is the default user of model servers in restricted namespaces, unless the platform assigns one. The images of Triton,
// TorchServe and MLServer have this user, but the first two set no numeric USER, without which runAsNonRoot prevents their start.
const runtimeUID = 1000

// podSecurity returns the security context of the pod. runAsNonRoot is set per container, because a model server may need root.
func (p *podBuilder) podSecurity() *corev1ac.PodSecurityContextApplyConfiguration {
	if p.isLegacy() {
		return nil
	}
	return corev1ac.PodSecurityContext().
		WithSeccompProfile(corev1ac.SeccompProfile().WithType(corev1.SeccompProfileTypeRuntimeDefault))
}

// sidecarSecurity returns the security context of ModelMesh containers, whose images have a numeric user. The legacy controller set a
// security context on some containers only.
func (p *podBuilder) sidecarSecurity(hadLegacyContext bool) *corev1ac.SecurityContextApplyConfiguration {
	switch {
	case !p.isLegacy():
		return resources.ContainerSecurity().WithRunAsNonRoot(true)
	case hadLegacyContext:
		return dropAllCapabilities()
	default:
		return nil
	}
}

func dropAllCapabilities() *corev1ac.SecurityContextApplyConfiguration {
	return corev1ac.SecurityContext().WithCapabilities(corev1ac.Capabilities().WithDrop("ALL"))
}

// runtimeSecurity returns the security context of a runtime container. It keeps the fields of a specified one, and adds missing fields only
// if the namespace would reject the pod without them.
func (p *podBuilder) runtimeSecurity(specified *corev1ac.SecurityContextApplyConfiguration) *corev1ac.SecurityContextApplyConfiguration {
	switch {
	case specified == nil && p.isLegacy():
		return dropAllCapabilities()
	case specified == nil && p.OpenShift:
		return resources.ContainerSecurity().WithRunAsNonRoot(true)
	case specified == nil && p.Restricted:
		return resources.ContainerSecurity().WithRunAsNonRoot(true).WithRunAsUser(runtimeUID)
	case specified == nil:
		return resources.ContainerSecurity()
	case p.isLegacy() || p.OpenShift || !p.Restricted:
		return specified
	default:
		return withRestrictedDefaults(specified)
	}
}

// withRestrictedDefaults adds the missing fields that the restricted standard requires, and runtimeUID.
func withRestrictedDefaults(c *corev1ac.SecurityContextApplyConfiguration) *corev1ac.SecurityContextApplyConfiguration {
	if c.AllowPrivilegeEscalation == nil {
		c.WithAllowPrivilegeEscalation(false)
	}
	if c.Capabilities == nil {
		c.WithCapabilities(corev1ac.Capabilities())
	}
	if len(c.Capabilities.Drop) == 0 {
		c.Capabilities.WithDrop("ALL")
	}
	if c.RunAsNonRoot == nil {
		c.WithRunAsNonRoot(true)
	}
	if c.RunAsUser == nil && *c.RunAsNonRoot {
		c.WithRunAsUser(runtimeUID)
	}
	return c
}

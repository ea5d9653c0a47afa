package resources

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	mm "github.com/odh-platform/odh-platform-operator/pkg/modelmesh"
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

// Folders in the pods.
const (
	modelsDir      = "/models"
	claimsDir      = "/pvc_mounts"
	storageDir     = "/storage-config"
	constraintsDir = "/etc/watson/mmesh/config"
	etcdDir        = "/opt/kserve/mmesh/etcd"
	tlsDir         = "/opt/kserve/mmesh/tls"
)

// preStopPort answers when a pod may stop.
const preStopPort = 8090

// containers lists the containers in their order. The mesh waits a limited time for the server, so images of servers are pulled
// first: the mesh changes places with the last container before the puller joins.
func (p *podBuilder) buildContainers() ([]*corev1ac.ContainerApplyConfiguration, error) {
	all := []*corev1ac.ContainerApplyConfiguration{p.buildMesh()}
	if p.Proxy != nil {
		sidecar, err := p.Proxy.Container()
		if err != nil {
			return nil, fmt.Errorf("the authentication proxy: %w", err)
		}
		all = append(all, sidecar)
	}
	own := len(all)
	for i := range p.Spec.Containers {
		c := p.buildRuntime(&p.Spec.Containers[i])
		if slices.ContainsFunc(all[:own], func(o *corev1ac.ContainerApplyConfiguration) bool { return *o.Name == *c.Name }) {
			return nil, fmt.Errorf("spec.containers: ModelMesh has a container named %q itself: choose another name", *c.Name)
		}
		all = replaceOrAppend(all, c)
	}
	if p.Spec.BuiltInAdapter != nil {
		all = replaceOrAppend(all, p.buildAdapter())
	}
	if p.Settings.RESTProxy.Enabled {
		all = append(all, p.buildRESTProxy())
	}
	last := len(all) - 1
	all[0], all[last] = all[last], all[0]
	if p.needsPuller() {
		all = append(all, p.buildPuller())
	}
	return all, nil
}

// replaceOrAppend puts a container in the place of the one of its name, or at the end.
func replaceOrAppend(all []*corev1ac.ContainerApplyConfiguration, c *corev1ac.ContainerApplyConfiguration) []*corev1ac.ContainerApplyConfiguration {
	at := slices.IndexFunc(all, func(o *corev1ac.ContainerApplyConfiguration) bool { return *o.Name == *c.Name })
	if at < 0 {
		return append(all, c)
	}
	all[at] = c
	return all
}

// runtime is a container of the runtime. Whether the pod is ready, the mesh decides.
func (p *podBuilder) buildRuntime(given *corev1.Container) *corev1ac.ContainerApplyConfiguration {
	c := resources.MustApply[corev1ac.ContainerApplyConfiguration](given)
	c.WithName(given.Name) // an empty name is left out by the translation
	c.Env, c.Ports = p.dedupEnv(given.Name, c.Env), p.dedupPorts(given.Name, c.Ports)
	own := c.VolumeMounts
	c.VolumeMounts = nil
	if !slices.ContainsFunc(own, func(m corev1ac.VolumeMountApplyConfiguration) bool {
		return m.Name != nil && *m.Name == mm.ModelsVolume && m.MountPath != nil && *m.MountPath == modelsDir
	}) {
		c.WithVolumeMounts(mount(mm.ModelsVolume, modelsDir))
	}
	c.WithVolumeMounts(p.claimMounts()...)
	for i := range own {
		c.WithVolumeMounts(withNameAndPath(&own[i]))
	}
	if dir := p.endpoints.SocketDir(); dir != "" {
		c.WithVolumeMounts(mount(volumeSocket, dir))
	}
	c.SecurityContext = p.runtimeSecurity(c.SecurityContext)
	return c.WithLifecycle(waitForModels())
}

// namedMount has a name and a path, if only empty ones.
func withNameAndPath(m *corev1ac.VolumeMountApplyConfiguration) *corev1ac.VolumeMountApplyConfiguration {
	if m.Name == nil {
		m.WithName("")
	}
	if m.MountPath == nil {
		m.WithMountPath("")
	}
	return m
}

// waitForModels keeps a container until its models are handed to others.
func waitForModels() *corev1ac.LifecycleApplyConfiguration {
	return corev1ac.Lifecycle().WithPreStop(corev1ac.LifecycleHandler().WithHTTPGet(
		corev1ac.HTTPGetAction().WithPath("/prestop").WithPort(intstr.FromInt32(preStopPort))))
}

func mount(volume, path string) *corev1ac.VolumeMountApplyConfiguration {
	return corev1ac.VolumeMount().WithName(volume).WithMountPath(path)
}

func readOnlyMount(volume, path string) *corev1ac.VolumeMountApplyConfiguration {
	return mount(volume, path).WithReadOnly(true)
}

func tcpPort(name string, number int32) *corev1ac.ContainerPortApplyConfiguration {
	return corev1ac.ContainerPort().WithName(name).WithContainerPort(number).WithProtocol(corev1.ProtocolTCP)
}

func requirements(r corev1.ResourceRequirements) *corev1ac.ResourceRequirementsApplyConfiguration {
	return resources.Requirements(r.Requests, r.Limits)
}

// runtimeUser is the user of servers where the namespace refuses root and the platform gives no other. The images of Triton,
// TorchServe and MLServer have a user of that number, and the first two name none or name it by a word, which is refused too.
const runtimeUID = 1000

// podSecurity holds for all containers. That it does not run as root is set on each container: a server may need root.
func (p *podBuilder) podSecurity() *corev1ac.PodSecurityContextApplyConfiguration {
	if p.isLegacy() {
		return nil
	}
	return corev1ac.PodSecurityContext().
		WithSeccompProfile(corev1ac.SeccompProfile().WithType(corev1.SeccompProfileTypeRuntimeDefault))
}

// ownSecurity is that of containers of ModelMesh, whose images have users by number. In the original only some had one.
func (p *podBuilder) sidecarSecurity(originalHad bool) *corev1ac.SecurityContextApplyConfiguration {
	switch {
	case !p.isLegacy():
		return resources.ContainerSecurity().WithRunAsNonRoot(true)
	case originalHad:
		return dropAllCapabilities()
	default:
		return nil
	}
}

func dropAllCapabilities() *corev1ac.SecurityContextApplyConfiguration {
	return corev1ac.SecurityContext().WithCapabilities(corev1ac.Capabilities().WithDrop("ALL"))
}

// runtimeSecurity is that of a container of the runtime. What its author says stands; only where the namespace would refuse the
// pod, what is not said is added.
func (p *podBuilder) runtimeSecurity(given *corev1ac.SecurityContextApplyConfiguration) *corev1ac.SecurityContextApplyConfiguration {
	switch {
	case given == nil && p.isLegacy():
		return dropAllCapabilities()
	case given == nil && p.OpenShift:
		return resources.ContainerSecurity().WithRunAsNonRoot(true)
	case given == nil && p.Restricted:
		return resources.ContainerSecurity().WithRunAsNonRoot(true).WithRunAsUser(runtimeUID)
	case given == nil:
		return resources.ContainerSecurity()
	case p.isLegacy() || p.OpenShift || !p.Restricted:
		return given
	default:
		return withRestrictedDefaults(given)
	}
}

// completed adds what a restricted namespace demands and the author does not say.
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

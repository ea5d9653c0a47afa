package resources

import (
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	mm "github.com/odh-platform/odh-platform-operator/pkg/modelmesh"
	meshsettings "github.com/odh-platform/odh-platform-operator/pkg/modelmesh/settings"
	"github.com/odh-platform/odh-platform-operator/pkg/resources"
)

// Annotations of runtimes that reach their adapter.
const (
	annotationLoadingConcurrency  = "maxLoadingConcurrency"
	annotationPerModelConcurrency = "perModelConcurrencyLimit"
)

// adapter is the container that loads models into a server that does not speak the protocol of the mesh. It fetches them too.
func (p *podBuilder) buildAdapter() *corev1ac.ContainerApplyConfiguration {
	server := p.Spec.BuiltInAdapter.ServerType
	c := corev1ac.Container().
		WithName(mm.AdapterContainer(server)).
		WithImage(p.Settings.StorageHelper.Image.Reference()).
		WithCommand("/opt/app/" + mm.AdapterContainer(server)).
		WithEnv(p.adapterEnv()...).
		WithResources(requirements(p.Settings.StorageHelper.Resources)).
		WithLifecycle(waitForModels()).
		WithVolumeMounts(mount(mm.ModelsVolume, modelsDir)).
		WithVolumeMounts(p.claimMounts()...).
		WithVolumeMounts(readOnlyMount(volumeStorage, storageDir))
	if dir := p.endpoints.SocketDir(); dir != "" {
		c.WithVolumeMounts(mount(volumeSocket, dir))
	}
	c.SecurityContext = p.sidecarSecurity(true)
	return c
}

// adapterEnvironment ends with the variables of the runtime, which replace others as a whole.
func (p *podBuilder) adapterEnv() environment {
	a := p.Spec.BuiltInAdapter
	management := strconv.FormatInt(a.RuntimeManagementPort, 10)
	data := "port:" + management
	if p.endpoints.Data != nil {
		data = p.endpoints.Data.Raw
	}
	var env environment
	env.set("ADAPTER_PORT", p.endpoints.Management.Port)
	env.set("RUNTIME_PORT", management)
	env.set("RUNTIME_DATA_ENDPOINT", data)
	env.setVar(corev1ac.EnvVar().WithName("CONTAINER_MEM_REQ_BYTES").WithValueFrom(corev1ac.EnvVarSource().
		WithResourceFieldRef(corev1ac.ResourceFieldSelector().WithContainerName(a.ServerType).WithResource("requests.memory"))))
	env.set("MEM_BUFFER_BYTES", strconv.FormatInt(a.MemBufferBytes, 10))
	env.set("LOADTIME_TIMEOUT", strconv.FormatInt(a.ModelLoadingTimeoutMillis, 10))
	env.set("USE_EMBEDDED_PULLER", "true")
	env.set("RUNTIME_VERSION", p.runtimeVersion())
	for _, v := range []struct{ name, annotation string }{
		{"LOADING_CONCURRENCY", annotationLoadingConcurrency}, {"LIMIT_PER_MODEL_CONCURRENCY", annotationPerModelConcurrency},
	} {
		if value, found := p.Annotations[v.annotation]; found {
			env.set(v.name, value)
		}
	}
	for _, v := range toPointers(resources.MustApplyEach[corev1ac.EnvVarApplyConfiguration](a.Env)) {
		env.setVar(withName(v))
	}
	return env
}

// runtimeVersion is the tag of the server's image. The original took what follows the first colon, whatever that is. Of several
// containers of the name the last one is in the pod.
func (p *podBuilder) runtimeVersion() string {
	for _, c := range slices.Backward(p.Spec.Containers) {
		if c.Name != p.Spec.BuiltInAdapter.ServerType {
			continue
		}
		if p.isLegacy() {
			_, after, _ := strings.Cut(c.Image, ":")
			return after
		}
		return imageTag(c.Image)
	}
	return ""
}

// restProxy turns REST into gRPC.
func (p *podBuilder) buildRESTProxy() *corev1ac.ContainerApplyConfiguration {
	s := p.Settings
	var env environment
	env.set("REST_PROXY_LISTEN_PORT", strconv.Itoa(int(s.RESTProxy.Port)))
	env.set("REST_PROXY_GRPC_PORT", strconv.Itoa(int(s.ServicePort)))
	env.set("REST_PROXY_USE_TLS", strconv.FormatBool(p.TLS != nil))
	env.set("REST_PROXY_GRPC_MAX_MSG_SIZE_BYTES", strconv.FormatInt(s.GRPCMaxMessageSizeBytes, 10))
	env.set("REST_PROXY_SKIP_VERIFY", strconv.FormatBool(s.RESTProxy.SkipVerify))
	p.addTLSEnv(&env)
	c := corev1ac.Container().
		WithName(restContainer).
		WithImage(s.RESTProxy.Image.Reference()).
		WithEnv(env...).
		WithPorts(tcpPort(portREST, s.RESTProxy.Port)).
		WithResources(requirements(s.RESTProxy.Resources))
	if p.TLS != nil {
		c.WithVolumeMounts(readOnlyMount(volumeTLS, tlsDir))
	}
	c.SecurityContext = p.sidecarSecurity(false)
	return c
}

// puller fetches models for a server that speaks the protocol of the mesh itself.
func (p *podBuilder) buildPuller() *corev1ac.ContainerApplyConfiguration {
	helper := p.Settings.StorageHelper
	var env environment
	env.set("PORT", strconv.Itoa(pullerPort))
	env.set("MODEL_SERVER_ENDPOINT", p.endpoints.Management.Raw)
	env.set("ROOT_MODEL_DIR", modelsDir)
	env.set("STORAGE_CONFIG_DIR", storageDir)
	env.set("PVC_MOUNTS_DIR", claimsDir)
	c := corev1ac.Container().
		WithName(pullerContainer).
		WithImage(helper.Image.Reference()).
		WithCommand(helper.Command...).
		WithEnv(env...).
		WithPorts(tcpPort(portGRPC, pullerPort)).
		WithResources(requirements(helper.Resources)).
		WithVolumeMounts(mount(mm.ModelsVolume, modelsDir), readOnlyMount(volumeStorage, storageDir))
	if dir := p.endpoints.Management.Dir(); dir != "" {
		c.WithVolumeMounts(mount(volumeSocket, dir))
	}
	c.WithVolumeMounts(p.claimMounts()...)
	c.SecurityContext = p.sidecarSecurity(false)
	return c
}

// tagOf is the tag of an image; empty when it has none. The registry may have a port, and a digest may follow.
func imageTag(image string) string {
	name, _, _ := strings.Cut(image, "@")
	return meshsettings.ParseImage(name).Tag
}

// environment is a list of variables, each of which stands there once.
type environment []*corev1ac.EnvVarApplyConfiguration

// set gives a variable a value, in its place or at the end.
func (e *environment) set(name, value string) {
	v := corev1ac.EnvVar().WithName(name)
	if value != "" { // the API server stores no empty value
		v.WithValue(value)
	}
	e.setVar(v)
}

// put replaces the variable of that name as a whole, or appends it.
func (e *environment) setVar(v *corev1ac.EnvVarApplyConfiguration) {
	for i, old := range *e {
		if *old.Name == *v.Name {
			(*e)[i] = v
			return
		}
	}
	*e = append(*e, v)
}

// field gives a variable the value of a field of the pod.
func (e *environment) setFieldRef(name, path string) {
	e.setVar(corev1ac.EnvVar().WithName(name).WithValueFrom(corev1ac.EnvVarSource().
		WithFieldRef(corev1ac.ObjectFieldSelector().WithFieldPath(path))))
}

// distinctEnv leaves one of several variables of one name: the last, which is the one that counts. Lists whose elements have
// names know no doubles.
func (p *podBuilder) dedupEnv(container string, env []corev1ac.EnvVarApplyConfiguration) []corev1ac.EnvVarApplyConfiguration {
	last := map[string]int{}
	for i, v := range env {
		last[*withName(&v).Name] = i
	}
	if len(last) == len(env) {
		return env
	}
	var kept []corev1ac.EnvVarApplyConfiguration
	for i, v := range env {
		if last[*v.Name] == i {
			kept = append(kept, v)
			continue
		}
		p.addNotice("spec.containers[%s].env: %s stands there more than once, the last one counts: remove the others", container, *v.Name)
	}
	return kept
}

// named has a name, if only an empty one.
func withName(v *corev1ac.EnvVarApplyConfiguration) *corev1ac.EnvVarApplyConfiguration {
	if v.Name == nil {
		v.WithName("")
	}
	return v
}

// distinctPorts leaves one of several ports of one number: the first.
func (p *podBuilder) dedupPorts(container string, ports []corev1ac.ContainerPortApplyConfiguration) []corev1ac.ContainerPortApplyConfiguration {
	type key struct {
		number   int32
		protocol corev1.Protocol
	}
	seen := map[key]bool{}
	var kept []corev1ac.ContainerPortApplyConfiguration
	for _, port := range ports {
		k := key{protocol: corev1.ProtocolTCP}
		if port.ContainerPort != nil {
			k.number = *port.ContainerPort
		}
		if port.Protocol != nil {
			k.protocol = *port.Protocol
		}
		if seen[k] {
			p.addNotice("spec.containers[%s].ports: %d stands there more than once, the first one counts: remove the others", container, k.number)
			continue
		}
		seen[k] = true
		kept = append(kept, port)
	}
	return kept
}

package resources

import (
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/utils/ptr"

	"github.com/odh-platform/odh-platform-operator/pkg/modelmesh"
	meshsettings "github.com/odh-platform/odh-platform-operator/pkg/modelmesh/settings"
	"github.com/odh-platform/odh-platform-operator/pkg/resources"
)

// Annotations of runtimes that configure the adapter.
const (
	annotationLoadingConcurrency  = "maxLoadingConcurrency"
	annotationPerModelConcurrency = "perModelConcurrencyLimit"
)

// buildAdapter builds the container that fetches models and loads them into a server that does not implement the API of the mesh.
func (p *podBuilder) buildAdapter() *corev1ac.ContainerApplyConfiguration {
	server := p.Spec.BuiltInAdapter.ServerType
	c := corev1ac.Container().
		WithName(modelmesh.AdapterContainer(server)).
		WithImage(p.Settings.StorageHelper.Image.Reference()).
		WithCommand("/opt/app/" + modelmesh.AdapterContainer(server)).
		WithEnv(p.adapterEnv()...).
		WithResources(requirements(p.Settings.StorageHelper.Resources)).
		WithLifecycle(preStopLifecycle()).
		WithVolumeMounts(resources.Mount(modelmesh.ModelsVolume, modelsDir)).
		WithVolumeMounts(p.claimMounts()...).
		WithVolumeMounts(resources.ReadOnlyMount(volumeStorage, storageDir))
	if dir := p.endpoints.SocketDir(); dir != "" {
		c.WithVolumeMounts(resources.Mount(volumeSocket, dir))
	}
	c.SecurityContext = p.sidecarSecurity(true)
	return c
}

// adapterEnv returns the variables of the adapter. Variables in spec.builtInAdapter.env override the others.
func (p *podBuilder) adapterEnv() environment {
	adapter := p.Spec.BuiltInAdapter
	management := strconv.FormatInt(adapter.RuntimeManagementPort, 10)
	data := "port:" + management
	if p.endpoints.Data != nil {
		data = p.endpoints.Data.Raw
	}
	var env environment
	env.set("ADAPTER_PORT", p.endpoints.Management.Port)
	env.set("RUNTIME_PORT", management)
	env.set("RUNTIME_DATA_ENDPOINT", data)
	env.setVar(corev1ac.EnvVar().WithName("CONTAINER_MEM_REQ_BYTES").WithValueFrom(corev1ac.EnvVarSource().
		WithResourceFieldRef(corev1ac.ResourceFieldSelector().WithContainerName(adapter.ServerType).WithResource("requests.memory"))))
	env.set("MEM_BUFFER_BYTES", strconv.FormatInt(adapter.MemBufferBytes, 10))
	env.set("LOADTIME_TIMEOUT", strconv.FormatInt(adapter.ModelLoadingTimeoutMillis, 10))
	env.set("USE_EMBEDDED_PULLER", "true")
	env.set("RUNTIME_VERSION", p.runtimeVersion())
	for _, v := range []struct{ name, annotation string }{
		{"LOADING_CONCURRENCY", annotationLoadingConcurrency}, {"LIMIT_PER_MODEL_CONCURRENCY", annotationPerModelConcurrency},
	} {
		if value, found := p.Annotations[v.annotation]; found {
			env.set(v.name, value)
		}
	}
	for _, v := range toPointers(resources.MustConvertEach[corev1ac.EnvVarApplyConfiguration](adapter.Env)) {
		env.setVar(v.WithName(ptr.Deref(v.Name, "")))
	}
	return env
}

// runtimeVersion returns the tag of the model server's image. The legacy controller used the part after the first colon. If several
// containers have the name, the last one is used, as in the pod.
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

// buildRESTProxy builds the container that converts REST to gRPC.
func (p *podBuilder) buildRESTProxy() *corev1ac.ContainerApplyConfiguration {
	s := p.Settings
	var env environment
	env.set("REST_PROXY_LISTEN_PORT", strconv.Itoa(int(s.RESTProxy.Port)))
	env.set("REST_PROXY_GRPC_PORT", strconv.Itoa(int(s.ServicePort)))
	env.set("REST_PROXY_USE_TLS", strconv.FormatBool(p.TLS != nil))
	if s.GRPCMaxMessageSizeBytes > 0 { // the proxy takes 0 as the limit
		env.set("REST_PROXY_GRPC_MAX_MSG_SIZE_BYTES", strconv.FormatInt(s.GRPCMaxMessageSizeBytes, 10))
	}
	env.set("REST_PROXY_SKIP_VERIFY", strconv.FormatBool(s.RESTProxy.SkipVerify))
	p.addTLSEnv(&env)
	c := corev1ac.Container().
		WithName(restContainer).
		WithImage(s.RESTProxy.Image.Reference()).
		WithEnv(env...).
		WithPorts(tcpPort(portREST, s.RESTProxy.Port)).
		WithResources(requirements(s.RESTProxy.Resources))
	if p.TLS != nil {
		c.WithVolumeMounts(resources.ReadOnlyMount(volumeTLS, tlsDir))
	}
	c.SecurityContext = p.sidecarSecurity(false)
	return c
}

// buildPuller builds the container that fetches models for a server that implements the API of the mesh.
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
		WithVolumeMounts(resources.Mount(modelmesh.ModelsVolume, modelsDir), resources.ReadOnlyMount(volumeStorage, storageDir))
	if dir := p.endpoints.Management.Dir(); dir != "" {
		c.WithVolumeMounts(resources.Mount(volumeSocket, dir))
	}
	c.WithVolumeMounts(p.claimMounts()...)
	c.SecurityContext = p.sidecarSecurity(false)
	return c
}

// imageTag returns the tag of an image, or "". The registry may have a port, and a digest may follow the tag.
func imageTag(image string) string {
	name, _, _ := strings.Cut(image, "@")
	return meshsettings.ParseImage(name).Tag
}

// environment is a list of variables with unique names.
type environment []*corev1ac.EnvVarApplyConfiguration

// set replaces or appends a variable with a literal value.
func (e *environment) set(name, value string) {
	v := corev1ac.EnvVar().WithName(name)
	if value != "" { // the API server drops an empty value
		v.WithValue(value)
	}
	e.setVar(v)
}

// setVar replaces the variable of the same name, or appends it.
func (e *environment) setVar(v *corev1ac.EnvVarApplyConfiguration) {
	*e = replaceOrAppend(*e, v, func(v *corev1ac.EnvVarApplyConfiguration) string { return *v.Name })
}

// setFieldRef replaces or appends a variable with a field of the pod.
func (e *environment) setFieldRef(name, path string) {
	e.setVar(corev1ac.EnvVar().WithName(name).WithValueFrom(corev1ac.EnvVarSource().
		WithFieldRef(corev1ac.ObjectFieldSelector().WithFieldPath(path))))
}

// dedupEnv keeps the last variable of each name, which is the one that takes effect. Server-side apply rejects duplicate keys.
func (p *podBuilder) dedupEnv(container string, env []corev1ac.EnvVarApplyConfiguration) []corev1ac.EnvVarApplyConfiguration {
	lastIndex := map[string]int{}
	for i, v := range env {
		lastIndex[ptr.Deref(v.Name, "")] = i
	}
	if len(lastIndex) == len(env) {
		return env
	}
	var deduplicated []corev1ac.EnvVarApplyConfiguration
	for i, v := range env {
		if v.WithName(ptr.Deref(v.Name, "")); lastIndex[*v.Name] == i {
			deduplicated = append(deduplicated, v)
			continue
		}
		p.addNotice("spec.containers[%s].env: %s is set more than once, and the last value is used: remove the others", container, *v.Name)
	}
	return deduplicated
}

// dedupPorts keeps the first port of each number and protocol.
func (p *podBuilder) dedupPorts(container string, ports []corev1ac.ContainerPortApplyConfiguration) []corev1ac.ContainerPortApplyConfiguration {
	type key struct {
		number   int32
		protocol corev1.Protocol
	}
	seen := map[key]bool{}
	var deduplicated []corev1ac.ContainerPortApplyConfiguration
	for _, port := range ports {
		k := key{ptr.Deref(port.ContainerPort, 0), ptr.Deref(port.Protocol, corev1.ProtocolTCP)}
		if seen[k] {
			p.addNotice("spec.containers[%s].ports: %d is listed more than once, and the first entry is used: remove the others", container, k.number)
			continue
		}
		seen[k] = true
		deduplicated = append(deduplicated, port)
	}
	return deduplicated
}

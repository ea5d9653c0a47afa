package resources

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	mm "github.com/odh-platform/odh-platform-operator/pkg/modelmesh"
	"github.com/odh-platform/odh-platform-operator/pkg/resources"
)

// Annotations of runtimes that reach their adapter.
const (
	annotationLoading  = "maxLoadingConcurrency"
	annotationPerModel = "perModelConcurrencyLimit"
)

// adapter is the container that loads models into a server that does not speak the protocol of the mesh. It fetches them too.
func (p *pod) adapter() (*corev1ac.ContainerApplyConfiguration, error) {
	server := p.Spec.BuiltInAdapter.ServerType
	env, err := p.adapterEnvironment()
	if err != nil {
		return nil, err
	}
	c := corev1ac.Container().
		WithName(mm.AdapterContainer(server)).
		WithImage(p.Settings.StorageHelper.Image.Reference()).
		WithCommand("/opt/app/" + mm.AdapterContainer(server)).
		WithEnv(env...).
		WithResources(requirements(p.Settings.StorageHelper.Resources)).
		WithLifecycle(waitForModels()).
		WithVolumeMounts(mount(mm.ModelsVolume, modelsDir)).
		WithVolumeMounts(p.claimMounts()...).
		WithVolumeMounts(readOnly(volumeStorage, storageDir))
	if dir := p.endpoints.SocketDir(); dir != "" {
		c.WithVolumeMounts(mount(volumeSocket, dir))
	}
	c.SecurityContext = p.ownSecurity(true)
	return c, nil
}

// adapterEnvironment ends with the variables of the runtime, which replace others as a whole.
func (p *pod) adapterEnvironment() (environment, error) {
	a := p.Spec.BuiltInAdapter
	management := strconv.FormatInt(a.RuntimeManagementPort, 10)
	data := "port:" + management
	if p.endpoints.Data != nil {
		data = p.endpoints.Data.Text
	}
	var env environment
	env.set("ADAPTER_PORT", p.endpoints.Management.Port)
	env.set("RUNTIME_PORT", management)
	env.set("RUNTIME_DATA_ENDPOINT", data)
	env.put(corev1ac.EnvVar().WithName("CONTAINER_MEM_REQ_BYTES").WithValueFrom(corev1ac.EnvVarSource().
		WithResourceFieldRef(corev1ac.ResourceFieldSelector().WithContainerName(a.ServerType).WithResource("requests.memory"))))
	env.set("MEM_BUFFER_BYTES", strconv.FormatInt(a.MemBufferBytes, 10))
	env.set("LOADTIME_TIMEOUT", strconv.FormatInt(a.ModelLoadingTimeoutMillis, 10))
	env.set("USE_EMBEDDED_PULLER", "true")
	env.set("RUNTIME_VERSION", p.runtimeVersion())
	for _, v := range []struct{ name, annotation string }{
		{"LOADING_CONCURRENCY", annotationLoading}, {"LIMIT_PER_MODEL_CONCURRENCY", annotationPerModel},
	} {
		if value, found := p.Annotations[v.annotation]; found {
			env.set(v.name, value)
		}
	}
	given, err := resources.ApplyEach[corev1ac.EnvVarApplyConfiguration](a.Env)
	if err != nil {
		return nil, fmt.Errorf("spec.builtInAdapter.env: %w", err)
	}
	for i := range given {
		env.put(named(&given[i]))
	}
	return env, nil
}

// runtimeVersion is the tag of the server's image. The original took what follows the first colon, whatever that is. Of several
// containers of the name the last one is in the pod.
func (p *pod) runtimeVersion() string {
	for _, c := range slices.Backward(p.Spec.Containers) {
		if c.Name != p.Spec.BuiltInAdapter.ServerType {
			continue
		}
		if p.original() {
			return afterColon(c.Image)
		}
		return tagOf(c.Image)
	}
	return ""
}

// restProxy turns REST into gRPC.
func (p *pod) restProxy() *corev1ac.ContainerApplyConfiguration {
	s := p.Settings
	var env environment
	env.set("REST_PROXY_LISTEN_PORT", strconv.Itoa(int(s.RESTProxy.Port)))
	env.set("REST_PROXY_GRPC_PORT", strconv.Itoa(int(s.ServicePort)))
	env.set("REST_PROXY_USE_TLS", strconv.FormatBool(p.TLS != nil))
	env.set("REST_PROXY_GRPC_MAX_MSG_SIZE_BYTES", strconv.FormatInt(s.GRPCMaxMessageSizeBytes, 10))
	env.set("REST_PROXY_SKIP_VERIFY", strconv.FormatBool(s.RESTProxy.SkipVerify))
	p.tlsEnvironment(&env)
	c := corev1ac.Container().
		WithName(restContainer).
		WithImage(s.RESTProxy.Image.Reference()).
		WithEnv(env...).
		WithPorts(tcpPort(portREST, s.RESTProxy.Port)).
		WithResources(requirements(s.RESTProxy.Resources))
	if p.TLS != nil {
		c.WithVolumeMounts(readOnly(volumeTLS, tlsDir))
	}
	c.SecurityContext = p.ownSecurity(false)
	return c
}

// puller fetches models for a server that speaks the protocol of the mesh itself.
func (p *pod) puller() *corev1ac.ContainerApplyConfiguration {
	helper := p.Settings.StorageHelper
	var env environment
	env.set("PORT", strconv.Itoa(pullerPort))
	env.set("MODEL_SERVER_ENDPOINT", p.endpoints.Management.Text)
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
		WithVolumeMounts(mount(mm.ModelsVolume, modelsDir), readOnly(volumeStorage, storageDir))
	if dir := p.endpoints.Management.Dir(); dir != "" {
		c.WithVolumeMounts(mount(volumeSocket, dir))
	}
	c.WithVolumeMounts(p.claimMounts()...)
	c.SecurityContext = p.ownSecurity(false)
	return c
}

// afterColon is what follows the first colon.
func afterColon(image string) string {
	_, after, _ := strings.Cut(image, ":")
	return after
}

// tagOf is the tag of an image; empty when it has none. The registry may have a port, and a digest may follow.
func tagOf(image string) string {
	name, _, _ := strings.Cut(image, "@")
	last := name[strings.LastIndex(name, "/")+1:]
	_, tag, _ := strings.Cut(last, ":")
	return tag
}

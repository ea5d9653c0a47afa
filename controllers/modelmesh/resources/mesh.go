package resources

import (
	"fmt"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/intstr"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	meshetcd "github.com/odh-platform/odh-platform-operator/controllers/modelmesh/etcd"
	"github.com/odh-platform/odh-platform-operator/pkg/modelmesh"
	"github.com/odh-platform/odh-platform-operator/pkg/resources"
)

const (
	// probePort is the port of the mesh for probes.
	probePort = 8089
	// pullerPort is the port of the puller for the mesh.
	pullerPort = 8086
	// etcdStatePrefix is the etcd prefix of the mesh's state. It must never change, or all models are lost.
	etcdStatePrefix = "mm"
)

// buildMesh builds the container that places and loads models and routes requests.
func (p *podBuilder) buildMesh() *corev1ac.ContainerApplyConfiguration {
	s := p.Settings
	c := corev1ac.Container().
		WithName(meshContainer).
		WithImage(s.ModelMeshImage.Reference()).
		WithEnv(p.meshEnv()...).
		WithPorts(tcpPort(portGRPC, s.ServicePort)).
		WithResources(requirements(s.ModelMeshResources)).
		WithLifecycle(corev1ac.Lifecycle().WithPreStop(corev1ac.LifecycleHandler().
			WithExec(corev1ac.ExecAction().WithCommand("/opt/kserve/mmesh/stop.sh", "wait")))).
		WithReadinessProbe(meshProbe("/ready").WithInitialDelaySeconds(5).WithPeriodSeconds(5).WithTimeoutSeconds(1)).
		WithLivenessProbe(meshProbe("/live").WithInitialDelaySeconds(90).WithPeriodSeconds(30).WithTimeoutSeconds(5).WithFailureThreshold(2))
	if s.Metrics.Enabled {
		c.WithPorts(tcpPort(portMetrics, s.Metrics.Port))
	}
	if dir := p.endpoints.SocketDir(); dir != "" {
		c.WithVolumeMounts(resources.Mount(volumeSocket, dir))
	}
	c.WithVolumeMounts(resources.Mount(volumeConstraints, constraintsDir), resources.ReadOnlyMount(volumeEtcd, etcdDir))
	if p.TLS != nil {
		c.WithVolumeMounts(resources.ReadOnlyMount(volumeTLS, tlsDir))
	}
	c.SecurityContext = p.sidecarSecurity(true)
	return c
}

// meshProbe returns a probe of the mesh.
func meshProbe(path string) *corev1ac.ProbeApplyConfiguration {
	return corev1ac.Probe().WithHTTPGet(corev1ac.HTTPGetAction().WithPath(path).WithPort(intstr.FromInt32(probePort)))
}

// meshEnv returns the variables in the order of legacy Deployments. Variables of the settings override those before them, but not those
// after them.
func (p *podBuilder) meshEnv() environment {
	s := p.Settings
	var env environment
	env.set("MM_SERVICE_NAME", s.ServiceName)
	env.set("MM_SVC_GRPC_PORT", strconv.Itoa(int(s.ServicePort)))
	env.setFieldRef("WKUBE_POD_NAME", "metadata.name")
	env.setFieldRef("WKUBE_POD_IPADDR", "status.podIP")
	env.setFieldRef("MM_LOCATION", "status.hostIP")
	env.set("KV_STORE", "etcd:"+etcdDir+"/"+meshetcd.ConnectionKey)
	env.set("MM_METRICS", metricsConfig(p))
	env.set("SHUTDOWN_TIMEOUT_MS", strconv.Itoa(gracePeriodSeconds*1000))
	for _, v := range s.InternalModelMeshEnvVars {
		env.set(v.Name, v.Value)
	}
	p.addEndpointEnv(&env)
	if s.EnableAccessLogging {
		env.set("MM_LOG_EACH_INVOKE", "true")
	}
	if s.GRPCMaxMessageSizeBytes > 0 {
		env.set("MM_SVC_GRPC_MAX_MSG_SIZE", strconv.FormatInt(s.GRPCMaxMessageSizeBytes, 10))
	}
	env.set("MM_KVSTORE_PREFIX", etcdStatePrefix)
	env.set("MM_DEFAULT_VMODEL_OWNER", modelmesh.SourcePredictor)
	if len(s.PayloadProcessors) > 0 {
		env.set("MM_PAYLOAD_PROCESSORS", strings.Join(s.PayloadProcessors, " "))
	}
	env.set("MM_LABELS", strings.Join(modelmesh.Labels(p.Name, p.Spec, s.RESTProxy.Enabled), ","))
	env.set("MM_TYPE_CONSTRAINTS_PATH", constraintsDir+"/"+constraintsKey)
	env.set("MM_DATAPLANE_CONFIG_PATH", constraintsDir+"/"+dataPlaneKey)
	p.addTLSEnv(&env)
	return env
}

func metricsConfig(p *podBuilder) string {
	m := p.Settings.Metrics
	if !m.Enabled {
		return "disabled"
	}
	return fmt.Sprintf("prometheus:port=%d;scheme=%s", m.Port, m.Scheme)
}

// addEndpointEnv adds the endpoints for inference and for model management.
func (p *podBuilder) addEndpointEnv(env *environment) {
	set := func(endpoint modelmesh.Endpoint, port, socket string) {
		if endpoint.Port != "" {
			env.set(port, endpoint.Port)
		} else {
			env.set(socket, endpoint.Path)
		}
	}
	if data := p.endpoints.Data; data != nil {
		set(*data, "INTERNAL_SERVING_GRPC_PORT", "INTERNAL_SERVING_GRPC_SOCKET_PATH")
	}
	management := p.endpoints.Management
	if p.needsPuller() {
		management = modelmesh.Endpoint{Port: strconv.Itoa(pullerPort)}
	}
	set(management, "INTERNAL_GRPC_PORT", "INTERNAL_GRPC_SOCKET_PATH")
}

// addTLSEnv adds the TLS variables that the mesh and the REST proxy share.
func (p *podBuilder) addTLSEnv(env *environment) {
	if p.TLS == nil {
		return
	}
	const certificate = tlsDir + "/tls.crt"
	env.set("MM_TLS_KEY_CERT_PATH", certificate)
	env.set("MM_TLS_PRIVATE_KEY_PATH", tlsDir+"/tls.key")
	auth := strings.TrimSpace(p.Settings.TLS.ClientAuth)
	if auth == "" {
		return
	}
	trusted := certificate
	if p.TLS.HasCA {
		trusted += "," + tlsDir + "/ca.crt"
	}
	env.set("MM_TLS_CLIENT_AUTH", auth)
	env.set("MM_TLS_TRUST_CERT_PATH", trusted)
}

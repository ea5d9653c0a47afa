// Package settings holds the settings of ModelMesh: types and defaults (settings.go, image.go), keys and values of documents (document.go,
// keys.go, values.go, read.go), the Source that watches the ConfigMaps (source.go), and the parser of the storage Secret (storage.go).
package settings

import (
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/odh-platform/odh-platform-operator/pkg/tlsprofile"
)

// Settings are the settings of a namespace. Settings of a Source are shared and must not be changed.
type Settings struct {
	// ServiceName is the name of the Service and the prefix of the Deployments (inferenceServiceName).
	ServiceName string
	// ServicePort is the port for model management and gRPC inference (inferenceServicePort).
	ServicePort int32
	// HeadlessService creates the Service without a cluster IP.
	HeadlessService bool
	// PodsPerRuntime is the replica count of runtimes that set none.
	PodsPerRuntime int32
	// GRPCMaxMessageSizeBytes limits gRPC messages; 0 selects the default of each program.
	GRPCMaxMessageSizeBytes int64
	TLS                     TLS
	// EnableAccessLogging logs each inference request.
	EnableAccessLogging bool
	// ModelMeshImage and ModelMeshResources are those of container mm.
	ModelMeshImage     Image
	ModelMeshResources corev1.ResourceRequirements
	RESTProxy          RESTProxy
	// StorageHelper configures the puller, and image and resources of built-in adapters.
	StorageHelper StorageHelper
	// StorageSecretName is the Secret with the storage entries, EtcdSecretName the Secret with the etcd connection.
	StorageSecretName, EtcdSecretName string
	// ServiceAccountName is the service account of runtime pods; empty if not set.
	ServiceAccountName string
	Metrics            Metrics
	ScaleToZero        ScaleToZero
	// RuntimePodLabels and RuntimePodAnnotations are added to runtime pods.
	RuntimePodLabels, RuntimePodAnnotations map[string]string
	ImagePullSecrets                        []corev1.LocalObjectReference
	// AllowAnyPVC mounts PersistentVolumeClaims that models refer to.
	AllowAnyPVC bool
	// AllowNamespaceEtcd allows a namespace to use its own etcd.
	AllowNamespaceEtcd bool
	// EtcdUserPerNamespace creates an etcd user per namespace with access to the keys of that namespace only.
	EtcdUserPerNamespace bool
	// BuiltInServerTypes are the server types with a built-in adapter.
	BuiltInServerTypes []string
	// PayloadProcessors are the URIs to which payloads are sent.
	PayloadProcessors []string
	// InternalModelMeshEnvVars are variables of container mm.
	InternalModelMeshEnvVars []corev1.EnvVar
	// ModelMeshEndpoint replaces the address of the Service for connections of the operator; empty if not set.
	ModelMeshEndpoint string
	// RuntimeArchitectures are the node architectures for runtime pods; empty for any.
	RuntimeArchitectures []string
	AuthProxy            AuthProxy
	// NetworkPolicyEnabled creates a NetworkPolicy for runtime pods (networkPolicy.enabled). NetworkPolicyRestricted blocks gRPC and REST from
	// other namespaces, except for the operator and routers (networkPolicy.restricted).
	NetworkPolicyEnabled, NetworkPolicyRestricted bool
}

// TLS configures the encryption of traffic. It is disabled if SecretName is empty.
type TLS struct {
	SecretName string
	// ClientAuth is empty, optional or require; ModelMesh gets any other value unchanged.
	ClientAuth string
}

// Enabled reports whether traffic is encrypted.
func (t TLS) Enabled() bool { return t.SecretName != "" }

// RESTProxy is the container that serves REST.
type RESTProxy struct {
	Enabled    bool
	Port       int32
	SkipVerify bool
	Image      Image
	Resources  corev1.ResourceRequirements
}

// StorageHelper is the container that fetches models.
type StorageHelper struct {
	Image     Image
	Command   []string
	Resources corev1.ResourceRequirements
}

// Metrics configures the metrics of the runtime pods.
type Metrics struct {
	Enabled bool
	Port    int32
	// Scheme is http or https.
	Scheme string
	// DisablePrometheusOperatorSupport omits the ServiceMonitor.
	DisablePrometheusOperatorSupport bool
}

// ScaleToZero scales runtimes without models to zero.
type ScaleToZero struct {
	Enabled     bool
	GracePeriod time.Duration
}

// Modes of the authentication proxy.
const (
	// AuthProxyAuto enables it on OpenShift only.
	AuthProxyAuto = "auto"
	// AuthProxyAlways enables it outside OpenShift too, with kube-rbac-proxy.
	AuthProxyAlways = "always"
	// AuthProxyNever disables it.
	AuthProxyNever = "never"
)

// AuthProxy is the sidecar that authenticates REST requests.
type AuthProxy struct {
	// Mode is AuthProxyAuto, AuthProxyAlways or AuthProxyNever.
	Mode string
	// Image is the OAuth proxy of OpenShift, RBACImage kube-rbac-proxy.
	Image, RBACImage Image
	Resources        corev1.ResourceRequirements
	// TLS is the TLS profile of kube-rbac-proxy.
	TLS tlsprofile.Profile
	// ExtraArgs are appended to the arguments.
	ExtraArgs []string
}

// clone copies the maps that Read changes in place.
func (s Settings) clone() Settings {
	for _, r := range resourcesOf(&s) {
		*r = *r.DeepCopy()
	}
	s.RuntimePodLabels, s.RuntimePodAnnotations = maps.Clone(s.RuntimePodLabels), maps.Clone(s.RuntimePodAnnotations)
	return s
}

// resourcesOf returns the resource requirements of all ModelMesh containers.
func resourcesOf(s *Settings) []*corev1.ResourceRequirements {
	return []*corev1.ResourceRequirements{&s.ModelMeshResources, &s.RESTProxy.Resources, &s.StorageHelper.Resources, &s.AuthProxy.Resources}
}

// Names that installations depend on.
const (
	// DefaultServiceName is the default name of the Service.
	DefaultServiceName = "modelmesh-serving"
	// DefaultEtcdSecret is the default name of the Secret with the etcd connection.
	DefaultEtcdSecret = "model-serving-etcd"
	// DefaultStorageSecret is the default name of the Secret with the storage entries.
	DefaultStorageSecret = "storage-config"
)

// The OAuth proxy image of Open Data Hub.
const (
	oauthProxyName   = "registry.redhat.io/openshift4/ose-oauth-proxy-rhel9"
	oauthProxyDigest = "sha256:d3056b35d9a205b9f2c48d924f199c5ac23904eb18d526e4bff229e7c7181415"
)

// Default returns the settings without any document. They equal the ConfigMap of defaults of the legacy controller's installation.
func Default() Settings {
	s := builtIn()
	s.HeadlessService, s.RESTProxy.Enabled, s.Metrics.Enabled = true, true, true
	return s
}

// builtIn returns the settings into which a document of defaults is merged. As in the legacy controller, three features that its
// installed defaults enable are disabled here, so that a document without their keys disables them.
func builtIn() Settings {
	return Settings{
		ServiceName: DefaultServiceName, ServicePort: 8033, PodsPerRuntime: 2, GRPCMaxMessageSizeBytes: 16 << 20,
		ModelMeshImage:     Image{Name: "kserve/modelmesh", Tag: "latest"},
		ModelMeshResources: resources("300m", "448Mi", "3", "448Mi"),
		RESTProxy: RESTProxy{Port: 8008, Image: Image{Name: "kserve/rest-proxy", Tag: "latest"},
			Resources: resources("50m", "96Mi", "1", "512Mi")},
		StorageHelper: StorageHelper{Image: Image{Name: "kserve/modelmesh-runtime-adapter", Tag: "latest"},
			Command: []string{"/opt/app/puller"}, Resources: resources("50m", "96Mi", "2", "512Mi")},
		StorageSecretName: DefaultStorageSecret, EtcdSecretName: DefaultEtcdSecret,
		Metrics:              Metrics{Port: 2112, Scheme: "https"},
		ScaleToZero:          ScaleToZero{Enabled: true, GracePeriod: time.Minute},
		BuiltInServerTypes:   []string{"mlserver", "triton", "ovms", "torchserve"},
		RuntimeArchitectures: []string{"amd64", "arm64", "s390x"},
		AuthProxy: AuthProxy{Mode: AuthProxyAuto, Image: Image{Name: oauthProxyName, Digest: oauthProxyDigest},
			RBACImage: Image{Name: "quay.io/brancz/kube-rbac-proxy", Tag: "v0.19.1"}, Resources: resources("100m", "256Mi", "100m", "256Mi")},
		NetworkPolicyEnabled: true,
	}
}

func resources(cpu, memory, maxCPU, maxMemory string) corev1.ResourceRequirements {
	list := func(cpu, memory string) corev1.ResourceList {
		return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory)}
	}
	return corev1.ResourceRequirements{Requests: list(cpu, memory), Limits: list(maxCPU, maxMemory)}
}

// Package settings holds the settings of the component modelmesh: their types and defaults, the reading of the documents
// that administrators and namespaces write, the source that follows these documents live, and the reading of the Secrets that
// describe etcd, TLS and model storage.
package settings

import (
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/odh-platform/odh-platform-operator/pkg/tlsprofile"
)

// Settings are the settings of one namespace. A value that came from a Source is shared: what it refers to must not be changed.
type Settings struct {
	// ServiceName is the name of the Service and the prefix of the Deployments (inferenceServiceName).
	ServiceName string
	// ServicePort is where models are managed and answer gRPC (inferenceServicePort).
	ServicePort int32
	// HeadlessService gives the Service no address of its own.
	HeadlessService bool
	// PodsPerRuntime is the number of replicas of runtimes that name none.
	PodsPerRuntime int32
	// GRPCMaxMessageSizeBytes bounds messages; 0 leaves the default of the programs in force.
	GRPCMaxMessageSizeBytes int64
	TLS                     TLS
	// EnableAccessLogging logs each inference.
	EnableAccessLogging bool
	// ModelMeshImage and ModelMeshResources are those of container mm.
	ModelMeshImage     Image
	ModelMeshResources corev1.ResourceRequirements
	RESTProxy          RESTProxy
	// StorageHelper is the puller, and the image and resources of built-in adapters.
	StorageHelper StorageHelper
	// StorageSecretName names the Secret with the storage entries, EtcdSecretName the one that says where etcd is.
	StorageSecretName, EtcdSecretName string
	// ServiceAccountName is the account of runtime pods; "" where none is named.
	ServiceAccountName string
	Metrics            Metrics
	ScaleToZero        ScaleToZero
	// RuntimePodLabels and RuntimePodAnnotations go onto runtime pods.
	RuntimePodLabels, RuntimePodAnnotations map[string]string
	ImagePullSecrets                        []corev1.LocalObjectReference
	// AllowAnyPVC mounts the claims that models name.
	AllowAnyPVC bool
	// AllowNamespaceEtcd lets a namespace bring an etcd of its own, which the manager reads.
	AllowNamespaceEtcd bool
	// EtcdUserPerNamespace gives the pods of each namespace a user of etcd that reaches the keys of the namespace only.
	EtcdUserPerNamespace bool
	// BuiltInServerTypes are the adapters that runtimes may ask for.
	BuiltInServerTypes []string
	// PayloadProcessors are the URIs that payloads are sent to.
	PayloadProcessors []string
	// InternalModelMeshEnvVars are variables of container mm.
	InternalModelMeshEnvVars []corev1.EnvVar
	// ModelMeshEndpoint takes the place of the address of the Service for the manager's own calls; "" is none.
	ModelMeshEndpoint string
	// RuntimeArchitectures are the node architectures that runtime pods may run on; none is any.
	RuntimeArchitectures []string
	AuthProxy            AuthProxy
	// NetworkPolicy guards the pods of runtimes (networkPolicy.enabled). Of other namespaces, NetworkPolicyRestricted lets
	// only the manager and the routers reach gRPC and REST (networkPolicy.restricted).
	NetworkPolicy, NetworkPolicyRestricted bool
}

// TLS of the Service; off while SecretName is "".
type TLS struct {
	SecretName string
	// ClientAuth is handed to the programs: "", optional or require.
	ClientAuth string
}

// Enabled tells whether traffic is encrypted.
func (t TLS) Enabled() bool { return t.SecretName != "" }

// RESTProxy answers REST beside container mm.
type RESTProxy struct {
	Enabled    bool
	Port       int32
	SkipVerify bool
	Image      Image
	Resources  corev1.ResourceRequirements
}

// StorageHelper fetches models.
type StorageHelper struct {
	Image     Image
	Command   []string
	Resources corev1.ResourceRequirements
}

// Metrics of the runtime pods.
type Metrics struct {
	Enabled bool
	Port    int32
	// Scheme is http or https.
	Scheme string
	// DisablePrometheusOperatorSupport leaves out the ServiceMonitor.
	DisablePrometheusOperatorSupport bool
}

// ScaleToZero takes runtimes down that no model needs.
type ScaleToZero struct {
	Enabled     bool
	GracePeriod time.Duration
}

// When an authentication proxy stands before the REST proxy.
const (
	// AuthProxyAuto is on OpenShift only.
	AuthProxyAuto = "auto"
	// AuthProxyAlways uses kube-rbac-proxy where there is no OpenShift.
	AuthProxyAlways = "always"
	// AuthProxyNever leaves it out everywhere.
	AuthProxyNever = "never"
)

// AuthProxy guards REST.
type AuthProxy struct {
	// Mode is one of the constants above.
	Mode string
	// Image is the OAuth proxy of OpenShift, RBACImage kube-rbac-proxy.
	Image, RBACImage Image
	Resources        corev1.ResourceRequirements
	// TLS is the profile of kube-rbac-proxy.
	TLS tlsprofile.Profile
	// ExtraArgs are appended to the arguments.
	ExtraArgs []string
}

// clone returns settings that share nothing that reading changes in place.
func (s Settings) clone() Settings {
	for _, r := range resourcesOf(&s) {
		*r = *r.DeepCopy()
	}
	s.RuntimePodLabels, s.RuntimePodAnnotations = maps.Clone(s.RuntimePodLabels), maps.Clone(s.RuntimePodAnnotations)
	return s
}

// resourcesOf are the resources of all containers of ours.
func resourcesOf(s *Settings) []*corev1.ResourceRequirements {
	return []*corev1.ResourceRequirements{&s.ModelMeshResources, &s.RESTProxy.Resources, &s.StorageHelper.Resources, &s.AuthProxy.Resources}
}

// Names that installations rely on.
const (
	// DefaultServiceName is the name of the Service where no other is named.
	DefaultServiceName = "modelmesh-serving"
	// DefaultEtcdSecret is the name of the Secret that says where etcd is.
	DefaultEtcdSecret = "model-serving-etcd"
	// DefaultStorageSecret is the name of the Secret with the storage entries.
	DefaultStorageSecret = "storage-config"
)

// Image of the OAuth proxy that the Open Data Hub put into runtime pods.
const oauthProxyName, oauthProxyDigest = "registry.redhat.io/openshift4/ose-oauth-proxy-rhel9",
	"sha256:d3056b35d9a205b9f2c48d924f199c5ac23904eb18d526e4bff229e7c7181415"

// Default returns the settings that hold without any document: those of the ConfigMap of defaults that the original
// installs.
func Default() Settings {
	s := builtIn()
	s.HeadlessService, s.RESTProxy.Enabled, s.Metrics.Enabled = true, true, true
	return s
}

// builtIn is what a document of defaults is read over. The original's program had three switches off that its shipped document
// turns on: a document that leaves them out means off. What that program had no value for has the shipped one.
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
		NetworkPolicy: true,
	}
}

func resources(cpu, memory, maxCPU, maxMemory string) corev1.ResourceRequirements {
	list := func(cpu, memory string) corev1.ResourceList {
		return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory)}
	}
	return corev1.ResourceRequirements{Requests: list(cpu, memory), Limits: list(maxCPU, maxMemory)}
}

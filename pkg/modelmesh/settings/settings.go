package settings

import (
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
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

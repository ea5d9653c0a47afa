package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Kind is the kind of the configuration file.
const Kind = "PlatformOperatorConfiguration"

// GroupVersion is the group and version of the configuration file.
var GroupVersion = schema.GroupVersion{Group: "config.platform.opendatahub.io", Version: "v1alpha1"}

// PlatformOperatorConfiguration is the content of the file that --config names.
// An absent key leaves the environment or the default in force.
//
// +kubebuilder:object:root=true
type PlatformOperatorConfiguration struct {
	metav1.TypeMeta `json:",inline"`

	// Components lists what runs: a name switches a component on, a leading "-" switches it off, and "*" stands
	// for every component that is on by default. Example: ["*", "-appwrapper"]. Default: ["*"].
	// +optional
	Components []string `json:"components,omitempty"`

	// Namespace is where operands live (the applications namespace): a DNS label.
	// Default: POD_NAMESPACE, else "opendatahub".
	// +optional
	Namespace string `json:"namespace,omitempty"`

	// LeaderElection decides which of several replicas reconciles.
	// +optional
	LeaderElection *LeaderElection `json:"leaderElection,omitempty"`

	// Metrics is the listener for Prometheus.
	// +optional
	Metrics *Metrics `json:"metrics,omitempty"`

	// Health is the listener for liveness and readiness probes.
	// +optional
	Health *Health `json:"health,omitempty"`

	// Webhook is the listener for admission and conversion. It starts only when an enabled component needs it.
	// +optional
	Webhook *Webhook `json:"webhook,omitempty"`

	// Admission says what authors of custom resources may make pods use.
	// +optional
	Admission *Admission `json:"admission,omitempty"`

	// Exposure says how servers are published where OpenShift has no Routes.
	// +optional
	Exposure *Exposure `json:"exposure,omitempty"`

	// Logging sets what is logged and how.
	// +optional
	Logging *Logging `json:"logging,omitempty"`

	// MLflow holds the settings of the component mlflow.
	// +optional
	MLflow *MLflow `json:"mlflow,omitempty"`

	// AppWrapper holds the settings of the component appwrapper.
	// +optional
	AppWrapper *AppWrapper `json:"appwrapper,omitempty"`

	// ModelRegistry holds the settings of the component modelregistry.
	// +optional
	ModelRegistry *ModelRegistry `json:"modelregistry,omitempty"`

	// ModelCatalog holds the settings of the component modelcatalog, which shares namespace, domains, gateway and the images of
	// server, proxy and database with modelregistry.
	// +optional
	ModelCatalog *ModelCatalog `json:"modelcatalog,omitempty"`

	// RayCluster holds the settings of the component raycluster.
	// +optional
	RayCluster *RayCluster `json:"raycluster,omitempty"`

	// ModelMesh holds the settings of the component modelmesh.
	// +optional
	ModelMesh *ModelMesh `json:"modelmesh,omitempty"`
}

// LeaderElection configures the Lease that the replicas compete for. The default durations are those that
// OpenShift recommends: an API server that is away for a minute costs no manager the leadership.
type LeaderElection struct {
	// Enabled switches leader election on. Default: true.
	// +optional
	Enabled *bool `json:"enabled,omitempty"`

	// Namespace of the Lease. Default: the namespace that the manager runs in (POD_NAMESPACE, else the mounted
	// service account's namespace, else the operand namespace).
	// +optional
	Namespace string `json:"namespace,omitempty"`

	// LeaseDuration is how long a silent leader is left in office, as a Go duration. Default: 137s.
	// +optional
	LeaseDuration *metav1.Duration `json:"leaseDuration,omitempty"`

	// RenewDeadline is how long the leader tries to renew before it gives up, as a Go duration; shorter than
	// leaseDuration. Default: 107s.
	// +optional
	RenewDeadline *metav1.Duration `json:"renewDeadline,omitempty"`

	// RetryPeriod is the pause between two attempts, as a Go duration; shorter than renewDeadline. Default: 26s.
	// +optional
	RetryPeriod *metav1.Duration `json:"retryPeriod,omitempty"`
}

// Admission says what authors of custom resources may make pods use.
type Admission struct {
	// AuthorChecks says what happens to new accounts, Secrets, images and pod fields that the author of a custom resource
	// may not use: "Enforce" refuses them, "Warn" lets them pass with a warning, "Off" lets them pass. What belongs to the manager is
	// refused in any case. Default: "Enforce".
	// +optional
	AuthorChecks string `json:"authorChecks,omitempty"`

	// PodSecurityLevel is the Pod Security level that custom resources may ask for: "privileged", "baseline" or "restricted".
	// Default: "baseline".
	// +optional
	PodSecurityLevel string `json:"podSecurityLevel,omitempty"`
}

// Exposure says how servers are published where OpenShift has no Routes.
type Exposure struct {
	// Kind is "auto" (MLflow by an HTTPRoute, Ray dashboards by Ingresses below raycluster.ingressDomain, registries, the catalog and models
	// of ModelMesh not at all), "gateway" (all by HTTPRoutes) or "ingress" (all by Ingresses). Default: EXPOSURE, else "auto".
	// +optional
	Kind string `json:"kind,omitempty"`

	// IngressClass is the class of Ingresses. Default: INGRESS_CLASS, else the default class of the cluster.
	// +optional
	IngressClass string `json:"ingressClass,omitempty"`

	// IngressDomain is the domain of the hosts of Ingresses. Default: INGRESS_DOMAIN.
	// +optional
	IngressDomain string `json:"ingressDomain,omitempty"`

	// IngressAnnotations are the annotations of Ingresses, each as key=value. Default: INGRESS_ANNOTATIONS.
	// +optional
	IngressAnnotations []string `json:"ingressAnnotations,omitempty"`
}

// Metrics configures the listener that serves /metrics.
type Metrics struct {
	// BindAddress is host:port or :port; "0" switches the listener off. Default: "0".
	// +optional
	BindAddress string `json:"bindAddress,omitempty"`

	// Secure serves HTTPS and asks the API server who the caller is and whether it may get /metrics. Default: true.
	// +optional
	Secure *bool `json:"secure,omitempty"`

	// CertPath is the directory with the serving certificate. Default: empty, a self-signed certificate is made.
	// +optional
	CertPath string `json:"certPath,omitempty"`

	// CertName is the file name of the certificate in certPath. Default: "tls.crt".
	// +optional
	CertName string `json:"certName,omitempty"`

	// CertKey is the file name of the private key in certPath. Default: "tls.key".
	// +optional
	CertKey string `json:"certKey,omitempty"`
}

// Health configures the listener that serves /healthz and /readyz.
type Health struct {
	// BindAddress is host:port or :port; "0" switches the listener off. Default: ":8081".
	// +optional
	BindAddress string `json:"bindAddress,omitempty"`
}

// WebhookMode says where the serving certificate of the webhook server comes from.
//
// +kubebuilder:validation:Enum=auto;mounted;self
type WebhookMode string

const (
	// WebhookModeAuto takes the mounted certificate where there is one and issues its own otherwise.
	WebhookModeAuto WebhookMode = "auto"
	// WebhookModeMounted insists on the certificate in certDir (OLM, service-ca, cert-manager).
	WebhookModeMounted WebhookMode = "mounted"
	// WebhookModeSelf always issues its own certificate and keeps it in a Secret.
	WebhookModeSelf WebhookMode = "self"
)

// Webhook configures the admission and conversion server.
type Webhook struct {
	// Port of the listener, 1 to 65535. Default: 9443.
	// +optional
	Port int32 `json:"port,omitempty"`

	// CertDir is the directory in which a mounted certificate (tls.crt, tls.key) is looked for.
	// Default: k8s-webhook-server/serving-certs in the temporary directory, where OLM mounts it.
	// +optional
	CertDir string `json:"certDir,omitempty"`

	// Mode says where the serving certificate comes from: auto, mounted or self. Default: auto.
	// +optional
	Mode WebhookMode `json:"mode,omitempty"`
}

// Logging sets what the zap logger writes. The values are those of the --zap-* flags.
type Logging struct {
	// Level is debug, info, error, panic, or a number above 0 for more detail. Default: info.
	// +optional
	Level string `json:"level,omitempty"`

	// Development switches to readable lines, the debug level and more stack traces. Default: false.
	// +optional
	Development *bool `json:"development,omitempty"`

	// Encoder is json or console. Default: json.
	// +optional
	Encoder string `json:"encoder,omitempty"`

	// StacktraceLevel is info, error or panic: from here on a stack trace is written. Default: error.
	// +optional
	StacktraceLevel string `json:"stacktraceLevel,omitempty"`

	// TimeEncoding is epoch, millis, nanos, iso8601, rfc3339 or rfc3339nano. Default: rfc3339.
	// +optional
	TimeEncoding string `json:"timeEncoding,omitempty"`
}

// MLflow holds the settings of the component mlflow.
type MLflow struct {
	// Image runs MLflow wherever a custom resource names none.
	// Default: RELATED_IMAGE_ODH_MLFLOW_IMAGE, else MLFLOW_IMAGE; one of the three must be set.
	// +optional
	Image string `json:"image,omitempty"`

	// GatewayName is the Gateway that HTTPRoutes attach to. Default: MLFLOW_GATEWAY_NAME, else GATEWAY_NAME, else "data-science-gateway".
	// +optional
	GatewayName string `json:"gatewayName,omitempty"`

	// GatewayNamespace is the namespace of that Gateway. Default: MLFLOW_GATEWAY_NAMESPACE, else "openshift-ingress".
	// +optional
	GatewayNamespace string `json:"gatewayNamespace,omitempty"`

	// URL is the external base URL without a path, for links and status. Default: MLFLOW_URL.
	// Empty and the two shipped placeholders mean that there is none.
	// +optional
	URL string `json:"url,omitempty"`

	// SectionTitle is the section of the OpenShift console's application menu.
	// Default: SECTION_TITLE, else "MLflow".
	// +optional
	SectionTitle string `json:"sectionTitle,omitempty"`

	// ResourceNamePrefix stands before the names of the aggregated ClusterRoles and equals the name prefix of the
	// installation. Default: RESOURCE_NAME_PREFIX, else "mlflow-operator-".
	// +optional
	ResourceNamePrefix string `json:"resourceNamePrefix,omitempty"`

	// NamespaceRBAC lets the groups of the platform's Auth resource into the namespaces that carry the label
	// opendatahub.io/global-mlflow-workspace. Default: ENABLE_NAMESPACE_RBAC, else false.
	// +optional
	NamespaceRBAC *bool `json:"namespaceRBAC,omitempty"`
}

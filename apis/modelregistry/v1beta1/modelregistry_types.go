package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/odh-platform/odh-platform-operator/apis/server"
)

// Kind is the kind of a ModelRegistry.
const Kind = "ModelRegistry"

// Finalizer keeps a ModelRegistry until its objects outside of its namespace are deleted.
const Finalizer = "modelregistry.opendatahub.io/finalizer"

// ServiceRoute determines whether a Route or Ingress is created.
//
// +kubebuilder:validation:Enum=disabled;enabled
type ServiceRoute string

const (
	// RouteDisabled creates no Route or Ingress.
	RouteDisabled ServiceRoute = "disabled"
	// RouteEnabled creates a Route or Ingress.
	RouteEnabled ServiceRoute = "enabled"
)

// Default ports.
const (
	DefaultRESTPort     int32 = 8080
	DefaultGRPCPort     int32 = 9090
	DefaultPostgresPort int32 = 5432
	DefaultMySQLPort    int32 = 3306
	DefaultProxyPort    int32 = 8443
	DefaultRoutePort    int32 = 443
)

// ModelRegistry describes a Model Registry server, its database, and how it is published.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Namespaced,shortName=mr,categories=odh
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.replicas,selectorpath=.status.selector
// +kubebuilder:storageversion
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Available",type=string,JSONPath=`.status.conditions[?(@.type=="Available")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="KubeRBACProxy",type=string,priority=2,JSONPath=`.status.conditions[?(@.type=="KubeRBACProxyAvailable")].status`
// +kubebuilder:printcolumn:name="Status",type=string,priority=2,JSONPath=`.status.conditions[?(@.type=="Available")].message`
// +kubebuilder:printcolumn:name="Hosts",type=string,priority=2,JSONPath=`.status.hostsStr`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
type ModelRegistry struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec defines the desired state of the registry. A change that affects the pod template, such as another image or
	// database, restarts the server. So does a change to a Secret or ConfigMap that the database settings reference.
	// +optional
	Spec ModelRegistrySpec `json:"spec,omitzero"`

	// status is the most recently observed state of the registry.
	// +optional
	Status ModelRegistryStatus `json:"status,omitzero"`
}

// ConditionsRef returns a pointer to the conditions in the status.
func (m *ModelRegistry) ConditionsRef() *[]metav1.Condition { return &m.Status.Conditions }

// ObserveGeneration sets status.observedGeneration to the current generation.
func (m *ModelRegistry) ObserveGeneration() { m.Status.ObservedGeneration = m.Generation }

// ModelRegistryList is a list of ModelRegistry objects.
//
// +kubebuilder:object:root=true
type ModelRegistryList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ModelRegistry `json:"items"`
}

// ModelRegistrySpec defines the desired state of a registry. It requires a database: postgres or mysql.
//
// +kubebuilder:validation:XValidation:rule="!(has(self.oauthProxy) && has(self.kubeRBACProxy))",message="Cannot use both oauthProxy and kubeRBACProxy"
type ModelRegistrySpec struct {
	// rest configures the REST server.
	// +required
	Rest RestSpec `json:"rest"`

	// grpc has no effect. It is accepted for compatibility with older objects.
	// +optional
	GRPC *GRPCSpec `json:"grpc,omitempty"`

	// postgres configures a PostgreSQL database: an existing database, or a database that the operator runs. It takes
	// precedence over mysql.
	// +optional
	Postgres *PostgresConfig `json:"postgres,omitempty"`

	// mysql configures an existing MySQL or MariaDB database.
	// +optional
	MySQL *MySQLConfig `json:"mysql,omitempty"`

	// enable_database_upgrade has no effect. It is accepted for compatibility with older objects.
	// +optional
	EnableDatabaseUpgrade *bool `json:"enable_database_upgrade,omitempty"`

	// downgrade_db_schema_version has no effect. It is accepted for compatibility with older objects.
	// +optional
	DowngradeDbSchemaVersion *int64 `json:"downgrade_db_schema_version,omitempty"`

	// oauthProxy is the legacy name of kubeRBACProxy. The operator moves its fields to kubeRBACProxy, except for image.
	// +optional
	OAuthProxy *ProxyConfig `json:"oauthProxy,omitempty"`

	// kubeRBACProxy runs a proxy in front of the server. The proxy authenticates clients and accepts only those that are
	// allowed to get the Service of the registry. Without a proxy, every client that can reach the Service can read and
	// write. On OpenShift, every registry has a proxy.
	// +optional
	KubeRBACProxy *ProxyConfig `json:"kubeRBACProxy,omitempty"`

	server.Pods `json:",inline"`
}

// RestSpec configures the REST server.
type RestSpec struct {
	// port is the port of the server container, and of the Service if there is no proxy. Defaults to 8080. A change
	// restarts the server pods.
	// +optional
	// +kubebuilder:default=8080
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	Port *int32 `json:"port,omitempty"`

	// serviceRoute creates the Route N-http for a registry N on OpenShift if enabled. Defaults to disabled. With a proxy,
	// the Route leads to the proxy and redirects HTTP to HTTPS. A change does not restart pods.
	// +optional
	// +kubebuilder:default=disabled
	ServiceRoute ServiceRoute `json:"serviceRoute,omitempty"`

	// resources are the compute resources of the server container. Defaults to requests of 100m CPU and 256Mi of memory
	// and a limit of 256Mi of memory. The field claims is ignored. A change restarts the server pods.
	// +optional
	Resources *corev1.ResourceRequirements `json:"resources,omitempty"`

	// image is the image of the registry server. Defaults to the image that is configured for the operator. A change
	// restarts the server pods.
	// +optional
	Image string `json:"image,omitempty"`
}

// GRPCSpec has no effect. It is accepted for compatibility with older objects.
type GRPCSpec struct {
	// port has no effect.
	// +optional
	// +kubebuilder:default=9090
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=65535
	Port *int32 `json:"port,omitempty"`

	// resources has no effect.
	// +optional
	Resources *corev1.ResourceRequirements `json:"resources,omitempty"`

	// image has no effect.
	// +optional
	Image string `json:"image,omitempty"`
}

// ModelRegistryStatus is the most recently observed state of a registry.
type ModelRegistryStatus struct {
	// observedGeneration is the most recent generation that the operator has reconciled.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// hosts lists the host names of the server, the most public first. An external host is not listed while a Gateway or
	// router rejects it. Behind a Gateway, the entry includes a path, for example
	// ai.example.org/model-registry/team.
	// +optional
	// +listType=atomic
	Hosts []string `json:"hosts,omitempty"`

	// hostsStr is the list of hosts as one string, separated by commas.
	// +optional
	HostsStr string `json:"hostsStr,omitempty"`

	// specDefaults is a JSON merge patch with the defaults that the operator applies to the stored spec. The result is the
	// spec that is deployed.
	// +optional
	SpecDefaults string `json:"specDefaults,omitempty"`

	server.Scale `json:",inline"`

	// conditions are the latest observations of the state of the registry. Ready and Available report on the server. Most
	// of the others exist only while something needs attention.
	// +optional
	// +listType=atomic
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/odh-platform/odh-platform-operator/apis/server"
)

// Kind is the kind of a ModelRegistry.
const Kind = "ModelRegistry"

// Finalizer keeps a ModelRegistry until what stands outside of its namespace is gone.
const Finalizer = "modelregistry.opendatahub.io/finalizer"

// ServiceRoute says whether an OpenShift Route is made.
//
// +kubebuilder:validation:Enum=disabled;enabled
type ServiceRoute string

const (
	// RouteDisabled makes no Route.
	RouteDisabled ServiceRoute = "disabled"
	// RouteEnabled makes a Route.
	RouteEnabled ServiceRoute = "enabled"
)

// Ports of a ModelRegistry that names none.
const (
	DefaultRESTPort     int32 = 8080
	DefaultGRPCPort     int32 = 9090
	DefaultPostgresPort int32 = 5432
	DefaultMySQLPort    int32 = 3306
	DefaultProxyPort    int32 = 8443
	DefaultRoutePort    int32 = 443
)

// ModelRegistry is one Model Registry server with its database and its publication.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Namespaced,shortName=mr,categories=odh
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.replicas,selectorpath=.status.selector
// +kubebuilder:storageversion
// +kubebuilder:printcolumn:name="Available",type=string,JSONPath=`.status.conditions[?(@.type=="Available")].status`
// +kubebuilder:printcolumn:name="KubeRBACProxy",type=string,priority=2,JSONPath=`.status.conditions[?(@.type=="KubeRBACProxyAvailable")].status`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
// +kubebuilder:printcolumn:name="Hosts",type=string,priority=2,JSONPath=`.status.hostsStr`
// +kubebuilder:printcolumn:name="Status",type=string,priority=2,JSONPath=`.status.conditions[?(@.type=="Available")].message`
type ModelRegistry struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the wanted server.
	// +optional
	Spec ModelRegistrySpec `json:"spec,omitzero"`

	// status is what was observed last.
	// +optional
	Status ModelRegistryStatus `json:"status,omitzero"`
}

// ConditionsRef gives access to the conditions of the status.
func (m *ModelRegistry) ConditionsRef() *[]metav1.Condition { return &m.Status.Conditions }

// ObserveGeneration records that the present generation was reconciled.
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

// ModelRegistrySpec is the wanted server. It needs a database: postgres, or else mysql.
//
// +kubebuilder:validation:XValidation:rule="!(has(self.oauthProxy) && has(self.kubeRBACProxy))",message="Cannot use both oauthProxy and kubeRBACProxy"
type ModelRegistrySpec struct {
	// rest is the REST server.
	// +required
	Rest RestSpec `json:"rest"`

	// grpc is accepted from older objects and has no effect.
	// +optional
	GRPC *GRPCSpec `json:"grpc,omitempty"`

	// postgres is a PostgreSQL database. It is preferred over mysql.
	// +optional
	Postgres *PostgresConfig `json:"postgres,omitempty"`

	// mysql is a MySQL or MariaDB database.
	// +optional
	MySQL *MySQLConfig `json:"mysql,omitempty"`

	// enable_database_upgrade is accepted from older objects and has no effect.
	// +optional
	EnableDatabaseUpgrade *bool `json:"enable_database_upgrade,omitempty"`

	// downgrade_db_schema_version is accepted from older objects and has no effect.
	// +optional
	DowngradeDbSchemaVersion *int64 `json:"downgrade_db_schema_version,omitempty"`

	// oauthProxy is the older name of kubeRBACProxy, to which its fields are moved.
	// +optional
	OAuthProxy *ProxyConfig `json:"oauthProxy,omitempty"`

	// kubeRBACProxy puts a proxy in front of the server that admits who may read the Service of the registry. On OpenShift
	// there is always one.
	// +optional
	KubeRBACProxy *ProxyConfig `json:"kubeRBACProxy,omitempty"`

	server.Pods `json:",inline"`
}

// RestSpec is the REST server.
type RestSpec struct {
	// port of the container, and of the Service when there is no proxy.
	// +optional
	// +kubebuilder:default=8080
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	Port *int32 `json:"port,omitempty"`

	// serviceRoute makes a Route to the server without a proxy, on OpenShift.
	// +optional
	// +kubebuilder:default=disabled
	ServiceRoute ServiceRoute `json:"serviceRoute,omitempty"`

	// resources of the container. claims are ignored.
	// +optional
	Resources *corev1.ResourceRequirements `json:"resources,omitempty"`

	// image overrides the one that the platform ships.
	// +optional
	Image string `json:"image,omitempty"`
}

// GRPCSpec is accepted from older objects and has no effect.
type GRPCSpec struct {
	// port has no effect.
	// +optional
	// +kubebuilder:default=9090
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=65535
	Port *int32 `json:"port,omitempty"`

	// resources have no effect.
	// +optional
	Resources *corev1.ResourceRequirements `json:"resources,omitempty"`

	// image has no effect.
	// +optional
	Image string `json:"image,omitempty"`
}

// ModelRegistryStatus is what was observed last.
type ModelRegistryStatus struct {
	// observedGeneration is the generation that was processed last.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// hosts by which the server can be reached, the most public one first.
	// +optional
	// +listType=atomic
	Hosts []string `json:"hosts,omitempty"`

	// hostsStr is hosts, joined by commas.
	// +optional
	HostsStr string `json:"hostsStr,omitempty"`

	// specDefaults is a JSON merge patch that makes the spec which is deployed out of the stored one.
	// +optional
	SpecDefaults string `json:"specDefaults,omitempty"`

	server.Scale `json:",inline"`

	// conditions of the registry.
	// +optional
	// +listType=atomic
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

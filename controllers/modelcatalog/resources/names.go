package resources

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	aihubv1alpha1 "github.com/odh-platform/odh-platform-operator/apis/aihub/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/pkg/servers"
)

// ComponentName is the name of the component in flags, labels, metrics and folders.
const ComponentName = "modelcatalog"

// Names of objects, keys and ports. They do not depend on the Catalog, because a cluster has one active Catalog.
const (
	Name         = "model-catalog"
	DatabaseName = "model-catalog-postgres"
	// DatabaseCertificate is the Secret with the certificate of the database.
	DatabaseCertificate = "model-catalog-postgres-tls"

	DefaultSources = "default-catalog-sources"
	ModelSources   = "model-catalog-sources"
	McpSources     = "mcp-catalog-sources"
	AgentSources   = "agent-catalog-sources"
	RuntimeSources = "serving-runtime-catalog-sources"
	SourcesKey     = "sources.yaml"

	ProxyConfig       = "model-catalog-kube-rbac-proxy-config"
	CertificateSecret = "model-catalog-kube-rbac-proxy"
	DelegatorBinding  = "model-catalog-auth-delegator"
	ReadersBinding    = "model-catalog-authenticated"
	AdminName         = "model-catalog-admin"
	AdminBinding      = "model-catalog-admin-binding"
	RouteName         = "model-catalog-https"
	RoutePolicy       = "model-catalog-https-route"
	IngressPolicy     = "model-catalog-ingress"
	EgressPolicy      = "model-catalog-egress"
	DatabaseEgress    = "model-catalog-postgres-egress" // NetworkPolicy
	AuthorityName     = "model-catalog-ca"              // ConfigMap and BackendTLSPolicy
	GrantName         = "allow-gateway-model-catalog"

	serverPort   = 8080
	proxyPort    = 8443
	databasePort = 5432

	PortName      = "http-api"
	httpsPortName = "https-api"

	KeyDatabase = "database-name"
	KeyUser     = "database-user"
	KeyPassword = "database-password"
)

// Labels and annotations of the objects.
const (
	LabelApp       = "app"
	LabelComponent = "component"
	LabelName      = "app.kubernetes.io/name"
	// LabelCreatedBy is on objects of this and the legacy operator.
	LabelCreatedBy = "app.kubernetes.io/created-by"
	CreatedBy      = "model-registry-operator"
	// LabelNamespace is the label with the namespace of the Catalog, on its objects outside of that namespace.
	LabelNamespace = servers.LabelNamespace

	// annotationHuggingFaceKeys is an annotation of the pod template, because a changed API key must restart the pods.
	annotationHuggingFaceKeys = "modelregistry.opendatahub.io/hf-secrets-hash"

	// SourceLabel with SourceLabelValue marks ConfigMaps with additional sources.
	SourceLabel      = "opendatahub.io/catalog-source"
	SourceLabelValue = "true"
)

// Labels returns the labels of an object. component distinguishes objects of the database.
func Labels(component string) map[string]string {
	return map[string]string{
		LabelApp: Name, LabelComponent: component, LabelName: Name,
		"app.kubernetes.io/instance": Name, "app.kubernetes.io/component": component, LabelCreatedBy: CreatedBy,
		"app.kubernetes.io/part-of": Name, "app.kubernetes.io/managed-by": CreatedBy,
	}
}

// Selector returns the selector of the pods of the server or the database.
func Selector(name string) map[string]string {
	return map[string]string{LabelApp: Name, LabelComponent: Name, LabelName: name}
}

func databaseMeta(c *aihubv1alpha1.Catalog, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Namespace: c.Namespace, Labels: Labels(DatabaseName)}
}

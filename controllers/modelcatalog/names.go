package modelcatalog

import "maps"

// Names that other software relies on. There is one catalog in a cluster, so none of them depends on the Catalog.
const (
	baseName     = "model-catalog"
	databaseName = "model-catalog-postgres"

	defaultSources = "default-catalog-sources"
	modelSources   = "model-catalog-sources"
	mcpSources     = "mcp-catalog-sources"
	agentSources   = "agent-catalog-sources"
	sourcesKey     = "sources.yaml"

	proxyConfig       = "model-catalog-kube-rbac-proxy-config"
	certificateSecret = "model-catalog-kube-rbac-proxy"
	delegatorBinding  = "model-catalog-auth-delegator"
	readersBinding    = "model-catalog-authenticated"
	adminName         = "model-catalog-admin"
	adminBinding      = "model-catalog-admin-binding"
	routeName         = "model-catalog-https"
	routePolicy       = "model-catalog-https-route"
	ingressPolicy     = "model-catalog-ingress"
	grantName         = "allow-gateway-model-catalog"

	serverPort   = 8080
	proxyPort    = 8443
	databasePort = 5432

	httpPortName  = "http-api"
	httpsPortName = "https-api"

	keyDatabase = "database-name"
	keyUser     = "database-user"
	keyPassword = "database-password"
)

const (
	labelApp       = "app"
	labelComponent = "component"
	labelName      = "app.kubernetes.io/name"
	// labelCreatedBy marks what this operator and the one before it made.
	labelCreatedBy = "app.kubernetes.io/created-by"
	createdBy      = "model-registry-operator"
	// labelNamespace tells to which namespace an object of cluster scope belongs.
	labelNamespace = "modelregistry.opendatahub.io/namespace"

	annotationDisplayName = "openshift.io/display-name"
	annotationDescription = "openshift.io/description"
	annotationAddress     = "routing.opendatahub.io/external-address-rest"
	annotationServingCert = "service.beta.openshift.io/serving-cert-secret-name"

	// SourceLabel and its value mark ConfigMaps with further sources.
	SourceLabel      = "opendatahub.io/catalog-source"
	sourceLabelValue = "true"
)

// labels are those of every object; component tells the database's from the others.
func labels(component string) map[string]string {
	return map[string]string{
		labelApp: baseName, labelComponent: component, labelName: baseName,
		"app.kubernetes.io/instance": baseName, "app.kubernetes.io/component": component, labelCreatedBy: createdBy,
		"app.kubernetes.io/part-of": baseName, "app.kubernetes.io/managed-by": createdBy,
	}
}

// selector finds the pods of the server, or of the database.
func selector(name string) map[string]string {
	return map[string]string{labelApp: baseName, labelComponent: baseName, labelName: name}
}

func withLabels(component string, more map[string]string) map[string]string {
	all := labels(component)
	maps.Copy(all, more)
	return all
}

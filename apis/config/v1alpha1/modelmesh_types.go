package v1alpha1

// ModelMesh holds what the component modelmesh has to know when it starts. Everything else stands in the ConfigMap
// model-serving-config, which is followed while the manager runs.
type ModelMesh struct {
	// Namespace holds the configuration, the Secret of etcd and the TLS Secret, and is served unless its label says otherwise.
	// Default: NAMESPACE, else the namespace that the manager runs in.
	// +optional
	Namespace string `json:"namespace,omitempty"`

	// NamespaceScope serves that namespace only. Default: NAMESPACE_SCOPE, of which only "true" means yes, else false.
	// +optional
	NamespaceScope *bool `json:"namespaceScope,omitempty"`

	// ControllerDeployment is the Deployment that owns the Service with namespaceScope. Default: CONTROLLER_DEPLOYMENT, else by
	// the name of the pod (POD_NAME), else "modelmesh-controller".
	// +optional
	ControllerDeployment string `json:"controllerDeployment,omitempty"`

	// EtcdSecretName is the Secret that says where etcd is. Default: ETCD_SECRET_NAME, else "model-serving-etcd".
	// +optional
	EtcdSecretName string `json:"etcdSecretName,omitempty"`

	// WatchInferenceServices takes InferenceServices in mode ModelMesh for models, while the cluster serves them. Default:
	// ENABLE_ISVC_WATCH, of which only "false" means no, else true.
	// +optional
	WatchInferenceServices *bool `json:"watchInferenceServices,omitempty"`

	// WatchClusterServingRuntimes uses ClusterServingRuntimes, while the cluster serves them. Default: ENABLE_CSR_WATCH, of which
	// only "false" means no, else true.
	// +optional
	WatchClusterServingRuntimes *bool `json:"watchClusterServingRuntimes,omitempty"`

	// WatchSecrets follows the storage Secrets for the claims that they name. Default: ENABLE_SECRET_WATCH, of which only "false"
	// means no, else true.
	// +optional
	WatchSecrets *bool `json:"watchSecrets,omitempty"`

	// DefaultsFile holds defaults where there is no ConfigMap model-serving-config-defaults. It is read once. Default:
	// MODELMESH_DEFAULTS_FILE, else "/etc/model-serving/config/default/config-defaults.yaml", which need not be there.
	// +optional
	DefaultsFile string `json:"defaultsFile,omitempty"`

	// MonitoringNamespace is where Prometheus runs that may read the namespaces with runtimes. Default: MONITORING_NAMESPACE,
	// else empty: nothing is granted.
	// +optional
	MonitoringNamespace string `json:"monitoringNamespace,omitempty"`

	// Image runs in container mm. It and those below count more than defaults and less than model-serving-config. Default:
	// RELATED_IMAGE_ODH_MODELMESH_IMAGE.
	// +optional
	Image string `json:"image,omitempty"`

	// RESTProxyImage answers REST. Default: RELATED_IMAGE_ODH_MM_REST_PROXY_IMAGE.
	// +optional
	RESTProxyImage string `json:"restProxyImage,omitempty"`

	// RuntimeAdapterImage fetches models and holds the built-in adapters. Default: RELATED_IMAGE_ODH_MODELMESH_RUNTIME_ADAPTER_IMAGE.
	// +optional
	RuntimeAdapterImage string `json:"runtimeAdapterImage,omitempty"`

	// OAuthProxyImage guards REST on OpenShift. Default: RELATED_IMAGE_OSE_OAUTH_PROXY_IMAGE.
	// +optional
	OAuthProxyImage string `json:"oauthProxyImage,omitempty"`

	// KubeRBACProxyImage guards REST elsewhere. Default: RELATED_IMAGE_ODH_KUBE_RBAC_PROXY_IMAGE or KUBE_RBAC_PROXY_IMAGE.
	// +optional
	KubeRBACProxyImage string `json:"kubeRBACProxyImage,omitempty"`
}

package config

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/odh-platform/odh-platform-operator/pkg/tlsprofile"
)

// ModelMesh holds the startup settings of the component modelmesh; see their tags for their meaning. The other settings are in package
// pkg/modelmesh/settings.
type ModelMesh struct {
	// Namespace is the namespace of the ModelMesh configuration, which package modelmesh calls the operator's namespace; never empty.
	Namespace string `env:"NAMESPACE" key:"modelmesh.namespace" parse:"namespace?" help:"namespace with the ModelMesh configuration; default: the namespace of the manager"`
	// NamespaceScope limits the component to that namespace; ControllerDeployment then owns the Service.
	NamespaceScope       bool   `env:"NAMESPACE_SCOPE" key:"modelmesh.namespaceScope" default:"false" parse:"true" help:"serve models only in the namespace of the ModelMesh configuration"`
	ControllerDeployment string `env:"CONTROLLER_DEPLOYMENT" key:"modelmesh.controllerDeployment" parse:"subdomain?" help:"with NAMESPACE_SCOPE: Deployment that owns the Service; default: the one of the pod POD_NAME, else modelmesh-controller"`
	// EtcdSecretName is the Secret with the connection details of etcd.
	EtcdSecretName string `env:"ETCD_SECRET_NAME" key:"modelmesh.etcdSecretName" default:"model-serving-etcd" parse:"subdomain" help:"Secret with the connection details of etcd"`
	// Kinds that are not watched even if they are served.
	IgnoreInferenceServices      bool `env:"ENABLE_ISVC_WATCH" key:"modelmesh.watchInferenceServices" default:"true" parse:"false" help:"serve InferenceServices with deployment mode ModelMesh; if false, ignore them"`
	IgnoreClusterServingRuntimes bool `env:"ENABLE_CSR_WATCH" key:"modelmesh.watchClusterServingRuntimes" default:"true" parse:"false" help:"use ClusterServingRuntimes; if false, ignore them"`
	IgnoreSecrets                bool `env:"ENABLE_SECRET_WATCH" key:"modelmesh.watchSecrets" default:"true" parse:"false" help:"watch storage Secrets for the claims that they name; if false, read them only when something else triggers a reconcile"`
	// DefaultsFile is the path of Defaults, which is "" for a disabled component, or if the file at the default path cannot be read.
	DefaultsFile string `env:"MODELMESH_DEFAULTS_FILE" key:"modelmesh.defaultsFile" default:"/etc/model-serving/config/default/config-defaults.yaml" parse:"required" help:"file with the defaults of the ModelMesh settings, if no ConfigMap contains them"`
	Defaults     string
	// MonitoringNamespace is "" if no Prometheus has access.
	MonitoringNamespace string `env:"MONITORING_NAMESPACE" key:"modelmesh.monitoringNamespace" parse:"namespace?" help:"namespace of the Prometheus that may discover targets in namespaces with runtimes; if empty, none"`
	// TLS is the profile of servers in pods.
	TLS tlsprofile.Profile
	// Images are "" if they are not configured.
	Images ModelMeshImages `section:""`
}

// ModelMeshImages are image references.
type ModelMeshImages struct {
	ModelMesh      string `env:"RELATED_IMAGE_ODH_MODELMESH_IMAGE" key:"modelmesh.image" parse:"image" help:"ModelMesh image"`
	RESTProxy      string `env:"RELATED_IMAGE_ODH_MM_REST_PROXY_IMAGE" key:"modelmesh.restProxyImage" parse:"image" help:"image of the ModelMesh REST proxy"`
	RuntimeAdapter string `env:"RELATED_IMAGE_ODH_MODELMESH_RUNTIME_ADAPTER_IMAGE" key:"modelmesh.runtimeAdapterImage" parse:"image" help:"image of the puller and the runtime adapters"`
	OAuthProxy     string `env:"RELATED_IMAGE_OSE_OAUTH_PROXY_IMAGE" key:"modelmesh.oauthProxyImage" parse:"image" help:"image of the OAuth proxy in front of the REST API on OpenShift"`
	KubeRBACProxy  string `env:"RELATED_IMAGE_ODH_KUBE_RBAC_PROXY_IMAGE KUBE_RBAC_PROXY_IMAGE" key:"modelmesh.kubeRBACProxyImage" parse:"image" help:"image of kube-rbac-proxy in front of the REST API, where the OAuth proxy is not used"`
}

const (
	defaultModelMeshDefaultsFile = "/etc/model-serving/config/default/config-defaults.yaml"
	defaultControllerDeployment  = "modelmesh-controller"
)

// leaderElectType rejects the leader-for-life election of the legacy operator, which never had the permissions for it [M35].
func leaderElectType(raw string) error {
	if strings.TrimSpace(raw) != "lease" {
		return errors.New("must be lease, because leader-for-life election is not supported")
	}
	return nil
}

// resolveModelMesh sets the values that depend on other settings or on variables of the legacy operator, and reads the defaults.
func (c *Config) resolveModelMesh(src sources, read func(string) ([]byte, error)) error {
	m := &c.ModelMesh
	m.Namespace = cmp.Or(m.Namespace, c.OperatorNamespace)
	m.ControllerDeployment = cmp.Or(m.ControllerDeployment, deploymentOf(src.env("POD_NAME")), defaultControllerDeployment)
	_, byFlag := src.flags["zap-devel"]
	_, byFile := src.file["logging.development"]
	if raw := src.env("DEV_MODE_LOGGING"); raw != "" && !isFalse(raw) && !byFlag && !byFile {
		c.Logging.Development = true
	}
	if raw := src.env("ENABLE_PPROF"); raw != "" {
		c.Warnings = append(c.Warnings, fmt.Sprintf("environment variable ENABLE_PPROF %q has no effect: set --pprof, which serves profiles to clients that the API server authorizes", raw))
	}
	if !c.Enabled("modelmesh") {
		return nil
	}
	raw, err := read(m.DefaultsFile)
	if err != nil && m.DefaultsFile != defaultModelMeshDefaultsFile {
		return fmt.Errorf("reading the defaults of ModelMesh: %w: check MODELMESH_DEFAULTS_FILE or modelmesh.defaultsFile, and that the file is mounted", err)
	}
	m.Defaults = string(raw)
	return nil
}

// deploymentOf returns the name of a pod without the suffixes of the ReplicaSet and the pod, or "" if it lacks them.
func deploymentOf(pod string) string {
	for range 2 {
		pod = pod[:max(0, strings.LastIndex(pod, "-"))]
	}
	return pod
}

// isFalse reports whether a boolean is false. It returns false for invalid values.
func isFalse(raw string) bool {
	raw = strings.ToLower(strings.TrimSpace(raw))
	return raw == "false" || raw == "0" || raw == "f" || raw == "no" || raw == "off"
}

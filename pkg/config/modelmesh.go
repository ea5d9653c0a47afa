package config

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/odh-platform/odh-platform-operator/pkg/tlsprofile"
)

// ModelMesh holds the startup settings of the component modelmesh; see modelMeshSettings for their meaning. The other settings are in package
// meshsettings.
type ModelMesh struct {
	// Namespace is the namespace of the configuration; never empty.
	Namespace string
	// NamespaceScope limits the component to that namespace; ControllerDeployment then owns the Service.
	NamespaceScope       bool
	ControllerDeployment string
	// EtcdSecretName is the Secret with the connection details of etcd.
	EtcdSecretName string
	// Kinds that are not watched even if they are served.
	IgnoreInferenceServices, IgnoreClusterServingRuntimes, IgnoreSecrets bool
	// DefaultsFile is the path of the defaults, and Defaults its content; "" if it does not exist.
	DefaultsFile, Defaults string
	// MonitoringNamespace is "" if no Prometheus has access.
	MonitoringNamespace string
	// TLS is the profile of all listeners.
	TLS tlsprofile.Profile
	// Images are "" if they are not configured.
	Images ModelMeshImages
}

// ModelMeshImages are image references.
type ModelMeshImages struct {
	ModelMesh, RESTProxy, RuntimeAdapter, OAuthProxy, KubeRBACProxy string
}

const (
	// DefaultEtcdSecretName is the name in existing installations.
	DefaultEtcdSecretName = "model-serving-etcd"

	modelMeshDefaults           = "/etc/model-serving/config/default/config-defaults.yaml"
	defaultControllerDeployment = "modelmesh-controller"
)

func modelMeshSettings(m *ModelMesh) []setting {
	return []setting{
		{env: []string{"NAMESPACE"}, key: "modelmesh.namespace", set: optional(namespace, &m.Namespace),
			help: "namespace with the ModelMesh configuration; default: the namespace of the manager"},
		{env: []string{"NAMESPACE_SCOPE"}, key: "modelmesh.namespaceScope", defaultValue: "false", valueType: typeBool, set: equals("true", &m.NamespaceScope),
			help: "serve models only in that namespace"},
		{env: []string{"CONTROLLER_DEPLOYMENT"}, key: "modelmesh.controllerDeployment", set: optional(subdomain, &m.ControllerDeployment),
			help: "with NAMESPACE_SCOPE: Deployment that owns the Service; default: the one of the pod POD_NAME, else " + defaultControllerDeployment},
		{env: []string{"ETCD_SECRET_NAME"}, key: "modelmesh.etcdSecretName", defaultValue: DefaultEtcdSecretName,
			set: subdomain(&m.EtcdSecretName), help: "Secret with the connection details of etcd"},
		{env: []string{"ENABLE_ISVC_WATCH"}, key: "modelmesh.watchInferenceServices", defaultValue: "true", valueType: typeBool,
			set: equals("false", &m.IgnoreInferenceServices), help: "serve InferenceServices with deployment mode ModelMesh; if false, ignore them"},
		{env: []string{"ENABLE_CSR_WATCH"}, key: "modelmesh.watchClusterServingRuntimes", defaultValue: "true", valueType: typeBool,
			set: equals("false", &m.IgnoreClusterServingRuntimes), help: "use ClusterServingRuntimes; if false, ignore them"},
		{env: []string{"ENABLE_SECRET_WATCH"}, key: "modelmesh.watchSecrets", defaultValue: "true", valueType: typeBool,
			set: equals("false", &m.IgnoreSecrets), help: "watch storage Secrets for the claims that they name; if false, read them only when something else triggers a reconcile"},
		{env: []string{"MODELMESH_DEFAULTS_FILE"}, key: "modelmesh.defaultsFile", defaultValue: modelMeshDefaults, set: required(&m.DefaultsFile),
			help: "file with the defaults of the ModelMesh settings, if no ConfigMap contains them"},
		{env: []string{"MONITORING_NAMESPACE"}, key: "modelmesh.monitoringNamespace", set: optional(namespace, &m.MonitoringNamespace),
			help: "namespace of the Prometheus that may discover targets in namespaces with runtimes; if empty, none"},
		{flag: "leader-elect-type", defaultValue: "lease", set: leaderElectType,
			help: "type of leader election; only lease is supported"},
	}
}

func modelMeshImages(i *ModelMeshImages) []setting {
	return []setting{
		{env: []string{"RELATED_IMAGE_ODH_MODELMESH_IMAGE"}, key: "modelmesh.image", set: image(&i.ModelMesh), help: "ModelMesh image"},
		{env: []string{"RELATED_IMAGE_ODH_MM_REST_PROXY_IMAGE"}, key: "modelmesh.restProxyImage", set: image(&i.RESTProxy),
			help: "image of the ModelMesh REST proxy"},
		{env: []string{"RELATED_IMAGE_ODH_MODELMESH_RUNTIME_ADAPTER_IMAGE"}, key: "modelmesh.runtimeAdapterImage",
			set: image(&i.RuntimeAdapter), help: "image of the puller and the runtime adapters"},
		{env: []string{"RELATED_IMAGE_OSE_OAUTH_PROXY_IMAGE"}, key: "modelmesh.oauthProxyImage", set: image(&i.OAuthProxy),
			help: "image of the OAuth proxy in front of the REST API on OpenShift"},
		{env: []string{"RELATED_IMAGE_ODH_KUBE_RBAC_PROXY_IMAGE", "KUBE_RBAC_PROXY_IMAGE"}, key: "modelmesh.kubeRBACProxyImage",
			set: image(&i.KubeRBACProxy), help: "image of kube-rbac-proxy in front of the REST API, where the OAuth proxy is not used"},
	}
}

// leaderElectType rejects the leader-for-life election of the legacy operator, which never had the permissions for it [M35].
func leaderElectType(raw string) error {
	if strings.TrimSpace(raw) != "lease" {
		return errors.New("must be lease: a leader for life was dropped")
	}
	return nil
}

// resolveModelMesh sets the values that depend on other settings, and reads the defaults.
func (c *Config) resolveModelMesh(src sources, read func(string) ([]byte, error)) error {
	m := &c.ModelMesh
	m.Namespace = cmp.Or(m.Namespace, c.OperatorNamespace)
	m.ControllerDeployment = cmp.Or(m.ControllerDeployment, deploymentOf(src.env("POD_NAME")), defaultControllerDeployment)
	if raw := src.env("DEV_MODE_LOGGING"); raw != "" && !isFalse(raw) && !src.isSet("zap-devel", "logging.development") {
		c.Logging.Development = true
	}
	if raw := src.env("ENABLE_PPROF"); raw != "" {
		c.Warnings = append(c.Warnings, fmt.Sprintf("environment variable ENABLE_PPROF %q has no effect: set --pprof, which serves profiles to clients that the API server authorizes", raw))
	}
	if !c.Enabled("modelmesh") {
		return nil
	}
	raw, err := read(m.DefaultsFile)
	if err != nil && m.DefaultsFile != modelMeshDefaults {
		return fmt.Errorf("reading the defaults of ModelMesh: %w: check MODELMESH_DEFAULTS_FILE or modelmesh.defaultsFile, and that the file is mounted", err)
	}
	m.Defaults = string(raw)
	return nil
}

// deploymentOf returns the name of a pod without the two suffixes of Deployment and ReplicaSet, "" if it has fewer.
func deploymentOf(pod string) string {
	for range 2 {
		pod = pod[:max(0, strings.LastIndex(pod, "-"))]
	}
	return pod
}

// isSet reports whether the flag or the key of the file is set.
func (s sources) isSet(flag, key string) bool {
	_, byFlag := s.flags[flag]
	_, byFile := s.file[key]
	return byFlag || byFile
}

// isFalse reports whether a switch is false; invalid values are not.
func isFalse(raw string) bool {
	raw = strings.ToLower(strings.TrimSpace(raw))
	return raw == "false" || raw == "0" || raw == "f" || raw == "no" || raw == "off"
}

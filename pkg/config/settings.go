package config

import (
	"flag"
	"os"
	"path/filepath"
	"slices"

	"github.com/odh-platform/odh-platform-operator/pkg/admission"
)

// setting defines the sources, the default and the parser of one setting.
type setting struct {
	flag         string    // name without dashes; "" when only the file and the environment have it
	env          []string  // environment variables in order of precedence
	key          string    // dotted key in the file; "" when the file has no key for it
	defaultValue string    // value without any configuration
	valueType    valueType // of the value in the file
	nullValue    string    // value of an explicit null in the file; otherwise null counts as unset
	itemKeys     []string  // keys of the objects in lists, if the value is an object of lists
	help         string
	set          func(raw string) error
}

// settings returns all settings that Load evaluates.
func settings(c *Config, components []string) []setting {
	return slices.Concat(processSettings(c), listenerSettings(c), authorSettings(&c.Authors), exposureSettings(&c.Exposure), mlflowSettings(c),
		registrySettings(&c.ModelRegistry), catalogSettings(&c.ModelRegistry), modelMeshSettings(&c.ModelMesh), modelMeshImages(&c.ModelMesh.Images),
		loggingSettings(c), componentSettings(components))
}

// componentSections returns the settings that legacy ConfigMaps may also contain. They are evaluated by Config.AppWrapper and
// Config.RayCluster.
func componentSections() []setting {
	return append(rayClusterSettings(&RayCluster{}, defaultGateway), appWrapperSettings(&AppWrapper{})...)
}

func processSettings(c *Config) []setting {
	le := &c.LeaderElection
	return []setting{
		{flag: "config", set: discard, help: "configuration file, a " + fileKind},
		{flag: "kubeconfig", set: text(&c.Kubeconfig), help: "kubeconfig file; default: KUBECONFIG, else the ServiceAccount of the pod, else ~/.kube/config"},
		{flag: "namespace", env: []string{"POD_NAMESPACE"}, key: "namespace", defaultValue: "opendatahub",
			set: text(&c.Namespace), help: "namespace of the manager, in which MLflow runs"},
		{env: []string{"ODH_MODULE_OPERATOR_PLATFORM_TYPE"}, key: "platform.type", set: text(&c.PlatformType),
			help: "product that runs this operator, for status.distribution of an AIHub and MLflowOperator; the platform operator sets it"},
		{flag: "leader-elect", key: "leaderElection.enabled", defaultValue: "true", valueType: typeBool,
			set: boolean(&le.Enabled), help: "elect one replica that reconciles"},
		{flag: "leader-election-namespace", key: "leaderElection.namespace", set: text(&le.Namespace),
			help: "namespace of the Lease; default: the namespace of the manager"},
		{flag: "leader-elect-lease-duration", key: "leaderElection.leaseDuration", defaultValue: "15s",
			set: duration(&le.LeaseDuration), help: "how long other replicas wait for a leader that no longer renews its Lease; the manifests for OpenShift set 137s"},
		{flag: "leader-elect-renew-deadline", key: "leaderElection.renewDeadline", defaultValue: "10s",
			set: duration(&le.RenewDeadline), help: "how long the leader tries to renew its Lease before it gives up; on OpenShift 107s"},
		{flag: "leader-elect-retry-period", key: "leaderElection.retryPeriod", defaultValue: "2s",
			set: duration(&le.RetryPeriod), help: "pause between two renewals of the Lease; on OpenShift 26s"},
	}
}

func listenerSettings(c *Config) []setting {
	m, w := &c.Metrics, &c.Webhook
	// OLM mounts webhook certificates here. It is also the default of controller-runtime.
	certDir := filepath.Join(os.TempDir(), "k8s-webhook-server", "serving-certs")
	return []setting{
		{flag: "metrics-bind-address", key: "metrics.bindAddress", defaultValue: "0", set: address(&m.BindAddress),
			help: "address of the metrics listener, host:port or :port; 0 disables it"},
		{flag: "metrics-secure", key: "metrics.secure", defaultValue: "true", valueType: typeBool, set: boolean(&m.Secure),
			help: "serve metrics over HTTPS, to clients that the API server authorizes"},
		{flag: "metrics-cert-path", key: "metrics.certPath", set: text(&m.CertPath),
			help: "directory with the metrics certificate; if empty, the certificate that the manager issues for its webhooks, else a self-signed one"},
		{flag: "metrics-cert-name", key: "metrics.certName", defaultValue: "tls.crt", set: required(&m.CertName),
			help: "file name of the metrics certificate"},
		{flag: "metrics-cert-key", key: "metrics.certKey", defaultValue: "tls.key", set: required(&m.CertKey),
			help: "file name of the key of the metrics certificate"},
		{flag: "pprof", key: "metrics.pprof", defaultValue: "false", valueType: typeBool, set: boolean(&m.Pprof),
			help: "serve profiles below /debug/pprof/ on the metrics listener, to clients that the API server authorizes"},
		{flag: "tls-min-version", env: []string{"TLS_MIN_VERSION"}, key: "tls.minVersion", set: text(&c.tlsMinVersion),
			help: "lowest TLS version of the metrics, the webhooks, and the servers and proxies in pods: VersionTLS12 or VersionTLS13; if empty, the " +
				"TLS profile of OpenShift, with spec.tlsAdherence also for pods"},
		{flag: "tls-cipher-suites", env: []string{"TLS_CIPHER_SUITES"}, key: "tls.cipherSuites", valueType: typeList, set: text(&c.tlsCipherSuites),
			help: "cipher suites of the same listeners for TLS 1.2, with the names of Go; if empty, those of the profile or of each program"},
		{flag: "health-probe-bind-address", key: "health.bindAddress", defaultValue: ":8081", set: address(&c.Health.BindAddress),
			help: "address of the listener for /healthz and /readyz, host:port or :port; 0 disables it"},
		{flag: "webhook-port", key: "webhook.port", defaultValue: "9443", valueType: typeInt, set: port(&w.Port), help: "port of the webhook listener"},
		{flag: "webhook-cert-dir", key: "webhook.certDir", defaultValue: certDir, set: required(&w.CertDir),
			help: "directory of a mounted webhook certificate"},
		{flag: "webhook-cert-mode", key: "webhook.mode", defaultValue: string(WebhookAuto),
			set:  oneOf(&w.Mode, WebhookAuto, WebhookMounted, WebhookSelf),
			help: "source of the webhook certificate: auto, mounted or self"},
	}
}

func authorSettings(r *admission.Rules) []setting {
	return []setting{
		{flag: "author-checks", env: []string{"AUTHOR_CHECKS"}, key: "admission.authorChecks", defaultValue: string(admission.Enforce),
			set: oneOf(&r.Mode, admission.Enforce, admission.Warn, admission.Off),
			help: "what to do if custom resources use new ServiceAccounts, Secrets, images or pod fields without the permission of their author: Enforce, Warn or Off; " +
				"objects of the manager are always refused"},
		{flag: "pod-security-level", env: []string{"POD_SECURITY_LEVEL"}, key: "admission.podSecurityLevel", defaultValue: string(admission.Baseline),
			set:  oneOf(&r.Level, admission.Privileged, admission.Baseline, admission.Restricted),
			help: "highest Pod Security level for the pods of custom resources: privileged, baseline or restricted"},
	}
}

func mlflowSettings(c *Config) []setting {
	m := &c.MLflow
	return []setting{
		{env: []string{"RELATED_IMAGE_ODH_MLFLOW_IMAGE", "MLFLOW_IMAGE"}, key: "mlflow.image", set: image(&m.Image),
			help: "MLflow image, if the custom resource names none"},
		{env: []string{"MLFLOW_GATEWAY_NAME", "GATEWAY_NAME"}, key: "mlflow.gatewayName", defaultValue: "data-science-gateway",
			set: subdomain(&m.GatewayName), help: "Gateway to which the HTTPRoute of MLflow attaches"},
		{env: []string{"MLFLOW_GATEWAY_NAMESPACE"}, key: "mlflow.gatewayNamespace", set: optional(namespace, &m.GatewayNamespace),
			help: "namespace of that Gateway; if empty, openshift-ingress on OpenShift, and elsewhere there is no HTTPRoute"},
		{env: []string{"MLFLOW_URL"}, key: "mlflow.url", set: m.setURL, help: "external base URL of MLflow, without a path"},
		{env: []string{"SECTION_TITLE"}, key: "mlflow.sectionTitle", defaultValue: "MLflow", set: required(&m.SectionTitle),
			help: "section of the application menu in the OpenShift console"},
		{env: []string{"RESOURCE_NAME_PREFIX"}, key: "mlflow.resourceNamePrefix", defaultValue: "mlflow-operator-",
			set: prefix(&m.ResourceNamePrefix), help: "prefix of the names of the aggregated ClusterRoles; must match the name prefix of the installation"},
		{flag: "mlflow-namespace-rbac", env: []string{"ENABLE_NAMESPACE_RBAC"}, key: "mlflow.namespaceRBAC", defaultValue: "false", valueType: typeBool,
			set: boolean(&m.NamespaceRBAC), help: "give the groups in the platform's Auth resource access to namespaces with the label opendatahub.io/global-mlflow-workspace"},
	}
}

// loggingSettings returns the --zap-* flags of controller-runtime.
func loggingSettings(c *Config) []setting {
	zapFlags := flag.NewFlagSet("zap", flag.ContinueOnError)
	c.Logging.BindFlags(zapFlags)
	keys := map[string]string{
		"zap-log-level": "logging.level", "zap-devel": "logging.development", "zap-encoder": "logging.encoder",
		"zap-stacktrace-level": "logging.stacktraceLevel", "zap-time-encoding": "logging.timeEncoding",
	}
	var settings []setting
	zapFlags.VisitAll(func(f *flag.Flag) {
		set := func(raw string) error {
			if raw == "" {
				return nil
			}
			return f.Value.Set(raw)
		}
		s := setting{flag: f.Name, key: keys[f.Name], help: f.Usage, set: set}
		if f.Name == "zap-devel" {
			s.valueType = typeBool
		}
		settings = append(settings, s)
	})
	return settings
}

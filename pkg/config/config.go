package config

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"github.com/odh-platform/odh-platform-operator/pkg/admission"
	"github.com/odh-platform/odh-platform-operator/pkg/names"
	"github.com/odh-platform/odh-platform-operator/pkg/tlsprofile"
)

// ExampleURL is the default external base URL of the legacy operators. It counts as unset.
const ExampleURL = "https://mlflow.example.com"

// PlaceholderURL is the value in the shipped params.env until a user configures a URL.
const PlaceholderURL = "https://www.gateway-hostname-placeholder-with-mlflow-path.com"

// defaultAccount is the ServiceAccount of the manager if POD_SERVICE_ACCOUNT is not set.
const defaultAccount = names.OperatorName + "-controller-manager"

// namespaceFile contains the namespace of the pod's ServiceAccount.
const namespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

// Program holds the properties of the binary that the configuration cannot change.
type Program struct {
	// Components are the names of all components in this build.
	Components []string
	// MLflowVersion is the oldest supported MLflow release, with or without a leading "v".
	MLflowVersion string
	// EnabledComponents are the components that are enabled by default; nil selects those of DefaultOn.
	EnabledComponents []string
	// Defaults override the defaults of flags by name.
	Defaults map[string]string
}

// Config is the validated configuration. It is not modified after the start.
type Config struct {
	// Kubeconfig is the file of --kubeconfig; empty selects the defaults (KUBECONFIG, ServiceAccount, home directory).
	Kubeconfig string `flag:"kubeconfig" help:"kubeconfig file; default: KUBECONFIG, else the ServiceAccount of the pod, else ~/.kube/config"`
	// Namespace is the namespace of operands: a DNS label, never empty.
	Namespace string `flag:"namespace" env:"POD_NAMESPACE" key:"namespace" default:"opendatahub" help:"namespace of the manager, in which MLflow runs"`
	// OperatorNamespace is the namespace of the manager's own objects (Lease, certificate Secret): POD_NAMESPACE, else the namespace of
	// the mounted ServiceAccount, else Namespace (outside a cluster).
	OperatorNamespace string
	// PlatformType is the product that runs this operator; empty if it is not configured.
	PlatformType string `env:"ODH_MODULE_OPERATOR_PLATFORM_TYPE" key:"platform.type" help:"product that runs this operator, for status.distribution of an AIHub and MLflowOperator; the platform operator sets it"`

	LeaderElection LeaderElection `section:""`
	Metrics        Metrics        `section:""`
	// TLSMinVersion and TLSCipherSuites are parsed into TLS.
	TLSMinVersion   string  `flag:"tls-min-version" env:"TLS_MIN_VERSION" key:"tls.minVersion" help:"lowest TLS version of the metrics, the webhooks, and the servers and proxies in pods: VersionTLS12 or VersionTLS13; if empty, the TLS profile of OpenShift, with spec.tlsAdherence also for pods"`
	TLSCipherSuites string  `flag:"tls-cipher-suites" env:"TLS_CIPHER_SUITES" key:"tls.cipherSuites" parse:"list" help:"cipher suites of the same listeners for TLS 1.2, with the names of Go; if empty, those of the profile or of each program"`
	Health          Health  `section:""`
	Webhook         Webhook `section:""`
	// TLS is the profile of servers in pods: the configured one, which the listeners of the manager also use, or that of the cluster from SetTLS.
	TLS tlsprofile.Profile
	// AdmissionRules are the rules for the pods of custom resources, with the account of the manager.
	AdmissionRules admission.Rules
	// Logging are the options of the zap logger, from the --zap-* flags.
	Logging zap.Options

	// Exposure applies to all components that publish servers.
	Exposure Exposure
	MLflow   MLflow
	// ModelRegistry applies to the components modelregistry and modelcatalog.
	ModelRegistry ModelRegistry
	ModelMesh     ModelMesh

	// Warnings are messages about settings without effect.
	Warnings []string

	enabled  map[string]bool
	explicit map[string]value // of componentSections, for [Config.AppWrapper] and [Config.RayCluster]
}

// LeaderElection configures the leader election of replicas.
type LeaderElection struct {
	Enabled bool `flag:"leader-elect" key:"leaderElection.enabled" default:"true" help:"elect one replica that reconciles"`
	// Namespace is the namespace of the Lease.
	Namespace string `flag:"leader-election-namespace" key:"leaderElection.namespace" help:"namespace of the Lease; default: the namespace of the manager"`
	// Identity is the name of the pod, as holder of the Lease; empty if it is unknown.
	Identity      string
	LeaseDuration time.Duration `flag:"leader-elect-lease-duration" key:"leaderElection.leaseDuration" default:"15s" help:"how long other replicas wait for a leader that no longer renews its Lease; the manifests for OpenShift set 137s"`
	RenewDeadline time.Duration `flag:"leader-elect-renew-deadline" key:"leaderElection.renewDeadline" default:"10s" help:"how long the leader tries to renew its Lease before it gives up; on OpenShift 107s"`
	RetryPeriod   time.Duration `flag:"leader-elect-retry-period" key:"leaderElection.retryPeriod" default:"2s" help:"pause between two renewals of the Lease; on OpenShift 26s"`
}

// Metrics configures the listener of /metrics; BindAddress "0" disables it.
type Metrics struct {
	BindAddress string `flag:"metrics-bind-address" key:"metrics.bindAddress" default:"0" parse:"address" help:"address of the metrics listener, host:port or :port; 0 disables it"`
	Secure      bool   `flag:"metrics-secure" key:"metrics.secure" default:"true" help:"serve metrics over HTTPS, to clients that the API server authorizes"`
	CertPath    string `flag:"metrics-cert-path" key:"metrics.certPath" help:"directory with the metrics certificate; if empty, the certificate that the manager issues for its webhooks, else a self-signed one"`
	CertName    string `flag:"metrics-cert-name" key:"metrics.certName" default:"tls.crt" parse:"required" help:"file name of the metrics certificate"`
	CertKey     string `flag:"metrics-cert-key" key:"metrics.certKey" default:"tls.key" parse:"required" help:"file name of the key of the metrics certificate"`
	// Pprof serves profiles on the same listener.
	Pprof bool `flag:"pprof" key:"metrics.pprof" default:"false" help:"serve profiles below /debug/pprof/ on the metrics listener, to clients that the API server authorizes"`
}

// Health configures the listener of /healthz and /readyz; BindAddress "0" disables it.
type Health struct {
	BindAddress string `flag:"health-probe-bind-address" key:"health.bindAddress" default:":8081" parse:"address" help:"address of the listener for /healthz and /readyz, host:port or :port; 0 disables it"`
}

// Webhook configures the listener for admission and conversion.
type Webhook struct {
	Port    int         `flag:"webhook-port" key:"webhook.port" default:"9443" help:"port of the webhook listener"`
	CertDir string      `flag:"webhook-cert-dir" key:"webhook.certDir" default:"$TMPDIR/k8s-webhook-server/serving-certs" parse:"required" help:"directory of a mounted webhook certificate"`
	Mode    WebhookMode `flag:"webhook-cert-mode" key:"webhook.mode" default:"auto" oneof:"auto mounted self" help:"source of the webhook certificate: auto, mounted or self"`
	// Listener is the file descriptor of a listener that stays open while the program starts again in the same process; 0 for none.
	Listener int
}

// ListenerVariable is the environment variable with [Webhook.Listener]. It is not a setting.
const ListenerVariable = "ODH_PLATFORM_WEBHOOK_LISTENER"

// WebhookMode is the source of the serving certificate of the webhook server.
type WebhookMode string

const (
	// WebhookAuto uses the mounted certificate if there is one, and a self-signed one otherwise.
	WebhookAuto WebhookMode = "auto"
	// WebhookMounted requires the certificate in CertDir (OLM, service-ca, cert-manager).
	WebhookMounted WebhookMode = "mounted"
	// WebhookSelf always uses a self-signed certificate, which is stored in a Secret.
	WebhookSelf WebhookMode = "self"
)

// MLflow holds the settings of the component mlflow.
type MLflow struct {
	// Image is the default image of custom resources.
	Image string `env:"RELATED_IMAGE_ODH_MLFLOW_IMAGE MLFLOW_IMAGE" key:"mlflow.image" parse:"image" help:"MLflow image, if the custom resource names none"`
	// Version is the oldest supported MLflow release without a leading "v".
	Version string
	// GatewayName and GatewayNamespace identify the parent of HTTPRoutes.
	GatewayName      string `env:"MLFLOW_GATEWAY_NAME GATEWAY_NAME" key:"mlflow.gatewayName" default:"data-science-gateway" parse:"subdomain" help:"Gateway to which the HTTPRoute of MLflow attaches"`
	GatewayNamespace string `env:"MLFLOW_GATEWAY_NAMESPACE" key:"mlflow.gatewayNamespace" parse:"namespace?" help:"namespace of the Gateway; if empty, openshift-ingress on OpenShift, and elsewhere there is no HTTPRoute"`
	// ExternalURL is the external base URL without a trailing slash; empty if it is not configured.
	ExternalURL string `env:"MLFLOW_URL" key:"mlflow.url" parse:"baseURL" help:"external base URL of MLflow, without a path"`
	// SectionTitle is the section of the application menu in the console.
	SectionTitle string `env:"SECTION_TITLE" key:"mlflow.sectionTitle" default:"MLflow" parse:"required" help:"section of the application menu in the OpenShift console"`
	// ResourceNamePrefix is the prefix of the names of the aggregated ClusterRoles.
	ResourceNamePrefix string `env:"RESOURCE_NAME_PREFIX" key:"mlflow.resourceNamePrefix" default:"mlflow-operator-" parse:"prefix" help:"prefix of the names of the aggregated ClusterRoles; must match the name prefix of the installation"`
	// NamespaceRBAC grants the groups of the platform access to namespaces with the workspace label.
	NamespaceRBAC bool `flag:"mlflow-namespace-rbac" env:"ENABLE_NAMESPACE_RBAC" key:"mlflow.namespaceRBAC" default:"false" help:"give the groups in the platform's Auth resource access to namespaces with the label opendatahub.io/global-mlflow-workspace"`
}

// Enabled reports whether a component is enabled; false for unknown names.
func (c Config) Enabled(component string) bool { return c.enabled[component] }

// DisableIncompleteComponents disables mlflow if it has no image, and returns the error. Deployments of the legacy operators set no image
// of MLflow, and the other components must run without it.
func (c *Config) DisableIncompleteComponents() []error {
	err := c.CheckComplete()
	if err == nil || c.MLflow.Image != "" {
		return nil
	}
	c.enabled["mlflow"] = false
	return []error{err}
}

// CheckComplete returns an error if an enabled component lacks a required setting. It is separate from Load, because commands without a
// cluster need fewer settings.
func (c Config) CheckComplete() error {
	if !c.Enabled("mlflow") {
		return nil
	}
	if c.MLflow.Image == "" {
		return fmt.Errorf("mlflow has no default image: set RELATED_IMAGE_ODH_MLFLOW_IMAGE or MLFLOW_IMAGE, " +
			"or mlflow.image in the configuration file, or disable the component with --enable-mlflow=false")
	}
	if c.MLflow.Version == "" {
		return fmt.Errorf("this build names no supported MLflow version: build it with -ldflags \"-X main.mlflowVersion=<version>\"")
	}
	return nil
}

// FromProcess loads the configuration from the arguments (without the program name), the environment and the files of this process.
func FromProcess(p Program, args []string) (Config, error) {
	return Load(p, args, os.LookupEnv, os.ReadFile)
}

// Load reads every setting from the source with the highest precedence, and validates the result. An empty environment variable counts as
// unset. Each error is one line with the setting, its value and the fix. Load returns ErrHelp if the arguments request help.
func Load(p Program, args []string, lookup func(string) (string, bool), read func(string) ([]byte, error)) (Config, error) {
	cfg := Config{}
	cfg.MLflow.Version = strings.TrimPrefix(strings.TrimSpace(p.MLflowVersion), "v")
	allSettings := settings(&cfg, p.Components)
	src := sources{lookupEnv: lookup}

	var err error
	if src.flags, err = parseArgs(args, allSettings, p.Components); err != nil {
		return Config{}, err
	}
	if path := src.flags["config"].raw; path != "" {
		if src.file, err = readFile(path, read, append(allSettings, componentSections()...)); err != nil {
			return Config{}, err
		}
	}
	for _, s := range allSettings {
		if defaultValue, ok := p.Defaults[s.flag]; ok {
			s.defaultValue = defaultValue
		}
		if err := src.resolve(s).set(s); err != nil {
			return Config{}, err
		}
	}
	cfg.explicit = src.explicit(componentSections())
	if cfg.enabled, err = src.components(p.Components, p.EnabledComponents); err != nil {
		return Config{}, err
	}
	profile, err := tlsprofile.FromFlags(cfg.TLSMinVersion, cfg.TLSCipherSuites)
	if err != nil {
		return Config{}, err
	}
	cfg.SetTLS(profile)
	cfg.ModelRegistry.Exposure = cfg.Exposure
	if g := cfg.ModelRegistry.Gateway; cfg.Exposure.UsesGateway() && (g.Namespace == "" || g.RouteNamespace == "") {
		cfg.Warnings = append(cfg.Warnings, "exposure.kind gateway publishes no registries, catalog and models, except on OpenShift: set GATEWAY_NAMESPACE "+
			"(modelregistry.gatewayNamespace) and HTTPROUTE_NAMESPACE (modelregistry.routeNamespace)")
	}
	cfg.resolveEnvironment(src, read)
	if err := cfg.resolveModelMesh(src, read); err != nil {
		return Config{}, err
	}
	return cfg, cfg.validate()
}

// SetTLS sets the profile of servers in pods.
func (c *Config) SetTLS(p tlsprofile.Profile) { c.TLS, c.ModelRegistry.TLS, c.ModelMesh.TLS = p, p, p }

// resolveEnvironment sets the namespaces of operands and of the manager, and the values that only the environment contains. If the component
// platform is enabled, the platform operator sets APPLICATIONS_NAMESPACE, which takes precedence.
func (c *Config) resolveEnvironment(src sources, read func(string) ([]byte, error)) {
	if c.Enabled("platform") {
		if ns := src.env("APPLICATIONS_NAMESPACE"); ns != "" {
			c.Namespace = ns
		}
	}
	c.LeaderElection.Identity = src.env("POD_NAME")
	c.Webhook.Listener, _ = strconv.Atoi(src.env(ListenerVariable))
	c.OperatorNamespace = src.env("POD_NAMESPACE")
	if c.OperatorNamespace == "" {
		if raw, err := read(namespaceFile); err == nil {
			c.OperatorNamespace = strings.TrimSpace(string(raw))
		}
	}
	if c.OperatorNamespace == "" {
		c.OperatorNamespace = c.Namespace
	}
	if c.LeaderElection.Namespace == "" {
		c.LeaderElection.Namespace = c.OperatorNamespace
	}
	c.AdmissionRules.Namespace = c.OperatorNamespace
	c.AdmissionRules.Account = cmp.Or(src.env("POD_SERVICE_ACCOUNT"), defaultAccount)
}

// validate checks combinations of settings.
func (c *Config) validate() error {
	for _, ns := range []struct{ from, value string }{
		{"operand namespace (--namespace, POD_NAMESPACE, APPLICATIONS_NAMESPACE)", c.Namespace},
		{"operator namespace (POD_NAMESPACE)", c.OperatorNamespace},
		{"leader election namespace (--leader-election-namespace)", c.LeaderElection.Namespace},
	} {
		if err := checkNamespace(ns.value); err != nil {
			return fmt.Errorf("%s %q: %w", ns.from, ns.value, err)
		}
	}
	election := c.LeaderElection
	if election.LeaseDuration <= election.RenewDeadline {
		return fmt.Errorf("leader election lease duration %s is not longer than the renew deadline %s: "+
			"raise --leader-elect-lease-duration or lower --leader-elect-renew-deadline", election.LeaseDuration, election.RenewDeadline)
	}
	// client-go rejects a deadline of at most leaderelection.JitterFactor times the retry period.
	if float64(election.RenewDeadline) <= 1.2*float64(election.RetryPeriod) {
		return fmt.Errorf("leader election renew deadline %s is not longer than 1.2 times the retry period %s: "+
			"raise --leader-elect-renew-deadline or lower --leader-elect-retry-period", election.RenewDeadline, election.RetryPeriod)
	}
	if c.Exposure.UsesIngress() && c.Exposure.IngressDomain == "" {
		return fmt.Errorf("--exposure=%s needs a domain for the hosts of Ingresses: set --ingress-domain, INGRESS_DOMAIN or exposure.ingressDomain", ExposeIngress)
	}
	// The components evaluate these settings later, but errors in the file must be reported at the start.
	_, _, appWrapperErr := c.AppWrapper()
	_, _, rayErr := c.RayCluster(nil)
	if err := errors.Join(appWrapperErr, rayErr); err != nil {
		return err
	}
	if c.Metrics.Pprof && !c.Metrics.Secure {
		return errors.New("--pprof needs --metrics-secure, without which no client is authorized: set both")
	}
	if address := c.Metrics.BindAddress; address == c.Health.BindAddress && address != "0" && !strings.HasSuffix(address, ":0") {
		return fmt.Errorf("--metrics-bind-address and --health-probe-bind-address are both %q: give each listener its own port", address)
	}
	return nil
}

// EnabledComponents returns the names of the enabled components in alphabetical order.
func (c Config) EnabledComponents() []string {
	enabled := maps.Clone(c.enabled)
	maps.DeleteFunc(enabled, func(_ string, on bool) bool { return !on })
	return slices.Sorted(maps.Keys(enabled))
}

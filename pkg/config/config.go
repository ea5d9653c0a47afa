package config

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"github.com/odh-platform/odh-platform-operator/pkg/admission"
	"github.com/odh-platform/odh-platform-operator/pkg/names"
	"github.com/odh-platform/odh-platform-operator/pkg/tlsprofile"
)

// ExampleURL is the external base URL that the originals assume when none is configured. It never becomes a link;
// only the CORS list of MLflow keeps its origin.
const ExampleURL = "https://mlflow.example.com"

// PlaceholderURL stands in the shipped params.env until a user configures a real one.
const PlaceholderURL = "https://www.gateway-hostname-placeholder-with-mlflow-path.com"

// defaultAccount is the ServiceAccount of the manager where POD_SERVICE_ACCOUNT does not name it.
const defaultAccount = names.OperatorName + "-controller-manager"

// namespaceFile holds the namespace of the pod's service account.
const namespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

// Program is what the binary knows about itself and the configuration cannot change.
type Program struct {
	// Components are the names of all components in this build, enabled or not.
	Components []string
	// MLflowVersion is the oldest MLflow release this build supports, with or without a leading "v".
	MLflowVersion string
	// Selection are the components that run unless configured otherwise; nil leaves that to DefaultOn.
	Selection []string
	// Defaults take the place of the defaults of flags, by their names.
	Defaults map[string]string
}

// Config is the validated configuration. It is a value that never changes after Load.
type Config struct {
	// Namespace is where operands live: a DNS label, never empty.
	Namespace string
	// OperatorNamespace is where the manager keeps its own objects (Lease, certificate Secret): POD_NAMESPACE,
	// else the namespace of the mounted service account, else Namespace (outside a cluster).
	OperatorNamespace string
	// Kubeconfig is the file of --kubeconfig, empty for the usual search (KUBECONFIG, service account, home).
	Kubeconfig string

	LeaderElection LeaderElection
	Metrics        Metrics
	Health         Health
	Webhook        Webhook
	// PlatformType is the product that runs this operator; empty if the platform operator does not name it.
	PlatformType string
	// TLS is the profile of all listeners, those in pods included. If no setting names one, it is zero, or for pods that of the cluster.
	TLS tlsprofile.Profile
	// Authors says what the authors of custom resources may make pods use, and who the manager is.
	Authors admission.Rules
	// Logging are the options of the zap logger, as the --zap-* flags set them.
	Logging zap.Options
	// Exposure is for mlflow, modelregistry and modelcatalog.
	Exposure Exposure
	MLflow   MLflow
	// ModelRegistry is for the components modelregistry and modelcatalog.
	ModelRegistry ModelRegistry
	ModelMesh     ModelMesh
	// Warnings name what was said in the words of an older program and has no effect.
	Warnings []string

	tlsMinVersion, tlsCipherSuites string

	enabled map[string]bool
	given   map[string]value // of the sections, for [Config.AppWrapper] and [Config.RayCluster]
}

// LeaderElection says whether and where replicas compete, and how patient they are.
type LeaderElection struct {
	Enabled bool
	// Namespace of the Lease.
	Namespace string
	// Identity of the holder, the name of the pod; empty where it is not known.
	Identity                                  string
	LeaseDuration, RenewDeadline, RetryPeriod time.Duration
}

// Metrics is the listener of /metrics; BindAddress "0" means off.
type Metrics struct {
	BindAddress                 string
	Secure                      bool
	CertPath, CertName, CertKey string
	// Pprof serves profiles there, too.
	Pprof bool
}

// Health is the listener of /healthz and /readyz; BindAddress "0" means off.
type Health struct {
	BindAddress string
}

// Webhook is the admission and conversion listener.
type Webhook struct {
	Port    int
	CertDir string
	Mode    WebhookMode
}

// WebhookMode says where the serving certificate of the webhook server comes from.
type WebhookMode string

const (
	// WebhookAuto takes the mounted certificate where there is one and issues its own otherwise.
	WebhookAuto WebhookMode = "auto"
	// WebhookMounted insists on the certificate in CertDir (OLM, service-ca, cert-manager).
	WebhookMounted WebhookMode = "mounted"
	// WebhookSelf always issues its own certificate and keeps it in a Secret.
	WebhookSelf WebhookMode = "self"
)

// MLflow holds the settings of the component mlflow.
type MLflow struct {
	// Image is used where a custom resource names none.
	Image string
	// Version is the oldest supported MLflow release without a leading "v".
	Version string
	// GatewayName and GatewayNamespace name the parent of HTTPRoutes.
	GatewayName, GatewayNamespace string
	// ExternalURL is the external base URL without a trailing slash; empty when none is configured.
	ExternalURL string
	// SectionTitle is the section of the console's application menu.
	SectionTitle string
	// ResourceNamePrefix stands before the names of the aggregated ClusterRoles.
	ResourceNamePrefix string
	// NamespaceRBAC lets the groups of the platform into namespaces that ask for it.
	NamespaceRBAC bool
}

// Enabled reports whether the component of that name is to run; false for names this build does not know.
func (c Config) Enabled(component string) bool { return c.enabled[component] }

// DisableIncompleteComponents switches off what lacks a setting that it cannot run without, and returns the reasons. The Deployments of the
// operators before name no image of MLflow, and the other components run without one.
func (c *Config) DisableIncompleteComponents() []error {
	err := c.CheckComplete()
	if err == nil || c.MLflow.Image != "" {
		return nil
	}
	c.enabled["mlflow"] = false
	return []error{err}
}

// CheckComplete returns an error for a setting that a component which is on cannot run without. Load does not ask for it, so
// that commands which talk to no cluster work with less.
func (c Config) CheckComplete() error {
	if !c.Enabled("mlflow") {
		return nil
	}
	if c.MLflow.Image == "" {
		return fmt.Errorf("mlflow has no default image: set RELATED_IMAGE_ODH_MLFLOW_IMAGE or MLFLOW_IMAGE, " +
			"or mlflow.image in the configuration file, or switch the component off with --enable-mlflow=false")
	}
	if c.MLflow.Version == "" {
		return fmt.Errorf("this build names no supported MLflow version: build it with -ldflags \"-X main.mlflowVersion=<version>\"")
	}
	return nil
}

// FromProcess loads the configuration from the arguments (without the program's name), the environment and the
// files of this process.
func FromProcess(p Program, args []string) (Config, error) {
	return Load(p, args, os.LookupEnv, os.ReadFile)
}

// Load reads every setting from the highest source that has it and returns the validated whole. An empty
// environment variable counts as unset. Errors are one line: the setting, its value, the fix. ErrHelp is returned
// when the arguments ask for help.
func Load(p Program, args []string, lookup func(string) (string, bool), read func(string) ([]byte, error)) (Config, error) {
	cfg := Config{}
	cfg.MLflow.Version = strings.TrimPrefix(strings.TrimSpace(p.MLflowVersion), "v")
	table := settings(&cfg, p.Components)
	src := sources{lookup: lookup}

	var err error
	if src.flags, err = parseArgs(args, table, p.Components); err != nil {
		return Config{}, err
	}
	if path := src.flags["config"].raw; path != "" {
		if src.file, err = readFile(path, read, append(table, sections()...)); err != nil {
			return Config{}, err
		}
	}
	for _, s := range table {
		if other, ok := p.Defaults[s.flag]; ok {
			s.fallback = other
		}
		if err := src.resolve(s).set(s); err != nil {
			return Config{}, err
		}
	}
	cfg.given = src.given(sections())
	if cfg.enabled, err = src.components(p.Components, p.Selection); err != nil {
		return Config{}, err
	}
	profile, err := tlsprofile.FromFlags(cfg.tlsMinVersion, cfg.tlsCipherSuites)
	if err != nil {
		return Config{}, err
	}
	cfg.SetTLS(profile)
	cfg.ModelRegistry.Exposure = cfg.Exposure
	if g := cfg.ModelRegistry.Gateway; cfg.Exposure.Gateway() && (g.Namespace == "" || g.RouteNamespace == "") {
		cfg.Warnings = append(cfg.Warnings, "exposure.kind gateway publishes no registries, catalog and models, except on OpenShift, until GATEWAY_NAMESPACE "+
			"(modelregistry.gatewayNamespace) and HTTPROUTE_NAMESPACE (modelregistry.routeNamespace) are set")
	}
	cfg.resolveNamespaces(src, read)
	if err := cfg.resolveModelMesh(src, read); err != nil {
		return Config{}, err
	}
	return cfg, cfg.validate()
}

// SetTLS sets the profile of all listeners.
func (c *Config) SetTLS(p tlsprofile.Profile) { c.TLS, c.ModelRegistry.TLS, c.ModelMesh.TLS = p, p, p }

// resolveNamespaces follows the platform operator, which names the operand namespace only together with the
// component platform and then means it above all else, and finds out where the manager itself lives.
func (c *Config) resolveNamespaces(src sources, read func(string) ([]byte, error)) {
	if c.Enabled("platform") {
		if ns := src.env("APPLICATIONS_NAMESPACE"); ns != "" {
			c.Namespace = ns
		}
	}
	c.LeaderElection.Identity = src.env("POD_NAME")
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
	c.Authors.Namespace = c.OperatorNamespace
	c.Authors.Account = cmp.Or(src.env("POD_SERVICE_ACCOUNT"), defaultAccount)
}

// validate checks what only shows when several settings meet.
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
	le := c.LeaderElection
	if le.LeaseDuration <= le.RenewDeadline {
		return fmt.Errorf("leader election lease duration %s is not longer than the renew deadline %s: "+
			"raise --leader-elect-lease-duration or lower --leader-elect-renew-deadline", le.LeaseDuration, le.RenewDeadline)
	}
	// client-go adds 20 % jitter to the retry period and refuses a deadline that does not exceed it.
	if float64(le.RenewDeadline) <= 1.2*float64(le.RetryPeriod) {
		return fmt.Errorf("leader election renew deadline %s is not longer than 1.2 times the retry period %s: "+
			"raise --leader-elect-renew-deadline or lower --leader-elect-retry-period", le.RenewDeadline, le.RetryPeriod)
	}
	if err := c.Exposure.validate(); err != nil {
		return err
	}
	// Their components read them later, but a mistake in the file is to be known at once.
	_, _, wrappers := c.AppWrapper()
	_, _, rays := c.RayCluster(nil)
	if err := errors.Join(wrappers, rays); err != nil {
		return err
	}
	if c.Metrics.Pprof && !c.Metrics.Secure {
		return errors.New("--pprof needs --metrics-secure: without it, no client is authorized")
	}
	if a := c.Metrics.BindAddress; a == c.Health.BindAddress && a != "0" && !strings.HasSuffix(a, ":0") {
		return fmt.Errorf("--metrics-bind-address and --health-probe-bind-address are both %q: give each listener its own port", a)
	}
	return nil
}

// EnabledComponents returns the names of the enabled components in alphabetical order.
func (c Config) EnabledComponents() []string {
	var names []string
	for name, on := range c.enabled {
		if on {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

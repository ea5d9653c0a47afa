package config

import (
	"errors"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap/zapcore"

	"github.com/odh-platform/odh-platform-operator/pkg/admission"
)

var program = Program{Components: []string{"mlflow", "appwrapper", "platform"}, MLflowVersion: "v3.14.0"}

// inputs are the arguments, the environment, and the files by path of a start of the program.
type inputs struct {
	args  []string
	env   map[string]string
	files map[string]string
}

func (g inputs) load() (Config, error) {
	lookup := func(name string) (string, bool) {
		v, ok := g.env[name]
		return v, ok
	}
	read := func(path string) ([]byte, error) {
		if text, ok := g.files[path]; ok {
			return []byte(text), nil
		}
		return nil, &fs.PathError{Op: "open", Path: path, Err: fs.ErrNotExist}
	}
	return Load(program, g.args, lookup, read)
}

const header = "apiVersion: config.platform.opendatahub.io/v1alpha1\nkind: PlatformOperatorConfiguration\n"

// withFile adds a configuration file and the flag that names it.
func (g inputs) withFile(body string) inputs {
	g.args = append(slices.Clone(g.args), "--config=operator.yaml")
	g.files = maps.Clone(g.files)
	if g.files == nil {
		g.files = map[string]string{}
	}
	g.files["operator.yaml"] = header + body
	return g
}

func mustLoad(t *testing.T, g inputs) Config {
	t.Helper()
	cfg, err := g.load()
	if err != nil {
		t.Fatalf("unexpected error: %v", err)
	}
	return cfg
}

func TestLoadUsesDefaults(t *testing.T) {
	cfg := mustLoad(t, inputs{})
	if !strings.HasSuffix(cfg.Webhook.CertDir, "serving-certs") {
		t.Errorf("unexpected webhook certificate directory %q", cfg.Webhook.CertDir)
	}
	cfg.Webhook.CertDir = ""
	want := Config{
		Namespace: "opendatahub", OperatorNamespace: "opendatahub",
		LeaderElection: LeaderElection{Enabled: true, Namespace: "opendatahub",
			LeaseDuration: 15 * time.Second, RenewDeadline: 10 * time.Second, RetryPeriod: 2 * time.Second},
		Metrics:        Metrics{BindAddress: "0", Secure: true, CertName: "tls.crt", CertKey: "tls.key"},
		Health:         Health{BindAddress: ":8081"},
		Webhook:        Webhook{Port: 9443, Mode: WebhookAuto},
		AdmissionRules: admission.Rules{Mode: admission.Enforce, Level: admission.Baseline, Namespace: "opendatahub", Account: "odh-platform-operator-controller-manager"},
		Exposure:       Exposure{Kind: ExposeAuto},
		MLflow: MLflow{Version: "3.14.0", GatewayName: "data-science-gateway",
			SectionTitle: "MLflow", ResourceNamePrefix: "mlflow-operator-"},
		ModelRegistry: defaultRegistry(),
		ModelMesh:     defaultModelMesh(),
		enabled:       map[string]bool{"mlflow": true, "appwrapper": true, "platform": false},
		explicit:      map[string]value{},
	}
	if diff := cmp.Diff(want, cfg, cmp.AllowUnexported(Config{}, value{})); diff != "" {
		t.Errorf("defaults (-want +got):\n%s", diff)
	}
}

// TestSourcesOfSettingsHavePrecedence adds the sources of a setting one by one, in ascending precedence.
func TestSourcesOfSettingsHavePrecedence(t *testing.T) {
	for name, tc := range map[string]struct {
		flag, env, key string
		values         [3]string // flag, environment, file
		fallback       string
		get            func(Config) any
	}{
		"namespace": {flag: "namespace", env: "POD_NAMESPACE", key: "namespace", values: [3]string{"a", "b", "c"},
			fallback: "opendatahub", get: func(c Config) any { return c.Namespace }},
		"kubeconfig": {flag: "kubeconfig", values: [3]string{"a"}, get: func(c Config) any { return c.Kubeconfig }},
		"leader election": {flag: "leader-elect", key: "leaderElection.enabled", values: [3]string{"true", "", "false"},
			fallback: "true", get: func(c Config) any { return c.LeaderElection.Enabled }},
		"leader election namespace": {flag: "leader-election-namespace", key: "leaderElection.namespace",
			values: [3]string{"a", "", "c"}, fallback: "opendatahub", get: func(c Config) any { return c.LeaderElection.Namespace }},
		"lease": {flag: "leader-elect-lease-duration", key: "leaderElection.leaseDuration", values: [3]string{"200s", "", "5m"},
			fallback: "15s", get: func(c Config) any { return c.LeaderElection.LeaseDuration }},
		"renew": {flag: "leader-elect-renew-deadline", key: "leaderElection.renewDeadline", values: [3]string{"9s", "", "8s"},
			fallback: "10s", get: func(c Config) any { return c.LeaderElection.RenewDeadline }},
		"retry": {flag: "leader-elect-retry-period", key: "leaderElection.retryPeriod", values: [3]string{"1s", "", "3s"},
			fallback: "2s", get: func(c Config) any { return c.LeaderElection.RetryPeriod }},
		"metrics address": {flag: "metrics-bind-address", key: "metrics.bindAddress", values: [3]string{":8443", "", "127.0.0.1:1"},
			fallback: "0", get: func(c Config) any { return c.Metrics.BindAddress }},
		"metrics secure": {flag: "metrics-secure", key: "metrics.secure", values: [3]string{"true", "", "false"},
			fallback: "true", get: func(c Config) any { return c.Metrics.Secure }},
		"metrics path": {flag: "metrics-cert-path", key: "metrics.certPath", values: [3]string{"/a", "", "/c"},
			get: func(c Config) any { return c.Metrics.CertPath }},
		"metrics name": {flag: "metrics-cert-name", key: "metrics.certName", values: [3]string{"a", "", "c"},
			fallback: "tls.crt", get: func(c Config) any { return c.Metrics.CertName }},
		"metrics key": {flag: "metrics-cert-key", key: "metrics.certKey", values: [3]string{"a", "", "c"},
			fallback: "tls.key", get: func(c Config) any { return c.Metrics.CertKey }},
		"profiles": {flag: "pprof", key: "metrics.pprof", values: [3]string{"true", "", "false"},
			fallback: "false", get: func(c Config) any { return c.Metrics.Pprof }},
		"health": {flag: "health-probe-bind-address", key: "health.bindAddress", values: [3]string{":1", "", "0"},
			fallback: ":8081", get: func(c Config) any { return c.Health.BindAddress }},
		"webhook port": {flag: "webhook-port", key: "webhook.port", values: [3]string{"1", "", "65535"},
			fallback: "9443", get: func(c Config) any { return c.Webhook.Port }},
		"webhook dir": {flag: "webhook-cert-dir", key: "webhook.certDir", values: [3]string{"/a", "", "/c"},
			fallback: mustLoad(t, inputs{}).Webhook.CertDir, get: func(c Config) any { return c.Webhook.CertDir }},
		"webhook mode": {flag: "webhook-cert-mode", key: "webhook.mode", values: [3]string{"self", "", "mounted"},
			fallback: "auto", get: func(c Config) any { return c.Webhook.Mode }},
		"mlflow image": {env: "MLFLOW_IMAGE", key: "mlflow.image", values: [3]string{"", "b", "c"},
			get: func(c Config) any { return c.MLflow.Image }},
		"gateway": {env: "GATEWAY_NAME", key: "mlflow.gatewayName", values: [3]string{"", "b", "c.d"},
			fallback: "data-science-gateway", get: func(c Config) any { return c.MLflow.GatewayName }},
		"gateway namespace": {env: "MLFLOW_GATEWAY_NAMESPACE", key: "mlflow.gatewayNamespace", values: [3]string{"", "b", "c"},
			get: func(c Config) any { return c.MLflow.GatewayNamespace }},
		"url": {env: "MLFLOW_URL", key: "mlflow.url", values: [3]string{"", "https://b.test", "https://c.test"},
			get: func(c Config) any { return c.MLflow.ExternalURL }},
		"section": {env: "SECTION_TITLE", key: "mlflow.sectionTitle", values: [3]string{"", "b B", "c"},
			fallback: "MLflow", get: func(c Config) any { return c.MLflow.SectionTitle }},
		"namespace RBAC": {flag: "mlflow-namespace-rbac", env: "ENABLE_NAMESPACE_RBAC", key: "mlflow.namespaceRBAC",
			values: [3]string{"true", "false", "true"}, fallback: "false", get: func(c Config) any { return c.MLflow.NamespaceRBAC }},
		"prefix": {env: "RESOURCE_NAME_PREFIX", key: "mlflow.resourceNamePrefix", values: [3]string{"", "b-", "c-"},
			fallback: "mlflow-operator-", get: func(c Config) any { return c.MLflow.ResourceNamePrefix }},
	} {
		t.Run(name, func(t *testing.T) {
			expect := func(g inputs, text, source string) {
				t.Helper()
				if got := stringOf(tc.get(mustLoad(t, g))); got != canonical(text) {
					t.Errorf("%s: got %q, want %q", source, got, canonical(text))
				}
			}
			g := inputs{}
			expect(g, tc.fallback, "default")
			if tc.key != "" {
				g = g.withFile(nested(tc.key, tc.values[2]))
				expect(g, tc.values[2], "file")
			}
			if tc.env != "" {
				g.env = map[string]string{tc.env: tc.values[1]}
				expect(g, tc.values[1], "environment")
			}
			if tc.flag != "" {
				g.args = append(g.args, "--"+tc.flag+"="+tc.values[0])
				expect(g, tc.values[0], "flag")
			}
			if tc.env != "" && tc.key != "" && tc.flag == "" {
				g.env[tc.env] = " "
				expect(g, tc.values[2], "an empty variable counts as unset")
			}
		})
	}
}

// Each key of the file belongs to one setting.
func TestKeysAreUnique(t *testing.T) {
	seen := map[string]bool{}
	for _, row := range append(settings(&Config{}, program.Components), componentSections()...) {
		if row.key != "" && seen[row.key] {
			t.Errorf("two settings have the key %s", row.key)
		}
		seen[row.key] = true
	}
	if len(seen) < 90 {
		t.Errorf("got %d keys, want at least 90", len(seen))
	}
}

func TestFlagForms(t *testing.T) {
	for name, args := range map[string][]string{
		"flags of the manifests": {"--leader-elect", "--health-probe-bind-address=:8082", "-metrics-bind-address=:8443"},
		"separate values":        {"--leader-elect=true", "-health-probe-bind-address", ":8082", "--metrics-bind-address", ":8443"},
		"repeated flag":          {"--metrics-bind-address=:1", "-health-probe-bind-address=:8082", "--metrics-bind-address=:8443"},
		"numeric boolean":        {"-leader-elect=1", "-health-probe-bind-address=:8082", "-metrics-bind-address=:8443"},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := mustLoad(t, inputs{args: args})
			if !cfg.LeaderElection.Enabled || cfg.Metrics.BindAddress != ":8443" || cfg.Health.BindAddress != ":8082" {
				t.Errorf("got %+v, want leader election and the given addresses", cfg)
			}
		})
	}
}

// [mlflow-1] POD_NAMESPACE names the namespace when no flag does, and an empty value counts as unset.
func TestNamespaceMLflow1(t *testing.T) {
	for name, tc := range map[string]struct {
		inputs inputs
		want   string
	}{
		"POD_NAMESPACE":          {inputs{env: map[string]string{"POD_NAMESPACE": "custom-apps"}}, "custom-apps"},
		"empty POD_NAMESPACE":    {inputs{env: map[string]string{"POD_NAMESPACE": ""}}, "opendatahub"},
		"flag and POD_NAMESPACE": {inputs{args: []string{"--namespace=flagged"}, env: map[string]string{"POD_NAMESPACE": "custom-apps"}}, "flagged"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := mustLoad(t, tc.inputs).Namespace; got != tc.want {
				t.Errorf("got namespace %q, want %q", got, tc.want)
			}
		})
	}
}

// [mlflow-2] MLflow needs an image and a version, and the program a namespace. Without an image, which Deployments of legacy operators do
// not set, MLflow is disabled and the other components run.
func TestStartNeedsMLflow2(t *testing.T) {
	image := map[string]string{"MLFLOW_IMAGE": "quay.io/o/mlflow:1"}
	if err := mustLoad(t, inputs{env: image}).CheckComplete(); err != nil {
		t.Errorf("CheckComplete failed with an image and a version: %v", err)
	}
	err := mustLoad(t, inputs{}).CheckComplete()
	for _, part := range []string{"RELATED_IMAGE_ODH_MLFLOW_IMAGE", "MLFLOW_IMAGE", "mlflow.image"} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("without an image: error %v, want it to name %s", err, part)
		}
	}
	cfgWithoutImage := mustLoad(t, inputs{})
	if reasons := cfgWithoutImage.DisableIncompleteComponents(); len(reasons) != 1 || cfgWithoutImage.Enabled("mlflow") || cfgWithoutImage.CheckComplete() != nil {
		t.Errorf("got MLflow enabled: %t, reasons %v, want it disabled for one reason", cfgWithoutImage.Enabled("mlflow"), reasons)
	}
	if all := mustLoad(t, inputs{}).EnabledComponents(); len(cfgWithoutImage.EnabledComponents()) != len(all)-1 {
		t.Errorf("got enabled components %q, want all of %q except mlflow", cfgWithoutImage.EnabledComponents(), all)
	}
	if err := mustLoad(t, inputs{args: []string{"--enable-mlflow=false"}}).CheckComplete(); err != nil {
		t.Errorf("disabled component without an image: unexpected error %v", err)
	}
	cfg := mustLoad(t, inputs{env: image})
	cfg.MLflow.Version = ""
	if err := cfg.CheckComplete(); err == nil || !strings.Contains(err.Error(), "version") {
		t.Errorf("got error %v, want one that names the missing version", err)
	}
	if _, err := (inputs{args: []string{"--namespace="}, env: image}).load(); err == nil || !strings.Contains(err.Error(), "namespace") {
		t.Errorf("got error %v, want one that names the namespace", err)
	}
}

// [mlflow-3] APPLICATIONS_NAMESPACE takes effect only with the component platform.
func TestApplicationsNamespaceMLflow3(t *testing.T) {
	const module = "ENABLE_MLFLOW_OPERATOR_MODULE_CONTROLLER"
	for name, tc := range map[string]struct {
		env  map[string]string
		want string
	}{
		"disabled":                 {map[string]string{"APPLICATIONS_NAMESPACE": "apps", module: "false"}, "flagged"},
		"disabled by default":      {map[string]string{"APPLICATIONS_NAMESPACE": "apps"}, "flagged"},
		"enabled":                  {map[string]string{"APPLICATIONS_NAMESPACE": "apps", module: "true"}, "apps"},
		"enabled, empty namespace": {map[string]string{"APPLICATIONS_NAMESPACE": "", module: "true"}, "flagged"},
		"enabled, no namespace":    {map[string]string{module: "true"}, "flagged"},
		"ENABLE_PLATFORM is true":  {map[string]string{"APPLICATIONS_NAMESPACE": "apps", "ENABLE_PLATFORM": "true"}, "apps"},
		"ENABLE_PLATFORM is false": {map[string]string{"APPLICATIONS_NAMESPACE": "apps", module: "true", "ENABLE_PLATFORM": "false"}, "flagged"},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := mustLoad(t, inputs{args: []string{"--namespace=flagged"}, env: tc.env})
			if cfg.Namespace != tc.want {
				t.Errorf("got namespace %q, want %q", cfg.Namespace, tc.want)
			}
		})
	}
}

// [mlflow-66] The legacy variable enables the component platform, but cannot disable it, because the component does more than the legacy
// module.
func TestLegacyVariableOfThePlatform(t *testing.T) {
	const module = "ENABLE_MLFLOW_OPERATOR_MODULE_CONTROLLER"
	for name, tc := range map[string]struct {
		inputs inputs
		want   bool
	}{
		"default":                          {inputs{}, false},
		"enabled":                          {inputs{env: map[string]string{module: "true"}}, true},
		"enabled by 1":                     {inputs{env: map[string]string{module: " 1 "}}, true},
		"invalid boolean":                  {inputs{env: map[string]string{module: "enabled"}}, false},
		"ENABLE_PLATFORM takes precedence": {inputs{env: map[string]string{module: "true", "ENABLE_PLATFORM": "false"}}, false},
		"only ENABLE_PLATFORM":             {inputs{env: map[string]string{"ENABLE_PLATFORM": "true"}}, true},
		"flag takes precedence":            {inputs{env: map[string]string{module: "true"}, args: []string{"--enable-platform=false"}}, false},
		"disabled, enabled in the file":    {inputs{env: map[string]string{module: "false"}}.withFile("components: ['*', platform]\n"), true},
		"enabled, disabled in the file":    {inputs{env: map[string]string{module: "true"}}.withFile("components: ['*', '-platform']\n"), true},
		"enabled, list in a flag":          {inputs{env: map[string]string{module: "true"}, args: []string{"--components=*"}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := mustLoad(t, tc.inputs).Enabled("platform"); got != tc.want {
				t.Errorf("got enabled %t, want %t", got, tc.want)
			}
		})
	}
	if usage := Usage(program); !strings.Contains(usage, "$ENABLE_PLATFORM, $"+module) {
		t.Errorf("the usage does not contain %[2]q:\n%[1]s", usage, "$ENABLE_PLATFORM, $"+module)
	}
}

// [mlflow-5] RELATED_IMAGE_ODH_MLFLOW_IMAGE takes precedence over MLFLOW_IMAGE, and MLFLOW_IMAGE changes neither the URL nor the namespace.
func TestImagesMLflow5(t *testing.T) {
	both := map[string]string{"RELATED_IMAGE_ODH_MLFLOW_IMAGE": "related:1", "MLFLOW_IMAGE": "legacy:1"}
	if got := mustLoad(t, inputs{env: both}).MLflow.Image; got != "related:1" {
		t.Errorf("image %q, want %q", got, "related:1")
	}
	both["RELATED_IMAGE_ODH_MLFLOW_IMAGE"] = ""
	cfg := mustLoad(t, inputs{env: both})
	if cfg.MLflow.Image != "legacy:1" || cfg.MLflow.ExternalURL != "" || cfg.Namespace != "opendatahub" {
		t.Errorf("got %+v, want the legacy image and the default namespace", cfg.MLflow)
	}
}

// [D29] A configured URL is normalized, and placeholders count as unset.
func TestExternalURL(t *testing.T) {
	for name, tc := range map[string]struct{ raw, want string }{
		"unset":                  {"", ""},
		"blank":                  {"  ", ""},
		"example":                {"https://mlflow.example.com", ""},
		"example with slash":     {"https://mlflow.example.com/", ""},
		"shipped placeholder":    {PlaceholderURL, ""},
		"URL":                    {"https://gw.apps.lab.test", "https://gw.apps.lab.test"},
		"host without scheme":    {"gw.apps.lab.test/", "https://gw.apps.lab.test"},
		"blanks and slashes":     {" https://gw.apps.lab.test// ", "https://gw.apps.lab.test"},
		"port and path are kept": {"http://gw.test:8080/ml/", "http://gw.test:8080/ml"},
	} {
		t.Run(name, func(t *testing.T) {
			m := mustLoad(t, inputs{env: map[string]string{"MLFLOW_URL": tc.raw}}).MLflow
			if m.ExternalURL != tc.want {
				t.Errorf("got %q, want %q", m.ExternalURL, tc.want)
			}
		})
	}
}

func TestOperatorNamespace(t *testing.T) {
	mounted := map[string]string{namespaceFile: "from-file\n"}
	for name, tc := range map[string]struct {
		inputs inputs
		want   string
	}{
		"POD_NAMESPACE":     {inputs{args: []string{"--namespace=apps"}, env: map[string]string{"POD_NAMESPACE": "pod"}, files: mounted}, "pod"},
		"ServiceAccount":    {inputs{args: []string{"--namespace=apps"}, files: mounted}, "from-file"},
		"outside a cluster": {inputs{args: []string{"--namespace=apps"}}, "apps"},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := mustLoad(t, tc.inputs)
			if cfg.OperatorNamespace != tc.want || cfg.LeaderElection.Namespace != tc.want {
				t.Errorf("got %q and %q, want %q", cfg.OperatorNamespace, cfg.LeaderElection.Namespace, tc.want)
			}
		})
	}
}

func TestLoadParsesLoggingFlags(t *testing.T) {
	g := inputs{args: []string{"--zap-devel", "--zap-log-level=3", "--zap-encoder=console", "--zap-stacktrace-level=panic", "--zap-time-encoding=iso8601"}}
	options := mustLoad(t, g).Logging
	if !options.Development || options.NewEncoder == nil || options.TimeEncoder == nil {
		t.Errorf("got %+v, want development logging with both encoders", options)
	}
	if !options.Level.Enabled(zapcore.Level(-3)) || options.Level.Enabled(zapcore.Level(-4)) {
		t.Errorf("got level %v, want 3", options.Level)
	}
	if !options.StacktraceLevel.Enabled(zapcore.PanicLevel) || options.StacktraceLevel.Enabled(zapcore.ErrorLevel) {
		t.Errorf("got stack traces from level %v, want panic", options.StacktraceLevel)
	}
	fromFile := mustLoad(t, inputs{}.withFile("logging: {level: error, development: false}"))
	if fromFile.Logging.Level.Enabled(zapcore.InfoLevel) || fromFile.Logging.Development {
		t.Errorf("got %+v, want the level and mode of the file", fromFile.Logging)
	}
}

func TestHelpFlagAndUsage(t *testing.T) {
	for _, arg := range []string{"-h", "--help", "-help"} {
		if _, err := (inputs{args: []string{arg}}).load(); !errors.Is(err, ErrHelp) {
			t.Errorf("%s: unexpected error: %v", arg, err)
		}
	}
	usage := Usage(program)
	for _, part := range []string{"--metrics-bind-address", "$RELATED_IMAGE_ODH_MLFLOW_IMAGE, $MLFLOW_IMAGE, file mlflow.image",
		"--enable-appwrapper, $ENABLE_APPWRAPPER", "(default opendatahub)", "--zap-log-level", "--components"} {
		if !strings.Contains(usage, part) {
			t.Errorf("the usage does not contain %q", part)
		}
	}
}

func TestFromProcessReadsTheEnvironment(t *testing.T) {
	t.Setenv("GATEWAY_NAME", "from-process")
	t.Setenv("POD_NAMESPACE", "here")
	cfg, err := FromProcess(program, nil)
	if err != nil || cfg.MLflow.GatewayName != "from-process" || cfg.Namespace != "here" {
		t.Errorf("got %+v, error %v, want the values of the process", cfg.MLflow, err)
	}
}

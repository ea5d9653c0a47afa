package config

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func defaultModelMesh() ModelMesh {
	return ModelMesh{
		Namespace: "opendatahub", ControllerDeployment: "modelmesh-controller", EtcdSecretName: "model-serving-etcd",
		DefaultsFile: "/etc/model-serving/config/default/config-defaults.yaml",
	}
}

// meshVariables returns the variables of the settings in ModelMesh with a value each, and the resulting settings.
func meshVariables() (map[string]string, ModelMesh) {
	return map[string]string{
			"NAMESPACE": " serving ", "NAMESPACE_SCOPE": "true", "CONTROLLER_DEPLOYMENT": "deployed", "ETCD_SECRET_NAME": "etcd",
			"ENABLE_ISVC_WATCH": "false", "ENABLE_CSR_WATCH": "false", "ENABLE_SECRET_WATCH": "false",
			"MODELMESH_DEFAULTS_FILE": "/defaults.yaml", "MONITORING_NAMESPACE": "monitoring",
			"RELATED_IMAGE_ODH_MODELMESH_IMAGE": "mm:1", "RELATED_IMAGE_ODH_MM_REST_PROXY_IMAGE": "rest:1",
			"RELATED_IMAGE_ODH_MODELMESH_RUNTIME_ADAPTER_IMAGE": "adapter:1", "RELATED_IMAGE_OSE_OAUTH_PROXY_IMAGE": "oauth:1",
			"RELATED_IMAGE_ODH_KUBE_RBAC_PROXY_IMAGE": "rbac:1",
		}, ModelMesh{
			Namespace: "serving", NamespaceScope: true, ControllerDeployment: "deployed", EtcdSecretName: "etcd",
			IgnoreInferenceServices: true, IgnoreClusterServingRuntimes: true, IgnoreSecrets: true,
			DefaultsFile: "/defaults.yaml", MonitoringNamespace: "monitoring",
			Images: ModelMeshImages{ModelMesh: "mm:1", RESTProxy: "rest:1", RuntimeAdapter: "adapter:1", OAuthProxy: "oauth:1", KubeRBACProxy: "rbac:1"},
		}
}

// Each variable overrides the default of its setting. A blank variable counts as unset.
func TestModelMeshVariables(t *testing.T) {
	env, want := meshVariables()
	if diff := cmp.Diff(want, mustLoad(t, inputs{env: env}).ModelMesh); diff != "" {
		t.Errorf("all set (-want +got):\n%s", diff)
	}
	for name := range env {
		env[name] = "  "
	}
	if diff := cmp.Diff(defaultModelMesh(), mustLoad(t, inputs{env: env}).ModelMesh); diff != "" {
		t.Errorf("all blank (-want +got):\n%s", diff)
	}
}

// The file has the same effect as the variables.
func TestModelMeshFile(t *testing.T) {
	_, want := meshVariables()
	got := mustLoad(t, inputs{}.withFile(`
modelmesh:
  namespace: serving
  namespaceScope: true
  controllerDeployment: deployed
  etcdSecretName: etcd
  watchInferenceServices: false
  watchClusterServingRuntimes: false
  watchSecrets: false
  defaultsFile: /defaults.yaml
  monitoringNamespace: monitoring
  image: "mm:1"
  restProxyImage: "rest:1"
  runtimeAdapterImage: "adapter:1"
  oauthProxyImage: "oauth:1"
  kubeRBACProxyImage: "rbac:1"
`)).ModelMesh
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("from the file (-want +got):\n%s", diff)
	}
}

// As in the legacy operator, each boolean variable recognizes one value and ignores all others.
func TestModelMeshSwitches(t *testing.T) {
	for raw, want := range map[string]struct{ scope, ignore bool }{
		"": {}, "true": {scope: true}, "false": {ignore: true}, "True": {}, "auto": {}, "0": {},
	} {
		m := mustLoad(t, inputs{env: map[string]string{
			"NAMESPACE_SCOPE": raw, "ENABLE_ISVC_WATCH": raw, "ENABLE_CSR_WATCH": raw, "ENABLE_SECRET_WATCH": raw,
		}}).ModelMesh
		if m.NamespaceScope != want.scope || m.IgnoreInferenceServices != want.ignore ||
			m.IgnoreClusterServingRuntimes != want.ignore || m.IgnoreSecrets != want.ignore {
			t.Errorf("variables set to %q: got %+v, want %+v", raw, m, want)
		}
	}
}

func TestModelMeshNamespace(t *testing.T) {
	mounted := map[string]string{namespaceFile: "from-file\n"}
	for name, tc := range map[string]struct {
		inputs inputs
		want   string
	}{
		"NAMESPACE set":  {inputs{env: map[string]string{"NAMESPACE": "configured", "POD_NAMESPACE": "pod"}, files: mounted}, "configured"},
		"POD_NAMESPACE":  {inputs{env: map[string]string{"POD_NAMESPACE": "pod"}, files: mounted}, "pod"},
		"ServiceAccount": {inputs{files: mounted}, "from-file"},
		"unknown":        {inputs{}, "opendatahub"},
	} {
		if got := mustLoad(t, tc.inputs).ModelMesh.Namespace; got != tc.want {
			t.Errorf("%s: got %q, want %q", name, got, tc.want)
		}
	}
}

func TestModelMeshControllerDeployment(t *testing.T) {
	for pod, want := range map[string]string{
		"":                                defaultControllerDeployment,
		"alone":                           defaultControllerDeployment,
		"one-part":                        defaultControllerDeployment,
		"operator-5d4f8-x2x":              "operator",
		"odh-platform-operator-5d4f8-x2x": "odh-platform-operator",
	} {
		if got := mustLoad(t, inputs{env: map[string]string{"POD_NAME": pod}}).ModelMesh.ControllerDeployment; got != want {
			t.Errorf("pod %q: %q, want %q", pod, got, want)
		}
	}
	if got := mustLoad(t, inputs{env: map[string]string{"POD_NAME": "a-b-c", "CONTROLLER_DEPLOYMENT": "configured"}}).ModelMesh.ControllerDeployment; got != "configured" {
		t.Errorf("got %q, want configured", got)
	}
}

// The file at the default path is optional, a configured file is required. A disabled component reads neither.
func TestModelMeshDefaultsFile(t *testing.T) {
	original := program.Components
	program.Components = append(original[:len(original):len(original)], "modelmesh")
	defer func() { program.Components = original }()
	withDefaults := map[string]string{defaultModelMeshDefaultsFile: "podsPerRuntime: 3"}
	configured := map[string]string{"MODELMESH_DEFAULTS_FILE": "/mine.yaml"}
	for name, tc := range map[string]struct {
		inputs inputs
		want   string
	}{
		"no setting":                     {inputs{}, ""},
		"default path":                   {inputs{files: withDefaults}, "podsPerRuntime: 3"},
		"configured":                     {inputs{env: configured, files: map[string]string{"/mine.yaml": "podsPerRuntime: 4"}}, "podsPerRuntime: 4"},
		"component disabled":             {inputs{args: []string{"--enable-modelmesh=false"}, files: withDefaults}, ""},
		"configured, component disabled": {inputs{args: []string{"--enable-modelmesh=false"}, env: configured}, ""},
	} {
		if got := mustLoad(t, tc.inputs).ModelMesh.Defaults; got != tc.want {
			t.Errorf("%s: got %q, want %q", name, got, tc.want)
		}
	}
	if _, err := (inputs{env: configured}).load(); err == nil || !strings.Contains(err.Error(), "/mine.yaml") || !strings.Contains(err.Error(), "MODELMESH_DEFAULTS_FILE") {
		t.Errorf("got error %v for a missing configured file, want one that names it", err)
	}
}

// [M36] DEV_MODE_LOGGING=false does not enable development logging.
func TestDevModeLogging(t *testing.T) {
	for raw, want := range map[string]bool{"": false, "false": false, "False": false, "0": false, "no": false, "true": true, "1": true, "please": true} {
		if got := mustLoad(t, inputs{env: map[string]string{"DEV_MODE_LOGGING": raw}}).Logging.Development; got != want {
			t.Errorf("%q: got %t, want %t", raw, got, want)
		}
	}
	env := map[string]string{"DEV_MODE_LOGGING": "true"}
	if mustLoad(t, inputs{env: env, args: []string{"--zap-devel=false"}}).Logging.Development {
		t.Error("want the flag to take precedence over the variable")
	}
	if mustLoad(t, inputs{env: env}.withFile("logging: {development: false}")).Logging.Development {
		t.Error("want the file to take precedence over the variable")
	}
}

// Flags of the legacy operator are accepted, or rejected with the fix [M35].
func TestModelMeshFlags(t *testing.T) {
	cfg := mustLoad(t, inputs{args: []string{
		"--metrics-addr=:1", "--health-probe-bind-address=:2", "--enable-leader-election", "--leader-elect-type=lease",
		"--leader-elect-lease-duration-sec=16s", "--leader-elect-lease-renew-deadline-sec", "11s", "--leader-elect-retry-period-sec=3s",
	}})
	want := LeaderElection{Enabled: true, Namespace: "opendatahub", LeaseDuration: 16 * time.Second, RenewDeadline: 11 * time.Second, RetryPeriod: 3 * time.Second}
	if diff := cmp.Diff(want, cfg.LeaderElection); diff != "" || cfg.Metrics.BindAddress != ":1" || cfg.Health.BindAddress != ":2" {
		t.Errorf("leader election (-want +got):\n%s\nmetrics %+v, health %+v", diff, cfg.Metrics, cfg.Health)
	}
	_, err := inputs{args: []string{"--leader-elect-type=life"}}.load()
	if err == nil || !strings.Contains(err.Error(), `flag --leader-elect-type "life": must be lease`) {
		t.Errorf("got error %v for leader-for-life election, want that it must be lease", err)
	}
}

// The variable of the debug server has no effect, and the manager reports that [M8].
func TestPprofVariableHasNoEffect(t *testing.T) {
	if warnings := mustLoad(t, inputs{}).Warnings; warnings != nil {
		t.Errorf("unexpected warnings: %q", warnings)
	}
	cfg := mustLoad(t, inputs{env: map[string]string{"ENABLE_PPROF": "1"}})
	if warnings := cfg.Warnings; cfg.Metrics.Pprof || len(warnings) != 1 || !strings.Contains(warnings[0], `ENABLE_PPROF "1" has no effect: set --pprof`) {
		t.Errorf("got pprof %t, warnings %q, want one about ENABLE_PPROF", cfg.Metrics.Pprof, warnings)
	}
}

func TestModelMeshErrors(t *testing.T) {
	for name, value := range map[string]string{
		"NAMESPACE": "a.b", "CONTROLLER_DEPLOYMENT": "A B", "ETCD_SECRET_NAME": "-x", "MONITORING_NAMESPACE": "Bad_",
		"RELATED_IMAGE_ODH_MODELMESH_IMAGE": "https://a/b", "RELATED_IMAGE_OSE_OAUTH_PROXY_IMAGE": "a b",
	} {
		_, err := inputs{env: map[string]string{name: value}}.load()
		if err == nil || !strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), value) || !strings.Contains(err.Error(), "must be") {
			t.Errorf("%s: unexpected error: %v", name, err)
		}
	}
}

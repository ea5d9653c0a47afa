package config

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// An error names the setting, its value and the fix, in one line unless the file is not valid YAML.
func TestLoadRejectsInvalidSettings(t *testing.T) {
	args := func(a ...string) inputs { return inputs{args: a} }
	env := func(name, value string) inputs { return inputs{env: map[string]string{name: value}} }
	file := func(body string) inputs { return inputs{}.withFile(body) }
	for name, tc := range map[string]struct {
		inputs inputs
		want   []string
	}{
		"unknown flag": {args("--metrics-adress=:1"),
			[]string{"unknown flag --metrics-adress", "known flags: --author-checks, --components, --config", "--zap-time-encoding"}},
		"misspelled flag":        {args("-leader-elekt"), []string{"did you mean --leader-elect?"}},
		"unknown component flag": {args("--enable-mlfow"), []string{`--enable-mlfow`, `unknown component "mlfow"`, "appwrapper, mlflow, platform"}},
		"flag without a value":   {args("--namespace"), []string{"--namespace needs a value"}},
		"positional argument":    {args("stray"), []string{`"stray"`, "--help"}},
		"flag without a name":    {args("--=x"), []string{`--=x`, "--help"}},
		"bool flag":              {args("--leader-elect=maybe"), []string{"flag --leader-elect", `"maybe"`, "true or false"}},
		"component flag":         {args("--enable-mlflow=maybe"), []string{"flag --enable-mlflow", `"maybe"`, "true or false"}},
		"bool variable":          {env("ENABLE_MLFLOW", "maybe"), []string{"environment variable ENABLE_MLFLOW", `"maybe"`, "true or false"}},
		"namespace flag":         {args("--namespace=My_NS"), []string{"--namespace", `"My_NS"`, "a-z"}},
		"namespace env":          {env("POD_NAMESPACE", "a.b"), []string{"POD_NAMESPACE", `"a.b"`}},
		"gateway":                {env("GATEWAY_NAME", "A B"), []string{"GATEWAY_NAME", `"A B"`, "object name"}},
		"gateway namespace":      {file("mlflow: {gatewayNamespace: Bad.}"), []string{"mlflow.gatewayNamespace", `"Bad."`}},
		"prefix":                 {env("RESOURCE_NAME_PREFIX", "-x"), []string{"RESOURCE_NAME_PREFIX", `"-x"`}},
		"empty section title":    {file(`mlflow: {sectionTitle: ""}`), []string{"mlflow.sectionTitle", "must not be empty"}},
		"image with blank":       {env("MLFLOW_IMAGE", "a b"), []string{"MLFLOW_IMAGE", `"a b"`, "image reference"}},
		"image as URL":           {env("RELATED_IMAGE_ODH_MLFLOW_IMAGE", "https://q/i"), []string{"RELATED_IMAGE_ODH_MLFLOW_IMAGE", "image reference"}},
		"URL without host":       {env("MLFLOW_URL", "https:///x"), []string{"MLFLOW_URL", "with a host"}},
		"URL scheme":             {env("MLFLOW_URL", "ftp://a.b"), []string{"MLFLOW_URL", `"ftp://a.b"`, "http or https"}},
		"invalid URL":            {env("MLFLOW_URL", "https://a b"), []string{"MLFLOW_URL"}},
		"URL with query":         {env("MLFLOW_URL", "https://a.b?c=d"), []string{"without user, query"}},
		"URL with password":      {env("MLFLOW_URL", "https://u:p@a.b"), []string{"without user, query"}},
		"address":                {args("--metrics-bind-address=8443"), []string{"--metrics-bind-address", `"8443"`, "host:port"}},
		"address port":           {args("--health-probe-bind-address=:70000"), []string{"--health-probe-bind-address", "host:port"}},
		"same address":           {args("--health-probe-bind-address=:1", "--metrics-bind-address=:1"), []string{`both ":1"`, "its own port"}},
		"webhook port":           {args("--webhook-port=0"), []string{"--webhook-port", `"0"`, "1 to 65535"}},
		"webhook mode":           {args("--webhook-cert-mode=magic"), []string{`"magic"`, "auto, mounted or self"}},
		"duration":               {args("--leader-elect-retry-period=5"), []string{`"5"`, "30s"}},
		"negative duration":      {args("--leader-elect-retry-period=-5s"), []string{`"-5s"`, "above zero"}},
		"lease too short":        {args("--leader-elect-lease-duration=10s"), []string{"10s", "--leader-elect-lease-duration"}},
		"retry too long":         {args("--leader-elect-retry-period=9s"), []string{"9s", "--leader-elect-retry-period"}},
		"log level":              {args("--zap-log-level=loud"), []string{"--zap-log-level", "loud"}},
		"log encoder in file":    {file("logging: {encoder: xml}"), []string{"logging.encoder", "xml"}},

		"missing file":                 {args("--config=gone.yaml"), []string{"gone.yaml", "does not exist", "--config"}},
		"not YAML":                     {inputs{args: []string{"--config=f"}, files: map[string]string{"f": "a: [b"}}, []string{"f is not valid YAML"}},
		"not an object":                {inputs{args: []string{"--config=f"}, files: map[string]string{"f": "[]"}}, []string{"f must hold one PlatformOperatorConfiguration"}},
		"duplicate key":                {file("namespace: a\nnamespace: b"), []string{"operator.yaml", "namespace"}},
		"file of another kind":         {inputs{args: []string{"--config=f"}, files: map[string]string{"f": "kind: ConfigMap"}}, []string{"ConfigMap", "must be config.platform.opendatahub.io/v1alpha1, PlatformOperatorConfiguration"}},
		"empty file":                   {inputs{args: []string{"--config=f"}, files: map[string]string{"f": ""}}, []string{"must be config.platform.opendatahub.io/v1alpha1"}},
		"unknown key":                  {file("namespaces: a"), []string{"operator.yaml", `unknown key "namespaces" at the top`, "did you mean namespace?", "apiVersion, appwrapper, components, exposure, health, kind, leaderElection, logging, metrics, mlflow, modelcatalog, modelmesh, modelregistry, namespace, platform, raycluster, tls, webhook"}},
		"path as a key":                {file("mlflow.image: a"), []string{`unknown key "mlflow.image" at the top`}},
		"unknown deep key":             {file("mlflow: {gateway: a}"), []string{`unknown key "gateway" in mlflow`, "gatewayName, gatewayNamespace, image, namespaceRBAC, resourceNamePrefix, sectionTitle, url"}},
		"key in wrong case":            {file("Namespace: a"), []string{`unknown key "Namespace"`}},
		"value of wrong type":          {file("metrics: {secure: 1}"), []string{"metrics.secure 1: must be true or false"}},
		"pprof without secure metrics": {args("--pprof", "--metrics-secure=false"), []string{"--pprof needs --metrics-secure"}},
		"string instead of a section":  {file("metrics: yes please"), []string{`metrics "yes please": must be an object`}},
		"list instead of a section":    {file("mlflow: [{image: a}]"), []string{"mlflow is a list: must be an object"}},
		"string instead of a list":     {file("components: all"), []string{`components "all": must be a list`}},
		"registries namespace [D21]":   {env("REGISTRIES_NAMESPACE", "invalid//namespace"), []string{"REGISTRIES_NAMESPACE", `"invalid//namespace"`, "must be a namespace"}},
		"default domain":               {env("DEFAULT_DOMAIN", "https://apps.a"), []string{"DEFAULT_DOMAIN", `"https://apps.a"`, "without a scheme"}},
		"gateway domain":               {env("GATEWAY_DOMAIN", "a..b"), []string{"GATEWAY_DOMAIN", "must be a domain"}},
		"gateway domain too long":      {env("GATEWAY_DOMAIN", strings.Repeat("a.", 126)+"aa"), []string{"GATEWAY_DOMAIN", "must be a domain"}},
		"route namespace":              {env("HTTPROUTE_NAMESPACE", "a.b"), []string{"HTTPROUTE_NAMESPACE", "must be a namespace"}},
		"registry image":               {env("REST_IMAGE", "https://q/i"), []string{"REST_IMAGE", "image reference"}},
		"no registry image":            {file(`modelregistry: {image: ""}`), []string{"modelregistry.image", "must not be empty"}},
		"migration version":            {env("STORAGE_MIGRATION_SOURCE_VERSION", "alpha"), []string{"STORAGE_MIGRATION_SOURCE_VERSION", `"alpha"`, "such as v1beta1"}},

		"file duration": {file("leaderElection: {retryPeriod: soon}"), []string{"leaderElection.retryPeriod", `"soon"`, "duration"}},

		"unknown component":         {args("--components=*,-kueue"), []string{"--components", `unknown component "kueue"`, "known components: appwrapper, mlflow, platform"}},
		"unknown component in file": {file("components: [modelmesh]"), []string{"operator.yaml: components", `"modelmesh"`, "known components"}},
		"only an exclusion":         {args("--components=-mlflow"), []string{"--components", `"-mlflow"`, `"*,-appwrapper"`}},
		"empty list":                {args("--components="), []string{"--components", "enables no component"}},
		"empty list in file":        {file("components: []"), []string{"components", "enables no component"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := tc.inputs.load()
			if err == nil {
				t.Fatal("the configuration was not rejected")
			}
			for _, part := range tc.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("error %q does not contain %q", err, part)
				}
			}
			if strings.Contains(err.Error(), "\n") && name != "not YAML" && name != "duplicate key" {
				t.Errorf("error %q has more than one line", err)
			}
		})
	}
}

func TestEnabledComponents(t *testing.T) {
	for name, tc := range map[string]struct {
		args []string
		env  map[string]string
		file string
		want []string
	}{
		"default":                           {want: []string{"appwrapper", "mlflow"}},
		"list":                              {args: []string{"--components=mlflow"}, want: []string{"mlflow"}},
		"all but one":                       {args: []string{"--components=*,-appwrapper"}, want: []string{"mlflow"}},
		"order does not matter":             {args: []string{"--components=-appwrapper, *"}, want: []string{"mlflow"}},
		"star adds the default components":  {args: []string{"--components=*,platform"}, want: []string{"appwrapper", "mlflow", "platform"}},
		"component flag":                    {args: []string{"--enable-platform"}, want: []string{"appwrapper", "mlflow", "platform"}},
		"component flag set to false":       {args: []string{"-enable-mlflow=false"}, want: []string{"appwrapper"}},
		"component flag overrides the list": {args: []string{"--components=mlflow", "--enable-mlflow=false", "--enable-platform=true"}, want: []string{"platform"}},
		"variable":                          {env: map[string]string{"ENABLE_APPWRAPPER": "false"}, want: []string{"mlflow"}},
		"empty variable":                    {env: map[string]string{"ENABLE_APPWRAPPER": ""}, want: []string{"appwrapper", "mlflow"}},
		"flag overrides variable":           {args: []string{"--enable-appwrapper"}, env: map[string]string{"ENABLE_APPWRAPPER": "false"}, want: []string{"appwrapper", "mlflow"}},
		"list in a flag overrides variable": {args: []string{"--components=*"}, env: map[string]string{"ENABLE_APPWRAPPER": "false"}, want: []string{"appwrapper", "mlflow"}},
		"file":                              {file: "components: ['*', -mlflow]", want: []string{"appwrapper"}},
		"variable overrides file":           {file: "components: ['*', -mlflow]", env: map[string]string{"ENABLE_MLFLOW": "true"}, want: []string{"appwrapper", "mlflow"}},
		"flag overrides file":               {file: "components: ['*', -mlflow]", args: []string{"--components=mlflow"}, want: []string{"mlflow"}},
		"null in the file is ignored":       {file: "components: null", want: []string{"appwrapper", "mlflow"}},
	} {
		t.Run(name, func(t *testing.T) {
			g := inputs{args: tc.args, env: tc.env}
			if tc.file != "" {
				g = g.withFile(tc.file)
			}
			cfg := mustLoad(t, g)
			if diff := cmp.Diff(tc.want, cfg.EnabledComponents()); diff != "" {
				t.Errorf("enabled (-want +got):\n%s", diff)
			}
			if cfg.Enabled("unknown") {
				t.Error("an unknown component is enabled")
			}
		})
	}
}

func TestLoadRejectsComponentInBuildWithoutComponents(t *testing.T) {
	_, err := Load(Program{}, []string{"--components=mlflow"}, func(string) (string, bool) { return "", false }, noFiles)
	if err == nil || !strings.Contains(err.Error(), "contains none") {
		t.Errorf("got error %v, want an error because the build contains no components", err)
	}
}

func noFiles(string) ([]byte, error) { return nil, nil }

// Any file content results in a configuration or an error.
func FuzzFile(f *testing.F) {
	for _, seed := range []string{header, header + "mlflow: {url: https://a.b}", "{}", "- a", "\x00", header + "components: [1, {a: b}]"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		g := inputs{args: []string{"--config=f"}, files: map[string]string{"f": text}}
		if cfg, err := g.load(); err == nil && cfg.Namespace == "" {
			t.Error("a configuration without a namespace was accepted")
		}
	})
}

// Any arguments result in a configuration or an error.
func FuzzArguments(f *testing.F) {
	f.Add("--namespace=a", "-leader-elect")
	f.Add("--components", "*,-mlflow")
	f.Add("-", "--=x")
	f.Fuzz(func(t *testing.T, first, second string) {
		if cfg, err := (inputs{args: []string{first, second}}).load(); err == nil && cfg.Namespace == "" {
			t.Error("a configuration without a namespace was accepted")
		}
	})
}

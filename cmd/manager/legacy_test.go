package main

import (
	"errors"
	"strings"
	"testing"

	"github.com/odh-platform/odh-platform-operator/pkg/config"
)

var errLoaded = errors.New("loaded")

// runUntilLoaded runs the program with all components until its configuration is loaded.
func runUntilLoaded(t *testing.T, environment map[string]string, args ...string) (config.Config, result) {
	t.Helper()
	var got config.Config
	g := testProcess{env: environment, specs: componentSpecs}
	s := result{stdout: &syncBuffer{}, stderr: &syncBuffer{}}
	p := g.process(args, s)
	load := p.load
	p.load = func(program config.Program, args []string) (config.Config, error) {
		cfg, err := load(program, args)
		if err != nil {
			return cfg, err
		}
		got = cfg
		return cfg, errLoaded
	}
	s.code = run(t.Context(), p)
	return got, s
}

// A legacy sub-command enables the components of its legacy program. Flags and variables for components take precedence.
func TestLegacyCommands(t *testing.T) {
	for name, tc := range map[string]struct {
		env     map[string]string
		args    []string
		want    string
		metrics string
	}{
		"no sub-command":       {nil, nil, "appwrapper mlflow modelcatalog modelmesh modelregistry raycluster", "0"},
		"registry":             {nil, []string{"modelregistry"}, "modelregistry", ":8443"},
		"catalog as shipped":   {nil, []string{"catalog", "--leader-elect"}, "modelcatalog", ":8443"},
		"aihub as shipped":     {nil, []string{"aihub", "--leader-elect", "--metrics-cert-dir=/certs", "--metrics-cert-name=tls.crt", "--metrics-key-name=tls.key"}, "modelcatalog modelregistry platform", ":8443"},
		"registry as shipped":  {nil, []string{"--health-probe-bind-address=:8081", "--metrics-bind-address=:8443", "--leader-elect", "--metrics-secure", "--metrics-cert-dir=/etc/server-cert/", "--metrics-cert-name", "tls.crt", "--metrics-key-name", "tls.key"}, "appwrapper mlflow modelcatalog modelmesh modelregistry raycluster", ":8443"},
		"components flag":      {nil, []string{"catalog", "--components=modelregistry"}, "modelregistry", ":8443"},
		"additional component": {nil, []string{"catalog", "--enable-platform"}, "modelcatalog platform", ":8443"},
		"component disabled by an environment variable": {map[string]string{"ENABLE_PLATFORM": "false"}, []string{"aihub"}, "modelcatalog modelregistry", ":8443"},
		"metrics address flag":                          {nil, []string{"aihub", "--metrics-bind-address=:9"}, "modelcatalog modelregistry platform", ":9"},
		"flag of the newer program":                     {nil, []string{"catalog", "--metrics-cert-path=/a"}, "modelcatalog", ":8443"},
	} {
		t.Run(name, func(t *testing.T) {
			got, s := runUntilLoaded(t, tc.env, tc.args...)
			if !strings.Contains(s.stderr.String(), errLoaded.Error()) {
				t.Fatalf("the configuration was not loaded: %s", s.stderr)
			}
			if enabled := got.EnabledComponents(); strings.Join(enabled, " ") != tc.want {
				t.Errorf("components %v, want %q", enabled, tc.want)
			}
			if got.Metrics.BindAddress != tc.metrics {
				t.Errorf("metrics at %q, want %q", got.Metrics.BindAddress, tc.metrics)
			}
		})
	}
	got, _ := runUntilLoaded(t, nil, "aihub", "--metrics-cert-dir=/certs", "--metrics-key-name=a.key")
	if got.Metrics.CertPath != "/certs" || got.Metrics.CertKey != "a.key" {
		t.Errorf("got %+v, want the values of the legacy flags", got.Metrics)
	}
}

func TestLegacyCommandsAreDocumented(t *testing.T) {
	_, s := runUntilLoaded(t, nil, "help")
	for _, name := range []string{"modelregistry", "catalog", "aihub"} {
		if !strings.Contains(s.stdout.String(), "\n  "+name+" ") {
			t.Errorf("the help does not explain %s", name)
		}
	}
	_, s = runUntilLoaded(t, nil, "registry")
	if s.code != 1 || !strings.Contains(s.stderr.String(), `unknown sub-command "registry"; known sub-commands: run`) {
		t.Errorf("got exit code %d and error %s, want an unknown sub-command", s.code, s.stderr)
	}
	// Each flag in legacyDefaults exists.
	for flag := range legacyDefaults {
		if !strings.Contains(config.Usage(config.Program{}), "--"+flag+",") {
			t.Errorf("the program has no flag %s", flag)
		}
	}
}

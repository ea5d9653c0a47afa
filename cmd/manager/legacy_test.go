package main

import (
	"errors"
	"strings"
	"testing"

	"github.com/odh-platform/odh-platform-operator/pkg/config"
)

var errLoaded = errors.New("loaded")

// loadedBy runs the program with the real table up to the point where its configuration is known.
func loadedBy(t *testing.T, environment map[string]string, args ...string) (config.Config, started) {
	t.Helper()
	var got config.Config
	g := given{env: environment, table: componentSpecs}
	s := started{stdout: &output{}, stderr: &output{}}
	p := g.process(args, s)
	inner := p.load
	p.load = func(program config.Program, args []string) (config.Config, error) {
		cfg, err := inner(program, args)
		if err != nil {
			return cfg, err
		}
		got = cfg
		return cfg, errLoaded
	}
	s.code = run(t.Context(), p)
	return got, s
}

// Legacy command lines run the same components; flags for components take precedence.
func TestLegacyCommands(t *testing.T) {
	for name, tc := range map[string]struct {
		env     map[string]string
		args    []string
		want    string
		metrics string
	}{
		"bare":                 {nil, nil, "appwrapper mlflow modelcatalog modelmesh modelregistry raycluster", "0"},
		"registry":             {nil, []string{"modelregistry"}, "modelregistry", ":8443"},
		"catalog as shipped":   {nil, []string{"catalog", "--leader-elect"}, "modelcatalog", ":8443"},
		"aihub as shipped":     {nil, []string{"aihub", "--leader-elect", "--metrics-cert-dir=/certs", "--metrics-cert-name=tls.crt", "--metrics-key-name=tls.key"}, "modelcatalog modelregistry platform", ":8443"},
		"registry as shipped":  {nil, []string{"--health-probe-bind-address=:8081", "--metrics-bind-address=:8443", "--leader-elect", "--metrics-secure", "--metrics-cert-dir=/etc/server-cert/", "--metrics-cert-name", "tls.crt", "--metrics-key-name", "tls.key"}, "appwrapper mlflow modelcatalog modelmesh modelregistry raycluster", ":8443"},
		"flag of a list":       {nil, []string{"catalog", "--components=modelregistry"}, "modelregistry", ":8443"},
		"additional component": {nil, []string{"catalog", "--enable-platform"}, "modelcatalog platform", ":8443"},
		"one component less, by an environment variable": {map[string]string{"ENABLE_PLATFORM": "false"}, []string{"aihub"}, "modelcatalog modelregistry", ":8443"},
		"a listener of one's own":                        {nil, []string{"aihub", "--metrics-bind-address=:9"}, "modelcatalog modelregistry platform", ":9"},
		"older names, newer value":                       {nil, []string{"catalog", "--metrics-cert-path=/a"}, "modelcatalog", ":8443"},
	} {
		t.Run(name, func(t *testing.T) {
			got, s := loadedBy(t, tc.env, tc.args...)
			if !strings.Contains(s.stderr.String(), errLoaded.Error()) {
				t.Fatalf("the manager stopped too early: %s", s.stderr)
			}
			if on := got.EnabledComponents(); strings.Join(on, " ") != tc.want {
				t.Errorf("components %v, want %q", on, tc.want)
			}
			if got.Metrics.BindAddress != tc.metrics {
				t.Errorf("metrics at %q, want %q", got.Metrics.BindAddress, tc.metrics)
			}
		})
	}
	got, _ := loadedBy(t, nil, "aihub", "--metrics-cert-dir=/certs", "--metrics-key-name=a.key")
	if got.Metrics.CertPath != "/certs" || got.Metrics.CertKey != "a.key" {
		t.Errorf("older names of flags: %+v", got.Metrics)
	}
}

func TestLegacyCommandsAreDocumented(t *testing.T) {
	_, s := loadedBy(t, nil, "help")
	for _, name := range []string{"modelregistry", "catalog", "aihub"} {
		if !strings.Contains(s.stdout.String(), "\n  "+name+" ") {
			t.Errorf("the help does not explain %s", name)
		}
	}
	_, s = loadedBy(t, nil, "registry")
	if s.code != 1 || !strings.Contains(s.stderr.String(), `unknown sub-command "registry"; known sub-commands: run`) {
		t.Errorf("code %d, %s", s.code, s.stderr)
	}
	// A flag with another default is a flag of the program.
	for flag := range legacyDefaults {
		if !strings.Contains(config.Usage(config.Program{}), "--"+flag+",") {
			t.Errorf("no flag %s", flag)
		}
	}
}

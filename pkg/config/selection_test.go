package config

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// loadAs loads as a sub-command with a selection of its own does.
func loadAs(selection []string, environment map[string]string, file string, args ...string) (Config, error) {
	p := Program{
		Components: []string{"mlflow", "appwrapper", "platform"}, MLflowVersion: "1.0.0",
		EnabledComponents: selection, Defaults: map[string]string{"metrics-bind-address": ":8443"},
	}
	lookup := func(name string) (string, bool) { v, ok := environment[name]; return v, ok }
	read := func(path string) ([]byte, error) {
		if path != "operator.yaml" {
			return nil, os.ErrNotExist
		}
		return []byte(header + file), nil
	}
	if file != "" {
		args = append(args, "--config=operator.yaml")
	}
	return Load(p, args, lookup, read)
}

// A selection replaces the default components, and none that are configured.
func TestSelection(t *testing.T) {
	for name, tc := range map[string]struct {
		selection []string
		env       map[string]string
		file      string
		args      []string
		want      []string
	}{
		"no selection":                                    {nil, nil, "", nil, []string{"appwrapper", "mlflow"}},
		"one component":                                   {[]string{"mlflow"}, nil, "", nil, []string{"mlflow"}},
		"component that is disabled by default":           {[]string{"platform"}, nil, "", nil, []string{"platform"}},
		"a list in the file":                              {[]string{"mlflow"}, nil, "components: [appwrapper]\n", nil, []string{"appwrapper"}},
		"a list of flags":                                 {[]string{"mlflow"}, nil, "", []string{"--components=platform"}, []string{"platform"}},
		"the default set, by a list":                      {[]string{"mlflow"}, nil, "", []string{"--components=*"}, []string{"appwrapper", "mlflow"}},
		"one more by a variable":                          {[]string{"mlflow"}, map[string]string{"ENABLE_APPWRAPPER": "true"}, "", nil, []string{"appwrapper", "mlflow"}},
		"off by a variable":                               {[]string{"mlflow", "platform"}, map[string]string{"ENABLE_PLATFORM": "false"}, "", nil, []string{"mlflow"}},
		"enabled by the variable of the legacy operator":  {[]string{"mlflow"}, map[string]string{"ENABLE_MLFLOW_OPERATOR_MODULE_CONTROLLER": "true"}, "", nil, []string{"mlflow", "platform"}},
		"disabled by the variable of the legacy operator": {[]string{"platform"}, map[string]string{"ENABLE_MLFLOW_OPERATOR_MODULE_CONTROLLER": "false"}, "", nil, []string{"platform"}},
		"a switch above all":                              {[]string{"mlflow"}, map[string]string{"ENABLE_PLATFORM": "false"}, "", []string{"--enable-platform", "--enable-mlflow=false"}, []string{"platform"}},
		"unknown names are ignored":                       {[]string{"gadgets", "mlflow"}, nil, "", nil, []string{"mlflow"}},
		"empty list":                                      {[]string{}, nil, "", nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			cfg, err := loadAs(tc.selection, tc.env, tc.file, tc.args...)
			if err != nil {
				t.Fatal(err)
			}
			if got := cfg.EnabledComponents(); !slices.Equal(got, tc.want) {
				t.Errorf("components %v, want %v", got, tc.want)
			}
		})
	}
}

// Another default is still below everything that is configured.
func TestOtherDefaults(t *testing.T) {
	for name, tc := range map[string]struct {
		file string
		args []string
		want string
	}{
		"nobody":        {"", nil, ":8443"},
		"the file":      {"metrics:\n  bindAddress: \":7\"\n", nil, ":7"},
		"a flag":        {"metrics:\n  bindAddress: \":7\"\n", []string{"--metrics-bind-address=:6"}, ":6"},
		"disabled by 0": {"", []string{"--metrics-bind-address=0"}, "0"},
	} {
		t.Run(name, func(t *testing.T) {
			cfg, err := loadAs(nil, nil, tc.file, tc.args...)
			if err != nil || cfg.Metrics.BindAddress != tc.want {
				t.Errorf("address %q, error %v, want %q", cfg.Metrics.BindAddress, err, tc.want)
			}
		})
	}
}

// Legacy flags set the current flags that replace them; the last value is used.
func TestLegacyFlags(t *testing.T) {
	for name, tc := range map[string]struct {
		args           []string
		path, key, bad string
	}{
		"older":              {[]string{"--metrics-cert-dir=/a", "--metrics-key-name", "k"}, "/a", "k", ""},
		"newer":              {[]string{"--metrics-cert-path=/a", "--metrics-cert-key=k"}, "/a", "k", ""},
		"the last one":       {[]string{"--metrics-cert-path=/a", "-metrics-cert-dir=/b"}, "/b", "tls.key", ""},
		"an older one first": {[]string{"--metrics-cert-dir=/a", "--metrics-cert-path=/b"}, "/b", "tls.key", ""},
		"no value":           {[]string{"--metrics-cert-dir"}, "", "", "--metrics-cert-path needs a value"},
		"an empty key":       {[]string{"--metrics-key-name="}, "", "", "--metrics-cert-key"},
	} {
		t.Run(name, func(t *testing.T) {
			cfg, err := loadAs(nil, nil, "", tc.args...)
			if tc.bad != "" {
				if err == nil || !strings.Contains(err.Error(), tc.bad) {
					t.Errorf("error %v", err)
				}
				return
			}
			if err != nil || cfg.Metrics.CertPath != tc.path || cfg.Metrics.CertKey != tc.key {
				t.Errorf("path %q, key %q, error %v", cfg.Metrics.CertPath, cfg.Metrics.CertKey, err)
			}
		})
	}
	known := flagTypes(settings(&Config{}, nil))
	for older, newer := range legacyFlags {
		if _, found := known[older]; found {
			t.Errorf("--%s is a flag of its own", older)
		}
		if _, found := known[newer]; !found {
			t.Errorf("--%s stands for --%s, which there is not", older, newer)
		}
	}
}

// Nothing but the selection runs without any configuration, and every switch wins over it.
func TestSelectionAndSwitches(t *testing.T) {
	known := []string{"mlflow", "appwrapper", "platform"}
	rapid.Check(t, func(t *rapid.T) {
		selection := rapid.SliceOfDistinct(rapid.SampledFrom(known), rapid.ID[string]).Draw(t, "selection")
		if selection == nil {
			selection = []string{}
		}
		switches := rapid.MapOf(rapid.SampledFrom(known), rapid.Bool()).Draw(t, "switches")
		var args []string
		for name, on := range switches {
			value := "=false"
			if on {
				value = "=true"
			}
			args = append(args, "--enable-"+name+value)
		}
		cfg, err := loadAs(selection, nil, "", args...)
		if errors.Is(err, ErrHelp) || err != nil {
			t.Fatal(err)
		}
		for _, name := range known {
			want := slices.Contains(selection, name)
			if on, said := switches[name]; said {
				want = on
			}
			if cfg.Enabled(name) != want {
				t.Fatalf("%s is %t, want %t", name, cfg.Enabled(name), want)
			}
		}
	})
}

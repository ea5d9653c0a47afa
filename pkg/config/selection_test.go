package config

import (
	"os"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// loadAs loads the configuration as a sub-command with default components does.
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

// The components of a sub-command replace the default components. The configuration overrides them.
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
		"list in the file":                                {[]string{"mlflow"}, nil, "components: [appwrapper]\n", nil, []string{"appwrapper"}},
		"list in a flag":                                  {[]string{"mlflow"}, nil, "", []string{"--components=platform"}, []string{"platform"}},
		"default set in a flag":                           {[]string{"mlflow"}, nil, "", []string{"--components=*"}, []string{"appwrapper", "mlflow"}},
		"enabled by a variable":                           {[]string{"mlflow"}, map[string]string{"ENABLE_APPWRAPPER": "true"}, "", nil, []string{"appwrapper", "mlflow"}},
		"disabled by a variable":                          {[]string{"mlflow", "platform"}, map[string]string{"ENABLE_PLATFORM": "false"}, "", nil, []string{"mlflow"}},
		"enabled by the variable of the legacy operator":  {[]string{"mlflow"}, map[string]string{"ENABLE_MLFLOW_OPERATOR_MODULE_CONTROLLER": "true"}, "", nil, []string{"mlflow", "platform"}},
		"disabled by the variable of the legacy operator": {[]string{"platform"}, map[string]string{"ENABLE_MLFLOW_OPERATOR_MODULE_CONTROLLER": "false"}, "", nil, []string{"platform"}},
		"enabled and disabled by flags":                   {[]string{"mlflow"}, map[string]string{"ENABLE_PLATFORM": "false"}, "", []string{"--enable-platform", "--enable-mlflow=false"}, []string{"platform"}},
		"unknown names are ignored":                       {[]string{"gadgets", "mlflow"}, nil, "", nil, []string{"mlflow"}},
		"empty list":                                      {[]string{}, nil, "", nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			cfg, err := loadAs(tc.selection, tc.env, tc.file, tc.args...)
			if err != nil {
				t.Fatal(err)
			}
			if got := cfg.EnabledComponents(); !slices.Equal(got, tc.want) {
				t.Errorf("got components %v, want %v", got, tc.want)
			}
		})
	}
}

// The file and the flags override the defaults of a sub-command.
func TestDefaultsOfSubcommand(t *testing.T) {
	for name, tc := range map[string]struct {
		file string
		args []string
		want string
	}{
		"no setting":    {"", nil, ":8443"},
		"file":          {"metrics:\n  bindAddress: \":7\"\n", nil, ":7"},
		"flag":          {"metrics:\n  bindAddress: \":7\"\n", []string{"--metrics-bind-address=:6"}, ":6"},
		"disabled by 0": {"", []string{"--metrics-bind-address=0"}, "0"},
	} {
		t.Run(name, func(t *testing.T) {
			cfg, err := loadAs(nil, nil, tc.file, tc.args...)
			if err != nil || cfg.Metrics.BindAddress != tc.want {
				t.Errorf("got address %q and error %v, want %q", cfg.Metrics.BindAddress, err, tc.want)
			}
		})
	}
}

// Legacy flags set the current flags that replace them; the last value is used.
func TestLegacyFlags(t *testing.T) {
	for name, tc := range map[string]struct {
		args           []string
		path, key, err string
	}{
		"legacy flags":      {[]string{"--metrics-cert-dir=/a", "--metrics-key-name", "k"}, "/a", "k", ""},
		"current flags":     {[]string{"--metrics-cert-path=/a", "--metrics-cert-key=k"}, "/a", "k", ""},
		"legacy flag last":  {[]string{"--metrics-cert-path=/a", "-metrics-cert-dir=/b"}, "/b", "tls.key", ""},
		"legacy flag first": {[]string{"--metrics-cert-dir=/a", "--metrics-cert-path=/b"}, "/b", "tls.key", ""},
		"no value":          {[]string{"--metrics-cert-dir"}, "", "", "--metrics-cert-path needs a value"},
		"empty value":       {[]string{"--metrics-key-name="}, "", "", "--metrics-cert-key"},
	} {
		t.Run(name, func(t *testing.T) {
			cfg, err := loadAs(nil, nil, "", tc.args...)
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Errorf("got error %v, want %q", err, tc.err)
				}
				return
			}
			if err != nil || cfg.Metrics.CertPath != tc.path || cfg.Metrics.CertKey != tc.key {
				t.Errorf("got path %q, key %q and error %v", cfg.Metrics.CertPath, cfg.Metrics.CertKey, err)
			}
		})
	}
	known := flagTypes(settings(&Config{}, nil))
	for legacy, current := range legacyFlags {
		if _, found := known[legacy]; found {
			t.Errorf("the legacy flag --%s is also a current flag", legacy)
		}
		if _, found := known[current]; !found {
			t.Errorf("the legacy flag --%s sets --%s, which does not exist", legacy, current)
		}
	}
}

// Without flags only the components of the sub-command are enabled, and every flag overrides them.
func TestSelectionAndFlags(t *testing.T) {
	known := []string{"mlflow", "appwrapper", "platform"}
	rapid.Check(t, func(t *rapid.T) {
		selection := rapid.SliceOfDistinct(rapid.SampledFrom(known), rapid.ID[string]).Draw(t, "selection")
		if selection == nil {
			selection = []string{}
		}
		flags := rapid.MapOf(rapid.SampledFrom(known), rapid.Bool()).Draw(t, "switches")
		var args []string
		for name, enabled := range flags {
			value := "=false"
			if enabled {
				value = "=true"
			}
			args = append(args, "--enable-"+name+value)
		}
		cfg, err := loadAs(selection, nil, "", args...)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range known {
			want := slices.Contains(selection, name)
			if enabled, found := flags[name]; found {
				want = enabled
			}
			if cfg.Enabled(name) != want {
				t.Fatalf("%s: got enabled %t, want %t", name, cfg.Enabled(name), want)
			}
		}
	})
}

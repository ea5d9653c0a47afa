package prometheus

import (
	"fmt"
	"log/slog"
	"os"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
	"go.yaml.in/yaml/v3"
)

const (
	root      = "../.."
	rulesFile = root + "/config/prometheus/rules.yaml"
)

// language is the language of Prometheus 3.0 and later.
var language = parser.NewParser(parser.Options{})

// shippedRules returns the rules of the PrometheusRule. It checks them as Prometheus does when it loads rules: expressions, names of labels,
// templates.
func shippedRules(t *testing.T) []rulefmt.Rule {
	t.Helper()
	content, err := os.ReadFile(rulesFile)
	if err != nil {
		t.Fatal(err)
	}
	var resource struct{ Spec yaml.Node }
	if err := yaml.Unmarshal(content, &resource); err != nil {
		t.Fatal(err)
	}
	spec, err := yaml.Marshal(&resource.Spec)
	if err != nil {
		t.Fatal(err)
	}
	groups, errs := rulefmt.Parse(spec, false, model.LegacyValidation, language, slog.New(slog.DiscardHandler))
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	var rules []rulefmt.Rule
	for _, g := range groups.Groups {
		rules = append(rules, g.Rules...)
	}
	return rules
}

// ruleTests is a file in the format of `promtool test rules`.
type ruleTests struct {
	Tests []ruleTest `yaml:"tests"`
}

type ruleTest struct {
	Name     string         `yaml:"name"`
	Interval model.Duration `yaml:"interval"`
	Input    []struct {
		Series string `yaml:"series"`
		Values string `yaml:"values"`
	} `yaml:"input_series"`
	Alerts []struct {
		At       model.Duration  `yaml:"eval_time"`
		Name     string          `yaml:"alertname"`
		Expected []expectedAlert `yaml:"exp_alerts"`
	} `yaml:"alert_rule_test"`
}

type expectedAlert struct {
	Labels      map[string]string `yaml:"exp_labels"`
	Annotations map[string]string `yaml:"exp_annotations"`
}

func vectors(t *testing.T) []ruleTest {
	t.Helper()
	content, err := os.ReadFile("testdata/alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var file ruleTests
	if err := yaml.Unmarshal(content, &file); err != nil {
		t.Fatal(err)
	}
	return file.Tests
}

// TestEveryAlertFires runs the vectors. Every alert must fire in one of them, and be checked without firing at another time.
func TestEveryAlertFires(t *testing.T) {
	rules := shippedRules(t)
	fired, silent := map[string]bool{}, map[string]bool{}
	for _, test := range vectors(t) {
		t.Run(test.Name, func(t *testing.T) {
			for _, a := range test.Alerts {
				w := newEnvironment(t, test)
				got := w.firing(t, rules, a.Name, a.At)
				compare(t, fmt.Sprintf("%s at %s", a.Name, a.At), got, a.Expected)
				if len(a.Expected) > 0 {
					fired[a.Name] = true
				} else {
					silent[a.Name] = true
				}
			}
		})
	}
	for _, r := range rules {
		if r.Alert != "" && (!fired[r.Alert] || !silent[r.Alert]) {
			t.Errorf("%s: shown firing %v, shown silent %v", r.Alert, fired[r.Alert], silent[r.Alert])
		}
	}
}

// compare compares alerts with the expected ones. Annotations are compared if a vector names them.
func compare(t *testing.T, description string, got []alert, want []expectedAlert) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("%s: %d alerts fire, want %d: %v", description, len(got), len(want), got)
		return
	}
	for _, w := range want {
		found := false
		for _, g := range got {
			found = found || covers(g.labels, w.Labels) && covers(g.annotations, w.Annotations)
		}
		if !found {
			t.Errorf("%s: none of %v has labels %v and annotations %v", description, got, w.Labels, w.Annotations)
		}
	}
}

func covers(got, want map[string]string) bool {
	for name, value := range want {
		if got[name] != value {
			return false
		}
	}
	return true
}

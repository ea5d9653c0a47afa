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

// language is PromQL of Prometheus 3.
var language = parser.NewParser(parser.Options{})

// shippedRules returns the rules of the PrometheusRule, after the validation of Prometheus: expressions, names of labels and
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

func loadTests(t *testing.T) []ruleTest {
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

// TestEveryAlertFires runs the tests of alerts.yaml. They must check that every alert fires, and that it does not fire at another time.
func TestEveryAlertFires(t *testing.T) {
	rules := shippedRules(t)
	firing, inactive := map[string]bool{}, map[string]bool{}
	for _, test := range loadTests(t) {
		t.Run(test.Name, func(t *testing.T) {
			for _, a := range test.Alerts {
				env := newEnvironment(t, test)
				got := env.firing(t, rules, a.Name, a.At)
				compare(t, fmt.Sprintf("%s at %s", a.Name, a.At), got, a.Expected)
				if len(a.Expected) > 0 {
					firing[a.Name] = true
				} else {
					inactive[a.Name] = true
				}
			}
		})
	}
	for _, r := range rules {
		if r.Alert != "" && (!firing[r.Alert] || !inactive[r.Alert]) {
			t.Errorf("%s: tested while firing %t, tested while inactive %t, want both", r.Alert, firing[r.Alert], inactive[r.Alert])
		}
	}
}

// compare compares alerts with the labels and annotations of the expected alerts.
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

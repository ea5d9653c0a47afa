package prometheus

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
)

var documented = regexp.MustCompile("(?m)^\\| `([A-Za-z_:0-9]+)` \\| (?:(gauge|counter|histogram) \\| )?(?:((?:`[a-z]+`(?:, )?)*) \\| )?")

// known is a metric in docs/metrics.md with its type and labels; without a column for labels, labels is nil.
type known struct {
	kind   string
	labels []string
}

func knownMetrics(t *testing.T) map[string]known {
	t.Helper()
	page, err := os.ReadFile(root + "/docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]known{"up": {kind: "gauge"}}
	for _, row := range documented.FindAllStringSubmatch(string(page), -1) {
		k := known{kind: row[2]}
		if row[3] != "" {
			k.labels = strings.Split(strings.ReplaceAll(row[3], "`", ""), ", ")
		}
		out[row[1]] = k
	}
	if len(out) < 50 {
		t.Fatalf("only %d metrics are documented", len(out))
	}
	return out
}

// histogramPart matches the suffixes of the series of a histogram.
var histogramPart = regexp.MustCompile(`_(bucket|sum|count)$`)

// targetLabels are the labels that Prometheus adds.
var targetLabels = map[string]bool{"job": true, "namespace": true, "exported_namespace": true, "pod": true, "instance": true, "service": true, "le": true}

// checkQuery fails the test unless an expression is valid and uses documented metrics with their labels.
func checkQuery(t *testing.T, where, expr string, metrics map[string]known) {
	t.Helper()
	tree, err := language.ParseExpr(expr)
	if err != nil {
		t.Errorf("%s: unexpected error: %v", where, err)
		return
	}
	parser.Inspect(tree, func(node parser.Node, _ []parser.Node) error {
		selector, ok := node.(*parser.VectorSelector)
		if !ok {
			return nil
		}
		metric, found := metrics[selector.Name]
		if base := histogramPart.ReplaceAllString(selector.Name, ""); !found && metrics[base].kind == "histogram" {
			metric, found = metrics[base], true
		}
		if !found {
			t.Errorf("%s: docs/metrics.md does not know %s", where, selector.Name)
		}
		for _, m := range selector.LabelMatchers {
			checkMatcher(t, where, selector.Name, m, metric)
		}
		return nil
	})
}

func checkMatcher(t *testing.T, where, name string, m *labels.Matcher, metric known) {
	t.Helper()
	if m.Name == labels.MetricName || targetLabels[m.Name] || metric.labels == nil {
		return
	}
	for _, label := range metric.labels {
		if label == m.Name {
			return
		}
	}
	t.Errorf("%s: %s has no label %s, but %v", where, name, m.Name, metric.labels)
}

func TestRulesUseMetricsThatExist(t *testing.T) {
	metrics := knownMetrics(t)
	for _, r := range shippedRules(t) {
		where := r.Alert + r.Record
		checkQuery(t, where, r.Expr, metrics)
		if _, found := metrics[r.Record]; r.Record != "" && !found {
			t.Errorf("docs/metrics.md does not know what %s records", r.Record)
		}
	}
}

// An alert has the problem, its effect, its severity and the link to its runbook.
func TestAlertsHaveSummaryAndRunbook(t *testing.T) {
	for _, r := range shippedRules(t) {
		if r.Alert == "" {
			continue
		}
		severity := r.Labels["severity"]
		if severity != "critical" && severity != "warning" && severity != "info" {
			t.Errorf("%s: severity %q", r.Alert, severity)
		}
		if !strings.HasPrefix(r.Alert, "ODHPlatform") || !strings.HasSuffix(r.Annotations["runbook_url"], "/docs/runbooks/"+r.Alert+".md") {
			t.Errorf("%s: runbook %q", r.Alert, r.Annotations["runbook_url"])
		}
		for _, name := range []string{"summary", "description"} {
			if text := r.Annotations[name]; len(text) < 20 || !strings.HasSuffix(text, ".") {
				t.Errorf("%s: %s is no sentence: %q", r.Alert, name, text)
			}
		}
	}
}

package prometheus

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
)

// metricRow matches a row of docs/metrics.md: name, type and labels.
var metricRow = regexp.MustCompile("(?m)^\\| `([A-Za-z_:0-9]+)` \\| (?:(gauge|counter|histogram) \\| )?(?:((?:`[a-z]+`(?:, )?)*) \\| )?")

// metric is a metric in docs/metrics.md. labels is nil if the row lists no labels.
type metric struct {
	kind   string
	labels []string
}

func knownMetrics(t *testing.T) map[string]metric {
	t.Helper()
	page, err := os.ReadFile(root + "/docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]metric{"up": {kind: "gauge"}}
	for _, row := range metricRow.FindAllStringSubmatch(string(page), -1) {
		k := metric{kind: row[2]}
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

// targetLabels are the labels that Prometheus adds, and le, the label of histogram buckets.
var targetLabels = map[string]bool{"job": true, "namespace": true, "exported_namespace": true, "pod": true, "instance": true, "service": true, "le": true}

// checkQuery reports an expression that is invalid, or uses metrics or labels that are not documented.
func checkQuery(t *testing.T, where, expr string, metrics map[string]metric) {
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
		definition, found := metrics[selector.Name]
		if base := histogramPart.ReplaceAllString(selector.Name, ""); !found && metrics[base].kind == "histogram" {
			definition, found = metrics[base], true
		}
		if !found {
			t.Errorf("%s: docs/metrics.md does not list %s", where, selector.Name)
		}
		for _, m := range selector.LabelMatchers {
			checkMatcher(t, where, selector.Name, m, definition)
		}
		return nil
	})
}

func checkMatcher(t *testing.T, where, name string, m *labels.Matcher, definition metric) {
	t.Helper()
	if m.Name == labels.MetricName || targetLabels[m.Name] || definition.labels == nil {
		return
	}
	for _, label := range definition.labels {
		if label == m.Name {
			return
		}
	}
	t.Errorf("%s: %s has no label %s, only %v", where, name, m.Name, definition.labels)
}

func TestRulesUseExistingMetrics(t *testing.T) {
	metrics := knownMetrics(t)
	for _, r := range shippedRules(t) {
		where := r.Alert + r.Record
		checkQuery(t, where, r.Expr, metrics)
		if _, found := metrics[r.Record]; r.Record != "" && !found {
			t.Errorf("docs/metrics.md does not list the recorded metric %s", r.Record)
		}
	}
}

// An alert has a summary, a description, a severity and the link to its runbook.
func TestAlertsHaveSummaryAndRunbook(t *testing.T) {
	for _, r := range shippedRules(t) {
		if r.Alert == "" {
			continue
		}
		severity := r.Labels["severity"]
		if severity != "critical" && severity != "warning" && severity != "info" {
			t.Errorf("%s: unknown severity %q", r.Alert, severity)
		}
		if !strings.HasPrefix(r.Alert, "ODHPlatform") || !strings.HasSuffix(r.Annotations["runbook_url"], "/docs/runbooks/"+r.Alert+".md") {
			t.Errorf("%s: invalid name or runbook %q", r.Alert, r.Annotations["runbook_url"])
		}
		for _, name := range []string{"summary", "description"} {
			if text := r.Annotations[name]; len(text) < 20 || !strings.HasSuffix(text, ".") {
				t.Errorf("%s: %s is not a sentence: %q", r.Alert, name, text)
			}
		}
	}
}

package prometheus

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// shownQueries are the queries of a dashboard, by the title of their panel.
func shownQueries(t *testing.T, content string) map[string][]string {
	t.Helper()
	var page any
	if err := json.Unmarshal([]byte(content), &page); err != nil {
		t.Fatal(err)
	}
	out := map[string][]string{}
	var walk func(node any, title string)
	walk = func(node any, title string) {
		switch n := node.(type) {
		case []any:
			for _, each := range n {
				walk(each, title)
			}
		case map[string]any:
			if text, ok := n["title"].(string); ok {
				title = text
			}
			if expr, ok := n["expr"].(string); ok {
				out[title] = append(out[title], expr)
			}
			if definition, ok := n["query"].(string); ok && strings.HasPrefix(definition, "label_values(") {
				metric, _, _ := strings.Cut(strings.TrimPrefix(definition, "label_values("), ",")
				out["variables"] = append(out["variables"], metric)
			}
			for _, each := range n {
				walk(each, title)
			}
		}
	}
	walk(page, "")
	return out
}

// What is shown is understood by Prometheus, and made of metrics that exist; both formats show the same.
func TestDashboardsUseMetricsThatExist(t *testing.T) {
	metrics := knownMetrics(t)
	counts := map[string]int{}
	for _, file := range []string{"grafana.yaml", "console/console.yaml"} {
		text, err := os.ReadFile(root + "/config/dashboards/" + file)
		if err != nil {
			t.Fatal(err)
		}
		decoder := yaml.NewDecoder(bytes.NewReader(text))
		for {
			var configMap struct{ Data map[string]string }
			if err := decoder.Decode(&configMap); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatal(err)
			}
			for key, content := range configMap.Data {
				for title, queries := range shownQueries(t, content) {
					for _, expr := range queries {
						counts[file]++
						checkQuery(t, key+", "+title, strings.ReplaceAll(expr, "$namespace", ".*"), metrics)
					}
				}
			}
		}
	}
	if counts["grafana.yaml"] < 50 || counts["grafana.yaml"] != counts["console/console.yaml"] {
		t.Errorf("queries: %v", counts)
	}
}

// The check itself refuses what does not exist.
func TestUnknownMetricsAreFound(t *testing.T) {
	metrics := knownMetrics(t)
	for _, name := range []string{"odh_platform_conditions", "up", "controller_runtime_webhook_latency_seconds", "modelmesh_loadmodel_failure"} {
		if _, found := metrics[name]; !found {
			t.Errorf("%s is not known", name)
		}
	}
	if got := metrics["odh_platform_conditions"].labels; len(got) != 4 {
		t.Errorf("labels %v", got)
	}
	for _, expr := range []string{"sum(", "no_such_metric", `odh_platform_conditions{kid="MLflow"}`, "odh_platform_conditions_bucket"} {
		inner := &testing.T{}
		func() {
			checkQuery(inner, "test", expr, metrics)
		}()
		if !inner.Failed() {
			t.Errorf("%s is accepted", expr)
		}
	}
}

package prometheus

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"os"
	"reflect"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// shownQueries returns the queries of a dashboard by the title of their panel, and the metrics of its variables by "variables".
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
			for _, child := range n {
				walk(child, title)
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
			for _, child := range n {
				walk(child, title)
			}
		}
	}
	walk(page, "")
	return out
}

// configMap is a ConfigMap with a dashboard.
type configMap struct {
	Metadata struct {
		Name, Namespace string
		Labels          map[string]string
	}
	Data map[string]string
}

// dashboards returns the ConfigMaps in a file of config/dashboards.
func dashboards(t *testing.T, file string) []configMap {
	t.Helper()
	text, err := os.ReadFile(root + "/config/dashboards/" + file)
	if err != nil {
		t.Fatal(err)
	}
	var out []configMap
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	for {
		var c configMap
		if err := decoder.Decode(&c); errors.Is(err, io.EOF) {
			return out
		} else if err != nil {
			t.Fatal(err)
		}
		out = append(out, c)
	}
}

// Every query of the dashboards is valid and uses existing metrics. Both formats have the same panels.
func TestDashboardsUseExistingMetrics(t *testing.T) {
	metrics := knownMetrics(t)
	shown := map[string]map[string][]string{}
	for _, file := range []string{"grafana.yaml", "console/console.yaml"} {
		shown[file] = map[string][]string{}
		for _, c := range dashboards(t, file) {
			for key, content := range c.Data {
				for title, queries := range shownQueries(t, content) {
					shown[file][key+", "+title] = queries
					for _, expr := range queries {
						checkQuery(t, key+", "+title, strings.ReplaceAll(expr, "$namespace", ".*"), metrics)
					}
				}
			}
		}
	}
	if len(shown["grafana.yaml"]) < 40 || !reflect.DeepEqual(shown["grafana.yaml"], shown["console/console.yaml"]) {
		t.Errorf("%d panels of Grafana and %d of the console, with these queries: %v", len(shown["grafana.yaml"]), len(shown["console/console.yaml"]), shown)
	}
}

// The ConfigMaps have the namespace and the label that the sidecar of Grafana and the console select. The dashboard of ModelMesh keeps
// the uid of the legacy operator, because links contain it.
func TestDashboardConfigMapsHaveDiscoveryLabels(t *testing.T) {
	for file, want := range map[string]struct{ namespace, label, value string }{
		"grafana.yaml":         {"system", "grafana_dashboard", "1"},
		"console/console.yaml": {"openshift-config-managed", "console.openshift.io/dashboard", "true"},
	} {
		uids := map[string]string{}
		for _, c := range dashboards(t, file) {
			if c.Metadata.Namespace != want.namespace || c.Metadata.Labels[want.label] != want.value || len(c.Data) != 1 {
				t.Errorf("%s: %s is in namespace %s with labels %v, want namespace %s and label %s=%s", file, c.Metadata.Name, c.Metadata.Namespace, c.Metadata.Labels, want.namespace, want.label, want.value)
			}
			for _, content := range c.Data {
				var page struct{ UID, Title string }
				if err := json.Unmarshal([]byte(content), &page); err != nil {
					t.Fatal(err)
				}
				uids[page.UID] = page.Title
			}
		}
		if !maps.Equal(uids, map[string]string{"odh-platform-operator": "ODH Platform Operator", "vMm_rt-7z-new": "ModelMesh Dashboard"}) {
			t.Errorf("%s: unexpected uids %v", file, uids)
		}
	}
}

// Panels of Grafana have unique ids, do not overlap, and fit into the width of the page.
func TestPanelsDoNotOverlap(t *testing.T) {
	for _, c := range dashboards(t, "grafana.yaml") {
		for key, content := range c.Data {
			var page struct {
				Panels []struct {
					ID      int
					Title   string
					GridPos struct{ X, Y, W, H int }
				}
			}
			if err := json.Unmarshal([]byte(content), &page); err != nil {
				t.Fatal(err)
			}
			ids, panelAt := map[int]bool{}, map[[2]int]string{}
			for _, p := range page.Panels {
				if ids[p.ID] || p.GridPos.W < 1 || p.GridPos.H < 1 || p.GridPos.X+p.GridPos.W > 24 {
					t.Errorf("%s: panel %q has a duplicate id %d or an invalid position %+v", key, p.Title, p.ID, p.GridPos)
				}
				ids[p.ID] = true
				for x := range p.GridPos.W {
					for y := range p.GridPos.H {
						cell := [2]int{p.GridPos.X + x, p.GridPos.Y + y}
						if other := panelAt[cell]; other != "" {
							t.Fatalf("%s: panels %q and %q overlap at %v", key, other, p.Title, cell)
						}
						panelAt[cell] = p.Title
					}
				}
			}
		}
	}
}

// checkQuery reports invalid queries, unknown metrics and unknown labels.
func TestCheckQueryReportsUnknownMetrics(t *testing.T) {
	metrics := knownMetrics(t)
	for _, name := range []string{"odh_platform_conditions", "up", "controller_runtime_webhook_latency_seconds", "modelmesh_loadmodel_failure"} {
		if _, found := metrics[name]; !found {
			t.Errorf("metric %s is unknown", name)
		}
	}
	if got := metrics["odh_platform_conditions"].labels; len(got) != 4 {
		t.Errorf("labels %v of odh_platform_conditions, want four", got)
	}
	for _, expr := range []string{"sum(", "no_such_metric", `odh_platform_conditions{kid="MLflow"}`, "odh_platform_conditions_bucket"} {
		inner := &testing.T{}
		checkQuery(inner, "test", expr, metrics)
		if !inner.Failed() {
			t.Errorf("%s was accepted", expr)
		}
	}
}

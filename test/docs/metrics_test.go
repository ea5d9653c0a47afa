package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// metric holds the type and the labels of a metric, on a page or in the code.
type metric struct{ kind, labels string }

var (
	metricRow  = regexp.MustCompile("(?m)^\\| `([a-z_:0-9]+)` \\| (gauge|counter|histogram) \\| ([^|]*) \\| [A-Z0-9]")
	defined    = regexp.MustCompile(`New(Gauge|Counter|Histogram)(?:Vec)?\(prometheus\.[A-Za-z]+Opts\{\s*Name: "([a-z_]+)",\s*Help: "([^"]+)",?\s*\}(?:, \[\]string\{([^}]*)\})?`)
	registered = regexp.MustCompile(`metrics\.Registry\b`)
)

// documentedMetrics returns the metrics in a section of docs/metrics.md.
func documentedMetrics(t *testing.T, section string) map[string]metric {
	t.Helper()
	_, rest, found := strings.Cut(read(t, "docs/metrics.md"), "\n## "+section+"\n")
	if !found {
		t.Fatalf("docs/metrics.md has no section %q", section)
	}
	text, _, _ := strings.Cut(rest, "\n## ")
	out := map[string]metric{}
	for _, row := range metricRow.FindAllStringSubmatch(text, -1) {
		out[row[1]] = metric{row[2], strings.ReplaceAll(row[3], "`", "")}
	}
	return out
}

// definedMetrics returns the metrics that the manager defines.
func definedMetrics(t *testing.T) map[string]metric {
	t.Helper()
	out := map[string]metric{}
	visit := func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		found := defined.FindAllStringSubmatch(string(text), -1)
		if registered.Match(text) && len(found) == 0 {
			t.Errorf("%s registers metrics in a form that this test cannot parse", path)
		}
		for _, m := range found {
			out[m[2]] = metric{strings.ToLower(m[1]), strings.ReplaceAll(m[4], `"`, "")}
		}
		return nil
	}
	for _, dir := range []string{"cmd/manager", "controllers", "pkg", "webhooks"} {
		if err := filepath.WalkDir(filepath.Join(root, dir), visit); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

func TestEveryMetricIsDocumented(t *testing.T) {
	page, code := documentedMetrics(t, "Metrics of the operator"), definedMetrics(t)
	if len(code) < 15 {
		t.Fatalf("got %d metrics in the code, want at least 15: %v", len(code), code)
	}
	for name, want := range code {
		if got, found := page[name]; !found || got != want {
			t.Errorf("%s is a %s with labels %q, but docs/metrics.md has %+v", name, want.kind, want.labels, got)
		}
		if !strings.HasPrefix(name, "odh_platform_") && name != "appwrapper_phase_total" {
			t.Errorf("%s lacks the prefix odh_platform_", name)
		}
		if want.kind == "counter" != strings.HasSuffix(name, "_total") {
			t.Errorf("%s is a %s, want the suffix _total exactly for counters", name, want.kind)
		}
	}
	for name := range page {
		if _, found := code[name]; !found {
			t.Errorf("docs/metrics.md has %s, which is not in the code", name)
		}
	}
}

// Labels contain neither users nor single objects, except for metrics of shipped objects and metrics whose series are deleted with the
// object.
func TestMetricLabelsAreBounded(t *testing.T) {
	bounded := []string{
		"version", "revision", "goversion", "component", "group", "kind", "condition", "status", "verb", "certificate", "webhook", "decision",
		"result", "method", "code", "keys", "phase",
	}
	byObject := []string{"odh_platform_webhook_ca_injected", // one series for each shipped configuration
		"odh_platform_raycluster_certificate_expiry_timestamp_seconds", "odh_platform_modelmesh_etcd_watching", "appwrapper_phase_total",
		"odh_platform_resource_not_ready"} // only while the object is not ready
	for name, m := range definedMetrics(t) {
		for label := range strings.SplitSeq(m.labels, ", ") {
			if label != "" && !slices.Contains(bounded, label) && !slices.Contains(byObject, name) {
				t.Errorf("%s has the label %s: add it to bounded, or add the metric to byObject if its series are deleted with the object", name, label)
			}
		}
	}
}

var alertName = regexp.MustCompile(`(?m)^\s*- alert: (\S+)$`)

// Every alert has a runbook, and every runbook has an alert.
func TestEveryAlertHasRunbook(t *testing.T) {
	var alerts []string
	for _, found := range alertName.FindAllStringSubmatch(read(t, "config/prometheus/rules.yaml"), -1) {
		alerts = append(alerts, found[1])
	}
	if len(alerts) < 20 {
		t.Fatalf("got %d alerts, want at least 20: %v", len(alerts), alerts)
	}
	pages, err := filepath.Glob(filepath.Join(root, "docs/runbooks/*.md"))
	if err != nil {
		t.Fatal(err)
	}
	index := read(t, "docs/runbooks/README.md")
	for _, page := range pages {
		name := strings.TrimSuffix(filepath.Base(page), ".md")
		if name != "README" && !slices.Contains(alerts, name) {
			t.Errorf("docs/runbooks/%s.md has no alert", name)
		}
	}
	for _, name := range alerts {
		if !strings.Contains(index, "]("+name+".md)") {
			t.Errorf("docs/runbooks/README.md does not list %s", name)
		}
		text := read(t, "docs/runbooks/"+name+".md")
		at := 0
		for _, heading := range []string{"# " + name + "\n", "\n## Meaning\n", "\n## Impact\n", "\n## Diagnosis\n", "\n## Mitigation\n"} {
			next := strings.Index(text[at:], heading)
			if next < 0 {
				t.Errorf("docs/runbooks/%s.md lacks %q in this order", name, strings.TrimSpace(heading))
				break
			}
			at += next
		}
		if !strings.Contains(text, "```") {
			t.Errorf("docs/runbooks/%s.md contains no command", name)
		}
		if !strings.Contains(read(t, "config/prometheus/rules.yaml"), "/docs/runbooks/"+name+".md\n") {
			t.Errorf("no alert links to docs/runbooks/%s.md", name)
		}
	}
}

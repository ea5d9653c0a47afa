package docs

import (
	"regexp"
	"strings"
	"testing"
)

// harmful maps reasons to patterns of commands that mislead a reader who pastes a whole block.
var harmful = map[string]*regexp.Regexp{
	"the output is lost":                       regexp.MustCompile(`> */dev/null`),
	"an error is hidden":                       regexp.MustCompile(`\|\| *true\b`),
	"the next command may use the old objects": regexp.MustCompile(`--wait=false`),
}

// problemOf returns the reason why a block must not be pasted whole, or "".
func problemOf(b Block) string {
	for reason, pattern := range harmful {
		if pattern.MatchString(b.Text) {
			return reason
		}
	}
	_, after, pauses := strings.Cut(b.Text, "platform.opendatahub.io/paused=true")
	if between, _, resumes := strings.Cut(after, "platform.opendatahub.io/paused-"); pauses && resumes {
		if lines := strings.Split(strings.TrimSpace(between), "\n"); !strings.Contains(between, "scale ") || len(lines) < 4 {
			return "the block pauses a resource and immediately resumes it: split the block where the reader changes something"
		}
	}
	return ""
}

// Readers can paste each block of commands whole.
func TestBlocksCanBePastedWhole(t *testing.T) {
	for name, page := range pages(t) {
		for _, b := range Blocks(page) {
			if problem := problemOf(b); isShell(b) && problem != "" {
				t.Errorf("%s:%d: the block cannot be pasted whole: %s", name, b.Line, problem)
			}
		}
	}
	const pause, resume = "kubectl annotate mlflow mlflow platform.opendatahub.io/paused=true\n", "kubectl annotate mlflow mlflow platform.opendatahub.io/paused-\n"
	for text, harms := range map[string]bool{
		"base64 -d > /dev/null\n": true, "diff a b || true\n": true, "kubectl delete ns a --wait=false\n": true, pause + "kubectl scale deployment a\n" + resume: true,
		pause: false, resume: false, "base64 -d > ca.crt\n": false, pause + "kubectl scale deployment a\nb\nc\nd\n" + resume: false,
	} {
		if got := problemOf(Block{Text: text}); (got != "") != harms {
			t.Errorf("problemOf(%q) = %q, want a problem: %t", text, got, harms)
		}
	}
}

// alert matches the first line of a GitHub alert, which docs/site/hooks.py converts. alertKind also matches kinds outside of such a line.
var (
	alert     = regexp.MustCompile(`(?m)^> \[!(\w+)\]$`)
	alertKind = regexp.MustCompile(`\[!\w+\]`)
)

// Alerts have a kind that GitHub and the site render, and pages warn of the known dangers.
func TestAlerts(t *testing.T) {
	total := 0
	for name, page := range pages(t) {
		for _, found := range alert.FindAllStringSubmatch(page, -1) {
			total++
			if !regexp.MustCompile(`^(NOTE|TIP|IMPORTANT|WARNING|CAUTION)$`).MatchString(found[1]) {
				t.Errorf("%s has an alert of the unknown kind %s", name, found[1])
			}
		}
		if len(alertKind.FindAllString(page, -1)) != len(alert.FindAllString(page, -1)) {
			t.Errorf("%s has an alert whose kind is not alone in a line", name)
		}
	}
	if total < 15 {
		t.Errorf("got %d alerts, want at least 15", total)
	}
	for page, danger := range map[string]string{
		"docs/install.md": "FORCE=1", "docs/migrate/README.md": "CRD", "docs/modelmesh-etcd.md": "root", "docs/gitops.md": "force-migrate",
		"docs/components/modelmesh.md": "enable-auth", "docs/components/modelregistry.md": "kubeRBACProxy", "docs/components/mlflow.md": "storageRetentionPolicy",
		"docs/production.md": "SQLite", "SECURITY.md": "run code", "docs/multi-tenancy.md": "etcdUserPerNamespace", "docs/concepts.md": "storageRetentionPolicy",
	} {
		if !regexp.MustCompile(`(?m)^> (?:.*\n> )*.*` + regexp.QuoteMeta(danger)).MatchString(read(t, page)) {
			t.Errorf("%s does not warn of %s", page, danger)
		}
	}
}

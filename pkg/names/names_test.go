package names

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/validation"
	"pgregory.net/rapid"
)

func TestLabels(t *testing.T) {
	got := Labels("mlflow")
	want := map[string]string{
		"platform.opendatahub.io/operator":  "odh-platform-operator",
		"platform.opendatahub.io/component": "mlflow",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
	got["more"] = "1"
	if _, ok := Labels("mlflow")["more"]; ok {
		t.Error("Labels returned a shared map")
	}
}

func TestTruncate(t *testing.T) {
	for name, test := range map[string]struct {
		name  string
		limit int
		want  string
	}{
		"short":                {"mlflow", 63, "mlflow"},
		"exactly at the limit": {"mlflow", 6, "mlflow"},
		"too long":             {"mlflow-with-a-long-tail", 20, "mlflow-with-5e3068c9"},
		"cut after a dash":     {"abc-defghijklmnopq", 13, "abc-2e8a6811"},
		"hash only":            {"mlflow-server", 9, "c0213670"},
		"part of the hash":     {"mlflow-server", 4, "c021"},
		"only dashes":          {strings.Repeat("-", 30), 20, "a4eee14e"},
		"limit 0":              {"mlflow", 0, ""},
		"negative limit":       {"mlflow", -1, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Truncate(test.name, test.limit); got != test.want {
				t.Errorf("Truncate(%q, %d) = %q, want %q", test.name, test.limit, got, test.want)
			}
		})
	}
}

func TestTruncateProperties(t *testing.T) {
	label := rapid.StringMatching(`[a-z]([-a-z0-9]{0,80}[a-z0-9])?`)
	rapid.Check(t, func(t *rapid.T) {
		name, limit := label.Draw(t, "name"), rapid.IntRange(10, 63).Draw(t, "limit")
		short := Truncate(name, limit)
		if len(short) > limit {
			t.Fatalf("%q has more than %d bytes", short, limit)
		}
		if short != Truncate(name, limit) {
			t.Fatal("Truncate is not deterministic")
		}
		if problems := validation.IsDNS1123Label(short); len(problems) > 0 {
			t.Fatalf("%q: unexpected problems: %v", short, problems)
		}
		if other := label.Draw(t, "other"); other != name && len(name) > limit && Truncate(other, limit) == short {
			t.Fatalf("%q and %q have the same truncated name", name, other)
		}
	})
}

//go:build operands

package operands

import (
	"strings"
	"testing"

	"github.com/odh-platform/odh-platform-operator/controllers/mlflow/resources"
)

// TestUpgrades upgrades a database with data through all releases. After a change of the schema, the previous release refuses the database
// and leaves it unchanged. [mlflow-42]
func TestUpgrades(t *testing.T) {
	t.Parallel()
	for _, s := range stores(t, newPod(t), "upgrades") {
		t.Run(s.dialect, func(t *testing.T) {
			t.Parallel()
			p := newPod(t)
			spec, names, before := fromSecret(p, s.uri, ""), "Default", resources.ImageReport{}
			for _, release := range supported() {
				p.image = interpreters[release]
				got := p.migrate(spec, oldest)
				if got.code != 0 || got.found.MLflow != release || got.found.Schema == "" || got.found.Database != got.found.Schema {
					t.Fatalf("by %s: ended with %+v", release, got)
				}
				report.add("migration, "+s.dialect+", from "+before.MLflow+" to "+release, got.oneLine())
				if stored := p.python("experiment.py", s.uri); stored != names {
					t.Fatalf("by %s: the database has the experiments %s, want %s", release, stored, names)
				}
				p.python("experiment.py", s.uri, "of-"+release)
				names += " of-" + release
				if before.MLflow != "" && before.Schema != got.found.Schema {
					p.refuses(t, s, before.MLflow, got.found.Schema)
				}
				before = got.found
			}
		})
	}
}

// refuses runs the migration of an older release on a database of a later revision.
func (p *pod) refuses(t *testing.T, s store, release, revision string) {
	t.Helper()
	p.image = interpreters[release]
	content := p.dump(s)
	got := p.migrate(fromSecret(p, s.uri, ""), oldest)
	if got.code != 17 || !strings.Contains(got.termination, "at revision "+revision+", which MLflow "+release) {
		t.Errorf("back by %s: ended with %+v", release, got)
	}
	if p.dump(s) != content {
		t.Errorf("%s has changed the database of its successor", release)
	}
}

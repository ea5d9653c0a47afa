//go:build operands

package operands

import (
	"strings"
	"testing"

	"github.com/odh-platform/odh-platform-operator/controllers/mlflow/resources"
)

// TestUpgrades upgrades a database with data through the tested releases. After a change of the schema, the previous release must reject
// the database and not change it. [mlflow-42]
func TestUpgrades(t *testing.T) {
	t.Parallel()
	for _, s := range stores(t, newPod(t), "upgrades") {
		t.Run(s.dialect, func(t *testing.T) {
			t.Parallel()
			p := newPod(t)
			spec, names, before := fromSecret(p, s.uri, ""), "Default", resources.ImageReport{}
			for _, release := range testedReleases() {
				p.image = mlflowImages[release]
				got := p.migrate(spec, oldest)
				if got.code != 0 || got.imageReport.MLflow != release || got.imageReport.Schema == "" || got.imageReport.Database != got.imageReport.Schema {
					t.Fatalf("by %s: got result %+v, want success at its own revision", release, got)
				}
				report.add("migration, "+s.dialect+", from "+before.MLflow+" to "+release, got.oneLine())
				if stored := p.python("experiment.py", s.uri); stored != names {
					t.Fatalf("by %s: experiments %s, want %s", release, stored, names)
				}
				p.python("experiment.py", s.uri, "of-"+release)
				names += " of-" + release
				if before.MLflow != "" && before.Schema != got.imageReport.Schema {
					p.expectRejection(t, s, before.MLflow, got.imageReport.Schema)
				}
				before = got.imageReport
			}
		})
	}
}

// expectRejection expects that the migration of an older release rejects a database of a later revision and does not change it.
func (p *pod) expectRejection(t *testing.T, s store, release, revision string) {
	t.Helper()
	p.image = mlflowImages[release]
	content := p.dump(s)
	got := p.migrate(fromSecret(p, s.uri, ""), oldest)
	if got.code != 17 || !strings.Contains(got.termination, "at revision "+revision+", which MLflow "+release) {
		t.Errorf("back by %s: got result %+v, want code 17 for revision %s", release, got, revision)
	}
	if p.dump(s) != content {
		t.Errorf("%s changed the database of a later release", release)
	}
}

//go:build operands

package operands

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
	"github.com/odh-platform/odh-platform-operator/controllers/mlflow/resources"
	"github.com/odh-platform/odh-platform-operator/test/cluster"
	"github.com/odh-platform/odh-platform-operator/test/operands/machine"
)

const (
	// runExpiry limits a run of a container. MLflow retries an unreachable database for about 100 s.
	runExpiry = 6 * time.Minute
	// revision3101 is the schema of MLflow 3.10.1, nine revisions before that of 3.14.0.
	revision3101 = "1b5f0d9ad7c1"
	// revision3140 is the schema of MLflow 3.14.0.
	revision3140 = "b7e4c1a90f23"
	// revision3180 is the schema of MLflow 3.18.0.
	revision3180 = "f4a9b2c7d1e6"
	// revisionBefore is the revision before revision3140.
	revisionBefore = "89d3d66ed43f"
)

// migrationContainer returns the container of the migration Job.
func migrationContainer(t *testing.T, spec mlflowv1.MLflowSpec, version string) corev1.Container {
	t.Helper()
	root, err := cluster.RepositoryRoot()
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile(filepath.Join(root, "controllers", "mlflow", "resources", "migrate.py"))
	if err != nil {
		t.Fatal(err)
	}
	c := render(t, spec).server().Containers[0]
	c.Name = "db-migrate"
	c.Command, c.Args = []string{"/bin/sh", "-ec"}, []string{`exec python3.12 -c "$MIGRATION_PYTHON_SCRIPT"`}
	c.Env = append(slices.DeleteFunc(c.Env, func(e corev1.EnvVar) bool { return e.Name == "MLFLOW_READ_REPLICA_BACKEND_STORE_URI" }),
		corev1.EnvVar{Name: "MLFLOW_READ_REPLICA_BACKEND_STORE_URI"},
		corev1.EnvVar{Name: "MIGRATION_PYTHON_SCRIPT", Value: string(program)},
		corev1.EnvVar{Name: "SUPPORTED_MLFLOW_VERSION", Value: version})
	return c
}

// fromSecret returns the spec of an MLflow whose Secret contains the URIs of its stores.
func fromSecret(p *pod, backend, registry string) mlflowv1.MLflowSpec {
	ref := func(name string) *corev1.SecretKeySelector {
		return &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: "stores"}, Key: name}
	}
	p.secrets["stores/backend"] = backend
	spec := mlflowv1.MLflowSpec{BackendStoreURIFrom: ref("backend"), ServeArtifacts: true, ArtifactsDestination: "file:///mlflow/artifacts"}
	if registry != "" {
		p.secrets["stores/registry"] = registry
		spec.RegistryStoreURIFrom = ref("registry")
	}
	return spec
}

// migrate runs the migration with additional arguments, and expects that its output contains no part of a URI.
func (p *pod) migrate(spec mlflowv1.MLflowSpec, version string, args ...string) containerResult {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), runExpiry)
	defer cancel()
	c := migrationContainer(p.t, spec, version)
	c.Args[0] = strings.Join(append([]string{c.Args[0]}, args...), " ")
	p.must(os.RemoveAll(p.path("termination-log")))
	result := p.run(ctx, &c)
	for _, secret := range []string{machine.Password, url.PathEscape(machine.Password), "hunter2", "://", "localhost", "db.invalid"} {
		if strings.Contains(result.stdout+result.stderr+result.termination, secret) {
			p.t.Errorf("the output contains %q:\n%s%s%s", secret, result.stdout, result.stderr, result.termination)
		}
	}
	result.imageReport = resources.ParseImageReport(&corev1.ContainerStateTerminated{Message: result.termination})
	result.termination, _, _ = strings.Cut(result.termination, "mlflow=") // the line of the report
	result.termination = strings.TrimSpace(result.termination)
	if result.code == 0 && result.stderr+result.termination != "" {
		p.t.Errorf("unexpected errors of a successful migration: %s%s", result.stderr, result.termination)
	}
	return result
}

// python runs a script of testdata with the Python of the image.
func (p *pod) python(script string, args ...string) string {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), runExpiry)
	defer cancel()
	text, err := os.ReadFile(filepath.Join("testdata", script))
	p.must(err)
	result := p.run(ctx, &corev1.Container{Name: script, Command: append([]string{"python", "-c", string(text)}, args...)})
	if result.code != 0 {
		p.t.Fatalf("%s: exit code %d:\n%s%s", script, result.code, result.stdout, result.stderr)
	}
	return strings.TrimSpace(result.stdout)
}

// store is a database of a dialect.
type store struct{ dialect, uri string }

// stores creates an empty database in PostgreSQL, and returns it with a file for SQLite that does not exist yet.
func stores(t *testing.T, p *pod, name string) []store {
	t.Helper()
	if err := database.Create(t.Context(), name); err != nil {
		t.Fatal(err)
	}
	return []store{
		{"PostgreSQL", database.URI(name, "sslmode=require")},
		{"SQLite", "sqlite:///" + p.path(name+".db")},
	}
}

// oneLine formats the result as one line for the report.
func (r containerResult) oneLine() string {
	if r.code == 0 {
		return "0: " + strings.ReplaceAll(strings.TrimSpace(r.stdout), "\n", "; ")
	}
	return fmt.Sprintf("%d: %s", r.code, r.termination)
}

// TestMigrationFailures tests migrations that fail because of the URI of a store. The result contains no part of the URI.
func TestMigrationFailures(t *testing.T) {
	t.Parallel()
	sqlite := func(p *pod, name string) string { return "sqlite:///" + p.path(name+".db") }
	for _, c := range []struct {
		name string
		// uris returns the URIs of backend and registry.
		uris    func(p *pod) (backend, registry string)
		version string
		code    int
		message string
	}{
		{"a backend of files", func(*pod) (string, string) { return "file:///mlflow/hunter2", "" }, oldest, 11, "the backend store is none of sqlite, postgresql, mysql"},
		{"a backend of another dialect", func(*pod) (string, string) { return "mssql+pyodbc://user:hunter2@db.invalid/a", "" }, oldest, 11, "the backend store is none of sqlite, postgresql, mysql"},
		{"a registry of files", func(p *pod) (string, string) { return sqlite(p, "a"), "file:///hunter2" }, oldest, 12, "the registry store is none of sqlite, postgresql, mysql"},
		{"an invalid URI", func(*pod) (string, string) { return "postgresql", "" }, oldest, 15, "the migration failed: ArgumentError"},
		{"an invalid port", func(*pod) (string, string) { return "postgresql://user:hunter2@db.invalid:port/a", "" }, oldest, 15, "the migration failed: ValueError"},
		{"a driver that the image lacks", func(*pod) (string, string) { return "mysql+aiomysql://user:hunter2@db.invalid/a", "" }, oldest, 15, "the migration failed: ModuleNotFoundError"},
		{"an unreachable server", func(p *pod) (string, string) { return unreachable(p), "" }, oldest, 15, "the migration failed: OperationalError, refused"},
		{"a wrong password", func(*pod) (string, string) {
			return strings.Replace(database.URI("postgres", "sslmode=require"), "hunter2", "hunter2x", 1), ""
		}, oldest, 15, "the migration failed: OperationalError, login"},
		{"a folder that cannot be created", func(*pod) (string, string) { return "sqlite:////proc/hunter2/a.db", "" }, oldest, 15, "the migration failed: FileNotFoundError"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := newPod(t)
			backend, registry := c.uris(p)
			got := p.migrate(fromSecret(p, backend, registry), c.version)
			if got.code != c.code || got.termination != c.message || got.stderr != c.message+"\n" {
				t.Errorf("[mlflow-42] result %+v, want %d: %s", got, c.code, c.message)
			}
			report.add("migration, "+c.name, got.oneLine())
		})
	}
}

// unreachable returns the URI of a server at a closed port.
func unreachable(p *pod) string {
	port, err := machine.FreePort()
	p.must(err)
	return fmt.Sprintf("postgresql://user:hunter2@localhost:%d/a", port)
}

// TestMigrationWithoutStores expects that a migration without a store succeeds, although the image is older than the supported version.
func TestMigrationWithoutStores(t *testing.T) {
	t.Parallel()
	p := newPod(t)
	got := p.migrate(fromSecret(p, " ", " "), "9.9.9")
	if got.code != 0 || got.stdout != "no store is configured, there is nothing to migrate\n" {
		t.Errorf("[mlflow-42] got result %+v, want success without a store", got)
	}
	report.add("migration, no store", got.oneLine())
}

// TestMigration migrates an empty database with the oldest MLflow, then again without a change of the schema, and then with the newest. It
// expects that the oldest then rejects the database. The oldest also migrates the schema of MLflow 3.10.1.
func TestMigration(t *testing.T) {
	t.Parallel()
	p := newPod(t)
	for _, s := range stores(t, p, "fresh") {
		t.Run(s.dialect, func(t *testing.T) {
			t.Parallel()
			p := newPod(t)
			spec := fromSecret(p, s.uri, "")
			expect := func(description, revision, stdout string) {
				t.Helper()
				got := p.migrate(spec, "v"+oldest+"+build")
				if got.code != 0 || got.stdout != stdout || got.imageReport != (resources.ImageReport{MLflow: p.image.release, Schema: revision, Database: revision}) {
					t.Fatalf("[mlflow-42] %s: result %+v, want\n%s", description, got, stdout)
				}
				if got := p.python("revision.py", s.uri); got != revision {
					t.Errorf("%s: revision %s, want %s", description, got, revision)
				}
				report.add("migration, "+s.dialect+", "+description, got.oneLine())
			}
			expect("fresh database", revision3140, "backend store: empty, creating the tables\nbackend store: at revision "+revision3140+"\n")
			p.python("experiment.py", s.uri, "kept")
			expect("current schema", revision3140, "backend store: at revision "+revision3140+", upgrading\nbackend store: at revision "+revision3140+"\n")
			p.image = mlflowImages[newest]
			expect("by the newest", revision3180, "backend store: at revision "+revision3140+", upgrading\nbackend store: at revision "+revision3180+"\n")
			if got := p.python("experiment.py", s.uri); got != "Default kept" {
				t.Errorf("experiments %s, want %s", got, "Default kept")
			}
			p.image = mlflowImages[oldest]
			before := p.dump(s)
			got := p.migrate(spec, oldest)
			want := resources.ImageReport{MLflow: oldest, Schema: revision3140, Database: revision3180}
			if got.code != 17 || got.imageReport != want || got.termination != unknownRevision(revision3180) {
				t.Errorf("[mlflow-42] by the oldest: got result %+v, want code 17 and %+v", got, want)
			}
			if p.dump(s) != before {
				t.Error("[mlflow-42] the oldest image changed the database of the newest image")
			}
			report.add("migration, "+s.dialect+", newer database by the oldest", got.oneLine())
		})
	}
	for _, s := range stores(t, p, "old") {
		t.Run(s.dialect+" of 3.10.1", func(t *testing.T) {
			t.Parallel()
			p := newPod(t)
			p.python("schema.py", s.uri, revision3101, "INSERT INTO experiments (experiment_id, name, artifact_location, lifecycle_stage) VALUES (7, 'old', '/old', 'active')")
			got := p.migrate(fromSecret(p, s.uri, ""), oldest)
			want := "backend store: at revision " + revision3101 + ", upgrading\nbackend store: at revision " + revision3140 + "\n"
			if got.code != 0 || got.stdout != want {
				t.Errorf("[mlflow-42] result %+v, want\n%s", got, want)
			}
			if names := p.python("experiment.py", s.uri); names != "Default old" {
				t.Errorf("experiments %s, want %s", names, "Default old")
			}
			report.add("migration, "+s.dialect+", schema of MLflow 3.10.1", got.oneLine())
		})
	}
}

func unknownRevision(revision string) string {
	return "the backend store is at revision " + revision + ", which MLflow " + oldest + " of this image does not know: its newest is " + revision3140
}

// TestMigrationOfUnknownRevision expects that a database at a revision which the image does not know is not changed.
func TestMigrationOfUnknownRevision(t *testing.T) {
	t.Parallel()
	for _, s := range stores(t, newPod(t), "newer") {
		t.Run(s.dialect, func(t *testing.T) {
			t.Parallel()
			p := newPod(t)
			p.python("schema.py", s.uri, revisionBefore, "UPDATE alembic_version SET version_num = 'ffffffffffff'")
			got := p.migrate(fromSecret(p, s.uri, ""), oldest)
			if want := unknownRevision("ffffffffffff"); got.code != 17 || got.termination != want {
				t.Errorf("[mlflow-42] result %+v, want 17: %s", got, want)
			}
			if got := p.python("revision.py", s.uri); got != "ffffffffffff" {
				t.Errorf("revision %s, want %s", got, "ffffffffffff")
			}
			report.add("migration, "+s.dialect+", revision that the image does not know", got.oneLine())
		})
	}
}

// dump returns the content of a database.
func (p *pod) dump(s store) string {
	p.t.Helper()
	return p.python("dump.py", s.uri)
}

// TestMigrationByNewImage expects that an unsupported release does not change an empty database, and that the newest release migrates it.
func TestMigrationByNewImage(t *testing.T) {
	t.Parallel()
	for _, s := range stores(t, newPod(t), "newest") {
		t.Run(s.dialect, func(t *testing.T) {
			t.Parallel()
			p := newPod(t)
			p.image = mlflowImages[tooOld]
			spec := fromSecret(p, s.uri, "")
			if got := p.migrate(spec, oldest); got.code != 10 || got.imageReport.MLflow != tooOld || got.termination != "this image holds MLflow 3.13.0, the oldest supported is 3.14.0" {
				t.Errorf("[mlflow-42] too old: got result %+v, want code 10", got)
			}
			if tables := p.python("tables.py", s.uri); tables != "" {
				t.Errorf("the unsupported release created the tables %s", tables)
			}
			p.image = mlflowImages[newest]
			got := p.migrate(spec, oldest)
			want := "backend store: empty, creating the tables\nbackend store: at revision " + revision3180 + "\n"
			if got.code != 0 || got.stdout != want || got.imageReport.MLflow != newest {
				t.Errorf("[mlflow-42] result %+v, want\n%s", got, want)
			}
			report.add("migration, "+s.dialect+", empty database by the newest", got.oneLine())
		})
	}
}

// TestMigrationWithUnexpectedRevision expects an error if the database is at another revision after the upgrade.
func TestMigrationWithUnexpectedRevision(t *testing.T) {
	t.Parallel()
	p := newPod(t)
	uri := "sqlite:///" + p.path("stuck.db")
	p.python("schema.py", uri, revisionBefore, "CREATE TRIGGER stuck AFTER UPDATE ON alembic_version BEGIN UPDATE alembic_version SET version_num = '"+revision3101+"'; END")
	got := p.migrate(fromSecret(p, uri, ""), oldest)
	want := "the backend store is at revision " + revision3101 + ", the head of this image is " + revision3140
	if got.code != 13 || got.termination != want {
		t.Errorf("[mlflow-42] result %+v, want 13: %s", got, want)
	}
	report.add("migration, SQLite, unexpected revision after the upgrade", got.oneLine())
}

// TestMigrationGap expects that the repair module of an image runs only for the backend, and that a separate registry is migrated.
func TestMigrationGap(t *testing.T) {
	t.Parallel()
	p := newPod(t)
	modules, err := filepath.Abs("testdata/gap")
	p.must(err)
	p.extraEnv = []string{"PYTHONPATH=" + modules, "PYTHONDONTWRITEBYTECODE=1"}
	both := stores(t, p, "gap")
	got := p.migrate(fromSecret(p, both[1].uri, both[0].uri), oldest)
	want := "gap of gap.db\n"
	for _, name := range []string{"backend", "registry"} {
		want += name + " store: empty, creating the tables\n" + name + " store: at revision " + revision3140 + "\n"
	}
	if got.code != 0 || got.stdout != want {
		t.Errorf("[mlflow-42] result %+v, want\n%s", got, want)
	}
	report.add("migration, SQLite backend with repair, PostgreSQL registry", got.oneLine())
}

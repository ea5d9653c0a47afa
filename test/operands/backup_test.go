//go:build operands

package operands

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/odh-platform/odh-platform-operator/apis/modelregistry/v1beta1"
	"github.com/odh-platform/odh-platform-operator/apis/server"
	"github.com/odh-platform/odh-platform-operator/test/operands/machine"
)

const (
	backupUser, backupDatabase = "modelregistry", "model_registry"
	// backupData is a script that creates tables with keys, sequences, references and several types.
	backupData = `CREATE TABLE models (id serial PRIMARY KEY, name varchar(255) NOT NULL UNIQUE, score double precision, made timestamptz DEFAULT '2026-01-01');
CREATE TABLE versions (id bigserial PRIMARY KEY, model int NOT NULL REFERENCES models ON DELETE CASCADE, payload bytea);
CREATE INDEX by_model ON versions (model);
CREATE VIEW newest AS SELECT model, max(id) FROM versions GROUP BY model;
INSERT INTO models (name, score) VALUES ('credit-risk', 0.5), ('fraud ''ü', NULL);
INSERT INTO versions (model, payload) SELECT 1, decode(md5(i::text), 'hex') FROM generate_series(1, 1000) i;`
)

// backupPod runs the pods of the CronJob for backups as processes.
type backupPod struct {
	t         *testing.T
	dir       string
	container corev1.Container
}

func newBackupPod(t *testing.T) *backupPod {
	t.Helper()
	r := renderRegistry(t, "backups", v1beta1.ModelRegistrySpec{Postgres: &v1beta1.PostgresConfig{
		GenerateDeployment: new(true), ServerTLS: server.Enabled, Backup: &v1beta1.PostgresBackup{Schedule: "@daily", Keep: new(int32(2))},
	}})
	var job batchv1.CronJob
	rendered{t, r.objects}.read("CronJob", registryName+"-postgres-backup", &job)
	b := &backupPod{t: t, dir: t.TempDir(), container: job.Spec.JobTemplate.Spec.Template.Spec.Containers[0]}
	must(t, os.WriteFile(filepath.Join(b.dir, "ca.crt"), authority.CA, 0o600))
	must(t, os.Mkdir(filepath.Join(b.dir, "backups"), 0o700))
	return b
}

// run runs the pod. The variables override its own.
func (b *backupPod) run(variables ...string) (string, error) {
	b.t.Helper()
	var words []string
	for _, word := range b.container.Command {
		words = append(words, strings.ReplaceAll(word, "/backups", filepath.Join(b.dir, "backups")))
	}
	command := exec.CommandContext(b.t.Context(), words[0], words[1:]...)
	command.Env = []string{"PATH=" + database.Bin + ":/usr/bin:/bin", "HOME=/nonexistent", "PGPORT=" + strconv.Itoa(database.Port)}
	for _, entry := range b.container.Env {
		switch entry.Name {
		case "PGHOST":
			entry.Value = "localhost" // replaces the Service
		case "PGUSER":
			entry.Value = backupUser
		case "PGPASSWORD":
			entry.Value = machine.Password
		case "PGSSLROOTCERT":
			entry.Value = filepath.Join(b.dir, "ca.crt") // replaces the Secret
		}
		command.Env = append(command.Env, entry.Name+"="+entry.Value)
	}
	command.Env = append(command.Env, variables...)
	output, err := command.CombinedOutput()
	return string(output), err
}

func (b *backupPod) mustRun(variables ...string) string {
	b.t.Helper()
	output, err := b.run(variables...)
	if err != nil {
		b.t.Fatalf("%v: unexpected error: %v\n%s", variables, err, output)
	}
	return output
}

func (b *backupPod) files() []string {
	b.t.Helper()
	entries, err := os.ReadDir(filepath.Join(b.dir, "backups"))
	must(b.t, err)
	var names []string
	for _, e := range entries {
		if e.Name() != ".lock" {
			names = append(names, e.Name())
		}
	}
	return names
}

// renameNewest renames the newest backup to a backup of the year.
func (b *backupPod) renameNewest(year string) string {
	b.t.Helper()
	names := b.files()
	newest := names[len(names)-1]
	older := backupDatabase + "-" + year + newest[len(backupDatabase)+5:]
	must(b.t, os.Rename(filepath.Join(b.dir, "backups", newest), filepath.Join(b.dir, "backups", older)))
	return older
}

// sql executes a script as a user in a database and returns the output.
func sql(t *testing.T, user, name, text string) string {
	t.Helper()
	command := database.Command(context.WithoutCancel(t.Context()), "psql", "--no-psqlrc", "--quiet", "--tuples-only", "--no-align", "--set=ON_ERROR_STOP=1",
		"--host=localhost", "--port="+strconv.Itoa(database.Port), "--username="+user, "--dbname="+name)
	command.Stdin = strings.NewReader(text)
	output, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("unexpected error: %v\n%s", err, output)
	}
	return strings.TrimSpace(string(output))
}

const contentQuery = `SELECT (SELECT count(*) FROM models), (SELECT count(*) FROM versions), (SELECT md5(string_agg(payload::text, ',' ORDER BY id)) FROM versions),
(SELECT max FROM newest), (SELECT tableowner FROM pg_tables WHERE tablename = 'models'), nextval('versions_id_seq');`

// TestBackupAndRestore runs the script of the CronJob for backups against a real PostgreSQL over verified TLS. It restores backups into
// a changed database and into an empty database.
func TestBackupAndRestore(t *testing.T) {
	t.Parallel()
	sql(t, "mlflow", "postgres", "CREATE ROLE "+backupUser+" LOGIN PASSWORD '"+machine.Password+"'")
	sql(t, "mlflow", "postgres", "CREATE DATABASE "+backupDatabase+" OWNER "+backupUser)
	sql(t, backupUser, backupDatabase, backupData)
	b := newBackupPod(t)
	b.mustRun()
	first := b.renameNewest("2024")
	want := sql(t, backupUser, backupDatabase, contentQuery)

	t.Run("restores into a changed database", func(t *testing.T) {
		sql(t, backupUser, backupDatabase, "DELETE FROM models WHERE id = 1; DROP VIEW newest; CREATE TABLE later (id int); INSERT INTO models (name) VALUES ('later')")
		b.mustRun("RESTORE=latest")
		if got := sql(t, backupUser, backupDatabase, contentQuery); got != want {
			t.Errorf("restored %s, want %s", got, want)
		}
	})
	t.Run("restores into an empty database", func(t *testing.T) {
		sql(t, "mlflow", "postgres", "DROP DATABASE "+backupDatabase)
		sql(t, "mlflow", "postgres", "CREATE DATABASE "+backupDatabase+" OWNER "+backupUser)
		b.mustRun("RESTORE=" + first)
		if got := sql(t, backupUser, backupDatabase, contentQuery); got != want {
			t.Errorf("restored %s, want %s", got, want)
		}
	})
	t.Run("keeps the newest backups", func(t *testing.T) {
		b.mustRun()
		second := b.renameNewest("2025")
		b.mustRun()
		names := b.files()
		if len(names) != 2 || names[0] != second || slices.Contains(names, first) {
			t.Errorf("backups %v, want 2 without the oldest", names)
		}
	})
	t.Run("changes neither backups nor data when it fails", func(t *testing.T) {
		before, data := b.files(), sql(t, backupUser, backupDatabase, "SELECT count(*) FROM versions")
		must(t, os.WriteFile(filepath.Join(b.dir, "backups", "killed.partial"), nil, 0o600))
		damaged := filepath.Join(b.dir, "backups", "damaged")
		content, err := os.ReadFile(filepath.Join(b.dir, "backups", before[0]))
		must(t, err)
		must(t, os.WriteFile(damaged, content[:len(content)-2000], 0o600))
		for _, test := range []struct{ name, variable, want string }{
			{"a missing backup", "RESTORE=yesterday", "There is no backup yesterday"},
			{"a truncated backup", "RESTORE=damaged", "pg_restore"},
			{"a missing CA file", "PGSSLROOTCERT=" + database.Dir + "/none", "does not exist"},
			{"another server name", "PGHOST=127.0.0.1", "does not match host name"},
			{"another password", "PGPASSWORD=wrong", "password authentication failed"},
			{"an unreachable server", "PGPORT=1", "Connection refused"},
		} {
			output, err := b.run(test.variable)
			if err == nil || !strings.Contains(output, test.want) {
				t.Errorf("%s: error %v, want an error and %q in the output:\n%s", test.name, err, test.want, output)
			}
		}
		must(t, os.Remove(damaged))
		if got := b.files(); !slices.Equal(got, before) {
			t.Errorf("backups %v, want %v", got, before)
		}
		if got := sql(t, backupUser, backupDatabase, "SELECT count(*) FROM versions"); got != data {
			t.Errorf("%s versions, want %s", got, data)
		}
	})
	report.add("registry, backup and restore over verified TLS", strings.Join(b.files(), " "))
}

package resources

import (
	"bytes"
	"errors"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

// TestMigrationExits compares the whole table, because clients compare these texts.
func TestMigrationExits(t *testing.T) {
	type exitText struct {
		Message  string
		Terminal bool
	}
	want := map[int32]exitText{
		10: {"migration image reports an unexpected MLflow version unknown; expected 3.14.0 or newer: set spec.image to such an image", true},
		11: {"operator-managed migration only supports SQL backend store URIs: use one that begins with sqlite, postgresql or mysql", true},
		12: {"operator-managed migration only supports SQL registry store URIs: use one that begins with sqlite, postgresql or mysql", true},
		13: {"migration completed but the resulting schema revision does not match the image's Alembic head: another program may have changed the schema; restore a backup, or run mlflow db upgrade with this image", true},
		14: {"migration failed because Alembic could not resolve the schema revision graph: a newer MLflow has probably migrated the database; use an image of that version, or restore a backup", true},
		15: {"migration failed due to a retryable database or migration error", false},
		16: {"cannot open a database; check the host, the port, the user and the password in the URI", false},
		17: {"the database has schema revision unknown of a newer MLflow, and the image contains MLflow unknown, which supports schema revisions up to unknown: " +
			"use an image with the MLflow version that migrated the database, or a newer one, or restore an older backup", true},
	}
	got := map[int32]exitText{}
	for code := int32(-1); code <= 256; code++ {
		if text, terminal, found := MigrationExit(code, ImageReport{}, "3.14.0"); found {
			got[code] = exitText{text, terminal}
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("[mlflow-43] (-want +got):\n%s", diff)
	}
	causes := regexp.MustCompile(`(?m)^    \("([a-z]+)", \(`).FindAllStringSubmatch(migrationProgram, -1)
	for _, cause := range causes {
		if text, _, _ := MigrationExit(15, ImageReport{Cause: cause[1]}, ""); text != want[15].Message+causeTexts[cause[1]] || causeTexts[cause[1]] == "" {
			t.Errorf("cause %s: got message %q", cause[1], text)
		}
	}
	if len(migrationExits) != len(want) || len(causes) != len(causeTexts) {
		t.Errorf("[mlflow-43] %d entries for %d codes, %d causes for %d texts", len(migrationExits), len(want), len(causes), len(causeTexts))
	}
}

// The program and the table have the same exit codes.
func TestMigrationExitCodesMatchProgram(t *testing.T) {
	var program, table []string
	for _, found := range regexp.MustCompile(`(?m)^[A-Z_]+ = (\d+)$`).FindAllStringSubmatch(migrationProgram, -1) {
		program = append(program, found[1])
	}
	for _, exit := range migrationExits {
		table = append(table, strconv.Itoa(int(exit.code)))
	}
	if diff := cmp.Diff(table, program); diff != "" {
		t.Errorf("[mlflow-42] codes (-table +program):\n%s", diff)
	}
}

// The kubelet would expand $(NAME) and $$ in the program. The size matters, because the program is an environment variable.
func TestMigrationProgramFitsEnvironment(t *testing.T) {
	if strings.Contains(migrationProgram, "$") {
		t.Error("the program contains a dollar sign, which Kubernetes would expand as a variable reference")
	}
	if size := len(migrationProgram); size > 16<<10 {
		t.Errorf("the program has %d bytes, want at most 16 KiB", size)
	}
}

// uri returns a store URI with a password, which must not be printed. Its last part names the database.
func uri(dialect, name string) string {
	return dialect + "://user:hunter2@db.example.com/" + name
}

// migrationRun is the result of a run of the program.
type migrationRun struct {
	Code                        int
	Stdout, Stderr, Termination string
}

// runMigration runs the program with a fake MLflow module.
func runMigration(t *testing.T, env map[string]string, args ...string) migrationRun {
	t.Helper()
	modules, err := filepath.Abs("testdata/migrate")
	if err != nil {
		t.Fatal(err)
	}
	log := filepath.Join(t.TempDir(), "termination-log")
	command := exec.Command(python(t), append([]string{"-c", strings.ReplaceAll(migrationProgram, "/dev/termination-log", log)}, args...)...)
	command.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME"), "PYTHONPATH=" + modules, "PYTHONDONTWRITEBYTECODE=1"}
	for name, value := range env {
		command.Env = append(command.Env, name+"="+value)
	}
	var stdout, stderr bytes.Buffer
	command.Stdout, command.Stderr = &stdout, &stderr
	err = command.Run()
	var exitErr *exec.ExitError
	if err != nil && !errors.As(err, &exitErr) {
		t.Fatalf("starting the program: %v", err)
	}
	termination, err := os.ReadFile(log)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	return migrationRun{command.ProcessState.ExitCode(), stdout.String(), stderr.String(), string(termination)}
}

// python returns the path of a Python interpreter that can run the program, or skips the test: `make test` needs only Go, and
// `make test-operands` runs the program with the real MLflow.
func python(t *testing.T) string {
	t.Helper()
	path, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("no python3 on this machine; make test-operands runs the program")
	}
	if err := exec.Command(path, "-c", "import sys; sys.exit(sys.version_info < (3, 10))").Run(); err != nil {
		t.Skip("python3 is older than 3.10; make test-operands runs the program")
	}
	return path
}

// withoutReport removes the last line, which TestMigrationReport checks.
func withoutReport(text string) string {
	message, _, _ := strings.Cut(text, "mlflow=")
	return strings.TrimSpace(message)
}

func TestMigrationProgram(t *testing.T) {
	const backend, registry, supported = "MLFLOW_BACKEND_STORE_URI", "MLFLOW_REGISTRY_STORE_URI", "SUPPORTED_MLFLOW_VERSION"
	upgraded := func(name string) string {
		return "connect " + name + "\nbackend store: at revision old, upgrading\nupgrade " + name + "\nbackend store: at revision head\n"
	}
	created := func(store, name string) string {
		return "connect " + name + "\n" + store + " store: empty, creating the tables\ninitialize " + name + "\n" + store + " store: at revision head\n"
	}
	both := "connect a\n" + strings.ReplaceAll(created("backend", "a")+created("registry", "b"), "connect a\n", "connect b\n")
	both = strings.Replace(both, "head\nconnect b\n", "head\n", 1)
	const nothing = "no store is configured, there is nothing to migrate\n"
	for name, c := range map[string]struct {
		env    map[string]string
		code   int
		stdout string
		// failure is the common text of stderr and the termination log.
		failure string
	}{
		"an empty database gets its tables":      {env: map[string]string{backend: uri("postgresql", "a")}, stdout: created("backend", "a")},
		"an older database is upgraded":          {env: map[string]string{backend: uri("postgresql", "a"), "FAKE_REVISION": "old"}, stdout: upgraded("a")},
		"[mlflow-42] URI with a driver":          {env: map[string]string{backend: uri("mysql+pymysql", "a")}, stdout: created("backend", "a")},
		"whitespace around URIs is ignored":      {env: map[string]string{backend: " \t" + uri("sqlite", "a") + "\n", registry: "  "}, stdout: created("backend", "a")},
		"a shared registry is migrated once":     {env: map[string]string{backend: uri("sqlite", "a"), registry: " " + uri("sqlite", "a")}, stdout: created("backend", "a")},
		"separate registry store":                {env: map[string]string{backend: uri("sqlite", "a"), registry: uri("sqlite", "b")}, stdout: both},
		"only a registry store":                  {env: map[string]string{registry: uri("sqlite", "b")}, stdout: created("registry", "b")},
		"no store, version not checked":          {env: map[string]string{supported: "9.9.9"}, stdout: nothing},
		"equal versions with different suffixes": {env: map[string]string{backend: uri("sqlite", "a"), supported: " v3.14.0+odh ", "FAKE_VERSION": "3.14.0+rhai1"}, stdout: created("backend", "a")},
		"no version requested":                   {env: map[string]string{backend: uri("sqlite", "a"), supported: "", "FAKE_VERSION": "2.0.0"}, stdout: created("backend", "a")},
		"[mlflow-42] an older version":           {map[string]string{backend: uri("sqlite", "a"), supported: "v3.14.0", "FAKE_VERSION": "3.13.9"}, 10, "", "this image holds MLflow 3.13.9, the oldest supported is 3.14.0"},
		"a pre-release of the oldest version":    {map[string]string{backend: uri("sqlite", "a"), supported: "3.14.0", "FAKE_VERSION": "3.14.0rc1"}, 10, "", "this image holds MLflow 3.14.0rc1, the oldest supported is 3.14.0"},
		"[mlflow-42] a newer version":            {env: map[string]string{backend: uri("sqlite", "a"), supported: "3.14.0", "FAKE_VERSION": "3.18.0"}, stdout: created("backend", "a")},
		"a newer version of more digits":         {env: map[string]string{backend: uri("sqlite", "a"), supported: "3.9.2", "FAKE_VERSION": "3.14.0"}, stdout: created("backend", "a")},
		"a pre-release of a newer version":       {env: map[string]string{backend: uri("sqlite", "a"), supported: "3.14.0", "FAKE_VERSION": "3.15.0.dev0"}, stdout: created("backend", "a")},
		"a post-release of the oldest version":   {env: map[string]string{backend: uri("sqlite", "a"), supported: "3.14", "FAKE_VERSION": "3.14.0.post1"}, stdout: created("backend", "a")},
		"[mlflow-42] a newer database":           {map[string]string{backend: uri("sqlite", "a"), "FAKE_REVISION": "unknown"}, 17, "connect a\n", "the backend store is at revision unknown, which MLflow 3.14.0 of this image does not know: its newest is head"},
		"[mlflow-42] a backend of files":         {map[string]string{backend: "file:///mlflow/hunter2"}, 11, "", "the backend store is none of sqlite, postgresql, mysql"},
		"a backend of another dialect":           {map[string]string{backend: uri("mssql+pyodbc", "a")}, 11, "", "the backend store is none of sqlite, postgresql, mysql"},
		"invalid dialect and version":            {map[string]string{backend: uri("postgres", "a"), supported: "9.9.9"}, 11, "", "the backend store is none of sqlite, postgresql, mysql"},
		"[mlflow-42] a registry of files":        {map[string]string{backend: uri("sqlite", "a"), registry: "file:///hunter2"}, 12, "", "the registry store is none of sqlite, postgresql, mysql"},
		"both stores in different files":         {map[string]string{backend: "file:///hunter2", registry: "file:///other"}, 11, "", "the backend store is none of sqlite, postgresql, mysql"},
		"both stores in the same file":           {map[string]string{backend: "file:///hunter2", registry: "file:///hunter2"}, 11, "", "the backend store is none of sqlite, postgresql, mysql"},
		"only a registry store in files":         {map[string]string{registry: "file:///hunter2"}, 12, "", "the registry store is none of sqlite, postgresql, mysql"},
		"[mlflow-42] wrong revision afterwards":  {map[string]string{backend: uri("sqlite", "a"), "FAKE_REVISION": "old", "FAKE_UPGRADED": "odd"}, 13, "connect a\nbackend store: at revision old, upgrading\nupgrade a\n", "the backend store is at revision odd, the head of this image is head"},
		"[mlflow-42] the gap is closed in the backend only": {
			env:    map[string]string{backend: uri("sqlite", "a"), registry: uri("sqlite", "b"), "FAKE_GAP": "yes"},
			stdout: strings.Replace(both, "connect a\n", "connect a\ngap a\n", 1),
		},
		"[mlflow-42] an unknown revision": {map[string]string{backend: uri("sqlite", "a"), "FAKE_ERROR": "Can't locate revision identified by 'x' "}, 14, "", "the schema has no place in the history of this image: ConnectionError"},
		"[mlflow-42] several heads":       {map[string]string{backend: uri("sqlite", "a"), "FAKE_ERROR": "Multiple heads are present "}, 14, "", "the schema has no place in the history of this image: ConnectionError"},
		"[mlflow-42] a cycle":             {map[string]string{backend: uri("sqlite", "a"), "FAKE_ERROR": "Cycle is detected in revisions (x) "}, 14, "", "the schema has no place in the history of this image: ConnectionError"},
		"[mlflow-42] a dependency cycle":  {map[string]string{backend: uri("sqlite", "a"), "FAKE_ERROR": "Dependency cycle detected "}, 14, "", "the schema has no place in the history of this image: ConnectionError"},
		"[mlflow-42] any other error":     {map[string]string{backend: uri("sqlite", "a"), "FAKE_ERROR": "cannot open "}, 15, "", "the migration failed: ConnectionError"},
		"no MLflow in the image":          {map[string]string{backend: uri("sqlite", "a"), "PYTHONPATH": ""}, 15, "", "the migration failed: ModuleNotFoundError"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := runMigration(t, c.env)
			got.Termination = withoutReport(got.Termination)
			want := migrationRun{Code: c.code, Stdout: c.stdout, Termination: c.failure}
			if c.failure != "" {
				want.Stderr = c.failure + "\n"
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// The last line of the termination log has the report of the program, whether it succeeded or failed.
func TestMigrationReport(t *testing.T) {
	backend, registry := uri("postgresql", "a"), uri("mysql", "b")
	for name, c := range map[string]struct {
		args []string
		env  map[string]string
		code int
		want ImageReport
	}{
		"migrated":       {env: map[string]string{}, want: ImageReport{"3.14.0", "head", "head", ""}},
		"wrong revision": {env: map[string]string{"FAKE_REVISION": "old", "FAKE_UPGRADED": "odd"}, code: 13, want: ImageReport{"3.14.0", "head", "odd", ""}},
		"newer":          {env: map[string]string{"FAKE_REVISION": "unknown"}, code: 17, want: ImageReport{"3.14.0", "head", "unknown", ""}},
		"too old":        {env: map[string]string{"FAKE_VERSION": "3.13.0", "SUPPORTED_MLFLOW_VERSION": "3.14.0"}, code: 10, want: ImageReport{MLflow: "3.13.0"}},
		"times out":      {env: map[string]string{"FAKE_ERROR": "(2003, \"Can't connect to MySQL server (timed out)\")"}, code: 15, want: ImageReport{"3.14.0", "head", "", "timeout"}},
		"refused": {env: map[string]string{"FAKE_ERROR": "connection to server at \"tls-db\", port 5432 failed: Connection refused"}, code: 15,
			want: ImageReport{"3.14.0", "head", "", "refused"}},
		"unknown host":          {[]string{"check"}, map[string]string{"FAKE_ERROR": "[Errno -2] Name or service not known"}, 16, ImageReport{"3.14.0", "head", "", "name"}},
		"wrong password":        {env: map[string]string{"FAKE_ERROR": "FATAL: password authentication failed for user"}, code: 15, want: ImageReport{"3.14.0", "head", "", "login"}},
		"untrusted certificate": {env: map[string]string{"FAKE_ERROR": "SSL error: certificate verify failed"}, code: 15, want: ImageReport{"3.14.0", "head", "", "certificate"}},
		"no store":              {env: map[string]string{envBackendStore: " ", envRegistryStore: " "}},
		"checked":               {[]string{"check"}, map[string]string{"FAKE_REVISION": "old"}, 0, ImageReport{"3.14.0", "head", "old", ""}},
		"checked, empty":        {[]string{"check"}, map[string]string{}, 0, ImageReport{"3.14.0", "head", "none", ""}},
		"checked, up to date":   {[]string{"check"}, map[string]string{"FAKE_REVISION": "head"}, 0, ImageReport{"3.14.0", "head", "head", ""}},
		"checked, with repair":  {[]string{"check"}, map[string]string{"FAKE_REVISION": "head", "FAKE_GAP": "yes"}, 0, ImageReport{"3.14.0", "head", "", ""}},
		"checked, SQLite":       {[]string{"check"}, map[string]string{envBackendStore: uri("sqlite", "a"), "FAKE_REVISION": "head"}, 0, ImageReport{"3.14.0", "head", "", ""}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			env := map[string]string{envBackendStore: backend, envRegistryStore: registry}
			maps.Copy(env, c.env)
			got := runMigration(t, env, c.args...)
			if found := ParseImageReport(&corev1.ContainerStateTerminated{Message: got.Termination}); got.Code != c.code || found != c.want {
				t.Errorf("[mlflow-42] got run %+v with report %+v, want code %d and report %+v", got, found, c.code, c.want)
			}
		})
	}
}

// If the termination log cannot be written, the exit code still reports the result.
func TestMigrationProgramWithoutLog(t *testing.T) {
	command := exec.Command(python(t), "-c", strings.ReplaceAll(migrationProgram, "/dev/termination-log", t.TempDir()))
	command.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME"), "MLFLOW_BACKEND_STORE_URI=file:///mlruns"}
	output, err := command.CombinedOutput()
	if code := command.ProcessState.ExitCode(); err == nil || code != 11 {
		t.Errorf("exit code %d, want 11; %s", code, output)
	}
}

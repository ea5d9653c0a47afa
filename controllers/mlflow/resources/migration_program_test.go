package resources

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestMigrationExits holds the whole table: other software waits for these texts.
func TestMigrationExits(t *testing.T) {
	type meaning struct {
		Message  string
		Terminal bool
	}
	want := map[int32]meaning{
		10: {"migration image reports an unexpected MLflow version; expected 3.14.0", true},
		11: {"operator-managed migration only supports SQL backend store URIs", true},
		12: {"operator-managed migration only supports SQL registry store URIs", true},
		13: {"migration completed but the resulting schema revision does not match the image's Alembic head", true},
		14: {"migration failed because Alembic could not resolve the schema revision graph", true},
		15: {"migration failed due to a retryable database or migration error", false},
		16: {"a database cannot be opened or read; check its address, its user and its password", false},
	}
	got := map[int32]meaning{}
	for code := int32(-1); code <= 256; code++ {
		if text, terminal, found := MigrationExit(code, "3.14.0"); found {
			got[code] = meaning{text, terminal}
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("[mlflow-43] (-want +got):\n%s", diff)
	}
	if len(migrationExits) != len(want) {
		t.Errorf("[mlflow-43] %d entries for %d codes", len(migrationExits), len(want))
	}
}

// TestMigrationProgramAndTable compares the codes that the program names with those of the table.
func TestMigrationProgramAndTable(t *testing.T) {
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

// TestMigrationProgramTravels: the kubelet would replace $(NAME) in a variable, and $$ by one sign; and it has to fit.
func TestMigrationProgramTravels(t *testing.T) {
	if strings.Contains(migrationProgram, "$") {
		t.Error("the program has a dollar sign, which Kubernetes may read as the start of a reference")
	}
	if size := len(migrationProgram); size > 16<<10 {
		t.Errorf("the program has %d bytes, every Job and pod carries them", size)
	}
}

// URI has a password, which must never be seen. Its last part names the database.
func uri(dialect, name string) string {
	return dialect + "://user:hunter2@db.example.com/" + name
}

// migrationRun is how a run of the program ended.
type migrationRun struct {
	Code                        int
	Stdout, Stderr, Termination string
}

// runMigration runs the program with a fake of MLflow.
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
	var ended *exec.ExitError
	if err != nil && !errors.As(err, &ended) {
		t.Fatalf("starting the program: %v", err)
	}
	termination, err := os.ReadFile(log)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	return migrationRun{command.ProcessState.ExitCode(), stdout.String(), stderr.String(), string(termination)}
}

// python is an interpreter that can run the program. A machine without one skips: `make test` needs only Go, and
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

func TestMigrationProgram(t *testing.T) {
	const backend, registry, supported = "MLFLOW_BACKEND_STORE_URI", "MLFLOW_REGISTRY_STORE_URI", "SUPPORTED_MLFLOW_VERSION"
	upgraded := func(name string) string {
		return "connect " + name + "\nbackend store: at revision old, upgrading\nupgrade " + name + "\nbackend store: at revision head\n"
	}
	created := func(store, name string) string {
		return "connect " + name + "\n" + store + " store: empty, creating the tables\ninitialize " + name + "\n" + store + " store: at revision head\n"
	}
	const nothing = "no store is configured, there is nothing to migrate\n"
	for name, c := range map[string]struct {
		env    map[string]string
		code   int
		stdout string
		// failure is what stderr and the termination log have in common.
		failure string
	}{
		"an empty database gets its tables":     {env: map[string]string{backend: uri("postgresql", "a")}, stdout: created("backend", "a")},
		"an older one is upgraded":              {env: map[string]string{backend: uri("postgresql", "a"), "FAKE_REVISION": "old"}, stdout: upgraded("a")},
		"[mlflow-42] a driver may be named":     {env: map[string]string{backend: uri("mysql+pymysql", "a")}, stdout: created("backend", "a")},
		"blanks around a URI do not count":      {env: map[string]string{backend: " \t" + uri("sqlite", "a") + "\n", registry: "  "}, stdout: created("backend", "a")},
		"a shared registry is migrated once":    {env: map[string]string{backend: uri("sqlite", "a"), registry: " " + uri("sqlite", "a")}, stdout: created("backend", "a")},
		"a registry of its own follows":         {env: map[string]string{backend: uri("sqlite", "a"), registry: uri("sqlite", "b")}, stdout: created("backend", "a") + created("registry", "b")},
		"a registry alone":                      {env: map[string]string{registry: uri("sqlite", "b")}, stdout: created("registry", "b")},
		"no store, and no look at the version":  {env: map[string]string{supported: "9.9.9"}, stdout: nothing},
		"the same version in another notation":  {env: map[string]string{backend: uri("sqlite", "a"), supported: " v3.14.0+odh ", "FAKE_VERSION": "3.14.0+rhai1"}, stdout: created("backend", "a")},
		"no version asked for":                  {env: map[string]string{backend: uri("sqlite", "a"), supported: "", "FAKE_VERSION": "2.0.0"}, stdout: created("backend", "a")},
		"[mlflow-42] another version":           {map[string]string{backend: uri("sqlite", "a"), supported: "v3.14.0", "FAKE_VERSION": "3.13.9"}, 10, "", "this image holds MLflow 3.13.9, expected is 3.14.0"},
		"[mlflow-42] a backend of files":        {map[string]string{backend: "file:///mlflow/hunter2"}, 11, "", "the backend store is none of sqlite, postgresql, mysql"},
		"a backend of another dialect":          {map[string]string{backend: uri("mssql+pyodbc", "a")}, 11, "", "the backend store is none of sqlite, postgresql, mysql"},
		"the dialect comes before the version":  {map[string]string{backend: uri("postgres", "a"), supported: "9.9.9"}, 11, "", "the backend store is none of sqlite, postgresql, mysql"},
		"[mlflow-42] a registry of files":       {map[string]string{backend: uri("sqlite", "a"), registry: "file:///hunter2"}, 12, "", "the registry store is none of sqlite, postgresql, mysql"},
		"both are of files":                     {map[string]string{backend: "file:///hunter2", registry: "file:///other"}, 11, "", "the backend store is none of sqlite, postgresql, mysql"},
		"one of files for both":                 {map[string]string{backend: "file:///hunter2", registry: "file:///hunter2"}, 11, "", "the backend store is none of sqlite, postgresql, mysql"},
		"a registry of files alone":             {map[string]string{registry: "file:///hunter2"}, 12, "", "the registry store is none of sqlite, postgresql, mysql"},
		"[mlflow-42] another revision after it": {map[string]string{backend: uri("sqlite", "a"), "FAKE_REVISION": "old", "FAKE_UPGRADED": "odd"}, 13, "connect a\nbackend store: at revision old, upgrading\nupgrade a\n", "the backend store is at revision odd, the head of this image is head"},
		"[mlflow-42] the gap is closed in the backend only": {
			env:    map[string]string{backend: uri("sqlite", "a"), registry: uri("sqlite", "b"), "FAKE_GAP": "yes"},
			stdout: strings.Replace(created("backend", "a"), "connect a\n", "connect a\ngap a\n", 1) + created("registry", "b"),
		},
		"[mlflow-42] an unknown revision": {map[string]string{backend: uri("sqlite", "a"), "FAKE_ERROR": "Can't locate revision identified by 'x' "}, 14, "", "the schema has no place in the history of this image: ConnectionError"},
		"[mlflow-42] several heads":       {map[string]string{backend: uri("sqlite", "a"), "FAKE_ERROR": "Multiple heads are present "}, 14, "", "the schema has no place in the history of this image: ConnectionError"},
		"[mlflow-42] a cycle":             {map[string]string{backend: uri("sqlite", "a"), "FAKE_ERROR": "Cycle is detected in revisions (x) "}, 14, "", "the schema has no place in the history of this image: ConnectionError"},
		"[mlflow-42] a dependency cycle":  {map[string]string{backend: uri("sqlite", "a"), "FAKE_ERROR": "Dependency cycle detected "}, 14, "", "the schema has no place in the history of this image: ConnectionError"},
		"[mlflow-42] any other error":     {map[string]string{backend: uri("sqlite", "a"), "FAKE_ERROR": "cannot open "}, 15, "", "the migration failed: ConnectionError"},
		"no MLflow at all":                {map[string]string{backend: uri("sqlite", "a"), "PYTHONPATH": ""}, 15, "", "the migration failed: ModuleNotFoundError"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := runMigration(t, c.env)
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

// TestMigrationProgramWithoutLog: where the termination log cannot be written, the exit code still says it all.
func TestMigrationProgramWithoutLog(t *testing.T) {
	command := exec.Command(python(t), "-c", strings.ReplaceAll(migrationProgram, "/dev/termination-log", t.TempDir()))
	command.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME"), "MLFLOW_BACKEND_STORE_URI=file:///mlruns"}
	output, err := command.CombinedOutput()
	if code := command.ProcessState.ExitCode(); err == nil || code != 11 {
		t.Errorf("exit code %d, want 11; %s", code, output)
	}
}

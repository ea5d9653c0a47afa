//go:build operands

package operands

import (
	"context"
	"fmt"
	"os"
	"slices"
	"sync"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/odh-platform/odh-platform-operator/test/operands/machine"
)

// installExpiry limits the installation of MLflow and the databases on a machine that lacks them.
const installExpiry = 20 * time.Minute

// buildExpiry limits the first build of a program on a busy machine.
const buildExpiry = 20 * time.Minute

// Shared by all tests.
var (
	mlflowImages map[string]*image
	database     *machine.Postgres
	authority    *machine.Certificates
)

func TestMain(m *testing.M) {
	code, err := runTests(m.Run)
	if err != nil {
		fmt.Fprintln(os.Stderr, "test-operands:", err)
		code = 1
	}
	report.print()
	os.Exit(code)
}

// runTests installs and starts the programs that the tests need, and stops them after the tests.
func runTests(run func() int) (code int, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), installExpiry)
	defer cancel()
	if mlflowImages, err = installMLflow(ctx); err != nil {
		return 1, err
	}
	dir, err := os.MkdirTemp("", "operands-")
	if err != nil {
		return 1, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	// PostgreSQL accesses its folder in dir as another user.
	if err = os.Chmod(dir, 0o755); err != nil {
		return 1, err
	}
	if authority, err = machine.NewCertificates(dir); err != nil {
		return 1, err
	}
	if database, err = machine.StartPostgres(ctx, dir, authority); err != nil {
		return 1, err
	}
	defer database.Stop()
	defer runCleanups()
	return run(), nil
}

// cleanups contains functions to call after all tests, in reverse order.
var cleanups struct {
	sync.Mutex
	functions []func()
}

// registerCleanup registers a function that stops a shared program after all tests.
func registerCleanup(cleanup func()) {
	cleanups.Lock()
	defer cleanups.Unlock()
	cleanups.functions = append(cleanups.functions, cleanup)
}

func runCleanups() {
	cleanups.Lock()
	defer cleanups.Unlock()
	for _, cleanup := range slices.Backward(cleanups.functions) {
		cleanup()
	}
}

// testReport collects the started programs and their results.
type testReport struct {
	lock  sync.Mutex
	lines []string
}

var report testReport

func (r *testReport) add(program, result string) {
	r.lock.Lock()
	defer r.lock.Unlock()
	r.lines = append(r.lines, program+"\t-> "+result)
}

func (r *testReport) print() {
	slices.Sort(r.lines)
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	for _, line := range r.lines {
		fmt.Fprintln(table, line)
	}
	_ = table.Flush() // written to the standard output
}

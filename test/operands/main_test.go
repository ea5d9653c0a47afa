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

// installExpiry bounds the installation of MLflow and PostgreSQL on a machine that has neither.
const installExpiry = 20 * time.Minute

// buildExpiry bounds the first build of a program on a busy machine.
const buildExpiry = 20 * time.Minute

// Shared by all tests.
var (
	interpreters map[string]*image
	database     *machine.Postgres
	authority    *machine.Certificates
)

func TestMain(m *testing.M) {
	code, err := withMachine(m.Run)
	if err != nil {
		fmt.Fprintln(os.Stderr, "test-operands:", err)
		code = 1
	}
	report.print()
	os.Exit(code)
}

// withMachine installs and starts the programs that the tests need, and stops them after the tests.
func withMachine(run func() int) (code int, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), installExpiry)
	defer cancel()
	if interpreters, err = installMLflow(ctx); err != nil {
		return 1, err
	}
	dir, err := os.MkdirTemp("", "operands-")
	if err != nil {
		return 1, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	// PostgreSQL accesses its folder below as another user.
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
	defer endAll()
	return run(), nil
}

// endings are called after all tests, in reverse order.
var endings struct {
	sync.Mutex
	of []func()
}

// atTheEnd registers a function that stops a program that tests share.
func atTheEnd(end func()) {
	endings.Lock()
	defer endings.Unlock()
	endings.of = append(endings.of, end)
}

func endAll() {
	endings.Lock()
	defer endings.Unlock()
	for _, end := range slices.Backward(endings.of) {
		end()
	}
}

// answers collects the started programs and their results for the report.
type responses struct {
	lock  sync.Mutex
	lines []string
}

var report responses

func (a *responses) add(started, answered string) {
	a.lock.Lock()
	defer a.lock.Unlock()
	a.lines = append(a.lines, started+"\t-> "+answered)
}

func (a *responses) print() {
	slices.Sort(a.lines)
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	for _, line := range a.lines {
		fmt.Fprintln(table, line)
	}
	_ = table.Flush() // written to the standard output
}

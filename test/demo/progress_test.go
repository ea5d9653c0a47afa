package main

import (
	"bytes"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	clocktesting "k8s.io/utils/clock/testing"
)

func TestProgressEstimator(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	run := func(lines ...string) (*progressEstimator, string) {
		var out bytes.Buffer
		clock := clocktesting.NewFakePassiveClock(noon)
		p := &progressEstimator{out: &out, clock: clock, start: noon}
		for _, line := range lines {
			clock.SetTime(clock.Now().Add(10 * time.Second))
			fmt.Fprintf(p, "[  3s] %s\n", line)
		}
		return p, out.String()
	}
	// The first run of a kind has no estimates.
	first, _ := run("step 1", "downloading a, 3 MB", "downloading a: 1 of 3 MB", "step 2", "pid 17", "the end")
	if err := first.save(); err != nil {
		t.Fatal(err)
	}
	_, text := run("step 1", "downloading a, 3 MB", "downloading a: 2 of 3 MB", "downloading a: 2 of 3 MB", "downloading a: 2 of 3 MB", "step 2", "pid 18", "the end")
	want := `[  10s] step 1
[  20s] downloading a, 3 MB (33% done, the rest took 40s here)
[  30s] downloading a: 2 of 3 MB (50% done, the rest took 30s here)
[  40s] downloading a: 2 of 3 MB (66% done, the rest took 20s here)
[  50s] downloading a: 2 of 3 MB (66% done, the rest took 20s here)
[ 1m0s] step 2 (66% done, the rest took 20s here)
[1m10s] pid 18 (83% done, the rest took 10s here)
[1m20s] the end
`
	if difference := cmp.Diff(want, text); difference != "" {
		t.Error(difference)
	}
	file, err := recordFile(downloaded)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if lines, _ := load(downloaded); lines != nil {
		t.Errorf("got lines %v of a malformed file, want none", lines)
	}
	if _, machine := load(compiled); machine != "on a machine with two cores" {
		t.Errorf("got machine %q for the first run, want %q", machine, "on a machine with two cores")
	}
}

package main

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/odh-platform/odh-platform-operator/test/cluster"
)

// Kinds of runs, which take very different times:
const (
	ready      = "ready" // all programs are built
	compiled   = "compiled"
	downloaded = "downloaded"
)

// measured is the record, written by [pace.remember], of a run that compiled all programs on a machine with two cores.
//
//go:embed pace.json
var measured []byte

// mark is a line of progress with its time.
type mark struct {
	Line string
	At   time.Duration
}

// pace writes lines of progress with the time since the start. It adds the share of the time until the same line in an earlier
// run of the kind, and the time of the rest.
type pace struct {
	mutex sync.Mutex
	out   io.Writer
	clock clock.PassiveClock
	began time.Time

	kind  string
	known []mark // lines of an earlier run
	where string // on which machine
	at    int    // index of the last reached line of known
	since time.Duration
	seen  []mark
}

var timeAhead = regexp.MustCompile(`^\[ *[0-9a-z.]+\] `)

// noMark matches lines that appear at different times in each run.
var noMark = regexp.MustCompile(`^still |\d of \d+ MB$`)

func (p *pace) Write(text []byte) (int, error) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	for line := range strings.Lines(string(text)) {
		line = timeAhead.ReplaceAllString(strings.TrimRight(line, "\n"), "")
		elapsed := p.clock.Since(p.began)
		p.pass(line, elapsed)
		if _, err := fmt.Fprintf(p.out, "[%5s] %s%s\n", elapsed.Round(100*time.Millisecond), line, p.rest(elapsed)); err != nil {
			return 0, err
		}
	}
	return len(text), nil
}

// pass records a line. The first line about a download or the compiler determines the kind of run.
func (p *pace) pass(line string, elapsed time.Duration) {
	kind := p.kind
	switch {
	case kind == "":
		kind = ready
	case kind == ready && strings.HasPrefix(line, "building "), strings.HasPrefix(line, "compiling "):
		kind = compiled
	case kind == ready && strings.HasPrefix(line, "downloading "):
		kind = downloaded
	}
	if kind != p.kind {
		p.kind, p.at, p.since = kind, 0, elapsed
		p.known, p.where = recall(kind)
	}
	if noMark.MatchString(line) {
		return
	}
	p.seen = append(p.seen, mark{line, elapsed})
	if found := slices.IndexFunc(p.known, func(m mark) bool { return m.Line == line }); found >= p.at {
		p.at, p.since = found, elapsed
	}
}

// rest returns the remaining share and time. Between two known lines the share grows with time.
func (p *pace) rest(elapsed time.Duration) string {
	if p.at+1 >= len(p.known) {
		return ""
	}
	end := p.known[len(p.known)-1].At
	reached := min(p.known[p.at].At+elapsed-p.since, p.known[p.at+1].At)
	return fmt.Sprintf(" (%d%% done, the rest took %s %s)", 100*reached/end, (end - reached).Round(time.Second), p.where)
}

// recall returns the marks of the last run of a kind, and on which machine it ran.
func recall(kind string) (marks []mark, where string) {
	where = "here"
	file, err := paceFile(kind)
	if err == nil {
		var content []byte
		if content, err = os.ReadFile(file); err == nil {
			err = json.Unmarshal(content, &marks)
		}
	}
	if err != nil && kind == compiled {
		where, err = "on a machine with two cores", json.Unmarshal(measured, &marks)
	}
	if err != nil {
		return nil, ""
	}
	return marks, where
}

// remember stores the marks of a completed run.
func (p *pace) remember() error {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	file, err := paceFile(p.kind)
	if err != nil {
		return err
	}
	content, err := json.MarshalIndent(p.seen, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(file, content, 0o644)
}

func paceFile(kind string) (string, error) {
	cache, err := cluster.CacheDir()
	return filepath.Join(cache, "demo-"+kind+".json"), err
}

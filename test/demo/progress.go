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

// Kinds of runs, by the programs that they build or download.
const (
	ready      = "ready" // all programs exist
	compiled   = "compiled"
	downloaded = "downloaded"
)

// recordedRun holds the lines, as [progressEstimator.save] writes them, of a run that compiled all programs on a machine with two cores,
// without lines that contain a process ID, an address or an error.
//
//go:embed progress.json
var recordedRun []byte

// progressLine is a line of progress with its time.
type progressLine struct {
	Line string
	At   time.Duration
}

// progressEstimator writes lines of progress with the time since the start, the completed share and the remaining time. It estimates the
// share and the remaining time from an earlier run of the same kind.
type progressEstimator struct {
	mutex sync.Mutex
	out   io.Writer
	clock clock.PassiveClock
	start time.Time

	kind     string
	previous []progressLine // lines of an earlier run of the kind
	machine  string         // machine of the earlier run
	reached  int            // index of the last reached line of previous
	since    time.Duration  // time of the last reached line
	recorded []progressLine
}

var timePrefix = regexp.MustCompile(`^\[ *[0-9a-z.]+\] `)

// variableLine matches lines that appear at different times in each run.
var variableLine = regexp.MustCompile(`^still |\d of \d+ MB$`)

func (p *progressEstimator) Write(text []byte) (int, error) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	for line := range strings.Lines(string(text)) {
		line = timePrefix.ReplaceAllString(strings.TrimRight(line, "\n"), "")
		elapsed := p.clock.Since(p.start)
		p.recordLine(line, elapsed)
		if _, err := fmt.Fprintf(p.out, "[%5s] %s%s\n", elapsed.Round(100*time.Millisecond), line, p.remainingTime(elapsed)); err != nil {
			return 0, err
		}
	}
	return len(text), nil
}

// recordLine records a line. The first line about a download or a build determines the kind of run; a download that fails changes it.
func (p *progressEstimator) recordLine(line string, elapsed time.Duration) {
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
		p.kind, p.reached, p.since = kind, 0, elapsed
		p.previous, p.machine = load(kind)
	}
	if variableLine.MatchString(line) {
		return
	}
	p.recorded = append(p.recorded, progressLine{line, elapsed})
	if found := slices.IndexFunc(p.previous, func(m progressLine) bool { return m.Line == line }); found >= p.reached {
		p.reached, p.since = found, elapsed
	}
}

// remainingTime returns the completed share and the remaining time. Between two lines of the earlier run, the share grows with time.
func (p *progressEstimator) remainingTime(elapsed time.Duration) string {
	if p.reached+1 >= len(p.previous) {
		return ""
	}
	end := p.previous[len(p.previous)-1].At
	reached := min(p.previous[p.reached].At+elapsed-p.since, p.previous[p.reached+1].At)
	return fmt.Sprintf(" (%d%% done, the rest took %s %s)", 100*reached/end, (end - reached).Round(time.Second), p.machine)
}

// load returns the lines of an earlier run of a kind, and its machine.
func load(kind string) (lines []progressLine, machine string) {
	machine = "here"
	file, err := recordFile(kind)
	if err == nil {
		var content []byte
		if content, err = os.ReadFile(file); err == nil {
			err = json.Unmarshal(content, &lines)
		}
	}
	if err != nil && kind == compiled {
		machine, err = "on a machine with two cores", json.Unmarshal(recordedRun, &lines)
	}
	if err != nil {
		return nil, ""
	}
	return lines, machine
}

// save stores the lines of a completed run.
func (p *progressEstimator) save() error {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	file, err := recordFile(p.kind)
	if err != nil {
		return err
	}
	content, err := json.MarshalIndent(p.recorded, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(file, content, 0o644)
}

func recordFile(kind string) (string, error) {
	cache, err := cluster.CacheDir()
	return filepath.Join(cache, "demo-"+kind+".json"), err
}

package status

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/odh-platform/odh-platform-operator/cmd/kubectl-odh/internal/screen"
	"github.com/odh-platform/odh-platform-operator/pkg/status/health"
)

// Rows that one screen has room for, of resources that need attention and of those that do not.
const (
	badRows  = 12
	goodRows = 10
)

// indent stands before what belongs to the line above.
const indent = "  "

// text shows a report to people.
type text struct {
	style screen.Style
	now   time.Time
	// all resources are shown.
	all bool
}

func (t text) render(r Report) string {
	var b strings.Builder
	b.WriteString(t.manager(r.Manager))
	b.WriteString("\n" + t.components(r))
	b.WriteString("\n" + t.resources(r))
	if len(r.Notes) > 0 {
		b.WriteString("\n" + t.style.Notes(r.Notes))
	}
	return b.String()
}

func (t text) manager(m Manager) string {
	var lines []string
	first := m.Message
	if m.Found {
		first = fmt.Sprintf("%s in %s: %s", m.Name, m.Namespace, m.Message)
	}
	lines = append(lines, first)
	if m.Image != "" {
		lines = append(lines, "image "+m.Image)
	}
	switch {
	case m.Lease == nil:
	case m.Leads:
		lines = append(lines, fmt.Sprintf("Lease renewed %s ago by %s", t.age(m.Lease.Renewed), m.Lease.Holder))
	case m.Lease.Holder == "":
		lines = append(lines, "no replica leads: the Lease in "+m.Lease.Namespace+" was released")
	default:
		lines = append(lines, fmt.Sprintf("no replica leads: %s renewed the Lease %s ago", m.Lease.Holder, t.age(m.Lease.Renewed)))
	}
	if len(m.Others) > 0 {
		lines = append(lines, "there is another one in "+strings.Join(m.Others, ", ")+"; two managers hinder each other")
	}
	var b strings.Builder
	b.WriteString(t.style.Paint(screen.Bold, "MANAGER") + "  " + t.style.Paint(screen.Of(m.State), string(m.State)) + "\n")
	for _, line := range lines {
		b.WriteString(indent + t.style.Clip(line, t.style.Room(len(indent))) + "\n")
	}
	return b.String()
}

func (t text) components(r Report) string {
	table := screen.Table{Heading: []string{"COMPONENT", "STATE", "RESOURCES"}}
	for _, c := range r.Components {
		row := []screen.Cell{{Text: c.Name}, {Text: string(c.State), Paint: switchPaints[c.State]}, {Text: counts(c)}}
		if c.NotReady > 0 {
			row[2].Paint = screen.Red
		}
		table.Rows = append(table.Rows, row)
	}
	out := table.Render(t.style)
	if problem := r.Manager.SettingsProblem; problem != "" {
		out += indent + t.style.Clip("Which components are on is not known: "+problem+".", t.style.Room(len(indent))) + "\n"
	}
	return out
}

var switchPaints = map[Switch]screen.Paint{On: screen.Green, Off: screen.Dim, Waiting: screen.Yellow, Unclear: screen.Yellow}

// counts of a component in words.
func counts(c Component) string {
	var parts []string
	switch {
	case c.Resources == 0 && len(c.WaitsFor) == 0:
		parts = append(parts, "none")
	case c.NotReady > 0:
		parts = append(parts, fmt.Sprintf("%d, %d not ready", c.Resources, c.NotReady))
	case c.Resources > 0:
		parts = append(parts, fmt.Sprintf("%d", c.Resources))
	}
	if len(c.WaitsFor) > 0 {
		parts = append(parts, "the cluster does not serve "+strings.Join(c.WaitsFor, ", "))
	}
	return strings.Join(parts, "; ")
}

func (t text) resources(r Report) string {
	split := slices.IndexFunc(r.Resources, func(x Resource) bool { return x.State.OK() })
	if split < 0 {
		split = len(r.Resources)
	}
	bad, good := r.Resources[:split], r.Resources[split:]
	switch {
	case len(r.Resources) == 0 && len(r.Notes) > 0:
		return "No resources are to be seen; the notes tell what could not be read.\n"
	case len(r.Resources) == 0:
		return "There are no resources yet.\n"
	}
	shownBad, hiddenBad := t.limit(bad, badRows)
	shownGood, hiddenGood := t.limit(good, goodRows)
	out := t.table(append(slices.Clone(shownBad), shownGood...))
	if len(hiddenBad) > 0 {
		out += t.style.Paint(screen.Red, fmt.Sprintf("and %d more that are not ready: %s", len(hiddenBad), tally(hiddenBad))) + "\n"
	}
	if len(hiddenGood) > 0 {
		out += fmt.Sprintf("and %d more that are well: %s\n", len(hiddenGood), tally(hiddenGood))
	}
	if len(hiddenBad)+len(hiddenGood) > 0 {
		out += "--all shows them.\n"
	}
	return out
}

// limit splits what is shown from what is only counted. Nothing is hidden to save a single line.
func (t text) limit(all []Resource, rows int) (shown, hidden []Resource) {
	if t.all || len(all) <= rows+1 {
		return all, nil
	}
	return all[:rows], all[rows:]
}

// tally counts by kind.
func tally(all []Resource) string {
	counts := map[string]int{}
	for _, r := range all {
		counts[r.Kind]++
	}
	var parts []string
	for _, kind := range slices.Sorted(maps.Keys(counts)) {
		parts = append(parts, fmt.Sprintf("%d %s", counts[kind], kind))
	}
	return strings.Join(parts, ", ")
}

// table has a line for each resource, and a second one for what is wrong with it.
func (t text) table(all []Resource) string {
	table := screen.Table{Heading: []string{"STATE", "AGE", "NAMESPACE", "RESOURCE"}}
	if !t.style.Narrow() {
		table.Heading = append(table.Heading, "REASON")
	}
	if t.style.Wide {
		table.Heading = append(table.Heading, "COMPONENT", "MESSAGE")
	}
	for _, r := range all {
		row := []screen.Cell{screen.StateCell(r.State, r.Paused), {Text: t.age(r.began())}, {Text: r.Namespace}, {Text: r.Kind + "/" + r.Name}}
		if !t.style.Narrow() {
			row = append(row, screen.Cell{Text: r.Reason})
		}
		if t.style.Wide {
			row = append(row, screen.Cell{Text: r.Component}, screen.Cell{Text: r.Message})
		}
		table.Rows = append(table.Rows, row)
	}
	return t.style.WithMore(table, func(row int) (string, health.Verdict) { return indent, all[row].Verdict })
}

// age of what began at a time; empty when that is not known.
func (t text) age(since time.Time) string {
	if since.IsZero() {
		return ""
	}
	return duration.HumanDuration(max(t.now.Sub(since), 0))
}

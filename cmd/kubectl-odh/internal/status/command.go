// Package status is the sub-command that shows on one screen how the manager is, which components run, and how every resource
// that they look after is.
//
// A [Report] is gathered from the cluster and judged by package health; text and JSON show the same one.
package status

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/odh-platform/odh-platform-operator/cmd/kubectl-odh/internal/cli"
	"github.com/odh-platform/odh-platform-operator/cmd/kubectl-odh/internal/screen"
)

const long = `Show the manager, its components and every resource that they reconcile.

The manager is found by the name of its Deployment. Its arguments, variables and
ConfigMaps show which components are enabled. Without a Deployment, for example
if the manager runs as a process, this is unknown.

Resources of all namespaces are shown unless -n names one. Those that need
attention come first. A resource is paused while its annotation
platform.opendatahub.io/paused is "true".

The exit code is 1 if the manager or a resource needs attention or is still
starting, and 3 if nothing needs attention but something could not be read.`

const examples = `  kubectl odh status
  kubectl odh status -n team --all
  kubectl odh status -o json | jq '.resources[] | select(.state == "Failed")'`

// Command shows how everything is.
func Command(o *cli.Options) *cobra.Command {
	var all bool
	var selector string
	c := &cobra.Command{
		Use: "status", Short: "Show the manager, its components and their resources", Long: long, Example: examples, Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return o.Show(c.Context(), func(ctx context.Context) (cli.View, error) {
				report, err := gather(ctx, o, selector)
				return view(o, report, all), err
			})
		},
	}
	c.Flags().BoolVar(&all, "all", false, "Show every resource, even if there are more than fit on a screen.")
	c.Flags().StringVarP(&selector, "selector", "l", "", "Show only resources with these labels, as in kubectl.")
	o.AddWatch(c)
	o.AddOutput(c)
	return c
}

func view(o *cli.Options, r Report, all bool) cli.View {
	v := cli.View{
		Kind: "Status", Object: r, Changing: []any{r.OK, r.Components, r.Resources, r.Notes},
		Text: func(s screen.Style) string { return text{style: s, now: o.Clock.Now(), all: all || s.Wide}.render(r) },
		Err:  cli.Judgement(!r.OK, len(r.Notes) > 0),
	}
	for _, x := range r.Resources {
		v.Names = append(v.Names, cli.Name(schema.FromAPIVersionAndKind(x.APIVersion, x.Kind).GroupKind(), x.Name))
	}
	return v
}

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
	lines := []string{m.Message}
	if m.Found {
		lines[0] = fmt.Sprintf("%s in %s: %s", m.Name, m.Namespace, m.Message)
	}
	if m.Image != "" {
		lines = append(lines, "image "+m.Image)
	}
	switch {
	case m.Lease == nil:
	case m.Leads:
		lines = append(lines, fmt.Sprintf("Lease renewed %s ago by %s", screen.Age(m.Lease.Renewed, t.now), m.Lease.Holder))
	case m.Lease.Holder == "":
		lines = append(lines, "no replica leads: the Lease in "+m.Lease.Namespace+" was released")
	default:
		lines = append(lines, fmt.Sprintf("no replica leads: %s renewed the Lease %s ago", m.Lease.Holder, screen.Age(m.Lease.Renewed, t.now)))
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
	switch {
	case len(r.Resources) == 0 && len(r.Notes) > 0:
		return "No resources are to be seen; the notes tell what could not be read.\n"
	case len(r.Resources) == 0:
		return "There are no resources yet.\n"
	}
	split := slices.IndexFunc(r.Resources, func(x Resource) bool { return x.State.OK() })
	if split < 0 {
		split = len(r.Resources)
	}
	var shown []Resource
	hidden := ""
	for _, group := range []struct {
		all   []Resource
		rows  int
		what  string
		paint screen.Paint
	}{{r.Resources[:split], badRows, "not ready", screen.Red}, {r.Resources[split:], goodRows, "well", screen.Plain}} {
		if !t.all && len(group.all) > group.rows+1 { // nothing is hidden to save a single line
			rest := group.all[group.rows:]
			hidden += t.style.Paint(group.paint, fmt.Sprintf("and %d more that are %s: %s", len(rest), group.what, tally(rest))) + "\n"
			group.all = group.all[:group.rows]
		}
		shown = append(shown, group.all...)
	}
	if hidden != "" {
		hidden += "--all shows them.\n"
	}
	return t.table(shown) + hidden
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
	var lines []screen.Line
	for _, r := range all {
		lines = append(lines, screen.Line{
			Below: indent, Name: r.Kind + "/" + r.Name, Namespace: r.Namespace, Component: r.Component, Since: r.began(), Verdict: r.Verdict,
		})
	}
	return t.style.Listing(t.now, lines, "STATE", "AGE", "NAMESPACE", "RESOURCE", "REASON", "COMPONENT", "MESSAGE")
}

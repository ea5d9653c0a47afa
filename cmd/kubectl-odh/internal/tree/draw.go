package tree

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/odh-platform/odh-platform-operator/cmd/kubectl-odh/internal/screen"
	"github.com/odh-platform/odh-platform-operator/pkg/status/health"
)

// guides lead the eye from a node to those below it.
type guides struct{ branch, last, line, blank string }

var (
	boxes = guides{"├─ ", "└─ ", "│  ", "   "}
	ascii = guides{"|- ", "`- ", "|  ", "   "}
)

// drawing is a tree as lines of text.
type drawing struct {
	style screen.Style
	now   time.Time
	// all shows ReplicaSets of former templates too.
	all bool

	guides guides
	lines  []line
	hidden int
}

// line is a node, and what is drawn before it and before its message.
type line struct {
	node          *Node
	before, below string
}

// draw returns the text of a tree.
func draw(top *Node, style screen.Style, now time.Time, all bool) string {
	d := &drawing{style: style, now: now, all: all, guides: boxes}
	if style.ASCII {
		d.guides = ascii
	}
	d.add(top, "", "")
	text := d.table()
	if d.hidden > 0 {
		text += fmt.Sprintf("ReplicaSets of former templates that are not shown: %d; --all shows them.\n", d.hidden)
	}
	return text
}

func (d *drawing) add(n *Node, before, below string) {
	children := n.Children
	if !d.all {
		children = slices.DeleteFunc(slices.Clone(children), former)
		d.hidden += len(n.Children) - len(children)
	}
	under := below
	if len(children) > 0 {
		under += d.guides.line
	} else {
		under += d.guides.blank
	}
	d.lines = append(d.lines, line{n, before, under})
	for i, child := range children {
		if i == len(children)-1 {
			d.add(child, below+d.guides.last, below+d.guides.blank)
		} else {
			d.add(child, below+d.guides.branch, below+d.guides.line)
		}
	}
}

// former tells a ReplicaSet that is kept for going back to a former template.
func former(n *Node) bool {
	return n.Kind == "ReplicaSet" && n.State == health.Idle && len(n.Children) == 0
}

// table has a line for each node, and a second one for what is wrong with it.
func (d *drawing) table() string {
	spread := d.spread()
	heading := []string{"RESOURCE"}
	if spread {
		heading = append(heading, "NAMESPACE")
	}
	heading = append(heading, "STATE", "AGE")
	if !d.style.Narrow() {
		heading = append(heading, "REASON")
	}
	if d.style.Wide {
		heading = append(heading, "MESSAGE")
	}
	table := screen.Table{Heading: heading}
	for _, l := range d.lines {
		n := l.node
		row := []screen.Cell{{Lead: l.before, Text: n.Kind + "/" + n.Name + remark(n.Relation)}}
		if spread {
			row = append(row, screen.Cell{Text: n.Namespace})
		}
		row = append(row, screen.StateCell(n.State, n.Paused), screen.Cell{Text: d.age(n)})
		if !d.style.Narrow() {
			row = append(row, screen.Cell{Text: d.why(n)})
		}
		if d.style.Wide {
			row = append(row, screen.Cell{Text: n.Message})
		}
		table.Rows = append(table.Rows, row)
	}
	return d.style.WithMore(table, func(row int) (string, health.Verdict) { return d.lines[row].below, d.lines[row].node.Verdict })
}

// spread tells whether the namespaces of the nodes need a column.
func (d *drawing) spread() bool {
	first := d.lines[0].node.Namespace
	return slices.ContainsFunc(d.lines, func(l line) bool { return l.node.Namespace != first })
}

// remark stands behind nodes that are related to the one above in another way than by ownership.
func remark(r Relation) string {
	switch r {
	case Kept:
		return " (kept)"
	case Labelled:
		return " (by label)"
	case Serving:
		return " (serves it)"
	}
	return ""
}

// why is the reason, and for what is well also the message, which then has no line of its own.
func (d *drawing) why(n *Node) string {
	if d.style.Wide || !n.State.OK() || n.Message == "" {
		return n.Reason
	}
	if n.Reason == "" {
		return n.Message
	}
	return n.Reason + ", " + n.Message
}

func (d *drawing) age(n *Node) string {
	since := n.Created
	if since.IsZero() {
		return ""
	}
	return duration.HumanDuration(max(d.now.Sub(since), 0))
}

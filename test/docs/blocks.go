// Package docs checks the documentation against the code: names on pages exist, and commands on pages work.
//
// A block of commands is marked `sh`. A block that not every test can run declares its requirement, for example `sh needs=kind`; [Needs]
// lists the requirements. A block to save is marked `yaml file=<name>` or `python file=<name>`. Tests run commands and save files in the
// order of the page, see [Reader]: test/integration/docs those of the first steps and of the pages about components and upgrades,
// test/integration/install those of the pages about legacy operators, and test/e2e those of the tutorials. test/integration/dependencies
// runs the commands of docs/kind.md. Other blocks are examples, output or pictures.
//
// A block after the line [OutputFollows] is compared with the output of the previous commands, see [Similar].
package docs

import (
	"strings"
)

// Needs are the requirements that not every test meets, with the reason.
var Needs = map[string]string{
	"container-engine": "docker or podman builds and pushes images",
	"kind":             "a cluster of kind runs in a container engine",
	"openshift":        "oc, or an API that only OpenShift serves",
	"olm":              "the Operator Lifecycle Manager runs in the cluster",
	"olmv1":            "OLM v1 runs in the cluster",
	"registry":         "images or charts come from a registry",
	"original":         "a legacy operator runs in the cluster",
	"server":           "pods of the test cluster are simulated",
	"pod":              "the manager of the test does not run in a pod",
	"prometheus":       "Prometheus or its operator runs in the cluster",
	"long":             "the commands take minutes, and CI or another suite runs them",
	"trouble":          "the commands are for a cluster with a fault",
	"example":          "the commands contain placeholders",
	"pypi":             "the test installs packages of PyPI in its own environment",
}

// OutputFollows is the line between commands and the block with their output.
const OutputFollows = "The output is similar to:"

// Block is a fenced block of a page.
type Block struct {
	// Language is the first word after the fence. Info holds the words after it.
	Language string
	Info     []string
	Text     string
	// Line is the first line of the block on the page, counted from 1.
	Line int
	// Before is the last nonempty line between the previous block and this one, "" if there is none.
	Before string
}

// IsOutput reports whether the block is the output of the previous commands.
func (b Block) IsOutput() bool { return b.Language == "text" && b.Before == OutputFollows }

// Value returns the value after `key=` in Info, or "".
func (b Block) Value(key string) string {
	for _, word := range b.Info {
		if value, ok := strings.CutPrefix(word, key+"="); ok {
			return value
		}
	}
	return ""
}

// Blocks returns the fenced blocks of a page in order.
func Blocks(page string) []Block {
	var all []Block
	var open *Block
	number, before := 0, ""
	for line := range strings.Lines(page) {
		number++
		trimmed := strings.TrimSpace(line)
		fenced := strings.HasPrefix(trimmed, "```")
		switch {
		case fenced && open == nil:
			words := strings.Fields(strings.TrimPrefix(trimmed, "```"))
			open = &Block{Line: number, Before: before}
			if len(words) > 0 {
				open.Language, open.Info = words[0], words[1:]
			}
		case fenced:
			all = append(all, *open)
			open, before = nil, ""
		case open != nil:
			open.Text += line
		case trimmed != "":
			before = trimmed
		}
	}
	return all
}

// Commands returns the commands of a block. A command is a line with its continuation lines, after a backslash, and with the lines of its
// here-document. Comments are omitted.
func (b Block) Commands() []string {
	var all []string
	var current strings.Builder
	end := "" // the delimiter of the here-document
	for line := range strings.Lines(b.Text) {
		text := strings.TrimRight(line, "\n")
		if current.Len() > 0 {
			current.WriteString("\n")
		} else if text = strings.TrimSpace(text); text == "" || strings.HasPrefix(text, "#") {
			continue
		}
		current.WriteString(text)
		if _, after, found := strings.Cut(text, "<<"); found && end == "" {
			end = strings.Trim(strings.Fields(after)[0], `'"-`)
			continue
		}
		if strings.HasSuffix(text, `\`) || end != "" && strings.TrimSpace(text) != end {
			continue
		}
		all = append(all, current.String())
		current.Reset()
		end = ""
	}
	return all
}

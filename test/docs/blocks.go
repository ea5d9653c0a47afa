// Package docs checks the documentation against the code: everything that a page names must exist, and its commands must work.
//
// A block of commands is marked `sh`. A block that cannot run in a test declares its need, `sh needs=kind` for example; [Needs] lists
// them. A block that its reader is to save is marked `yaml file=<name>` or `python file=<name>`. The suite test/integration/docs runs and
// applies these in the order of the page, test/integration/install those of the pages about legacy operators, and test/e2e the tutorials,
// see [Reader]; other blocks of a page are output or pictures.
//
// A block after the line [OutputFollows] is compared with the output of the commands before it, see [Similar].
package docs

import (
	"strings"
)

// Needs are the needs that a test cannot meet, with the reason.
var Needs = map[string]string{
	"container-engine": "images are built and pushed by docker or podman",
	"kind":             "a cluster of kind runs in a container engine",
	"openshift":        "oc, or an API that only OpenShift serves",
	"olm":              "the Operator Lifecycle Manager runs in the cluster",
	"olmv1":            "OLM v1 runs in the cluster",
	"registry":         "images or charts come from a registry",
	"original":         "an operator that is to be replaced runs in the cluster",
	"server":           "pods of the test cluster do not run their programs",
	"pod":              "the manager of the test runs outside the cluster and not in a pod",
	"prometheus":       "Prometheus or its operator runs in the cluster",
	"long":             "it takes minutes and is run by CI or a suite of its own",
	"trouble":          "it is about a cluster with a fault",
	"example":          "it stands for what the reader fills in",
	"pypi":             "packages of PyPI are in an environment of the test",
}

// OutputFollows is the line between commands and the block with their output.
const OutputFollows = "The output is similar to:"

// Block is a fenced block of a page.
type Block struct {
	// Language is the first word after the fence, and Info the words after it.
	Language string
	Info     []string
	Text     string
	// Line of the page in which the block begins, counted from 1.
	Line int
	// Before is the last line before the block that is not empty.
	Before string
}

// IsOutput reports whether the block is the output of the commands before it.
func (b Block) IsOutput() bool { return b.Language == "text" && b.Before == OutputFollows }

// Value returns the value after `key=` in the info, or "".
func (b Block) Value(key string) string {
	for _, word := range b.Info {
		if value, ok := strings.CutPrefix(word, key+"="); ok {
			return value
		}
	}
	return ""
}

// Blocks returns the fenced blocks of a page in their order.
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

// Commands returns the commands of a block, one for each line; lines that end in a backslash continue, and those of a here-document
// belong to its command. Comments are omitted.
func (b Block) Commands() []string {
	var all []string
	var current strings.Builder
	end := "" // of the here-document
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

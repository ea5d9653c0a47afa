package cli

import (
	"fmt"
	"strings"
)

const (
	program  = "kubectl odh"
	exitText = "Exit code: 0 all is well, 1 something is wrong, 2 called wrongly or the cluster does not answer,\n3 nothing is wrong in what could be read, and some could not be.\n"
)

// overview is the help of the whole program.
func overview(commands []Command) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Shows what the operator of the Open Data Hub runs in a cluster, and what is wrong with it.\n\nUsage: %s COMMAND [flags]\n\nCommands:\n", program)
	for _, c := range commands {
		fmt.Fprintf(&b, "  %-9s %s\n", c.Name, c.Short)
	}
	fmt.Fprintf(&b, "  %-9s %s\n\nNothing is ever changed in the cluster. Begin with: %s status\nFlags and examples of a command: %s help COMMAND\n%s",
		"help", "show this, or the help of a command", program, program, exitText)
	return b.String()
}

// help is the help of one command.
func (c Command) help(own, common string) string {
	var b strings.Builder
	usage := strings.TrimSpace(program + " " + c.Name + " " + c.Args)
	fmt.Fprintf(&b, "%s\n\nUsage: %s [flags]\n", sentence(c.Short), usage)
	if c.Long != "" {
		fmt.Fprintf(&b, "\n%s\n", strings.TrimSpace(c.Long))
	}
	if len(c.Examples) > 0 {
		b.WriteString("\nExamples:\n")
		for _, example := range c.Examples {
			fmt.Fprintf(&b, "  %s %s\n", program, example)
		}
	}
	if own != "" {
		fmt.Fprintf(&b, "\nFlags:\n%s", own)
	}
	fmt.Fprintf(&b, "\nCommon flags:\n%s\n%s", common, exitText)
	return b.String()
}

// sentence begins with a capital and ends with a full stop.
func sentence(text string) string {
	return strings.ToUpper(text[:1]) + text[1:] + "."
}

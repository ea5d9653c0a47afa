package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"sigs.k8s.io/yaml"

	"github.com/odh-platform/odh-platform-operator/cmd/kubectl-odh/internal/screen"
	"github.com/odh-platform/odh-platform-operator/pkg/names"
)

// Exit codes.
const (
	// ExitHealthy says that all is well.
	ExitHealthy = 0
	// ExitWrong says that something shown is not well.
	ExitWrong = 1
	// ExitFailed says that the command was called wrongly, or could not find out.
	ExitFailed = 2
	// ExitUnknown says that nothing shown is wrong, and that not everything could be read.
	ExitUnknown = 3
)

// ErrWrong ends a command that has shown what is wrong; nothing more is said, and the exit code is ExitWrong.
var ErrWrong = errors.New("something is wrong")

// ErrUnknown ends a command that has shown nothing wrong and could not read everything; nothing more is said, and the exit code is
// ExitUnknown.
var ErrUnknown = errors.New("not everything could be read")

// Action does what a command is for.
type Action func(ctx context.Context, call *Call, args []string) error

// Command is a sub-command.
type Command struct {
	// Name is the word for it, and Args what may follow, such as "KIND/NAME...".
	Name, Args string
	// Short is one line for the list of commands, Long the rest of its help; it may be empty.
	Short, Long string
	// Examples are command lines to begin with, without the name of the program.
	Examples []string
	// Setup adds the flags of its own and returns what reads them.
	Setup func(flags *pflag.FlagSet) Action
}

// Call is one call of a command.
type Call struct {
	Process
	Options
	// Style says how text looks.
	Style screen.Style
}

// Encode writes a value in the format of -o json or -o yaml.
func (c *Call) Encode(value any) error {
	content, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return fmt.Errorf("encoding the result: %w", err)
	}
	if c.Output == YAML {
		if content, err = yaml.JSONToYAML(content); err != nil {
			return fmt.Errorf("encoding the result: %w", err)
		}
		_, err = c.Stdout.Write(content)
		return err
	}
	_, err = fmt.Fprintf(c.Stdout, "%s\n", content)
	return err
}

// Cluster is the way to the cluster that the flags name.
func (c *Call) Cluster() (*Cluster, error) { return c.Connect(c.Options) }

// Run picks a command, runs it and returns the exit code.
func Run(ctx context.Context, p Process, commands []Command) int {
	err := dispatch(ctx, p, commands)
	switch {
	case err == nil:
		return ExitHealthy
	case errors.Is(err, ErrWrong):
		return ExitWrong
	case errors.Is(err, ErrUnknown):
		return ExitUnknown
	}
	fmt.Fprintf(p.Stderr, "kubectl-odh: %s\n", explain(err))
	if _, wrongly := errors.AsType[*usageError](err); wrongly {
		fmt.Fprintln(p.Stderr, "See "+helpFor(p.Args, commands)+".")
	}
	return ExitFailed
}

// helpFor is the command that prints the help to what was called.
func helpFor(args []string, commands []Command) string {
	name, _ := split(args)
	if slices.ContainsFunc(commands, func(c Command) bool { return c.Name == name }) {
		return program + " help " + name
	}
	return program + " help"
}

func dispatch(ctx context.Context, p Process, commands []Command) error {
	name, rest := split(p.Args)
	if len(p.Args) > 0 && p.Args[0] == "--version" {
		name, rest = "version", p.Args[1:]
	}
	if name == "help" {
		name, _ = split(rest)
		rest = []string{"--help"}
	}
	if name == "" {
		if err := onlyHelp(rest); err != nil {
			return err
		}
		_, err := io.WriteString(p.Stdout, overview(commands))
		return err
	}
	for _, command := range commands {
		if command.Name == name {
			return command.run(ctx, p, rest)
		}
	}
	return unknown(name, commands)
}

// split takes the name of the command out of the arguments: the first of them, since flags before it would have to be known.
func split(args []string) (name string, rest []string) {
	if len(args) == 0 || strings.HasPrefix(args[0], "-") {
		return "", args
	}
	return args[0], args[1:]
}

// onlyHelp refuses flags where a command should stand.
func onlyHelp(args []string) error {
	for _, arg := range args {
		if arg != "-h" && arg != "--help" {
			return Usage("%s: name a command first, such as: kubectl odh status %s", arg, strings.Join(args, " "))
		}
	}
	return nil
}

func unknown(name string, commands []Command) error {
	var known []string
	for _, command := range commands {
		if names.Edits(name, command.Name) <= 2 {
			return Usage("unknown command %q; did you mean %q?", name, command.Name)
		}
		known = append(known, command.Name)
	}
	return Usage("unknown command %q; known are %s and help", name, strings.Join(known, ", "))
}

func (c Command) run(ctx context.Context, p Process, args []string) error {
	call := &Call{Process: p}
	flags := pflag.NewFlagSet(c.Name, pflag.ContinueOnError)
	flags.SortFlags = false
	flags.SetOutput(io.Discard) // errors are told by Run
	action := c.Setup(flags)
	own := flags.FlagUsages()
	call.add(flags)
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, pflag.ErrHelp) {
			common := pflag.NewFlagSet("", pflag.ContinueOnError)
			common.SortFlags = false
			new(Options).add(common)
			_, err = io.WriteString(p.Stdout, c.help(own, common.FlagUsages()))
			return err
		}
		return Usage("%s: %s", c.Name, err)
	}
	if err := call.check(); err != nil {
		return err
	}
	call.Style = p.style(call.Options)
	return action(ctx, call, flags.Args())
}

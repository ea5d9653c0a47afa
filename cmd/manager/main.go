// Command manager runs the controllers of the Open Data Hub components in one process.
//
// Sub-commands: run (the default, so that bare flags work), render (print the objects that a custom resource would produce,
// without a cluster) and version; and modelregistry, catalog and aihub, which Deployments of the legacy operator use.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/odh-platform/odh-platform-operator/cmd/internal/kinds"
	"github.com/odh-platform/odh-platform-operator/cmd/internal/render"
	"github.com/odh-platform/odh-platform-operator/controllers/modelcatalog"
	"github.com/odh-platform/odh-platform-operator/controllers/modelregistry"
	"github.com/odh-platform/odh-platform-operator/controllers/platform"
	"github.com/odh-platform/odh-platform-operator/pkg/config"
)

// process holds the dependencies of the program that tests replace.
type process struct {
	args           []string // without the program name
	stdin          io.Reader
	stdout, stderr io.Writer
	load           func(config.Program, []string) (config.Config, error)
	specs          func(*Env) []componentSpec
	kinds          render.Kinds      // supported by render
	installLogger  func(logr.Logger) // sets the global loggers of the libraries
	// enabled and defaults become EnabledComponents and Defaults of config.Program.
	enabled  []string
	defaults map[string]string
	// startupGracePeriod is the grace period of the permissionMonitor.
	startupGracePeriod time.Duration
}

// command is a sub-command.
type command struct {
	name, help string
	run        func(context.Context, process) error
	// enabled are the components that are enabled by default, and defaults the default values of flags. Empty means those of run.
	enabled  []string
	defaults map[string]string
}

// legacyDefaults are the flag defaults of the legacy sub-commands that differ from those of run.
var legacyDefaults = map[string]string{"metrics-bind-address": ":8443"}

// commands returns the sub-commands. Those of the legacy operator of model registries do the same as run, with other defaults. The legacy
// aihub started modelregistry and catalog as separate programs. Here they are components of one process, and settings such as --components
// can disable them.
func commands() []command {
	return []command{
		{name: "run", help: "run the controllers (default)", run: runManager},
		{name: "render", help: "print the objects that a custom resource would produce: render -f FILE [--platform bare|plain|openshift] [flags]", run: runRender},
		{name: "version", help: "print the versions of the program", run: runVersion},
		{"modelregistry", "run only model registries, for Deployments of the legacy operator", runManager, []string{modelregistry.ComponentName}, legacyDefaults},
		{"catalog", "run only the model catalog, for Deployments of the legacy operator", runManager, []string{modelcatalog.ComponentName}, legacyDefaults},
		{"aihub", "run AIHub, registries and the catalog, for Deployments of the legacy operator", runManager,
			[]string{platform.ComponentName, modelregistry.ComponentName, modelcatalog.ComponentName}, legacyDefaults},
	}
}

func main() {
	os.Exit(run(ctrl.SetupSignalHandler(), process{
		args: os.Args[1:], stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr,
		load: config.FromProcess, specs: componentSpecs, kinds: kinds.Table(), installLogger: installLogger, startupGracePeriod: startupGracePeriod,
	}))
}

// run executes the sub-command and returns the exit code: 0, or 1 after one line of error on stderr.
func run(ctx context.Context, p process) int {
	name := "run"
	if len(p.args) > 0 && !strings.HasPrefix(p.args[0], "-") {
		name, p.args = p.args[0], p.args[1:]
	}
	c, err := findCommand(name)
	if err == nil {
		p.enabled, p.defaults = c.enabled, c.defaults
		err = c.run(ctx, p)
	}
	if errors.Is(err, config.ErrHelp) {
		fmt.Fprint(p.stdout, usage(p))
		return 0
	}
	if err != nil {
		fmt.Fprintf(p.stderr, "manager: %s\n", strings.ReplaceAll(strings.TrimSpace(err.Error()), "\n", "; "))
		return 1
	}
	return 0
}

// findCommand returns a sub-command by its name. The error for "help" is config.ErrHelp.
func findCommand(name string) (command, error) {
	var known []string
	for _, c := range commands() {
		if c.name == name {
			return c, nil
		}
		known = append(known, c.name)
	}
	if name == "help" {
		return command{}, config.ErrHelp
	}
	return command{}, fmt.Errorf("unknown sub-command %q; known sub-commands: %s", name, strings.Join(known, ", "))
}

func usage(p process) string {
	var b strings.Builder
	b.WriteString("Usage: manager [sub-command] [flags]\n\nSub-commands:\n")
	for _, c := range commands() {
		fmt.Fprintf(&b, "  %-13s %s\n", c.name, c.help)
	}
	b.WriteString("\nSettings (precedence: flags, environment, --config file, defaults):\n")
	b.WriteString(config.Usage(program(p)))
	return b.String()
}

// program returns the properties of this build and of the sub-command that the configuration needs.
func program(p process) config.Program {
	components := []string{}
	for _, spec := range p.specs(&Env{}) {
		components = append(components, spec.Name)
	}
	return config.Program{
		Components: slices.Compact(components), MLflowVersion: mlflowVersion, EnabledComponents: p.enabled, Defaults: p.defaults,
	}
}

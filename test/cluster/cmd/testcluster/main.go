// Command testcluster builds, starts and stops real Kubernetes control planes on loopback; see package cluster.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"text/tabwriter"

	"github.com/spf13/pflag"

	"github.com/odh-platform/odh-platform-operator/test/cluster"
)

const usage = `testcluster runs real Kubernetes control planes on loopback.

  testcluster build                       compile the control plane, once
  testcluster up NAME [flags]             start an instance and wait until it is ready
  testcluster down NAME... | --all        stop instances and remove their data
  testcluster restart NAME                kill a real node as in a power failure, and start it with its stored data
  testcluster list                        print instances and their processes
  testcluster kubeconfig NAME             print the path of the administrator's kubeconfig
  testcluster clean                       remove binaries, images and all other files of this repository from the user's cache directory
  testcluster kubectl                     print the path of the kubectl that is built with the control plane
  testcluster env [NAME]                  print shell commands that set PATH for kubectl, and KUBECONFIG of an instance

Flags:
`

const columnGap = 3

var errUsage = errors.New("wrong usage")

type program struct {
	out, progress io.Writer
	flags         *pflag.FlagSet
	platform      string
	nodes         int
	all, real     bool
	peers         bool
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "testcluster:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out, progress io.Writer) error {
	p := &program{out: out, progress: progress, flags: pflag.NewFlagSet("testcluster", pflag.ContinueOnError)}
	p.flags.StringVar(&p.platform, "platform", string(cluster.Plain), "third-party APIs of a new instance: bare, plain or openshift")
	p.flags.IntVar(&p.nodes, "nodes", 0, "number of fake nodes of a new instance (default 2)")
	p.flags.BoolVar(&p.all, "all", false, "stop every instance")
	p.flags.BoolVar(&p.real, "real", false, "with up and build: use a real node that runs pods instead of fake nodes; requires root on Linux")
	p.flags.BoolVar(&p.peers, "peers", false, "with build: also build the programs of other projects that suites start")
	p.flags.SetOutput(progress)
	p.flags.Usage = func() { fmt.Fprint(progress, usage, p.flags.FlagUsages()) }
	if err := p.flags.Parse(args); errors.Is(err, pflag.ErrHelp) {
		return nil
	} else if err != nil {
		return fmt.Errorf("reading the command line: %w", err)
	}
	commands := map[string]func(context.Context, []string) error{
		"build": p.build, "up": p.up, "down": p.down, "restart": p.restart, "list": p.list, "clean": p.clean, "kubeconfig": p.kubeconfig, "kubectl": p.kubectl, "env": p.env,
	}
	command, ok := commands[p.flags.Arg(0)]
	if !ok {
		p.flags.Usage()
		return fmt.Errorf("unknown command %q: %w", p.flags.Arg(0), errUsage)
	}
	return command(ctx, p.flags.Args()[1:])
}

func (p *program) build(ctx context.Context, _ []string) error {
	if _, err := cluster.Build(ctx, p.progress); err != nil {
		return err
	}
	if p.peers {
		for _, peer := range cluster.SuitePeers {
			if _, err := cluster.BuildPeer(ctx, peer, p.progress); err != nil {
				return err
			}
		}
	}
	if p.real {
		_, err := cluster.BuildNode(ctx, p.progress)
		return err
	}
	return nil
}

func (p *program) up(ctx context.Context, names []string) error {
	if len(names) != 1 {
		return fmt.Errorf("up takes one name: %w", errUsage)
	}
	if existing, err := cluster.Open(names[0]); err == nil && existing.Running() {
		fmt.Fprintf(p.progress, "instance %s is already running\n", names[0])
		return p.kubeconfig(ctx, names)
	}
	instance, err := cluster.Start(ctx, cluster.Options{
		Name: names[0], Platform: cluster.Platform(p.platform), Nodes: p.nodes, Real: p.real, Progress: p.progress,
	})
	if err != nil {
		return err
	}
	fmt.Fprintln(p.out, instance.Kubeconfig())
	return nil
}

func (p *program) restart(ctx context.Context, names []string) error {
	if len(names) != 1 {
		return fmt.Errorf("restart takes one name: %w", errUsage)
	}
	instance, err := cluster.Open(names[0])
	if err != nil {
		return err
	}
	return instance.RestartNode(ctx)
}

func (p *program) down(ctx context.Context, names []string) error {
	if p.all == (len(names) > 0) {
		return fmt.Errorf("down takes names or --all: %w", errUsage)
	}
	if p.all {
		instances, err := cluster.List()
		if err != nil {
			return err
		}
		for _, instance := range instances {
			names = append(names, instance.Name)
		}
	}
	var errs []error
	for _, name := range names {
		instance, err := cluster.Open(name)
		if errors.Is(err, cluster.ErrNotFound) {
			fmt.Fprintf(p.progress, "instance %s is not running\n", name)
			continue
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		errs = append(errs, instance.Stop(ctx))
	}
	return errors.Join(errs...)
}

func (p *program) list(context.Context, []string) error {
	instances, err := cluster.List()
	if err != nil {
		return err
	}
	table := tabwriter.NewWriter(p.out, 0, 0, columnGap, ' ', 0)
	fmt.Fprintln(table, "NAME\tPLATFORM\tPROCESSES\tKUBECONFIG")
	for _, instance := range instances {
		var processes []string
		for _, process := range instance.Processes() {
			text := fmt.Sprintf("%s(%d)", process.Name, process.PID)
			if !process.Running() {
				text += " exited"
			}
			processes = append(processes, text)
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", instance.Name, instance.Platform(), strings.Join(processes, ", "), instance.Kubeconfig())
	}
	return table.Flush()
}

func (p *program) clean(ctx context.Context, _ []string) error {
	freed, err := cluster.Clean(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintf(p.out, "%.1f GiB freed.\n", float64(freed)/(1<<30))
	return nil
}

func (p *program) kubeconfig(_ context.Context, names []string) error {
	if len(names) != 1 {
		return fmt.Errorf("kubeconfig takes one name: %w", errUsage)
	}
	instance, err := cluster.Open(names[0])
	if err != nil {
		return err
	}
	fmt.Fprintln(p.out, instance.Kubeconfig())
	return nil
}

func (p *program) kubectl(ctx context.Context, names []string) error {
	if len(names) > 0 {
		return fmt.Errorf("kubectl takes no argument and prints a path, run $(testcluster kubectl) %s: %w", strings.Join(names, " "), errUsage)
	}
	path, err := cluster.Kubectl(ctx, p.progress)
	if err != nil {
		return err
	}
	fmt.Fprintln(p.out, path)
	return nil
}

func (p *program) env(ctx context.Context, names []string) error {
	path, err := cluster.Kubectl(ctx, p.progress)
	if err != nil {
		return err
	}
	fmt.Fprintf(p.out, "export PATH=%q:\"$PATH\"\n", filepath.Dir(path))
	if len(names) == 0 {
		return nil
	}
	instance, err := cluster.Open(names[0])
	if err != nil {
		return err
	}
	fmt.Fprintf(p.out, "export KUBECONFIG=%q\n", instance.Kubeconfig())
	return nil
}

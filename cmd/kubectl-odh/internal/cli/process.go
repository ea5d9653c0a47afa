package cli

import (
	"io"
	"os"

	"golang.org/x/term"
	"k8s.io/utils/clock"
)

// Process is the world outside the program.
type Process struct {
	Args           []string // without the program's name
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	Clock          clock.PassiveClock
	// Lookup reads the environment.
	Lookup func(string) (string, bool)
	// Terminal tells whether Stdout is a terminal, and how many columns it has; 0 when that is not known.
	Terminal func() (columns int, is bool)
	// Connect finds the cluster.
	Connect func(Options) (*Cluster, error)
	// Version of the program.
	Version string
}

// FromSystem is the process that runs.
func FromSystem(version string) Process {
	return Process{
		Args: os.Args[1:], Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Clock: clock.RealClock{}, Lookup: os.LookupEnv,
		Terminal: terminal, Connect: func(o Options) (*Cluster, error) { return Connect(o, version) }, Version: version,
	}
}

func terminal() (columns int, is bool) {
	descriptor := int(os.Stdout.Fd())
	if !term.IsTerminal(descriptor) {
		return 0, false
	}
	columns, _, err := term.GetSize(descriptor)
	if err != nil {
		return 0, true
	}
	return columns, true
}

// environment returns the value of a variable, empty when it is not set.
func (p Process) environment(name string) string {
	value, _ := p.Lookup(name)
	return value
}

//go:build linux

// Command realnode is a node of a test cluster: `isolate DIR` makes it, as the first process of its namespaces, and `run DIR`
// runs it there. Package cluster starts it.
package main

import (
	"context"
	"fmt"
	"os"
	"runtime"

	"github.com/odh-platform/odh-platform-operator/test/node"
)

// init keeps the main goroutine on the main thread, whose network namespace is that of /proc/<pid>/ns/net.
func init() { runtime.LockOSThread() }

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "realnode:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 2 {
		return fmt.Errorf("want a command and a folder, got %q", args)
	}
	settings, err := node.Read(args[1])
	if err != nil {
		return err
	}
	switch args[0] {
	case "isolate":
		return node.Isolate(settings)
	case "run":
		return node.Run(context.Background(), settings)
	default:
		return fmt.Errorf("unknown command %q", args[0])
	}
}

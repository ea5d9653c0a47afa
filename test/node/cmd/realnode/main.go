//go:build linux

// Command realnode is a node of a test cluster. Package cluster starts `isolate DIR` as the first process of new namespaces; this
// process sets the node up and starts `run DIR`.
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
		return fmt.Errorf("usage: realnode isolate|run DIR, got %q", args)
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

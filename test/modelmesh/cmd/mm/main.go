// Command mm runs one instance of the fake routing layer of ModelMesh in a pod, see package instance. When called as stop.sh, it
// makes the running instance leave the other instances.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/go-logr/logr/funcr"

	"github.com/odh-platform/odh-platform-operator/test/modelmesh/instance"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "mm:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	if filepath.Base(os.Args[0]) == "stop.sh" {
		return instance.Stop(ctx)
	}
	log := funcr.New(func(prefix, args string) { fmt.Fprintln(os.Stderr, prefix, args) }, funcr.Options{LogTimestamp: true})
	return instance.Run(ctx, log)
}

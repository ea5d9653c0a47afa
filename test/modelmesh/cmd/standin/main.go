// Command standin runs the fake routing layers of ModelMesh for all namespaces of a cluster until SIGTERM or SIGINT, see package
// modelmesh.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/go-logr/logr/funcr"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/odh-platform/odh-platform-operator/test/modelmesh"
)

func main() {
	kubeconfig := flag.String("kubeconfig", "", "kubeconfig file of an administrator")
	address := flag.String("address", "", "address on which the proxy listens, host:port")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, *kubeconfig, *address)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "standin:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, kubeconfig, address string) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return fmt.Errorf("reading kubeconfig %s: %w", kubeconfig, err)
	}
	log := funcr.New(func(prefix, args string) { fmt.Fprintln(os.Stderr, prefix, args) }, funcr.Options{})
	network, err := modelmesh.Start(ctx, modelmesh.Options{Config: config, Address: address, Log: log})
	if err != nil {
		return err
	}
	<-ctx.Done()
	return network.Stop(context.WithoutCancel(ctx))
}

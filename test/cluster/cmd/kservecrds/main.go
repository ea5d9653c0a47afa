// Command kservecrds provides the CRDs of KServe that ModelMesh needs, for clusters without KServe. `write <folder>` writes them as a
// kustomization. `install` installs them into the cluster of the current kubeconfig, unless a newer version is installed.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"

	"github.com/spf13/pflag"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset/typed/apiextensions/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/odh-platform/odh-platform-operator/test/cluster/kserve"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "kservecrds:", err)
		os.Exit(1)
	}
}

var errUsage = errors.New("usage: kservecrds [--namespaced] install | write <folder>")

func run(ctx context.Context, args []string) error {
	flags := pflag.NewFlagSet("kservecrds", pflag.ContinueOnError)
	namespaced := flags.Bool("namespaced", false, "omit ClusterServingRuntime, which a manager of a single namespace does not read")
	if err := flags.Parse(args); err != nil {
		return err
	}
	args = flags.Args()
	if len(args) == 0 || (args[0] == "write") != (len(args) == 2) || (args[0] != "write" && args[0] != "install") {
		return errUsage
	}
	crds, err := kserve.Definitions(ctx, *namespaced)
	if err != nil {
		return err
	}
	if args[0] == "write" {
		return kserve.Write(args[1], crds)
	}
	config, err := ctrl.GetConfig()
	if err != nil {
		return fmt.Errorf("finding the cluster: %w", err)
	}
	client, err := apiextensions.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("creating a client: %w", err)
	}
	return kserve.Install(ctx, client.CustomResourceDefinitions(), crds, os.Stdout)
}

// Command deploykind deploys the operator and an MLflow to a kind cluster.
//
//	deploykind [flags] up      create the cluster, deploy to it, and wait
//	deploykind [flags] apply   deploy to the cluster of KUBECONFIG
//	deploykind [flags] render  print the manifests
//	deploykind [flags] down    delete the cluster
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/odh-platform/odh-platform-operator/test/kind"
)

// deployTimeout limits the wait for MLflow, which includes pulling images.
const deployTimeout = 15 * time.Minute

var errUsage = errors.New("usage: deploykind [flags] up|apply|render|down")

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr, kind.Exec(os.Stderr))
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "deploykind:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out, progress io.Writer, runner kind.Runner) error {
	o := kind.Defaults()
	c := kind.Cluster{Run: runner}
	flags := flag.NewFlagSet("deploykind", flag.ContinueOnError)
	flags.SetOutput(progress)
	flags.StringVar(&c.Program, "kind", "kind", "name or path of kind")
	flags.StringVar(&c.Name, "cluster", "odh-platform-operator", "name of the cluster")
	flags.StringVar(&o.Namespace, "namespace", o.Namespace, "namespace of all objects")
	flags.StringVar(&o.BackendStore, "backend-store", o.BackendStore, "sqlite or postgres: store of runs")
	flags.StringVar(&o.RegistryStore, "registry-store", o.RegistryStore, "sqlite or postgres: store of models; empty means the store of runs")
	flags.StringVar(&o.ArtifactStorage, "artifact-storage", o.ArtifactStorage, "file or s3: store of artifacts")
	flags.BoolVar(&o.ServeArtifacts, "serve-artifacts", o.ServeArtifacts, "whether clients access artifacts through MLflow; always true for file")
	flags.StringVar(&o.MLflowImage, "mlflow-image", "", "image of MLflow")
	flags.StringVar(&o.Image, "image", "", "image of the manager")
	flags.BoolVar(&o.PostgresTLS, "postgres-tls", false, "generate a certificate for PostgreSQL")
	flags.BoolVar(&o.SeaweedFSTLS, "seaweedfs-tls", false, "generate a certificate for SeaweedFS")
	flags.StringVar(&o.CABundlePath, "ca-bundle-path", "", "file with CAs that MLflow trusts")
	flags.StringVar(&o.CABundleConfigMap, "ca-bundle-configmap", "", "ConfigMap with CAs that MLflow trusts")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() != 1 {
		return errUsage
	}
	if err := o.Validate(); err != nil {
		return err
	}
	if !o.ServeArtifacts && o.ArtifactStorage == kind.File {
		fmt.Fprintln(progress, "SERVE_ARTIFACTS has no effect: MLflow serves the artifacts, because they are files on its volume.")
	}
	command := flags.Arg(0)
	if o.Image == "" && (command == "up" || command == "apply") {
		return errors.New("IMG is not set, and no image of this checkout is published: build one with make docker-build IMG=odh-platform-operator:dev, and set IMG to it")
	}
	switch command {
	case "up":
		return up(ctx, c, o, out)
	case "apply":
		return apply(ctx, o, out)
	case "render":
		return render(o, out)
	case "down":
		return c.Down(ctx)
	default:
		return fmt.Errorf("unknown command %q; %w", command, errUsage)
	}
}

func up(ctx context.Context, c kind.Cluster, o kind.Options, out io.Writer) error {
	kubeconfig, err := c.Up(ctx, o.Image)
	if err != nil {
		return err
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	if err != nil {
		return fmt.Errorf("reading the kubeconfig of cluster %s: %w", c.Name, err)
	}
	d, err := deployer(config, out)
	if err != nil {
		return err
	}
	if err := d.Deploy(ctx, o); err != nil {
		return err
	}
	return d.Wait(ctx, o, deployTimeout)
}

func apply(ctx context.Context, o kind.Options, out io.Writer) error {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig()
	if err != nil {
		return fmt.Errorf("reading KUBECONFIG: %w", err)
	}
	d, err := deployer(config, out)
	if err != nil {
		return err
	}
	return d.Deploy(ctx, o)
}

func deployer(config *rest.Config, out io.Writer) (*kind.Deployer, error) {
	scheme := runtime.NewScheme()
	if err := kind.AddToScheme(scheme); err != nil {
		return nil, err
	}
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("connecting to the cluster: %w", err)
	}
	return &kind.Deployer{Client: c, Clock: clock.RealClock{}, Out: out}, nil
}

func render(o kind.Options, out io.Writer) error {
	objects, err := kind.Render(o)
	if err != nil {
		return err
	}
	for _, object := range objects {
		text, err := yaml.Marshal(object.Object)
		if err != nil {
			return fmt.Errorf("encoding %s %s: %w", object.GetKind(), object.GetName(), err)
		}
		if _, err := fmt.Fprintf(out, "---\n%s", text); err != nil {
			return fmt.Errorf("printing the manifests: %w", err)
		}
	}
	return nil
}

// Command certmanager runs the controllers of cert-manager that issue certificates, self-signed or signed by a CA in a Secret, and those
// that write CAs into webhook configurations and CRDs. The commands of cert-manager can be built only in its own repository.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apiext "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	kscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/cert-manager/cert-manager/pkg/api"
	"github.com/cert-manager/cert-manager/pkg/controller"
	"github.com/cert-manager/cert-manager/pkg/controller/cainjector"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificaterequests/approver"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificaterequests/ca"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificaterequests/selfsigned"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/issuing"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/keymanager"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/readiness"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/requestmanager"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/trigger"
	_ "github.com/cert-manager/cert-manager/pkg/controller/clusterissuers"
	_ "github.com/cert-manager/cert-manager/pkg/controller/issuers"
	_ "github.com/cert-manager/cert-manager/pkg/issuer/ca"
	_ "github.com/cert-manager/cert-manager/pkg/issuer/selfsigned"
	"github.com/cert-manager/cert-manager/pkg/metrics"
)

const (
	// clusterNamespace is the namespace of the Secrets of ClusterIssuers.
	clusterNamespace = "cert-manager"

	clientQPS   = 50
	clientBurst = 100
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	ctrl.SetLogger(klog.NewKlogr())
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	config, err := rest.InClusterConfig()
	if err != nil {
		return fmt.Errorf("reading the configuration of the pod: %w", err)
	}
	injectors, err := newInjectors(ctx, config)
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return injectors.Start(ctx) })
	if err := startIssuers(ctx, group); err != nil {
		return err
	}
	return group.Wait()
}

// newInjectors returns a manager with the controllers that write CAs.
func newInjectors(ctx context.Context, config *rest.Config) (ctrl.Manager, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{api.AddToScheme, kscheme.AddToScheme, apiext.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("adding types: %w", err)
		}
	}
	manager, err := ctrl.NewManager(config, ctrl.Options{
		Scheme: scheme, Metrics: metricsserver.Options{BindAddress: "0"},
		// The controllers watch only the metadata of Secrets.
		Client: client.Options{Cache: &client.CacheOptions{DisableFor: []client.Object{&corev1.Secret{}}}},
	})
	if err != nil {
		return nil, fmt.Errorf("creating the manager: %w", err)
	}
	return manager, cainjector.RegisterAllInjectors(ctx, manager, cainjector.SetupOptions{
		EnableCertificatesDataSource: true,
		EnabledReconcilersFor: map[string]bool{
			cainjector.MutatingWebhookConfigurationName: true, cainjector.ValidatingWebhookConfigurationName: true, cainjector.CustomResourceDefinitionName: true,
		},
	})
}

// startIssuers starts the imported controllers, which issue certificates.
func startIssuers(ctx context.Context, group *errgroup.Group) error {
	factory, err := controller.NewContextFactory(ctx, controller.ContextOptions{
		KubernetesAPIQPS: clientQPS, KubernetesAPIBurst: clientBurst, Clock: clock.RealClock{}, Metrics: metrics.New(klog.FromContext(ctx), clock.RealClock{}),
		IssuerOptions: controller.IssuerOptions{ClusterResourceNamespace: clusterNamespace},
	})
	if err != nil {
		return fmt.Errorf("connecting to the cluster: %w", err)
	}
	for name, create := range controller.Known() {
		issuer, err := create(factory)
		if err != nil {
			return fmt.Errorf("creating %s: %w", name, err)
		}
		group.Go(func() error { return issuer.Run(1, ctx) })
	}
	shared, err := factory.Build()
	if err != nil {
		return fmt.Errorf("starting informers: %w", err)
	}
	shared.SharedInformerFactory.Start(ctx.Done())
	shared.KubeSharedInformerFactory.Start(ctx.Done())
	return nil
}

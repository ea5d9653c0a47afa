package cli

import (
	"fmt"

	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Requests are many, short and few at a time, so the client does not hold them back much; the API server has its own fairness.
const (
	requestsPerSecond = 100
	requestsAtOnce    = 200
)

// Cluster is the way to a cluster.
type Cluster struct {
	// Config for further clients.
	Config *rest.Config
	// Namespace is the one given by flag, else that of the context.
	Namespace string
	// Discovery, Dynamic and Metadata are clients with Config.
	Discovery discovery.DiscoveryInterface
	Dynamic   dynamic.Interface
	Metadata  metadata.Interface
}

// Connect finds a cluster as kubectl does: by the flags, KUBECONFIG, the file in the home directory, or as a pod. Nothing is sent.
func Connect(o Options, version string) (*Cluster, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = o.Kubeconfig
	overrides := &clientcmd.ConfigOverrides{CurrentContext: o.Context, Timeout: o.RequestTimeout.String()}
	overrides.AuthInfo.Impersonate, overrides.AuthInfo.ImpersonateGroups = o.As, o.AsGroups
	overrides.Context.Namespace = o.Namespace
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, overrides)
	config, err := loader.ClientConfig()
	if err != nil {
		raw, _ := loader.RawConfig() // empty where it cannot be read, and then err says why
		return nil, notFound(rules, raw, o.Context, err)
	}
	namespace, _, err := loader.Namespace()
	if err != nil {
		return nil, fmt.Errorf("finding the namespace: %w; use -n", err)
	}
	config.UserAgent = "kubectl-odh/" + version
	config.QPS, config.Burst = requestsPerSecond, requestsAtOnce
	config.WarningHandlerWithContext = rest.NoWarnings{} // who lists every kind meets deprecated ones
	return newCluster(config, namespace)
}

func newCluster(config *rest.Config, namespace string) (*Cluster, error) {
	finder, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("building the discovery client: %w", err)
	}
	objects, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("building the client: %w", err)
	}
	meta, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("building the metadata client: %w", err)
	}
	return &Cluster{Config: config, Namespace: namespace, Discovery: finder, Dynamic: objects, Metadata: meta}, nil
}

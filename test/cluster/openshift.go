package cluster

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

// IngressDomain is the domain of the router in the cluster configuration of [OpenShift].
const IngressDomain = "apps.testcluster.example.com"

// configure creates the configuration singletons that the installer of OpenShift creates. It does nothing on other platforms.
func configure(ctx context.Context, config *rest.Config, platform Platform) error {
	if platform != OpenShift {
		return nil
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("creating a client: %w", err)
	}
	singletons := []struct {
		kind, plural, name string
		spec               map[string]any
	}{
		{"Ingress", "ingresses", "cluster", map[string]any{"domain": IngressDomain}},
		{"Proxy", "proxies", "cluster", map[string]any{}},
		{"APIServer", "apiservers", "cluster", map[string]any{}},
		{"ClusterVersion", "clusterversions", "version", map[string]any{"clusterID": "00000000-0000-4000-8000-000000000000"}},
	}
	for _, s := range singletons {
		object := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "config.openshift.io/v1", "kind": s.kind,
			"metadata": map[string]any{"name": s.name}, "spec": s.spec,
		}}
		resource := schema.GroupVersionResource{Group: "config.openshift.io", Version: "v1", Resource: s.plural}
		_, err := client.Resource(resource).Create(ctx, object, metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("creating %s %s: %w", s.kind, s.name, err)
		}
	}
	return nil
}

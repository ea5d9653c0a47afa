package peers

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/yaml"

	"github.com/odh-platform/odh-platform-operator/test/cluster"
)

const (
	kueueNamespace = "kueue-system"
	kueueSecret    = "kueue-webhook-server-cert"
	kueueConfigMap = "kueue-manager-config"
	kueueConfigKey = "controller_manager_config.yaml"
)

// StartKueue runs Kueue with its webhooks and the frameworks of its shipped configuration. The CRDs of managed frameworks, including
// AppWrapper, must already be served. Settings override those of the configuration.
func StartKueue(ctx context.Context, instance *cluster.Instance, progress io.Writer, settings ...map[string]any) (*cluster.Process, error) {
	args := func(l *launch) ([]string, error) { return newKueueArgs(l, settings) }
	return start(ctx, instance, peer{name: cluster.Kueue, drop: isAPIService, args: args, mount: mountCertificate}, progress)
}

// isAPIService reports whether an object is the aggregated API for reading queues. The control plane cannot route to this API, and as long
// as it is unavailable, no namespace can be deleted.
func isAPIService(object *unstructured.Unstructured) bool { return object.GetKind() == "APIService" }

// mountCertificate replaces the kubelet: it writes the certificate that Kueue issues for its webhooks into the folder from which Kueue
// reads it. It does nothing while the Secret is empty.
func mountCertificate(ctx context.Context, l *launch) error {
	config, err := l.instance.Config()
	if err != nil {
		return err
	}
	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("creating a client: %w", err)
	}
	secret, err := clients.CoreV1().Secrets(kueueNamespace).Get(ctx, kueueSecret, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("reading Secret %s: %w", kueueSecret, err)
	}
	for _, name := range []string{corev1.TLSPrivateKeyKey, corev1.TLSCertKey} {
		content := secret.Data[name]
		if written, err := os.ReadFile(filepath.Join(l.dir, name)); len(content) == 0 || err == nil && bytes.Equal(written, content) {
			continue
		}
		if _, err := l.write(name, content); err != nil {
			return err
		}
	}
	return nil
}

func newKueueArgs(l *launch, settings []map[string]any) ([]string, error) {
	shipped, err := shippedKueueConfig(l.objects)
	if err != nil {
		return nil, err
	}
	config, err := kueueConfig(shipped, l.health, l.dir, l.installed.WebhookPort, settings...)
	if err != nil {
		return nil, err
	}
	path, err := l.write(kueueConfigKey, config)
	return []string{"--config=" + path, "--zap-log-level=2"}, err
}

// kueueConfig returns the shipped configuration with other listeners and additional settings, and without leader election, metrics and the
// aggregated API.
func kueueConfig(shipped, health, certDir string, webhookPort int, settings ...map[string]any) ([]byte, error) {
	var config map[string]any
	if err := yaml.Unmarshal([]byte(shipped), &config); err != nil {
		return nil, fmt.Errorf("reading the configuration of Kueue: %w", err)
	}
	config["health"] = map[string]any{"healthProbeBindAddress": health}
	config["metrics"] = map[string]any{"bindAddress": "0"}
	config["webhook"] = map[string]any{"host": "127.0.0.1", "port": webhookPort, "certDir": certDir}
	config["leaderElection"] = map[string]any{"leaderElect": false}
	config["featureGates"] = map[string]any{"VisibilityOnDemand": false}
	for _, more := range settings {
		maps.Copy(config, more)
	}
	return yaml.Marshal(config)
}

// shippedKueueConfig returns the configuration in the manifests.
func shippedKueueConfig(objects []*unstructured.Unstructured) (string, error) {
	for _, object := range objects {
		if object.GetKind() == "ConfigMap" && object.GetName() == kueueConfigMap {
			text, _, err := unstructured.NestedString(object.Object, "data", kueueConfigKey)
			return text, err
		}
	}
	return "", fmt.Errorf("the manifests of Kueue have no ConfigMap %s", kueueConfigMap)
}

package peers

import (
	"context"
	"errors"
	"fmt"
	"io"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/odh-platform/odh-platform-operator/test/cluster"
	"github.com/odh-platform/odh-platform-operator/test/cluster/operator"
)

const (
	kueueNamespace = "kueue-system"
	kueueService   = "kueue-webhook-service"
	kueueConfigMap = "kueue-manager-config"
	kueueConfigKey = "controller_manager_config.yaml"
)

// StartKueue runs Kueue with its webhooks and the frameworks of its shipped configuration. CRDs of frameworks that are to
// be managed, AppWrapper among them, must be served before.
func StartKueue(ctx context.Context, instance *cluster.Instance, progress io.Writer) (*cluster.Process, error) {
	return start(ctx, instance, peer{name: cluster.Kueue, drop: isAPIService, prepare: trustKueue, args: kueueArgs}, progress)
}

// isAPIService tells the aggregated API for looking at queues. Nothing routes to it here, and while it does not answer no
// namespace can be deleted.
func isAPIService(object *unstructured.Unstructured) bool { return object.GetKind() == "APIService" }

// trustKueue makes the certificate that Kueue would otherwise issue and have mounted into its pod.
func trustKueue(l *launch) error {
	certificate, key, err := cluster.SelfSigned(kueueService, kueueNamespace, l.now)
	if err != nil {
		return err
	}
	_, certErr := l.write("tls.crt", certificate)
	_, keyErr := l.write("tls.key", key)
	return errors.Join(certErr, keyErr, operator.TrustWebhooks(l.objects, certificate))
}

func kueueArgs(l *launch) ([]string, error) {
	shipped, err := shippedKueueConfig(l.objects)
	if err != nil {
		return nil, err
	}
	config, err := kueueConfig(shipped, l.health, l.dir, l.installed.WebhookPort)
	if err != nil {
		return nil, err
	}
	path, err := l.write(kueueConfigKey, config)
	return []string{"--config=" + path, "--zap-log-level=2"}, err
}

// kueueConfig is the shipped configuration with other listeners, our certificate, and no election.
func kueueConfig(shipped, health, certDir string, webhookPort int) ([]byte, error) {
	var config map[string]any
	if err := yaml.Unmarshal([]byte(shipped), &config); err != nil {
		return nil, fmt.Errorf("reading the configuration of Kueue: %w", err)
	}
	config["health"] = map[string]any{"healthProbeBindAddress": health}
	config["metrics"] = map[string]any{"bindAddress": "0"}
	config["webhook"] = map[string]any{"host": "127.0.0.1", "port": webhookPort, "certDir": certDir}
	config["leaderElection"] = map[string]any{"leaderElect": false}
	config["internalCertManagement"] = map[string]any{"enable": false}
	config["featureGates"] = map[string]any{"VisibilityOnDemand": false}
	return yaml.Marshal(config)
}

// shippedKueueConfig finds the text of the configuration among the objects.
func shippedKueueConfig(objects []*unstructured.Unstructured) (string, error) {
	for _, object := range objects {
		if object.GetKind() == "ConfigMap" && object.GetName() == kueueConfigMap {
			text, _, err := unstructured.NestedString(object.Object, "data", kueueConfigKey)
			return text, err
		}
	}
	return "", fmt.Errorf("the manifests of Kueue have no ConfigMap %s", kueueConfigMap)
}

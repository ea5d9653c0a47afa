package resources

import (
	"k8s.io/apimachinery/pkg/runtime"

	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
	"github.com/odh-platform/odh-platform-operator/pkg/resources"
)

// serviceMonitor lets the Prometheus operator scrape the server. Only OpenShift
// signs the serving certificate with an authority that Prometheus can be
// pointed at; elsewhere the certificate is whatever the administrator made.
func serviceMonitor(m *mlflowv1.MLflow, in Inputs) runtime.ApplyConfiguration {
	name := NameOf(m)
	tls := map[string]any{"insecureSkipVerify": true}
	if in.OpenShift {
		tls = map[string]any{
			"ca":         map[string]any{"configMap": map[string]any{"name": serviceCAName, "key": serviceCAKey}},
			"serverName": serviceHost(m, in),
		}
	}
	return resources.Literal("monitoring.coreos.com/v1", "ServiceMonitor", Suffixed(monitorBaseName, m), in.Namespace, Labels(name), map[string]any{"spec": map[string]any{
		"endpoints": []any{map[string]any{
			"path":      "/metrics",
			"port":      portName,
			"scheme":    "https",
			"tlsConfig": tls,
		}},
		"selector": map[string]any{"matchLabels": map[string]any{LabelApp: name}},
	}})
}

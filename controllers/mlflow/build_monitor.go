package mlflow

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
)

// serviceMonitor lets the Prometheus operator scrape the server. Only OpenShift
// signs the serving certificate with an authority that Prometheus can be
// pointed at; elsewhere the certificate is whatever the administrator made.
func serviceMonitor(m *mlflowv1.MLflow, in Inputs) runtime.ApplyConfiguration {
	name := resourceName(m)
	tls := map[string]any{"insecureSkipVerify": true}
	if in.OpenShift {
		tls = map[string]any{
			"ca":         map[string]any{"configMap": map[string]any{"name": serviceCAName, "key": serviceCAKey}},
			"serverName": serviceHost(m, in),
		}
	}
	return literal("monitoring.coreos.com/v1", "ServiceMonitor", suffixed(monitorBaseName, m), in.Namespace, labels(name), map[string]any{
		"endpoints": []any{map[string]any{
			"path":      "/metrics",
			"port":      portName,
			"scheme":    "https",
			"tlsConfig": tls,
		}},
		"selector": map[string]any{"matchLabels": map[string]any{labelApp: name}},
	})
}

// literal is an object of a kind whose Go types are not worth their weight:
// optional APIs of which few fields are used. Numbers in spec must be int64.
func literal(apiVersion, kind, name, namespace string, labels map[string]string, spec map[string]any) runtime.ApplyConfiguration {
	u := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	u.SetAPIVersion(apiVersion)
	u.SetKind(kind)
	u.SetName(name)
	u.SetNamespace(namespace)
	u.SetLabels(labels)
	return client.ApplyConfigurationFromUnstructured(u)
}

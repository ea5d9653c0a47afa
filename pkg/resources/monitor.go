package resources

import (
	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// ServiceMonitor selects Services by labels for the Prometheus operator, in the given namespaces or else in that of the monitor.
func ServiceMonitor(meta metav1.ObjectMeta, services map[string]string, endpoint monitoringv1.Endpoint, tls monitoringv1.SafeTLSConfig,
	namespaces ...string,
) runtime.ApplyConfiguration {
	endpoint.TLSConfig = &monitoringv1.TLSConfig{SafeTLSConfig: tls}
	return Typed(monitoringv1.SchemeGroupVersion.WithKind(monitoringv1.ServiceMonitorsKind), &monitoringv1.ServiceMonitor{ObjectMeta: meta, Spec: monitoringv1.ServiceMonitorSpec{
		Selector:          metav1.LabelSelector{MatchLabels: services},
		NamespaceSelector: monitoringv1.NamespaceSelector{MatchNames: namespaces},
		Endpoints:         []monitoringv1.Endpoint{endpoint},
	}})
}

package resources

import (
	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/odh-platform/odh-platform-operator/controllers/modelmesh/authproxy"
	meshsettings "github.com/odh-platform/odh-platform-operator/pkg/modelmesh/settings"
	"github.com/odh-platform/odh-platform-operator/pkg/resources"
)

// Names of ports, of the Service and of the pods behind it.
const (
	portGRPC    = "grpc"
	portREST    = "http"
	portMetrics = "prometheus"
)

// MonitorName is the name of the ServiceMonitor of each namespace.
const MonitorName = "modelmesh-metrics-monitor"

// NamespaceInputs is what the objects of a namespace depend on.
type NamespaceInputs struct {
	Namespace string
	// Settings are those of the namespace.
	Settings meshsettings.Settings
	// Proxy guards REST; nil is none.
	Proxy *authproxy.Proxy
	// TLS is nil when traffic is not encrypted.
	TLS *TLSInputs
	// OpenShift: routers reach the pods from outside.
	OpenShift bool
	// Home is the namespace of the manager.
	Home string
}

// BuildService renders the Service in front of all runtimes of a namespace.
func BuildService(in NamespaceInputs) *corev1ac.ServiceApplyConfiguration {
	s := in.Settings
	spec := corev1ac.ServiceSpec().
		WithSelector(map[string]string{LabelService: s.ServiceName}).
		WithPorts(servicePort(portGRPC, s.ServicePort))
	if s.HeadlessService {
		spec.WithClusterIP(corev1.ClusterIPNone)
	}
	service := corev1ac.Service(s.ServiceName, in.Namespace).WithLabels(serviceLabels(s.ServiceName))
	if s.RESTProxy.Enabled {
		spec.WithPorts(servicePort(portREST, s.RESTProxy.Port))
	}
	if in.Proxy != nil {
		spec.WithPorts(in.Proxy.ServicePort())
		service.WithAnnotations(in.Proxy.ServiceAnnotations())
	}
	if s.Metrics.Enabled {
		spec.WithPorts(servicePort(portMetrics, s.Metrics.Port))
	}
	return service.WithSpec(spec)
}

func servicePort(name string, number int32) *corev1ac.ServicePortApplyConfiguration {
	return corev1ac.ServicePort().WithName(name).WithPort(number).WithTargetPort(intstr.FromString(name)).WithProtocol(corev1.ProtocolTCP)
}

// Monitored tells whether the pods of a namespace are to be scraped through a ServiceMonitor.
func Monitored(s meshsettings.Settings) bool {
	return s.Metrics.Enabled && !s.Metrics.DisablePrometheusOperatorSupport
}

// BuildServiceMonitor renders the ServiceMonitor of a namespace. The routing layer serves metrics with a certificate that it signs
// itself, whatever certificate it has for its other ports: there is nothing to verify.
func BuildServiceMonitor(in NamespaceInputs) runtime.ApplyConfiguration {
	s := in.Settings
	return resources.ServiceMonitor(
		metav1.ObjectMeta{Name: MonitorName, Namespace: in.Namespace, Labels: serviceLabels(s.ServiceName)},
		map[string]string{LabelService: s.ServiceName},
		monitoringv1.Endpoint{Port: portMetrics, Interval: "30s", Scheme: new(monitoringv1.Scheme(s.Metrics.Scheme))},
		monitoringv1.SafeTLSConfig{InsecureSkipVerify: new(true)}, in.Namespace)
}

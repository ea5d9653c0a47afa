package resources

import (
	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
	"github.com/odh-platform/odh-platform-operator/pkg/resources"
)

// servingCertAnnotation asks OpenShift for the certificate in a Secret.
// Elsewhere it has no effect, and the operator or an administrator provides the
// Secret.
const servingCertAnnotation = "service.beta.openshift.io/serving-cert-secret-name"

// labelRole on the Service of the tracking server tells it from that for artifacts, which has no metrics.
const labelRole, roleTracking = "app.kubernetes.io/component", "tracking-server"

func service(m *mlflowv1.MLflow, in Inputs, s Server) *corev1ac.ServiceApplyConfiguration {
	labels := Labels(NameOf(m))
	if s.tracking && Splits(m) {
		labels[labelRole] = roleTracking
	}
	return corev1ac.Service(s.Name, in.Namespace).
		WithLabels(labels).
		WithAnnotations(map[string]string{servingCertAnnotation: s.Secret}).
		WithSpec(corev1ac.ServiceSpec().
			WithType(corev1.ServiceTypeClusterIP).
			WithSelector(s.Selector()).
			WithPorts(corev1ac.ServicePort().
				WithName(portName).
				WithProtocol(corev1.ProtocolTCP).
				WithPort(port).
				WithTargetPort(intstr.FromString(portName))))
}

// serviceMonitor lets the Prometheus operator scrape the server. It verifies certificates
// of OpenShift, and those that were issued here; others are whatever the
// administrator made.
func serviceMonitor(m *mlflowv1.MLflow, in Inputs) runtime.ApplyConfiguration {
	name := NameOf(m)
	scraped := map[string]string{LabelApp: name}
	if Splits(m) {
		scraped[labelRole] = roleTracking
	}
	tls := monitoringv1.SafeTLSConfig{ServerName: new(Tracking(m).host(in))}
	switch {
	case in.OpenShift:
		tls.CA.ConfigMap = &corev1.ConfigMapKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: serviceCAName}, Key: serviceCAKey}
	case len(in.Authorities[name]) > 0:
		tls.CA.Secret = &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: Tracking(m).Secret}, Key: caKey}
	default:
		tls = monitoringv1.SafeTLSConfig{InsecureSkipVerify: new(true)}
	}
	return resources.ServiceMonitor(
		metav1.ObjectMeta{Name: Suffixed(monitorBaseName, m), Namespace: in.Namespace, Labels: Labels(name)},
		scraped,
		monitoringv1.Endpoint{Path: "/metrics", Port: portName, Scheme: new(monitoringv1.Scheme("https"))}, tls)
}

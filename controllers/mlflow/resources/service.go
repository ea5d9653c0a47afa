package resources

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
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

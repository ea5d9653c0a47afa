package resources

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
)

// servingCertAnnotation asks OpenShift for the certificate in tlsSecretName.
// Elsewhere it has no effect, and the operator or an administrator provides the
// Secret.
const servingCertAnnotation = "service.beta.openshift.io/serving-cert-secret-name"

func service(m *mlflowv1.MLflow, in Inputs) *corev1ac.ServiceApplyConfiguration {
	name := NameOf(m)
	return corev1ac.Service(name, in.Namespace).
		WithLabels(Labels(name)).
		WithAnnotations(map[string]string{servingCertAnnotation: TLSSecretName}).
		WithSpec(corev1ac.ServiceSpec().
			WithType(corev1.ServiceTypeClusterIP).
			WithSelector(selector(m)).
			WithPorts(corev1ac.ServicePort().
				WithName(portName).
				WithProtocol(corev1.ProtocolTCP).
				WithPort(port).
				WithTargetPort(intstr.FromString(portName))))
}

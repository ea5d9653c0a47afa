package resources

import (
	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
	"github.com/odh-platform/odh-platform-operator/pkg/resources"
)

// serviceMonitor lets the Prometheus operator scrape the server. It verifies certificates
// of OpenShift, and those that were issued here; others are whatever the
// administrator made.
func serviceMonitor(m *mlflowv1.MLflow, in Inputs) runtime.ApplyConfiguration {
	name := NameOf(m)
	scraped := map[string]string{LabelApp: name}
	if Splits(m) {
		scraped[labelRole] = roleTracking
	}
	tls := monitoringv1.SafeTLSConfig{InsecureSkipVerify: new(true)}
	if len(in.Authorities[name]) > 0 {
		tls = monitoringv1.SafeTLSConfig{
			CA: monitoringv1.SecretOrConfigMap{Secret: &corev1.SecretKeySelector{
				LocalObjectReference: corev1.LocalObjectReference{Name: Tracking(m).Secret}, Key: corev1.ServiceAccountRootCAKey,
			}},
			ServerName: new(Tracking(m).host(in)),
		}
	}
	if in.OpenShift {
		tls = monitoringv1.SafeTLSConfig{
			CA: monitoringv1.SecretOrConfigMap{ConfigMap: &corev1.ConfigMapKeySelector{
				LocalObjectReference: corev1.LocalObjectReference{Name: serviceCAName}, Key: serviceCAKey,
			}},
			ServerName: new(Tracking(m).host(in)),
		}
	}
	return resources.ServiceMonitor(
		metav1.ObjectMeta{Name: Suffixed(monitorBaseName, m), Namespace: in.Namespace, Labels: Labels(name)},
		scraped,
		monitoringv1.Endpoint{Path: "/metrics", Port: portName, Scheme: new(monitoringv1.Scheme("https"))}, tls)
}

package resources

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"

	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/resources"
)

// ViaGateway reports whether HTTPRoutes publish the server.
func (in Inputs) ViaGateway() bool { return in.HTTPRoutes && !in.Exposure.Ingress() }

// IngressURL is the base of the server behind an Ingress, which has a host of its own.
func IngressURL(domain string) string { return "https://" + BaseName + "." + domain }

// ingress publishes the server, all of its paths: those of OpenTelemetry lie outside of its prefix.
func ingress(m *mlflowv1.MLflow, in Inputs) runtime.ApplyConfiguration {
	name := NameOf(m)
	return resources.Published{
		Service: name, Port: intstr.FromString(portName), ServerName: Tracking(m).host(in), Host: BaseName + "." + in.Exposure.IngressDomain,
	}.Ingress(metav1.ObjectMeta{Name: name, Namespace: in.Namespace, Labels: Labels(name)}, in.Exposure.IngressClass, in.Exposure.IngressAnnotations)
}

// trust lets Gateways speak TLS to the servers whose certificates were issued here.
func trust(m *mlflowv1.MLflow, in Inputs) apply.Desired {
	var desired apply.Desired
	for _, s := range Servers(m) {
		if authority := in.Authorities[s.Name]; in.Exposure.Gateway() && in.BackendTLSPolicies && len(authority) > 0 {
			p := resources.Published{Service: s.Name, ServerName: s.host(in)}
			desired.Add(p.Trust(metav1.ObjectMeta{Name: s.Name + "-ca", Namespace: in.Namespace, Labels: Labels(NameOf(m))}, authority)...)
		}
	}
	return desired
}

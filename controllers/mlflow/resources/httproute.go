package resources

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"

	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
	"github.com/odh-platform/odh-platform-operator/pkg/resources"
)

// httpRoute publishes the server behind the platform gateway. The ingestion of
// OpenTelemetry traces is served without the static prefix, so the first rule
// strips it.
func httpRoute(m *mlflowv1.MLflow, in Inputs) runtime.ApplyConfiguration {
	name := NameOf(m)
	return resources.Published{
		Service:  name,
		Port:     intstr.FromInt32(port),
		Gateway:  in.Gateway(),
		Prefixes: []resources.Prefix{{Path: "/" + name + "/v1", Rewritten: "/v1"}, {Path: "/" + name}},
	}.HTTPRoute(metav1.ObjectMeta{Name: name, Namespace: in.Namespace, Labels: map[string]string{LabelApp: BaseName}})
}

// Gateway is the parent of the route.
func (in Inputs) Gateway() resources.Gateway {
	return resources.Gateway{Name: in.GatewayName, Namespace: in.GatewayNamespace}
}

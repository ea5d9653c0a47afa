package resources

import (
	"regexp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/version"

	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
	"github.com/odh-platform/odh-platform-operator/pkg/resources"
)

// prefixedOTLP is the first MLflow that ingests OpenTelemetry traces below the
// static prefix too, and preRelease what stands in its own pre-releases.
var (
	prefixedOTLP = version.MustParseGeneric("3.16.0")
	preRelease   = regexp.MustCompile(`^v?[0-9.]*[0-9][-._]?(a|b|c|rc|pre|dev)`)
)

// stripsOTLP reports whether this release of MLflow, or one that is not known,
// ingests traces without the static prefix alone.
func stripsOTLP(release string) bool {
	v, err := version.ParseGeneric(release)
	return err != nil || v.LessThan(prefixedOTLP) || v.EqualTo(prefixedOTLP) && preRelease.MatchString(release)
}

// httpRoute publishes the server behind the platform gateway. Where the ingestion
// of OpenTelemetry traces is served without the static prefix, a first rule strips it.
func httpRoute(m *mlflowv1.MLflow, in Inputs) runtime.ApplyConfiguration {
	name := NameOf(m)
	prefixes := []resources.Prefix{{Path: "/" + name}}
	if stripsOTLP(in.Version) {
		prefixes = []resources.Prefix{{Path: "/" + name + "/v1", Rewritten: "/v1"}, {Path: "/" + name}}
	}
	return resources.Published{
		Service:  name,
		Port:     intstr.FromInt32(port),
		Gateway:  in.Gateway(),
		Prefixes: prefixes,
	}.HTTPRoute(metav1.ObjectMeta{Name: name, Namespace: in.Namespace, Labels: map[string]string{LabelApp: BaseName}})
}

// Gateway is the parent of the route.
func (in Inputs) Gateway() resources.Gateway {
	return resources.Gateway{Name: in.GatewayName, Namespace: in.GatewayNamespace}
}

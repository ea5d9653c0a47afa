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

// artifactPaths are those of the tracking server, below its name, that the server for artifacts answers in its place: experiments of
// before have locations there, and so has the web interface. The last one is wider than needed, because no path may have a wildcard inside.
var artifactPaths = []string{
	"/api/2.0/mlflow-artifacts",
	"/ajax-api/2.0/mlflow-artifacts",
	"/get-artifact",
	"/model-versions/get-artifact",
	"/ajax-api/2.0/mlflow/artifacts/list",
	"/ajax-api/2.0/mlflow/upload-artifact",
	"/ajax-api/2.0/mlflow/get-artifact",
	"/ajax-api/2.0/mlflow/get-trace-artifact",
	"/ajax-api/3.0/mlflow/get-trace-artifact",
	"/ajax-api/2.0/mlflow/logged-models/",
}

// artifactsRoute publishes the server for artifacts below its name, and leads requests about them to it that are for the tracking server.
func artifactsRoute(m *mlflowv1.MLflow, in Inputs) runtime.ApplyConfiguration {
	s := Artifacts(m)
	var prefixes []resources.Prefix
	for _, path := range artifactPaths {
		prefixes = append(prefixes, resources.Prefix{Path: "/" + NameOf(m) + path, Rewritten: s.prefix + path})
	}
	return resources.Published{
		Service:  s.Name,
		Port:     intstr.FromInt32(port),
		Gateway:  in.Gateway(),
		Prefixes: append(prefixes, resources.Prefix{Path: s.prefix}),
	}.HTTPRoute(metav1.ObjectMeta{Name: s.Name, Namespace: in.Namespace, Labels: map[string]string{LabelApp: BaseName}})
}

// Gateway is the parent of the routes.
func (in Inputs) Gateway() resources.Gateway {
	return resources.Gateway{Name: in.GatewayName, Namespace: in.GatewayNamespace}
}

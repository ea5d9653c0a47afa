package resources

import (
	"encoding/base64"
	"regexp"

	consolev1 "github.com/openshift/api/console/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/version"

	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
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
	return route(in, name, prefixes)
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
	return route(in, s.Name, append(prefixes, resources.Prefix{Path: s.prefix}))
}

// route leads paths to the Service of its name.
func route(in Inputs, name string, prefixes []resources.Prefix) runtime.ApplyConfiguration {
	return resources.Published{Service: name, Port: intstr.FromInt32(port), Gateway: in.Gateway(), Prefixes: prefixes}.
		HTTPRoute(metav1.ObjectMeta{Name: name, Namespace: in.Namespace, Labels: map[string]string{LabelApp: BaseName}})
}

// Gateway is the parent of the routes.
func (in Inputs) Gateway() resources.Gateway {
	return resources.Gateway{Name: in.GatewayName, Namespace: in.GatewayNamespace}
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

// consoleLink puts the server into the application menu of the OpenShift console.
func consoleLink(m *mlflowv1.MLflow, in Inputs) runtime.ApplyConfiguration {
	return resources.Typed(capability.ConsoleLink, &consolev1.ConsoleLink{
		ObjectMeta: metav1.ObjectMeta{Name: NameOf(m), Labels: map[string]string{LabelApp: BaseName}},
		Spec: consolev1.ConsoleLinkSpec{
			Link:     consolev1.Link{Text: "MLflow", Href: publicURL(m, in)},
			Location: consolev1.ApplicationMenu,
			ApplicationMenu: &consolev1.ApplicationMenuSpec{
				Section:  in.SectionTitle,
				ImageURL: "data:image/svg+xml;base64," + base64.StdEncoding.EncodeToString([]byte(icon)),
			},
		},
	})
}

// icon is a flask with a liquid in it, drawn for the console menu.
const icon = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32" width="32" height="32">` +
	`<path fill="#0194e2" fill-rule="evenodd" d="M11 3h10v3h-1.5v6.6l7 12A3 3 0 0 1 23.9 29H8.1a3 3 0 0 1-2.6-4.4l7-12V6H11z` +
	`M15 6v7.3L11.6 19h8.8L17 13.3V6z"/></svg>`

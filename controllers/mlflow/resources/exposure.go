package resources

import (
	"cmp"
	"encoding/base64"
	"regexp"

	consolev1 "github.com/openshift/api/console/v1"
	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/version"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/resources"
)

// exposure leads to the server, as far as the cluster serves the kinds.
func exposure(m *mlflowv1.MLflow, in Inputs) apply.Desired {
	var desired apply.Desired
	for _, s := range Servers(m) {
		desired.Add(service(m, in, s))
		if s.Replicas > 1 {
			desired.Add(resources.DisruptionBudget(metav1.ObjectMeta{Name: s.Name, Namespace: in.Namespace, Labels: Labels(NameOf(m))}, s.Selector()))
		}
	}
	if in.ServiceMonitors {
		desired.Add(serviceMonitor(m, in))
	}
	switch {
	case in.Exposure.Ingress():
		desired.Add(ingress(m, in))
	case in.ViaGateway():
		desired.Add(httpRoute(m, in))
		if Splits(m) {
			desired.Add(artifactsRoute(m, in))
		}
		desired = append(desired, trust(m, in)...)
	}
	if in.ConsoleLinks && in.ExternalURL != "" {
		desired.Add(consoleLink(m, in))
	}
	return desired
}

// ViaGateway reports whether HTTPRoutes publish the server.
func (in Inputs) ViaGateway() bool {
	return in.HTTPRoutes && !in.Exposure.Ingress() && in.GatewayNamespace != ""
}

// LacksGateway reports whether only a Gateway is missing. None is assumed outside of OpenShift, where a tenant may make the usual one.
func (in Inputs) LacksGateway() bool {
	return in.HTTPRoutes && !in.Exposure.Ingress() && in.GatewayNamespace == ""
}

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

// heldVersion is that of the MLflow which migrated the database, or else the oldest that it may be.
func heldVersion(m *mlflowv1.MLflow, in Inputs) string {
	if record := m.Status.Migration; record != nil && record.Outcome == mlflowv1.MigrationRolloutPending {
		return record.Version
	}
	return cmp.Or(m.Status.Version, in.Version)
}

// httpRoute publishes the server behind the platform gateway. Where the ingestion
// of OpenTelemetry traces is served without the static prefix, a first rule strips it.
func httpRoute(m *mlflowv1.MLflow, in Inputs) runtime.ApplyConfiguration {
	name := NameOf(m)
	prefixes := []resources.Prefix{{Path: "/" + name}}
	if stripsOTLP(heldVersion(m, in)) {
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

// TrustSuffix follows the name of a server in the names of what lets Gateways trust it.
const TrustSuffix = "-ca"

// trust lets Gateways speak TLS to the servers whose certificates were issued here.
func trust(m *mlflowv1.MLflow, in Inputs) apply.Desired {
	var desired apply.Desired
	for _, s := range Servers(m) {
		if authority := in.Authorities[s.Name]; in.Exposure.Gateway() && in.BackendTLSPolicies && len(authority) > 0 {
			p := resources.Published{Service: s.Name, ServerName: s.host(in)}
			desired.Add(p.BackendTLS(metav1.ObjectMeta{Name: s.Name + TrustSuffix, Namespace: in.Namespace, Labels: Labels(NameOf(m))}, authority)...)
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

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
	"github.com/odh-platform/odh-platform-operator/pkg/servers"
)

// exposure returns the objects of Plan.Exposure whose APIs the cluster serves.
func exposure(m *mlflowv1.MLflow, in Inputs) apply.Desired {
	var desired apply.Desired
	for _, s := range Servers(m) {
		desired.Add(service(m, in, s))
		desired = append(desired, serverDescription(m, in, s).DisruptionBudget(&s.Replicas)...)
	}
	if in.Served.Has(capability.ServiceMonitor) {
		desired.Add(serviceMonitor(m, in))
	}
	switch {
	case in.Exposure.UsesIngress():
		desired.Add(ingress(m, in))
	case in.ViaGateway():
		desired.Add(httpRoute(m, in))
		if HasArtifactsServer(m) && !in.LacksArtifactsServer {
			desired.Add(artifactsRoute(m, in))
		}
		for _, s := range Servers(m) {
			if in.Exposure.UsesGateway() && in.Served.Has(capability.BackendTLSPolicy) {
				desired.Add(serverDescription(m, in, s).BackendTLS(in.Authorities[s.Name])...)
			}
		}
	}
	if in.Served.Has(capability.ConsoleLink) && in.ExternalURL != "" {
		desired.Add(consoleLink(m, in))
	}
	return desired
}

// ViaGateway reports whether HTTPRoutes publish the server.
func (in Inputs) ViaGateway() bool {
	return in.Served.Has(capability.HTTPRoute) && !in.Exposure.UsesIngress() && in.GatewayNamespace != ""
}

// LacksGateway reports whether HTTPRoutes would publish the server if a Gateway were configured. Outside of OpenShift there is no default
// Gateway, because a tenant could create it.
func (in Inputs) LacksGateway() bool {
	return in.Served.Has(capability.HTTPRoute) && !in.Exposure.UsesIngress() && in.GatewayNamespace == ""
}

// IngressURL returns the base of public URLs behind an Ingress, which has its own host.
func IngressURL(domain string) string { return "https://" + BaseName + "." + domain }

// ingress returns an Ingress for all paths of the host, because the OpenTelemetry paths are outside of the static prefix.
func ingress(m *mlflowv1.MLflow, in Inputs) runtime.ApplyConfiguration {
	name := NameOf(m)
	return resources.Published{
		Service: name, Port: intstr.FromString(portName), ServerName: Tracking(m).host(in), Host: BaseName + "." + in.Exposure.IngressDomain,
	}.Ingress(metav1.ObjectMeta{Name: name, Namespace: in.Namespace, Labels: Labels(name)}, in.Exposure.IngressClass, in.Exposure.IngressAnnotations)
}

// otlpPrefixVersion is the first MLflow that ingests OpenTelemetry traces under the static prefix; its pre-releases do not.
var (
	otlpPrefixVersion = version.MustParseGeneric("3.16.0")
	preRelease        = regexp.MustCompile(`^v?[0-9.]*[0-9][-._]?(a|b|c|rc|pre|dev)`)
)

// needsOTLPRewrite reports whether an MLflow release ingests traces only without the static prefix, or has an invalid version.
func needsOTLPRewrite(release string) bool {
	v, err := version.ParseGeneric(release)
	return err != nil || v.LessThan(otlpPrefixVersion) || v.EqualTo(otlpPrefixVersion) && preRelease.MatchString(release)
}

// databaseVersion returns the MLflow version that migrated the database, or the oldest supported one.
func databaseVersion(m *mlflowv1.MLflow, in Inputs) string {
	if record := m.Status.Migration; record != nil && record.Outcome == mlflowv1.MigrationRolloutPending {
		return record.Version
	}
	return cmp.Or(m.Status.Version, in.Version)
}

// httpRoute returns the HTTPRoute of the server. If needsOTLPRewrite, the first rule removes the static prefix from OpenTelemetry paths.
func httpRoute(m *mlflowv1.MLflow, in Inputs) runtime.ApplyConfiguration {
	name := NameOf(m)
	prefixes := []resources.Prefix{{Path: "/" + name}}
	if needsOTLPRewrite(databaseVersion(m, in)) {
		prefixes = []resources.Prefix{{Path: "/" + name + "/v1", Rewritten: "/v1"}, {Path: "/" + name}}
	}
	return route(in, name, prefixes)
}

// artifactPaths lists the paths under the prefix of the tracking server that the artifacts server serves: the web interface and earlier
// experiments use them. The last path matches more than necessary, because a path cannot contain a wildcard.
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

// artifactsRoute returns the HTTPRoute of the artifacts server, for its own prefix and for artifactPaths of the tracking server.
func artifactsRoute(m *mlflowv1.MLflow, in Inputs) runtime.ApplyConfiguration {
	s := Artifacts(m)
	var prefixes []resources.Prefix
	for _, path := range artifactPaths {
		prefixes = append(prefixes, resources.Prefix{Path: "/" + NameOf(m) + path, Rewritten: s.prefix + path})
	}
	return route(in, s.Name, append(prefixes, resources.Prefix{Path: s.prefix}))
}

// route returns an HTTPRoute to the Service of the same name.
func route(in Inputs, name string, prefixes []resources.Prefix) runtime.ApplyConfiguration {
	return resources.Published{Service: name, Port: intstr.FromInt32(port), Gateway: in.Gateway(), Prefixes: prefixes}.
		HTTPRoute(metav1.ObjectMeta{Name: name, Namespace: in.Namespace, Labels: map[string]string{LabelApp: BaseName}})
}

// Gateway returns the parent of the HTTPRoutes.
func (in Inputs) Gateway() resources.Gateway {
	return resources.Gateway{Name: in.GatewayName, Namespace: in.GatewayNamespace}
}

// consoleLink returns the entry of the server in the application menu of the OpenShift console.
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

// icon is the image of the ConsoleLink, a flask.
const icon = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32" width="32" height="32">` +
	`<path fill="#0194e2" fill-rule="evenodd" d="M11 3h10v3h-1.5v6.6l7 12A3 3 0 0 1 23.9 29H8.1a3 3 0 0 1-2.6-4.4l7-12V6H11z` +
	`M15 6v7.3L11.6 19h8.8L17 13.3V6z"/></svg>`

// labelRole distinguishes the Service of the tracking server from that of the artifacts server, which has no metrics.
const labelRole, roleTracking = "app.kubernetes.io/component", "tracking-server"

// serverDescription returns the Description of a server.
func serverDescription(m *mlflowv1.MLflow, in Inputs, s Server) *servers.Description {
	return &servers.Description{
		Name: s.Name, Namespace: in.Namespace, Labels: func(string) map[string]string { return Labels(NameOf(m)) }, Selector: s.Selector(),
		Port: port, PortName: portName, TLS: true,
	}
}

func service(m *mlflowv1.MLflow, in Inputs, s Server) *corev1ac.ServiceApplyConfiguration {
	service := serverDescription(m, in, s).Service(s.Secret, "")
	service.Spec.Ports[0].WithTargetPort(intstr.FromString(portName))
	if s.isTracking && HasArtifactsServer(m) {
		service.WithLabels(map[string]string{labelRole: roleTracking})
	}
	return service
}

// serviceMonitor returns the ServiceMonitor of the tracking server. Prometheus verifies certificates of OpenShift and of this operator, but not
// those of an administrator, whose CA is unknown.
func serviceMonitor(m *mlflowv1.MLflow, in Inputs) runtime.ApplyConfiguration {
	name := NameOf(m)
	selector := map[string]string{LabelApp: name}
	if HasArtifactsServer(m) {
		selector[labelRole] = roleTracking
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
		selector,
		monitoringv1.Endpoint{Path: "/metrics", Port: portName, Scheme: new(monitoringv1.Scheme("https"))}, tls)
}

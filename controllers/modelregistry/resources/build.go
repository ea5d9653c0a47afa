package resources

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	jsonpatch "github.com/evanphx/json-patch/v5"
	routev1 "github.com/openshift/api/route/v1"
	userv1 "github.com/openshift/api/user/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/odh-platform/odh-platform-operator/apis/modelregistry/v1beta1"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/reference"
	"github.com/odh-platform/odh-platform-operator/pkg/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/servers"
)

const (
	plainPortName  = "http-api"
	securePortName = "https-api"
)

// Inputs holds the inputs of Build in addition to the registry.
type Inputs struct {
	servers.Publishing
	// RequestCertificate is true if the spec names no certificate. The Service then requests one from the platform.
	RequestCertificate bool
	// ProxyPending is true if the spec has a proxy, but the ready pods do not. The Service then bypasses the proxy.
	ProxyPending bool
	// HasCustomDomain is true if the spec names the domain. The user may then provide the host.
	HasCustomDomain bool
	// ServerHash and DatabaseHash are the hashes of the Secrets and ConfigMaps that the pods read only when they start.
	ServerHash, DatabaseHash reference.RolloutHash
}

// serverDescription returns the server as exposed by its Service: through the proxy, unless the proxy is disabled or pending.
func serverDescription(m *v1beta1.ModelRegistry, in Inputs) *servers.Description {
	d := &servers.Description{
		Name: ServiceName(m), Namespace: m.Namespace, Labels: func(object string) map[string]string { return Labels(m, object) }, Selector: ServerSelector(m),
		Port: restPort(m), PortName: plainPortName, HTTPRoute: HTTPRouteName(m), Grant: GrantName(m), Path: gatewayPath(m),
	}
	if m.Spec.KubeRBACProxy != nil && !in.ProxyPending {
		d.Port, d.PortName, d.TLS = proxyPort(m), securePortName, true
	}
	return d
}

// Build returns the objects of a registry, without its generated database: RBAC, NetworkPolicies, the server and its exposure. The spec
// must have all defaults, and spec.postgres must be a connection, see BuildDatabase. An error names the invalid field.
func Build(m *v1beta1.ModelRegistry, in Inputs) (apply.Desired, error) {
	server, err := deployment(m, in)
	if err != nil {
		return nil, err
	}
	d := serverDescription(m, in)
	var desired apply.Desired
	// Newer proxies check get for every method, older ones check create for POST. Create by name grants nothing else, because the API server
	// does not authorize creations by name.
	userRole := d.ReaderRole(d.MetaForDashboard(roleName(m), "Registry User "+m.Name, "Can access Model Registry "+m.Name), "create")
	desired.Add(d.ServiceAccount(), userRole, d.EgressPolicy())
	if in.IsOpenShift() {
		if in.Served.Has(capability.UserGroup) {
			desired = append(desired, apply.Object{Config: Group(m, nil), Ownership: apply.Unowned})
		}
		desired.Add(servers.GroupRoleBinding(d.Meta(UsersName(m)), roleName(m), UsersName(m))) // the identity provider may define the group
	}
	if m.Spec.KubeRBACProxy != nil {
		desired = append(desired, d.ProxyObjects()...)
		desired.Add(d.IngressPolicy(ingressPorts(m, in)...))
		if hasRoute(m, in) {
			desired.Add(d.RouterPolicy(proxyPort(m)))
		}
	}
	desired.Add(service(m, in), server)
	return slices.Concat(desired, d.DisruptionBudget(m.Spec.Replicas), ExposureObjects(m, in)), nil
}

// ingressPorts returns the ports to which all clients may connect: the port of the proxy, unless the policy of a Route opens it, and the
// port of the server while pods without a proxy are running.
func ingressPorts(m *v1beta1.ModelRegistry, in Inputs) (ports []int32) {
	if !hasRoute(m, in) {
		ports = append(ports, proxyPort(m))
	}
	if in.ProxyPending {
		ports = append(ports, restPort(m))
	}
	return ports
}

// Group returns the Group. If users is nil, the field users is not set, because administrators add the users.
func Group(m *v1beta1.ModelRegistry, users userv1.OptionalNames) runtime.ApplyConfiguration {
	return resources.Typed(capability.UserGroup, &userv1.Group{
		ObjectMeta: metav1.ObjectMeta{Name: UsersName(m), Labels: ClusterLabels(m, UsersName(m))}, Users: users,
	})
}

// service returns the Service of the proxy, or of the server without a proxy, with the description annotations of the registry.
func service(m *v1beta1.ModelRegistry, in Inputs) runtime.ApplyConfiguration {
	certificate := ""
	if m.Spec.KubeRBACProxy != nil && in.RequestCertificate {
		certificate = ServingSecretName(m)
	}
	service := serverDescription(m, in).Service(certificate, externalAddress(m, in))
	for _, key := range []string{servers.AnnotationDisplayName, servers.AnnotationDescription} {
		if text, found := m.Annotations[key]; found {
			service.WithAnnotations(map[string]string{key: text})
		}
	}
	return service
}

// ExposureObjects returns the objects that expose the server outside of the cluster. Routes are kept in addition to an HTTPRoute, because
// clients use the hosts of the Routes.
func ExposureObjects(m *v1beta1.ModelRegistry, in Inputs) apply.Desired {
	var desired apply.Desired
	if in.IsOpenShift() && m.Spec.Rest.ServiceRoute == v1beta1.RouteEnabled {
		desired.Add(plainRoute(m))
	}
	if hasRoute(m, in) {
		desired.Add(resources.Published{
			Service: ServiceName(m), Port: intstr.FromString(securePortName), Host: routeHost(m),
			TLS: &routev1.TLSConfig{Termination: routev1.TLSTerminationReencrypt}, Wildcard: routev1.WildcardPolicyNone,
		}.Route(objectMeta(m, SecureRouteName(m))))
	}
	if in.Exposure.UsesIngress() && exposesProxy(m) && routeHost(m) != "" {
		desired.Add(serverDescription(m, in).Ingress(routeHost(m), &in.Publishing))
	}
	return append(desired, serverDescription(m, in).GatewayObjects(&in.Publishing)...)
}

// plainRoute returns the Route of spec.rest.serviceRoute. With a proxy, it targets the proxy and redirects HTTP to HTTPS.
func plainRoute(m *v1beta1.ModelRegistry) runtime.ApplyConfiguration {
	p := resources.Published{Service: ServiceName(m), Port: intstr.FromString(plainPortName)}
	if m.Spec.KubeRBACProxy != nil {
		p.Port = intstr.FromString(securePortName)
		p.TLS = &routev1.TLSConfig{
			Termination: routev1.TLSTerminationReencrypt, InsecureEdgeTerminationPolicy: routev1.InsecureEdgeTerminationPolicyRedirect,
		}
	}
	return p.Route(objectMeta(m, PlainRouteName(m)))
}

// exposesProxy reports whether the spec exposes the proxy.
func exposesProxy(m *v1beta1.ModelRegistry) bool {
	proxy := m.Spec.KubeRBACProxy
	return proxy != nil && proxy.ServiceRoute != v1beta1.RouteDisabled
}

// hasRoute reports whether the proxy has a Route.
func hasRoute(m *v1beta1.ModelRegistry, in Inputs) bool { return in.IsOpenShift() && exposesProxy(m) }

// externalAddress returns the address of the proxy outside of the cluster, "" if there is none or it is unknown.
func externalAddress(m *v1beta1.ModelRegistry, in Inputs) string {
	if m.Spec.KubeRBACProxy != nil && in.HasGatewayAddress() {
		return gatewayHost(m, in)
	}
	if host := externalHost(m, in); host != "" {
		return fmt.Sprintf("%s:%d", host, orDefault(m.Spec.KubeRBACProxy.RoutePort, v1beta1.DefaultRoutePort))
	}
	return ""
}

// Hosts returns the hosts of the server, external ones first, without the host of the Route of spec.rest.serviceRoute, and without hosts
// that Gateway or router rejected.
func Hosts(m *v1beta1.ModelRegistry, in Inputs) []string {
	var all []string
	if in.HasGatewayAddress() {
		all = append(all, gatewayHost(m, in))
	}
	if host := externalHost(m, in); host != "" {
		all = append(all, host)
	}
	inside := ServiceName(m) + "." + m.Namespace
	return append(all, inside+".svc.cluster.local", inside, ServiceName(m))
}

// externalHost returns the host of Route or Ingress, or "" if the proxy is not exposed or the router rejected the host. On
// plain Kubernetes, users may provide a host in the domain of the spec.
func externalHost(m *v1beta1.ModelRegistry, in Inputs) string {
	userProvided := m.Spec.KubeRBACProxy != nil && in.HasCustomDomain && !in.IsOpenShift()
	if (userProvided || hasRoute(m, in) || exposesProxy(m) && in.Exposure.UsesIngress()) && !in.RouteReport.RejectedByRouter() {
		return routeHost(m)
	}
	return ""
}

func gatewayHost(m *v1beta1.ModelRegistry, in Inputs) string {
	return in.Gateway.Domain + "/" + gatewayPath(m)
}

// routeHost returns the host of the Route or Ingress of the proxy, or "" without a domain. The router then assigns the host of a Route.
func routeHost(m *v1beta1.ModelRegistry) string {
	if m.Spec.KubeRBACProxy.Domain == "" {
		return ""
	}
	return routeHostLabel(m) + "." + m.Spec.KubeRBACProxy.Domain
}

func orDefault(value *int32, fallback int32) int32 { return cmp.Or(ptr.Deref(value, 0), fallback) }

func restPort(m *v1beta1.ModelRegistry) int32 {
	return orDefault(m.Spec.Rest.Port, v1beta1.DefaultRESTPort)
}

func proxyPort(m *v1beta1.ModelRegistry) int32 {
	return orDefault(m.Spec.KubeRBACProxy.Port, v1beta1.DefaultProxyPort)
}

// SpecDefaults returns the JSON merge patch (RFC 7396) from the stored spec to the one with defaults, "{}" if they are equal.
func SpecDefaults(stored, effective *v1beta1.ModelRegistrySpec) string {
	storedJSON, _ := json.Marshal(stored) // types of the API: encoding and comparing cannot fail
	effectiveJSON, _ := json.Marshal(effective)
	patch, _ := jsonpatch.CreateMergePatch(storedJSON, effectiveJSON)
	return string(patch)
}

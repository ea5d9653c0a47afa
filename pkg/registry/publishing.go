package registry

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	rbacv1ac "k8s.io/client-go/applyconfigurations/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/pkg/aihub"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/config"
	"github.com/odh-platform/odh-platform-operator/pkg/reconciler"
	"github.com/odh-platform/odh-platform-operator/pkg/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/resources/rbacproxy"
	"github.com/odh-platform/odh-platform-operator/pkg/routestatus"
	"github.com/odh-platform/odh-platform-operator/pkg/tlsprofile"
)

// Domain is the part of *clusterdomain.Watcher with the domain of OpenShift's routers.
type Domain interface {
	Domain() string
	Settled() bool
}

// Platform holds the platform settings of a server. It is a snapshot from the start of a reconcile, so that all objects use the same
// settings.
type Platform struct {
	// ModelRegistry holds the settings of the process, overridden by those of the AIHub.
	config.ModelRegistry
	// Served is the set of optional APIs of the cluster.
	Served capability.Set
	// RouterDomain is the domain of OpenShift's routers, or "".
	RouterDomain string
	domainKnown  bool
}

// DetectPlatform returns a snapshot of the platform. The hub may be nil.
func DetectPlatform(settings config.ModelRegistry, hub *aihub.Watcher, served capability.Set, domain Domain) Platform {
	p := Platform{ModelRegistry: hub.ApplyTo(settings), Served: served}
	p.Gateway = p.Gateway.ForPlatform(served.Has(capability.Route))
	if domain != nil {
		p.RouterDomain, p.domainKnown = domain.Domain(), domain.Settled()
	}
	return p
}

// WaitForDomain waits until the domain of the cluster, or its absence, is known: a Route must not lose its host because the manager has
// restarted.
func (p *Platform) WaitForDomain() error {
	if p.DefaultDomain == "" && p.Served.Has(capability.OpenShiftIngress) && !p.domainKnown {
		return &reconciler.Wait{For: "the domain of the cluster", Retry: time.Second}
	}
	return nil
}

// Publishing returns how the platform exposes a server. On OpenShift Exposure is empty, because Routes are used.
func (p *Platform) Publishing() Publishing {
	out := Publishing{
		OpenShift: p.Served.Has(capability.Route), HTTPRoutes: p.Served.Has(capability.HTTPRoute),
		ReferenceGrants: p.Served.Has(capability.ReferenceGrant), BackendTLSPolicies: p.Served.Has(capability.BackendTLSPolicy),
		Gateway: p.Gateway, TLS: p.TLS,
	}
	if !out.OpenShift {
		out.Exposure = p.Exposure
	}
	return out
}

// Publishing holds the APIs and settings for the exposure of a server.
type Publishing struct {
	// OpenShift: the cluster serves Routes, signs serving certificates and assigns pods a group.
	OpenShift bool
	// HTTPRoutes, ReferenceGrants and BackendTLSPolicies are set if the cluster serves these APIs.
	HTTPRoutes, ReferenceGrants, BackendTLSPolicies bool
	// Exposure selects Ingress or Gateway; empty on OpenShift.
	Exposure config.Exposure
	// Authority is the CA of the serving certificate, if the operator issued it.
	Authority []byte
	// Gateway is the Gateway for HTTPRoutes, which are disabled without a domain.
	Gateway config.RegistryGateway
	// TLS is the TLS profile of the proxy.
	TLS tlsprofile.Profile
	// RouteReport is the status of the routes of the server, as reported by Gateway and routers.
	RouteReport routestatus.Report
}

// ReadRouteReport reads the status of routes in objects.
func (p *Publishing) ReadRouteReport(ctx context.Context, whole client.Reader, objects apply.Desired, now time.Time) (err error) {
	p.RouteReport, err = routestatus.Read(ctx, whole, resources.Gateway{Name: p.Gateway.Name, Namespace: p.Gateway.Namespace}, objects, now)
	return err
}

// HasGatewayAddress reports whether clients reach the server at the gateway, which has not rejected its HTTPRoute.
func (p *Publishing) HasGatewayAddress() bool {
	return p.GatewayMode() && !p.RouteReport.RejectedBy(false)
}

// GatewayMode reports whether the server is exposed by the gateway of the platform.
func (p *Publishing) GatewayMode() bool {
	return (p.OpenShift || p.Exposure.Gateway()) && p.HTTPRoutes && p.Gateway.Domain != "" && !p.Gateway.NamespacesUnset
}

// Prunable returns the served kinds of a server whose objects are pruned.
func (p *Publishing) Prunable(more ...schema.GroupVersionKind) []schema.GroupVersionKind {
	kinds := append(more, Deployment, Service, ConfigMap, NetworkPolicy, DisruptionBudget, Ingress)
	if p.OpenShift {
		kinds = append(kinds, capability.Route)
	}
	if p.ReferenceGrants {
		kinds = append(kinds, capability.ReferenceGrant)
	}
	if p.BackendTLSPolicies {
		kinds = append(kinds, capability.BackendTLSPolicy)
	}
	return kinds
}

// Server is the Service of a server that is exposed.
type Server struct {
	// Name is the name of the Service.
	Name, Namespace string
	// Port is the port of the Service, PortName its name.
	Port     int32
	PortName string
	// Proxied: the port is that of a proxy with TLS.
	Proxied bool
}

func (s Server) published() resources.Published {
	p := resources.Published{Service: s.Name, Port: intstr.FromString(s.PortName)}
	if s.Proxied {
		p.ServerName = s.Name + "." + s.Namespace + ".svc"
	}
	return p
}

// Service returns the Service of the server. The API server defaults its target port to the port.
func (s Server) Service(meta metav1.ObjectMeta, selector map[string]string) *corev1ac.ServiceApplyConfiguration {
	protocol := "http"
	if s.Proxied {
		protocol = resources.ProtocolHTTPS
	}
	return corev1ac.Service(meta.Name, meta.Namespace).WithLabels(meta.Labels).WithAnnotations(meta.Annotations).
		WithSpec(corev1ac.ServiceSpec().
			WithType(corev1.ServiceTypeClusterIP).
			WithSelector(selector).
			WithPorts(corev1ac.ServicePort().WithName(s.PortName).WithPort(s.Port).WithAppProtocol(protocol).WithProtocol(corev1.ProtocolTCP)))
}

// Ingress returns the Ingress of the server for a host.
func (s Server) Ingress(meta metav1.ObjectMeta, host string, in *Publishing) runtime.ApplyConfiguration {
	p := s.published()
	p.Host = host
	return p.Ingress(meta, in.Exposure.IngressClass, in.Exposure.IngressAnnotations)
}

// GatewayMetadata holds the metadata of the ReferenceGrant, of the ConfigMap and BackendTLSPolicy with the CA of the proxy, and of the
// HTTPRoute.
type GatewayMetadata struct{ Grant, Authority, Route metav1.ObjectMeta }

// GatewayObjects returns the objects that expose the server below a path of the gateway, without leading and trailing slashes. The
// HTTPRoute is in another namespace and has no owner. With a certificate of the operator, a BackendTLSPolicy makes the gateway verify the
// proxy.
func (s Server) GatewayObjects(path string, names GatewayMetadata, in *Publishing) apply.Desired {
	var desired apply.Desired
	p := s.published()
	p.Namespace, p.Port = s.Namespace, intstr.FromInt32(s.Port)
	p.Gateway = resources.Gateway{Name: in.Gateway.Name, Namespace: in.Gateway.Namespace}
	p.Prefixes = []resources.Prefix{{Path: "/" + path + "/", Rewritten: "/"}}
	if s.Proxied && in.BackendTLSPolicies && len(in.Authority) > 0 {
		desired.Add(p.BackendTLS(names.Authority, in.Authority)...)
	}
	if in.ReferenceGrants {
		desired.Add(p.ReferenceGrant(names.Grant, in.Gateway.RouteNamespace))
	}
	names.Route.Namespace = in.Gateway.RouteNamespace
	return append(desired, apply.Object{Config: p.HTTPRoute(names.Route), Ownership: apply.Unowned})
}

// ServerDeployment returns the Deployment of a server. The annotation selects the restricted SCC of OpenShift, even if the ServiceAccount
// may use others.
func ServerDeployment(meta metav1.ObjectMeta, replicas *int32, selector map[string]string,
	pod *corev1ac.PodSpecApplyConfiguration,
) *appsv1ac.DeploymentApplyConfiguration {
	return appsv1ac.Deployment(meta.Name, meta.Namespace).WithLabels(meta.Labels).WithSpec(appsv1ac.DeploymentSpec().
		WithReplicas(resources.ReplicasOrOne(replicas)).
		WithRevisionHistoryLimit(0).
		WithSelector(metav1ac.LabelSelector().WithMatchLabels(selector)).
		WithTemplate(corev1ac.PodTemplateSpec().
			WithLabels(selector).
			WithAnnotations(map[string]string{"openshift.io/required-scc": "restricted-v2"}).
			WithSpec(pod)))
}

// ReaderRole returns the Role with the permissions that the proxy of a Service checks, with additional verbs for that Service.
func ReaderRole(meta metav1.ObjectMeta, service string, more ...string) *rbacv1ac.RoleApplyConfiguration {
	get := func(resource string) *rbacv1ac.PolicyRuleApplyConfiguration {
		return rbacv1ac.PolicyRule().WithAPIGroups("").WithResources(resource).WithResourceNames(service).WithVerbs("get")
	}
	return rbacv1ac.Role(meta.Name, meta.Namespace).WithLabels(meta.Labels).WithAnnotations(meta.Annotations).
		WithRules(get("services").WithVerbs(more...), get("endpoints"))
}

// GroupRoleBinding binds groups to a Role.
func GroupRoleBinding(meta metav1.ObjectMeta, role string, groups ...string) *rbacv1ac.RoleBindingApplyConfiguration {
	binding := rbacv1ac.RoleBinding(meta.Name, meta.Namespace).WithLabels(meta.Labels).WithAnnotations(meta.Annotations).
		WithRoleRef(rbacv1ac.RoleRef().WithAPIGroup(rbacv1.GroupName).WithKind("Role").WithName(role))
	for _, group := range groups {
		binding.WithSubjects(rbacv1ac.Subject().WithAPIGroup(rbacv1.GroupName).WithKind(rbacv1.GroupKind).WithName(group))
	}
	return binding
}

// AuthDelegatorBinding allows the proxy of a ServiceAccount to create token and access reviews.
func AuthDelegatorBinding(meta metav1.ObjectMeta, account string) *rbacv1ac.ClusterRoleBindingApplyConfiguration {
	return rbacv1ac.ClusterRoleBinding(meta.Name).WithLabels(meta.Labels).
		WithRoleRef(rbacv1ac.RoleRef().WithAPIGroup(rbacv1.GroupName).WithKind("ClusterRole").WithName(rbacproxy.DelegatorRole)).
		WithSubjects(rbacv1ac.Subject().WithKind(rbacv1.ServiceAccountKind).WithNamespace(meta.Namespace).WithName(account))
}

// ProxyConfig returns the ConfigMap of the proxy, which admits callers that may get the Service.
func ProxyConfig(meta metav1.ObjectMeta, service string) (*corev1ac.ConfigMapApplyConfiguration, error) {
	data, err := rbacproxy.Config(rbacproxy.Attributes{
		APIVersion: "v1", Resource: "services", Verb: "get", Namespace: meta.Namespace, Name: service,
	})
	if err != nil {
		return nil, err
	}
	return corev1ac.ConfigMap(meta.Name, meta.Namespace).WithLabels(meta.Labels).WithData(data), nil
}

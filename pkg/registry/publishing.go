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

// Domain is what *clusterdomain.Watcher knows of the domain of the cluster's routers.
type Domain interface {
	Domain() string
	Settled() bool
}

// Platform is what decides, beside a spec, how a server runs and is published. It is taken once at the start of a reconcile, so that
// all objects follow the same decisions.
type Platform struct {
	// ModelRegistry are the settings of the process with the decisions of the AIHub laid over them.
	config.ModelRegistry
	// Served are the optional kinds of the cluster.
	Served capability.Set
	// Routers is the domain of the cluster's routers, "" where there is none.
	RouterDomain string
	domainKnown  bool
}

// DetectPlatform takes the platform as it is now. The hub may be nil, which is one without decisions.
func DetectPlatform(settings config.ModelRegistry, hub *aihub.Watcher, served capability.Set, domain Domain) Platform {
	p := Platform{ModelRegistry: hub.Over(settings), Served: served}
	p.Gateway = p.Gateway.On(served.Has(capability.Route))
	if domain != nil {
		p.RouterDomain, p.domainKnown = domain.Domain(), domain.Settled()
	}
	return p
}

// AwaitDomain waits until the cluster has said which domain it has, be it none: a Route that was published must not lose its host because
// the manager has just started.
func (p *Platform) WaitForDomain() error {
	if p.DefaultDomain == "" && p.Served.Has(capability.OpenShiftIngress) && !p.domainKnown {
		return &reconciler.Wait{For: "the domain of the cluster", Retry: time.Second}
	}
	return nil
}

// Publishing says how the platform publishes a server. Settings of other ways than Routes do not count on OpenShift, but for the gateway's.
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

// Publishing is what the cluster serves, and the settings say, of ways to a server.
type Publishing struct {
	// OpenShift: Routes are served, and the platform signs serving certificates and gives pods their groups.
	OpenShift bool
	// HTTPRoutes, ReferenceGrants and BackendTLSPolicies say which kinds of the Gateway API are served.
	HTTPRoutes, ReferenceGrants, BackendTLSPolicies bool
	// Exposure says what publishes the server; empty on OpenShift.
	Exposure config.Exposure
	// Authority is the CA of the serving certificate, if that was issued here.
	Authority []byte
	// Gateway says how HTTPRoutes are published; a domain switches that on.
	Gateway config.RegistryGateway
	// TLS is the profile of the proxy before the server.
	TLS tlsprofile.Profile
	// Said is what Gateway and routers say of what publishes the server.
	RouteReport routestatus.Report
}

// Hear reads what Gateway and routers say of objects that publish the server.
func (p *Publishing) ReadRouteReport(ctx context.Context, whole client.Reader, objects apply.Desired, now time.Time) (err error) {
	p.RouteReport, err = routestatus.Read(ctx, whole, resources.Gateway{Name: p.Gateway.Name, Namespace: p.Gateway.Namespace}, objects, now)
	return err
}

// AtGateway reports whether the server has an address at the gateway: one that refuses to lead there has none.
func (p *Publishing) HasGatewayAddress() bool {
	return p.GatewayMode() && !p.RouteReport.RefusedBy(false)
}

// GatewayMode reports whether the server is published behind the gateway of the platform.
func (p *Publishing) GatewayMode() bool {
	return (p.OpenShift || p.Exposure.Gateway()) && p.HTTPRoutes && p.Gateway.Domain != "" && !p.Gateway.Unnamed
}

// Prunable are the kinds that an owner of a server has and of which an object may become unwanted, as far as they are served.
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

// Server is a server that is published.
type Server struct {
	// Name is that of the Service, in Namespace.
	Name, Namespace string
	// Port of the Service, and the name of that port.
	Port     int32
	PortName string
	// Proxied: a proxy that serves TLS is in front of it.
	Proxied bool
}

func (s Server) published() resources.Published {
	p := resources.Published{Service: s.Name, Port: intstr.FromString(s.PortName)}
	if s.Proxied {
		p.ServerName = s.Name + "." + s.Namespace + ".svc"
	}
	return p
}

// Service leads to the server. Its target port is the same number, which the API server fills in.
func (s Server) Service(meta metav1.ObjectMeta, selector map[string]string) *corev1ac.ServiceApplyConfiguration {
	protocol := "http"
	if s.Proxied {
		protocol = "https"
	}
	return corev1ac.Service(meta.Name, meta.Namespace).WithLabels(meta.Labels).WithAnnotations(meta.Annotations).
		WithSpec(corev1ac.ServiceSpec().
			WithType(corev1.ServiceTypeClusterIP).
			WithSelector(selector).
			WithPorts(corev1ac.ServicePort().WithName(s.PortName).WithPort(s.Port).WithAppProtocol(protocol).WithProtocol(corev1.ProtocolTCP)))
}

// Ingress publishes the server at a host.
func (s Server) Ingress(meta metav1.ObjectMeta, host string, in *Publishing) runtime.ApplyConfiguration {
	p := s.published()
	p.Host = host
	return p.Ingress(meta, in.Exposure.IngressClass, in.Exposure.IngressAnnotations)
}

// GatewayNames is the metadata of what publishes a server behind the gateway: of ReferenceGrant, trust in the CA of its proxy, and
// HTTPRoute.
type GatewayMetadata struct{ Grant, Authority, Route metav1.ObjectMeta }

// BehindGateway publishes the server below a path of the gateway, without slashes at its ends. The HTTPRoute lives in another namespace,
// where nothing can own it. Gateways speak TLS to a proxy whose certificate was issued here.
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

// ServerDeployment runs the pods of a server. OpenShift gives them the most restricted security context, whatever else their account may
// use.
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

// ReaderRole is the right that the proxy of a Service asks for, and more verbs for that Service.
func ReaderRole(meta metav1.ObjectMeta, service string, more ...string) *rbacv1ac.RoleApplyConfiguration {
	get := func(resource string) *rbacv1ac.PolicyRuleApplyConfiguration {
		return rbacv1ac.PolicyRule().WithAPIGroups("").WithResources(resource).WithResourceNames(service).WithVerbs("get")
	}
	return rbacv1ac.Role(meta.Name, meta.Namespace).WithLabels(meta.Labels).WithAnnotations(meta.Annotations).
		WithRules(get("services").WithVerbs(more...), get("endpoints"))
}

// BindGroups gives groups a Role.
func GroupRoleBinding(meta metav1.ObjectMeta, role string, groups ...string) *rbacv1ac.RoleBindingApplyConfiguration {
	binding := rbacv1ac.RoleBinding(meta.Name, meta.Namespace).WithLabels(meta.Labels).WithAnnotations(meta.Annotations).
		WithRoleRef(rbacv1ac.RoleRef().WithAPIGroup(rbacv1.GroupName).WithKind("Role").WithName(role))
	for _, group := range groups {
		binding.WithSubjects(rbacv1ac.Subject().WithAPIGroup(rbacv1.GroupName).WithKind(rbacv1.GroupKind).WithName(group))
	}
	return binding
}

// Delegation lets the proxy of an account ask the API server who calls and what they may do.
func AuthDelegatorBinding(meta metav1.ObjectMeta, account string) *rbacv1ac.ClusterRoleBindingApplyConfiguration {
	return rbacv1ac.ClusterRoleBinding(meta.Name).WithLabels(meta.Labels).
		WithRoleRef(rbacv1ac.RoleRef().WithAPIGroup(rbacv1.GroupName).WithKind("ClusterRole").WithName(rbacproxy.DelegatorRole)).
		WithSubjects(rbacv1ac.Subject().WithKind(rbacv1.ServiceAccountKind).WithNamespace(meta.Namespace).WithName(account))
}

// ProxyConfig says which callers the proxy lets in: those that may get the Service.
func ProxyConfig(meta metav1.ObjectMeta, service string) (*corev1ac.ConfigMapApplyConfiguration, error) {
	data, err := rbacproxy.Config(rbacproxy.Attributes{
		APIVersion: "v1", Resource: "services", Verb: "get", Namespace: meta.Namespace, Name: service,
	})
	if err != nil {
		return nil, err
	}
	return corev1ac.ConfigMap(meta.Name, meta.Namespace).WithLabels(meta.Labels).WithData(data), nil
}

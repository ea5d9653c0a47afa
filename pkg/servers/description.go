package servers

import (
	"maps"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	networkingv1ac "k8s.io/client-go/applyconfigurations/networking/v1"
	rbacv1ac "k8s.io/client-go/applyconfigurations/rbac/v1"

	"github.com/odh-platform/odh-platform-operator/apis/server"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/resources/rbacproxy"
)

const (
	// LabelNamespace is the namespace of a server, as a label of its objects outside of that namespace.
	LabelNamespace = "modelregistry.opendatahub.io/namespace"
	// AnnotationServingCert on a Service requests a certificate of OpenShift in the named Secret.
	AnnotationServingCert = "service.beta.openshift.io/serving-cert-secret-name"
	// AnnotationAddress on a Service is the address of the server outside of the cluster, for clients.
	AnnotationAddress = "routing.opendatahub.io/external-address-rest"
	// AnnotationDisplayName is the name that the dashboard shows.
	AnnotationDisplayName = "openshift.io/display-name"
	// AnnotationDescription is the description that the dashboard shows.
	AnnotationDescription = "openshift.io/description"
)

// Description describes a published server of one custom resource. Its methods return the objects of the server.
type Description struct {
	// Name is the name of the Deployment, the Service and the ServiceAccount.
	Name, Namespace string
	// Labels returns a new map with the labels of an object, by its name.
	Labels func(object string) map[string]string
	// Selector selects the pods.
	Selector map[string]string
	// Port is the port of the Service, PortName its name.
	Port     int32
	PortName string
	// TLS reports whether the port serves TLS, usually through a proxy.
	TLS bool
	// HTTPRoute and Grant are the names of the HTTPRoute and the ReferenceGrant. Path is the path of the server below the domain of the
	// gateway, without leading and trailing slashes.
	HTTPRoute, Grant, Path string
}

// Meta returns the metadata of an object in the namespace of the server.
func (d *Description) Meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Namespace: d.Namespace, Labels: d.Labels(name)}
}

// MetaForDashboard returns the metadata of an object that the dashboard shows.
func (d *Description) MetaForDashboard(object, name, description string) metav1.ObjectMeta {
	meta := d.Meta(object)
	meta.Annotations = map[string]string{AnnotationDisplayName: name, AnnotationDescription: description}
	return meta
}

// metaOutside returns the metadata of an object outside of the namespace of the server.
func (d *Description) metaOutside(name string) metav1.ObjectMeta {
	meta := d.Meta(name)
	meta.Labels[LabelNamespace] = d.Namespace
	return meta
}

// ServiceAccount returns the ServiceAccount of the pods.
func (d *Description) ServiceAccount() *corev1ac.ServiceAccountApplyConfiguration {
	return corev1ac.ServiceAccount(d.Name, d.Namespace).WithLabels(d.Labels(d.Name))
}

// Service returns the Service, with annotations for the Secret of a requested certificate and the address of the server, unless these are
// empty.
func (d *Description) Service(certificate, address string) *corev1ac.ServiceApplyConfiguration {
	annotations := map[string]string{AnnotationServingCert: certificate, AnnotationAddress: address}
	maps.DeleteFunc(annotations, func(_, value string) bool { return value == "" })
	protocol := "http"
	if d.TLS {
		protocol = resources.ProtocolHTTPS
	}
	return corev1ac.Service(d.Name, d.Namespace).WithLabels(d.Labels(d.Name)).WithAnnotations(annotations).
		WithSpec(corev1ac.ServiceSpec().
			WithType(corev1.ServiceTypeClusterIP).
			WithSelector(d.Selector).
			WithPorts(corev1ac.ServicePort().WithName(d.PortName).WithPort(d.Port).WithTargetPort(intstr.FromInt32(d.Port)).
				WithProtocol(corev1.ProtocolTCP).WithAppProtocol(protocol)))
}

// Deployment returns the Deployment of a pod whose first container is the server, with the proxy as a sidecar unless it is nil. Only the
// proxy calls the API server. The annotation selects the restricted SCC of OpenShift, even if the ServiceAccount may use others.
func (d *Description) Deployment(replicas *int32, pod *corev1ac.PodSpecApplyConfiguration, proxy *rbacproxy.Sidecar, pods *server.Pods,
) *appsv1ac.DeploymentApplyConfiguration {
	pod.WithServiceAccountName(d.Name).WithAutomountServiceAccountToken(proxy != nil)
	if proxy != nil {
		pod.WithContainers(proxy.Container()).WithVolumes(proxy.Volumes()...)
	}
	resources.ConfigureServerPod(pod, d.Selector, pods)
	return appsv1ac.Deployment(d.Name, d.Namespace).WithLabels(d.Labels(d.Name)).WithSpec(appsv1ac.DeploymentSpec().
		WithReplicas(resources.ReplicasOrOne(replicas)).
		WithRevisionHistoryLimit(0).
		WithStrategy(appsv1ac.DeploymentStrategy().WithType(appsv1.RollingUpdateDeploymentStrategyType)).
		WithSelector(metav1ac.LabelSelector().WithMatchLabels(d.Selector)).
		WithTemplate(corev1ac.PodTemplateSpec().
			WithLabels(d.Selector).
			WithAnnotations(map[string]string{"openshift.io/required-scc": "restricted-v2"}).
			WithSpec(pod)))
}

// DisruptionBudget returns the disruption budget of a server with several replicas, otherwise nil.
func (d *Description) DisruptionBudget(replicas *int32) apply.Desired {
	if resources.ReplicasOrOne(replicas) <= 1 {
		return nil
	}
	return apply.Desired{{Config: resources.DisruptionBudget(d.Meta(d.Name), d.Selector)}}
}

// EgressPolicy allows all egress: the server connects to its database and to model sources, the proxy to the API server.
func (d *Description) EgressPolicy() *networkingv1ac.NetworkPolicyApplyConfiguration {
	return resources.EgressPolicy(d.Meta(d.Name+"-egress"), d.Selector, resources.AllowAllEgress())
}

// IngressPolicy allows ingress from all clients to the given ports, and denies ingress to other ports.
func (d *Description) IngressPolicy(ports ...int32) *networkingv1ac.NetworkPolicyApplyConfiguration {
	policy := resources.IngressPolicy(d.Meta(d.Name+"-ingress"), d.Selector)
	for _, port := range ports {
		policy.Spec.WithIngress(resources.AllowTCP(port))
	}
	return policy
}

// RouterPolicy allows ingress to a port from the routers of OpenShift and the namespaces of the platform, such as that of the dashboard.
func (d *Description) RouterPolicy(port int32) *networkingv1ac.NetworkPolicyApplyConfiguration {
	return resources.RouterPolicy(d.Meta(d.Name+"-https-route"), d.Selector, port)
}

// ReaderRole returns the Role to get the Service, as the proxy requires, and its Endpoints. It grants additionalVerbs for the Service too.
func (d *Description) ReaderRole(meta metav1.ObjectMeta, additionalVerbs ...string) *rbacv1ac.RoleApplyConfiguration {
	get := func(resource string) *rbacv1ac.PolicyRuleApplyConfiguration {
		return rbacv1ac.PolicyRule().WithAPIGroups("").WithResources(resource).WithResourceNames(d.Name).WithVerbs("get")
	}
	return rbacv1ac.Role(meta.Name, meta.Namespace).WithLabels(meta.Labels).WithAnnotations(meta.Annotations).
		WithRules(get("services").WithVerbs(additionalVerbs...), get("endpoints"))
}

// GroupRoleBinding returns a RoleBinding that grants a Role to groups.
func GroupRoleBinding(meta metav1.ObjectMeta, role string, groups ...string) *rbacv1ac.RoleBindingApplyConfiguration {
	binding := rbacv1ac.RoleBinding(meta.Name, meta.Namespace).WithLabels(meta.Labels).WithAnnotations(meta.Annotations).
		WithRoleRef(rbacv1ac.RoleRef().WithAPIGroup(rbacv1.GroupName).WithKind("Role").WithName(role))
	for _, group := range groups {
		binding.WithSubjects(rbacv1ac.Subject().WithAPIGroup(rbacv1.GroupName).WithKind(rbacv1.GroupKind).WithName(group))
	}
	return binding
}

// ProxyObjects returns the ConfigMap of the proxy, which authorizes users who can get the Service, and the ClusterRoleBinding with which
// the proxy creates TokenReviews and SubjectAccessReviews.
func (d *Description) ProxyObjects() apply.Desired {
	data := rbacproxy.Config(rbacproxy.Attributes{APIVersion: "v1", Resource: "services", Verb: "get", Namespace: d.Namespace, Name: d.Name})
	meta := d.metaOutside(d.Name + "-auth-delegator")
	return apply.Desired{
		{Config: corev1ac.ConfigMap(d.Name+"-kube-rbac-proxy-config", d.Namespace).WithLabels(d.Labels(d.Name)).WithData(data)},
		{Ownership: apply.Unowned, Config: rbacv1ac.ClusterRoleBinding(meta.Name).WithLabels(meta.Labels).
			WithRoleRef(rbacv1ac.RoleRef().WithAPIGroup(rbacv1.GroupName).WithKind("ClusterRole").WithName(rbacproxy.DelegatorRole)).
			WithSubjects(rbacv1ac.Subject().WithKind(rbacv1.ServiceAccountKind).WithNamespace(d.Namespace).WithName(d.Name))},
	}
}

func (d *Description) published() resources.Published {
	p := resources.Published{Service: d.Name, Port: intstr.FromString(d.PortName)}
	if d.TLS {
		p.ServerName = d.Name + "." + d.Namespace + ".svc"
	}
	return p
}

// Ingress returns the Ingress for a host.
func (d *Description) Ingress(host string, publishing *Publishing) runtime.ApplyConfiguration {
	p := d.published()
	p.Host = host
	return p.Ingress(d.Meta(d.Name+"-https"), publishing.Exposure.IngressClass, publishing.Exposure.IngressAnnotations)
}

// GatewayObjects returns the objects that expose the server at the gateway, or nil without a gateway. The HTTPRoute is in another namespace
// and has no owner. With a certificate of the operator, a BackendTLSPolicy makes the gateway verify the proxy.
func (d *Description) GatewayObjects(publishing *Publishing) apply.Desired {
	if !publishing.ViaGateway() {
		return nil
	}
	var desired apply.Desired
	p := d.published()
	p.Namespace, p.Port, p.Gateway = d.Namespace, intstr.FromInt32(d.Port), publishing.gateway()
	p.Prefixes = []resources.Prefix{{Path: "/" + d.Path + "/", Rewritten: "/"}}
	if publishing.Served.Has(capability.BackendTLSPolicy) {
		desired.Add(d.BackendTLS(publishing.Authority)...)
	}
	if publishing.Served.Has(capability.ReferenceGrant) {
		desired.Add(p.ReferenceGrant(d.Meta(d.Grant), publishing.Gateway.RouteNamespace))
	}
	route := d.metaOutside(d.HTTPRoute)
	route.Namespace = publishing.Gateway.RouteNamespace
	return append(desired, apply.Object{Config: p.HTTPRoute(route), Ownership: apply.Unowned})
}

// BackendTLSSuffix is the suffix of the names of the BackendTLSPolicy of a server and its ConfigMap.
const BackendTLSSuffix = "-ca"

// BackendTLS returns the objects with which the gateway verifies the certificate of the server, or nil without TLS or without a CA.
func (d *Description) BackendTLS(authority []byte) []runtime.ApplyConfiguration {
	if !d.TLS || len(authority) == 0 {
		return nil
	}
	p := d.published()
	p.Port = intstr.IntOrString{} // the policy is for all ports
	return p.BackendTLS(d.Meta(d.Name+BackendTLSSuffix), authority)
}

package resources

import (
	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	networkingv1ac "k8s.io/client-go/applyconfigurations/networking/v1"

	"github.com/odh-platform/odh-platform-operator/apis/serving/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/controllers/modelmesh/authproxy"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/modelmesh"
	meshsettings "github.com/odh-platform/odh-platform-operator/pkg/modelmesh/settings"
	"github.com/odh-platform/odh-platform-operator/pkg/resources"
)

// Port names of the Service and of its pods.
const (
	portGRPC    = "grpc"
	portREST    = "http"
	portMetrics = "prometheus"
)

// MonitorName is the name of the ServiceMonitor.
const MonitorName = "modelmesh-metrics-monitor"

// BuildService builds the Service that selects the pods of all runtimes of a namespace.
func BuildService(in NamespaceInputs) *corev1ac.ServiceApplyConfiguration {
	s := in.Settings
	spec := corev1ac.ServiceSpec().
		WithType(corev1.ServiceTypeClusterIP).
		WithSelector(map[string]string{LabelService: s.ServiceName}).
		WithPorts(servicePort(portGRPC, s.ServicePort))
	if s.HeadlessService {
		spec.WithClusterIP(corev1.ClusterIPNone)
	}
	service := corev1ac.Service(s.ServiceName, in.Namespace).WithLabels(serviceLabels(s.ServiceName))
	if s.RESTProxy.Enabled {
		spec.WithPorts(servicePort(portREST, s.RESTProxy.Port))
	}
	if in.Proxy != nil {
		spec.WithPorts(in.Proxy.ServicePort())
		service.WithAnnotations(in.Proxy.ServiceAnnotations())
	}
	if s.Metrics.Enabled {
		spec.WithPorts(servicePort(portMetrics, s.Metrics.Port))
	}
	return service.WithSpec(spec)
}

func servicePort(name string, number int32) *corev1ac.ServicePortApplyConfiguration {
	return corev1ac.ServicePort().WithName(name).WithPort(number).WithTargetPort(intstr.FromString(name)).WithProtocol(corev1.ProtocolTCP)
}

// ServiceMonitorEnabled reports whether the namespace has a ServiceMonitor.
func ServiceMonitorEnabled(s meshsettings.Settings) bool {
	return s.Metrics.Enabled && !s.Metrics.DisablePrometheusOperatorSupport
}

// BuildServiceMonitor builds the ServiceMonitor of a namespace. Over HTTPS the mesh serves metrics with a self-signed certificate,
// which cannot be verified.
func BuildServiceMonitor(in NamespaceInputs) runtime.ApplyConfiguration {
	s := in.Settings
	return resources.ServiceMonitor(
		metav1.ObjectMeta{Name: MonitorName, Namespace: in.Namespace, Labels: serviceLabels(s.ServiceName)},
		map[string]string{LabelService: s.ServiceName},
		monitoringv1.Endpoint{Port: portMetrics, Interval: "30s", Scheme: new(monitoringv1.Scheme(s.Metrics.Scheme))},
		monitoringv1.SafeTLSConfig{InsecureSkipVerify: new(true)}, in.Namespace)
}

const (
	// PolicyName is the name of the NetworkPolicy of runtime pods.
	PolicyName = "modelmesh-runtimes"

	// peerPort is the port for traffic between pods of the mesh.
	peerPort = 8080
)

// BuildGuards builds the objects without which no pod must run: the NetworkPolicy and the authorization rules of the sidecar. The other
// objects of the sidecar are created by package openshift: without them pods do not start, or the sidecar rejects all requests.
func BuildGuards(in NamespaceInputs) apply.Desired {
	var desired apply.Desired
	if in.Settings.NetworkPolicyEnabled {
		desired = append(desired, apply.Object{Config: buildNetworkPolicy(in), Ownership: apply.Unowned})
	}
	if in.Proxy != nil && in.Proxy.NeedsRules() {
		config := corev1ac.ConfigMap(authproxy.RulesConfigMap, in.Namespace).WithData(in.Proxy.Rules())
		desired = append(desired, apply.Object{Config: config, Ownership: apply.Unowned})
	}
	return desired
}

// buildNetworkPolicy builds the NetworkPolicy of runtime pods. Only other runtime pods reach the peer port, and nothing reaches internal
// ports such as the management port of a model server. The ports of metrics and the proxy are open to all clients. So are gRPC and REST,
// unless NetworkPolicyRestricted is set or a proxy authenticates REST: then they are open to trustedPeers only.
func buildNetworkPolicy(in NamespaceInputs) *networkingv1ac.NetworkPolicyApplyConfiguration {
	s := in.Settings
	unauthenticated := []int32{s.ServicePort}
	if s.RESTProxy.Enabled {
		unauthenticated = append(unauthenticated, s.RESTProxy.Port)
	}
	var public []int32
	if s.Metrics.Enabled {
		public = append(public, s.Metrics.Port)
	}
	if in.Proxy != nil {
		public = append(public, authproxy.Port)
	}
	meshLabels := map[string]string{LabelManagedBy: ControllerName}
	policy := resources.IngressPolicy(metav1.ObjectMeta{Name: PolicyName, Namespace: in.Namespace}, meshLabels,
		resources.AllowTCP(s.ServicePort, peerPort).WithFrom(resources.PodPeer(meshLabels)))
	policy.Spec.PodSelector.WithMatchExpressions(
		metav1ac.LabelSelectorRequirement().WithKey(LabelService).WithOperator(metav1.LabelSelectorOpExists))
	if s.NetworkPolicyRestricted || in.Proxy != nil { // otherwise clients could bypass the proxy
		policy.Spec.WithIngress(resources.AllowTCP(unauthenticated...).WithFrom(trustedPeers(in)...))
	} else {
		public = append(unauthenticated, public...)
	}
	if len(public) > 0 {
		policy.Spec.WithIngress(resources.AllowTCP(public...))
	}
	return policy
}

// trustedPeers returns the peers that can always reach gRPC and REST: pods of the namespace, of the operator's namespace and of the manager's,
// and routers.
func trustedPeers(in NamespaceInputs) []*networkingv1ac.NetworkPolicyPeerApplyConfiguration {
	peers := []*networkingv1ac.NetworkPolicyPeerApplyConfiguration{
		resources.PodPeer(nil), resources.NamespacePeer(corev1.LabelMetadataName, in.OperatorNamespace),
	}
	if in.ManagerNamespace != "" && in.ManagerNamespace != in.OperatorNamespace {
		peers = append(peers, resources.NamespacePeer(corev1.LabelMetadataName, in.ManagerNamespace))
	}
	if in.OpenShift {
		peers = append(peers, resources.RouterPeer())
	}
	return peers
}

// ConstraintsName is the name of the ConfigMap that all runtime pods of a namespace read.
const ConstraintsName = "tc-config"

const (
	constraintsKey = "type_constraints"
	dataPlaneKey   = "dataplane_api_config"
)

// BuildConstraints builds the ConfigMap with the type constraints, which map models to runtimes, and the data plane configuration.
// runtimes holds the specs of the runtimes by name; disabled ones are ignored.
func BuildConstraints(namespace string, runtimes map[string]*v1alpha1.ServingRuntimeSpec, restProxy bool) *corev1ac.ConfigMapApplyConfiguration {
	return corev1ac.ConfigMap(ConstraintsName, namespace).
		WithLabels(commonLabels()).
		WithBinaryData(map[string][]byte{constraintsKey: modelmesh.TypeConstraints(runtimes, restProxy), dataPlaneKey: []byte(modelmesh.DataPlaneConfig())})
}

// BuildEtcdSecret builds the Secret with which the pods of a namespace connect to etcd.
func BuildEtcdSecret(name, namespace string, data map[string][]byte) *corev1ac.SecretApplyConfiguration {
	return corev1ac.Secret(name, namespace).
		WithLabels(map[string]string{LabelManagedBy: ControllerName}).
		WithData(data)
}

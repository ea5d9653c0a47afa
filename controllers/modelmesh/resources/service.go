package resources

import (
	"fmt"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	networkingv1ac "k8s.io/client-go/applyconfigurations/networking/v1"

	"github.com/odh-platform/odh-platform-operator/apis/serving/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/controllers/modelmesh/authproxy"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	mm "github.com/odh-platform/odh-platform-operator/pkg/modelmesh"
	meshsettings "github.com/odh-platform/odh-platform-operator/pkg/modelmesh/settings"
	"github.com/odh-platform/odh-platform-operator/pkg/resources"
)

// Names of ports, of the Service and of the pods behind it.
const (
	portGRPC    = "grpc"
	portREST    = "http"
	portMetrics = "prometheus"
)

// MonitorName is the name of the ServiceMonitor of each namespace.
const MonitorName = "modelmesh-metrics-monitor"

// BuildService renders the Service in front of all runtimes of a namespace.
func BuildService(in NamespaceInputs) *corev1ac.ServiceApplyConfiguration {
	s := in.Settings
	spec := corev1ac.ServiceSpec().
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

// Monitored tells whether the pods of a namespace are to be scraped through a ServiceMonitor.
func Monitored(s meshsettings.Settings) bool {
	return s.Metrics.Enabled && !s.Metrics.DisablePrometheusOperatorSupport
}

// BuildServiceMonitor renders the ServiceMonitor of a namespace. The routing layer serves metrics with a certificate that it signs
// itself, whatever certificate it has for its other ports: there is nothing to verify.
func BuildServiceMonitor(in NamespaceInputs) runtime.ApplyConfiguration {
	s := in.Settings
	return resources.ServiceMonitor(
		metav1.ObjectMeta{Name: MonitorName, Namespace: in.Namespace, Labels: serviceLabels(s.ServiceName)},
		map[string]string{LabelService: s.ServiceName},
		monitoringv1.Endpoint{Port: portMetrics, Interval: "30s", Scheme: new(monitoringv1.Scheme(s.Metrics.Scheme))},
		monitoringv1.SafeTLSConfig{InsecureSkipVerify: new(true)}, in.Namespace)
}

const (
	// PolicyName is the NetworkPolicy of runtime pods.
	PolicyName = "modelmesh-runtimes"

	// peerPort is where the pods of the mesh speak to each other.
	peerPort = 8080
)

// BuildGuards renders what no pod of a namespace may run without: the NetworkPolicy, and the rules of the sidecar that asks who calls.
// What else the sidecar needs package openshift makes: without it pods do not start, or let no caller in.
func BuildGuards(in NamespaceInputs) (apply.Desired, error) {
	var desired apply.Desired
	if in.Settings.NetworkPolicy {
		desired = append(desired, apply.Object{Config: policy(in), Ownership: apply.Unowned, AdoptIf: samePods})
	}
	if in.Proxy == nil || !in.Proxy.HasRules() {
		return desired, nil
	}
	rules, err := in.Proxy.Rules()
	if err != nil {
		return nil, fmt.Errorf("building the rules of the proxy: %w", err)
	}
	config := corev1ac.ConfigMap(authproxy.RulesConfigMap, in.Namespace).WithData(rules)
	return append(desired, apply.Object{Config: config, Ownership: apply.Unowned}), nil
}

// policy guards the pods of runtimes: what the mesh says to itself is heard from its own pods only, and internal ports,
// such as that of the model server's management, from no pod. Restricted, and wherever a proxy guards REST, the ports without
// authentication are open to the namespace, the manager and routers only.
func policy(in NamespaceInputs) *networkingv1ac.NetworkPolicyApplyConfiguration {
	s := in.Settings
	unguarded := []int32{s.ServicePort}
	if s.RESTProxy.Enabled {
		unguarded = append(unguarded, s.RESTProxy.Port)
	}
	var open []int32
	if s.Metrics.Enabled {
		open = append(open, s.Metrics.Port)
	}
	if in.Proxy != nil {
		open = append(open, authproxy.Port)
	}
	mesh := map[string]string{LabelManagedBy: ControllerName}
	policy := resources.IngressPolicy(metav1.ObjectMeta{Name: PolicyName, Namespace: in.Namespace}, mesh,
		resources.AllowTCP(s.ServicePort, peerPort).WithFrom(resources.PodPeer(mesh)))
	policy.Spec.PodSelector.WithMatchExpressions(
		metav1ac.LabelSelectorRequirement().WithKey(LabelService).WithOperator(metav1.LabelSelectorOpExists))
	if s.NetworkPolicyRestricted || in.Proxy != nil { // the proxy would guard one door of two
		policy.Spec.WithIngress(resources.AllowTCP(unguarded...).WithFrom(trustedPeers(in)...))
	} else {
		open = append(unguarded, open...)
	}
	if len(open) > 0 {
		policy.Spec.WithIngress(resources.AllowTCP(open...))
	}
	return policy
}

// trustedPeers may reach the ports without authentication.
func trustedPeers(in NamespaceInputs) []*networkingv1ac.NetworkPolicyPeerApplyConfiguration {
	all := []*networkingv1ac.NetworkPolicyPeerApplyConfiguration{
		resources.PodPeer(nil), resources.NamespacePeer(corev1.LabelMetadataName, in.Home),
	}
	if in.OpenShift {
		all = append(all, resources.RouterPeer())
	}
	return all
}

// samePods recognises the policy that the original installed beside itself.
func samePods(live *unstructured.Unstructured) bool {
	labels, _, err := unstructured.NestedStringMap(live.Object, "spec", "podSelector", "matchLabels")
	return err == nil && labels[LabelManagedBy] == ControllerName
}

// ConstraintsName is the name of the ConfigMap that all pods of a namespace read.
const ConstraintsName = "tc-config"

const (
	constraintsKey = "type_constraints"
	dataPlaneKey   = "dataplane_api_config"
)

// BuildConstraints renders the ConfigMap that tells the pods of a namespace which of its runtimes serve which models. Runtimes are
// all of the namespace by name; those that do not serve count for nothing.
func BuildConstraints(namespace string, runtimes map[string]*v1alpha1.ServingRuntimeSpec, restProxy bool) (*corev1ac.ConfigMapApplyConfiguration, error) {
	constraints, err := mm.TypeConstraints(runtimes, restProxy)
	if err != nil {
		return nil, err
	}
	return corev1ac.ConfigMap(ConstraintsName, namespace).
		WithLabels(commonLabels()).
		WithBinaryData(map[string][]byte{constraintsKey: constraints, dataPlaneKey: []byte(mm.DataPlaneConfig())}), nil
}

// BuildEtcdSecret renders the Secret by which the pods of a namespace reach etcd.
func BuildEtcdSecret(name, namespace string, data map[string][]byte) *corev1ac.SecretApplyConfiguration {
	return corev1ac.Secret(name, namespace).
		WithLabels(map[string]string{LabelManagedBy: ControllerName}).
		WithData(data)
}

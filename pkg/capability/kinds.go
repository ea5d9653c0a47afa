package capability

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// The optional kinds that this program knows. Each is looked up by its own, because clusters carry any mixture of
// them; OpenShift as a platform is Set.OpenShift.
var (
	Route            = kind("route.openshift.io", "v1", "Route")
	OpenShiftIngress = kind("config.openshift.io", "v1", "Ingress")
	OpenShiftProxy   = kind("config.openshift.io", "v1", "Proxy")
	UserGroup        = kind("user.openshift.io", "v1", "Group")
	ConsoleLink      = kind("console.openshift.io", "v1", "ConsoleLink")
	// ConsoleYAMLSamples are examples that the console offers.
	ConsoleYAMLSample = kind("console.openshift.io", "v1", "ConsoleYAMLSample")

	HTTPRoute        = kind("gateway.networking.k8s.io", "v1", "HTTPRoute")
	ReferenceGrant   = kind("gateway.networking.k8s.io", "v1beta1", "ReferenceGrant")
	BackendTLSPolicy = kind("gateway.networking.k8s.io", "v1", "BackendTLSPolicy")

	ServiceMonitor = kind("monitoring.coreos.com", "v1", "ServiceMonitor")
	PrometheusRule = kind("monitoring.coreos.com", "v1", "PrometheusRule")

	RayCluster = kind("ray.io", "v1", "RayCluster")

	InferenceService      = kind("serving.kserve.io", "v1beta1", "InferenceService")
	ServingRuntime        = kind("serving.kserve.io", "v1alpha1", "ServingRuntime")
	ClusterServingRuntime = kind("serving.kserve.io", "v1alpha1", "ClusterServingRuntime")

	KueueWorkload   = kind("kueue.x-k8s.io", "v1beta1", "Workload")
	KueueLocalQueue = kind("kueue.x-k8s.io", "v1beta1", "LocalQueue")
	// ClusterQueues are written, so their newest version is preferred: older ones go sooner.
	KueueClusterQueue      = kind("kueue.x-k8s.io", "v1beta2", "ClusterQueue")
	KueueClusterQueueOlder = kind("kueue.x-k8s.io", "v1beta1", "ClusterQueue")

	Certificate = kind("cert-manager.io", "v1", "Certificate")

	PlatformAuth      = kind("services.platform.opendatahub.io", "v1alpha1", "Auth")
	DSCInitialization = kind("dscinitialization.opendatahub.io", "v1", "DSCInitialization")
)

// known are the kinds of the table, in its order.
var known []schema.GroupVersionKind

// Known returns every optional kind of the table, in a stable order. The slice belongs to the caller.
func Known() []schema.GroupVersionKind { return slices.Clone(known) }

// kind adds one to the table.
func kind(group, version, kind string) schema.GroupVersionKind {
	one := schema.GroupVersionKind{Group: group, Version: version, Kind: kind}
	known = append(known, one)
	return one
}

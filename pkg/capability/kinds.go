package capability

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// The optional kinds that this program knows. Each is looked up by its own, because clusters carry any mixture of
// them; OpenShift as a platform is Set.OpenShift.
var (
	Route            = register("route.openshift.io", "v1", "Route")
	OpenShiftIngress = register("config.openshift.io", "v1", "Ingress")
	OpenShiftProxy   = register("config.openshift.io", "v1", "Proxy")
	UserGroup        = register("user.openshift.io", "v1", "Group")
	ConsoleLink      = register("console.openshift.io", "v1", "ConsoleLink")
	// ConsoleYAMLSamples are examples that the console offers.
	ConsoleYAMLSample = register("console.openshift.io", "v1", "ConsoleYAMLSample")

	HTTPRoute        = register("gateway.networking.k8s.io", "v1", "HTTPRoute")
	ReferenceGrant   = register("gateway.networking.k8s.io", "v1beta1", "ReferenceGrant")
	BackendTLSPolicy = register("gateway.networking.k8s.io", "v1", "BackendTLSPolicy")

	ServiceMonitor = register("monitoring.coreos.com", "v1", "ServiceMonitor")
	PrometheusRule = register("monitoring.coreos.com", "v1", "PrometheusRule")

	RayCluster = register("ray.io", "v1", "RayCluster")

	InferenceService      = register("serving.kserve.io", "v1beta1", "InferenceService")
	ServingRuntime        = register("serving.kserve.io", "v1alpha1", "ServingRuntime")
	ClusterServingRuntime = register("serving.kserve.io", "v1alpha1", "ClusterServingRuntime")

	KueueWorkload   = register("kueue.x-k8s.io", "v1beta1", "Workload")
	KueueLocalQueue = register("kueue.x-k8s.io", "v1beta1", "LocalQueue")
	// ClusterQueues are written, so their newest version is preferred: older ones go sooner.
	KueueClusterQueue      = register("kueue.x-k8s.io", "v1beta2", "ClusterQueue")
	KueueClusterQueueOlder = register("kueue.x-k8s.io", "v1beta1", "ClusterQueue")

	Certificate = register("cert-manager.io", "v1", "Certificate")

	PlatformAuth      = register("services.platform.opendatahub.io", "v1alpha1", "Auth")
	DSCInitialization = register("dscinitialization.opendatahub.io", "v1", "DSCInitialization")
)

// known are the kinds of the table, in its order.
var knownKinds []schema.GroupVersionKind

// Known returns every optional kind of the table, in a stable order. The slice belongs to the caller.
func Known() []schema.GroupVersionKind { return slices.Clone(knownKinds) }

// kind adds one to the table.
func register(group, version, kind string) schema.GroupVersionKind {
	one := schema.GroupVersionKind{Group: group, Version: version, Kind: kind}
	knownKinds = append(knownKinds, one)
	return one
}

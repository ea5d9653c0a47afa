package capability

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// The optional kinds of the operator. Each is detected separately, because clusters may serve any subset; Set.IsOpenShift reports the
// platform.
var (
	Route            = register("route.openshift.io", "v1", "Route")
	OpenShiftIngress = register("config.openshift.io", "v1", "Ingress")
	OpenShiftProxy   = register("config.openshift.io", "v1", "Proxy")
	UserGroup        = register("user.openshift.io", "v1", "Group")
	ConsoleLink      = register("console.openshift.io", "v1", "ConsoleLink")
	// ConsoleYAMLSample is an example object that the OpenShift console offers.
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

	// The newest version of ClusterQueue is preferred for writing, because older ones are removed earlier.
	KueueClusterQueue        = register("kueue.x-k8s.io", "v1beta2", "ClusterQueue")
	KueueClusterQueueV1beta1 = register("kueue.x-k8s.io", "v1beta1", "ClusterQueue")

	Certificate = register("cert-manager.io", "v1", "Certificate")

	PlatformAuth      = register("services.platform.opendatahub.io", "v1alpha1", "Auth")
	DSCInitialization = register("dscinitialization.opendatahub.io", "v1", "DSCInitialization")
)

// knownKinds are the kinds above, in order.
var knownKinds []schema.GroupVersionKind

// Known returns the optional kinds above, in a stable order. The caller may modify the slice.
func Known() []schema.GroupVersionKind { return slices.Clone(knownKinds) }

// register adds a kind to knownKinds.
func register(group, version, kind string) schema.GroupVersionKind {
	gvk := schema.GroupVersionKind{Group: group, Version: version, Kind: kind}
	knownKinds = append(knownKinds, gvk)
	return gvk
}

package raycluster

import (
	rayv1 "github.com/ray-project/kuberay/ray-operator/apis/ray/v1"

	"github.com/odh-platform/odh-platform-operator/pkg/resources/oauthproxy"
)

// Keys on objects. Clients and existing clusters know them.
const (
	// LabelClusterName is on every object made for a RayCluster; its value is the name of that.
	LabelClusterName = "ray.openshift.ai/cluster-name"
	// LabelClusterNamespace is on the ClusterRoleBinding of a RayCluster; its value is the namespace of that.
	LabelClusterNamespace = "ray.openshift.ai/cluster-namespace"
	// AnnotationVersion is on a RayCluster; its presence selects hashed names, whatever the value.
	AnnotationVersion = "ray.openshift.ai/version"
	// AnnotationCertificates is on a RayCluster and says who issues the certificates of its pods: an Issuer. It counts when
	// the cluster is created.
	AnnotationCertificates = "ray.openshift.ai/certificates"
	// AnnotationKeepServiceAccount is on a RayCluster; "true" keeps the account of the head template, and the sidecar alone
	// acts as the account of the dashboard. It counts while the head template names an account.
	AnnotationKeepServiceAccount = "ray.openshift.ai/keep-service-account"
	// AnnotationServiceAccount remembers the account which the head template named before it was overwritten.
	AnnotationServiceAccount = "ray.openshift.ai/service-account"
	// Finalizer guards the ClusterRoleBinding of a RayCluster.
	Finalizer = "ray.openshift.ai/oauth-finalizer"

	// LabelCluster is set by KubeRay on pods; its value is the name of the RayCluster.
	LabelCluster = "ray.io/cluster"
	// LabelNodeType is set by KubeRay on pods: NodeTypeHead or NodeTypeWorker.
	LabelNodeType  = "ray.io/node-type"
	NodeTypeHead   = string(rayv1.HeadNode)
	NodeTypeWorker = string(rayv1.WorkerNode)

	// ManagerMultiKueue is the value of spec.managedBy of clusters that run somewhere else.
	ManagerMultiKueue = "kueue.x-k8s.io/multikueue"
	// ManagerKubeRay is the value of spec.managedBy that says what holds without one.
	ManagerKubeRay = "ray.io/kuberay-operator"
)

// ComponentName is the name of the component in flags, labels, metrics and folders.
const ComponentName = "raycluster"

// FieldOwner writes the objects of RayClusters. It is also the seed of the names, so it can never change.
const FieldOwner = "codeflare-raycluster-controller"

// Ports of a Ray head and its sidecar, and their names.
const (
	PortProxy     = 8443
	PortProxyName = "oauth-proxy"
	PortDashboard = 8265
	PortClient    = 10001
	PortMetrics   = 8080
	// PortDashboardName and PortClientName are the names in the head Service.
	PortDashboardName = "dashboard"
	PortClientName    = "client"
)

// GVK is the kind that is secured.
var GVK = rayv1.GroupVersion.WithKind("RayCluster")

// Keys of Secrets and ConfigMaps.
const (
	// KeyCACert and KeyCAKey are in the Secret of the authority.
	KeyCACert = "ca.crt"
	KeyCAKey  = "ca.key"
	// KeyCookie is the key of the cookie secret.
	KeyCookie = oauthproxy.KeyCookie
	// KeyProxyConfig is the key of the configuration of the proxy on Kubernetes without OAuth.
	KeyProxyConfig = "config-file.yaml"
)

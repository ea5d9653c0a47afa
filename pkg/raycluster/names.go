package raycluster

import (
	"crypto/sha256"
	"encoding/hex"

	rayv1 "github.com/ray-project/kuberay/ray-operator/apis/ray/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/odh-platform/odh-platform-operator/pkg/names"
	"github.com/odh-platform/odh-platform-operator/pkg/nested"
	"github.com/odh-platform/odh-platform-operator/pkg/resources/oauthproxy"
)

// Names are the names of the objects of one RayCluster.
type Names struct {
	// ServiceAccount is the ServiceAccount of the sidecar, and of the head unless the head keeps the ServiceAccount of its user.
	ServiceAccount string
	// TokenSecret holds a token of ServiceAccount if the head keeps the ServiceAccount of its user.
	TokenSecret string
	// ProxyService is the Service of the sidecar.
	ProxyService string
	// CookieSecret holds the key of the sidecar's cookies.
	CookieSecret string
	// ProxyConfig is the ConfigMap with the authorization rules of kube-rbac-proxy.
	ProxyConfig string
	// ProxyTLS is the Secret with the sidecar's certificate.
	ProxyTLS string
	// CASecret holds the CA of the cluster.
	CASecret string
	// HeadTLS and WorkerTLS are the Secrets with the certificates of the pods, unless each pod issues its own.
	HeadTLS, WorkerTLS string
	// ClusterRoleBinding allows ServiceAccount to review tokens.
	ClusterRoleBinding string
	// HeadPolicy and WorkerPolicy are NetworkPolicies.
	HeadPolicy, WorkerPolicy string
	// Dashboard and Client are the names of the routes of the dashboard and of the client port.
	Dashboard, Client string
	// HeadService is created by KubeRay.
	HeadService string
}

// Names returns the legacy names for a cluster without AnnotationVersion, and otherwise the hashed ones.
func (c Cluster) Names() Names {
	if c.HasHashedNames() {
		return c.HashedNames()
	}
	return c.LegacyNames()
}

// LegacyNames returns the names of clusters without AnnotationVersion.
func (c Cluster) LegacyNames() Names {
	n := c.names(func(base string) string { return base })
	n.CASecret = "ca-secret-" + c.Name()
	return n
}

// HashedNames returns the names of clusters with AnnotationVersion.
func (c Cluster) HashedNames() Names {
	n := c.names(func(base string) string { return hashedName(base, validation.DNS1123SubdomainMaxLength) })
	n.ProxyService = hashedName(c.Name()+"-oauth", validation.DNS1035LabelMaxLength)
	return n
}

func (c Cluster) names(form func(base string) string) Names {
	name := c.Name()
	return Names{
		ServiceAccount:     form(name + "-oauth-proxy"),
		TokenSecret:        form(name + "-oauth-token"),
		ProxyService:       form(name + "-oauth"),
		CookieSecret:       form(name + "-oauth-config"),
		ProxyConfig:        form(name + "-proxy-config"),
		ProxyTLS:           form(name + "-proxy-tls-secret"),
		CASecret:           form(name + "-ca-secret"),
		HeadTLS:            form(name + "-head-tls"),
		WorkerTLS:          form(name + "-worker-tls"),
		ClusterRoleBinding: form(name + "-" + c.Namespace() + "-auth"),
		HeadPolicy:         form(name + "-head"),
		WorkerPolicy:       form(name + "-workers"),
		Dashboard:          "ray-dashboard-" + name,
		Client:             "rayclient-" + name,
		HeadService:        c.headService(),
	}
}

// headService returns the name of the head Service: that of the user's template, or the default of KubeRay.
func (c Cluster) headService() string {
	if override := nested.String(c.object, "spec", "headGroupSpec", "headService", "metadata", "name"); override != "" {
		return override
	}
	return c.Name() + "-head-svc"
}

// DashboardHostLabel returns the first DNS label of the dashboard's host.
func (c Cluster) DashboardHostLabel() string {
	return routeHostLabel(c.Names().Dashboard, c.Namespace())
}

// ClientHostLabel returns the first DNS label of the Ray client's host.
func (c Cluster) ClientHostLabel() string { return routeHostLabel(c.Names().Client, c.Namespace()) }

// routeHostLabel returns the first label of the host that OpenShift generates for a Route, truncated to a valid and unique label.
func routeHostLabel(name, namespace string) string {
	return names.Truncate(name+"-"+namespace, validation.DNS1123LabelMaxLength)
}

// ClientDNSName returns the public host of the Ray client for certificates. Without a domain it ends in a dot, for compatibility.
func (c Cluster) ClientDNSName(domain string) string { return c.ClientHostLabel() + "." + domain }

// HeadDNSName returns the name of the head Service within the cluster.
func (c Cluster) HeadDNSName() string { return c.Names().HeadService + "." + c.Namespace() + ".svc" }

// hashDigits is the number of hexadecimal digits of the hash in a name.
const hashDigits = 8

// hashedName returns <base>-<hash>, where the hash covers FieldOwner and the whole base. To stay within the limit, it truncates base but
// not the hash: names remain unique, and short names never change.
func hashedName(base string, limit int) string {
	sum := sha256.Sum256([]byte(FieldOwner + base))
	prefix := base[:min(len(base), limit-hashDigits-1)]
	return prefix + "-" + hex.EncodeToString(sum[:hashDigits/2])
}

// Labels, annotations, the finalizer and managers. They must not change, because clients and existing clusters use them.
const (
	// LabelClusterName is set on every child object of a RayCluster; its value is the name of the cluster.
	LabelClusterName = "ray.openshift.ai/cluster-name"
	// LabelClusterNamespace is set on the ClusterRoleBinding of a RayCluster; its value is the namespace of the cluster.
	LabelClusterNamespace = "ray.openshift.ai/cluster-namespace"
	// LabelDashboard and LabelDashboardNamespace are set on the HTTPRoute of a dashboard. Clients such as codeflare-sdk find the HTTPRoute by
	// these labels, and Routes and Ingresses by name.
	LabelDashboard          = "ray.io/cluster-name"
	LabelDashboardNamespace = "ray.io/cluster-namespace"
	// AnnotationVersion on a RayCluster selects hashed names, regardless of its value.
	AnnotationVersion = "ray.openshift.ai/version"
	// AnnotationCertificates on a RayCluster selects the Issuer of its pods' certificates, see Decide.
	AnnotationCertificates = "ray.openshift.ai/certificates"
	// AnnotationKeepServiceAccount "true" on a RayCluster keeps the ServiceAccount of the head template: only the sidecar then uses
	// Names.ServiceAccount. It has no effect while the head template sets no ServiceAccount.
	AnnotationKeepServiceAccount = "ray.openshift.ai/keep-service-account"
	// AnnotationServiceAccount stores the ServiceAccount of the head template before it was overwritten.
	AnnotationServiceAccount = "ray.openshift.ai/service-account"
	// Finalizer prevents the deletion of a RayCluster until its ClusterRoleBinding is deleted.
	Finalizer = "ray.openshift.ai/oauth-finalizer"

	// LabelCluster is set by KubeRay on pods; its value is the name of the RayCluster.
	LabelCluster = "ray.io/cluster"
	// LabelNodeType is set by KubeRay on pods; its values include NodeTypeHead and NodeTypeWorker.
	LabelNodeType  = "ray.io/node-type"
	NodeTypeHead   = string(rayv1.HeadNode)
	NodeTypeWorker = string(rayv1.WorkerNode)
	// LabelGroup is set by KubeRay on pods: the name of the worker group, or "headgroup".
	LabelGroup = "ray.io/group"

	// ManagerMultiKueue is the spec.managedBy of clusters that run in another Kubernetes cluster.
	ManagerMultiKueue = "kueue.x-k8s.io/multikueue"
	// ManagerKubeRay is the explicit default of spec.managedBy.
	ManagerKubeRay = "ray.io/kuberay-operator"
)

// ComponentName is the name of the component in flags, labels, metrics and folders.
const ComponentName = "raycluster"

// FieldOwner is the field manager of the objects of RayClusters. It must never change, since it is part of the hash in names.
const FieldOwner = "codeflare-raycluster-controller"

// The port of the sidecar, and its name.
const (
	PortProxy     = 8443
	PortProxyName = "oauth-proxy"
)

// Port is a port of Ray by its name in the Ray container of the head and in the head Service.
type Port string

// Ports of Ray. PortAgent is the port of the dashboard agent, whose health KubeRay checks for a RayService.
const (
	PortDashboard Port = "dashboard"
	PortClient    Port = "client"
	PortMetrics   Port = "metrics"
	PortServe     Port = "serve"
	PortAgent     Port = "dashboard-agent"
)

// defaultPorts are the ports of a head that does not declare them.
var defaultPorts = map[Port]int32{PortDashboard: 8265, PortClient: 10001, PortMetrics: 8080, PortServe: 8000, PortAgent: 52365}

// GVK is the kind RayCluster.
var GVK = rayv1.GroupVersion.WithKind("RayCluster")

// Keys of Secrets and ConfigMaps.
const (
	// KeyCACert and KeyCAKey are keys of the CA Secret.
	KeyCACert = "ca.crt"
	KeyCAKey  = "ca.key"
	// KeyCookie is the key of the cookie Secret.
	KeyCookie = oauthproxy.KeyCookie
	// KeyProxyConfig is the key of the kube-rbac-proxy ConfigMap.
	KeyProxyConfig = "config-file.yaml"
)

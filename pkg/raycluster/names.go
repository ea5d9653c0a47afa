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

// Names are those of the objects around one RayCluster.
type Names struct {
	// ServiceAccount is the account of the dashboard; the head runs under it.
	ServiceAccount string
	// TokenSecret holds a token of ServiceAccount, where the head keeps the account of its user.
	TokenSecret string
	// ProxyService is the Service before the sidecar.
	ProxyService string
	// CookieSecret is the Secret with the key of the sidecar's cookies.
	CookieSecret string
	// ProxyConfig is the ConfigMap with the rules of the sidecar, on Kubernetes without OAuth.
	ProxyConfig string
	// ProxyTLS is the Secret with the sidecar's certificate.
	ProxyTLS string
	// CASecret holds the authority of the cluster.
	CASecret string
	// HeadTLS and WorkerTLS hold the certificates of the pods, where the operator issues them.
	HeadTLS, WorkerTLS string
	// ClusterRoleBinding lets ServiceAccount review tokens.
	ClusterRoleBinding string
	// HeadPolicy and WorkerPolicy are NetworkPolicies.
	HeadPolicy, WorkerPolicy string
	// Dashboard and Client are the names of Routes or Ingresses.
	Dashboard, Client string
	// HeadService is made by KubeRay.
	HeadService string
}

// Names returns the names of the objects around the cluster: legacy ones for a cluster without AnnotationVersion.
func (c Cluster) Names() Names {
	if c.HasHashedNames() {
		return c.HashedNames()
	}
	return c.LegacyNames()
}

// LegacyNames are those which clusters without AnnotationVersion have.
func (c Cluster) LegacyNames() Names {
	n := c.names(func(base string) string { return base })
	n.CASecret = "ca-secret-" + c.Name()
	return n
}

// HashedNames are those which clusters with AnnotationVersion have.
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

// headService is the name that KubeRay gives the Service of the head, or the one that its user asks for.
func (c Cluster) headService() string {
	if override := nested.Text(c.object, "spec", "headGroupSpec", "headService", "metadata", "name"); override != "" {
		return override
	}
	return c.Name() + "-head-svc"
}

// DashboardHost is the label of the dashboard before the domain of the cluster: never longer than a label may be.
func (c Cluster) DashboardHost() string { return routeHost(c.Names().Dashboard, c.Namespace()) }

// ClientHost is the label of the Ray client before the domain of the cluster: never longer than a label may be.
func (c Cluster) ClientHost() string { return routeHost(c.Names().Client, c.Namespace()) }

// host is what an OpenShift router makes of a name; where that were no host, it is cut and made unique again.
func routeHost(name, namespace string) string {
	return names.Truncate(name+"-"+namespace, validation.DNS1123LabelMaxLength)
}

// ClientDNSName is the name by which the Ray client is reached from outside, for certificates. Without a domain it ends in
// a dot, as it always did.
func (c Cluster) ClientDNSName(domain string) string { return c.ClientHost() + "." + domain }

// HeadDNSName is the name of the head Service within the cluster.
func (c Cluster) HeadDNSName() string { return c.Names().HeadService + "." + c.Namespace() + ".svc" }

// hashDigits is the number of hexadecimal digits in a name.
const hashDigits = 8

// hashed makes <base>-<hash>, where the hash is over FieldOwner and the base. Where the name were longer than the limit, less
// of the base is shown; the hash is always that of the whole base, so that names stay apart and short ones never change.
func hashedName(base string, limit int) string {
	sum := sha256.Sum256([]byte(FieldOwner + base))
	shown := base[:min(len(base), limit-hashDigits-1)]
	return shown + "-" + hex.EncodeToString(sum[:])[:hashDigits]
}

// Keys on objects. Clients and existing clusters know them.
const (
	// LabelClusterName is on every object made for a RayCluster; its value is the name of that.
	LabelClusterName = "ray.openshift.ai/cluster-name"
	// LabelClusterNamespace is on the ClusterRoleBinding of a RayCluster; its value is the namespace of that.
	LabelClusterNamespace = "ray.openshift.ai/cluster-namespace"
	// LabelDashboard and LabelDashboardNamespace are on the HTTPRoute of a dashboard, by which clients such as codeflare-sdk find it.
	// They find Routes and Ingresses by their names.
	LabelDashboard          = "ray.io/cluster-name"
	LabelDashboardNamespace = "ray.io/cluster-namespace"
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

// The port of the sidecar, and its name.
const (
	PortProxy     = 8443
	PortProxyName = "oauth-proxy"
)

// Port is one of Ray, by the name that KubeRay looks for among the ports of the container in which the head runs. The head Service has
// the same name for it.
type Port string

// Ports of Ray: the agent is that of the dashboard, whose health a RayService looks at.
const (
	PortDashboard Port = "dashboard"
	PortClient    Port = "client"
	PortMetrics   Port = "metrics"
	PortServe     Port = "serve"
	PortAgent     Port = "dashboard-agent"
)

// defaultPorts are those of a head that does not name them.
var defaultPorts = map[Port]int32{PortDashboard: 8265, PortClient: 10001, PortMetrics: 8080, PortServe: 8000, PortAgent: 52365}

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

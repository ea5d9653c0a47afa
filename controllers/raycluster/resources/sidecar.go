package resources

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	rbacv1ac "k8s.io/client-go/applyconfigurations/rbac/v1"

	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/raycluster"
	"github.com/odh-platform/odh-platform-operator/pkg/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/resources/oauthproxy"
	"github.com/odh-platform/odh-platform-operator/pkg/resources/rbacproxy"
)

const (
	annotationRedirect    = "serviceaccounts.openshift.io/oauth-redirectreference.first"
	annotationAccountName = "kubernetes.io/service-account.name"
	// redirectReference makes a ServiceAccount the OAuth client of the dashboard's Route. The text equals that of the CodeFlare operator: an
	// upgrade does not change the annotation.
	redirectReference = `{"kind":"OAuthRedirectReference","apiVersion":"v1","reference":{"kind":"Route","name":%q}}`

	portHTTPS = 443
)

// sidecarObjects returns the ServiceAccount of the sidecar, its cookie key (OAuth) or authorization rules (proxy), and its token Secret if
// the head keeps another ServiceAccount, and always if the sidecar is retained. certificates/ or the platform issues the certificate.
func sidecarObjects(c raycluster.Cluster, in Inputs) apply.Desired {
	var desired apply.Desired
	n := c.Names()
	switch in.EffectiveAuth(c) {
	case raycluster.AuthOAuth:
		redirect := map[string]string{annotationRedirect: fmt.Sprintf(redirectReference, n.Dashboard)}
		cookie := secret(c, n.CookieSecret)
		if len(in.Cookie) > 0 { // empty in Render and for retained objects
			cookie.WithData(map[string][]byte{raycluster.KeyCookie: in.Cookie})
		}
		desired.Add(cookie, serviceAccount(c).WithAnnotations(redirect))
	case raycluster.AuthProxy:
		rules := rbacproxy.Config(raycluster.RequiredAccess(c.Namespace()))
		desired.Add(corev1ac.ConfigMap(n.ProxyConfig, c.Namespace()).WithLabels(clusterLabels(c)).WithData(rules), serviceAccount(c))
	default:
		return nil
	}
	if in.Mode.KeepsServiceAccount || in.RetainsSidecar(c) {
		// The token controller writes the data.
		desired.Add(secret(c, n.TokenSecret).WithType(corev1.SecretTypeServiceAccountToken).
			WithAnnotations(map[string]string{annotationAccountName: n.ServiceAccount}))
	}
	return desired
}

func secret(c raycluster.Cluster, name string) *corev1ac.SecretApplyConfiguration {
	return corev1ac.Secret(name, c.Namespace()).WithLabels(clusterLabels(c))
}

// serviceAccount returns the ServiceAccount of the sidecar. No token is mounted into other containers if the sidecar has a token volume.
func serviceAccount(c raycluster.Cluster) *corev1ac.ServiceAccountApplyConfiguration {
	account := corev1ac.ServiceAccount(c.Names().ServiceAccount, c.Namespace()).WithLabels(clusterLabels(c))
	if c.Injected().HasTokenVolume {
		account.WithAutomountServiceAccountToken(false)
	}
	return account
}

// proxyService returns the Service of the sidecar. OpenShift issues a certificate for it. Behind a Gateway, the appProtocol of the port prevents
// HTTP/2, over which the sidecar rejects the WebSockets of logs. Ingress controllers do not know this appProtocol.
func proxyService(c raycluster.Cluster, in Inputs) *corev1ac.ServiceApplyConfiguration {
	service := corev1ac.Service(c.Names().ProxyService, c.Namespace()).WithLabels(clusterLabels(c))
	port := corev1ac.ServicePort().WithName(raycluster.PortProxyName).WithPort(portHTTPS).
		WithTargetPort(intstr.FromString(raycluster.PortProxyName)).WithProtocol(corev1.ProtocolTCP)
	switch {
	case in.OpenShift:
		service.WithAnnotations(map[string]string{oauthproxy.ServingCertAnnotation: c.Names().ProxyTLS})
	case in.ViaGateway():
		port.WithAppProtocol("kubernetes.io/wss")
	default:
		port.WithAppProtocol(resources.ProtocolHTTPS)
	}
	return service.WithSpec(corev1ac.ServiceSpec().
		WithType(corev1.ServiceTypeClusterIP).
		WithSelector(map[string]string{raycluster.LabelCluster: c.Name(), raycluster.LabelNodeType: raycluster.NodeTypeHead}).
		WithPorts(port))
}

// clusterRoleBinding allows the sidecar to review tokens and access. A cluster-scoped object cannot have a namespaced owner, so the
// controller deletes it before it removes the finalizer of the cluster.
func clusterRoleBinding(c raycluster.Cluster) *apply.Object {
	n := c.Names()
	return &apply.Object{Ownership: apply.Unowned, Config: rbacv1ac.ClusterRoleBinding(n.ClusterRoleBinding).
		WithLabels(map[string]string{raycluster.LabelClusterName: c.Name(), raycluster.LabelClusterNamespace: c.Namespace()}).
		WithRoleRef(rbacv1ac.RoleRef().WithAPIGroup(rbacv1.GroupName).WithKind("ClusterRole").WithName(rbacproxy.DelegatorRole)).
		WithSubjects(rbacv1ac.Subject().WithKind(rbacv1.ServiceAccountKind).WithName(n.ServiceAccount).WithNamespace(c.Namespace()))}
}

package resources

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	rbacv1ac "k8s.io/client-go/applyconfigurations/rbac/v1"

	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/raycluster"
	"github.com/odh-platform/odh-platform-operator/pkg/resources/oauthproxy"
	"github.com/odh-platform/odh-platform-operator/pkg/resources/rbacproxy"
)

const (
	annotationRedirect    = "serviceaccounts.openshift.io/oauth-redirectreference.first"
	annotationAccountName = "kubernetes.io/service-account.name"
	// redirectReference makes an account the OAuth client of the dashboard's Route. It is written as the CodeFlare operator did, so that
	// the annotation does not change with a take-over.
	redirectReference = `{"kind":"OAuthRedirectReference","apiVersion":"v1","reference":{"kind":"Route","name":%q}}`

	portHTTPS = 443
)

// guardObjects are what the sidecar before the dashboard needs: an account, and a key for its cookies or rules for whom it lets
// in. Its certificate is that of the platform or one of certificates.
func guardObjects(c raycluster.Cluster, in Inputs) apply.Desired {
	var desired apply.Desired
	n := c.Names()
	switch in.Guard(c) {
	case raycluster.AuthOAuth:
		redirect := map[string]string{annotationRedirect: fmt.Sprintf(redirectReference, n.Dashboard)}
		cookie := secret(c, n.CookieSecret)
		if len(in.Cookie) > 0 { // it is not known when a cluster is rendered
			cookie.WithData(map[string][]byte{raycluster.KeyCookie: in.Cookie})
		}
		desired.Add(cookie, account(c).WithAnnotations(redirect))
	case raycluster.AuthProxy:
		rules, err := rbacproxy.Config(raycluster.Rule(c.Namespace()))
		utilruntime.Must(err) // texts can be written as YAML
		desired.Add(corev1ac.ConfigMap(n.ProxyConfig, c.Namespace()).WithLabels(marks(c)).WithData(rules), account(c))
	default:
		return nil
	}
	if in.Mode.KeepsAccount {
		// The token controller fills it; nothing in it is ours.
		desired.Add(secret(c, n.TokenSecret).WithType(corev1.SecretTypeServiceAccountToken).
			WithAnnotations(map[string]string{annotationAccountName: n.ServiceAccount}))
	}
	return desired
}

func secret(c raycluster.Cluster, name string) *corev1ac.SecretApplyConfiguration {
	return corev1ac.Secret(name, c.Namespace()).WithLabels(marks(c))
}

// account is that of the sidecar. Where the sidecar mounts its token itself, no other container of the pod gets one.
func account(c raycluster.Cluster) *corev1ac.ServiceAccountApplyConfiguration {
	a := corev1ac.ServiceAccount(c.Names().ServiceAccount, c.Namespace()).WithLabels(marks(c))
	if c.Injected().Token {
		a.WithAutomountServiceAccountToken(false)
	}
	return a
}

// proxyService leads to the sidecar of the head. OpenShift issues its certificate.
func proxyService(c raycluster.Cluster, in Inputs) *corev1ac.ServiceApplyConfiguration {
	service := corev1ac.Service(c.Names().ProxyService, c.Namespace()).WithLabels(marks(c))
	if in.OpenShift {
		service.WithAnnotations(map[string]string{oauthproxy.ServingCertAnnotation: c.Names().ProxyTLS})
	}
	return service.
		WithSpec(corev1ac.ServiceSpec().
			WithType(corev1.ServiceTypeClusterIP).
			WithSelector(map[string]string{raycluster.LabelCluster: c.Name(), raycluster.LabelNodeType: raycluster.NodeTypeHead}).
			WithPorts(corev1ac.ServicePort().WithName(raycluster.PortProxyName).WithPort(portHTTPS).
				WithTargetPort(intstr.FromString(raycluster.PortProxyName)).WithProtocol(corev1.ProtocolTCP)))
}

// binding lets the sidecar ask who calls and what he may. An object of cluster scope has no owner in a namespace: the
// finalizer of the cluster stands for it.
func binding(c raycluster.Cluster) *apply.Object {
	n := c.Names()
	return &apply.Object{Ownership: apply.Unowned, Config: rbacv1ac.ClusterRoleBinding(n.ClusterRoleBinding).
		WithLabels(map[string]string{raycluster.LabelClusterName: c.Name(), raycluster.LabelClusterNamespace: c.Namespace()}).
		WithRoleRef(rbacv1ac.RoleRef().WithAPIGroup(rbacv1.GroupName).WithKind("ClusterRole").WithName(rbacproxy.DelegatorRole)).
		WithSubjects(rbacv1ac.Subject().WithKind(rbacv1.ServiceAccountKind).WithName(n.ServiceAccount).WithNamespace(c.Namespace()))}
}

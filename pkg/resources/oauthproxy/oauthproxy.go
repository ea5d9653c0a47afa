// Package oauthproxy builds the OAuth proxy of OpenShift as a sidecar. It serves TLS, authenticates users by the OAuth server or a token
// review, checks one access review and forwards requests to a server in the same pod. Its OAuth client is a ServiceAccount, whose token it
// uses and which needs ClusterRole system:auth-delegator.
package oauthproxy

import (
	"encoding/json"
	"fmt"

	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/odh-platform/odh-platform-operator/pkg/resources"
)

const (
	// ContainerName is the name of the sidecar, as injected by the legacy operators.
	ContainerName = "oauth-proxy"
	// TLSDir is the directory of tls.crt and tls.key.
	TLSDir = "/etc/tls/private"
	// HealthPath is the path of probes on the serving port.
	HealthPath = "/oauth/healthz"
	// ServingCertAnnotation on a Service requests a certificate of the platform in the named Secret.
	ServingCertAnnotation = "service.beta.openshift.io/serving-cert-secret-name"

	// cookieEnvName is the variable from which the proxy reads the cookie secret.
	cookieEnvName = "OAUTH2_PROXY_COOKIE_SECRET"
	// cookieArgEnvName is the variable that the kubelet expands in cookieArg. All processes of a node can see the argument.
	cookieArgEnvName, cookieArg = "COOKIE_SECRET", "--cookie-secret=$(COOKIE_SECRET)"
)

// Review is the access that callers need. The field order is that of existing Deployments.
type Review struct {
	Resource  string `json:"resource"`
	Namespace string `json:"namespace"`
	Verb      string `json:"verb"`
}

// Arguments holds the settings of a sidecar. UpstreamCA and Extra are optional.
type Arguments struct {
	// Port is the port with TLS, on all addresses of the pod.
	Port int32
	// ServiceAccount is the OAuth client: the ServiceAccount of the pod, or another one whose token is mounted into the sidecar.
	ServiceAccount string
	// Upstream is the URL of the server in the same pod.
	Upstream string
	// UpstreamCA are files with the CAs of an https upstream.
	UpstreamCA []string
	// Review is the access required of callers with a token and of users who log in with a browser.
	Review Review
	// Extra arguments are appended.
	Extra []string
	// CookieInArgs passes the cookie secret as an argument, as earlier releases and the legacy operators did, see [CookieArgEnvVar].
	CookieInArgs bool
}

// DelegateArgs returns the arguments that authorize callers with a token. With these alone every user of OpenShift may log in with a
// browser.
func (a Arguments) DelegateArgs() []string {
	urls, _ := json.Marshal(map[string]Review{"/": a.Review}) // strings: encoding cannot fail
	args := []string{
		fmt.Sprintf("--https-address=:%d", a.Port),
		"--provider=openshift",
		"--openshift-service-account=" + a.ServiceAccount,
		"--upstream=" + a.Upstream,
	}
	for _, file := range a.UpstreamCA {
		args = append(args, "--upstream-ca="+file)
	}
	args = append(args, "--tls-cert="+TLSDir+"/tls.crt", "--tls-key="+TLSDir+"/tls.key")
	if a.CookieInArgs {
		args = append(args, cookieArg)
	}
	return append(args, "--openshift-delegate-urls="+string(urls))
}

// Args returns DelegateArgs, the authorization of browser users and Extra.
func (a Arguments) Args() []string {
	sar, _ := json.Marshal(a.Review) // strings: encoding cannot fail
	return append(append(a.DelegateArgs(), "--openshift-sar="+string(sar)), a.Extra...)
}

// CookieEnvVar returns the variable with the cookie secret, see KeyCookie.
func CookieEnvVar(secret string) *corev1ac.EnvVarApplyConfiguration {
	return resources.SecretEnvVar(cookieEnvName, secret, KeyCookie)
}

// CookieArgEnvVar returns the variable that the arguments refer to with [Arguments.CookieInArgs].
func CookieArgEnvVar(secret string) *corev1ac.EnvVarApplyConfiguration {
	return resources.SecretEnvVar(cookieArgEnvName, secret, KeyCookie)
}

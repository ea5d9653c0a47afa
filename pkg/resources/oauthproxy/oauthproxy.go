// Package oauthproxy builds the OAuth proxy of OpenShift as a sidecar: it serves TLS, asks the OAuth server or the API server
// who calls and whether that user has one right, and passes the request on to a server in the same pod. The account of the
// pod is its OAuth client and needs ClusterRole system:auth-delegator.
package oauthproxy

import (
	"encoding/json"
	"fmt"

	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
)

const (
	// ContainerName is the name of the sidecar wherever the originals injected it.
	ContainerName = "oauth-proxy"
	// TLSDir is where the sidecar finds tls.crt and tls.key.
	TLSDir = "/etc/tls/private"
	// HealthPath answers probes on the port that serves.
	HealthPath = "/oauth/healthz"
	// ServingCertAnnotation on a Service asks the platform for a certificate in the named Secret.
	ServingCertAnnotation = "service.beta.openshift.io/serving-cert-secret-name"

	cookieEnvName = "COOKIE_SECRET"
)

// Review is the right that callers need, in the order in which it was always written.
type Review struct {
	Resource  string `json:"resource"`
	Namespace string `json:"namespace"`
	Verb      string `json:"verb"`
}

// Arguments are those of one sidecar. All fields but UpstreamCA and Extra are needed.
type Arguments struct {
	// Port is where it serves TLS, on all addresses of the pod.
	Port int32
	// ServiceAccount is the account of the pod.
	ServiceAccount string
	// Upstream is the URL of the server in the same pod.
	Upstream string
	// UpstreamCA are files with the certificates by which an https upstream is known.
	UpstreamCA []string
	// Review is the right that callers with a token need, and that users who log in by the browser need.
	Review Review
	// Extra are appended as they are.
	Extra []string
}

// Delegating are the arguments that check callers with a token. With them alone every user of OpenShift may log in by the
// browser.
func (a Arguments) DelegateArgs() ([]string, error) {
	urls, err := json.Marshal(map[string]Review{"/": a.Review})
	if err != nil {
		return nil, fmt.Errorf("encoding the delegate URLs: %w", err)
	}
	args := []string{
		fmt.Sprintf("--https-address=:%d", a.Port),
		"--provider=openshift",
		"--openshift-service-account=" + a.ServiceAccount,
		"--upstream=" + a.Upstream,
	}
	for _, file := range a.UpstreamCA {
		args = append(args, "--upstream-ca="+file)
	}
	return append(args,
		"--tls-cert="+TLSDir+"/tls.crt",
		"--tls-key="+TLSDir+"/tls.key",
		"--cookie-secret=$("+cookieEnvName+")",
		"--openshift-delegate-urls="+string(urls),
	), nil
}

// All are Delegating and the same demand on users who log in by the browser.
func (a Arguments) Args() ([]string, error) {
	args, err := a.DelegateArgs()
	if err != nil {
		return nil, err
	}
	sar, err := json.Marshal(a.Review)
	if err != nil {
		return nil, fmt.Errorf("encoding the access review: %w", err)
	}
	return append(append(args, "--openshift-sar="+string(sar)), a.Extra...), nil
}

// CookieVariable gives the sidecar the key of its cookies, see KeyCookie.
func CookieEnvVar(secret string) *corev1ac.EnvVarApplyConfiguration {
	return corev1ac.EnvVar().WithName(cookieEnvName).WithValueFrom(corev1ac.EnvVarSource().
		WithSecretKeyRef(corev1ac.SecretKeySelector().WithName(secret).WithKey(KeyCookie)))
}

package oauthproxy

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
)

func TestArguments(t *testing.T) {
	plain := Arguments{
		Port: 8443, ServiceAccount: "sa", Upstream: "http://localhost:8265", Review: Review{Resource: "pods", Namespace: "ns", Verb: "get"},
	}
	secured := plain
	secured.Upstream, secured.UpstreamCA, secured.Extra = "https://mesh.ns:8008", []string{"/a", "/b"}, []string{"--request-logging=true"}
	want := []string{
		"--https-address=:8443", "--provider=openshift", "--openshift-service-account=sa", "--upstream=http://localhost:8265",
		"--tls-cert=/etc/tls/private/tls.crt", "--tls-key=/etc/tls/private/tls.key",
		`--openshift-delegate-urls={"/":{"resource":"pods","namespace":"ns","verb":"get"}}`,
	}
	if diff := cmp.Diff(want, plain.DelegateArgs()); diff != "" {
		t.Errorf("DelegateArgs (-want +got):\n%s", diff)
	}
	want = append(want, `--openshift-sar={"resource":"pods","namespace":"ns","verb":"get"}`)
	if diff := cmp.Diff(want, plain.Args()); diff != "" {
		t.Errorf("Args (-want +got):\n%s", diff)
	}
	want = []string{
		"--https-address=:8443", "--provider=openshift", "--openshift-service-account=sa", "--upstream=https://mesh.ns:8008",
		"--upstream-ca=/a", "--upstream-ca=/b",
		"--tls-cert=/etc/tls/private/tls.crt", "--tls-key=/etc/tls/private/tls.key",
		`--openshift-delegate-urls={"/":{"resource":"pods","namespace":"ns","verb":"get"}}`,
		`--openshift-sar={"resource":"pods","namespace":"ns","verb":"get"}`, "--request-logging=true",
	}
	if diff := cmp.Diff(want, secured.Args()); diff != "" {
		t.Errorf("Args for an upstream with TLS (-want +got):\n%s", diff)
	}
}

// With CookieInArgs, the kubelet expands the cookie secret into the command line. The variables refer to the Secret.
func TestCookieEnvVar(t *testing.T) {
	if args := (Arguments{CookieInArgs: true}).DelegateArgs(); args[6] != "--cookie-secret=$(COOKIE_SECRET)" {
		t.Errorf("arguments with CookieInArgs: %q", args)
	}
	for name, v := range map[string]*corev1ac.EnvVarApplyConfiguration{
		"OAUTH2_PROXY_COOKIE_SECRET": CookieEnvVar("cookie"), "COOKIE_SECRET": CookieArgEnvVar("cookie"),
	} {
		ref := v.ValueFrom.SecretKeyRef
		if *v.Name != name || *ref.Name != "cookie" || *ref.Key != "cookie_secret" || v.Value != nil {
			t.Errorf("%s: variable %+v", name, v)
		}
	}
}

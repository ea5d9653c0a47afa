package oauthproxy

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestArguments(t *testing.T) {
	plain := Arguments{
		Port: 8443, ServiceAccount: "sa", Upstream: "http://localhost:8265", Review: Review{Resource: "pods", Namespace: "ns", Verb: "get"},
	}
	secured := plain
	secured.Upstream, secured.UpstreamCA, secured.Extra = "https://mesh.ns:8008", []string{"/a", "/b"}, []string{"--request-logging=true"}
	want := []string{
		"--https-address=:8443", "--provider=openshift", "--openshift-service-account=sa", "--upstream=http://localhost:8265",
		"--tls-cert=/etc/tls/private/tls.crt", "--tls-key=/etc/tls/private/tls.key", "--cookie-secret=$(COOKIE_SECRET)",
		`--openshift-delegate-urls={"/":{"resource":"pods","namespace":"ns","verb":"get"}}`,
	}
	got, err := plain.DelegateArgs()
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("tokens only, error %v (-want +got):\n%s", err, diff)
	}
	got, err = plain.Args()
	want = append(want, `--openshift-sar={"resource":"pods","namespace":"ns","verb":"get"}`)
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("all, error %v (-want +got):\n%s", err, diff)
	}
	got, err = secured.Args()
	want = []string{
		"--https-address=:8443", "--provider=openshift", "--openshift-service-account=sa", "--upstream=https://mesh.ns:8008",
		"--upstream-ca=/a", "--upstream-ca=/b",
		"--tls-cert=/etc/tls/private/tls.crt", "--tls-key=/etc/tls/private/tls.key", "--cookie-secret=$(COOKIE_SECRET)",
		`--openshift-delegate-urls={"/":{"resource":"pods","namespace":"ns","verb":"get"}}`,
		`--openshift-sar={"resource":"pods","namespace":"ns","verb":"get"}`, "--request-logging=true",
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("an upstream with TLS, error %v (-want +got):\n%s", err, diff)
	}
}

func TestCookieEnvVar(t *testing.T) {
	v := CookieEnvVar("seal")
	ref := v.ValueFrom.SecretKeyRef
	if *v.Name != "COOKIE_SECRET" || *ref.Name != "seal" || *ref.Key != "cookie_secret" || v.Value != nil {
		t.Errorf("variable %+v", v)
	}
}

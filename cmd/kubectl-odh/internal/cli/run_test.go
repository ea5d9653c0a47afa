package cli

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Errors that new users meet say what to do.
func TestExplain(t *testing.T) {
	asked := func(err error) error {
		return fmt.Errorf("asking: %w", &url.Error{Op: "Get", URL: "https://one.invalid:6443/api?timeout=20s", Err: err})
	}
	for name, c := range map[string]struct {
		err  error
		want []string
	}{
		"an error":      {errors.New("no\nanswer\n"), []string{"no; answer"}},
		"not there":     {asked(errors.New("connection refused")), []string{"the API server at https://one.invalid:6443 cannot be reached: connection refused", "--context and --kubeconfig choose another"}},
		"too slow":      {asked(context.DeadlineExceeded), []string{"at https://one.invalid:6443 does not answer in time", "--request-timeout"}},
		"another CA":    {asked(&tls.CertificateVerificationError{Err: errors.New("unknown authority")}), []string{"has a certificate that is not trusted", "unknown authority", "certificate-authority"}},
		"no address":    {&url.Error{Op: "Get", URL: ":", Err: errors.New("odd")}, []string{"the API server cannot be reached: odd"}},
		"not logged in": {fmt.Errorf("asking: %w", apierrors.NewUnauthorized("Unauthorized")), []string{"does not know who you are: log in again", "(asking: Unauthorized)"}},
	} {
		got := explain(c.err)
		for _, want := range c.want {
			if !strings.Contains(got, want) || strings.Contains(got, "\n") {
				t.Errorf("%s: %q lacks %q", name, got, want)
			}
		}
	}
}

// Without any kubeconfig the error says where one was expected.
func TestConnectWithoutKubeconfig(t *testing.T) {
	home, named := t.TempDir(), filepath.Join(t.TempDir(), "gone")
	t.Setenv("HOME", home)
	t.Setenv("KUBERNETES_SERVICE_HOST", "") // else this would be a pod
	t.Setenv("KUBECONFIG", named)
	want := "finding the cluster: there is no kubeconfig in " + named + "; set KUBECONFIG to the path of one, or use --kubeconfig"
	if got := connect(t); got.stderr != "kubectl-odh: "+want+"\n" {
		t.Errorf("%+v, want %s", got, want)
	}
}

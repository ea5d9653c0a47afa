package cli

import (
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/odh-platform/odh-platform-operator/pkg/status/health"
)

func TestExplainAddsAdviceToCommonErrors(t *testing.T) {
	requestError := func(err error) error {
		return fmt.Errorf("asking: %w", &url.Error{Op: "Get", URL: "https://one.invalid:6443/api?timeout=20s", Err: err})
	}
	for name, c := range map[string]struct {
		err  error
		want []string
	}{
		"other error":        {errors.New("no\nanswer\n"), []string{"no; answer"}},
		"connection refused": {requestError(errors.New("connection refused")), []string{"the API server does not answer: ", "https://one.invalid:6443", "connection refused", "choose another cluster with --context or --kubeconfig"}},
		"unauthorized":       {fmt.Errorf("asking: %w", apierrors.NewUnauthorized("Unauthorized")), []string{"does not accept your credentials: log in again", "(asking: Unauthorized)"}},
	} {
		got := explain(c.err)
		for _, want := range c.want {
			if !strings.Contains(got, want) || strings.Contains(got, "\n") {
				t.Errorf("%s: %q is not one line with %q", name, got, want)
			}
		}
	}
}

// Without a kubeconfig, the error suggests KUBECONFIG and --kubeconfig.
func TestConnectWithoutKubeconfig(t *testing.T) {
	home, missingPath := t.TempDir(), filepath.Join(t.TempDir(), "missing")
	t.Setenv("HOME", home)
	t.Setenv("KUBERNETES_SERVICE_HOST", "") // otherwise client-go uses the configuration of the pod
	t.Setenv("KUBECONFIG", missingPath)
	if got := connect(t); got.code != ExitFailed || !strings.Contains(got.stderr, "finding the cluster: ") || !strings.Contains(got.stderr, "; set KUBECONFIG, or use --kubeconfig") {
		t.Errorf("got %+v, want an error that names KUBECONFIG and --kubeconfig", got)
	}
}

// Messages of rows that are not healthy are printed below the row, wrapped and without control characters.
func TestTable(t *testing.T) {
	table := Table{Columns: []string{"Name", "State"}}
	long := strings.Repeat("word ", 30)
	table.Add(Below("  ", health.Verdict{State: health.Failed, Message: long + "\x1b[31mred\nline"}), "  a", "Failed")
	table.Add(Below("  ", health.Verdict{State: health.Healthy, Message: "not shown"}), "longer", "")
	lines := strings.Split(table.String(), "\n")
	want := []string{"NAME     STATE", "  a      Failed", "  " + strings.TrimSpace(strings.Repeat("word ", 21)), "  " + strings.Repeat("word ", 9) + "[31mred line", "longer", ""}
	if !slices.Equal(lines, want) {
		t.Errorf("got %q, want %q", lines, want)
	}
}

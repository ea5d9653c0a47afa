package resources

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
	"github.com/odh-platform/odh-platform-operator/test/mlflowtest"
)

func TestCABundle(t *testing.T) {
	withCustomCA := func(s *mlflowv1.MLflowSpec) {
		s.CABundleConfigMap = &mlflowv1.CABundleConfigMapRef{Name: "corporate-ca"}
	}
	platform := with(platformInputs["plain"], func(in *Inputs) { in.PlatformCABundle = true })
	for name, c := range map[string]struct {
		m          *mlflowv1.MLflow
		in         Inputs
		configMaps []string
		paths      string
	}{
		"[mlflow-12] no CA sources":        {mlflowtest.MLflow(), platformInputs["plain"], nil, ""},
		"[mlflow-12] user":                 {mlflowtest.MLflow(withCustomCA), platformInputs["plain"], []string{"corporate-ca"}, "/etc/pki/tls/certs/custom"},
		"[mlflow-12] platform":             {mlflowtest.MLflow(), platform, []string{"odh-trusted-ca-bundle"}, "/etc/pki/tls/certs/platform"},
		"[mlflow-12] both, platform first": {mlflowtest.MLflow(withCustomCA), platform, []string{"odh-trusted-ca-bundle", "corporate-ca"}, "/etc/pki/tls/certs/platform /etc/pki/tls/certs/custom"},
	} {
		t.Run(name, func(t *testing.T) {
			pod := podOf(t, c.m, c.in)
			var configMaps []string
			for _, v := range pod.Volumes {
				if v.ConfigMap != nil {
					configMaps = append(configMaps, v.ConfigMap.Name)
					if v.ConfigMap.Optional == nil || !*v.ConfigMap.Optional {
						t.Errorf("volume %s is not optional", v.Name)
					}
				}
			}
			if diff := cmp.Diff(c.configMaps, configMaps); diff != "" {
				t.Errorf("sources (-want +got):\n%s", diff)
			}
			_, trusts := envOf(t, c.m, c.in)["SSL_CERT_FILE"]
			if with := c.configMaps != nil; trusts != with || len(pod.InitContainers) == 1 != with || len(pod.Containers) == 2 != with {
				t.Fatalf("%d init containers, %d containers, SSL_CERT_FILE: %v", len(pod.InitContainers), len(pod.Containers), trusts)
			}
			for _, container := range append(pod.InitContainers, pod.Containers[1:]...) {
				if got := environment(container)["CA_BUNDLE_MOUNT_PATHS"]; got != c.paths {
					t.Errorf("%s reads %q, want %q", container.Name, got, c.paths)
				}
			}
		})
	}
	t.Run("[mlflow-12] all clients trust the combined file", func(t *testing.T) {
		env := envOf(t, mlflowtest.MLflow(withCustomCA), platform)
		const combined = "/etc/pki/tls/certs/combined/ca-bundle.crt"
		for name, want := range map[string]string{
			"SSL_CERT_FILE": combined, "REQUESTS_CA_BUNDLE": combined, "CURL_CA_BUNDLE": combined, "AWS_CA_BUNDLE": combined, "PGSSLROOTCERT": combined,
			"MLFLOW_MYSQL_CA": combined, "PGSSLMODE": "verify-full", "MLFLOW_S3_IGNORE_TLS": "false",
		} {
			if env[name].Value != want {
				t.Errorf("%s = %q, want %q", name, env[name].Value, want)
			}
		}
	})
}

func environment(c corev1.Container) map[string]string {
	env := map[string]string{}
	for _, e := range c.Env {
		env[e.Name] = e.Value
	}
	return env
}

// bundle is a directory with the files that the programs read and write in a pod.
type bundle struct {
	dir string
	env []string
}

func newBundle(t *testing.T) bundle {
	t.Helper()
	b := bundle{dir: t.TempDir()}
	for _, d := range []string{"platform", "custom", "combined"} {
		if err := os.Mkdir(filepath.Join(b.dir, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	b.write(t, "system.crt", "system")
	b.env = append(os.Environ(),
		"CA_BUNDLE_FILE_PATHS="+b.path("system.crt")+" "+b.path("absent.crt"),
		"CA_BUNDLE_MOUNT_PATHS="+b.path("platform")+" "+b.path("custom")+" "+b.path("absent"),
		"CA_BUNDLE_OUTPUT="+b.path("combined/ca-bundle.crt"),
		"CA_BUNDLE_WATCH_INTERVAL=0.05")
	return b
}

func (b bundle) path(name string) string { return filepath.Join(b.dir, name) }

func (b bundle) write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(b.path(name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func (b bundle) combined(t *testing.T) string {
	t.Helper()
	data, err := os.ReadFile(b.path("combined/ca-bundle.crt"))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return string(data)
}

func TestCombineProgram(t *testing.T) {
	b := newBundle(t)
	b.write(t, "platform/ca-bundle.crt", "-----BEGIN CERTIFICATE-----\nplatform")
	b.write(t, "custom/root.crt", "root\n")
	b.write(t, "custom/extra.pem", "extra")
	b.write(t, "custom/README", "ignored")
	run := exec.CommandContext(t.Context(), "/bin/sh", "-c", combineProgram)
	run.Env = b.env
	output, err := run.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: unexpected output: %s", err, output)
	}
	want := "system\n-----BEGIN CERTIFICATE-----\nplatform\nroot\n\nextra\n"
	if diff := cmp.Diff(want, b.combined(t)); diff != "" {
		t.Errorf("bundle (-want +got):\n%s", diff)
	}
	info, err := os.Stat(b.path("combined/ca-bundle.crt"))
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o644 {
		t.Errorf("got file mode %v, want 0644", info.Mode())
	}
	if got := string(output); got != "trusting 1 certificates from 4 sources\n" {
		t.Errorf("got log %q", got)
	}
	files, err := os.ReadDir(b.path("combined"))
	if err != nil || len(files) != 1 {
		t.Errorf("got files %v, error %v, want only the bundle", files, err)
	}
}

func TestCombineProgramFails(t *testing.T) {
	b := newBundle(t)
	if err := os.Remove(b.path("combined")); err != nil {
		t.Fatal(err)
	}
	run := exec.CommandContext(t.Context(), "/bin/sh", "-c", combineProgram)
	run.Env = b.env
	if output, err := run.CombinedOutput(); err == nil {
		t.Errorf("no error without the output directory: %s", output)
	}
}

func TestWatchProgram(t *testing.T) {
	b := newBundle(t)
	log, err := os.Create(b.path("log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	run := exec.CommandContext(ctx, "/bin/sh", "-c", watchProgram)
	run.Env, run.Stdout, run.Stderr, run.WaitDelay = b.env, log, log, time.Second
	if err := run.Start(); err != nil {
		t.Fatal(err)
	}
	logged := func() string { data, _ := os.ReadFile(log.Name()); return string(data) }
	waitFor := func(want string, reached func() bool) {
		t.Helper()
		tick := time.NewTicker(10 * time.Millisecond)
		defer tick.Stop()
		for !reached() {
			select {
			case <-ctx.Done():
				t.Fatalf("the bundle is %q and the log %q, want %q", b.combined(t), logged(), want)
			case <-tick.C:
			}
		}
	}
	waitForBundle := func(want string) {
		t.Helper()
		waitFor(want, func() bool { return b.combined(t) == want })
	}
	waitForBundle("system\n")
	b.write(t, "custom/root.crt", "root")
	waitForBundle("system\nroot\n")
	b.write(t, "custom/root.crt", "renewed")
	waitForBundle("system\nrenewed\n")

	// The watcher keeps running while the output cannot be written, and writes it later.
	if err := os.Rename(b.path("combined"), b.path("moved")); err != nil {
		t.Fatal(err)
	}
	b.write(t, "custom/root.crt", "third")
	b.write(t, "platform/a.pem", "fourth")
	waitFor("a failed write", func() bool { return strings.Contains(logged(), "the previous bundle stays in place") })
	if err := os.Rename(b.path("moved"), b.path("combined")); err != nil {
		t.Fatal(err)
	}
	waitForBundle("system\nfourth\nthird\n")

	if err := run.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := run.Wait(); err != nil {
		t.Errorf("the watcher did not exit cleanly: %v: %s", err, logged())
	}
	if !strings.Contains(logged(), "certificates from 1 sources") {
		t.Errorf("got log %q", logged())
	}
}

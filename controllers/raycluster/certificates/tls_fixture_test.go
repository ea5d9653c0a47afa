package certificates

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/odh-platform/odh-platform-operator/pkg/raycluster"
)

// workspace is the directory of certificates in pods, replaced by a temporary directory.
const workspace = "/home/ray/workspace"

// podDir is a directory with the files that a pod mounts.
type podDir struct {
	t       *testing.T
	fixture *fixture
	dir     string
	tls     raycluster.TLS
	ip      string
	role    string
}

// newPodDir creates the files of a pod with the volumes that admission injects.
func (f *fixture) newPodDir(role, ip string, issuer raycluster.Issuer) *podDir {
	f.t.Helper()
	c := raycluster.View(demo(f.t).Object)
	d := &podDir{t: f.t, fixture: f, dir: f.t.TempDir(), ip: ip, role: role, tls: raycluster.TLS{
		Issuer: issuer, Names: c.Names(), Head: role == raycluster.NodeTypeHead, Image: "example.com/openssl:1",
		SignedNames: []string{c.ClientDNSName(f.domain), c.HeadDNSName()},
	}}
	d.mount()
	return d
}

// mount updates the volumes.
func (d *podDir) mount() {
	d.t.Helper()
	paths := map[string]string{}
	for _, mount := range d.tls.Mounts() {
		paths[*mount.Name] = filepath.Join(d.dir, strings.TrimPrefix(*mount.MountPath, workspace))
	}
	for _, volume := range d.tls.Volumes() {
		path := paths[*volume.Name]
		if err := os.MkdirAll(path, 0o755); err != nil {
			d.t.Fatal(err)
		}
		if volume.Secret == nil {
			continue
		}
		secret := d.fixture.secret(*volume.Secret.SecretName)
		files := map[string]string{} // all keys, unless the volume selects some
		for key := range secret.Data {
			files[key] = key
		}
		if len(volume.Secret.Items) > 0 {
			clear(files)
		}
		for _, item := range volume.Secret.Items {
			files[*item.Key] = *item.Path
		}
		for key, file := range files {
			// A kubelet swaps a symbolic link, so updates are atomic.
			next := filepath.Join(path, file+".next")
			if err := errors.Join(os.WriteFile(next, secret.Data[key], 0o600), os.Rename(next, filepath.Join(path, file))); err != nil {
				d.t.Fatal(err)
			}
		}
	}
}

// command returns the command of the init container with replaced directories.
func (d *podDir) command(ctx context.Context) *exec.Cmd {
	d.t.Helper()
	hosts := filepath.Join(d.dir, "hosts")
	if err := os.WriteFile(hosts, []byte("127.0.0.1\tlocalhost\n"+d.ip+"\tpod\n"), 0o600); err != nil {
		d.t.Fatal(err)
	}
	local := strings.NewReplacer(workspace, d.dir, "/etc/hosts", hosts)
	container := d.tls.InitContainer()
	var args []string
	for _, arg := range container.Command {
		args = append(args, local.Replace(arg))
	}
	run := exec.CommandContext(ctx, args[0], args[1:]...)
	run.Env = []string{"PATH=" + os.Getenv("PATH"), "FQ_RAY_IP=demo-head-svc.team.svc.cluster.local"} // from KubeRay
	for _, env := range container.Env {
		value := ""
		switch {
		case env.Value != nil:
			value = local.Replace(*env.Value)
		case *env.ValueFrom.FieldRef.FieldPath == "status.podIP":
			value = d.ip
		case strings.Contains(*env.ValueFrom.FieldRef.FieldPath, raycluster.LabelNodeType):
			value = d.role
		default:
			d.t.Fatalf("unexpected field %s", *env.ValueFrom.FieldRef.FieldPath)
		}
		run.Env = append(run.Env, *env.Name+"="+value)
	}
	return run
}

// runInitContainer runs the init container, which must succeed within a minute.
func (d *podDir) runInitContainer() {
	d.t.Helper()
	ctx, cancel := context.WithTimeout(d.t.Context(), time.Minute)
	defer cancel()
	if out, err := d.command(ctx).CombinedOutput(); err != nil {
		d.t.Fatalf("the init container of %s: %v\n%s", d.ip, err, out)
	}
}

// process holds the certificate and CAs that a Ray process reads at its start.
type process struct {
	certificate tls.Certificate
	trusted     *x509.CertPool
	ip          string
}

func (d *podDir) process() process {
	d.t.Helper()
	path := func(name string) string { return filepath.Join(d.dir, "tls", name) }
	pair, err := tls.LoadX509KeyPair(path("server.crt"), path("server.key"))
	if err != nil {
		d.t.Fatal(err)
	}
	bundle, err := os.ReadFile(path("ca.crt"))
	if err != nil {
		d.t.Fatal(err)
	}
	p := process{certificate: pair, trusted: x509.NewCertPool(), ip: d.ip}
	if !p.trusted.AppendCertsFromPEM(bundle) {
		d.t.Fatal("ca.crt contains no certificate")
	}
	return p
}

// client returns the TLS client configuration of a process.
func (p process) client(name string, now time.Time) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{p.certificate}, RootCAs: p.trusted, ServerName: name,
		Time: func() time.Time { return now },
	}
}

// accept serves one connection of a client with mutual TLS and exchanges data. It returns an error if one side rejects the other.
func (p process) accept(client *tls.Config, now time.Time) error {
	listener, err := tls.Listen("tcp", net.JoinHostPort(p.ip, "0"), &tls.Config{
		MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{p.certificate}, ClientCAs: p.trusted,
		ClientAuth: tls.RequireAndVerifyClientCert, Time: func() time.Time { return now },
	})
	if err != nil {
		return err
	}
	defer func() { _ = listener.Close() }()
	served := make(chan error, 1)
	go func() { served <- serveOne(listener) }()
	dialer := tls.Dialer{NetDialer: &net.Dialer{Timeout: time.Minute}, Config: client}
	connection, err := dialer.Dial("tcp", listener.Addr().String())
	if err == nil {
		_, err = fmt.Fprint(connection, "ping")
		if err == nil {
			_, err = io.ReadFull(connection, make([]byte, 4))
		}
		_ = connection.Close()
	}
	return errors.Join(err, <-served)
}

// serveOne answers one connection.
func serveOne(listener net.Listener) error {
	connection, err := listener.Accept()
	if err != nil {
		return err
	}
	defer func() { _ = connection.Close() }()
	if _, err := io.ReadFull(connection, make([]byte, 4)); err != nil {
		return err
	}
	_, err = fmt.Fprint(connection, "pong")
	return err
}

// requireOpenSSL skips a test unless sh, openssl and awk are installed, as in the image of the init container.
func requireOpenSSL(t *testing.T) {
	t.Helper()
	for _, program := range []string{"sh", "openssl", "awk"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("%s is not installed; the image of the init container contains it (Debian: apt-get install openssl)", program)
		}
	}
}

// atCurrentTime sets the clock to the current time, which openssl uses.
func (f *fixture) atCurrentTime() *fixture {
	f.clock.SetTime(time.Now())
	return f
}

// dataOf returns a copy of the data of a Secret.
func (f *fixture) dataOf(name string) map[string][]byte { return maps.Clone(f.secret(name).Data) }

// fileNames returns the sorted names of the files in a directory.
func fileNames(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range entries {
		out = append(out, e.Name())
	}
	slices.Sort(out)
	return out
}

// withPods creates a head and workers with the given addresses.
func (f *fixture) withPods(head string, workers ...string) *fixture {
	f.t.Helper()
	f.create(pendingPod("h", raycluster.NodeTypeHead, head))
	for i, ip := range workers {
		f.create(pendingPod(fmt.Sprintf("w%d", i), raycluster.NodeTypeWorker, ip))
	}
	return f
}

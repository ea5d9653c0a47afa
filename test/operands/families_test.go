//go:build operands

package operands

import (
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
	"github.com/odh-platform/odh-platform-operator/controllers/mlflow/resources"
)

// healthScript requests a URL and prints the status. The certificate is for localhost, which may resolve to the other address family.
const healthScript = `import ssl, sys, urllib.request
context = ssl.create_default_context(cafile=sys.argv[2])
context.check_hostname = False
print(urllib.request.urlopen(sys.argv[1], context=context, timeout=10).status)`

// TestSingleAddressFamily starts MLflow in a network with one address family, in which the kubelet can probe no other address. [BR-F6]
func TestSingleAddressFamily(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		ipv6                    bool
		address, removedAddress string
	}{
		"IPv6": {true, "[::1]", "127.0.0.1/8"},
		"IPv4": {false, "127.0.0.1", "::1/128"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPod(t)
			p.port = "8443" // free in the network of the process
			spec := mlflowv1.MLflowSpec{BackendStoreURI: "sqlite:////mlflow/mlflow.db", ServeArtifacts: true, Storage: &corev1.PersistentVolumeClaimSpec{}}
			if migration := p.migrate(spec, oldest); migration.code != 0 {
				t.Fatalf("migration: %+v", migration)
			}
			container := render(t, spec, func(in *resources.Inputs) { in.IPv6 = test.ipv6 }).server().Containers[0]
			server := p.command(t.Context(), &container)
			isolate(server, "ip address delete "+test.removedAddress+" dev lo")
			log, err := os.Create(p.path("server.log"))
			p.must(err)
			defer log.Close()
			server.Stdout, server.Stderr = log, log
			p.must(server.Start())
			exited := make(chan struct{})
			go func() { _ = server.Wait(); close(exited) }()
			t.Cleanup(func() { _ = syscall.Kill(-server.Process.Pid, syscall.SIGKILL); <-exited })
			NewWithT(t).Eventually(func(g Gomega) {
				g.Expect(exited).NotTo(BeClosed())
				client := exec.CommandContext(t.Context(), "nsenter", "--net=/proc/"+strconv.Itoa(server.Process.Pid)+"/ns/net",
					p.image.Path("python"), "-c", healthScript, "https://"+test.address+":"+p.port+container.LivenessProbe.HTTPGet.Path, p.path("pki/custom/ca.crt"))
				response, err := client.CombinedOutput()
				g.Expect(err).NotTo(HaveOccurred(), string(response))
				g.Expect(strings.TrimSpace(string(response))).To(Equal("200"))
			}, startExpiry, pollInterval).Should(Succeed(), func() string { return p.read("server.log") })
			report.add("MLflow "+p.image.release+", network with "+name+" only", "200")
		})
	}
}

// isolate changes a command to run in its own network namespace, after the loopback interface is up and the setup has run.
func isolate(command *exec.Cmd, setup string) {
	script := `export PATH="$PATH:/usr/sbin:/sbin"; ip link set lo up && ` + setup + ` && exec "$@"`
	command.Args = append([]string{"sh", "-c", script, "sh", command.Path}, command.Args[1:]...)
	command.Path = "/bin/sh"
	if command.SysProcAttr == nil {
		command.SysProcAttr = &syscall.SysProcAttr{}
	}
	command.SysProcAttr.Cloneflags |= syscall.CLONE_NEWNET
}

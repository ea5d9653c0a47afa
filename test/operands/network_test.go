//go:build operands

package operands

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
	"github.com/odh-platform/odh-platform-operator/apis/modelregistry/v1beta1"
	"github.com/odh-platform/odh-platform-operator/pkg/resources/rbacproxy"
	"github.com/odh-platform/odh-platform-operator/test/cluster"
	"github.com/odh-platform/odh-platform-operator/test/cluster/operator"
)

// podNetworks are the networks of pods in clusters with one address family. Kubelets and clients reach a pod only at its address. The
// loopback interface of a pod always has 127.0.0.1, because the kernel assigns it; a cluster without IPv6 has no ::1.
var podNetworks = map[string]podNetwork{
	"IPv6": {address: "fd00:9::5", api: "fd00:9::1", host: "::", setup: "ip -6 address add fd00:9::5/128 dev lo nodad"},
	"IPv4": {address: "10.9.0.5", api: "10.9.0.1", host: "0.0.0.0", setup: "ip address add 10.9.0.5/32 dev lo && ip -6 address delete ::1/128 dev lo"},
}

type podNetwork struct {
	address string
	// api is the address of the Service of the API server.
	api string
	// host is the value of the argument --host of MLflow.
	host string
	// setup is a command that configures the addresses of the loopback interface.
	setup string
}

// networkVariable is the environment variable with the name of the network of the process.
const networkVariable = "OPERANDS_POD_NETWORK"

// podPrograms are tests that start the program of a pod with its ports and arguments, and reach it at the address of the pod.
var podPrograms = map[string]func(podNetwork, *testing.T){
	"registry":            podNetwork.startRegistry,
	"registry with proxy": podNetwork.startProxy,
	"etcd of ModelMesh":   podNetwork.startEtcd,
	"manager":             podNetwork.startManager,
}

// TestPodNetworks runs itself in each network, and starts the programs of pods there. [BR-F6]
func TestPodNetworks(t *testing.T) {
	if name := os.Getenv(networkVariable); name != "" {
		for program, start := range podPrograms {
			t.Run(program, func(t *testing.T) { start(podNetworks[name], t) })
		}
		return
	}
	t.Parallel()
	// The networks have no access to the internet.
	_, err := cluster.BuildPeer(t.Context(), cluster.KubeRBACProxy, os.Stderr)
	must(t, err)
	for name, network := range podNetworks {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			command := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestPodNetworks$", "-test.v", "-test.parallel=1", "-test.timeout=20m")
			command.Env = append(os.Environ(), networkVariable+"="+name)
			isolate(command, network.setup)
			command.SysProcAttr.Setpgid = true
			command.Cancel = func() error { return syscall.Kill(-command.Process.Pid, syscall.SIGKILL) }
			output, err := command.CombinedOutput()
			if err != nil {
				t.Fatalf("%v: if network namespaces are forbidden, run this as root outside restricted containers\n%s", err, output)
			}
			for program := range podPrograms {
				passLine := "--- PASS: TestPodNetworks/" + strings.ReplaceAll(program, " ", "_") + " "
				if !strings.Contains(string(output), passLine) {
					t.Errorf("%s was not started\n%s", program, output)
				}
				report.add(program+", pods with "+name+" only", "reached")
			}
		})
	}
}

// waitForStatus waits until a URL of the pod returns a status.
func (n podNetwork) waitForStatus(t *testing.T, scheme string, port int32, path string, status int, log func() string) {
	t.Helper()
	insecureClient := &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true, // kubelets do not verify certificates either
	}}
	url := fmt.Sprintf("%s://%s%s", scheme, net.JoinHostPort(n.address, fmt.Sprint(port)), path)
	NewWithT(t).Eventually(func(g Gomega) {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
		g.Expect(err).NotTo(HaveOccurred())
		response, err := insecureClient.Do(request)
		g.Expect(err).NotTo(HaveOccurred())
		defer response.Body.Close()
		text, err := io.ReadAll(response.Body)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(response.StatusCode).To(Equal(status), "%s", text)
	}, startExpiry, pollInterval).Should(Succeed(), func() string { return url + "\n" + log() })
}

// waitForProbes waits until all HTTP probes of a container succeed.
func (n podNetwork) waitForProbes(t *testing.T, c *corev1.Container, log func() string) {
	t.Helper()
	for _, probe := range []*corev1.Probe{c.StartupProbe, c.LivenessProbe, c.ReadinessProbe} {
		if probe == nil || probe.HTTPGet == nil {
			continue
		}
		action := probe.HTTPGet
		port := action.Port.IntVal
		if index := slices.IndexFunc(c.Ports, func(p corev1.ContainerPort) bool { return p.Name == action.Port.StrVal }); action.Port.StrVal != "" {
			port = c.Ports[index].ContainerPort
		}
		n.waitForStatus(t, cmp.Or(strings.ToLower(string(action.Scheme)), "http"), port, action.Path, http.StatusOK, log)
	}
}

func (n podNetwork) startRegistry(t *testing.T) { n.registry(t, "plain", nil) }

func (n podNetwork) startProxy(t *testing.T) { n.registry(t, "proxied", &v1beta1.ProxyConfig{}) }

// registry starts the containers of a registry with the rendered addresses and ports. Its proxy connects to the server at a loopback
// address.
func (n podNetwork) registry(t *testing.T, name string, proxy *v1beta1.ProxyConfig) {
	t.Helper()
	must(t, database.Create(t.Context(), name))
	spec, content := postgresRegistry(name)
	spec.KubeRBACProxy = proxy
	r := renderRegistry(t, "registries", spec)
	maps.Copy(r.content, content)
	r.content["Secret/"+registryName+"-kube-rbac-proxy"] = map[string]string{
		corev1.TLSCertKey: readFile(t, authority.Certificate), corev1.TLSPrivateKeyKey: readFile(t, authority.Key),
	}
	p := newRegistryPod(t, r.pod(), r.content)
	p.replacements = []replacement{volumeReplacement}
	for i := range p.spec.Containers {
		c := &p.spec.Containers[i]
		if c.Name == rbacproxy.ContainerName {
			// The proxy does not review probes.
			c.Args = append(c.Args, "--kubeconfig="+writeFile(t, p.dir, "kubeconfig", unusedKubeconfig))
		}
		process := p.start(c)
		if c.Name == rbacproxy.ContainerName || proxy == nil {
			n.waitForProbes(t, c, process.read)
		}
	}
	n.waitForProbes(t, &p.spec.Containers[0], func() string { return readFile(t, filepath.Join(p.dir, p.spec.Containers[0].Name+".log")) })
}

// unusedKubeconfig is the kubeconfig of a program that sends no request to the API server.
const unusedKubeconfig = `{apiVersion: v1, kind: Config, current-context: a, contexts: [{name: a, context: {cluster: a, user: a}}],
clusters: [{name: a, cluster: {server: "https://localhost:1"}}], users: [{name: a, user: {token: none}}]}`

func readFile(t *testing.T, file string) string {
	t.Helper()
	content, err := os.ReadFile(file)
	must(t, err)
	return string(content)
}

func writeFile(t *testing.T, dir, name, text string) (path string) {
	t.Helper()
	path = filepath.Join(dir, name)
	must(t, os.MkdirAll(filepath.Dir(path), 0o755))
	must(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// startEtcd starts the etcd of config/etcd: first the container that enables authentication, then the server.
func (n podNetwork) startEtcd(t *testing.T) {
	objects, err := operator.Kustomize("config/etcd")
	must(t, err)
	var d appsv1.Deployment
	rendered{t, objects}.read("Deployment", "etcd", &d)
	dir, pod := t.TempDir(), d.Spec.Template.Spec
	for name, text := range (rendered{t, objects}).configMap("etcd-scripts") {
		writeFile(t, dir, "scripts/"+name, text)
	}
	writeFile(t, dir, "run/root-password", "secret")
	path := binaries(t, dir)
	start := func(c *corev1.Container, log io.Writer) *exec.Cmd {
		toLocal := strings.NewReplacer("/scripts/", dir+"/scripts/", "/run/etcd", dir+"/run", "/var/lib/etcd", dir+"/data").Replace
		var words []string
		for _, word := range c.Command {
			words = append(words, toLocal(word))
		}
		command := exec.CommandContext(t.Context(), "env", words...)
		command.Env = []string{"PATH=" + path + ":/usr/bin:/bin"}
		for _, entry := range c.Env {
			command.Env = append(command.Env, entry.Name+"="+toLocal(entry.Value))
		}
		command.Stdout, command.Stderr = log, log
		must(t, command.Start())
		return command
	}
	logFile := filepath.Join(dir, "log")
	log, err := os.Create(logFile)
	must(t, err)
	defer log.Close()
	authInit := &pod.InitContainers[slices.IndexFunc(pod.InitContainers, func(c corev1.Container) bool { return c.Name == "enable-auth" })]
	if err := start(authInit, log).Wait(); err != nil {
		t.Fatalf("enabling authentication: %v\n%s", err, readFile(t, logFile))
	}
	server := start(&pod.Containers[0], log)
	t.Cleanup(func() { _ = server.Process.Kill(); _ = server.Wait() })
	n.waitForProbes(t, &pod.Containers[0], func() string { return readFile(t, logFile) })
}

// binaries returns a folder with etcd and etcdctl.
func binaries(t *testing.T, dir string) string {
	t.Helper()
	built, err := cluster.Build(t.Context(), os.Stdout)
	must(t, err)
	etcdctl, err := cluster.BuildPeer(t.Context(), cluster.Etcdctl, os.Stdout)
	must(t, err)
	path := filepath.Join(dir, "bin")
	must(t, os.MkdirAll(path, 0o755))
	must(t, os.Symlink(built[cluster.Etcd], filepath.Join(path, "etcd")))
	must(t, os.Symlink(etcdctl, filepath.Join(path, "etcdctl")))
	return path
}

// startManager starts the manager with the arguments of its Deployment, and expects the listen address of MLflow.
func (n podNetwork) startManager(t *testing.T) {
	ctx := t.Context()
	instance, err := cluster.StartAPI(ctx, cluster.Options{Name: "network-" + strings.ToLower(os.Getenv(networkVariable)), Ephemeral: true, Progress: os.Stdout})
	must(t, err)
	t.Cleanup(func() { must(t, instance.Stop(context.WithoutCancel(ctx))) })
	installed, err := operator.Install(ctx, instance, "config/overlays/kubernetes")
	must(t, err)
	binary, err := operator.Build(ctx, os.Stdout)
	must(t, err)
	pod := installed.Deployment.Spec.Template.Spec
	c := pod.Containers[0]
	env := []string{"KUBECONFIG=" + instance.Kubeconfig(), "KUBERNETES_SERVICE_HOST=" + n.api}
	downwardFields := map[string]string{
		"metadata.namespace": installed.ServiceAccount.Namespace, "metadata.name": "manager-0", "spec.serviceAccountName": pod.ServiceAccountName,
	}
	for _, entry := range c.Env {
		if from := entry.ValueFrom; from != nil && from.FieldRef != nil {
			entry.Value = downwardFields[from.FieldRef.FieldPath]
		}
		if entry.Value != "" {
			env = append(env, entry.Name+"="+entry.Value)
		}
	}
	process, err := instance.StartProcess("manager", binary, slices.Concat([]string{"run"}, c.Args, []string{fmt.Sprintf("--webhook-port=%d", installed.WebhookPort)}), env)
	must(t, err)
	n.waitForProbes(t, &c, process.LogTail)
	port := c.Ports[slices.IndexFunc(c.Ports, func(p corev1.ContainerPort) bool { return p.Name == "metrics" })].ContainerPort
	n.waitForStatus(t, "https", port, "/metrics", http.StatusUnauthorized, process.LogTail)
	n.waitForStatus(t, "https", int32(installed.WebhookPort), "/", http.StatusNotFound, process.LogTail)
	n.expectListenAddress(t, instance, process)
}

// expectListenAddress creates an MLflow and expects the argument --host of its server.
func (n podNetwork) expectListenAddress(t *testing.T, instance *cluster.Instance, process *cluster.Process) {
	t.Helper()
	config, err := instance.Config()
	must(t, err)
	scheme := runtime.NewScheme()
	must(t, errors.Join(mlflowv1.AddToScheme(scheme), appsv1.AddToScheme(scheme)))
	admin, err := client.New(config, client.Options{Scheme: scheme})
	must(t, err)
	m := &mlflowv1.MLflow{ObjectMeta: metav1.ObjectMeta{Name: mlflowv1.SingletonName}, Spec: mlflowv1.MLflowSpec{
		BackendStoreURI: "sqlite:////mlflow/mlflow.db", ServeArtifacts: true, Storage: &corev1.PersistentVolumeClaimSpec{},
	}}
	g := NewWithT(t)
	g.Eventually(func() error { return admin.Create(t.Context(), m) }, startExpiry, pollInterval).Should(Succeed(), process.LogTail)
	g.Eventually(func(g Gomega) {
		var deployments appsv1.DeploymentList
		g.Expect(admin.List(t.Context(), &deployments)).To(Succeed())
		g.Expect(deployments.Items).To(HaveLen(1))
		g.Expect(deployments.Items[0].Spec.Template.Spec.Containers[0].Args).To(ContainElement("--host=" + n.host))
	}, startExpiry, pollInterval).Should(Succeed(), process.LogTail)
}

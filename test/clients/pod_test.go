//go:build clients

package clients_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/odh-platform/odh-platform-operator/test/cluster/operator"
	"github.com/odh-platform/odh-platform-operator/test/operands/machine"
)

// podProcesses runs the containers of a Deployment as processes. The pod in the control plane is fake.
type podProcesses struct {
	dir        string
	deployment *appsv1.Deployment
	// kubeconfig is the path of the kubeconfig of the pod's ServiceAccount.
	kubeconfig string
	// replacements adapts paths and ports of the containers to this machine.
	replacements *strings.Replacer
}

// newPodProcesses waits for a Deployment and writes the files that its pod mounts. In the replacements, {dir} is the folder of the pod.
func newPodProcesses(ctx context.Context, namespace, name string, replacements ...string) *podProcesses {
	GinkgoHelper()
	p := &podProcesses{dir: GinkgoT().TempDir(), deployment: &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}}
	env.WaitFor(ctx, p.deployment, nil)
	for i := range replacements {
		replacements[i] = strings.ReplaceAll(replacements[i], "{dir}", p.dir)
	}
	p.replacements = strings.NewReplacer(replacements...)
	spec := p.deployment.Spec.Template.Spec
	for _, c := range spec.Containers {
		for _, mount := range c.VolumeMounts {
			at := slices.IndexFunc(spec.Volumes, func(v corev1.Volume) bool { return v.Name == mount.Name })
			p.mount(ctx, mount.MountPath, spec.Volumes[at].VolumeSource)
		}
	}
	account := types.NamespacedName{Namespace: namespace, Name: spec.ServiceAccountName}
	var err error
	p.kubeconfig, err = operator.Kubeconfig(ctx, env.Instance, account, name, namespace)
	Expect(err).NotTo(HaveOccurred())
	return p
}

func (p *podProcesses) mount(ctx context.Context, path string, volume corev1.VolumeSource) {
	GinkgoHelper()
	content := map[string][]byte{}
	switch {
	case volume.Secret != nil:
		content = secret(ctx, p.deployment.Namespace, volume.Secret.SecretName)
	case volume.ConfigMap != nil:
		c := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: p.deployment.Namespace, Name: volume.ConfigMap.Name}}
		env.WaitFor(ctx, c, nil)
		for name, text := range c.Data {
			content[name] = []byte(text)
		}
	}
	Expect(os.MkdirAll(filepath.Join(p.dir, path), 0o755)).To(Succeed())
	for name, text := range content {
		Expect(os.WriteFile(filepath.Join(p.dir, path, name), text, 0o600)).To(Succeed())
	}
}

// secret waits for a Secret, and returns its data.
func secret(ctx context.Context, namespace, name string) map[string][]byte {
	GinkgoHelper()
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	env.WaitFor(ctx, s, nil)
	return maps.Clone(s.Data)
}

// start starts a container, either a program or, if python is set, a command of that environment. The process stops at the end of the
// spec or of the Ginkgo container.
func (p *podProcesses) start(ctx context.Context, container, program string, python *machine.Python, more ...string) {
	GinkgoHelper()
	spec := p.deployment.Spec.Template.Spec
	c := spec.Containers[slices.IndexFunc(spec.Containers, func(c corev1.Container) bool { return c.Name == container })]
	var variables []corev1.EnvVar
	environment := []string{"HOME=" + p.dir, "TMPDIR=" + p.dir, "KUBECONFIG=" + p.kubeconfig}
	for _, v := range c.Env {
		v.Value = machine.Expand(v.Value, variables)
		if ref := v.ValueFrom; ref != nil {
			v.Value = string(secret(ctx, p.deployment.Namespace, ref.SecretKeyRef.Name)[ref.SecretKeyRef.Key])
		}
		variables = append(variables, v)
		environment = append(environment, v.Name+"="+p.replacements.Replace(v.Value))
	}
	var arguments []string
	for _, argument := range slices.Concat(c.Command, c.Args) {
		arguments = append(arguments, p.replacements.Replace(machine.Expand(argument, variables)))
	}
	if python != nil {
		program = python.Path(arguments[0])
		environment = append(environment, "PATH="+python.Bin+":/usr/bin:/bin")
	}
	if len(c.Command) > 0 {
		arguments = arguments[1:]
	}
	process, err := env.Instance.StartProcess(p.deployment.Name+"-"+container, program, append(arguments, more...), environment)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func(ctx SpecContext) {
		if CurrentSpecReport().Failed() {
			AddReportEntry("log of "+process.Name, process.LogTail())
		}
		Expect(process.Stop(ctx)).To(Succeed())
	})
}

// waitReady waits until a probe of a server succeeds, with a certificate that the CA has signed for the host.
func waitReady(ctx context.Context, port int, path string, ca []byte, host string) {
	GinkgoHelper()
	authorities := x509.NewCertPool()
	Expect(authorities.AppendCertsFromPEM(ca)).To(BeTrue())
	httpClient := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: authorities, ServerName: host}}}
	Eventually(func(g Gomega) {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://127.0.0.1:"+strconv.Itoa(port)+path, http.NoBody)
		g.Expect(err).NotTo(HaveOccurred())
		response, err := httpClient.Do(request)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(response.Body.Close()).To(Succeed())
		g.Expect(response).To(HaveHTTPStatus(http.StatusOK))
	}).WithContext(ctx).WithTimeout(readyTimeout).Should(Succeed())
}

// reservePorts reserves free ports and returns them as numbers and as texts.
func reservePorts(ctx context.Context, count int) (ports []int, texts []string) {
	GinkgoHelper()
	ports, err := env.Instance.ReservePorts(ctx, count)
	Expect(err).NotTo(HaveOccurred())
	for _, port := range ports {
		texts = append(texts, strconv.Itoa(port))
	}
	return ports, texts
}

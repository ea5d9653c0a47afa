//go:build e2e

package e2e_test

import (
	"bytes"
	"context"
	"embed"
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/apis/appwrapper/v1beta2"
	"github.com/odh-platform/odh-platform-operator/pkg/raycluster"
	"github.com/odh-platform/odh-platform-operator/test/node/images"
)

//go:embed testdata/ray
var rayFiles embed.FS

func rayFile(name string) string {
	GinkgoHelper()
	content, err := rayFiles.ReadFile("testdata/ray/" + name)
	Expect(err).NotTo(HaveOccurred())
	return string(content)
}

func runPython(ctx context.Context, namespace, pod, container, program string, args ...string) (string, error) {
	return tryKubectl(ctx, rayFile(program), append([]string{"-n", namespace, "exec", "-i", pod, "-c", container, "--", "python3", "-"}, args...)...)
}

// rayPod waits until exactly one pod of the node type is not terminating, and returns the pod.
func rayPod(ctx context.Context, namespace, nodeType string) *corev1.Pod {
	GinkgoHelper()
	return waitSinglePod(ctx, namespace, client.MatchingLabels{raycluster.LabelNodeType: nodeType})
}

// rayDemo is the RayCluster of the sample, with client pods in its namespace and in another namespace.
type rayDemo struct {
	namespace, outside string
	names              raycluster.Names
	head               *corev1.Pod
}

func startRayDemo(ctx context.Context) *rayDemo {
	GinkgoHelper()
	d := &rayDemo{namespace: env.Namespace(ctx, "ray"), outside: env.Namespace(ctx, "ray-outside")}
	apply(ctx, d.namespace, readSample("raycluster.yaml", "spec:\n  rayVersion", "spec:\n  suspend: true\n  rayVersion"))
	demo := &unstructured.Unstructured{}
	demo.SetGroupVersionKind(raycluster.GVK)
	Expect(env.Admin.Get(ctx, client.ObjectKey{Namespace: d.namespace, Name: "demo"}, demo)).To(Succeed())
	d.names = raycluster.View(demo.Object).Names()
	d.publishNextCA(ctx)
	kubectl(ctx, "-n", d.namespace, "patch", "raycluster", "demo", "--type=merge", "-p", `{"spec": {"suspend": false}}`)
	for _, namespace := range []string{d.namespace, d.outside} {
		startPod(ctx, namespace, "stranger", map[string]string{})
	}
	startBrowser(ctx, d.outside)
	kubectl(ctx, "-n", d.namespace, "wait", "raycluster/demo", "--for=condition=RayClusterProvisioned", fmt.Sprint("--timeout=", podTimeout))
	d.head = rayPod(ctx, d.namespace, raycluster.NodeTypeHead)
	return d
}

func (d *rayDemo) runTasks(ctx context.Context) (string, error) {
	return runPython(ctx, d.namespace, d.head.Name, "ray-head", "tasks.py")
}

// secret waits until a Secret of the cluster exists, and returns the Secret.
func (d *rayDemo) secret(ctx context.Context, name string) *corev1.Secret {
	GinkgoHelper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: d.namespace, Name: name}}
	Eventually(ctx, func(ctx context.Context) error { return env.Admin.Get(ctx, client.ObjectKeyFromObject(secret), secret) }, podTimeout).Should(Succeed())
	return secret
}

// openDashboard sends a request to the proxy of the dashboard from the other namespace, with a token of the account, or without
// a token if account is empty.
func (d *rayDemo) openDashboard(ctx context.Context, account string) (string, error) {
	token := ""
	if account != "" {
		token = kubectl(ctx, "-n", d.outside, "create", "token", account)
	}
	url := fmt.Sprintf("https://%s.%s.svc/api/version", d.names.ProxyService, d.namespace)
	return runPython(ctx, d.outside, "stranger", "main", "dashboard.py", url, string(d.secret(ctx, d.names.ProxyTLS).Data["ca.crt"]), token)
}

func describeRayClusters() {
	var demo *rayDemo

	BeforeAll(func(ctx SpecContext) {
		Expect(images.Ray(ctx, store)).To(Succeed())
		demo = startRayDemo(ctx)
	}, NodeTimeout(startTimeout))

	It("connects its head and its worker over TLS, and runs tasks on both", func(ctx SpecContext) {
		// While a worker cannot resolve the head, it advertises 127.0.0.1; the head removes it, and it restarts.
		Eventually(ctx, demo.runTasks, podTimeout).Should(Equal("2 1"))
		status := kubectl(ctx, "-n", demo.namespace, "exec", demo.head.Name, "-c", "ray-head", "--", "ray", "status")
		Expect(strings.Count(status, " node_")).To(Equal(2), status)
	}, SpecTimeout(specTimeout))

	It("allows only the connections of its NetworkPolicies", func(ctx SpecContext) {
		worker := rayPod(ctx, demo.namespace, raycluster.NodeTypeWorker)
		for _, test := range []struct {
			namespace string
			pod       *corev1.Pod
			port      int32
			want      string
		}{
			{demo.namespace, demo.head, 6379, "closed"},
			{demo.namespace, demo.head, 8265, "open"},
			{demo.namespace, demo.head, 10001, "open"},
			{demo.namespace, demo.head, raycluster.PortProxy, "open"},
			{demo.namespace, worker, 8080, "closed"},
			{demo.outside, demo.head, 6379, "closed"},
			{demo.outside, demo.head, 8265, "closed"},
			{demo.outside, demo.head, 10001, "open"},
			{demo.outside, demo.head, raycluster.PortProxy, "open"},
		} {
			response, err := runPython(ctx, test.namespace, "stranger", "main", "connect.py", test.pod.Status.PodIP, fmt.Sprint(test.port))
			Expect(err).NotTo(HaveOccurred())
			Expect(response).To(Equal(test.want), "port %d of %s from %s", test.port, test.pod.Name, test.namespace)
		}
		// Pods of the cluster reach these ports, so the policies close them to other pods.
		for port, pod := range map[int32]*corev1.Pod{6379: demo.head, 8080: worker} {
			Expect(runPython(ctx, demo.namespace, demo.head.Name, "ray-head", "connect.py", pod.Status.PodIP, fmt.Sprint(port))).To(Equal("open"))
		}
	}, SpecTimeout(specTimeout))

	It("serves only clients with a certificate of its CA, also from other namespaces", func(ctx SpecContext) {
		caSecret := demo.secret(ctx, demo.names.CASecret)
		Expect(env.Admin.Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: demo.outside, Name: "authority"}, Data: caSecret.Data})).To(Succeed())
		apply(ctx, demo.outside, rayFile("client.yaml"))
		waitPodReady(ctx, demo.outside, "client")
		address := demo.names.HeadService + "." + demo.namespace + ".svc:10001"
		Expect(runPython(ctx, demo.outside, "client", "main", "client.py", address)).To(Equal("42"))
		Expect(runPython(ctx, demo.outside, "client", "main", "handshake.py", address, "with")).To(Equal("talks"))
		Expect(runPython(ctx, demo.outside, "client", "main", "handshake.py", address, "without")).To(BeElementOf("closes", "refuses"))
	}, SpecTimeout(specTimeout))

	It("shows its dashboard only to users who may get pods", func(ctx SpecContext) {
		for _, account := range []string{"ana", "eve"} {
			kubectl(ctx, "-n", demo.outside, "create", "serviceaccount", account)
		}
		kubectl(ctx, "-n", demo.namespace, "create", "rolebinding", "ana-view", "--clusterrole=view", "--serviceaccount="+demo.outside+":ana")
		Expect(demo.openDashboard(ctx, "")).To(Equal("401"))
		Expect(demo.openDashboard(ctx, "eve")).To(Equal("403"))
		Expect(demo.openDashboard(ctx, "ana")).To(Equal("200 True"))

		By("opening the page in a browser")
		page := webPage{
			url:       fmt.Sprintf("https://%s.%s.svc/#/cluster", demo.names.ProxyService, demo.namespace),
			token:     kubectl(ctx, "-n", demo.outside, "create", "token", "ana"),
			authority: string(demo.secret(ctx, demo.names.ProxyTLS).Data["ca.crt"]), picture: "ray.png",
		}
		page.open(ctx, demo.outside, demo.head.Status.PodIP, rayPod(ctx, demo.namespace, raycluster.NodeTypeWorker).Status.PodIP, "ALIVE")
	}, SpecTimeout(specTimeout))

	It("keeps running while the CA and all certificates are replaced, and then accepts a new worker", func(ctx SpecContext) {
		before, err := demo.runTasks(ctx)
		Expect(err).NotTo(HaveOccurred())
		worker := rayPod(ctx, demo.namespace, raycluster.NodeTypeWorker)
		demo.replaceCA(ctx)
		demo.replaceCertificates(ctx, worker)

		var calls int
		_, err = fmt.Sscanf(before, "2 %d", &calls)
		Expect(err).NotTo(HaveOccurred(), before)
		Expect(demo.runTasks(ctx)).To(Equal(fmt.Sprintf("2 %d", calls+1)), "the actor still runs")

		kubectl(ctx, "-n", demo.namespace, "delete", "pod", worker.Name)
		Eventually(ctx, demo.runTasks, podTimeout).Should(Equal("2 1"), "the actor ended with its worker")
		Eventually(ctx, demo.openDashboard, podTimeout).WithArguments("ana").Should(Equal("200 True"), "the proxy has the new certificate")
		Expect(runPython(ctx, demo.outside, "client", "main", "client.py", demo.names.HeadService+"."+demo.namespace+".svc:10001")).
			To(Equal("42"), "a client with a certificate of the previous CA")
	}, SpecTimeout(specTimeout))

	It("runs a RayJob in an AppWrapper, which is preempted by a higher priority and resumes after it", func(ctx SpecContext) {
		namespace := createQueue(ctx, "2")
		apply(ctx, namespace, rayFile("job.yaml"))
		waitPodsReady(ctx, namespace, "job")

		apply(ctx, namespace, urgentAppWrapper)
		waitWithinQuota(ctx, namespace, "2", onlyUrgentIsRunning(namespace))
		Expect(getAppWrapper(ctx, namespace, "job").Status.Phase).To(Equal(v1beta2.PhaseSuspended))

		kubectl(ctx, "-n", namespace, "create", "configmap", "go", "--from-literal=go=1")
		kubectl(ctx, "-n", namespace, "delete", "appwrapper", "urgent")
		waitPhase(ctx, namespace, "job", v1beta2.PhaseRunning)
		waitPhase(ctx, namespace, "job", v1beta2.PhaseSucceeded)
		Expect(kubectl(ctx, "-n", namespace, "get", "rayjob", "job", "-o", "jsonpath={.status.jobStatus}")).To(Equal("SUCCEEDED"))
		apply(ctx, namespace, urgentAppWrapper)
		waitWithinQuota(ctx, namespace, "2", onlyUrgentIsRunning(namespace))
	}, SpecTimeout(specTimeout))
}

// replaceCertificates deletes the Secrets of all certificates, and waits until the pods have new certificates.
func (d *rayDemo) replaceCertificates(ctx context.Context, worker *corev1.Pod) {
	GinkgoHelper()
	previous := map[string][]byte{}
	for _, name := range []string{d.names.HeadTLS, d.names.WorkerTLS, d.names.ProxyTLS} {
		previous[name] = d.secret(ctx, name).Data[corev1.TLSCertKey]
		kubectl(ctx, "-n", d.namespace, "delete", "secret", name)
	}
	for name, certificate := range previous {
		Eventually(ctx, func(ctx context.Context) bool {
			return bytes.Equal(d.secret(ctx, name).Data[corev1.TLSCertKey], certificate)
		}, podTimeout).Should(BeFalse(), name)
	}
	for pod, secret := range map[string]string{d.head.Name: d.names.HeadTLS, worker.Name: d.names.WorkerTLS} {
		kubectl(ctx, "-n", d.namespace, "annotate", "pod", pod, "e2e/renewed=true") // makes its kubelet update the volumes
		Eventually(ctx, func(ctx context.Context) (string, error) {
			return runInPod(ctx, d.namespace, pod, `cat "$RAY_TLS_SERVER_CERT"`)
		}, podTimeout).Should(Equal(strings.TrimSpace(string(d.secret(ctx, secret).Data[corev1.TLSCertKey]))))
	}
}

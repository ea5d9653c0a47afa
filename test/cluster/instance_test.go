package cluster_test

import (
	"bytes"
	"os"
	"os/exec"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/odh-platform/odh-platform-operator/test/cluster"
)

var _ = Describe("an instance", func() {
	It("reports the Kubernetes version that it was built from", func() {
		version, err := clientOf(plain).Discovery().ServerVersion()
		Expect(err).NotTo(HaveOccurred())
		Expect(version.GitVersion).To(Equal(cluster.KubernetesVersion))
		Expect(version.Major + "." + version.Minor).To(Equal("1.37"))
	})

	It("serves kubectl of the same version with its kubeconfig", func(ctx SpecContext) {
		kubectl, err := cluster.Kubectl(ctx, GinkgoWriter)
		Expect(err).NotTo(HaveOccurred())
		output, err := exec.CommandContext(ctx, kubectl, "--kubeconfig", openshift.Kubeconfig(), "version").CombinedOutput()
		Expect(err).NotTo(HaveOccurred())
		Expect(string(output)).To(ContainSubstring("Client Version: " + cluster.KubernetesVersion))
		Expect(string(output)).To(ContainSubstring("Server Version: " + cluster.KubernetesVersion))
	})

	It("does not see objects of another instance", func(ctx SpecContext) {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "only-here"}}
		_, err := clientOf(plain).CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		_, err = clientOf(openshift).CoreV1().Namespaces().Get(ctx, namespace.Name, metav1.GetOptions{})
		Expect(apierrors.IsNotFound(err)).To(BeTrue(), "%v", err)
	})

	It("has the requested nodes in state Ready", func(ctx SpecContext) {
		for instance, count := range map[*cluster.Instance]int{plain: 2, openshift: 1} {
			nodes, err := clientOf(instance).CoreV1().Nodes().List(ctx, metav1.ListOptions{})
			Expect(err).NotTo(HaveOccurred())
			Expect(nodes.Items).To(HaveLen(count))
			ready := ContainElement(And(HaveField("Type", corev1.NodeReady), HaveField("Status", corev1.ConditionTrue)))
			Expect(nodes.Items).To(HaveEach(HaveField("Status.Conditions", ready)))
		}
	})

	It("has a node lease with a duration", func(ctx SpecContext) {
		lease, err := clientOf(plain).CoordinationV1().Leases("kube-node-lease").Get(ctx, "node-0", metav1.GetOptions{})
		Expect(err).NotTo(HaveOccurred())
		Expect(lease.Spec.LeaseDurationSeconds).To(HaveValue(BeNumerically(">", 0)))
	})

	It("restricts a ServiceAccount to its RBAC permissions, and audits its requests under its name", func(ctx SpecContext) {
		admin := clientOf(plain)
		token, err := admin.CoreV1().ServiceAccounts("default").CreateToken(ctx, "default", &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		kubeconfig := GinkgoT().TempDir() + "/kubeconfig"
		Expect(plain.WriteTokenKubeconfig(kubeconfig, token.Status.Token, "default")).To(Succeed())
		config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
		Expect(err).NotTo(HaveOccurred())
		account, err := kubernetes.NewForConfig(config)
		Expect(err).NotTo(HaveOccurred())
		_, err = account.CoreV1().Secrets("default").List(ctx, metav1.ListOptions{})
		Expect(apierrors.IsForbidden(err)).To(BeTrue(), "%v", err)
		log, err := os.ReadFile(plain.AuditLog())
		Expect(err).NotTo(HaveOccurred())
		Expect(string(log)).To(ContainSubstring(`"user":{"username":"system:serviceaccount:default:default"`))
		Expect(string(log)).To(ContainSubstring(`"user":{"username":"` + cluster.AdminUser + `"`))
	})

	It("rejects a second start, and can be opened by its name", func(ctx SpecContext) {
		_, err := cluster.Start(ctx, cluster.Options{Name: plain.Name, Platform: cluster.Bare})
		Expect(err).To(MatchError(cluster.ErrInUse))
		opened, err := cluster.Open(plain.Name)
		Expect(err).NotTo(HaveOccurred())
		Expect(opened.Running()).To(BeTrue())
		Expect(opened.Kubeconfig()).To(Equal(plain.Kubeconfig()))
		Expect(opened.URL()).To(Equal(plain.URL()))
	})

	It("resumes a halted API server", Serial, func(ctx SpecContext) {
		Expect(openshift.Halt(ctx, cluster.APIServer)).To(Succeed())
		Expect(openshift.Running()).To(BeFalse())
		_, err := clientOf(openshift).Discovery().ServerVersion()
		Expect(err).To(HaveOccurred())
		Expect(openshift.Resume(ctx, cluster.APIServer)).To(Succeed())
		_, err = clientOf(openshift).Discovery().ServerVersion()
		Expect(err).NotTo(HaveOccurred())
	}, NodeTimeout(2*time.Minute))

	It("removes its processes and its folder when it stops", func(ctx SpecContext) {
		var progress bytes.Buffer
		instance, err := cluster.Start(ctx, cluster.Options{Name: "suite-short", Platform: cluster.Bare, Ephemeral: true, Progress: &progress})
		Expect(err).NotTo(HaveOccurred())
		Expect(progress.String()).To(ContainSubstring("instance suite-short ready, 2 nodes"))
		sleep, err := exec.LookPath("sleep")
		Expect(err).NotTo(HaveOccurred())
		extra, err := instance.StartProcess("extra", sleep, []string{"600"}, nil)
		Expect(err).NotTo(HaveOccurred())
		processes := instance.Processes()
		var names []string
		for _, process := range processes {
			Expect(process.Running()).To(BeTrue(), process.Name)
			names = append(names, process.Name)
		}
		Expect(names).To(ConsistOf(cluster.Etcd, cluster.APIServer, cluster.ControllerManager, cluster.Scheduler, cluster.Kwok, "extra"))

		Expect(instance.Stop(ctx)).To(Succeed())
		Expect(instance.Dir()).NotTo(BeADirectory())
		for _, process := range append(processes, extra) {
			Expect(process.Running()).To(BeFalse(), process.Name)
		}
		_, err = cluster.Open("suite-short")
		Expect(err).To(MatchError(cluster.ErrNotFound))
	}, NodeTimeout(2*time.Minute))

	It("reports why it does not start, and leaves no instance behind", func(ctx SpecContext) {
		_, err := cluster.Start(ctx, cluster.Options{Name: "suite-broken", Platform: "vanilla"})
		Expect(err).To(MatchError(ContainSubstring("known are bare, plain and openshift")))
		_, err = cluster.Start(ctx, cluster.Options{Name: "Not A Name", Platform: cluster.Bare})
		Expect(err).To(MatchError(ContainSubstring("lower-case letters")))
		_, err = cluster.Start(ctx, cluster.Options{Name: "suite-broken", Platform: cluster.Bare, Nodes: -1})
		Expect(err).To(MatchError(ContainSubstring("nodes")))
		instances, err := cluster.List()
		Expect(err).NotTo(HaveOccurred())
		for _, instance := range instances {
			Expect(strings.HasPrefix(instance.Name, "suite-broken")).To(BeFalse())
		}
	}, NodeTimeout(2*time.Minute))
})

package dependencies_test

import (
	"os"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	meshetcd "github.com/odh-platform/odh-platform-operator/controllers/modelmesh/etcd"
)

var _ = Describe("etcd", func() {
	var w *etcdInstance
	BeforeEach(func(ctx SpecContext) { w = installEtcd(ctx) }, NodeTimeout(specTimeout))

	It("accepts only clients with the Secret, from the start and after restarts", func(ctx SpecContext) {
		w.runContainer(ctx, creator)
		By("never naming the password in a command line [A-13]")
		output, err := w.run(ctx, enabler, w.stopping("etcdctl", w.readPassword()))
		Expect(err).NotTo(HaveOccurred(), "%s", output)
		for range 2 {
			end := w.serve(ctx)
			Eventually(func() error { return w.list(ctx, w.connection(ctx)) }).WithContext(ctx).Should(Succeed())
			Expect(w.list(ctx, meshetcd.Connection{RootPrefix: "p"})).To(MatchError(ContainSubstring("user name is empty")))
			Expect(w.list(ctx, meshetcd.Connection{RootPrefix: "p", UserID: "root", Password: "guess"})).To(MatchError(ContainSubstring("invalid user ID or password")))
			end()

			By("restarting the pod of etcd")
			w.runContainer(ctx, creator)
			Expect(w.runContainer(ctx, enabler)).To(ContainSubstring("Authentication is enabled."))
		}

		By("recreating the Secrets while the data has the previous password")
		w.writePassword("another")
		output, err = w.run(ctx, enabler)
		Expect(err).To(HaveOccurred())
		Expect(output).To(ContainSubstring("was written with another password"))
		w.writePassword("")
		output, err = w.run(ctx, enabler)
		Expect(err).To(HaveOccurred())
		Expect(output).To(ContainSubstring("was written with another password, or with one"))
	}, NodeTimeout(specTimeout))

	It("continues after an interruption at any step before authentication is enabled", func(ctx SpecContext) {
		for i, at := range []string{"auth status", "user add", "role get", "role add", "grant-role", "auth enable"} {
			w.writePassword(string(rune('a' + i)))
			output, err := w.run(ctx, enabler, w.stopping("etcdctl", at))
			Expect(err).To(MatchError(ContainSubstring("killed")), "%s: %s", at, output)
		}
		w.writePassword(`"odd' $password \`)
		w.runContainer(ctx, enabler)
		w.serve(ctx)
		right := meshetcd.Connection{RootPrefix: "p", UserID: "root", Password: `"odd' $password \`}
		Eventually(func() error { return w.list(ctx, right) }).WithContext(ctx).Should(Succeed())
		Expect(w.list(ctx, meshetcd.Connection{RootPrefix: "p", UserID: "root", Password: "f"})).NotTo(Succeed(), "the password of an earlier stop")
	}, NodeTimeout(specTimeout))

	It("requires no authentication if the connection names no user", func(ctx SpecContext) {
		w.writePassword("")
		Expect(w.runContainer(ctx, enabler)).To(ContainSubstring("Authentication stays disabled"))
		w.serve(ctx)
		Eventually(func() error { return w.list(ctx, meshetcd.Connection{RootPrefix: "p"}) }).WithContext(ctx).Should(Succeed())
	}, NodeTimeout(specTimeout))

	It("reports the reason if it cannot run", func(ctx SpecContext) {
		w.writePassword("p")
		Expect(os.WriteFile(filepath.Join(w.dir, "data"), nil, 0o600)).To(Succeed(), "a file where the folder should be")
		output, err := w.run(ctx, enabler)
		Expect(err).To(HaveOccurred())
		Expect(output).To(ContainSubstring("etcd has exited"))
	}, NodeTimeout(specTimeout))

	It("runs in pods of the restricted level, keeps its data, and mounts a token into one container only", func(ctx SpecContext) {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "etcd"}, Spec: w.pods}
		Expect(env.Admin.Create(ctx, pod)).To(Succeed())
		Expect(w.claims).To(HaveLen(1))
		Expect(w.pods.Volumes).To(ContainElement(And(
			HaveField("Name", "data"), HaveField("EmptyDir", BeNil()), HaveField("PersistentVolumeClaim.ClaimName", w.claims[0].Name))))
		for _, container := range append(pod.Spec.InitContainers, pod.Spec.Containers...) {
			mounts := ContainElement(HaveField("MountPath", "/var/run/secrets/kubernetes.io/serviceaccount"))
			if container.Name != creator {
				mounts = Not(mounts)
			}
			Expect(container.VolumeMounts).To(mounts, container.Name)
		}
	}, NodeTimeout(specTimeout))
})

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
	var instance *etcdDeployment
	BeforeEach(func(ctx SpecContext) { instance = installEtcd(ctx) }, NodeTimeout(specTimeout))

	It("accepts only clients with the Secret, from the start and after restarts", func(ctx SpecContext) {
		instance.runContainer(ctx, creatorContainer)
		By("keeping the password out of command lines [A-13]")
		output, err := instance.run(ctx, authContainer, instance.killAt("etcdctl", instance.readPassword()))
		Expect(err).NotTo(HaveOccurred(), "%s", output)
		for range 2 {
			stop := instance.serve(ctx)
			Eventually(func() error { return instance.list(ctx, instance.connection(ctx)) }).WithContext(ctx).Should(Succeed())
			Expect(instance.list(ctx, meshetcd.Connection{RootPrefix: "p"})).To(MatchError(ContainSubstring("user name is empty")))
			Expect(instance.list(ctx, meshetcd.Connection{RootPrefix: "p", UserID: "root", Password: "guess"})).To(MatchError(ContainSubstring("invalid user ID or password")))
			stop()

			By("restarting the pod of etcd")
			instance.runContainer(ctx, creatorContainer)
			Expect(instance.runContainer(ctx, authContainer)).To(ContainSubstring("Authentication is enabled."))
		}

		By("changing the password while the data has the previous one")
		instance.writePassword("another")
		output, err = instance.run(ctx, authContainer)
		Expect(err).To(HaveOccurred())
		Expect(output).To(ContainSubstring("was written with another password"))
		instance.writePassword("")
		output, err = instance.run(ctx, authContainer)
		Expect(err).To(HaveOccurred())
		Expect(output).To(ContainSubstring("was written with another password, or with one"))
	}, NodeTimeout(specTimeout))

	It("continues after an interruption at any step before authentication is enabled", func(ctx SpecContext) {
		// The script deletes the user that an interrupted run has added.
		for i, step := range []string{"auth status", "user get", "user add", "role get", "user delete", "role add", "grant-role", "auth enable"} {
			instance.writePassword(string(rune('a' + i)))
			output, err := instance.run(ctx, authContainer, instance.killAt("etcdctl", step))
			Expect(err).To(MatchError(ContainSubstring("killed")), "%s: %s", step, output)
		}
		instance.writePassword(`"odd' $password \`)
		instance.runContainer(ctx, authContainer)
		instance.serve(ctx)
		valid := meshetcd.Connection{RootPrefix: "p", UserID: "root", Password: `"odd' $password \`}
		Eventually(func() error { return instance.list(ctx, valid) }).WithContext(ctx).Should(Succeed())
		Expect(instance.list(ctx, meshetcd.Connection{RootPrefix: "p", UserID: "root", Password: "h"})).NotTo(Succeed(), "the password of an interrupted run")
	}, NodeTimeout(specTimeout))

	It("requires no authentication if the connection names no user", func(ctx SpecContext) {
		instance.writePassword("")
		Expect(instance.runContainer(ctx, authContainer)).To(ContainSubstring("Authentication stays disabled"))
		instance.serve(ctx)
		Eventually(func() error { return instance.list(ctx, meshetcd.Connection{RootPrefix: "p"}) }).WithContext(ctx).Should(Succeed())
	}, NodeTimeout(specTimeout))

	It("reports that etcd exited", func(ctx SpecContext) {
		instance.writePassword("p")
		Expect(os.WriteFile(filepath.Join(instance.dir, "data"), nil, 0o600)).To(Succeed()) // a file instead of the data folder
		output, err := instance.run(ctx, authContainer)
		Expect(err).To(HaveOccurred())
		Expect(output).To(ContainSubstring("etcd has exited"))
	}, NodeTimeout(specTimeout))

	It("runs in pods of the restricted level, keeps its data in a PersistentVolumeClaim, and mounts a token into one container only", func(ctx SpecContext) {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: instance.namespace, Name: "etcd"}, Spec: instance.podSpec}
		Expect(env.Admin.Create(ctx, pod)).To(Succeed())
		Expect(instance.claims).To(HaveLen(1))
		Expect(instance.podSpec.Volumes).To(ContainElement(And(
			HaveField("Name", "data"), HaveField("EmptyDir", BeNil()), HaveField("PersistentVolumeClaim.ClaimName", instance.claims[0].Name))))
		for _, container := range append(pod.Spec.InitContainers, pod.Spec.Containers...) {
			mounts := ContainElement(HaveField("MountPath", "/var/run/secrets/kubernetes.io/serviceaccount"))
			if container.Name != creatorContainer {
				mounts = Not(mounts)
			}
			Expect(container.VolumeMounts).To(mounts, container.Name)
		}
	}, NodeTimeout(specTimeout))
})

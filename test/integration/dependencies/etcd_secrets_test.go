package dependencies_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	meshetcd "github.com/odh-platform/odh-platform-operator/controllers/modelmesh/etcd"
	"github.com/odh-platform/odh-platform-operator/test/framework"
)

var _ = Describe("The Secrets of etcd", func() {
	var instance *etcdDeployment
	BeforeEach(func(ctx SpecContext) { instance = installEtcd(ctx) }, NodeTimeout(specTimeout))

	It("are created once, recreated from each other if one is missing, and never changed", func(ctx SpecContext) {
		start := env.AuditPosition()
		instance.runContainer(ctx, creatorContainer)
		password := instance.password(ctx)
		Expect(password).To(MatchRegexp(`^[A-Za-z0-9]{32}$`))
		Expect(instance.connection(ctx)).To(Equal(meshetcd.Connection{
			Endpoints: "http://etcd." + instance.namespace + ".svc:2379", RootPrefix: "modelmesh-serving", UserID: "root", Password: password}))
		Expect(instance.readPassword()).To(Equal(password))

		By("running the script again")
		secondRun := env.AuditPosition()
		instance.runContainer(ctx, creatorContainer)
		Expect(env.Since(secondRun).ByUser(instance.user).Writes()).To(BeEmpty())

		By("deleting one Secret, then the other")
		for _, name := range []string{connectionSecret, passwordSecret} {
			Expect(env.Admin.Delete(ctx, instance.secret(name))).To(Succeed())
			instance.runContainer(ctx, creatorContainer)
			Expect(instance.password(ctx)).To(Equal(password))
			Expect(instance.connection(ctx).Password).To(Equal(password))
		}
		denied := env.Since(start).ByUser(instance.user).Forbidden().Where(func(e framework.Entry) bool {
			// When an object is not found, kubectl reads its namespace for the error message, and ignores a denial.
			return e.Resource != "namespaces"
		})
		Expect(denied).To(BeEmpty(), "the script sent requests that its Role does not allow")

		By("generating another password in another namespace")
		other := installEtcd(ctx)
		other.runContainer(ctx, creatorContainer)
		Expect(other.password(ctx)).NotTo(Equal(password))
	}, NodeTimeout(specTimeout))

	It("are complete after an interruption at any step", func(ctx SpecContext) {
		var password string
		for _, step := range []string{"create secret generic etcd-passwords", "apply", "create secret generic model-serving-etcd"} {
			output, err := instance.run(ctx, creatorContainer, instance.killAt("kubectl", step))
			Expect(err).To(MatchError(ContainSubstring("killed")), "%s: %s", step, output)
			secret := instance.secret(passwordSecret)
			if err := env.Admin.Get(ctx, client.ObjectKeyFromObject(secret), secret); !apierrors.IsNotFound(err) {
				Expect(err).NotTo(HaveOccurred())
				password = string(secret.Data["root"])
			}
			Expect(env.Admin.Get(ctx, client.ObjectKeyFromObject(instance.secret(connectionSecret)), instance.secret(connectionSecret))).To(Satisfy(apierrors.IsNotFound))
		}
		Expect(password).NotTo(BeEmpty(), "no run was interrupted after the creation of the first Secret")
		instance.runContainer(ctx, creatorContainer)
		Expect(instance.connection(ctx).Password).To(Equal(password))
		Expect(instance.readPassword()).To(Equal(password))
	}, NodeTimeout(specTimeout))

	It("can be Secrets of the user, with special characters in the password or without a user", func(ctx SpecContext) {
		password := `a "b" \c $d 'e' ü%s`
		instance.createSecret(ctx, connectionSecret, "etcd_connection", `{"endpoints":"http://etcd:2379","root_prefix":"p","userid":"root","password":"a \"b\" \\c $d 'e' \u00fc%s"}`)
		original := instance.secret(connectionSecret)
		env.Get(ctx, original)
		instance.runContainer(ctx, creatorContainer)
		Expect(instance.password(ctx)).To(Equal(password))
		Expect(instance.readPassword()).To(Equal(password))
		stored := instance.secret(connectionSecret)
		env.Get(ctx, stored)
		Expect(stored).To(Equal(original))

		By("creating the missing connection for a password of the user")
		Expect(env.Admin.Delete(ctx, stored)).To(Succeed())
		instance.createSecret(ctx, passwordSecret, "root", password)
		instance.runContainer(ctx, creatorContainer)
		Expect(instance.connection(ctx).Password).To(Equal(password))
		Expect(instance.password(ctx)).To(Equal(password))

		By("naming no user in the connection")
		Expect(env.Admin.Delete(ctx, instance.secret(passwordSecret))).To(Succeed())
		instance.createSecret(ctx, connectionSecret, "etcd_connection", `{"endpoints":"http://etcd:2379","root_prefix":"p"}`)
		Expect(instance.runContainer(ctx, creatorContainer)).To(ContainSubstring("names no user, so authentication stays disabled"))
		Expect(instance.readPassword()).To(BeEmpty())
		Expect(env.Admin.Get(ctx, client.ObjectKeyFromObject(instance.secret(passwordSecret)), instance.secret(passwordSecret))).To(Satisfy(apierrors.IsNotFound))
	}, NodeTimeout(specTimeout))

	DescribeTable("are not changed if they are unusable, and are reported with the cause",
		func(ctx SpecContext, connection, password, want string) {
			if connection != "" {
				instance.createSecret(ctx, connectionSecret, "etcd_connection", connection)
			}
			if password != "" {
				instance.createSecret(ctx, passwordSecret, "root", password)
			}
			start := env.AuditPosition()
			output, err := instance.run(ctx, creatorContainer)
			Expect(err).To(HaveOccurred())
			Expect(output).To(ContainSubstring(want))
			Expect(env.Since(start).ByUser(instance.user).Writes()).To(BeEmpty())
		},
		Entry("another user", `{"endpoints":"http://other:2379","userid":"mesh","password":"p"}`, "", "names the user mesh, but this etcd has only the user root"),
		Entry("no password", `{"endpoints":"http://etcd:2379","userid":"root"}`, "", "names the user root but no password"),
		Entry("invalid JSON", `endpoints: x`, "", "etcd_connection is not a JSON object"),
		Entry("two passwords", `{"endpoints":"http://etcd:2379","userid":"root","password":"a"}`, "b", "have different passwords: delete the wrong one"),
		Entry("a password of two lines", "", "a\nb", "contains control characters"),
	)

	It("are the only objects that the ServiceAccount is allowed to access", func(ctx SpecContext) {
		config, err := clientcmd.BuildConfigFromFlags("", instance.kubeconfig)
		Expect(err).NotTo(HaveOccurred())
		accountClient, err := client.New(config, client.Options{Scheme: env.Scheme})
		Expect(err).NotTo(HaveOccurred())
		apply := func(namespace, name string) error { return applySecret(ctx, accountClient, namespace, name) }
		Expect(apply(instance.namespace, passwordSecret)).To(Succeed(), "the Role does not allow server-side apply of the named Secret")
		for description, err := range map[string]error{
			"another name":      apply(instance.namespace, "other"),
			"another namespace": apply("default", passwordSecret),
			"a generated name":  accountClient.Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: instance.namespace, GenerateName: "other-"}}),
			"listing":           accountClient.List(ctx, &corev1.SecretList{}, client.InNamespace(instance.namespace)),
			"deleting":          accountClient.Delete(ctx, instance.secret(passwordSecret)),
			"ConfigMaps":        accountClient.Get(ctx, client.ObjectKey{Namespace: instance.namespace, Name: "etcd-scripts"}, &corev1.ConfigMap{}),
		} {
			Expect(err).To(Satisfy(apierrors.IsForbidden), description)
		}
	}, NodeTimeout(specTimeout))
})

func applySecret(ctx context.Context, account client.Client, namespace, name string) error {
	return account.Apply(ctx, corev1ac.Secret(name, namespace).WithData(map[string][]byte{"root": []byte("x")}), client.FieldOwner("test"))
}

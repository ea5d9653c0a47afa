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
	var w *etcdInstance
	BeforeEach(func(ctx SpecContext) { w = installEtcd(ctx) }, NodeTimeout(specTimeout))

	It("are created once, one from the other if one is missing, and never changed", func(ctx SpecContext) {
		start := env.AuditPosition()
		w.runContainer(ctx, creator)
		password := w.password(ctx)
		Expect(password).To(MatchRegexp(`^[A-Za-z0-9]{32}$`))
		Expect(w.connection(ctx)).To(Equal(meshetcd.Connection{
			Endpoints: "http://etcd." + w.namespace + ".svc:2379", RootPrefix: "modelmesh-serving", UserID: "root", Password: password}))
		Expect(w.readPassword()).To(Equal(password))

		By("again")
		again := env.AuditPosition()
		w.runContainer(ctx, creator)
		Expect(env.Since(again).ByUser(w.user).Writes()).To(BeEmpty())

		By("deleting one Secret, then the other")
		for _, name := range []string{connections, passwords} {
			Expect(env.Admin.Delete(ctx, w.secret(name))).To(Succeed())
			w.runContainer(ctx, creator)
			Expect(w.password(ctx)).To(Equal(password))
			Expect(w.connection(ctx).Password).To(Equal(password))
		}
		denied := env.Since(start).ByUser(w.user).Refused().Where(func(e framework.Entry) bool {
			// When an object is not found, kubectl reads its namespace for the error message, and ignores a denial.
			return e.Resource != "namespaces"
		})
		Expect(denied).To(BeEmpty(), "the script asked for more than its Role allows")

		By("generating another password in another namespace")
		other := installEtcd(ctx)
		other.runContainer(ctx, creator)
		Expect(other.password(ctx)).NotTo(Equal(password))
	}, NodeTimeout(specTimeout))

	It("are complete after an interruption at any step", func(ctx SpecContext) {
		var password string
		for _, at := range []string{"create secret generic etcd-passwords", "apply", "create secret generic model-serving-etcd"} {
			output, err := w.run(ctx, creator, w.stopping("kubectl", at))
			Expect(err).To(MatchError(ContainSubstring("killed")), "%s: %s", at, output)
			secret := w.secret(passwords)
			if err := env.Admin.Get(ctx, client.ObjectKeyFromObject(secret), secret); !apierrors.IsNotFound(err) {
				Expect(err).NotTo(HaveOccurred())
				password = string(secret.Data["root"])
			}
			Expect(env.Admin.Get(ctx, client.ObjectKeyFromObject(w.secret(connections)), w.secret(connections))).To(Satisfy(apierrors.IsNotFound))
		}
		Expect(password).NotTo(BeEmpty(), "the last stop came after the first Secret")
		w.runContainer(ctx, creator)
		Expect(w.connection(ctx).Password).To(Equal(password))
		Expect(w.readPassword()).To(Equal(password))
	}, NodeTimeout(specTimeout))

	It("can be Secrets of the user with any content", func(ctx SpecContext) {
		odd := `a "b" \c $d 'e' ü%s`
		w.createSecret(ctx, connections, "etcd_connection", `{"endpoints":"http://etcd:2379","root_prefix":"p","userid":"root","password":"a \"b\" \\c $d 'e' \u00fc%s"}`)
		before := w.secret(connections)
		env.Get(ctx, before)
		w.runContainer(ctx, creator)
		Expect(w.password(ctx)).To(Equal(odd))
		Expect(w.readPassword()).To(Equal(odd))
		after := w.secret(connections)
		env.Get(ctx, after)
		Expect(after).To(Equal(before))

		By("creating the missing objects around a password of the user")
		Expect(env.Admin.Delete(ctx, after)).To(Succeed())
		w.createSecret(ctx, passwords, "root", odd)
		w.runContainer(ctx, creator)
		Expect(w.connection(ctx).Password).To(Equal(odd))
		Expect(w.password(ctx)).To(Equal(odd))

		By("connecting without a user")
		Expect(env.Admin.Delete(ctx, w.secret(passwords))).To(Succeed())
		w.createSecret(ctx, connections, "etcd_connection", `{"endpoints":"http://etcd:2379","root_prefix":"p"}`)
		Expect(w.runContainer(ctx, creator)).To(ContainSubstring("names no user, so authentication stays disabled"))
		Expect(w.readPassword()).To(BeEmpty())
		Expect(env.Admin.Get(ctx, client.ObjectKeyFromObject(w.secret(passwords)), w.secret(passwords))).To(Satisfy(apierrors.IsNotFound))
	}, NodeTimeout(specTimeout))

	DescribeTable("are not changed if they are unusable, and are reported with the fix",
		func(ctx SpecContext, connection, password, want string) {
			if connection != "" {
				w.createSecret(ctx, connections, "etcd_connection", connection)
			}
			if password != "" {
				w.createSecret(ctx, passwords, "root", password)
			}
			start := env.AuditPosition()
			output, err := w.run(ctx, creator)
			Expect(err).To(HaveOccurred())
			Expect(output).To(ContainSubstring(want))
			Expect(env.Since(start).ByUser(w.user).Writes()).To(BeEmpty())
		},
		Entry("another user", `{"endpoints":"http://other:2379","userid":"mesh","password":"p"}`, "", "names the user mesh, but this etcd has only the user root"),
		Entry("no password", `{"endpoints":"http://etcd:2379","userid":"root"}`, "", "names the user root but no password"),
		Entry("no JSON", `endpoints: x`, "", "etcd_connection is not a JSON object"),
		Entry("two passwords", `{"endpoints":"http://etcd:2379","userid":"root","password":"a"}`, "b", "have different passwords: delete the wrong one"),
		Entry("a password of two lines", "", "a\nb", "contains control characters"),
	)

	It("are the only objects that the ServiceAccount is allowed to access", func(ctx SpecContext) {
		config, err := clientcmd.BuildConfigFromFlags("", w.kubeconfig)
		Expect(err).NotTo(HaveOccurred())
		account, err := client.New(config, client.Options{Scheme: env.Scheme})
		Expect(err).NotTo(HaveOccurred())
		apply := func(namespace, name string) error { return applySecret(ctx, account, namespace, name) }
		Expect(apply(w.namespace, passwords)).To(Succeed(), "server-side apply creates what the Role names")
		for description, err := range map[string]error{
			"another name":         apply(w.namespace, "other"),
			"another namespace":    apply("default", passwords),
			"creating without one": account.Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, GenerateName: "other-"}}),
			"listing":              account.List(ctx, &corev1.SecretList{}, client.InNamespace(w.namespace)),
			"deleting":             account.Delete(ctx, w.secret(passwords)),
			"ConfigMaps":           account.Get(ctx, client.ObjectKey{Namespace: w.namespace, Name: "etcd-scripts"}, &corev1.ConfigMap{}),
		} {
			Expect(err).To(Satisfy(apierrors.IsForbidden), description)
		}
	}, NodeTimeout(specTimeout))
})

func applySecret(ctx context.Context, account client.Client, namespace, name string) error {
	return account.Apply(ctx, corev1ac.Secret(name, namespace).WithData(map[string][]byte{"root": []byte("x")}), client.FieldOwner("test"))
}

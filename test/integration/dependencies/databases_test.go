package dependencies_test

import (
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/test/framework"
)

var _ = Describe("The sample databases of registries", func() {
	DescribeTable("match their registries, and the restricted Pod Security level admits their pods",
		func(ctx SpecContext, database, registry, member string, port int64) {
			samples, err := framework.ReadObjects("../../../config/samples/modelregistry_" + registry + ".yaml")
			Expect(err).NotTo(HaveOccurred())
			connection, found, err := unstructured.NestedMap(samples[0].Object, "spec", member)
			Expect(err).NotTo(HaveOccurred())
			Expect(found).To(BeTrue())
			password := connection["passwordSecret"].(map[string]any)

			objects, err := framework.ReadObjects("../../../config/samples/databases/" + database + ".yaml")
			Expect(err).NotTo(HaveOccurred())
			namespace := createRestrictedNamespace(ctx, "database")
			for _, object := range objects {
				Expect(object.GetName()).To(Equal(connection["host"]))
				object.SetNamespace(namespace)
				Expect(client.WithFieldValidation(env.Admin, "Strict").Create(ctx, object, client.DryRunAll)).To(Succeed(), object.GetKind())
				if object.GetKind() == "Service" {
					ports, _, err := unstructured.NestedSlice(object.Object, "spec", "ports")
					Expect(err).NotTo(HaveOccurred())
					Expect(ports).To(ConsistOf(HaveKeyWithValue("port", port)))
				}
				pod := podSpecOf(object)
				if pod == nil {
					continue
				}
				Expect(env.Admin.Create(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "database"}, Spec: *pod}, client.DryRunAll)).To(Succeed())
				for _, variable := range pod.Containers[0].Env {
					switch _, description, _ := strings.Cut(variable.Name, "_"); description {
					case "USER":
						Expect(variable.Value).To(Equal(connection["username"]))
					case "DATABASE":
						Expect(variable.Value).To(Equal(connection["database"]))
					case "PASSWORD":
						Expect(variable.Value).To(BeEmpty())
						Expect(variable.ValueFrom.SecretKeyRef).To(And(HaveField("Name", password["name"]), HaveField("Key", password["key"])))
					default:
						Fail("unexpected variable " + variable.Name)
					}
				}
			}
		},
		Entry("PostgreSQL", "postgres", "postgres", "postgres", int64(5432)),
		Entry("MySQL", "mysql", "mysql", "mysql", int64(3306)),
		Entry("MariaDB", "mariadb", "mysql", "mysql", int64(3306)),
	)
})

package dependencies_test

import (
	"encoding/json"
	"maps"
	"os"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var _ = Describe("The quick start of ModelMesh", func() {
	var instance *localDeployment
	BeforeEach(func(ctx SpecContext) { instance = install(ctx, "config/quickstart", "minio") }, NodeTimeout(specTimeout))
	read := func(ctx SpecContext, name string) map[string][]byte {
		GinkgoHelper()
		secret := instance.secret(name)
		env.Get(ctx, secret)
		return secret.Data
	}

	It("creates credentials once, and adds the location of its models to the storage Secret of the user", func(ctx SpecContext) {
		instance.createSecret(ctx, "storage-config", "mine", `{"type":"pvc","name":"claim"}`)
		instance.runContainer(ctx, "create-credentials")
		credentials, storage := read(ctx, "minio-credentials"), read(ctx, "storage-config")
		Expect(string(credentials["user"])).To(MatchRegexp(`^[A-Za-z0-9]{20}$`))
		Expect(string(credentials["password"])).To(MatchRegexp(`^[A-Za-z0-9]{32}$`))
		Expect(slices.Sorted(maps.Keys(storage))).To(Equal([]string{"localMinIO", "mine"}))
		var entry map[string]string
		Expect(json.Unmarshal(storage["localMinIO"], &entry)).To(Succeed())
		Expect(entry).To(Equal(map[string]string{
			"type": "s3", "access_key_id": string(credentials["user"]), "secret_access_key": string(credentials["password"]),
			"endpoint_url": "http://minio." + instance.namespace + ".svc:9000", "default_bucket": "modelmesh-example-models", "region": "us-south"}))

		By("running the script again")
		start := env.AuditPosition()
		instance.runContainer(ctx, "create-credentials")
		Expect(env.Since(start).ByUser(instance.user).Writes()).To(BeEmpty())

		By("deleting the Secret with the entry of the storage")
		Expect(env.Admin.Delete(ctx, instance.secret("storage-config"))).To(Succeed())
		instance.runContainer(ctx, "create-credentials")
		Expect(read(ctx, "minio-credentials")).To(Equal(credentials))
		Expect(read(ctx, "storage-config")["localMinIO"]).To(Equal(storage["localMinIO"]))
	}, NodeTimeout(specTimeout))

	It("continues after an interruption", func(ctx SpecContext) {
		output, err := instance.run(ctx, "create-credentials", instance.killAt("kubectl", "create secret generic storage-config"))
		Expect(err).To(MatchError(ContainSubstring("killed")), output)
		credentials := read(ctx, "minio-credentials")
		Expect(env.Admin.Get(ctx, client.ObjectKeyFromObject(instance.secret("storage-config")), instance.secret("storage-config"))).To(Satisfy(apierrors.IsNotFound))
		instance.runContainer(ctx, "create-credentials")
		Expect(read(ctx, "minio-credentials")).To(Equal(credentials))
		Expect(string(read(ctx, "storage-config")["localMinIO"])).To(ContainSubstring(string(credentials["password"])))
	}, NodeTimeout(specTimeout))

	It("runs in pods of the restricted level, and contains the sample Predictor", func(ctx SpecContext) {
		Expect(env.Admin.Create(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: instance.namespace, Name: "minio"}, Spec: instance.podSpec})).To(Succeed())
		quickstart, err := os.ReadFile("../../../config/quickstart/predictor.yaml")
		Expect(err).NotTo(HaveOccurred())
		sample, err := os.ReadFile("../../../config/samples/modelmesh_predictor.yaml")
		Expect(err).NotTo(HaveOccurred())
		Expect(string(quickstart)).To(Equal(string(sample)))
	}, NodeTimeout(specTimeout))
})

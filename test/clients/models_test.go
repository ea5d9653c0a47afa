//go:build clients

package clients_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/odh-platform/odh-platform-operator/apis/serving/v1alpha1"
)

const runtime = `
multiModel: true
grpcEndpoint: "port:8085"
grpcDataEndpoint: "port:8001"
protocolVersions: [grpc-v2]
supportedModelFormats: [{name: sklearn, version: "0", autoSelect: true}]
containers: [{name: server, image: registry.example.com/server:1, resources: {limits: {memory: 64Mi}}}]`

var _ = Describe("Models of ModelMesh", func() {
	eachRelease("creates a model, waits for it, changes and deletes it", releases("kserve", "0.21.0", "0.16.0"), func(ctx SpecContext, c client) {
		python := c.install(ctx)
		namespace := env.Namespace(ctx, "team")
		env.Patch(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}},
			map[string]any{"metadata": map[string]any{"labels": map[string]any{"modelmesh-enabled": "true"}}})
		r := &v1alpha1.ServingRuntime{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "mlserver"}}
		Expect(yaml.Unmarshal([]byte(runtime), &r.Spec)).To(Succeed())
		Expect(env.Admin.Create(ctx, r)).To(Succeed())
		c.run(ctx, python, task{script: "kserve_models.py", namespace: namespace, kubeconfig: createUser(ctx, namespace, "edit")})
	})
})

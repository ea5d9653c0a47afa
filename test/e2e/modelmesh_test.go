//go:build e2e

package e2e_test

import (
	"context"
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// handoverTimeout is the termination grace period of the pods, during which they hand over their models.
const handoverTimeout = 90 * time.Second

// The pods run MLServer, its adapter, which downloads models, and the fake routing layer of test/modelmesh/instance.
var _ = Describe("ModelMesh", Ordered, func() {
	var n servedNamespace
	expectPrediction := func(ctx context.Context, protocol, model, id string) {
		GinkgoHelper()
		Eventually(ctx, n.predict, podTimeout).WithArguments(protocol, model).Should(MatchRegexp("^" + id + "-[0-9a-f]+ 0 1 2 3 4 5 6 7 8 9$"))
	}

	BeforeAll(func(ctx SpecContext) {
		buildModelMeshImages(ctx)
		startModelMesh(ctx)
		n = newServedNamespace(ctx)
		n.applySample(ctx, "quickstart/predictor.yaml")
		apply(ctx, n.name, modelMeshObjects)
		waitPodReady(ctx, n.name, "client")
		kubectl(ctx, n.in("wait", "predictor/digits", "--for=jsonpath={.status.available}=true", fmt.Sprint("--timeout=", podTimeout))...)
	}, NodeTimeout(startTimeout))

	AfterEach(func(ctx SpecContext) {
		if CurrentSpecReport().Failed() {
			output, err := tryKubectl(ctx, "", n.in("logs", runtimePods, "--all-containers", "--prefix", "--tail=40")...)
			GinkgoWriter.Println(output, err)
		}
	}, NodeTimeout(time.Minute))

	It("starts pods for the first model and serves it over gRPC and REST", func(ctx SpecContext) {
		Eventually(ctx, n.pods).Should(HaveLen(2))
		kubectl(ctx, n.in("wait", "pods", runtimePods, "--for=condition=Ready", fmt.Sprint("--timeout=", podTimeout))...)
		status := kubectl(ctx, n.in("get", "predictor", "digits", "-o", "jsonpath={.status.activeModelState} {.status.transitionStatus}")...)
		Expect(status).To(Equal("Loaded UpToDate"))
		expectPrediction(ctx, "grpc", "digits", "digits__ksp")
		expectPrediction(ctx, "http", "digits", "digits__ksp")
	}, SpecTimeout(specTimeout))

	It("returns the documented responses to the documented requests", func(ctx SpecContext) {
		examples := modelMeshExamples()
		Expect(examples).To(HaveLen(2))
		for i, protocol := range []string{"http", "grpc"} {
			response, err := tryKubectl(ctx, modelMeshExample, n.in("exec", "-i", "client", "--", "python3", "-", protocol, "digits", examples[i].request)...)
			Expect(err).NotTo(HaveOccurred())
			Expect(response).To(MatchJSON(examples[i].response), protocol)
		}
	}, SpecTimeout(specTimeout))

	It("reports why models cannot be loaded", func(ctx SpecContext) {
		apply(ctx, n.name, modelMeshBroken)
		for name, want := range map[string][2]string{
			"no-file":    {"ModelLoadFailed", "absent.joblib: no such file or directory"},
			"no-bucket":  {"ModelLoadFailed", "NoSuchBucket"},
			"no-storage": {"ModelLoadFailed", "Did not find storage config for key absent"},
			"no-runtime": {"NoSupportingRuntime", "No ServingRuntime supports specified model type"},
		} {
			Eventually(ctx, func(ctx context.Context) string {
				return kubectl(ctx, n.in("get", "predictor", name, "-o",
					"jsonpath={.status.available} {.status.activeModelState} {.status.lastFailureInfo.reason} {.status.lastFailureInfo.message}")...)
			}, podTimeout).Should(SatisfyAll(HavePrefix("false FailedToLoad "+want[0]+" "), ContainSubstring(want[1])))
		}
		_, err := n.predict(ctx, "http", "no-file")
		Expect(err).To(MatchError(ContainSubstring("HTTP Error")))
		kubectl(ctx, n.in("delete", "predictor", "no-file", "no-bucket", "no-storage", "no-runtime", "--timeout=60s")...)
	}, SpecTimeout(specTimeout))

	It("serves an InferenceService", func(ctx SpecContext) {
		n.applySample(ctx, "samples/modelmesh_inferenceservice.yaml")
		kubectl(ctx, n.in("wait", "inferenceservice/digits-isvc", "--for=condition=Ready", fmt.Sprint("--timeout=", podTimeout))...)
		expectPrediction(ctx, "http", "digits-isvc", "digits-isvc__isvc")
	}, SpecTimeout(specTimeout))

	It("serves a model from a PersistentVolumeClaim after a rollout of the pods", func(ctx SpecContext) {
		_, err := tryKubectl(ctx, modelMeshTrain, n.in("exec", "-i", "client", "--", "python3", "-")...)
		Expect(err).NotTo(HaveOccurred())
		kubectl(ctx, n.in("patch", "secret", "storage-config", "--type=merge", "-p", `{"stringData": {"claimed": "{\"type\": \"pvc\", \"name\": \"models\"}"}}`)...)
		apply(ctx, n.name, modelMeshPVC)
		expectPrediction(ctx, "http", "claimed", "claimed__ksp")
		waitRollout(ctx, n.name, "deployment/modelmesh-serving-mlserver-1.x")
		expectPrediction(ctx, "http", "digits", "digits__ksp")
	}, SpecTimeout(specTimeout))

	It("accepts connections to the ports for requests, but not to the internal ports of the routing layer and the adapter", func(ctx SpecContext) {
		const notTerminating = `go-template={{range .items}}{{if not .metadata.deletionTimestamp}}{{.status.podIP}} {{end}}{{end}}`
		address := strings.Fields(kubectl(ctx, n.in("get", "pods", runtimePods, "-o", notTerminating)...))[0]
		connect := func(port int) error {
			const script = `import socket, sys; socket.create_connection((sys.argv[1], sys.argv[2]), 3)`
			_, err := tryKubectl(ctx, "", n.in("exec", "client", "--", "python3", "-c", script, address, fmt.Sprint(port))...)
			return err
		}
		for _, port := range []int{8033, 8008} {
			Expect(connect(port)).To(Succeed())
		}
		for _, port := range []int{8080, 8085} { // of the routing layer, for other pods, and of the adapter
			Expect(connect(port)).To(MatchError(ContainSubstring("timed out")), "port %d", port)
		}
	}, SpecTimeout(specTimeout))

	It("keeps serving the models of a pod that is deleted", func(ctx SpecContext) {
		previous := n.podsWithModel(ctx, "digits")
		Expect(previous).NotTo(BeEmpty())
		kubectl(ctx, n.in("delete", "pod", previous[0], fmt.Sprint("--timeout=", handoverTimeout))...)
		expectPrediction(ctx, "grpc", "digits", "digits__ksp")
		Expect(n.podsWithModel(ctx, "digits")).NotTo(BeEmpty())
	}, SpecTimeout(specTimeout))

	It("registers models again after a restart of etcd without a volume", func(ctx SpecContext) {
		kubectl(ctx, "-n", operatorNamespace, "delete", "pod", "--selector=component=model-mesh-etcd")
		waitRollout(ctx, operatorNamespace, "deployment/etcd")
		password := kubectl(ctx, "-n", operatorNamespace, "get", "secret", "etcd-passwords", "-o", "go-template={{base64decode .data.root}}")
		Eventually(ctx, func(ctx context.Context) (string, error) {
			return tryKubectl(ctx, "", "-n", operatorNamespace, "exec", "deployment/etcd", "-c", "etcd", "--",
				"etcdctl", "--user=root:"+password, "get", "--prefix", "--keys-only", "modelmesh-serving/mm_ns/"+n.name+"/mm/modelmesh-serving/vmodels/")
		}, podTimeout).Should(SatisfyAll(ContainSubstring("/digits"), ContainSubstring("/digits-isvc")))
		expectPrediction(ctx, "grpc", "digits", "digits__ksp")
	}, SpecTimeout(specTimeout))

	It("unloads a model that is deleted, and deletes the pods after the last model", func(ctx SpecContext) {
		Expect(n.podsWithModel(ctx, "digits")).NotTo(BeEmpty())
		kubectl(ctx, n.in("delete", "predictor", "digits", "--timeout=60s")...)
		Eventually(ctx, n.podsWithModel).WithArguments("digits").Should(BeEmpty())
		expectPrediction(ctx, "http", "digits-isvc", "digits-isvc__isvc")

		By("scaling to zero after the last model")
		kubectl(ctx, "-n", operatorNamespace, "create", "configmap", "model-serving-config", "--from-literal=config.yaml=scaleToZero: {gracePeriodSeconds: 5}")
		DeferCleanup(func(ctx context.Context) {
			kubectl(ctx, "-n", operatorNamespace, "delete", "configmap", "model-serving-config")
		}, NodeTimeout(podTimeout))
		kubectl(ctx, n.in("delete", "predictor,inferenceservice", "--all", "--timeout=60s")...)
		Eventually(ctx, n.pods, handoverTimeout).Should(BeEmpty())
	}, SpecTimeout(specTimeout))
})

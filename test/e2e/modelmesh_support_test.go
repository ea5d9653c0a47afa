//go:build e2e

package e2e_test

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/odh-platform/odh-platform-operator/test/cluster"
	"github.com/odh-platform/odh-platform-operator/test/docs"
	"github.com/odh-platform/odh-platform-operator/test/node/images"
	"github.com/odh-platform/odh-platform-operator/test/operands/programs"
)

var (
	//go:embed testdata/modelmesh.yaml
	modelMeshObjects string
	//go:embed testdata/modelmesh_broken.yaml
	modelMeshBroken string
	//go:embed testdata/modelmesh_pvc.yaml
	modelMeshPVC string
	//go:embed testdata/modelmesh_predict.py
	modelMeshPredict string
	//go:embed testdata/modelmesh_example.py
	modelMeshExample string
	//go:embed testdata/modelmesh_train.py
	modelMeshTrain string
)

const (
	runtimePods = "--selector=modelmesh-service=modelmesh-serving"
	// listModels is a Python script that prints the model repository index of MLServer.
	listModels = `from urllib.request import Request, urlopen; ` +
		`print(urlopen(Request("http://127.0.0.1:8002/v2/repository/index", b"{}", {"Content-Type": "application/json"})).read())`
)

// buildModelMeshImages builds the images of the runtime pods and of the quickstart.
func buildModelMeshImages(ctx context.Context) {
	GinkgoHelper()
	mesh, err := cluster.BuildProgram(ctx, "./test/modelmesh/cmd/mm", nil, GinkgoWriter)
	Expect(err).NotTo(HaveOccurred())
	Expect(images.ModelMesh(store, mesh)).To(Succeed())
	adapter, err := programs.RuntimeAdapter(ctx, "model-mesh-mlserver-adapter")
	Expect(err).NotTo(HaveOccurred())
	Expect(images.RuntimeAdapter(store, map[string]string{"/opt/app/mlserver-adapter": adapter})).To(Succeed())
	Expect(images.MLServer(ctx, store)).To(Succeed())
	versitygw, err := programs.ObjectStore(ctx)
	Expect(err).NotTo(HaveOccurred())
	Expect(images.ExampleModels(ctx, store, versitygw)).To(Succeed())
	etcdctl, err := cluster.BuildPeer(ctx, cluster.Etcdctl, GinkgoWriter)
	Expect(err).NotTo(HaveOccurred())
	Expect(images.Commands(ctx, store, images.EtcdImage, env.Instance.Process(cluster.Etcd).Path, etcdctl)).To(Succeed())
	Expect(images.Commands(ctx, store, images.KubectlImage, kubectlPath)).To(Succeed())
}

// startModelMesh installs the CRDs of KServe, the runtimes, and the quickstart of ModelMesh without its Predictor.
func startModelMesh(ctx context.Context) {
	GinkgoHelper()
	runMake(ctx, "install-kserve-crds")
	runtimes := kubectl(ctx, "kustomize", filepath.Join(checkout, "config", "runtimes"))
	quickstart := strings.Split(kubectl(ctx, "kustomize", filepath.Join(checkout, "config", "quickstart")), "\n---\n")
	quickstart = slices.DeleteFunc(quickstart, func(document string) bool { return strings.Contains(document, "kind: Predictor") })
	for _, manifests := range []string{runtimes, strings.Join(quickstart, "\n---\n")} {
		_, err := tryKubectl(ctx, manifests, "apply", "--server-side", "-f", "-")
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func(ctx context.Context) {
			_, err := tryKubectl(ctx, manifests, "delete", "--ignore-not-found", "-f", "-")
			Expect(err).NotTo(HaveOccurred())
		}, NodeTimeout(podTimeout))
	}
	kubectl(ctx, "-n", operatorNamespace, "delete", "configmap", "model-serving-config", "--ignore-not-found")
	waitRollout(ctx, operatorNamespace, "deployment/etcd")
	waitRollout(ctx, operatorNamespace, "deployment/minio")
}

// servedNamespace is a namespace that ModelMesh serves, with the Secret of the object store. It enforces the restricted Pod Security level.
type servedNamespace struct{ name string }

func newServedNamespace(ctx context.Context) servedNamespace {
	GinkgoHelper()
	n := servedNamespace{createRestrictedNamespace(ctx, "models")}
	DeferCleanup(func(ctx context.Context) {
		kubectl(ctx, n.in("delete", "predictors,inferenceservices", "--all", "--timeout=60s")...)
	}, NodeTimeout(podTimeout))
	kubectl(ctx, "label", "namespace", n.name, "modelmesh-enabled=true")
	entry := kubectl(ctx, "-n", operatorNamespace, "get", "secret", "storage-config", "-o", "go-template={{base64decode .data.localMinIO}}")
	kubectl(ctx, n.in("create", "secret", "generic", "storage-config", "--from-literal=localMinIO="+entry)...)
	return n
}

func (n servedNamespace) in(args ...string) []string { return append([]string{"-n", n.name}, args...) }

func (n servedNamespace) applySample(ctx context.Context, file string) {
	GinkgoHelper()
	text, err := os.ReadFile(filepath.Join(checkout, "config", filepath.FromSlash(file)))
	Expect(err).NotTo(HaveOccurred())
	apply(ctx, n.name, string(text))
}

// predict sends a request to a model over the protocol, grpc or http.
func (n servedNamespace) predict(ctx context.Context, protocol, model string) (string, error) {
	return tryKubectl(ctx, modelMeshPredict, n.in("exec", "-i", "client", "--", "python3", "-", protocol, model)...)
}

// example is a request in docs/components/modelmesh.md and its documented response.
type example struct{ request, response string }

// modelMeshExamples returns the examples of the page in order.
func modelMeshExamples() []example {
	GinkgoHelper()
	page, err := os.ReadFile(filepath.Join(checkout, "docs", "components", "modelmesh.md"))
	Expect(err).NotTo(HaveOccurred())
	var examples []example
	for _, block := range docs.Blocks(string(page)) {
		if _, after, found := strings.Cut(block.Text, "<<EOF\n"); found {
			request, _, _ := strings.Cut(after, "\nEOF\n")
			examples = append(examples, example{request: request})
		} else if block.Language == "json" {
			examples[len(examples)-1].response = block.Text
		}
	}
	return examples
}

// pods returns the names of the runtime pods.
func (n servedNamespace) pods(ctx context.Context) []string {
	GinkgoHelper()
	return strings.Fields(kubectl(ctx, n.in("get", "pods", runtimePods, "-o", "jsonpath={.items[*].metadata.name}")...))
}

// podsWithModel returns the pods with a model in the server or on disk.
func (n servedNamespace) podsWithModel(ctx context.Context, model string) []string {
	GinkgoHelper()
	var found []string
	for _, pod := range n.pods(ctx) {
		script := fmt.Sprintf("python3 -c '%s' && ls /models /models/_mlserver_models", listModels)
		if strings.Contains(kubectl(ctx, n.in("exec", pod, "-c", "mlserver", "--", "sh", "-c", script)...), model+"__") {
			found = append(found, pod)
		}
	}
	return found
}

package availability

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/test/cluster"
	"github.com/odh-platform/odh-platform-operator/test/framework"
)

const (
	// writesPerSecond is the number of writes of each kind in a second.
	writesPerSecond = 10
	// minWrites is the number of writes of each kind after which a spec checks the failures.
	minWrites = 20
)

// samples has the file of a resource by kind. The kinds cover all admission webhooks of the operator.
var samples = map[string]string{
	"AppWrapper": "appwrapper_job.yaml", "Catalog": "aihub_catalog.yaml", "MLflow": "mlflow_minimal.yaml", "ModelRegistry": "modelregistry_postgres.yaml",
	"RayCluster": "raycluster.yaml", "ServingRuntime": "modelmesh_runtime_custom.yaml",
}

// failedWrite is a write that failed.
type failedWrite struct {
	when time.Time
	kind string
	err  error
}

// writer writes resources continuously, see startWriter.
type writer struct {
	mu      sync.Mutex
	written map[string]int
	failed  []failedWrite
	start   time.Time
	// stop ends the writes. Call it while the pods are running, because later writes fail.
	stop func()
}

// startWriter creates each kind writesPerSecond times a second, as a dry run: the API server calls all webhooks, and nothing is left to
// reconcile. It also changes a stored ModelRegistry of the deprecated version, which needs conversion.
func startWriter(ctx context.Context) *writer {
	GinkgoHelper()
	config := rest.CopyConfig(env.Config)
	config.WarningHandler, config.QPS = rest.NoWarnings{}, -1
	userClient, err := client.New(config, client.Options{})
	Expect(err).NotTo(HaveOccurred())
	namespace := env.Namespace(ctx, "writes")
	env.Patch(ctx, framework.Unstructured(schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}, "", namespace), map[string]any{"metadata": map[string]any{"labels": map[string]any{"modelmesh-enabled": "true"}}})
	stored := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "modelregistry.opendatahub.io/v1alpha1", "kind": "ModelRegistry", "metadata": map[string]any{"namespace": namespace, "name": "stored"},
		"spec": map[string]any{"rest": map[string]any{}, "grpc": map[string]any{}, "postgres": map[string]any{"host": "db", "username": "u", "database": "d"}},
	}}
	Eventually(func() error { return userClient.Create(ctx, stored.DeepCopy()) }).WithContext(ctx).Should(Succeed(), "the API server loads a new CA with a delay")
	background := context.WithoutCancel(ctx)
	writes := map[string]func(n int) error{"change": func(n int) error {
		patch := fmt.Appendf(nil, `{"metadata": {"annotations": {"example.com/change": "%d"}}}`, n)
		return userClient.Patch(background, stored.DeepCopy(), client.RawPatch(types.MergePatchType, patch))
	}}
	for kind, file := range samples {
		object := sample(file)
		Expect(object.GetKind()).To(Equal(kind))
		if kind != "MLflow" {
			object.SetNamespace(namespace)
		}
		writes[kind] = func(int) error { return userClient.Create(background, object.DeepCopy(), client.DryRunAll) }
		Eventually(func() error { return writes[kind](0) }).WithContext(ctx).Should(Succeed(), kind)
	}
	return writeAll(writes)
}

// writeAll calls each function writesPerSecond times a second until stop is called. It does not use the context of the caller, which ends
// with the setup node.
func writeAll(writes map[string]func(n int) error) *writer {
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	w := &writer{written: map[string]int{}, start: time.Now(), stop: func() {
		cancel()
		wg.Wait()
	}}
	for kind := range writes {
		w.written[kind] = 0
	}
	for kind, attempt := range writes {
		wg.Go(func() {
			limit := flowcontrol.NewTokenBucketRateLimiter(writesPerSecond, 1)
			for n := 0; limit.Wait(ctx) == nil; n++ {
				w.record(kind, attempt(n))
			}
		})
	}
	return w
}

func (w *writer) record(kind string, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.written[kind]++
	if err != nil {
		w.failed = append(w.failed, failedWrite{time.Now(), kind, err})
	}
}

// counts returns the number of writes of each kind.
func (w *writer) counts() map[string]int {
	w.mu.Lock()
	defer w.mu.Unlock()
	counts := map[string]int{}
	for kind, count := range w.written {
		counts[kind] = count
	}
	return counts
}

// waitForWrites waits for more than minWrites further writes of each kind, including failed ones.
func (w *writer) waitForWrites(ctx context.Context) {
	GinkgoHelper()
	initial := w.counts()
	Eventually(func(g Gomega) {
		for kind, count := range w.counts() {
			g.Expect(count).To(BeNumerically(">", initial[kind]+minWrites), kind)
		}
	}).WithContext(ctx).WithTimeout(specTimeout).Should(Succeed())
}

// failures returns the writes that failed after a time.
func (w *writer) failures(since time.Time) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var texts []string
	for _, r := range w.failed {
		if r.when.After(since) {
			texts = append(texts, fmt.Sprintf("%s after %s: %v", r.kind, r.when.Sub(w.start), r.err))
		}
	}
	return texts
}

// report adds the number of writes and failures to the report of the spec. Call stop first.
func (w *writer) report() {
	counts, total := w.counts(), 0
	for _, count := range counts {
		total += count
	}
	AddReportEntry("writes", fmt.Sprintf("%d in %s, %d failed", total, time.Since(w.start).Round(time.Second), len(w.failures(time.Time{}))), ReportEntryVisibilityAlways)
}

// isConnectionError reports whether the API server could not reach the webhook of a pod.
func isConnectionError(text string) bool {
	return slices.ContainsFunc([]string{"connection refused", "connection reset", ": EOF"}, func(part string) bool { return strings.Contains(text, part) })
}

func sample(file string) *unstructured.Unstructured {
	GinkgoHelper()
	root, err := cluster.RepositoryRoot()
	Expect(err).NotTo(HaveOccurred())
	objects, err := framework.ReadObjects(filepath.Join(root, "config", "samples", file))
	Expect(err).NotTo(HaveOccurred())
	index := slices.IndexFunc(objects, func(o *unstructured.Unstructured) bool { return samples[o.GetKind()] == file })
	Expect(index).NotTo(Equal(-1), file)
	return objects[index]
}

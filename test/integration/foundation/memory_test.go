package foundation

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"

	awv1beta2 "github.com/odh-platform/odh-platform-operator/apis/appwrapper/v1beta2"
	"github.com/odh-platform/odh-platform-operator/test/framework"
	webhook "github.com/odh-platform/odh-platform-operator/webhooks/appwrapper"
)

const (
	secretCount = 1000
	// secretBytes is the size of the data of each Secret, and also of its annotations. The data of all Secrets exceed maxHeapGrowth, and so do
	// their annotations.
	secretBytes = 16 << 10
	// maxHeapGrowth bounds the heap growth for all Secrets, in bytes.
	maxHeapGrowth = 5 << 20
	// wrapperCount is the number of AppWrappers, each with a template of 1 MiB.
	wrapperCount = 40
	// maxWrapperHeapGrowth bounds the heap growth for all AppWrappers, in bytes, at less than half of their size.
	maxWrapperHeapGrowth = 15 << 20
	// collections is the number of garbage collections over which the lowest heap size is measured.
	collections = 3
)

// sample returns the value of a series, or the sum of the series of a metric; NaN without any.
func sample(metrics, name string) float64 {
	GinkgoHelper()
	var sum float64
	found := false
	for lines := bufio.NewScanner(strings.NewReader(metrics)); lines.Scan(); {
		series, text, _ := strings.Cut(lines.Text(), " ")
		if series != name && !strings.HasPrefix(series, name+"{") {
			continue
		}
		value, err := strconv.ParseFloat(text, 64)
		Expect(err).NotTo(HaveOccurred())
		sum, found = sum+value, true
	}
	if !found {
		return math.NaN()
	}
	return sum
}

// liveHeap returns the size of live objects on the heap of the manager, in bytes: the lowest size over several garbage
// collections. Reading the metrics allocates the memory that triggers the next collection.
func liveHeap(ctx context.Context, m *framework.Manager) float64 {
	GinkgoHelper()
	lowest, first := math.Inf(1), math.NaN()
	Eventually(func() float64 {
		text := metricsOf(ctx, m)
		cycles := sample(text, "go_gc_duration_seconds_count")
		if math.IsNaN(first) {
			first = cycles
		}
		if cycles > first { // a complete cycle has run since the first sample
			lowest = min(lowest, sample(text, "go_memstats_heap_alloc_bytes"))
		}
		return cycles - first
	}).WithContext(ctx).WithTimeout(specTimeout).WithPolling(20 * time.Millisecond).Should(BeNumerically(">", collections))
	return lowest
}

// createSecrets creates Secrets like Helm releases, spread over the namespaces. Their annotations are as large as their data, so
// caches of metadata would also grow.
func createSecrets(ctx context.Context, count int, namespaces ...string) {
	GinkgoHelper()
	config := rest.CopyConfig(env.Config)
	config.QPS = -1
	unthrottled, err := client.New(config, client.Options{})
	Expect(err).NotTo(HaveOccurred())
	errs := make([]error, count)
	workqueue.ParallelizeUntil(ctx, 16, count, func(i int) {
		errs[i] = unthrottled.Create(ctx, &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: namespaces[i%len(namespaces)], Name: fmt.Sprintf("sh.helm.release.v1.application-%d.v1", i),
				Labels:      map[string]string{"foreign": "secret", "owner": "helm", "status": "deployed", "version": "1"},
				Annotations: map[string]string{"example.com/notes": strings.Repeat("x", secretBytes)},
			},
			Data: map[string][]byte{"release": []byte(strings.Repeat("x", secretBytes))},
		})
	})
	Expect(errors.Join(errs...)).To(Succeed())
}

var _ = Describe("Memory", func() {
	It("hardly grows with unrelated Secrets", func(ctx SpecContext) {
		manager := startManager(ctx, framework.ManagerOptions{Env: []string{"GOGC=20"}})
		m := createMLflow(ctx)
		waitAvailable(ctx, manager, m)
		reconciled := func() float64 { return sample(metricsOf(ctx, manager), "controller_runtime_reconcile_total") }
		manager.Restart(ctx)
		Eventually(reconciled).Should(BeNumerically(">", 0))
		initial := liveHeap(ctx, manager)

		otherNamespace := env.Namespace(ctx, "elsewhere")
		createSecrets(ctx, secretCount, operatorNamespace, otherNamespace)
		DeferCleanup(func(ctx SpecContext) {
			Expect(env.Admin.DeleteAllOf(ctx, &corev1.Secret{}, client.InNamespace(operatorNamespace), client.MatchingLabels{"foreign": "secret"})).To(Succeed())
		}, NodeTimeout(specTimeout))
		grown := liveHeap(ctx, manager)
		manager.Restart(ctx)
		Eventually(reconciled).Should(BeNumerically(">", 0), "the caches are not filled")
		restarted := liveHeap(ctx, manager)
		AddReportEntry("live heap", fmt.Sprintf("%.1f MiB before, %.1f MiB with %d Secrets, %.1f MiB after a restart",
			initial/(1<<20), grown/(1<<20), secretCount, restarted/(1<<20)))
		Expect(grown - initial).To(BeNumerically("<", maxHeapGrowth))
		Expect(restarted - initial).To(BeNumerically("<", maxHeapGrowth))
	}, NodeTimeout(2*specTimeout))

	It("hardly grows with the templates of AppWrappers [A-15]", func(ctx SpecContext) {
		manager := startManager(ctx, framework.ManagerOptions{Args: []string{"--enable-mlflow=false", "--enable-appwrapper=true"}, Env: []string{"GOGC=20"}})
		env.DeleteTemporarily(ctx,
			&admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: webhook.MutatingConfiguration}},
			&admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: webhook.ValidatingConfiguration}})
		namespace := env.Namespace(ctx, "large")
		reconciled := func() float64 {
			return sample(metricsOf(ctx, manager), `controller_runtime_reconcile_total{controller="appwrapper",result="success"}`)
		}
		initial := liveHeap(ctx, manager)
		for i := range wrapperCount {
			wrapper := framework.Unstructured(awv1beta2.GroupVersion.WithKind(awv1beta2.Kind), namespace, fmt.Sprintf("w%d", i))
			template := map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "c"}, "data": map[string]any{"x": strings.Repeat("x", 1<<20)}}
			wrapper.Object["spec"] = map[string]any{"suspend": true, "components": []any{map[string]any{"template": template}}}
			Expect(env.Admin.Create(ctx, wrapper)).To(Succeed())
		}
		Eventually(reconciled).WithTimeout(specTimeout).Should(BeNumerically(">=", wrapperCount))
		grown := liveHeap(ctx, manager)
		manager.Restart(ctx)
		Eventually(reconciled).WithTimeout(specTimeout).Should(BeNumerically(">=", wrapperCount))
		restarted := liveHeap(ctx, manager)
		AddReportEntry("live heap", fmt.Sprintf("%.1f MiB before, %.1f MiB with %d AppWrappers of 1 MiB, %.1f MiB after a restart", initial/(1<<20), grown/(1<<20), wrapperCount, restarted/(1<<20)))
		Expect(grown - initial).To(BeNumerically("<", maxWrapperHeapGrowth))
		Expect(restarted - initial).To(BeNumerically("<", maxWrapperHeapGrowth))
	}, NodeTimeout(2*specTimeout))
})

package abuse_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/test/cluster"
	"github.com/odh-platform/odh-platform-operator/test/framework"
	"github.com/odh-platform/odh-platform-operator/test/node"
	webhook "github.com/odh-platform/odh-platform-operator/webhooks/modelregistry"
)

const (
	floodTimeout  = 10 * time.Minute
	registryCount = 1000
	writeCount    = 20
	// requestTimeout limits a request, because a client can continue to send a body that was rejected.
	requestTimeout = 20 * time.Second
)

// Every pod that reaches the webhook port can post to it, even without RBAC permissions.
var _ = Describe("A pod that posts to the webhook port", Ordered, func() {
	var (
		limited *framework.Manager
		limit   int64
	)

	BeforeAll(func(ctx SpecContext) {
		limit = env.Installed.Deployment.Spec.Template.Spec.Containers[0].Resources.Limits.Memory().Value()
		manager.StopTemporarily(ctx)
		withoutWebhooks(ctx, createPausedRegistries)
		// The binary has no race detector, which multiplies memory and time.
		binary, err := cluster.BuildProgram(ctx, "./cmd/manager", []string{"grpcnotrace"}, GinkgoWriter)
		Expect(err).NotTo(HaveOccurred())
		limited = env.StartManager(ctx, framework.ManagerOptions{
			Name: "limited", Binary: binary, WebhookPort: env.Installed.WebhookPort,
			Env: append([]string{"GOGC=50", "GOMEMLIMIT=" + strconv.FormatInt(limit, 10)}, images...), // GOGC is the built-in percentage, GOMEMLIMIT as shipped
		})
		if remove, err := node.LimitMemory(limited.Process.PID, filepath.Base(GinkgoT().TempDir()), limit-memory(limited, "VmRSS")); err == nil {
			DeferCleanup(func() { Eventually(remove).WithTimeout(waitTimeout).Should(Succeed()) })
		} else {
			AddReportEntry("no cgroup limits the manager, only its resident memory is checked", err)
		}
		DeferCleanup(func(ctx SpecContext) { limited.Stop(ctx) })
		DeferCleanup(func() { AddReportEntry("highest resident memory, MiB", memory(limited, "VmHWM")>>20) })
		Eventually(func() error { return dryRunCreate(ctx) }).WithContext(ctx).WithTimeout(waitTimeout).Should(Succeed())
	}, NodeTimeout(floodTimeout))

	const mutate = "/mutate-modelregistry-opendatahub-io-modelregistry"
	largeReview := func() string { return conversionReview(`{"a":"`+longText(60<<20)+`"}`, 1) }
	objects := func(size int) string { return `{"a":[` + strings.Repeat(`{"":0},`, size/7) + `0]}` }
	for title, flood := range map[string]struct {
		path    string
		body    func() string
		clients int
		chunked bool
	}{
		"four large registries at a time":    {"/convert", largeReview, 4, false},
		"sixteen large registries at a time": {"/convert", largeReview, 16, false},
		"a registry with many small objects": {"/convert", func() string { return conversionReview(objects(60<<20), 1) }, 16, false},
		"many registries with small objects": {"/convert", func() string { return conversionReview(objects(700<<10), 80) }, 16, false},
		"bodies of unknown length":           {"/convert", func() string { return conversionReview(objects(700<<10), 80) }, 16, true},
		"large admission reviews":            {mutate, func() string { return admissionReview(objects(6 << 20)) }, 16, false},
		"medium-sized admission reviews":     {mutate, func() string { return admissionReview(objects(800 << 10)) }, 16, false},
		"small admission reviews":            {mutate, func() string { return admissionReview(objects(60 << 10)) }, 32, false},
	} {
		It("neither stops the manager nor blocks writes: "+title, func(ctx SpecContext) {
			stop := post(ctx, fmt.Sprintf("https://127.0.0.1:%d%s", env.Installed.WebhookPort, flood.path), flood.body(), flood.clients, flood.chunked)
			defer stop()
			for range writeCount { // while other suites use the processors, a review can take longer than the timeout of the webhook
				Eventually(dryRunCreate).WithContext(ctx).WithTimeout(waitTimeout).Should(Succeed())
			}
			Expect(countRegistries(ctx)).To(Equal(registryCount))
			Expect(stop()).To(BeNumerically(">", 0), "responses")
			Expect(limited.Process.Running()).To(BeTrue(), limited.Process.LogTail())
			Expect(memory(limited, "VmHWM")).To(BeNumerically("<", limit))
		}, NodeTimeout(floodTimeout))
	}
})

// memory returns a size, in bytes, from /proc/PID/status of the manager.
func memory(m *framework.Manager, field string) int64 {
	GinkgoHelper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", m.Process.PID))
	Expect(err).NotTo(HaveOccurred(), m.Process.LogTail())
	_, after, _ := strings.Cut(string(status), field+":")
	var kib int64
	_, err = fmt.Sscan(after, &kib)
	Expect(err).NotTo(HaveOccurred())
	return kib << 10
}

// withoutWebhooks calls a function while the webhooks of registries are disabled, because the API server cannot reach the stopped manager.
func withoutWebhooks(ctx context.Context, call func(context.Context)) {
	GinkgoHelper()
	for _, change := range []string{
		`[{"op":"add","path":"/webhooks/0/matchConditions","value":[{"name":"never","expression":"false"}]}]`, `[{"op":"remove","path":"/webhooks/0/matchConditions"}]`,
	} {
		for _, configuration := range []client.Object{
			&admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: meta("", webhook.MutatingConfiguration)},
			&admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: meta("", webhook.ValidatingConfiguration)},
		} {
			Expect(env.Admin.Patch(ctx, configuration, client.RawPatch(types.JSONPatchType, []byte(change)))).To(Succeed())
		}
		if call != nil {
			call(ctx)
			call = nil
		}
	}
}

// createPausedRegistries creates paused registries, which the manager does not reconcile.
func createPausedRegistries(ctx context.Context) {
	GinkgoHelper()
	var workers sync.WaitGroup
	next := atomic.Int64{}
	errs := make(chan error, registryCount)
	for range 8 {
		workers.Go(func() {
			for i := next.Add(1); i <= registryCount; i = next.Add(1) {
				o := &unstructured.Unstructured{Object: map[string]any{
					"apiVersion": "modelregistry.opendatahub.io/v1beta1", "kind": "ModelRegistry",
					"spec": map[string]any{"rest": map[string]any{}, "postgres": map[string]any{"host": "db", "username": "u", "database": "d"}},
				}}
				o.SetNamespace(team)
				o.SetName(fmt.Sprintf("many-%d", i))
				o.SetAnnotations(map[string]string{"platform.opendatahub.io/paused": "true"})
				err := env.Admin.Create(ctx, o)
				for apierrors.IsInternalError(err) && ctx.Err() == nil { // the API server may still call the disabled webhook
					err = env.Admin.Create(ctx, o)
				}
				errs <- err
			}
		})
	}
	workers.Wait()
	close(errs)
	for err := range errs {
		Expect(err).NotTo(HaveOccurred())
	}
}

func dryRunCreate(ctx context.Context) error {
	return as(registryEditor).Create(ctx, object(team, registry("quiet", "{}")), client.DryRunAll)
}

// countRegistries counts the registries of createPausedRegistries, listed in the version that is not stored. The change of the CRD clears
// the converted objects from the cache of the API server. An attempt takes up to a minute; several may be needed while other suites run.
func countRegistries(ctx context.Context) int {
	GinkgoHelper()
	crd := &unstructured.Unstructured{}
	crd.SetAPIVersion("apiextensions.k8s.io/v1")
	crd.SetKind("CustomResourceDefinition")
	crd.SetName("modelregistries.modelregistry.opendatahub.io")
	category := fmt.Sprintf(`{"spec":{"names":{"categories":["odh","flood%d"]}}}`, time.Now().UnixNano())
	Expect(env.Admin.Patch(ctx, crd, merge(category))).To(Succeed())
	items := &unstructured.UnstructuredList{}
	items.SetGroupVersionKind(schema.GroupVersionKind{Group: "modelregistry.opendatahub.io", Version: "v1alpha1", Kind: "ModelRegistryList"})
	Eventually(func() error { return as(admin).List(ctx, items, client.InNamespace(team)) }).WithContext(ctx).WithTimeout(floodTimeout).Should(Succeed())
	count := 0
	for i := range items.Items {
		if strings.HasPrefix(items.Items[i].GetName(), "many-") {
			count++
		}
	}
	return count
}

// post sends the body repeatedly from the given number of clients. The returned function stops them and returns the number of
// responses.
func post(ctx context.Context, url, body string, clients int, chunked bool) func() int64 {
	ctx, cancel := context.WithCancel(ctx)
	httpClient := &http.Client{Timeout: requestTimeout, Transport: &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, MaxIdleConnsPerHost: clients, //nolint:gosec // the certificate is for other names
	}}
	var workers sync.WaitGroup
	var responses atomic.Int64
	for range clients {
		workers.Go(func() {
			for ctx.Err() == nil {
				request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body))
				if err != nil {
					return
				}
				if chunked {
					request.ContentLength = -1
				}
				request.Header.Set("Content-Type", "application/json")
				if response, err := httpClient.Do(request); err == nil {
					_, _ = io.Copy(io.Discard, response.Body) // the status code is irrelevant
					_ = response.Body.Close()
					responses.Add(1)
				}
			}
		})
	}
	return func() int64 {
		cancel()
		workers.Wait()
		return responses.Load()
	}
}

// conversionReview returns a ConversionReview of count registries with the same spec.
func conversionReview(spec string, count int) string {
	item := `{"apiVersion":"modelregistry.opendatahub.io/v1alpha1","kind":"ModelRegistry","metadata":{"name":"a","namespace":"b"},"spec":` + spec + `}`
	items := strings.TrimSuffix(strings.Repeat(item+",", count), ",")
	return `{"apiVersion":"apiextensions.k8s.io/v1","kind":"ConversionReview","request":{"uid":"u",` +
		`"desiredAPIVersion":"modelregistry.opendatahub.io/v1beta1","objects":[` + items + `]}}`
}

func admissionReview(spec string) string {
	return `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u","operation":"CREATE","object":` +
		`{"apiVersion":"modelregistry.opendatahub.io/v1beta1","kind":"ModelRegistry","metadata":{"name":"a","namespace":"b"},"spec":` + spec + `}}}`
}

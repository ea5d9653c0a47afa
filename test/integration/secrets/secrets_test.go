package secrets_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/odh-platform/odh-platform-operator/test/framework"
)

// word is part of every Secret, next to characters that break URLs.
const word = "zq7planted4f9a"

// excerpt is the number of bytes around the word that a failure prints.
const excerpt = 80

// broken are the kinds in testdata/broken.yaml that have conditions.
var broken = []schema.GroupVersionKind{
	{Group: "mlflow.opendatahub.io", Version: "v1", Kind: "MLflow"},
	{Group: "modelregistry.opendatahub.io", Version: "v1beta1", Kind: "ModelRegistry"},
	{Group: "workload.codeflare.dev", Version: "v1beta2", Kind: "AppWrapper"},
}

// kinds are readable by users without access to Secrets.
var kinds = append([]schema.GroupVersionKind{
	{Group: "aihub.opendatahub.io", Version: "v1alpha1", Kind: "Catalog"},
	{Group: "serving.kserve.io", Version: "v1alpha1", Kind: "Predictor"},
	{Group: "serving.kserve.io", Version: "v1alpha1", Kind: "ServingRuntime"},
	{Group: "ray.io", Version: "v1", Kind: "RayCluster"},
	{Version: "v1", Kind: "ConfigMap"}, {Version: "v1", Kind: "Pod"}, {Version: "v1", Kind: "Service"},
	{Group: "apps", Version: "v1", Kind: "Deployment"}, {Group: "batch", Version: "v1", Kind: "Job"},
}, broken...)

func listObjects(ctx context.Context, kind schema.GroupVersionKind) []unstructured.Unstructured {
	GinkgoHelper()
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	Expect(env.Admin.List(ctx, list)).To(Succeed())
	return list.Items
}

// leaks returns the places that contain the word.
func leaks(ctx context.Context, start framework.AuditPosition) []string {
	GinkgoHelper()
	var out []string
	look := func(where, text string) {
		for line := range strings.Lines(text) {
			if at := strings.Index(line, word); at >= 0 {
				out = append(out, where+": "+line[max(0, at-excerpt):min(len(line), at+len(word)+excerpt)])
			}
		}
	}
	for _, kind := range kinds {
		for _, object := range listObjects(ctx, kind) {
			look(fmt.Sprintf("%s %s/%s", kind.Kind, object.GetNamespace(), object.GetName()), fmt.Sprint(object.Object))
		}
	}
	events := &eventsv1.EventList{}
	Expect(env.Admin.List(ctx, events)).To(Succeed())
	for i := range events.Items {
		look("Event", events.Items[i].Note)
	}
	log, err := os.ReadFile(manager.Process.Log)
	Expect(err).NotTo(HaveOccurred())
	look("log", string(log))
	response, err := http.Get(strings.Replace(manager.MetricsURL, "https:", "http:", 1) + "/metrics") //nolint:gosec,noctx // a listener of the test
	Expect(err).NotTo(HaveOccurred())
	defer func() { _ = response.Body.Close() }()
	metrics, err := io.ReadAll(response.Body)
	Expect(err).NotTo(HaveOccurred())
	Expect(string(metrics)).To(ContainSubstring("odh_platform_component_running"))
	look("metrics", string(metrics))
	for _, entry := range env.Since(start).ByUser(manager.User).Writes() {
		if entry.Resource != "secrets" {
			look("audit "+entry.String(), string(entry.Request))
		}
	}
	return out
}

var _ = It("shows no value of a Secret in any failure", func(ctx SpecContext) {
	start := env.AuditPosition()
	namespace := env.Namespace(ctx, "secrets")
	for _, object := range framework.Recording("testdata/broken.yaml", "NAMESPACE", namespace, "WORD", word) {
		Expect(env.Admin.Create(ctx, object)).To(Succeed(), "%s %s", object.GetKind(), object.GetName())
		DeferCleanup(func(ctx context.Context) { _ = env.Admin.Delete(ctx, object) })
	}
	for _, kind := range broken {
		objects := listObjects(ctx, kind)
		Expect(objects).NotTo(BeEmpty())
		for _, object := range objects {
			env.WaitFor(ctx, &object, func(g Gomega) {
				conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
				g.Expect(conditions).NotTo(BeEmpty())
			})
		}
	}
	env.Patch(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "database"}},
		map[string]any{"stringData": map[string]any{"password": word + "-changed"}})
	// The manager reads everything again, with empty caches.
	manager.Restart(ctx)
	env.WaitIdle(manager.User, quiet, time.Minute)
	Expect(leaks(ctx, start)).To(BeEmpty())
}, NodeTimeout(specTimeout))

var _ = It("restores an overwritten CA within two seconds", func(ctx SpecContext) {
	hooks := &admissionv1.ValidatingWebhookConfiguration{}
	hooks.Name = "modelmesh-servingruntime.serving.kserve.io"
	env.Get(ctx, hooks)
	right := hooks.Webhooks[0].ClientConfig.CABundle
	Expect(right).NotTo(BeEmpty())
	hooks.Webhooks[0].ClientConfig.CABundle = []byte("-----BEGIN CERTIFICATE-----\nnobody\n-----END CERTIFICATE-----\n")
	if err := env.Admin.Update(ctx, hooks); err != nil { // the API server requires PEM
		hooks.Webhooks[0].ClientConfig.CABundle = nil
		Expect(env.Admin.Update(ctx, hooks)).To(Succeed())
	}
	Eventually(func(g Gomega) {
		env.Get(ctx, hooks)
		g.Expect(hooks.Webhooks[0].ClientConfig.CABundle).To(Equal(right))
	}, 5*time.Second, 50*time.Millisecond).Should(Succeed())
}, NodeTimeout(specTimeout))

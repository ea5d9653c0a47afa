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

// marker is part of every Secret in testdata/broken.yaml, some of which also contain characters that break URLs.
const marker = "zq7planted4f9a"

// excerptBytes is the number of bytes before and after the marker that a failure prints.
const excerptBytes = 80

// brokenKinds are the kinds of testdata/broken.yaml whose status has conditions.
var brokenKinds = []schema.GroupVersionKind{
	{Group: "mlflow.opendatahub.io", Version: "v1", Kind: "MLflow"},
	{Group: "modelregistry.opendatahub.io", Version: "v1beta1", Kind: "ModelRegistry"},
	{Group: "workload.codeflare.dev", Version: "v1beta2", Kind: "AppWrapper"},
}

// readableKinds are kinds that users without access to Secrets can read.
var readableKinds = append([]schema.GroupVersionKind{
	{Group: "aihub.opendatahub.io", Version: "v1alpha1", Kind: "Catalog"},
	{Group: "serving.kserve.io", Version: "v1alpha1", Kind: "Predictor"},
	{Group: "serving.kserve.io", Version: "v1alpha1", Kind: "ServingRuntime"},
	{Group: "ray.io", Version: "v1", Kind: "RayCluster"},
	{Version: "v1", Kind: "ConfigMap"}, {Version: "v1", Kind: "Pod"}, {Version: "v1", Kind: "Service"},
	{Group: "apps", Version: "v1", Kind: "Deployment"}, {Group: "batch", Version: "v1", Kind: "Job"},
}, brokenKinds...)

func listObjects(ctx context.Context, kind schema.GroupVersionKind) []unstructured.Unstructured {
	GinkgoHelper()
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	Expect(env.Admin.List(ctx, list)).To(Succeed())
	return list.Items
}

// findLeaks returns excerpts of everything readable that contains the marker.
func findLeaks(ctx context.Context, start framework.AuditPosition) []string {
	GinkgoHelper()
	var out []string
	search := func(location, text string) {
		for line := range strings.Lines(text) {
			if index := strings.Index(line, marker); index >= 0 {
				out = append(out, location+": "+line[max(0, index-excerptBytes):min(len(line), index+len(marker)+excerptBytes)])
			}
		}
	}
	for _, kind := range readableKinds {
		for _, object := range listObjects(ctx, kind) {
			search(fmt.Sprintf("%s %s/%s", kind.Kind, object.GetNamespace(), object.GetName()), fmt.Sprint(object.Object))
		}
	}
	events := &eventsv1.EventList{}
	Expect(env.Admin.List(ctx, events)).To(Succeed())
	for i := range events.Items {
		search("Event", events.Items[i].Note)
	}
	log, err := os.ReadFile(manager.Process.Log)
	Expect(err).NotTo(HaveOccurred())
	search("log", string(log))
	response, err := http.Get(strings.Replace(manager.MetricsURL, "https:", "http:", 1) + "/metrics") //nolint:gosec,noctx // a listener of the test
	Expect(err).NotTo(HaveOccurred())
	defer func() { _ = response.Body.Close() }()
	metrics, err := io.ReadAll(response.Body)
	Expect(err).NotTo(HaveOccurred())
	Expect(string(metrics)).To(ContainSubstring("odh_platform_component_running"))
	search("metrics", string(metrics))
	for _, entry := range env.Since(start).ByUser(manager.User).Writes() {
		if entry.Resource != "secrets" {
			search("audit "+entry.String(), string(entry.Request))
		}
	}
	return out
}

var _ = It("shows no value of a Secret in any failure", func(ctx SpecContext) {
	start := env.AuditPosition()
	namespace := env.Namespace(ctx, "secrets")
	for _, object := range framework.Recording("testdata/broken.yaml", "NAMESPACE", namespace, "MARKER", marker) {
		Expect(env.Admin.Create(ctx, object)).To(Succeed(), "%s %s", object.GetKind(), object.GetName())
		DeferCleanup(func(ctx context.Context) { _ = env.Admin.Delete(ctx, object) })
	}
	for _, kind := range brokenKinds {
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
		map[string]any{"stringData": map[string]any{"password": marker + "-changed"}})
	// The restarted manager reads all objects again.
	manager.Restart(ctx)
	env.WaitIdle(manager.User, idlePeriod, time.Minute)
	Expect(findLeaks(ctx, start)).To(BeEmpty())
}, NodeTimeout(specTimeout))

var _ = It("restores an overwritten CA within five seconds", func(ctx SpecContext) {
	configuration := &admissionv1.ValidatingWebhookConfiguration{}
	configuration.Name = "modelmesh-servingruntime.serving.kserve.io"
	env.Get(ctx, configuration)
	original := configuration.Webhooks[0].ClientConfig.CABundle
	Expect(original).NotTo(BeEmpty())
	configuration.Webhooks[0].ClientConfig.CABundle = []byte("-----BEGIN CERTIFICATE-----\nnobody\n-----END CERTIFICATE-----\n")
	if err := env.Admin.Update(ctx, configuration); err != nil { // the API server requires PEM
		configuration.Webhooks[0].ClientConfig.CABundle = nil
		Expect(env.Admin.Update(ctx, configuration)).To(Succeed())
	}
	Eventually(func(g Gomega) {
		env.Get(ctx, configuration)
		g.Expect(configuration.Webhooks[0].ClientConfig.CABundle).To(Equal(original))
	}, 5*time.Second, 50*time.Millisecond).Should(Succeed())
}, NodeTimeout(specTimeout))

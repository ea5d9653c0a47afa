package all_components_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/test/cluster"
)

// workload is a kind with pods, in its own namespace or the given one.
type workload struct {
	name, file, change, namespace string
	// reporter is another object whose status has the cause in place of the workload's status.
	reporter string
	labels   map[string]string
	// image and class set a bad image and a missing StorageClass, for kinds with such fields.
	image, class string
}

var withPods = []workload{
	{name: "a registry", file: "modelregistry_proxy.yaml", image: `spec: {rest: {image: "` + badImage + `"}}`},
	// A server exits without its database, but its pod on a fake node does not.
	{name: "the database of a registry", file: "modelregistry_generated.yaml",
		image: `spec: {postgres: {image: "` + badImage + `"}, rest: {image: "` + cluster.PodBehaviorRegistry + `crash-loop:1"}}`,
		class: `spec: {postgres: {storage: {storageClassName: none}}, rest: {image: "` + cluster.PodBehaviorRegistry + `crash-loop:1"}}`},
	{name: "a catalog", file: "aihub_catalog.yaml"},
	// The next MLflow would take over a retained PersistentVolumeClaim.
	{name: "an MLflow", file: "mlflow.yaml", namespace: operatorNamespace, change: `spec: {storageRetentionPolicy: Delete}`,
		image: `spec: {image: {image: "` + badImage + `"}}`, class: `spec: {storage: {storageClassName: none}}`},
	{name: "a model", file: "modelmesh_runtime_custom.yaml", reporter: "Predictor", labels: map[string]string{"modelmesh-enabled": "true"},
		image: `spec: {containers: [{name: modelserver, image: "` + badImage + `", resources: {limits: {cpu: 1, memory: 1Gi}}}]}`},
	{name: "a Deployment in an AppWrapper", file: "appwrapper_deployment.yaml", change: `metadata: {labels: null}`},
	{name: "a Job in an AppWrapper", file: "appwrapper_job.yaml", change: `metadata: {labels: null}`},
}

// situations prevent pods from running. Their messages are in the second column of the table in docs/troubleshooting.md.
var situations = map[string]struct {
	// limit changes the namespace, edit returns a change of the object, or "" if the kind has no such field.
	limit func(ctx context.Context, namespace string)
	edit  func(workload) string
}{
	"quota": {limit: func(ctx context.Context, namespace string) {
		limitQuota(ctx, namespace, &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "tight"},
			Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("0")}}})
	}},
	"LimitRange": {limit: func(ctx context.Context, namespace string) {
		limitQuota(ctx, namespace, &corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Name: "large"}, Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{
			Type: corev1.LimitTypeContainer, Min: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("64")},
		}}}})
	}},
	"no node": {limit: func(ctx context.Context, _ string) {
		cordon(ctx, true)
		DeferCleanup(cordon, false)
	}},
	"image": {edit: func(w workload) string { return w.image }},
	"claim": {edit: func(w workload) string { return w.class }},
}

func limitQuota(ctx context.Context, namespace string, o client.Object) {
	GinkgoHelper()
	o.SetNamespace(namespace)
	Expect(env.Admin.Create(ctx, o)).To(Succeed())
	DeferCleanup(func(ctx SpecContext) { Expect(client.IgnoreNotFound(env.Admin.Delete(ctx, o))).To(Succeed()) })
}

func cordon(ctx context.Context, on bool) {
	GinkgoHelper()
	nodes := &corev1.NodeList{}
	Expect(env.Admin.List(ctx, nodes)).To(Succeed())
	for i := range nodes.Items {
		env.Patch(ctx, &nodes.Items[i], map[string]any{"spec": map[string]any{"unschedulable": on}})
	}
}

// documented returns the documented message of each situation.
func documented() map[string]string {
	GinkgoHelper()
	root, err := cluster.RepositoryRoot()
	Expect(err).NotTo(HaveOccurred())
	page, err := os.ReadFile(filepath.Join(root, "docs", "troubleshooting.md"))
	Expect(err).NotTo(HaveOccurred())
	_, section, found := strings.Cut(string(page), "### Why there are no pods")
	Expect(found).To(BeTrue())
	section, _, _ = strings.Cut(section, "\n#")
	texts := map[string]string{}
	for _, row := range regexp.MustCompile("(?m)^\\| ([^|]*) \\| `([^`]*)`").FindAllStringSubmatch(section, -1) {
		texts[row[1]] = row[2]
	}
	return texts
}

var _ = Describe("The status of models without pods", Serial, func() {
	for situation, s := range situations {
		for _, w := range withPods {
			change := ""
			if s.edit != nil {
				if change = s.edit(w); change == "" {
					continue
				}
			}
			It(fmt.Sprintf("names the cause: %s, %s", situation, w.name), func(ctx SpecContext) {
				e := example{file: w.file, change: w.change + "\n---\n" + change, namespace: w.namespace, labels: w.labels}
				if e.namespace == "" {
					e.namespace = component{labels: w.labels}.namespace(ctx, "causes")
				}
				if s.limit != nil {
					s.limit(ctx, e.namespace)
				}
				object := e.create(ctx)
				if w.reporter != "" {
					object = example{file: "modelmesh_predictor.yaml", namespace: e.namespace, change: `spec: {modelType: {name: ml-type1, version: "1"}}`}.create(ctx)
				}
				want := documented()[situation]
				Expect(want).NotTo(BeEmpty(), "the page has no row of %q", situation)
				Eventually(func(g Gomega) {
					live := object.DeepCopy()
					g.Expect(env.Admin.Get(ctx, client.ObjectKeyFromObject(object), live)).To(Succeed())
					status, _, err := unstructured.NestedMap(live.Object, "status")
					g.Expect(err).NotTo(HaveOccurred())
					g.Expect(fmt.Sprint(status)).To(ContainSubstring(want))
				}).WithContext(ctx).WithTimeout(waitTimeout).Should(Succeed())
			}, SpecTimeout(specTimeout))
		}
	}
})

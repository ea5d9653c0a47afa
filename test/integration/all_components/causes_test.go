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

// workload is a sample whose pods are prevented from running, in a generated namespace or the given one.
type workload struct {
	name, file, change, namespace string
	// reporter is the file of another object that reports the cause in its status, for workloads without a status.
	reporter string
	labels   map[string]string
	// image and storageClass set an image that cannot be pulled and a missing StorageClass, for kinds with such fields.
	image, storageClass string
}

var podWorkloads = []workload{
	{name: "a registry", file: "modelregistry_proxy.yaml", image: `spec: {rest: {image: "` + badImage + `"}}`},
	// A real server exits without its database, so crash-loop simulates it on the fake node.
	{name: "the database of a registry", file: "modelregistry_generated.yaml",
		image:        `spec: {postgres: {image: "` + badImage + `"}, rest: {image: "` + cluster.PodBehaviorRegistry + `crash-loop:1"}}`,
		storageClass: `spec: {postgres: {storage: {storageClassName: none}}, rest: {image: "` + cluster.PodBehaviorRegistry + `crash-loop:1"}}`},
	{name: "a catalog", file: "aihub_catalog.yaml"},
	// The next MLflow would adopt a retained PersistentVolumeClaim.
	{name: "an MLflow", file: "mlflow.yaml", namespace: operatorNamespace, change: `spec: {storageRetentionPolicy: Delete}`,
		image: `spec: {image: {image: "` + badImage + `"}}`, storageClass: `spec: {storage: {storageClassName: none}}`},
	{name: "a model", file: "modelmesh_runtime_custom.yaml", reporter: "modelmesh_predictor.yaml", labels: map[string]string{"modelmesh-enabled": "true"},
		image: `spec: {containers: [{name: modelserver, image: "` + badImage + `", resources: {limits: {cpu: 1, memory: 1Gi}}}]}`},
	{name: "a Deployment in an AppWrapper", file: "appwrapper_deployment.yaml", change: `metadata: {labels: null}`},
	{name: "a Job in an AppWrapper", file: "appwrapper_job.yaml", change: `metadata: {labels: null}`},
}

// causes prevent pods from running. Their messages are in the second column of the table in docs/troubleshooting.md.
var causes = map[string]struct {
	// restrict changes the namespace or the nodes.
	restrict func(ctx context.Context, namespace string)
	// change returns a change of the object, or "" if the kind has no such field.
	change func(workload) string
}{
	"quota": {restrict: func(ctx context.Context, namespace string) {
		createRestriction(ctx, namespace, &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "tight"},
			Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("0")}}})
	}},
	"LimitRange": {restrict: func(ctx context.Context, namespace string) {
		createRestriction(ctx, namespace, &corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Name: "large"}, Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{
			Type: corev1.LimitTypeContainer, Min: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("64")},
		}}}})
	}},
	"no node": {restrict: func(ctx context.Context, _ string) {
		cordon(ctx, true)
		DeferCleanup(cordon, false)
	}},
	"image": {change: func(w workload) string { return w.image }},
	"claim": {change: func(w workload) string { return w.storageClass }},
}

func createRestriction(ctx context.Context, namespace string, o client.Object) {
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

// documentedMessages returns the message in docs/troubleshooting.md of each cause.
func documentedMessages() map[string]string {
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

var _ = Describe("The status of a custom resource whose pods do not run", Serial, func() {
	for cause, c := range causes {
		for _, w := range podWorkloads {
			change := ""
			if c.change != nil {
				if change = c.change(w); change == "" {
					continue
				}
			}
			It(fmt.Sprintf("reports the cause: %s, %s", cause, w.name), func(ctx SpecContext) {
				e := example{file: w.file, change: w.change + "\n---\n" + change, namespace: w.namespace, labels: w.labels}
				if e.namespace == "" {
					e.namespace = component{labels: w.labels}.namespace(ctx, "causes")
				}
				if c.restrict != nil {
					c.restrict(ctx, e.namespace)
				}
				object := e.create(ctx)
				if w.reporter != "" {
					object = example{file: w.reporter, namespace: e.namespace, change: `spec: {modelType: {name: ml-type1, version: "1"}}`}.create(ctx)
				}
				want := documentedMessages()[cause]
				Expect(want).NotTo(BeEmpty(), "docs/troubleshooting.md has no row %q", cause)
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

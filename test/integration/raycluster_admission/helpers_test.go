package raycluster_admission_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/odh-platform/odh-platform-operator/pkg/raycluster"
	"github.com/odh-platform/odh-platform-operator/test/framework"
	webhook "github.com/odh-platform/odh-platform-operator/webhooks/raycluster"
)

// bypass is a label of clusters that skip the mutating webhook in this suite, as if another webhook had changed them later. Both the old
// and the new object must have it.
const bypass = "testcluster/bypass"

// minimal is the manifest of a RayCluster that a restricted namespace admits.
const minimal = `
apiVersion: ray.io/v1
kind: RayCluster
metadata: {name: test-raycluster}
spec:
  rayVersion: "2.47.1"
  headGroupSpec:
    rayStartParams: {}
    template:
      spec:
        securityContext: {runAsNonRoot: true, runAsUser: 1000, seccompProfile: {type: RuntimeDefault}}
        containers:
        - &ray
          name: ray-head
          image: "example.com/ray:1"
          securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}
          resources: {requests: {cpu: 100m, memory: 1Gi}, limits: {cpu: "1", memory: 1Gi}}
  workerGroupSpecs:
  - &group
    groupName: small
    replicas: 1
    minReplicas: 0
    maxReplicas: 3
    rayStartParams: {}
    template:
      spec:
        securityContext: {runAsNonRoot: true, runAsUser: 1000, seccompProfile: {type: RuntimeDefault}}
        containers:
        - <<: *ray
          name: ray-worker
  - <<: *group
    groupName: big
`

var (
	headPodPath      = []string{"spec", "headGroupSpec", "template", "spec"}
	workerGroupsPath = []string{"spec", "workerGroupSpecs"}
)

func managerOptions(name string, variables ...string) framework.ManagerOptions {
	return framework.ManagerOptions{
		Name: name, WebhookPort: env.Installed.WebhookPort,
		Args: []string{"--components=raycluster"}, Env: append([]string{"OAUTH_PROXY_IMAGE=example.com/oauth:1"}, variables...),
	}
}

// newRayCluster decodes a RayCluster and applies the changes to it.
func newRayCluster(namespace, text string, changes ...func(*unstructured.Unstructured)) *unstructured.Unstructured {
	GinkgoHelper()
	rayCluster := &unstructured.Unstructured{Object: map[string]any{}}
	Expect(yaml.Unmarshal([]byte(text), &rayCluster.Object)).To(Succeed())
	rayCluster.SetNamespace(namespace)
	for _, change := range changes {
		change(rayCluster)
	}
	return rayCluster
}

func setField(value any, path ...string) func(*unstructured.Unstructured) {
	return func(rayCluster *unstructured.Unstructured) {
		GinkgoHelper()
		Expect(unstructured.SetNestedField(rayCluster.Object, value, path...)).To(Succeed())
	}
}

func withLabel(key, value string) func(*unstructured.Unstructured) {
	return func(rayCluster *unstructured.Unstructured) {
		labels := rayCluster.GetLabels()
		if labels == nil {
			labels = map[string]string{}
		}
		labels[key] = value
		rayCluster.SetLabels(labels)
	}
}

func withAnnotation(key, value string) func(*unstructured.Unstructured) {
	return setField(value, "metadata", "annotations", key)
}

// createRayCluster creates a RayCluster, which must be admitted.
func createRayCluster(ctx context.Context, rayCluster *unstructured.Unstructured) *unstructured.Unstructured {
	GinkgoHelper()
	Expect(env.Admin.Create(ctx, rayCluster)).To(Succeed())
	return rayCluster
}

// updateRayCluster updates a RayCluster, and retries on conflicts with the controller.
func updateRayCluster(ctx context.Context, rayCluster *unstructured.Unstructured, changes ...func(*unstructured.Unstructured)) error {
	GinkgoHelper()
	return env.Update(ctx, env.Admin, rayCluster, func() {
		for _, change := range changes {
			change(rayCluster)
		}
	})
}

// headPodSpec returns the pod spec of the head, and workerPodSpec that of a worker group.
func headPodSpec(rayCluster *unstructured.Unstructured) *corev1.PodSpec {
	GinkgoHelper()
	return podSpec(rayCluster.Object, headPodPath...)
}

func workerPodSpec(rayCluster *unstructured.Unstructured, i int) *corev1.PodSpec {
	GinkgoHelper()
	groups, _, err := unstructured.NestedSlice(rayCluster.Object, workerGroupsPath...)
	Expect(err).NotTo(HaveOccurred())
	return podSpec(groups[i].(map[string]any), "template", "spec")
}

func podSpec(object map[string]any, path ...string) *corev1.PodSpec {
	GinkgoHelper()
	fields, found, err := unstructured.NestedMap(object, path...)
	Expect(err).NotTo(HaveOccurred())
	Expect(found).To(BeTrue())
	spec := &corev1.PodSpec{}
	Expect(runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(fields, spec, true)).To(Succeed())
	return spec
}

// changeHead returns a change of the pod spec of the head, and changeGroup one of a worker group.
func changeHead(change func(*corev1.PodSpec)) func(*unstructured.Unstructured) {
	return func(rayCluster *unstructured.Unstructured) {
		GinkgoHelper()
		spec := headPodSpec(rayCluster)
		change(spec)
		setField(toUnstructured(spec), headPodPath...)(rayCluster)
	}
}

func changeGroup(i int, change func(*corev1.PodSpec)) func(*unstructured.Unstructured) {
	return func(rayCluster *unstructured.Unstructured) {
		GinkgoHelper()
		groups, _, err := unstructured.NestedSlice(rayCluster.Object, workerGroupsPath...)
		Expect(err).NotTo(HaveOccurred())
		spec := workerPodSpec(rayCluster, i)
		change(spec)
		Expect(unstructured.SetNestedField(groups[i].(map[string]any), toUnstructured(spec), "template", "spec")).To(Succeed())
		setField(groups, workerGroupsPath...)(rayCluster)
	}
}

func toUnstructured(spec *corev1.PodSpec) map[string]any {
	GinkgoHelper()
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(spec)
	Expect(err).NotTo(HaveOccurred())
	return fields
}

func containerNames(containers []corev1.Container) []string {
	var names []string
	for _, c := range containers {
		names = append(names, c.Name)
	}
	return names
}

func volumeNames(spec *corev1.PodSpec) []string {
	var names []string
	for _, v := range spec.Volumes {
		names = append(names, v.Name)
	}
	return names
}

func namesOf(rayCluster *unstructured.Unstructured) raycluster.Names {
	return raycluster.View(rayCluster.Object).Names()
}

// waitForWebhooks waits until both webhooks respond.
func waitForWebhooks(ctx context.Context) {
	GinkgoHelper()
	env.WaitAdmitted(ctx, newRayCluster(metav1.NamespaceDefault, minimal))
}

// stopManager stops the manager. After the spec it is restarted, and its webhooks respond.
func stopManager(ctx context.Context) {
	GinkgoHelper()
	DeferCleanup(waitForWebhooks, NodeTimeout(specTimeout))
	manager.StopTemporarily(ctx)
}

// excludeBypassed excludes clusters with the label bypass from the mutating webhook, and waits until the API server uses the selector.
func excludeBypassed(ctx context.Context) {
	GinkgoHelper()
	configuration := &admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: webhook.MutatingConfiguration}}
	Expect(retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		env.Get(ctx, configuration)
		configuration.Webhooks[0].ObjectSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: bypass, Operator: metav1.LabelSelectorOpDoesNotExist},
		}}
		return env.Admin.Update(ctx, configuration)
	})).To(Succeed())
	Eventually(func() error {
		return env.Admin.Create(ctx, newRayCluster(metav1.NamespaceDefault, minimal, withLabel(bypass, "")), client.DryRunAll)
	}).WithContext(ctx).Should(MatchError(ContainSubstring("OAuth Proxy container is immutable")))
}

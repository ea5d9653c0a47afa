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

// minimal is a cluster as users write it, in a restricted namespace.
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
	headPod = []string{"spec", "headGroupSpec", "template", "spec"}
	// workers is the path of the worker groups of minimal.
	workers = []string{"spec", "workerGroupSpecs"}
)

func options(name string, extra ...string) framework.ManagerOptions {
	return framework.ManagerOptions{
		Name: name, WebhookPort: env.Installed.WebhookPort,
		Args: []string{"--components=raycluster"}, Env: append([]string{"OAUTH_PROXY_IMAGE=example.com/oauth:1"}, extra...),
	}
}

// rayCluster decodes a RayCluster and applies changes.
func rayCluster(namespace, text string, changes ...func(*unstructured.Unstructured)) *unstructured.Unstructured {
	GinkgoHelper()
	u := &unstructured.Unstructured{Object: map[string]any{}}
	Expect(yaml.Unmarshal([]byte(text), &u.Object)).To(Succeed())
	u.SetNamespace(namespace)
	for _, change := range changes {
		change(u)
	}
	return u
}

func set(value any, path ...string) func(*unstructured.Unstructured) {
	return func(u *unstructured.Unstructured) {
		GinkgoHelper()
		Expect(unstructured.SetNestedField(u.Object, value, path...)).To(Succeed())
	}
}

func labelled(key, value string) func(*unstructured.Unstructured) {
	return func(u *unstructured.Unstructured) {
		labels := u.GetLabels()
		if labels == nil {
			labels = map[string]string{}
		}
		labels[key] = value
		u.SetLabels(labels)
	}
}

func annotated(key, value string) func(*unstructured.Unstructured) {
	return set(value, "metadata", "annotations", key)
}

// expectAdmitted creates a RayCluster that must be accepted.
func expectAdmitted(ctx context.Context, u *unstructured.Unstructured) *unstructured.Unstructured {
	GinkgoHelper()
	Expect(env.Admin.Create(ctx, u)).To(Succeed())
	return u
}

// update changes a RayCluster, and retries on conflicts with the controller.
func update(ctx context.Context, u *unstructured.Unstructured, changes ...func(*unstructured.Unstructured)) error {
	GinkgoHelper()
	return env.Update(ctx, env.Admin, u, func() {
		for _, change := range changes {
			change(u)
		}
	})
}

// head returns the pod spec of the head, and group that of workers.
func head(u *unstructured.Unstructured) *corev1.PodSpec {
	GinkgoHelper()
	return podSpec(u.Object, headPod...)
}

func group(u *unstructured.Unstructured, i int) *corev1.PodSpec {
	GinkgoHelper()
	groups, _, err := unstructured.NestedSlice(u.Object, workers...)
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

// changeHead changes the pod spec of the head, and changeGroup that of workers.
func changeHead(change func(*corev1.PodSpec)) func(*unstructured.Unstructured) {
	return func(u *unstructured.Unstructured) {
		GinkgoHelper()
		spec := head(u)
		change(spec)
		set(encoded(spec), headPod...)(u)
	}
}

func changeGroup(i int, change func(*corev1.PodSpec)) func(*unstructured.Unstructured) {
	return func(u *unstructured.Unstructured) {
		GinkgoHelper()
		groups, _, err := unstructured.NestedSlice(u.Object, workers...)
		Expect(err).NotTo(HaveOccurred())
		spec := group(u, i)
		change(spec)
		Expect(unstructured.SetNestedField(groups[i].(map[string]any), encoded(spec), "template", "spec")).To(Succeed())
		set(groups, workers...)(u)
	}
}

func encoded(spec *corev1.PodSpec) map[string]any {
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

func namesOf(u *unstructured.Unstructured) raycluster.Names { return raycluster.View(u.Object).Names() }

// waitForWebhooks waits until both webhooks respond.
func waitForWebhooks(ctx context.Context) {
	GinkgoHelper()
	env.WaitAdmitted(ctx, rayCluster(metav1.NamespaceDefault, minimal))
}

// stopManager stops the manager until the end of the spec, which waits for its webhooks.
func stopManager(ctx context.Context) {
	GinkgoHelper()
	DeferCleanup(waitForWebhooks, NodeTimeout(specTimeout))
	manager.StopTemporarily(ctx)
}

// excludeBypassed excludes clusters with the label bypass from the mutating webhook, and waits until the API server applies it.
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
		return env.Admin.Create(ctx, rayCluster(metav1.NamespaceDefault, minimal, labelled(bypass, "")), client.DryRunAll)
	}).WithContext(ctx).Should(MatchError(ContainSubstring("OAuth Proxy container is immutable")))
}

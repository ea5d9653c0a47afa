package appwrapper_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	awv1beta2 "github.com/odh-platform/odh-platform-operator/apis/appwrapper/v1beta2"
	"github.com/odh-platform/odh-platform-operator/test/framework"
)

const (
	runningImage    = "registry.example.com/app:1"
	failingImage    = "testcluster.invalid/failed:1"
	unpullableImage = "testcluster.invalid/image-pull:1"
	neverReadyImage = "testcluster.invalid/not-ready:1"
)

// mutator changes an AppWrapper before its creation.
type mutator = func(*awv1beta2.AppWrapper)

// wrap returns an AppWrapper with the templates, in YAML, as components.
func wrap(namespace, name string, templates []string, changes ...mutator) *awv1beta2.AppWrapper {
	GinkgoHelper()
	aw := &awv1beta2.AppWrapper{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Annotations: map[string]string{},
		Labels: map[string]string{awv1beta2.LabelUser: "admin"}}} // set by the webhooks in a cluster
	for _, template := range templates {
		raw, err := yaml.YAMLToJSON([]byte(template))
		Expect(err).NotTo(HaveOccurred())
		aw.Spec.Components = append(aw.Spec.Components, awv1beta2.AppWrapperComponent{Template: runtime.RawExtension{Raw: raw}})
	}
	for _, change := range changes {
		change(aw)
	}
	return aw
}

// withAnnotations sets annotations from pairs of name and value.
func withAnnotations(pairs ...string) mutator {
	return func(aw *awv1beta2.AppWrapper) {
		for i := 0; i < len(pairs); i += 2 {
			aw.Annotations[awv1beta2.AnnotationPrefix+pairs[i]] = pairs[i+1]
		}
	}
}

func suspended(aw *awv1beta2.AppWrapper) { aw.Spec.Suspend = true }

// failFast disables the grace period and the retries, so the first failure is final.
var failFast = withAnnotations("failureGracePeriodDuration", "0s", "retryPausePeriodDuration", "0s", "retryLimit", "0", "successTTLDuration", "168h")

func create(ctx context.Context, aw *awv1beta2.AppWrapper) *awv1beta2.AppWrapper {
	GinkgoHelper()
	Expect(env.Admin.Create(ctx, aw)).To(Succeed())
	return aw
}

func pod(name, image string) string {
	return fmt.Sprintf(`{apiVersion: v1, kind: Pod, metadata: {name: %s}, spec: {restartPolicy: Never, containers: [{name: main, image: "%s"}]}}`, name, image)
}

func job(name, image string, count int) string {
	return fmt.Sprintf(`{apiVersion: batch/v1, kind: Job, metadata: {name: %s}, spec: {backoffLimit: 0, parallelism: %d, completions: %d,
  template: {spec: {restartPolicy: Never, containers: [{name: main, image: "%s"}]}}}}`, name, count, count, image)
}

func deployment(name string, replicas int) string {
	return fmt.Sprintf(`{apiVersion: apps/v1, kind: Deployment, metadata: {name: %s}, spec: {replicas: %d, selector: {matchLabels: {app: %s}},
  template: {metadata: {labels: {app: %s}}, spec: {containers: [{name: main, image: "%s"}]}}}}`, name, replicas, name, name, runningImage)
}

// waitForPhase waits until the AppWrapper has the phase and the checks pass, and reads it.
func waitForPhase(ctx context.Context, aw *awv1beta2.AppWrapper, phase awv1beta2.AppWrapperPhase, checks ...func(Gomega)) {
	GinkgoHelper()
	env.WaitFor(ctx, aw, func(g Gomega) {
		status, err := json.Marshal(aw.Status)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(aw.Status.Phase).To(Equal(phase), "%s", status)
		for _, check := range checks {
			check(g)
		}
	})
}

// hasConditions returns a check that expects conditions, as "Type=Status" or "Type=Status/Reason".
func hasConditions(aw *awv1beta2.AppWrapper, conditions ...string) func(Gomega) {
	return func(g Gomega) {
		GinkgoHelper()
		actual := conditionsOf(aw)
		for _, c := range conditions {
			g.Expect(actual).To(ContainElement(c))
		}
	}
}

// conditionsOf returns each condition of an AppWrapper twice: as "Type=Status" and as "Type=Status/Reason".
func conditionsOf(aw *awv1beta2.AppWrapper) []string {
	var actual []string
	for _, c := range aw.Status.Conditions {
		actual = append(actual, c.Type+"="+string(c.Status), c.Type+"="+string(c.Status)+"/"+c.Reason)
	}
	return actual
}

// writtenStatuses returns the phase and conditions of an AppWrapper after each write of the manager since a position in the log,
// short-lived states included.
func writtenStatuses(start framework.AuditPosition, aw *awv1beta2.AppWrapper) []awv1beta2.AppWrapperStatus {
	GinkgoHelper()
	var current awv1beta2.AppWrapperStatus
	var statuses []awv1beta2.AppWrapperStatus
	for _, e := range env.Since(start).ByUser(manager.User).ForResource("appwrappers").Writes() {
		if e.Namespace != aw.Namespace || e.Name != aw.Name || e.Subresource != "status" || e.Code != http.StatusOK {
			continue
		}
		var patch struct{ Status awv1beta2.AppWrapperStatus }
		Expect(json.Unmarshal(e.Request, &patch)).To(Succeed())
		if patch.Status.Phase != "" {
			current.Phase = patch.Status.Phase
		}
		if patch.Status.Conditions != nil { // a merge patch replaces the whole list
			current.Conditions = patch.Status.Conditions
		}
		statuses = append(statuses, current)
	}
	return statuses
}

// waitForWrittenStatus waits until the manager has written the phase with the given conditions, even if only briefly, and returns that
// status. The phase is empty if it has not changed since the position in the log.
func waitForWrittenStatus(ctx context.Context, start framework.AuditPosition, aw *awv1beta2.AppWrapper, phase awv1beta2.AppWrapperPhase, conditions ...string) *awv1beta2.AppWrapper {
	GinkgoHelper()
	observed := &awv1beta2.AppWrapper{}
	Eventually(func(g Gomega) {
		statuses := writtenStatuses(start, aw)
		g.Expect(slices.ContainsFunc(statuses, func(status awv1beta2.AppWrapperStatus) bool {
			observed.Status = status
			actual := conditionsOf(observed)
			missing := slices.ContainsFunc(conditions, func(c string) bool { return !slices.Contains(actual, c) })
			return status.Phase == phase && !missing
		})).To(BeTrue(), "%s with %v is not among %v", phase, conditions, statuses)
	}).WithContext(ctx).WithTimeout(waitTimeout).WithPolling(poll).Should(Succeed())
	return observed
}

// countTransitions returns how often the manager has set the phase of an AppWrapper since a position in the log.
func countTransitions(start framework.AuditPosition, aw *awv1beta2.AppWrapper, phase awv1beta2.AppWrapperPhase) int {
	GinkgoHelper()
	count, last := 0, awv1beta2.AppWrapperPhase("")
	for _, status := range writtenStatuses(start, aw) {
		if status.Phase == phase && last != phase {
			count++
		}
		last = status.Phase
	}
	return count
}

// resume resumes an AppWrapper, as Kueue does when it admits the Workload.
func resume(ctx context.Context, aw *awv1beta2.AppWrapper) { setSuspend(ctx, aw, false) }

// suspend suspends an AppWrapper, as Kueue does when it evicts the Workload.
func suspend(ctx context.Context, aw *awv1beta2.AppWrapper) { setSuspend(ctx, aw, true) }

func setSuspend(ctx context.Context, aw *awv1beta2.AppWrapper, value bool) {
	GinkgoHelper()
	env.Patch(ctx, aw, map[string]any{"spec": map[string]any{"suspend": value}})
}

func podsOf(ctx context.Context, aw *awv1beta2.AppWrapper) []corev1.Pod {
	GinkgoHelper()
	list := &corev1.PodList{}
	Expect(env.Admin.List(ctx, list, client.InNamespace(aw.Namespace), client.MatchingLabels{awv1beta2.LabelAppWrapper: aw.Name})).To(Succeed())
	return list.Items
}

func waitForNoPods(ctx context.Context, aw *awv1beta2.AppWrapper) {
	GinkgoHelper()
	Eventually(func() []corev1.Pod { return podsOf(ctx, aw) }).WithContext(ctx).WithTimeout(waitTimeout).WithPolling(poll).Should(BeEmpty())
}

// setPhase sets the phase of a pod, like a kubelet.
func setPhase(ctx context.Context, namespace, name string, phase corev1.PodPhase) {
	GinkgoHelper()
	env.Patch(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}},
		map[string]any{"status": map[string]any{"phase": phase}}, "status")
}

// waitForRunning waits until the pods are Running.
func waitForRunning(ctx context.Context, namespace string, names ...string) {
	GinkgoHelper()
	for _, name := range names {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
		env.WaitFor(ctx, p, func(g Gomega) { g.Expect(p.Status.Phase).To(Equal(corev1.PodRunning)) })
	}
}

func object(apiVersion, kind, namespace, name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetAPIVersion(apiVersion)
	u.SetKind(kind)
	u.SetNamespace(namespace)
	u.SetName(name)
	return u
}

// componentReason returns the reason of the condition ResourcesDeployed of a component.
func componentReason(aw *awv1beta2.AppWrapper, index int) string {
	if c := meta.FindStatusCondition(aw.Status.ComponentStatus[index].Conditions, awv1beta2.ConditionResourcesDeployed); c != nil {
		return c.Reason
	}
	return ""
}

// createPodAsController creates a pod for a component, like the controller of its kind.
func createPodAsController(ctx context.Context, apiVersion, kind, namespace, name, appWrapper string) {
	GinkgoHelper()
	owner := object(apiVersion, kind, namespace, name)
	env.Get(ctx, owner)
	Expect(env.Admin.Create(ctx, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name + "-0", Labels: map[string]string{awv1beta2.LabelAppWrapper: appWrapper},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: apiVersion, Kind: kind, Name: name, UID: owner.GetUID(), Controller: new(true)}}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: runningImage}}},
	})).To(Succeed())
}

// createJobsAsController creates a Job for each replica in a JobSet, like its controller. The real Job controller creates the pods.
func createJobsAsController(ctx context.Context, namespace, name string) {
	GinkgoHelper()
	set := object("jobset.x-k8s.io/v1alpha2", "JobSet", namespace, name)
	env.Get(ctx, set)
	jobs, _, err := unstructured.NestedSlice(set.Object, "spec", "replicatedJobs")
	Expect(err).NotTo(HaveOccurred())
	for _, replicatedJob := range jobs {
		template := replicatedJob.(map[string]any)
		for i := range template["replicas"].(int64) {
			created := object("batch/v1", "Job", namespace, fmt.Sprintf("%s-%s-%d", name, template["name"], i))
			created.Object["spec"], _, _ = unstructured.NestedMap(template, "template", "spec")
			Expect(unstructured.SetNestedField(created.Object, name, "spec", "template", "metadata", "labels", "jobset.sigs.k8s.io/jobset-name")).To(Succeed())
			created.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(set, set.GroupVersionKind())})
			Expect(env.Admin.Create(ctx, created)).To(Succeed())
		}
	}
}

// expectNoRequestsIn expects that the manager sends no write and no live read in the namespace for some time. Objects of earlier specs may
// still be terminating in other namespaces.
func expectNoRequestsIn(namespace string) {
	GinkgoHelper()
	env.ExpectNoRequests(env.RequestsIn(manager.User, namespace), idlePeriod)
}

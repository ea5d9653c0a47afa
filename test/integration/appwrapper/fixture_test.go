package appwrapper_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
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
	fine    = "registry.example.com/app:1"
	failing = "testcluster.invalid/failed:1"
	stuck   = "testcluster.invalid/image-pull:1"
	endless = "testcluster.invalid/not-ready:1"
)

// fakeCRDs serve kinds whose controllers are played by the specs.
func fakeCRDs() []*apiextensionsv1.CustomResourceDefinition {
	anything := &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: new(true)}
	var out []*apiextensionsv1.CustomResourceDefinition
	for _, k := range []struct{ group, version, kind, plural string }{
		{"kubeflow.org", "v1", "PyTorchJob", "pytorchjobs"},
		{"jobset.x-k8s.io", "v1alpha2", "JobSet", "jobsets"},
		{"scheduling.x-k8s.io", "v1alpha1", "PodGroup", "podgroups"},
		{"test.example.com", "v1", "Gadget", "gadgets"}, // which the shipped role does not know
	} {
		out = append(out, &apiextensionsv1.CustomResourceDefinition{
			ObjectMeta: metav1.ObjectMeta{Name: k.plural + "." + k.group, Annotations: map[string]string{"api-approved.kubernetes.io": "unapproved, a fake"}},
			Spec: apiextensionsv1.CustomResourceDefinitionSpec{
				Group: k.group, Scope: apiextensionsv1.NamespaceScoped,
				Names: apiextensionsv1.CustomResourceDefinitionNames{Kind: k.kind, ListKind: k.kind + "List", Plural: k.plural, Singular: k.plural[:len(k.plural)-1]},
				Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
					Name: k.version, Served: true, Storage: true, Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: anything},
					Subresources: &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}},
				}},
			},
		})
	}
	return out
}

// alter is a difference from a plain AppWrapper.
type alter = func(*awv1beta2.AppWrapper)

// wrap puts templates, in YAML, into an AppWrapper.
func wrap(namespace, name string, templates []string, changes ...alter) *awv1beta2.AppWrapper {
	GinkgoHelper()
	aw := &awv1beta2.AppWrapper{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Annotations: map[string]string{},
		Labels: map[string]string{awv1beta2.LabelUser: "admin"}}} // which the webhooks give
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

// with sets annotations: name and value in turn.
func with(pairs ...string) alter {
	return func(aw *awv1beta2.AppWrapper) {
		for i := 0; i < len(pairs); i += 2 {
			aw.Annotations[awv1beta2.AnnotationPrefix+pairs[i]] = pairs[i+1]
		}
	}
}

func suspended(aw *awv1beta2.AppWrapper) { aw.Spec.Suspend = true }

// hasty makes failures show at once, and ends with the first.
var hasty = with("failureGracePeriodDuration", "0s", "retryPausePeriodDuration", "0s", "retryLimit", "0", "successTTLDuration", "168h")

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
  template: {metadata: {labels: {app: %s}}, spec: {containers: [{name: main, image: "%s"}]}}}}`, name, replicas, name, name, fine)
}

// reach waits until the AppWrapper is in a phase and the checks hold, and reads it.
func reach(ctx context.Context, aw *awv1beta2.AppWrapper, phase awv1beta2.AppWrapperPhase, checks ...func(Gomega)) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		g.Expect(env.Admin.Get(ctx, client.ObjectKeyFromObject(aw), aw)).To(Succeed())
		status, err := json.Marshal(aw.Status)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(aw.Status.Phase).To(Equal(phase), "%s", status)
		for _, check := range checks {
			check(g)
		}
	}).WithContext(ctx).WithTimeout(patience).WithPolling(often).Should(Succeed())
}

// says checks a condition, as "Type=Status" or "Type=Status/Reason".
func says(aw *awv1beta2.AppWrapper, conditions ...string) func(Gomega) {
	return func(g Gomega) {
		GinkgoHelper()
		have := reported(aw)
		for _, c := range conditions {
			g.Expect(have).To(ContainElement(c))
		}
	}
}

// reported are the conditions of an AppWrapper in both forms.
func reported(aw *awv1beta2.AppWrapper) []string {
	var have []string
	for _, c := range aw.Status.Conditions {
		have = append(have, c.Type+"="+string(c.Status), c.Type+"="+string(c.Status)+"/"+c.Reason)
	}
	return have
}

// written are the phase and the conditions of an AppWrapper after each write of the manager since a mark. What passes by
// itself within moments is looked for there.
func written(mark framework.Mark, aw *awv1beta2.AppWrapper) []awv1beta2.AppWrapperStatus {
	GinkgoHelper()
	var now awv1beta2.AppWrapperStatus
	var all []awv1beta2.AppWrapperStatus
	for _, e := range env.Since(mark).ByUser(manager.User).Of("appwrappers").Writes() {
		if e.Namespace != aw.Namespace || e.Name != aw.Name || e.Subresource != "status" || e.Code != http.StatusOK {
			continue
		}
		var patch struct{ Status awv1beta2.AppWrapperStatus }
		Expect(json.Unmarshal(e.Request, &patch)).To(Succeed())
		if patch.Status.Phase != "" {
			now.Phase = patch.Status.Phase
		}
		if patch.Status.Conditions != nil { // a list is patched as a whole
			now.Conditions = patch.Status.Conditions
		}
		all = append(all, now)
	}
	return all
}

// passed waits until the manager has written a phase with these conditions, which need not last, and returns what it wrote.
// The phase is empty as long as it has not changed since the mark.
func passed(ctx context.Context, mark framework.Mark, aw *awv1beta2.AppWrapper, phase awv1beta2.AppWrapperPhase, conditions ...string) *awv1beta2.AppWrapper {
	GinkgoHelper()
	seen := &awv1beta2.AppWrapper{}
	Eventually(func(g Gomega) {
		all := written(mark, aw)
		g.Expect(slices.ContainsFunc(all, func(status awv1beta2.AppWrapperStatus) bool {
			seen.Status = status
			have := reported(seen)
			missing := slices.ContainsFunc(conditions, func(c string) bool { return !slices.Contains(have, c) })
			return status.Phase == phase && !missing
		})).To(BeTrue(), "%s with %v is not among %v", phase, conditions, all)
	}).WithContext(ctx).WithTimeout(patience).WithPolling(often).Should(Succeed())
	return seen
}

// times counts how often the manager has brought an AppWrapper into a phase since a mark.
func times(mark framework.Mark, aw *awv1beta2.AppWrapper, phase awv1beta2.AppWrapperPhase) int {
	GinkgoHelper()
	count, last := 0, awv1beta2.AppWrapperPhase("")
	for _, status := range written(mark, aw) {
		if status.Phase == phase && last != phase {
			count++
		}
		last = status.Phase
	}
	return count
}

// resume does what Kueue does when it admits a workload, and suspend when it takes that back.
func resume(ctx context.Context, aw *awv1beta2.AppWrapper) { setSuspend(ctx, aw, false) }

func suspend(ctx context.Context, aw *awv1beta2.AppWrapper) { setSuspend(ctx, aw, true) }

func setSuspend(ctx context.Context, aw *awv1beta2.AppWrapper, value bool) {
	GinkgoHelper()
	env.Patch(ctx, aw, map[string]any{"spec": map[string]any{"suspend": value}})
}

// podsOf lists the pods of an AppWrapper.
func podsOf(ctx context.Context, aw *awv1beta2.AppWrapper) []corev1.Pod {
	GinkgoHelper()
	list := &corev1.PodList{}
	Expect(env.Admin.List(ctx, list, client.InNamespace(aw.Namespace), client.MatchingLabels{awv1beta2.LabelAppWrapper: aw.Name})).To(Succeed())
	return list.Items
}

// noPods waits until there are none.
func noPods(ctx context.Context, aw *awv1beta2.AppWrapper) {
	GinkgoHelper()
	Eventually(func() []corev1.Pod { return podsOf(ctx, aw) }).WithContext(ctx).WithTimeout(patience).WithPolling(often).Should(BeEmpty())
}

// setPhase is what a kubelet does.
func setPhase(ctx context.Context, namespace, name string, phase corev1.PodPhase) {
	GinkgoHelper()
	env.Patch(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}},
		map[string]any{"status": map[string]any{"phase": phase}}, "status")
}

// running waits until a pod is Running.
func running(ctx context.Context, namespace string, names ...string) {
	GinkgoHelper()
	for _, name := range names {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
		env.WaitFor(ctx, p, func(g Gomega) { g.Expect(p.Status.Phase).To(Equal(corev1.PodRunning)) })
	}
}

// object is one of any kind.
func object(apiVersion, kind, namespace, name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetAPIVersion(apiVersion)
	u.SetKind(kind)
	u.SetNamespace(namespace)
	u.SetName(name)
	return u
}

// componentReason is the reason of the only condition of a component.
func componentReason(aw *awv1beta2.AppWrapper, index int) string {
	if c := meta.FindStatusCondition(aw.Status.ComponentStatus[index].Conditions, awv1beta2.ConditionResourcesDeployed); c != nil {
		return c.Reason
	}
	return ""
}

// asController does what the controller of a kind would: it makes a pod for the component of an AppWrapper.
func asController(ctx context.Context, apiVersion, kind, namespace, name, appWrapper string) {
	GinkgoHelper()
	owner := object(apiVersion, kind, namespace, name)
	env.Get(ctx, owner)
	Expect(env.Admin.Create(ctx, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name + "-0", Labels: map[string]string{awv1beta2.LabelAppWrapper: appWrapper},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: apiVersion, Kind: kind, Name: name, UID: owner.GetUID(), Controller: new(true)}}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: fine}}},
	})).To(Succeed())
}

// asJobSetController does what the controller of JobSets would: it makes a Job for each replica, with the pod template that is in
// the JobSet. The pods are made by the real Job controller.
func asJobSetController(ctx context.Context, namespace, name string) {
	GinkgoHelper()
	set := object("jobset.x-k8s.io/v1alpha2", "JobSet", namespace, name)
	env.Get(ctx, set)
	jobs, _, err := unstructured.NestedSlice(set.Object, "spec", "replicatedJobs")
	Expect(err).NotTo(HaveOccurred())
	for _, entry := range jobs {
		template := entry.(map[string]any)
		for i := range template["replicas"].(int64) {
			made := object("batch/v1", "Job", namespace, fmt.Sprintf("%s-%s-%d", name, template["name"], i))
			made.Object["spec"], _, _ = unstructured.NestedMap(template, "template", "spec")
			Expect(unstructured.SetNestedField(made.Object, name, "spec", "template", "metadata", "labels", "jobset.sigs.k8s.io/jobset-name")).To(Succeed())
			made.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(set, set.GroupVersionKind())})
			Expect(env.Admin.Create(ctx, made)).To(Succeed())
		}
	}
}

// expectRestIn observes one namespace for a while and fails the spec at the first write or live read of the manager there;
// what earlier specs left in others may still be on its way out.
func expectRestIn(namespace string) {
	GinkgoHelper()
	mark := env.Mark()
	Consistently(func() framework.Entries {
		return framework.AtRest(env.Since(mark), manager.User).Where(func(e framework.Entry) bool { return e.Namespace == namespace })
	}).WithTimeout(quiet).WithPolling(time.Second / 4).Should(BeEmpty())
}

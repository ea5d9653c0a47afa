package framework

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

const (
	waitTimeout = 2 * time.Minute
	waitPoll    = 100 * time.Millisecond
	// touchCondition is the type of the condition that Touch writes to workloads, Services and claims.
	touchCondition = "TouchedByTest"
	// touchAnnotation is the annotation that Touch writes to other kinds.
	touchAnnotation = "testcluster/touched"
)

// Namespace creates a namespace with a generated name and labels given as pairs, and deletes it at the end of the calling spec or suite, see
// KeepNamespaces and ClearNamespaces.
func (e *Env) Namespace(ctx context.Context, prefix string, labels ...string) string {
	ginkgo.GinkgoHelper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: prefix + "-", Labels: map[string]string{}}}
	for i := 0; i < len(labels); i += 2 {
		namespace.Labels[labels[i]] = labels[i+1]
	}
	gomega.Expect(e.Admin.Create(ctx, namespace)).To(gomega.Succeed())
	switch {
	case e.ClearNamespaces:
		ginkgo.DeferCleanup(e.ClearNamespace, namespace.Name, ginkgo.NodeTimeout(stopTimeout))
	case !e.KeepNamespaces:
		ginkgo.DeferCleanup(func(ctx context.Context) {
			gomega.Expect(client.IgnoreNotFound(e.Admin.Delete(ctx, namespace))).To(gomega.Succeed())
		}, ginkgo.NodeTimeout(stopTimeout))
	}
	return namespace.Name
}

// Unstructured returns an unstructured object of a kind.
func Unstructured(kind schema.GroupVersionKind, namespace, name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(kind)
	u.SetNamespace(namespace)
	u.SetName(name)
	return u
}

// NamespaceNamed returns a namespace with a name only.
func NamespaceNamed(name string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

// Get reads an object by its name and namespace.
func (e *Env) Get(ctx context.Context, object client.Object) {
	ginkgo.GinkgoHelper()
	gomega.Expect(e.Admin.Get(ctx, client.ObjectKeyFromObject(object), object)).To(gomega.Succeed())
}

// DeleteTemporarily deletes objects, and recreates them at the end of the spec. The API server calls deleted webhooks for a short time.
func (e *Env) DeleteTemporarily(ctx context.Context, objects ...client.Object) {
	ginkgo.GinkgoHelper()
	for _, object := range objects {
		e.Get(ctx, object)
		gomega.Expect(e.Admin.Delete(ctx, object)).To(gomega.Succeed())
		object.SetResourceVersion("")
		object.SetUID("")
		ginkgo.DeferCleanup(func(ctx context.Context) {
			gomega.Expect(e.Admin.Create(ctx, object)).To(gomega.Succeed())
		}, ginkgo.NodeTimeout(stopTimeout))
	}
}

// Patch sends a JSON merge patch of an object, or of a subresource such as `status`, and stores the response in the object.
func (e *Env) Patch(ctx context.Context, object client.Object, patch map[string]any, subresource ...string) {
	ginkgo.GinkgoHelper()
	gomega.Expect(e.patch(ctx, object, patch, subresource...)).To(gomega.Succeed())
}

func (e *Env) patch(ctx context.Context, object client.Object, patch map[string]any, subresource ...string) error {
	body, err := json.Marshal(patch)
	if err != nil {
		return fmt.Errorf("encoding a patch: %w", err)
	}
	raw := client.RawPatch("application/merge-patch+json", body)
	if len(subresource) == 0 {
		return e.Admin.Patch(ctx, object, raw)
	}
	return e.Admin.SubResource(subresource[0]).Patch(ctx, object, raw)
}

// SetAnnotation sets an annotation of an object; nil removes it.
func (e *Env) SetAnnotation(ctx context.Context, object client.Object, key string, value any) {
	ginkgo.GinkgoHelper()
	e.Patch(ctx, object, map[string]any{"metadata": map[string]any{"annotations": map[string]any{key: value}}})
}

// Touch changes the resourceVersion of objects without a change to reconcile: it writes touchCondition or touchAnnotation, depending on the
// kind.
func (e *Env) Touch(ctx context.Context, objects ...client.Object) {
	ginkgo.GinkgoHelper()
	for _, object := range objects {
		e.Get(ctx, object)
		version := object.GetResourceVersion()
		gomega.Expect(e.touch(ctx, object)).To(gomega.Succeed())
		gomega.Expect(object.GetResourceVersion()).NotTo(gomega.Equal(version), "%T %s was not touched", object, object.GetName())
	}
}

func (e *Env) touch(ctx context.Context, object client.Object) error {
	conditions, err := e.touchedConditions(object)
	if err != nil {
		return err
	}
	if conditions != nil {
		return e.patch(ctx, object, map[string]any{"status": map[string]any{"conditions": conditions}}, "status")
	}
	annotation := map[string]any{touchAnnotation: object.GetResourceVersion()}
	return e.patch(ctx, object, map[string]any{"metadata": map[string]any{"annotations": annotation}})
}

// touchedConditions returns the live conditions with a changed touchCondition, or nil for kinds that get touchAnnotation.
func (e *Env) touchedConditions(object client.Object) ([]any, error) {
	kind, err := apiutil.GVKForObject(object, e.Scheme)
	if err != nil {
		return nil, fmt.Errorf("finding the kind of %T: %w", object, err)
	}
	switch kind.Kind {
	case "Deployment", "Service", "PersistentVolumeClaim", "Job", "StatefulSet", "ReplicaSet", "Pod":
	default:
		return nil, nil
	}
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return nil, fmt.Errorf("converting %T: %w", object, err)
	}
	conditions, _, err := unstructured.NestedSlice(fields, "status", "conditions")
	if err != nil {
		return nil, fmt.Errorf("reading the conditions of %T: %w", object, err)
	}
	touched := map[string]any{
		"type": touchCondition, "status": "True", "reason": "Touched", "message": "at " + object.GetResourceVersion(),
		"lastTransitionTime": e.now().UTC().Format(time.RFC3339),
	}
	result := []any{touched}
	for _, condition := range conditions {
		if fields, ok := condition.(map[string]any); !ok || fields["type"] != touchCondition {
			result = append(result, condition)
		}
	}
	return result, nil
}

// WaitForCondition waits up to two minutes until the condition has the status and, unless reason is "", the reason. If the condition has an
// observedGeneration, it must also be the generation of the object.
func (e *Env) WaitForCondition(ctx context.Context, object client.Object, conditionType string, status metav1.ConditionStatus, reason string) {
	ginkgo.GinkgoHelper()
	gomega.Eventually(func(g gomega.Gomega) {
		g.Expect(e.Admin.Get(ctx, client.ObjectKeyFromObject(object), object)).To(gomega.Succeed())
		conditions, err := conditionsOf(object)
		g.Expect(err).NotTo(gomega.HaveOccurred())
		condition := meta.FindStatusCondition(conditions, conditionType)
		g.Expect(condition).NotTo(gomega.BeNil(), "no condition %s among %v", conditionType, conditions)
		g.Expect(condition.Status).To(gomega.Equal(status), "%s: %s: %s", conditionType, condition.Reason, condition.Message)
		if reason != "" {
			g.Expect(condition.Reason).To(gomega.Equal(reason), "%s: %s", conditionType, condition.Message)
		}
		if condition.ObservedGeneration != 0 {
			g.Expect(condition.ObservedGeneration).To(gomega.Equal(object.GetGeneration()), "%s is of an earlier generation", conditionType)
		}
	}).WithContext(ctx).WithTimeout(waitTimeout).WithPolling(waitPoll).Should(gomega.Succeed())
}

// conditionsOf returns status.conditions of any kind.
func conditionsOf(object client.Object) ([]metav1.Condition, error) {
	content, err := json.Marshal(object)
	if err != nil {
		return nil, fmt.Errorf("encoding %T: %w", object, err)
	}
	var view struct {
		Status struct{ Conditions []metav1.Condition }
	}
	if err := json.Unmarshal(content, &view); err != nil {
		return nil, fmt.Errorf("reading the conditions of %T: %w", object, err)
	}
	return view.Status.Conditions, nil
}

// WaitDeleted waits up to two minutes for each object until it does not exist.
func (e *Env) WaitDeleted(ctx context.Context, objects ...client.Object) {
	ginkgo.GinkgoHelper()
	for _, object := range objects {
		gomega.Eventually(func() error { return e.Admin.Get(ctx, client.ObjectKeyFromObject(object), object) }).
			WithContext(ctx).WithTimeout(waitTimeout).WithPolling(waitPoll).
			Should(gomega.MatchError(gomega.ContainSubstring("not found")), "%T %s", object, object.GetName())
	}
}

// WaitExists waits up to two minutes for each object until it exists, and reads it.
func (e *Env) WaitExists(ctx context.Context, objects ...client.Object) {
	ginkgo.GinkgoHelper()
	for _, object := range objects {
		e.WaitFor(ctx, object, nil)
	}
}

// Exists reads an object, and reports whether it exists.
func (e *Env) Exists(ctx context.Context, object client.Object) bool {
	ginkgo.GinkgoHelper()
	err := e.Admin.Get(ctx, client.ObjectKeyFromObject(object), object)
	gomega.Expect(client.IgnoreNotFound(err)).To(gomega.Succeed())
	return err == nil
}

// ExpectAbsent checks that objects do not exist. Call it after an event that would follow their creation.
func (e *Env) ExpectAbsent(ctx context.Context, objects ...client.Object) {
	ginkgo.GinkgoHelper()
	for _, object := range objects {
		gomega.Expect(e.Exists(ctx, object)).To(gomega.BeFalse(), "%T %s", object, object.GetName())
	}
}

// Create creates objects, and deletes them at the end of the calling spec or suite.
func (e *Env) Create(ctx context.Context, objects ...client.Object) {
	ginkgo.GinkgoHelper()
	for _, object := range objects {
		gomega.Expect(e.Admin.Create(ctx, object)).To(gomega.Succeed())
		ginkgo.DeferCleanup(func(ctx context.Context) { e.Delete(ctx, object) }, ginkgo.NodeTimeout(waitTimeout))
	}
}

// Delete deletes objects that may be deleted already, and waits until they do not exist.
func (e *Env) Delete(ctx context.Context, objects ...client.Object) {
	ginkgo.GinkgoHelper()
	for _, object := range objects {
		gomega.Expect(client.IgnoreNotFound(e.Admin.Delete(ctx, object))).To(gomega.Succeed())
		e.WaitDeleted(ctx, object)
	}
}

// SetConfigMap sets a key of a ConfigMap. It creates a missing ConfigMap, and deletes it at the end of the spec.
func (e *Env) SetConfigMap(ctx context.Context, namespace, name, key, text string) *corev1.ConfigMap {
	ginkgo.GinkgoHelper()
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Data: map[string]string{key: text}}
	err := e.Admin.Create(ctx, object)
	if apierrors.IsAlreadyExists(err) {
		e.Patch(ctx, object, map[string]any{"data": map[string]any{key: text}})
		return object
	}
	gomega.Expect(err).NotTo(gomega.HaveOccurred())
	ginkgo.DeferCleanup(func(ctx context.Context) { e.Delete(ctx, object) }, ginkgo.NodeTimeout(stopTimeout))
	return object
}

// Update reads an object, changes it and updates it as a client, and retries after a conflict.
func (e *Env) Update(ctx context.Context, as client.Client, object client.Object, change func()) error {
	ginkgo.GinkgoHelper()
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		e.Get(ctx, object)
		change()
		return as.Update(ctx, object)
	})
}

// SetLabel sets a label of an object; nil removes it.
func (e *Env) SetLabel(ctx context.Context, object client.Object, key string, value any) {
	ginkgo.GinkgoHelper()
	e.Patch(ctx, object, map[string]any{"metadata": map[string]any{"labels": map[string]any{key: value}}})
}

// WaitFor waits up to two minutes until an object exists and the check, if any, passes.
func (e *Env) WaitFor(ctx context.Context, object client.Object, check func(g gomega.Gomega)) {
	ginkgo.GinkgoHelper()
	gomega.Eventually(func(g gomega.Gomega) {
		g.Expect(e.Admin.Get(ctx, client.ObjectKeyFromObject(object), object)).To(gomega.Succeed())
		if check != nil {
			check(g)
		}
	}).WithContext(ctx).WithTimeout(waitTimeout).WithPolling(waitPoll).Should(gomega.Succeed())
}

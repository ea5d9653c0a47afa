package framework

import (
	"context"
	"encoding/base64"
	"os"
	"strings"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Planting says how objects of a recording get into a cluster, as the operator that they were recorded from had left them.
type Planting struct {
	// Owner that references of its kind and name point at.
	Owner client.Object
	// Manager is the name under which they were written.
	Manager string
	// Annotations that this operator left on each of them.
	Annotations map[string]string
}

// Recording reads a file of objects with some texts replaced. It fails the spec if that cannot be done.
func Recording(path string, rename ...string) []*unstructured.Unstructured {
	ginkgo.GinkgoHelper()
	content, err := os.ReadFile(path)
	gomega.Expect(err).NotTo(gomega.HaveOccurred())
	renamed := ginkgo.GinkgoT().TempDir() + "/objects.yaml"
	gomega.Expect(os.WriteFile(renamed, []byte(strings.NewReplacer(rename...).Replace(string(content))), 0o600)).To(gomega.Succeed())
	objects, err := ReadObjects(renamed)
	gomega.Expect(err).NotTo(gomega.HaveOccurred())
	return objects
}

// Plant creates objects of a recording. What the cluster assigns is left to it.
func (e *Env) Plant(ctx context.Context, objects []*unstructured.Unstructured, p Planting) {
	ginkgo.GinkgoHelper()
	for _, object := range objects {
		object.SetUID("")
		object.SetResourceVersion("")
		delete(object.Object, "status")
		unstructured.RemoveNestedField(object.Object, "spec", "clusterIP")
		unstructured.RemoveNestedField(object.Object, "spec", "clusterIPs")
		unstructured.RemoveNestedField(object.Object, "spec", "volumeName")
		unmask(object)
		refs := object.GetOwnerReferences()
		for i := range refs {
			if refs[i].Name == p.Owner.GetName() {
				refs[i].UID = p.Owner.GetUID()
			}
		}
		object.SetOwnerReferences(refs)
		annotations := object.GetAnnotations()
		if annotations == nil {
			annotations = map[string]string{}
		}
		for key, value := range p.Annotations {
			annotations[key] = value
		}
		object.SetAnnotations(annotations)
		gomega.Eventually(func() error { // one of a former attempt may still be on its way out
			return e.Admin.Create(ctx, object, client.FieldOwner(p.Manager))
		}).WithContext(ctx).WithTimeout(waitTimeout).WithPolling(waitPoll).Should(gomega.Succeed(), "%s %s", object.GetKind(), object.GetName())
	}
}

// unmask gives the values of a Secret, which recordings mask, something that can be stored: the name of their key.
func unmask(object *unstructured.Unstructured) {
	data, found, err := unstructured.NestedMap(object.Object, "data")
	if object.GetKind() != "Secret" || !found || err != nil {
		return
	}
	for key := range data {
		data[key] = base64.StdEncoding.EncodeToString([]byte(key))
	}
	object.Object["data"] = data
}

// Live reads an object of a recording again.
func (e *Env) Live(ctx context.Context, object *unstructured.Unstructured) *unstructured.Unstructured {
	ginkgo.GinkgoHelper()
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(object.GroupVersionKind())
	gomega.Expect(e.Admin.Get(ctx, client.ObjectKeyFromObject(object), live)).To(gomega.Succeed())
	return live
}

// Condition is a condition as older operators wrote them: without a generation.
func Condition(kind string, status metav1.ConditionStatus, reason string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: status, Reason: reason, Message: reason, LastTransitionTime: metav1.Unix(1700000000, 0)}
}

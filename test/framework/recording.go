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

// RecordingOptions sets how CreateRecording creates the objects of a recording.
type RecordingOptions struct {
	// Owner is the live owner. Owner references with its name get its UID.
	Owner client.Object
	// Manager is the field manager of the writes.
	Manager string
	// Annotations are added to each object.
	Annotations map[string]string
}

// Recording returns the objects of a file, after the replacement of texts that are given as pairs of old and new.
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

// CreateRecording creates the objects of a recording, without the fields that the cluster assigns.
func (e *Env) CreateRecording(ctx context.Context, objects []*unstructured.Unstructured, options RecordingOptions) {
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
			if refs[i].Name == options.Owner.GetName() {
				refs[i].UID = options.Owner.GetUID()
			}
		}
		object.SetOwnerReferences(refs)
		annotations := object.GetAnnotations()
		if annotations == nil {
			annotations = map[string]string{}
		}
		for key, value := range options.Annotations {
			annotations[key] = value
		}
		object.SetAnnotations(annotations)
		gomega.Eventually(func() error { // an object of an earlier attempt may still be terminating
			return e.Admin.Create(ctx, object, client.FieldOwner(options.Manager))
		}).WithContext(ctx).WithTimeout(waitTimeout).WithPolling(waitPoll).Should(gomega.Succeed(), "%s %s", object.GetKind(), object.GetName())
	}
}

// unmask sets each value of a Secret to the name of its key, because recordings mask the values.
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

// Live reads the live version of a recorded object.
func (e *Env) Live(ctx context.Context, object *unstructured.Unstructured) *unstructured.Unstructured {
	ginkgo.GinkgoHelper()
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(object.GroupVersionKind())
	gomega.Expect(e.Admin.Get(ctx, client.ObjectKeyFromObject(object), live)).To(gomega.Succeed())
	return live
}

// Condition returns a condition without observedGeneration, as legacy operators wrote it.
func Condition(conditionType string, status metav1.ConditionStatus, reason string) metav1.Condition {
	return metav1.Condition{Type: conditionType, Status: status, Reason: reason, Message: reason, LastTransitionTime: metav1.Unix(1700000000, 0)}
}

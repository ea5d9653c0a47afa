package restore_test

import (
	"context"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// transientKinds are the kinds of objects that the cluster recreates. Backups exclude them.
var transientKinds = []string{"Event", "Endpoints", "EndpointSlice", "Lease", "PodMetrics"}

// listNamespacedKinds returns the namespaced kinds that a backup contains.
func listNamespacedKinds() []schema.GroupVersionKind {
	GinkgoHelper()
	apis, err := discovery.NewDiscoveryClientForConfig(env.Config)
	Expect(err).NotTo(HaveOccurred())
	lists, err := apis.ServerPreferredNamespacedResources()
	Expect(err).NotTo(HaveOccurred())
	var all []schema.GroupVersionKind
	for _, list := range lists {
		group, err := schema.ParseGroupVersion(list.GroupVersion)
		Expect(err).NotTo(HaveOccurred())
		for _, r := range list.APIResources {
			storable := slices.Contains(r.Verbs, "list") && slices.Contains(r.Verbs, "create") && slices.Contains(r.Verbs, "delete")
			if storable && !slices.Contains(transientKinds, r.Kind) {
				all = append(all, group.WithKind(r.Kind))
			}
		}
	}
	return all
}

// listObjects returns the objects of a namespace, except those that the cluster creates in each namespace, those that KubeRay creates, and
// completed Pods and Jobs.
func listObjects(ctx context.Context, namespace string) []*unstructured.Unstructured {
	GinkgoHelper()
	var all []*unstructured.Unstructured
	for _, kind := range listNamespacedKinds() {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		Expect(env.Admin.List(ctx, list, client.InNamespace(namespace))).To(Succeed(), kind.String())
		for i := range list.Items {
			object := &list.Items[i]
			isDefault := kind.Kind == "ServiceAccount" && object.GetName() == "default" || object.GetName() == "kube-root-ca.crt" || object.GetName() == "openshift-service-ca.crt"
			isFromKubeRay := object.GetLabels()["app.kubernetes.io/created-by"] == "kuberay-operator"
			if !isDefault && !isFromKubeRay && !isCompleted(object) {
				all = append(all, object)
			}
		}
	}
	return all
}

// isCompleted reports whether an object is a completed Pod or Job. Velero does not restore these.
func isCompleted(object *unstructured.Unstructured) bool {
	phase, _, _ := unstructured.NestedString(object.Object, "status", "phase")
	_, isComplete, _ := unstructured.NestedString(object.Object, "status", "completionTime")
	return object.GetKind() == "Pod" && (phase == "Succeeded" || phase == "Failed") || object.GetKind() == "Job" && isComplete
}

// stripForRestore returns a copy of an object without status, owner references and the fields that the cluster assigns.
func stripForRestore(object *unstructured.Unstructured) *unstructured.Unstructured {
	stripped := object.DeepCopy()
	delete(stripped.Object, "status")
	metadata, _, _ := unstructured.NestedMap(stripped.Object, "metadata")
	for field := range metadata {
		if !slices.Contains([]string{"name", "generateName", "namespace", "labels", "annotations", "finalizers"}, field) {
			unstructured.RemoveNestedField(stripped.Object, "metadata", field)
		}
	}
	for _, path := range assignedFields[stripped.GetKind()] {
		unstructured.RemoveNestedField(stripped.Object, path...)
	}
	if stripped.GetKind() == "Pod" {
		removeTokenVolume(stripped)
	}
	return stripped
}

// assignedFields are the fields that Velero removes because the cluster assigns them.
var assignedFields = map[string][][]string{
	"Service": {{"spec", "clusterIP"}, {"spec", "clusterIPs"}, {"spec", "healthCheckNodePort"}},
	"PersistentVolumeClaim": {
		{"spec", "volumeName"}, {"metadata", "annotations", "pv.kubernetes.io/bind-completed"}, {"metadata", "annotations", "pv.kubernetes.io/bound-by-controller"},
	},
	"Job": {
		{"spec", "selector"}, {"spec", "template", "metadata", "labels", "controller-uid"}, {"spec", "template", "metadata", "labels", "batch.kubernetes.io/controller-uid"},
		{"metadata", "labels", "controller-uid"}, {"metadata", "labels", "batch.kubernetes.io/controller-uid"},
	},
	"Pod": {{"spec", "nodeName"}, {"spec", "priority"}},
}

// removeTokenVolume removes the volume of the ServiceAccount token from a Pod, because the cluster adds one with a generated name.
func removeTokenVolume(pod *unstructured.Unstructured) {
	isToken := func(item any) bool {
		fields, _ := item.(map[string]any)
		name, _ := fields["name"].(string)
		return strings.HasPrefix(name, "kube-api-access-")
	}
	spec, _, _ := unstructured.NestedMap(pod.Object, "spec")
	if volumes, ok := spec["volumes"].([]any); ok {
		spec["volumes"] = slices.DeleteFunc(volumes, isToken)
	}
	for _, list := range []string{"containers", "initContainers"} {
		containers, _ := spec[list].([]any)
		for _, c := range containers {
			if container, ok := c.(map[string]any); ok {
				mounts, _ := container["volumeMounts"].([]any)
				container["volumeMounts"] = slices.DeleteFunc(mounts, isToken)
			}
		}
	}
	pod.Object["spec"] = spec
}

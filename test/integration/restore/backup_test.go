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

// passing are the kinds that the cluster recreates, so backups exclude them.
var passing = []string{"Event", "Endpoints", "EndpointSlice", "Lease", "PodMetrics"}

// kinds returns the namespaced kinds.
func kinds() []schema.GroupVersionKind {
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
			if storable && !slices.Contains(passing, r.Kind) {
				all = append(all, group.WithKind(r.Kind))
			}
		}
	}
	return all
}

// objectsIn returns the objects of a namespace, except those that the cluster creates in each namespace or KubeRay for a RayCluster.
func objectsIn(ctx context.Context, namespace string) []*unstructured.Unstructured {
	GinkgoHelper()
	var all []*unstructured.Unstructured
	for _, kind := range kinds() {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		Expect(env.Admin.List(ctx, list, client.InNamespace(namespace))).To(Succeed(), kind.String())
		for i := range list.Items {
			object := &list.Items[i]
			given := kind.Kind == "ServiceAccount" && object.GetName() == "default" || object.GetName() == "kube-root-ca.crt" || object.GetName() == "openshift-service-ca.crt"
			ofKubeRay := object.GetLabels()["app.kubernetes.io/created-by"] == "kuberay-operator"
			if !given && !ofKubeRay && !completed(object) {
				all = append(all, object)
			}
		}
	}
	return all
}

// completed reports whether a Pod or Job has ended; Velero does not restore these.
func completed(object *unstructured.Unstructured) bool {
	phase, _, _ := unstructured.NestedString(object.Object, "status", "phase")
	_, ended, _ := unstructured.NestedString(object.Object, "status", "completionTime")
	return object.GetKind() == "Pod" && (phase == "Succeeded" || phase == "Failed") || object.GetKind() == "Job" && ended
}

// stripped returns an object as it is restored: by name, without the fields that the cluster assigns, status and owners.
func stripped(object *unstructured.Unstructured) *unstructured.Unstructured {
	o := object.DeepCopy()
	delete(o.Object, "status")
	metadata, _, _ := unstructured.NestedMap(o.Object, "metadata")
	for field := range metadata {
		if !slices.Contains([]string{"name", "generateName", "namespace", "labels", "annotations", "finalizers"}, field) {
			unstructured.RemoveNestedField(o.Object, "metadata", field)
		}
	}
	for _, path := range assigned[o.GetKind()] {
		unstructured.RemoveNestedField(o.Object, path...)
	}
	if o.GetKind() == "Pod" {
		withoutToken(o)
	}
	return o
}

// assigned are fields that a restore removes because the cluster assigns them, like Velero.
var assigned = map[string][][]string{
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

// withoutToken removes the volume of the ServiceAccount token from a Pod, whose name the cluster generates.
func withoutToken(pod *unstructured.Unstructured) {
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

package framework

import (
	"context"
	"slices"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/test/cluster/operator"
)

// externalKinds are the namespaced kinds of other projects that managers reconcile.
var externalKinds = []schema.GroupVersionKind{
	{Group: "ray.io", Version: "v1", Kind: "RayCluster"},
	{Group: "serving.kserve.io", Version: "v1alpha1", Kind: "ServingRuntime"},
	{Group: "serving.kserve.io", Version: "v1beta1", Kind: "InferenceService"},
}

// ClearNamespace deletes the custom resources of reconciledKinds in a namespace, and removes all labels of the namespace except
// kubernetes.io/metadata.name. It causes a twentieth of the requests of a namespace deletion, which lists each kind of the API server
// several times.
func (e *Env) ClearNamespace(ctx context.Context, namespace string) {
	ginkgo.GinkgoHelper()
	for _, kind := range e.reconciledKinds() {
		err := e.Admin.DeleteAllOf(ctx, Unstructured(kind, namespace, ""), client.InNamespace(namespace))
		if !meta.IsNoMatchError(err) && !apierrors.IsNotFound(err) {
			gomega.Expect(err).NotTo(gomega.HaveOccurred(), kind.Kind)
		}
	}
	live := NamespaceNamed(namespace)
	if err := e.Admin.Get(ctx, client.ObjectKeyFromObject(live), live); apierrors.IsNotFound(err) {
		return
	}
	labels := map[string]any{}
	for label := range live.Labels {
		if label != corev1.LabelMetadataName {
			labels[label] = nil
		}
	}
	e.Patch(ctx, live, map[string]any{"metadata": map[string]any{"labels": labels}})
}

// reconciledKinds returns the namespaced kinds that the installed manager reconciles.
func (e *Env) reconciledKinds() []schema.GroupVersionKind {
	ginkgo.GinkgoHelper()
	crds, err := operator.CRDs(e.Installed.Objects)
	gomega.Expect(err).NotTo(gomega.HaveOccurred())
	kinds := slices.Clone(externalKinds)
	for _, crd := range crds {
		if crd.Spec.Scope == apiextensionsv1.NamespaceScoped {
			storage := slices.IndexFunc(crd.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Storage })
			kinds = append(kinds, schema.GroupVersionKind{Group: crd.Spec.Group, Version: crd.Spec.Versions[storage].Name, Kind: crd.Spec.Names.Kind})
		}
	}
	return kinds
}

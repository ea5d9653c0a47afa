package tree

import (
	"context"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/odh-platform/odh-platform-operator/apis/serving/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/apis/serving/v1beta1"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/modelmesh"
)

// isModel tells whether objects of a kind are models, which own no pods: those of runtimes serve them.
func isModel(gvk schema.GroupVersionKind) bool {
	return gvk.Group == v1alpha1.GroupVersion.Group && (gvk.Kind == "Predictor" || gvk.Kind == capability.InferenceService.Kind)
}

// serving returns the trees of the runtimes that may serve a model, as far as they are in its namespace. An InferenceService that
// is not for ModelMesh has none.
func (g *gatherer) serving(ctx context.Context, live *unstructured.Unstructured) []*Node {
	m, ok := modelOf(live)
	if !ok {
		return nil
	}
	var out []*Node
	taken := map[string]bool{} // a runtime of the namespace hides one of the cluster with its name
	placed := map[types.UID]bool{}
	for _, gvk := range []schema.GroupVersionKind{capability.ServingRuntime, capability.ClusterServingRuntime} {
		kind, served := g.set.Exact(gvk)
		if !served {
			continue
		}
		namespace := ""
		if kind.Namespaced {
			namespace = m.Namespace
		}
		found, err := g.reader.List(ctx, kind, namespace, metav1.ListOptions{})
		if !g.gaps.Note(kind.Resource, err) {
			continue
		}
		for i := range found {
			u := &found[i]
			if taken[u.GetName()] || !fits(u, m) {
				continue
			}
			taken[u.GetName()] = true
			i := itemOf(kind, u)
			g.forest.add(i)
			node := g.forest.growBeside(i, Serving, placed)
			node.keep(m.Namespace)
			out = append(out, node)
		}
	}
	return out
}

// modelOf reads a model, and tells whether it is one of ModelMesh.
func modelOf(live *unstructured.Unstructured) (modelmesh.Model, bool) {
	if live.GetKind() == "Predictor" {
		var p v1alpha1.Predictor
		if runtime.DefaultUnstructuredConverter.FromUnstructured(live.Object, &p) != nil {
			return modelmesh.Model{}, false
		}
		return modelmesh.FromPredictor(&p), true
	}
	var s v1beta1.InferenceService
	if runtime.DefaultUnstructuredConverter.FromUnstructured(live.Object, &s) != nil {
		return modelmesh.Model{}, false
	}
	m, mesh, err := modelmesh.FromInferenceService(&s)
	return m, mesh && err == nil
}

// fits tells whether a runtime may serve a model. Whether the REST proxy runs is not known here; it is on by default.
func fits(u *unstructured.Unstructured, m modelmesh.Model) bool {
	var r v1alpha1.ServingRuntime
	if runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &r) != nil || !modelmesh.Serves(&r.Spec) {
		return false
	}
	return modelmesh.Supports(modelmesh.Labels(r.Name, &r.Spec, true), m.Label())
}

// keep drops what is in other namespaces than one: a runtime of the cluster has pods in many.
func (n *Node) keep(namespace string) {
	n.Children = slices.DeleteFunc(n.Children, func(c *Node) bool { return c.Namespace != "" && c.Namespace != namespace })
}

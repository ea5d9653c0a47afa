package tree

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync/atomic"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/odh-platform/odh-platform-operator/apis/serving/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/apis/serving/v1beta1"
	"github.com/odh-platform/odh-platform-operator/cmd/internal/kinds"
	"github.com/odh-platform/odh-platform-operator/cmd/kubectl-odh/internal/fetch"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/modelmesh"
	"github.com/odh-platform/odh-platform-operator/pkg/names"
	"github.com/odh-platform/odh-platform-operator/pkg/status/health"
)

// noise are kinds that are left out of trees: they describe other objects, or are copies of them.
var noise = map[string]bool{"Event": true, "Endpoints": true, "EndpointSlice": true, "PodMetrics": true, "PackageManifest": true, "Lease": true, "ComponentStatus": true, "Node": true}

// clusterGroups are the groups of which objects of cluster scope may belong to a resource; asking for all others would only show
// what users may not read.
var clusterGroups = map[string]bool{
	"": true, "rbac.authorization.k8s.io": true, "console.openshift.io": true, "user.openshift.io": true, "kueue.x-k8s.io": true,
}

// single is the number of objects of one kind in a namespace up to which each is read by itself; more are listed.
const single = 5

// gatherer reads what trees are made of.
type gatherer struct {
	fetch.Reader
	forest   *forest
	searched map[string]bool // namespaces that were searched whole; "" for the objects of the manager in all
	confined atomic.Bool     // objects of the manager in other namespaces cannot be searched
}

func newGatherer(reader fetch.Reader) *gatherer {
	return &gatherer{Reader: reader, forest: newForest(), searched: map[string]bool{}}
}

// Parts returns resources and the objects that belong to them, without their state, and notes about what could not be read.
func Parts(ctx context.Context, reader fetch.Reader, resources []*unstructured.Unstructured) (parts []*Node, notes []string) {
	g := newGatherer(reader)
	seen := map[types.UID]bool{}
	for _, live := range resources {
		g.grow(ctx, live.GroupVersionKind(), live).walk(func(n *Node) {
			if uid := n.item.meta.UID; !seen[uid] {
				seen[uid] = true
				parts = append(parts, n)
			}
		})
	}
	return parts, g.notes()
}

// Read reads the objects of nodes, all of a kind and a namespace at once where there are many.
func Read(ctx context.Context, reader fetch.Reader, nodes []*Node) {
	groups := map[string][]*Node{} // by kind and namespace
	for _, n := range nodes {
		key := n.APIVersion + " " + n.Kind + " " + n.Namespace
		groups[key] = append(groups[key], n)
	}
	fetch.Each(slices.Collect(maps.Values(groups)), func(group []*Node) {
		kind, namespace := group[0].item.kind, group[0].Namespace
		if len(group) <= single {
			for _, n := range group {
				n.Live, n.err = reader.Get(ctx, kind, namespace, n.Name)
			}
			return
		}
		found, err := reader.List(ctx, kind, namespace, metav1.ListOptions{})
		byUID := map[types.UID]*unstructured.Unstructured{}
		for i := range found {
			byUID[found[i].GetUID()] = &found[i]
		}
		for _, n := range group {
			n.Live, n.err = byUID[n.item.meta.UID], err
		}
	})
}

// tree returns the tree of an object with the state of each node. Only objects whose health is more than their existence are read.
func (g *gatherer) tree(ctx context.Context, gvk schema.GroupVersionKind, live *unstructured.Unstructured) *Node {
	top := g.grow(ctx, gvk, live)
	var judged []*Node
	top.walk(func(n *Node) {
		switch {
		case n.item.meta.UID == live.GetUID():
			n.Verdict = health.Of(live)
		case health.Judged(n.item.kind.Group, n.Kind):
			judged = append(judged, n)
		}
	})
	Read(ctx, g.Reader, judged)
	for _, n := range judged {
		switch {
		case n.Live != nil:
			n.Verdict = health.Of(n.Live)
		case n.err == nil:
			n.Verdict = health.Verdict{State: health.Deleting, Reason: "Gone", Message: "it was deleted meanwhile"}
		default:
			n.Verdict = health.Verdict{State: health.Unknown, Message: "it could not be read"}
		}
	}
	for _, n := range top.Children {
		if n.Relation == Serving && len(n.Children) == 0 && n.State == health.Healthy {
			n.Verdict = health.Verdict{State: health.Idle, Reason: "NotDeployed", Message: "it has no pods in the namespace of the model", Paused: n.Paused}
		}
	}
	return top
}

// grow returns the tree of an object, without the state of its nodes.
func (g *gatherer) grow(ctx context.Context, gvk schema.GroupVersionKind, live *unstructured.Unstructured) *Node {
	kind := g.Exact(gvk)
	kind.GroupVersionKind = gvk // also where discovery did not return it
	root := itemOf(kind, live)
	g.forest.add(root)
	g.search(ctx, "")
	namespaces := g.forest.grow(root).namespaces() // as far as the objects of the manager tell
	if live.GetNamespace() == "" && g.confined.Load() {
		namespaces[g.Own] = true
	}
	g.search(ctx, slices.Sorted(maps.Keys(namespaces))...)
	top := g.forest.grow(root)
	// Models own no pods: those of runtimes serve them.
	if gvk.Group == v1alpha1.GroupVersion.Group && (gvk.Kind == "Predictor" || gvk.Kind == capability.InferenceService.Kind) {
		top.Children = append(g.serving(ctx, live), top.Children...)
	}
	return top
}

func itemOf(kind fetch.Kind, u *unstructured.Unstructured) *item {
	return &item{kind: kind, meta: metav1.ObjectMeta{
		Namespace: u.GetNamespace(), Name: u.GetName(), UID: u.GetUID(), Labels: u.GetLabels(), OwnerReferences: u.GetOwnerReferences(),
		CreationTimestamp: u.GetCreationTimestamp(),
	}}
}

// search lists metadata, once for each namespace: of all objects in it, since other controllers create what pods belong to. The namespace ""
// means the objects of the manager in the whole cluster.
func (g *gatherer) search(ctx context.Context, namespaces ...string) {
	type request struct {
		kind      fetch.Kind
		namespace string
	}
	var requests []request
	for _, namespace := range namespaces {
		for _, kind := range g.kinds() {
			if !g.searched[namespace] && (kind.Namespaced || namespace == "") {
				requests = append(requests, request{kind, namespace})
			}
		}
		g.searched[namespace] = true
	}
	results := fetch.Map(requests, func(r request) []metav1.PartialObjectMetadata { return g.metadata(ctx, r.kind, r.namespace) })
	for i, found := range results {
		for j := range found {
			g.forest.add(&item{kind: requests[i].kind, meta: found[j].ObjectMeta})
		}
	}
}

// metadata lists a kind. That other namespaces cannot be searched is noted once for all kinds: the known namespaces are searched anyway.
func (g *gatherer) metadata(ctx context.Context, kind fetch.Kind, namespace string) []metav1.PartialObjectMetadata {
	options := metav1.ListOptions{}
	if namespace == "" {
		options.LabelSelector = names.OperatorLabel + "=" + names.OperatorName
	}
	found, err := g.Noting(nil).ListMetadata(ctx, kind, namespace, options)
	if apierrors.IsForbidden(err) && kind.Namespaced && namespace == "" {
		g.confined.Store(true)
		return nil
	}
	g.Note(err)
	return found
}

// kinds that may be part of a tree.
func (g *gatherer) kinds() []fetch.Kind {
	return slices.DeleteFunc(g.Listable(), func(k fetch.Kind) bool {
		return noise[k.Kind] || !k.Namespaced && !clusterGroups[k.Group] && kinds.ComponentOf(k.GroupKind()) == ""
	})
}

// notes say what could not be read.
func (g *gatherer) notes() []string {
	if !g.confined.Load() {
		return g.Notes()
	}
	searched := slices.Sorted(maps.Keys(g.searched))[1:] // without the ""
	return append([]string{"not allowed to search all namespaces; searched: " + strings.Join(searched, ", ")}, g.Notes()...)
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
		kind := g.Exact(gvk)
		found, _ := g.List(ctx, kind, m.Namespace, metav1.ListOptions{})
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
		return modelmesh.FromPredictor(fetch.As[v1alpha1.Predictor](live)), true
	}
	m, mesh, err := modelmesh.FromInferenceService(fetch.As[v1beta1.InferenceService](live))
	return m, mesh && err == nil
}

// fits tells whether a runtime may serve a model. Whether the REST proxy runs is not known here; it is on by default.
func fits(u *unstructured.Unstructured, m modelmesh.Model) bool {
	r := fetch.As[v1alpha1.ServingRuntime](u)
	return modelmesh.Serves(&r.Spec) && modelmesh.Supports(modelmesh.Labels(r.Name, &r.Spec, true), m.Label())
}

// keep drops what is in other namespaces than one: a runtime of the cluster has pods in many.
func (n *Node) keep(namespace string) {
	n.Children = slices.DeleteFunc(n.Children, func(c *Node) bool { return c.Namespace != "" && c.Namespace != namespace })
}

package tree

import (
	"context"
	"slices"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/odh-platform/odh-platform-operator/cmd/kubectl-odh/internal/cli"
	"github.com/odh-platform/odh-platform-operator/cmd/kubectl-odh/internal/fetch"
	"github.com/odh-platform/odh-platform-operator/cmd/kubectl-odh/internal/ours"
	"github.com/odh-platform/odh-platform-operator/cmd/kubectl-odh/internal/served"
	"github.com/odh-platform/odh-platform-operator/pkg/names"
)

// noise are kinds that are left out of trees: they describe other objects, or are copies of them.
var noise = map[string]bool{"Event": true, "Endpoints": true, "EndpointSlice": true, "PodMetrics": true, "PackageManifest": true, "Lease": true, "ComponentStatus": true, "Node": true}

// clusterGroups are the groups of which objects of cluster scope may belong to a resource; asking for all others would only show
// what users may not read.
var clusterGroups = map[string]bool{
	"": true, "rbac.authorization.k8s.io": true, "console.openshift.io": true, "user.openshift.io": true, "kueue.x-k8s.io": true,
}

// gatherer reads what trees are made of.
type gatherer struct {
	reader fetch.Reader
	set    served.Set
	gaps   fetch.Gaps
	// own is the namespace of the context.
	own string

	mu       sync.Mutex
	forest   *forest
	searched map[string]bool // namespaces that were searched whole
	confined bool            // objects of the manager in other namespaces cannot be searched
}

func newGatherer(ctx context.Context, cluster *cli.Cluster) (*gatherer, error) {
	set, err := served.Read(ctx, cluster.Discovery)
	if err != nil {
		return nil, err
	}
	return &gatherer{
		reader: cluster.Reader(), set: set, own: cluster.Namespace,
		forest: newForest(), searched: map[string]bool{},
	}, nil
}

// tree returns the tree of an object, judged.
func (g *gatherer) tree(ctx context.Context, gvk schema.GroupVersionKind, live *unstructured.Unstructured) *Node {
	top := g.grow(ctx, gvk, live)
	g.judge(ctx, top, live)
	return top
}

// Parts returns resources and the objects that belong to them, without their state, and notes about what could not be read.
func Parts(ctx context.Context, cluster *cli.Cluster, resources []*unstructured.Unstructured) (parts []*Node, notes []string, err error) {
	g, err := newGatherer(ctx, cluster)
	if err != nil {
		return nil, nil, err
	}
	seen := map[types.UID]bool{}
	for _, live := range resources {
		g.grow(ctx, live.GroupVersionKind(), live).walk(func(n *Node) {
			if uid := n.item.meta.UID; !seen[uid] {
				seen[uid] = true
				parts = append(parts, n)
			}
		})
	}
	return parts, g.notes(), nil
}

// grow returns the tree of an object.
func (g *gatherer) grow(ctx context.Context, gvk schema.GroupVersionKind, live *unstructured.Unstructured) *Node {
	kind, ok := g.set.Exact(gvk)
	if !ok {
		kind.GroupVersionKind = gvk // it came a moment ago
	}
	root := itemOf(kind, live)
	g.forest.add(root)
	g.searchManaged(ctx)
	g.searchNamespaces(ctx, g.concerned(root))
	top := g.forest.grow(root)
	if isModel(kind.GroupVersionKind) {
		top.Children = append(g.serving(ctx, live), top.Children...)
	}
	return top
}

func itemOf(kind served.Kind, u *unstructured.Unstructured) *item {
	return &item{kind: kind, meta: metav1.ObjectMeta{
		Namespace: u.GetNamespace(), Name: u.GetName(), UID: u.GetUID(), Labels: u.GetLabels(), OwnerReferences: u.GetOwnerReferences(),
		CreationTimestamp: u.GetCreationTimestamp(),
	}}
}

// concerned are the namespaces in which parts of a root are, as far as the objects of the manager tell.
func (g *gatherer) concerned(root *item) []string {
	all := g.forest.grow(root).namespaces()
	if root.meta.Namespace == "" && g.confined {
		all[g.own] = true
	}
	var out []string
	for namespace := range all {
		out = append(out, namespace)
	}
	slices.Sort(out)
	return out
}

// searchManaged lists the objects of the manager in the whole cluster, once.
func (g *gatherer) searchManaged(ctx context.Context) {
	const everywhere = ""
	if g.searched[everywhere] {
		return
	}
	g.searched[everywhere] = true
	options := metav1.ListOptions{LabelSelector: names.OperatorLabel + "=" + names.OperatorName}
	fetch.Each(g.kinds(), func(kind served.Kind) {
		found, err := g.reader.ListMetadata(ctx, kind, everywhere, options)
		if apierrors.IsForbidden(err) && kind.Namespaced {
			g.mu.Lock()
			g.confined = true // the namespaces that are known are searched all the same
			g.mu.Unlock()
			return
		}
		if g.gaps.Note(kind.Resource, err) {
			g.take(kind, found)
		}
	})
}

// searchNamespaces lists everything in namespaces, each once: what pods belong to is made by other controllers.
func (g *gatherer) searchNamespaces(ctx context.Context, namespaces []string) {
	type list struct {
		kind      served.Kind
		namespace string
	}
	var lists []list
	for _, namespace := range namespaces {
		if g.searched[namespace] {
			continue
		}
		g.searched[namespace] = true
		for _, kind := range g.kinds() {
			if kind.Namespaced {
				lists = append(lists, list{kind, namespace})
			}
		}
	}
	fetch.Each(lists, func(l list) {
		found, err := g.reader.ListMetadata(ctx, l.kind, l.namespace, metav1.ListOptions{})
		if g.gaps.Note(l.kind.Resource, err) {
			g.take(l.kind, found)
		}
	})
}

// kinds that may be part of a tree.
func (g *gatherer) kinds() []served.Kind {
	return slices.DeleteFunc(g.set.Listable(), func(k served.Kind) bool {
		return noise[k.Kind] || !k.Namespaced && !clusterGroups[k.Group] && !ours.LookedAfter(k.GroupKind())
	})
}

func (g *gatherer) take(kind served.Kind, found []metav1.PartialObjectMetadata) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for i := range found {
		g.forest.add(&item{kind: kind, meta: found[i].ObjectMeta})
	}
}

// notes say what could not be read.
func (g *gatherer) notes() []string {
	var notes []string
	if g.confined {
		searched := make([]string, 0, len(g.searched))
		for namespace := range g.searched {
			if namespace != "" {
				searched = append(searched, namespace)
			}
		}
		slices.Sort(searched)
		notes = append(notes, "not allowed to search all namespaces; searched: "+strings.Join(searched, ", "))
	}
	notes = append(notes, g.gaps.Lines()...)
	for _, version := range g.set.Failed {
		notes = append(notes, "the API "+version+" does not answer")
	}
	return notes
}

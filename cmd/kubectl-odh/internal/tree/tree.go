// Package tree is the sub-command that shows the objects of a resource, down to the pods, and their state.
//
// Objects are found by owner references, and otherwise (retained data, other namespaces, cluster scope) by labels. Of Secrets only
// the metadata is read, unless the command line names one.
package tree

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/resource"
	"k8s.io/utils/ptr"

	"github.com/odh-platform/odh-platform-operator/cmd/internal/kinds"
	"github.com/odh-platform/odh-platform-operator/cmd/kubectl-odh/internal/cli"
	"github.com/odh-platform/odh-platform-operator/cmd/kubectl-odh/internal/fetch"
	"github.com/odh-platform/odh-platform-operator/pkg/names"
	"github.com/odh-platform/odh-platform-operator/pkg/raycluster"
	"github.com/odh-platform/odh-platform-operator/pkg/status/health"
)

const long = `Show the objects that belong to a resource, down to the pods, and the state of each.

Resources of any kind are named as in kubectl: mlflow/mlflow, deployment web, mr -l team=a.
Objects without an owner reference, because they are in another namespace or cluster-scoped,
are marked (by label); those that hold data and remain when the resource is deleted, (kept).

The exit code is 1 if an object in a tree needs attention or is still starting,
and 3 if none does but something could not be read.`

const examples = `  kubectl odh tree mlflow/mlflow
  kubectl odh tree -n team raycluster/demo appwrapper/train
  kubectl odh tree -n team deployment web`

// Result is the structured output.
type Result struct {
	// OK means that no object in the trees needs attention.
	OK    bool    `json:"ok"`
	Trees []*Node `json:"trees"`
	// Notes list gaps.
	Notes []string `json:"notes,omitempty"`
}

// Command returns the command tree.
func Command(o *cli.Options) *cobra.Command {
	var selector string
	c := &cobra.Command{
		Use: "tree (KIND/NAME... | KIND NAME... | KIND -l LABELS)", Short: "Show the objects that belong to a resource, down to the pods",
		Long: long, Example: examples,
		RunE: func(c *cobra.Command, args []string) error { return show(c, o, args, selector) },
	}
	c.Flags().StringVarP(&selector, "selector", "l", "", "Select the resources of a kind that have these labels.")
	o.AddOutput(c)
	return c
}

// show prints the trees of the resources in args.
func show(c *cobra.Command, o *cli.Options, args []string, selector string) error {
	if len(args) == 0 || o.AllNamespaces {
		return errors.New("tree: name resources of one namespace as KIND/NAME, such as mlflow/mlflow, or as KIND NAME")
	}
	cluster, reader, err := o.Read(c.Context())
	if err != nil {
		return err
	}
	infos, err := resource.NewBuilder(o.Config).Unstructured().NamespaceParam(cluster.Namespace).DefaultNamespace().Flatten().
		LabelSelectorParam(selector).ResourceTypeOrNameArgs(false, args...).Do().Infos()
	if err != nil {
		return err
	}
	g := newGatherer(reader)
	result := Result{OK: true}
	for _, info := range infos {
		top := g.tree(c.Context(), info.Object.(*unstructured.Unstructured))
		for _, n := range top.flatten() {
			result.OK = result.OK && n.State.OK()
		}
		result.Trees = append(result.Trees, top)
	}
	result.Notes = g.notes()
	return o.Show(cli.View{Kind: "Tree", Object: result, Text: result.text(o.Clock.Now()), Err: cli.ResultError(!result.OK, len(result.Notes) > 0)})
}

func (r Result) text(now time.Time) string {
	var parts []string
	for _, top := range r.Trees {
		table := cli.Table{Columns: []string{"Resource", "Namespace", "State", "Reason", "Age"}}
		top.draw(&table, now, "")
		parts = append(parts, table.String())
	}
	if len(r.Notes) > 0 {
		parts = append(parts, cli.Notes(r.Notes))
	}
	return strings.Join(parts, "\n")
}

// relationSuffixes are appended to the names of objects without an owner.
var relationSuffixes = map[Relation]string{Kept: " (kept)", Labelled: " (by label)"}

// draw adds rows for a node and its descendants, except ReplicaSets of previous pod templates.
func (n *Node) draw(table *cli.Table, now time.Time, indent string) {
	if n.Kind == "ReplicaSet" && n.State == health.Idle && len(n.Children) == 0 {
		return
	}
	name, childIndent := indent+n.Kind+"/"+n.Name+relationSuffixes[n.Relation], indent+"  "
	table.Add(cli.Below(childIndent, n.Verdict), name, n.Namespace, n.Label(), n.Reason, cli.Age(n.Created, now))
	for _, child := range n.Children {
		child.draw(table, now, childIndent)
	}
}

// Relation is the relation of an object to its parent in a tree.
type Relation string

// Relations to the parent.
const (
	// Owned objects have the parent as owner and are garbage-collected with it.
	Owned Relation = "owned"
	// Labelled objects are found by labels; the manager deletes them with the parent.
	Labelled Relation = "labelled"
	// Kept objects are found by labels and are retained when the parent is deleted: data.
	Kept Relation = "kept"
)

// Node is an object in a tree.
type Node struct {
	APIVersion string    `json:"apiVersion"`
	Kind       string    `json:"kind"`
	Namespace  string    `json:"namespace,omitempty"`
	Name       string    `json:"name"`
	Relation   Relation  `json:"relation,omitempty"`
	Created    time.Time `json:"created,omitzero"`
	health.Verdict
	Children []*Node `json:"children,omitempty"`

	// Live is the object; for a listed Secret only its metadata.
	Live *unstructured.Unstructured `json:"-"`
}

// flatten returns a node and its descendants.
func (n *Node) flatten() []*Node {
	out := []*Node{n}
	for _, child := range n.Children {
		out = append(out, child.flatten()...)
	}
	return out
}

const componentSelector = names.OperatorLabel + "=" + names.OperatorName + "," + names.ComponentLabel + "="

// selectors select the objects of a resource without an owner reference to the resource. NAME is replaced by the name of the resource.
var selectors = map[schema.GroupKind][]string{
	{Group: "mlflow.opendatahub.io", Kind: "MLflow"}:               {componentSelector + "mlflow"}, // a singleton
	{Group: "components.platform.opendatahub.io", Kind: "AIHub"}:   {componentSelector + "platform"},
	{Group: "modelregistry.opendatahub.io", Kind: "ModelRegistry"}: {componentSelector + "modelregistry,app in (NAME,NAME-postgres)"},
	{Group: "aihub.opendatahub.io", Kind: "Catalog"}: {
		"app.kubernetes.io/created-by=model-registry-operator,component in (model-catalog,model-catalog-postgres)",
	},
	{Group: "ray.io", Kind: "RayCluster"}:                 {raycluster.LabelClusterName + "=NAME", "ray.io/cluster=NAME"},
	{Group: "workload.codeflare.dev", Kind: "AppWrapper"}: {"workload.codeflare.dev/appwrapper=NAME"},
}

// namespaceLabels are labels with the namespace of the resource, on objects in other namespaces.
var namespaceLabels = []string{"modelregistry.opendatahub.io/namespace", raycluster.LabelClusterNamespace}

// excludedKinds are not part of trees: they describe or copy other objects.
var excludedKinds = []string{"Event", "Endpoints", "EndpointSlice", "PodMetrics", "PackageManifest", "Lease", "ComponentStatus", "Node"}

// clusterGroups are the API groups of cluster-scoped objects that may belong to a resource; users may lack permissions to list others.
var clusterGroups = []string{"", "rbac.authorization.k8s.io", "console.openshift.io", "user.openshift.io", "kueue.x-k8s.io"}

// gatherer reads the objects of trees.
type gatherer struct {
	fetch.Reader
	byUID      map[types.UID]*Node
	found      []*Node
	searched   map[string]bool // searched namespaces; "" for managed objects in all namespaces
	restricted atomic.Bool     // managed objects cannot be listed in all namespaces
}

func newGatherer(reader fetch.Reader) *gatherer {
	return &gatherer{Reader: reader, byUID: map[types.UID]*Node{}, searched: map[string]bool{}}
}

// Parts returns resources and the objects that belong to them, and notes about gaps.
func Parts(ctx context.Context, reader fetch.Reader, resources []*unstructured.Unstructured) (parts []*Node, notes []string) {
	g := newGatherer(reader)
	seen := map[types.UID]bool{}
	for _, live := range resources {
		for _, n := range g.tree(ctx, live).flatten() {
			if !seen[n.Live.GetUID()] {
				parts = append(parts, n)
			}
			seen[n.Live.GetUID()] = true
		}
	}
	return parts, g.notes()
}

func (g *gatherer) tree(ctx context.Context, live *unstructured.Unstructured) *Node {
	root := g.add(live)
	g.search(ctx, "")
	namespaces := map[string]bool{}
	for _, n := range g.buildTree(root).flatten() { // from managed objects
		namespaces[n.Namespace] = true
	}
	if live.GetNamespace() == "" && g.restricted.Load() {
		namespaces[g.ContextNamespace] = true
	}
	g.search(ctx, slices.Sorted(maps.Keys(namespaces))...)
	return g.buildTree(root)
}

// add adds an object once: some objects are served in several API groups.
func (g *gatherer) add(u *unstructured.Unstructured) *Node {
	n := g.byUID[u.GetUID()]
	if n == nil {
		n = &Node{u.GetAPIVersion(), u.GetKind(), u.GetNamespace(), u.GetName(), "", u.GetCreationTimestamp().Time, health.Of(u), nil, u}
		g.byUID[u.GetUID()], g.found = n, append(g.found, n)
	}
	return n
}

// buildTree returns the tree below a root. An object occurs once: below its controller, another owner, or the root that its labels name.
func (g *gatherer) buildTree(root *Node) *Node {
	placed, top := map[types.UID]bool{root.Live.GetUID(): true}, *root
	g.attach(&top, placed, g.ownedRelation)
	g.attach(&top, placed, g.labelRelation)
	return &top
}

// attach adds related objects that are not placed yet, and their owned objects, below a node.
func (g *gatherer) attach(n *Node, placed map[types.UID]bool, related func(n, o *Node) Relation) {
	for _, o := range g.found {
		relation := related(n, o)
		if relation == "" || placed[o.Live.GetUID()] {
			continue
		}
		placed[o.Live.GetUID()] = true
		child := *o
		child.Relation = relation
		n.Children = append(n.Children, &child)
		g.attach(&child, placed, g.ownedRelation)
	}
	slices.SortFunc(n.Children, func(a, b *Node) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
}

// hasKnownController reports whether the controller of an object was found.
func (g *gatherer) hasKnownController(o *Node) bool {
	ref := metav1.GetControllerOfNoCopy(o.Live)
	return ref != nil && g.byUID[ref.UID] != nil
}

// ownedRelation returns Owned if n is the controller of o, or an owner of o without a known controller.
func (g *gatherer) ownedRelation(n, o *Node) Relation {
	for _, ref := range o.Live.GetOwnerReferences() {
		if ref.UID == n.Live.GetUID() && (ptr.Deref(ref.Controller, false) || !g.hasKnownController(o)) {
			return Owned
		}
	}
	return ""
}

// labelRelation returns Labelled or Kept if the labels of o assign it to n.
func (g *gatherer) labelRelation(n, o *Node) Relation {
	inScope := n.Namespace == "" || o.Namespace == n.Namespace ||
		slices.ContainsFunc(namespaceLabels, func(label string) bool { return o.Live.GetLabels()[label] == n.Namespace })
	matches := func(text string) bool {
		s, err := labels.Parse(strings.ReplaceAll(text, "NAME", n.Name))
		return err == nil && s.Matches(labels.Set(o.Live.GetLabels()))
	}
	switch {
	case !inScope || g.hasKnownController(o) || !slices.ContainsFunc(selectors[n.Live.GroupVersionKind().GroupKind()], matches):
		return ""
	case o.Kind == "PersistentVolumeClaim":
		return Kept
	}
	return Labelled
}

// search lists the objects of all kinds but excludedKinds in namespaces, because any controller may own pods. It lists each namespace once.
// The namespace "" means managed objects in the whole cluster.
func (g *gatherer) search(ctx context.Context, namespaces ...string) {
	for _, namespace := range namespaces {
		if g.searched[namespace] {
			continue
		}
		g.searched[namespace] = true
		listed := slices.DeleteFunc(slices.Clone(g.Kinds), func(k fetch.Kind) bool {
			foreign := !k.Namespaced && !slices.Contains(clusterGroups, k.Group) && kinds.ComponentOf(k.GroupKind()) == ""
			return foreign || !k.Listable || slices.Contains(excludedKinds, k.Kind) || !k.Namespaced && namespace != "" || g.Kind(k.GroupKind().String()) != k
		})
		found := fetch.Map(listed, func(k fetch.Kind) []unstructured.Unstructured { return g.list(ctx, k, namespace) })
		for _, u := range slices.Concat(found...) {
			g.add(&u)
		}
	}
}

// list lists a kind. A missing permission to list all namespaces is noted once for all kinds, because namespaces of known objects are
// searched too.
func (g *gatherer) list(ctx context.Context, kind fetch.Kind, namespace string) []unstructured.Unstructured {
	options, list := metav1.ListOptions{}, g.WithGaps(nil).List
	if namespace == "" {
		options.LabelSelector = names.OperatorLabel + "=" + names.OperatorName
	}
	if kind.Kind == "Secret" {
		list = g.WithGaps(nil).ListMetadata
	}
	found, err := list(ctx, kind, namespace, options)
	if apierrors.IsForbidden(err) && kind.Namespaced && namespace == "" {
		g.restricted.Store(true)
		return nil
	}
	g.Note(err)
	for i := range found {
		found[i].SetGroupVersionKind(kind.GroupVersionKind)
	}
	return found
}

// notes returns notes about gaps.
func (g *gatherer) notes() []string {
	if !g.restricted.Load() {
		return g.Notes()
	}
	searched := slices.Sorted(maps.Keys(g.searched))[1:] // without the ""
	return append([]string{"not allowed to search all namespaces; searched: " + strings.Join(searched, ", ")}, g.Notes()...)
}

package tree

import (
	"context"

	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/odh-platform/odh-platform-operator/cmd/kubectl-odh/internal/fetch"
	"github.com/odh-platform/odh-platform-operator/cmd/kubectl-odh/internal/served"
	"github.com/odh-platform/odh-platform-operator/pkg/status/health"
)

// single is the number of objects of one kind in a namespace up to which each is read by itself; more are listed.
const single = 5

// group is the nodes of one kind in one namespace.
type group struct {
	kind      served.Kind
	namespace string
	nodes     map[types.UID]*Node
}

// judge reads the objects of a tree whose health is more than their existence, and judges them.
func (g *gatherer) judge(ctx context.Context, top *Node, live *unstructured.Unstructured) {
	groups := map[string]*group{}
	top.walk(func(n *Node) {
		if n.item.meta.UID == live.GetUID() {
			n.Verdict = health.Of(live)
			return
		}
		if !health.Judged(n.item.kind.Group, n.Kind) {
			return
		}
		key := n.APIVersion + " " + n.Kind + " " + n.Namespace
		if groups[key] == nil {
			groups[key] = &group{n.item.kind, n.Namespace, map[types.UID]*Node{}}
		}
		groups[key].nodes[n.item.meta.UID] = n
	})
	var tasks []func()
	for _, each := range groups {
		if len(each.nodes) > single {
			tasks = append(tasks, func() { g.judgeMany(ctx, each) })
			continue
		}
		for _, n := range each.nodes {
			tasks = append(tasks, func() { g.judgeOne(ctx, n) })
		}
	}
	fetch.Each(tasks, func(task func()) { task() })
	for _, n := range top.Children {
		if n.Relation == Serving && len(n.Children) == 0 && n.State == health.Healthy {
			n.Verdict = health.Verdict{State: health.Idle, Reason: "NotDeployed", Message: "it has no pods in the namespace of the model", Paused: n.Paused}
		}
	}
}

func (g *gatherer) judgeOne(ctx context.Context, n *Node) {
	u, err := g.reader.Get(ctx, n.item.kind, n.Namespace, n.Name)
	switch {
	case g.gaps.Note(n.item.kind.Resource, err):
		n.Verdict = health.Of(u)
	case errors.IsNotFound(err):
		n.Verdict = health.Verdict{State: health.Deleting, Reason: "Gone", Message: "it went away meanwhile"}
	default:
		n.Verdict = unread
	}
}

// unread is the verdict of an object that could not be read.
var unread = health.Verdict{State: health.Unknown, Message: "it could not be read"}

func (g *gatherer) judgeMany(ctx context.Context, all *group) {
	found, err := g.reader.List(ctx, all.kind, all.namespace, metav1.ListOptions{})
	if !g.gaps.Note(all.kind.Resource, err) {
		for _, n := range all.nodes {
			n.Verdict = unread
		}
		return
	}
	seen := map[types.UID]bool{}
	for i := range found {
		if n := all.nodes[found[i].GetUID()]; n != nil {
			n.Verdict = health.Of(&found[i])
			seen[found[i].GetUID()] = true
		}
	}
	for uid, n := range all.nodes {
		if !seen[uid] {
			n.Verdict = health.Verdict{State: health.Deleting, Reason: "Gone", Message: "it went away meanwhile"}
		}
	}
}

package tree

import (
	"context"

	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/odh-platform/odh-platform-operator/cmd/kubectl-odh/internal/fetch"
	"github.com/odh-platform/odh-platform-operator/pkg/status/health"
)

// single is the number of objects of one kind in a namespace up to which each is read by itself; more are listed.
const single = 5

// judge reads the objects of a tree whose health is more than their existence, and judges them.
func (g *gatherer) judge(ctx context.Context, top *Node, live *unstructured.Unstructured) {
	groups := map[string][]*Node{} // by kind and namespace
	top.walk(func(n *Node) {
		switch {
		case n.item.meta.UID == live.GetUID():
			n.Verdict = health.Of(live)
		case health.Judged(n.item.kind.Group, n.Kind):
			key := n.APIVersion + " " + n.Kind + " " + n.Namespace
			groups[key] = append(groups[key], n)
		}
	})
	var tasks []func()
	for _, nodes := range groups {
		if len(nodes) > single {
			tasks = append(tasks, func() { g.judgeMany(ctx, nodes) })
			continue
		}
		for _, n := range nodes {
			tasks = append(tasks, func() {
				u, err := g.reader.Get(ctx, n.item.kind, n.Namespace, n.Name)
				g.put(n, u, err)
			})
		}
	}
	fetch.Each(tasks, func(task func()) { task() })
	for _, n := range top.Children {
		if n.Relation == Serving && len(n.Children) == 0 && n.State == health.Healthy {
			n.Verdict = health.Verdict{State: health.Idle, Reason: "NotDeployed", Message: "it has no pods in the namespace of the model", Paused: n.Paused}
		}
	}
}

// judgeMany lists objects of one kind in one namespace.
func (g *gatherer) judgeMany(ctx context.Context, nodes []*Node) {
	found, err := g.reader.List(ctx, nodes[0].item.kind, nodes[0].Namespace, metav1.ListOptions{})
	byUID := map[types.UID]*unstructured.Unstructured{}
	for i := range found {
		byUID[found[i].GetUID()] = &found[i]
	}
	for _, n := range nodes {
		g.put(n, byUID[n.item.meta.UID], err)
	}
}

// put judges a node by its object, which is nil when it no longer exists.
func (g *gatherer) put(n *Node, u *unstructured.Unstructured, err error) {
	switch known := g.gaps.Note(n.item.kind.Resource, err); {
	case known && u != nil:
		n.Verdict = health.Of(u)
	case known, errors.IsNotFound(err):
		n.Verdict = health.Verdict{State: health.Deleting, Reason: "Gone", Message: "it was deleted meanwhile"}
	default:
		n.Verdict, n.hidden = health.Verdict{State: health.Unknown, Message: "it could not be read"}, errors.IsForbidden(err)
	}
}

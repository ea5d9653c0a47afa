package tree

import (
	"k8s.io/apimachinery/pkg/types"
)

// forest is all that is known of the objects around some roots.
type forest struct {
	byUID   map[types.UID]*item
	ownedBy map[types.UID][]*item
	all     []*item
}

func newForest() *forest {
	return &forest{byUID: map[types.UID]*item{}, ownedBy: map[types.UID][]*item{}}
}

// add takes note of an object once: the same one is served in several API groups at times.
func (f *forest) add(i *item) {
	if f.byUID[i.meta.UID] != nil {
		return
	}
	f.byUID[i.meta.UID] = i
	f.all = append(f.all, i)
	for _, ref := range i.meta.OwnerReferences {
		f.ownedBy[ref.UID] = append(f.ownedBy[ref.UID], i)
	}
}

// grow returns the tree below a root. Each object is in it once: below its controller, else below the owner that comes first.
func (f *forest) grow(root *item) *Node {
	return f.growBeside(root, "", map[types.UID]bool{})
}

func (f *forest) growBeside(root *item, relation Relation, placed map[types.UID]bool) *Node {
	placed[root.meta.UID] = true
	top := newNode(root, relation)
	f.branch(top, placed)
	tied := ties(root)
	for _, i := range f.all {
		if placed[i.meta.UID] || !tied(i) || f.byUID[i.controller()] != nil {
			continue
		}
		placed[i.meta.UID] = true
		child := newNode(i, relationOf(i))
		f.branch(child, placed)
		top.Children = append(top.Children, child)
	}
	top.sort()
	return top
}

// branch adds what a node owns, and what that owns.
func (f *forest) branch(n *Node, placed map[types.UID]bool) {
	for _, i := range f.ownedBy[n.item.meta.UID] {
		above := i.controller()
		elsewhere := above != "" && above != n.item.meta.UID && f.byUID[above] != nil
		if placed[i.meta.UID] || elsewhere {
			continue
		}
		placed[i.meta.UID] = true
		child := newNode(i, Owned)
		n.Children = append(n.Children, child)
		f.branch(child, placed)
	}
}

// relationOf an object without an owner.
func relationOf(i *item) Relation {
	if i.kind.Kind == "PersistentVolumeClaim" {
		return Kept
	}
	return Labelled
}

// namespaces of a node and all below it.
func (n *Node) namespaces() map[string]bool {
	out := map[string]bool{}
	n.walk(func(n *Node) {
		if n.Namespace != "" {
			out[n.Namespace] = true
		}
	})
	return out
}

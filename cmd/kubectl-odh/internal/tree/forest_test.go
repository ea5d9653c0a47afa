package tree

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/odh-platform/odh-platform-operator/cmd/kubectl-odh/internal/fetch"
	"github.com/odh-platform/odh-platform-operator/cmd/kubectl-odh/internal/screen"
	"github.com/odh-platform/odh-platform-operator/pkg/names"
	"github.com/odh-platform/odh-platform-operator/pkg/status/health"
)

// thing is an object by its kind and name, which is its uid too.
func thing(group, kind, namespace, name string, labels map[string]string, owners ...string) *item {
	i := &item{kind: fetch.Kind{GroupVersionKind: schema.GroupVersionKind{Group: group, Version: "v1", Kind: kind}, Namespaced: namespace != ""}}
	i.meta = metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(name), Labels: labels}
	for _, owner := range owners {
		name, controls := strings.CutSuffix(owner, "!")
		ref := metav1.OwnerReference{UID: types.UID(name), Name: name}
		if controls {
			ref.Controller = new(true)
		}
		i.meta.OwnerReferences = append(i.meta.OwnerReferences, ref)
	}
	return i
}

// shape is a tree in one line.
func shape(n *Node) string {
	text := n.Name
	if n.Relation != Owned && n.Relation != "" {
		text += "~" + string(n.Relation)
	}
	if len(n.Children) == 0 {
		return text
	}
	var parts []string
	for _, child := range n.Children {
		parts = append(parts, shape(child))
	}
	return text + "(" + strings.Join(parts, " ") + ")"
}

func plant(items ...*item) *forest {
	f := newForest()
	for _, i := range items {
		f.add(i)
	}
	return f
}

func TestOwners(t *testing.T) {
	for name, c := range map[string]struct {
		items []*item // the first is the root
		want  string
	}{
		"alone":           {[]*item{thing("x", "A", "n", "a", nil), thing("x", "A", "n", "b", nil)}, "a"},
		"children":        {[]*item{thing("x", "A", "n", "a", nil), thing("x", "B", "n", "b", nil, "a!"), thing("x", "C", "n", "c", nil, "b!")}, "a(b(c))"},
		"without control": {[]*item{thing("x", "A", "n", "a", nil), thing("x", "B", "n", "b", nil, "a")}, "a(b)"},
		"two owners, below the one that controls": {
			[]*item{thing("x", "A", "n", "a", nil), thing("x", "B", "n", "b", nil, "a!"), thing("x", "C", "n", "c", nil, "a", "b!")}, "a(b(c))",
		},
		"controlled from outside": {
			[]*item{thing("x", "A", "n", "a", nil), thing("x", "B", "n", "b", nil), thing("x", "C", "n", "c", nil, "a", "b!")}, "a",
		},
		"an unknown controller": {[]*item{thing("x", "A", "n", "a", nil), thing("x", "C", "n", "c", nil, "a", "gone!")}, "a(c)"},
		"the root has an owner": {[]*item{thing("x", "A", "n", "a", nil, "z!"), thing("x", "Z", "n", "z", nil), thing("x", "B", "n", "b", nil, "a!")}, "a(b)"},
		"a circle":              {[]*item{thing("x", "A", "n", "a", nil, "b!"), thing("x", "B", "n", "b", nil, "a!")}, "a(b)"},
		"itself":                {[]*item{thing("x", "A", "n", "a", nil, "a!")}, "a"},
		"order":                 {[]*item{thing("x", "A", "n", "a", nil), thing("", "Secret", "n", "s", nil, "a!"), thing("", "Pod", "n", "q", nil, "a!"), thing("", "Pod", "n", "p", nil, "a!"), thing("x", "Zoo", "n", "z", nil, "a!"), thing("apps", "Deployment", "n", "d", nil, "a!")}, "a(d p q s z)"},
	} {
		if got := shape(plant(c.items...).grow(c.items[0])); got != c.want {
			t.Errorf("%s: got %s, want %s", name, got, c.want)
		}
	}
}

// ofComponent are the labels of what a component makes.
func ofComponent(component string, more ...string) map[string]string {
	labels := names.Labels(component)
	for i := 0; i < len(more); i += 2 {
		labels[more[i]] = more[i+1]
	}
	return labels
}

func TestKin(t *testing.T) {
	registries := "modelregistry.opendatahub.io"
	for name, c := range map[string]struct {
		items []*item // the first is the root
		want  string
	}{
		"data of MLflow": {[]*item{
			thing("mlflow.opendatahub.io", "MLflow", "", "mlflow", nil), thing("", "PersistentVolumeClaim", "odh", "claim", ofComponent("mlflow")),
			thing("", "PersistentVolumeClaim", "odh", "other", ofComponent("modelmesh")), thing("", "PersistentVolumeClaim", "odh", "foreign", map[string]string{"app": "mlflow"}),
		}, "mlflow(claim~kept)"},
		"what an AIHub makes": {[]*item{
			thing("components.platform.opendatahub.io", "AIHub", "", "hub", nil), thing("", "Namespace", "", "registries", ofComponent("platform")),
		}, "hub(registries~labelled)"},
		"a registry": {[]*item{
			thing(registries, "ModelRegistry", "n", "a", nil),
			thing("rbac.authorization.k8s.io", "ClusterRoleBinding", "", "binding", ofComponent("modelregistry", "app", "a", labelNamespace, "n")),
			thing("rbac.authorization.k8s.io", "ClusterRoleBinding", "", "of-another", ofComponent("modelregistry", "app", "a", labelNamespace, "m")),
			thing("rbac.authorization.k8s.io", "ClusterRoleBinding", "", "of-b", ofComponent("modelregistry", "app", "b", labelNamespace, "n")),
			thing("gateway.networking.k8s.io", "HTTPRoute", "gateways", "route", ofComponent("modelregistry", "app", "a", labelNamespace, "n")),
			thing("", "PersistentVolumeClaim", "n", "database", ofComponent("modelregistry", "app", "a-postgres")),
		}, "a(route~labelled database~kept binding~labelled)"},
		"a catalog": {[]*item{
			thing("aihub.opendatahub.io", "Catalog", "n", "catalog", nil),
			thing("", "Secret", "n", "password", map[string]string{labelCreatedBy: createdByRegistries, labelComponent: "model-catalog-postgres"}),
			thing("", "PersistentVolumeClaim", "n", "database", map[string]string{labelCreatedBy: createdByRegistries, labelComponent: "model-catalog-postgres"}),
			thing("", "Secret", "m", "elsewhere", map[string]string{labelCreatedBy: createdByRegistries, labelComponent: "model-catalog-postgres"}),
			thing("", "Secret", "n", "of-a-registry", map[string]string{labelCreatedBy: createdByRegistries, labelComponent: "model-registry"}),
		}, "catalog(database~kept password~labelled)"},
		"a Ray cluster": {[]*item{
			thing("ray.io", "RayCluster", "n", "ray", nil),
			thing("", "Pod", "n", "head", map[string]string{labelRay: "ray"}, "ray!"),
			thing("", "Secret", "n", "tls", map[string]string{"ray.openshift.ai/cluster-name": "ray"}),
			thing("", "Secret", "m", "far", map[string]string{"ray.openshift.ai/cluster-name": "ray"}),
			thing("rbac.authorization.k8s.io", "ClusterRoleBinding", "", "auth", map[string]string{"ray.openshift.ai/cluster-name": "ray", "ray.openshift.ai/cluster-namespace": "n"}),
			thing("", "Pod", "n", "of-b", map[string]string{labelRay: "b"}),
		}, "ray(head tls~labelled auth~labelled)"},
		"an AppWrapper": {[]*item{
			thing("workload.codeflare.dev", "AppWrapper", "n", "aw", nil),
			thing("batch", "Job", "n", "job", map[string]string{"workload.codeflare.dev/appwrapper": "aw"}, "aw!"),
			thing("", "Pod", "n", "pod", map[string]string{"workload.codeflare.dev/appwrapper": "aw"}, "job!"),
			thing("", "Pod", "n", "loose", map[string]string{"workload.codeflare.dev/appwrapper": "aw"}),
			thing("", "Pod", "m", "far", map[string]string{"workload.codeflare.dev/appwrapper": "aw"}),
		}, "aw(job(pod) loose~labelled)"},
		"what is found by a label brings what it owns": {[]*item{
			thing("workload.codeflare.dev", "AppWrapper", "n", "aw", nil),
			thing("batch", "Job", "n", "job", map[string]string{"workload.codeflare.dev/appwrapper": "aw"}), thing("", "Pod", "n", "pod", nil, "job!"),
		}, "aw(job~labelled(pod))"},
		"a kind without labels": {[]*item{thing("serving.kserve.io", "Predictor", "n", "p", nil), thing("", "Pod", "n", "pod", ofComponent("modelmesh"))}, "p"},
	} {
		if got := shape(plant(c.items...).grow(c.items[0])); got != c.want {
			t.Errorf("%s: got %s, want %s", name, got, c.want)
		}
	}
}

// TestEachObjectIsThereOnce grows trees in thickets of owners and labels.
func TestEachObjectIsThereOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		count := rapid.IntRange(1, 12).Draw(t, "objects")
		var items []*item
		for n := range count {
			var owners []string
			for _, owner := range rapid.SliceOfN(rapid.IntRange(0, count-1), 0, 3).Draw(t, "owners") {
				text := fmt.Sprintf("o%d", owner)
				if len(owners) == 0 && rapid.Bool().Draw(t, "controls") {
					text += "!"
				}
				owners = append(owners, text)
			}
			var labels map[string]string
			if rapid.Bool().Draw(t, "labelled") {
				labels = map[string]string{"workload.codeflare.dev/appwrapper": "o0"}
			}
			items = append(items, thing("workload.codeflare.dev", "AppWrapper", "n", fmt.Sprintf("o%d", n), labels, owners...))
		}
		seen := map[string]int{}
		plant(items...).grow(items[0]).walk(func(n *Node) { seen[n.Name]++ })
		for name, n := range seen {
			if n != 1 {
				t.Fatalf("%s is there %d times", name, n)
			}
		}
		if seen["o0"] != 1 {
			t.Fatal("the root is missing")
		}
	})
}

func TestAddOnce(t *testing.T) {
	a := thing("x", "A", "n", "a", nil, "b!")
	f := plant(a, thing("y", "A", "n", "a", nil, "b!"))
	if len(f.all) != 1 || len(f.ownedBy["b"]) != 1 {
		t.Errorf("%d objects, %d children", len(f.all), len(f.ownedBy["b"]))
	}
}

func TestNamespaces(t *testing.T) {
	root := thing("x", "A", "", "a", nil)
	top := plant(root, thing("x", "B", "n", "b", nil, "a!"), thing("x", "C", "m", "c", nil, "b!")).grow(root)
	if all := top.namespaces(); len(all) != 2 || !all["n"] || !all["m"] {
		t.Errorf("%v", all)
	}
}

// TestDrawingFitsTheTerminal draws trees of any depth on terminals of any width.
func TestDrawingFitsTheTerminal(t *testing.T) {
	states := []health.State{health.Healthy, health.Failed, health.Idle, health.Progressing}
	var node func(t *rapid.T, depth int) *Node
	node = func(t *rapid.T, depth int) *Node {
		n := &Node{
			Kind: rapid.StringMatching("[A-Z][a-z]{0,12}").Draw(t, "kind"), Name: rapid.StringMatching("[a-z]{1,20}").Draw(t, "name"),
			Namespace: rapid.SampledFrom([]string{"", "n", "a-long-namespace"}).Draw(t, "namespace"),
			Verdict:   health.Verdict{State: rapid.SampledFrom(states).Draw(t, "state"), Reason: "Reason", Message: rapid.String().Draw(t, "message")},
		}
		for range rapid.IntRange(0, 3).Draw(t, "children") * min(depth, 1) {
			n.Children = append(n.Children, node(t, depth-1))
		}
		return n
	}
	rapid.Check(t, func(t *rapid.T) {
		style := screen.Style{Width: rapid.IntRange(30, 150).Draw(t, "width"), ASCII: rapid.Bool().Draw(t, "ascii")}
		top, count := node(t, 3), 0
		top.walk(func(*Node) { count++ })
		text := draw(top, style, time.Time{}, true)
		if n := strings.Count(text, "/"); n < count && style.Width > 100 {
			t.Fatalf("%d of %d nodes are shown:\n%s", n, count, text)
		}
		for line := range strings.Lines(text) {
			if columns := screen.Columns(strings.TrimSuffix(line, "\n")); columns > style.Width {
				t.Fatalf("%d columns of %d: %q", columns, style.Width, line)
			}
		}
	})
}

package doctor

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/odh-platform/odh-platform-operator/cmd/kubectl-odh/internal/fetch"
	"github.com/odh-platform/odh-platform-operator/cmd/kubectl-odh/internal/ours"
)

// Needed is a Secret or a ConfigMap that a resource names.
type Needed struct {
	// By is the resource, such as "MLflow mlflow".
	By string
	// Namespace of the object; "" where it is not known.
	Namespace string
	Reference
	// Found tells whether the object exists, Missing which keys it lacks, Hidden that it could not be read.
	Found, Hidden bool
	Missing       []string
}

// naming are the kinds whose references are checked.
var naming = []string{"MLflow", "MLflowConfig", "ModelRegistry", "Catalog", "ServingRuntime"}

// references reads what resources of all namespaces name. What MLflow names is in the namespace of its server. Of Secrets no more than
// the names of their keys is kept.
func (g *gatherer) references(ctx context.Context) {
	home := ""
	if s := g.facts.Manager.Settings; s.Known {
		home = s.Config.Namespace
	}
	var needed []*Needed
	for _, kind := range ours.AllKinds() {
		if !slices.Contains(naming, kind.Kind) {
			continue
		}
		resources, _ := g.list(ctx, references, kind.Group, kind.Kind, "", metav1.ListOptions{})
		for i := range resources {
			u := &resources[i]
			if kind.Ours != nil && !kind.Ours(u) {
				continue
			}
			for _, ref := range referencesOf(u) {
				by := u.GetKind() + " " + strings.TrimPrefix(u.GetNamespace()+"/"+u.GetName(), "/")
				needed = append(needed, &Needed{By: by, Namespace: cmp.Or(u.GetNamespace(), home), Reference: ref})
			}
		}
	}
	fetch.Each(needed, func(n *Needed) { g.look(ctx, n) })
	slices.SortStableFunc(needed, func(a, b *Needed) int { return cmp.Or(cmp.Compare(a.By, b.By), cmp.Compare(a.Name, b.Name)) })
	for _, n := range needed {
		g.facts.Needed = append(g.facts.Needed, *n)
	}
}

// look reads whether an object that is needed exists.
func (g *gatherer) look(ctx context.Context, n *Needed) {
	if n.Namespace == "" {
		n.Hidden = true
		return
	}
	u, known := g.get(ctx, references, "", n.Kind, n.Namespace, n.Name)
	n.Hidden, n.Found = !known, u != nil
	if u == nil {
		return
	}
	data, _, _ := unstructured.NestedMap(u.Object, "data") // Secrets and ConfigMaps alike; binaryData is for files
	binary, _, _ := unstructured.NestedMap(u.Object, "binaryData")
	for _, key := range n.Keys {
		if data[key] == nil && binary[key] == nil {
			n.Missing = append(n.Missing, key)
		}
	}
}

func checkReferences(f *Facts, _ Shipped) (problems []Finding, fine string) {
	for _, n := range f.Needed {
		word, kubectl, name := strings.ToLower(n.Kind), "kubectl -n "+n.Namespace, n.Kind+" "+n.Namespace+"/"+n.Name
		switch {
		case n.Namespace == "":
			problems = append(problems, Finding{Result: Unknown, Subject: n.By, Found: n.Kind + " " + n.Name + " could not be read: the namespace of the server is not known",
				Fix: "run this as a user who may read the Deployment of the manager; --manager-namespace names its namespace"})
		case n.Hidden: // reported once for all that the same permission would show
		case !n.Found:
			create := kubectl + " create " + strings.Replace(word, "secret", "secret generic", 1) + " " + n.Name
			for _, key := range n.Keys {
				create += " --from-literal=" + key + "=..."
			}
			problems = append(problems, Finding{Result: Fail, Subject: n.By, Found: name + " does not exist", Fix: create})
		case len(n.Missing) > 0:
			problems = append(problems, Finding{Result: Fail, Subject: n.By, Found: name + " has no key " + strings.Join(n.Missing, ", "),
				Fix: kubectl + " edit " + word + " " + n.Name + ", and add what is missing"})
		}
	}
	return problems, fmt.Sprintf("%d Secrets and ConfigMaps that resources name exist", len(f.Needed))
}

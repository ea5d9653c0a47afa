package doctor

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/odh-platform/odh-platform-operator/cmd/kubectl-odh/internal/fetch"
	"github.com/odh-platform/odh-platform-operator/cmd/kubectl-odh/internal/references"
)

// Needed is a Secret or a ConfigMap that a resource names.
type Needed struct {
	// By is the resource, such as "MLflow mlflow".
	By string
	// Namespace of the object; "" where it is not known.
	Namespace string
	references.Reference
	// Found tells whether the object is there, Missing which keys it lacks, Hidden that it could not be read.
	Found, Hidden bool
	Missing       []string
}

// naming are the kinds whose references are looked at.
var naming = []string{"MLflow", "MLflowConfig", "ModelRegistry", "Catalog", "ServingRuntime"}

// needs are the references of a resource. What MLflow names is in the namespace of its server, which is found later.
func needs(u *unstructured.Unstructured) []Needed {
	var out []Needed
	if slices.Contains(naming, u.GetKind()) {
		for _, ref := range references.Of(u) {
			out = append(out, Needed{By: nameOf(u.GetKind(), u.GetNamespace(), u.GetName()), Namespace: u.GetNamespace(), Reference: ref})
		}
	}
	return out
}

// references looks for what resources name. Of Secrets no more than the names of their keys is kept.
func (g *gatherer) references(ctx context.Context) {
	s := g.facts.Manager.Settings
	fetch.Each(slices.Collect(indexes(len(g.facts.Needed))), func(i int) {
		n := &g.facts.Needed[i] // each task has its own
		if n.Namespace == "" && s.Known {
			n.Namespace = s.Config.Namespace
		}
		k, ok := g.set.Kind("", n.Kind)
		if !ok || n.Namespace == "" {
			n.Hidden = true
			return
		}
		u, err := g.reader.Get(ctx, k, n.Namespace, n.Name)
		if g.missing(topicReferences, "get", k, n.Namespace, n.Name, err) {
			n.Hidden = !isNotFound(err)
			return
		}
		n.Found = true
		data, _, _ := unstructured.NestedMap(u.Object, "data") // both kinds of data have the same place, and binaryData is for files
		binary, _, _ := unstructured.NestedMap(u.Object, "binaryData")
		for _, key := range n.Keys {
			if data[key] == nil && binary[key] == nil {
				n.Missing = append(n.Missing, key)
			}
		}
	})
}

func checkReferences(f *Facts, _ Shipped) []Finding {
	out := f.unreadable(topicReferences)
	all := slices.Clone(f.Needed)
	slices.SortStableFunc(all, func(a, b Needed) int { return cmp.Or(cmp.Compare(a.By, b.By), cmp.Compare(a.Name, b.Name)) })
	good := 0
	for _, n := range all {
		word, where := strings.ToLower(n.Kind), "kubectl -n "+n.Namespace
		switch {
		case n.Hidden && n.Namespace == "":
			out = append(out, Finding{Result: Unknown, Subject: n.By, Found: n.Kind + " " + n.Name + " could not be looked for: the namespace of the server is not known",
				Cure: "run it as a user who may read the Deployment of the manager; --manager-namespace names its namespace"})
		case n.Hidden: // said once for all that the same permission would show
		case !n.Found:
			create := where + " create " + strings.Replace(word, "secret", "secret generic", 1) + " " + n.Name
			for _, key := range n.Keys {
				create += " --from-literal=" + key + "=..."
			}
			out = append(out, Finding{Result: Fail, Subject: n.By, Found: fmt.Sprintf("%s %s/%s is not there%s", n.Kind, n.Namespace, n.Name, wanted(n.Keys)), Cure: create})
		case len(n.Missing) > 0:
			out = append(out, Finding{Result: Fail, Subject: n.By, Found: fmt.Sprintf("%s %s/%s has no key %s", n.Kind, n.Namespace, n.Name, strings.Join(n.Missing, ", ")),
				Cure: where + " edit " + word + " " + n.Name + ", and add what is missing"})
		default:
			good++
		}
	}
	if len(out) == 0 {
		out = append(out, fine("", fmt.Sprintf("%d Secrets and ConfigMaps that resources name are there", good)))
	}
	return out
}

func wanted(keys []string) string {
	if len(keys) == 0 {
		return ""
	}
	return ", of which it needs the keys " + strings.Join(keys, ", ")
}

package doctor

import (
	"context"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/odh-platform/odh-platform-operator/cmd/kubectl-odh/internal/fetch"
	"github.com/odh-platform/odh-platform-operator/cmd/kubectl-odh/internal/installed"
)

// Original is a former operator, whose work this one does.
type Original struct {
	// Deployment that runs it, and Lease that its replicas compete for; "" where that is not known.
	Deployment, Lease string
	// Components that take its place.
	Components []string
}

// formerOperators are all of them, by the names under which they are installed.
var formerOperators = []Original{
	{"mlflow-operator-controller-manager", "a5eb1b3b.opendatahub.io", []string{"mlflow", "platform"}},
	{"model-registry-operator-controller-manager", "85f368d1.opendatahub.io", []string{"modelregistry"}},
	{"catalog-controller-manager", "catalog.opendatahub.io", []string{"modelcatalog"}},
	{"aihub-controller-manager", "aihub-controller-manager", []string{"platform"}},
	{"modelmesh-controller", "modelmesh-controller-leader-lock", []string{"modelmesh"}},
	{"odh-model-controller", "", []string{"modelmesh"}},
	{"codeflare-operator-manager", "", []string{"raycluster", "appwrapper"}},
	{"appwrapper-controller-manager", "f134c674.codeflare.dev", []string{"appwrapper"}},
}

// originals finds the Deployments and Leases of former operators in all namespaces.
func (g *gatherer) originals(ctx context.Context) {
	fetch.Each(formerOperators, func(o Original) {
		found := map[string]Running{}
		deployments, _ := g.list(ctx, originals, "apps", "Deployment", "", metav1.ListOptions{FieldSelector: "metadata.name=" + o.Deployment})
		for i := range deployments {
			d := &appsv1.Deployment{}
			if decode(&deployments[i], d) {
				found[d.Namespace] = Running{Original: o, Namespace: d.Namespace, Present: true, Replicas: ptr.Deref(d.Spec.Replicas, 1)}
			}
		}
		for _, l := range g.heldLeases(ctx, o) {
			r := found[l.Namespace]
			r.Original, r.Namespace, r.Holder = o, l.Namespace, l.Holder
			found[l.Namespace] = r
		}
		g.put(func(f *Facts) {
			for _, r := range found {
				f.Originals = append(f.Originals, r)
			}
		})
	})
}

// heldLeases are the Leases of a former operator, in all namespaces, that a program holds.
func (g *gatherer) heldLeases(ctx context.Context, o Original) []*installed.Lease {
	if o.Lease == "" {
		return nil
	}
	var held []*installed.Lease
	leases, _ := g.list(ctx, originals, "coordination.k8s.io", "Lease", "", metav1.ListOptions{FieldSelector: "metadata.name=" + o.Lease})
	for i := range leases {
		if l := installed.ReadLease(&leases[i]); l.Held(g.facts.Now) {
			held = append(held, l)
		}
	}
	return held
}

func checkOriginals(f *Facts, _ Shipped) (problems []Finding, fine string) {
	for _, r := range f.Originals {
		components := strings.Join(r.Components, ", ")
		switch {
		case !r.Present:
			problems = append(problems, Finding{Result: Fail, Subject: "Lease " + r.Namespace + "/" + r.Lease,
				Found: "held by " + r.Holder + ", a replica of a former operator that does the work of " + components, Fix: "stop the program that holds it"})
		case r.Replicas == 0 && r.Holder == "", f.Manager.Settings.Known && !slices.ContainsFunc(r.Components, f.enabled):
		default:
			problems = append(problems, Finding{Result: Fail, Subject: "Deployment " + r.Namespace + "/" + r.Deployment,
				Found: "a former operator that does the work of " + components + " runs beside this one",
				Fix:   "kubectl -n " + r.Namespace + " scale deployment " + r.Deployment + " --replicas=0; docs/upgrade says how to hand over"})
		}
	}
	return problems, "no former operator does the work of a component that is on"
}

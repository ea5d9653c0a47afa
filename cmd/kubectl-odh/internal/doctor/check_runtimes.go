package doctor

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/odh-platform/odh-platform-operator/cmd/kubectl-odh/internal/fetch"
	"github.com/odh-platform/odh-platform-operator/cmd/kubectl-odh/internal/ours"
	"github.com/odh-platform/odh-platform-operator/cmd/kubectl-odh/internal/render"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/status/health"
)

// runtimes judges the runtimes of ModelMesh in all namespaces. They have no status in which the manager could report that it refuses them.
func (g *gatherer) runtimes(ctx context.Context) {
	var gaps fetch.Gaps
	refusal := render.Refusals(ctx, g.reader, g.set, g.facts.Manager, &gaps)
	refused, judged := map[string]string{}, 0
	for _, kind := range ours.AllKinds() {
		if kind.GroupVersionKind != capability.ServingRuntime && kind.GroupVersionKind != capability.ClusterServingRuntime {
			continue
		}
		found, _ := g.list(ctx, runtimes, kind.Group, kind.Kind, "", metav1.ListOptions{})
		for i := range found {
			u := &found[i]
			if !kind.Ours(u) {
				continue
			}
			judged++
			if problem := problemOf(u, refusal); problem != "" {
				refused[u.GetKind()+" "+strings.TrimPrefix(u.GetNamespace()+"/"+u.GetName(), "/")] = problem
			}
		}
	}
	g.put(func(f *Facts) {
		f.Runtimes, f.Judged = refused, judged
		for _, line := range gaps.Lines() {
			f.Unread[runtimes] = append(f.Unread[runtimes], Finding{Result: Unknown, Subject: "settings of ModelMesh", Found: line,
				Fix: "run this as a user who has the permission; runtimes were judged by the defaults"})
		}
	})
}

// problemOf says why ModelMesh makes no pods of a runtime; "" where it does.
func problemOf(u *unstructured.Unstructured, refusal func(*unstructured.Unstructured) string) string {
	if verdict := health.Of(u); verdict.Reason == health.InvalidRuntime {
		return strings.TrimPrefix(verdict.Message, health.NoPods)
	}
	return refusal(u)
}

func checkRuntimes(f *Facts, _ Shipped) (problems []Finding, fine string) {
	if f.off("modelmesh") {
		return nil, ""
	}
	for _, name := range slices.Sorted(maps.Keys(f.Runtimes)) {
		problems = append(problems, Finding{Result: Fail, Subject: name, Found: health.NoPods + f.Runtimes[name], Fix: "correct its spec"})
	}
	return problems, fmt.Sprintf("ModelMesh can make pods of all runtimes that are for it: %d", f.Judged)
}

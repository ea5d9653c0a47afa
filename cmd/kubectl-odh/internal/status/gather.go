package status

import (
	"context"
	"fmt"
	"slices"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/odh-platform/odh-platform-operator/cmd/kubectl-odh/internal/cli"
	"github.com/odh-platform/odh-platform-operator/cmd/kubectl-odh/internal/fetch"
	"github.com/odh-platform/odh-platform-operator/cmd/kubectl-odh/internal/installed"
	"github.com/odh-platform/odh-platform-operator/cmd/kubectl-odh/internal/ours"
	"github.com/odh-platform/odh-platform-operator/cmd/kubectl-odh/internal/render"
	"github.com/odh-platform/odh-platform-operator/cmd/kubectl-odh/internal/served"
	"github.com/odh-platform/odh-platform-operator/pkg/names"
	"github.com/odh-platform/odh-platform-operator/pkg/status/health"
)

// findings are what a report is made of.
type findings struct {
	manager    installed.Manager
	components []Component
	resources  []Resource
	notes      []string
}

// gatherer reads the cluster.
type gatherer struct {
	reader fetch.Reader
	set    served.Set
	gaps   fetch.Gaps
	// namespace to look at, empty for all; own is that of the context, which is left where not all may be seen.
	namespace, own string
	// selector of labels, for the resources.
	selector string

	mu        sync.Mutex
	confined  bool // to own, since listing all is forbidden
	resources []Resource
	workloads []unstructured.Unstructured // Deployments of ModelMesh
	runtimes  []unstructured.Unstructured
}

// gather finds out everything. An error means that nothing was found out.
func gather(ctx context.Context, o *cli.Options, cluster *cli.Cluster, selector string) (findings, error) {
	set, err := served.Read(ctx, cluster.Discovery)
	if err != nil {
		return findings{}, err
	}
	g := &gatherer{
		reader: cluster.Reader(), set: set, namespace: o.Namespace(), selector: selector, own: cluster.Namespace,
	}
	var f findings
	var tasks []func()
	for _, component := range ours.Components() {
		for _, kind := range component.Kinds {
			tasks = append(tasks, func() { g.list(ctx, component.Name, kind) })
		}
	}
	tasks = append(tasks,
		func() { g.deployments(ctx) },
		func() {
			f.manager = installed.Find(ctx, g.reader, set, o.ManagerNamespace, cluster.Namespace, &g.gaps)
		})
	fetch.Each(tasks, func(task func()) { task() })
	if err := g.gaps.Unanswered(); err != nil {
		return findings{}, err
	}
	if g.missing(ctx) {
		return findings{}, fmt.Errorf("namespace %q does not exist", g.namespace)
	}
	refusal := render.Refusals(ctx, g.reader, set, f.manager, &g.gaps)
	for i := range g.runtimes {
		u := &g.runtimes[i]
		verdict := runtimeVerdict(u, g.workloads)
		if problem := refusal(u); problem != "" && verdict.Reason != health.InvalidRuntime {
			verdict = health.Verdict{State: health.Failed, Reason: health.InvalidRuntime, Message: health.NoPods + problem, Paused: verdict.Paused}
		}
		g.resources = append(g.resources, newResource("modelmesh", u, verdict))
	}
	f.resources = g.resources
	f.components = judgeComponents(f.manager.Settings, set)
	f.notes = g.notes()
	if unread := f.manager.Settings.Unreadable(); unread != "" {
		f.notes = append(f.notes, unread)
	}
	return f, nil
}

// missing reports whether the namespace to look at does not exist.
func (g *gatherer) missing(ctx context.Context) bool {
	k, ok := g.set.Kind("", "Namespace")
	if !ok || g.namespace == "" {
		return false
	}
	_, err := g.reader.Get(ctx, k, "", g.namespace)
	return apierrors.IsNotFound(err)
}

// list reads the resources of a kind. A kind that is not served has none.
func (g *gatherer) list(ctx context.Context, component string, kind ours.Kind) {
	k, ok := g.set.Kind(kind.Group, kind.Kind)
	if !ok {
		return
	}
	found, ok := g.read(ctx, k, metav1.ListOptions{LabelSelector: g.selector})
	if !ok {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for i := range found {
		u := &found[i]
		switch {
		case kind.Ours != nil && !kind.Ours(u):
		case k.Kind == "ServingRuntime", k.Kind == "ClusterServingRuntime":
			g.runtimes = append(g.runtimes, *u)
		default:
			g.resources = append(g.resources, newResource(component, u, health.Of(u)))
		}
	}
}

// deployments of ModelMesh tell how its runtimes are, which have no status.
func (g *gatherer) deployments(ctx context.Context) {
	k, ok := g.set.Kind("apps", "Deployment")
	if !ok {
		return
	}
	selector := names.ComponentLabel + "=modelmesh," + names.OperatorLabel + "=" + names.OperatorName
	g.workloads, _ = g.read(ctx, k, metav1.ListOptions{LabelSelector: selector})
}

// read lists a kind in all namespaces, or at least in the one of the context.
func (g *gatherer) read(ctx context.Context, k served.Kind, options metav1.ListOptions) ([]unstructured.Unstructured, bool) {
	namespace := g.namespace
	if !k.Namespaced {
		namespace = ""
	}
	found, err := g.reader.List(ctx, k, namespace, options)
	if apierrors.IsForbidden(err) && k.Namespaced && namespace == "" {
		found, err = g.reader.List(ctx, k, g.own, options)
		g.mu.Lock()
		g.confined = true
		g.mu.Unlock()
	}
	return found, g.gaps.Note(k.Resource, err)
}

func (g *gatherer) notes() []string {
	var notes []string
	if g.confined {
		notes = append(notes, "not allowed to look at all namespaces; what is in namespace "+g.own+" is shown, -n chooses another")
	}
	notes = append(notes, g.gaps.Lines()...)
	for _, version := range g.set.Failed {
		notes = append(notes, "the API "+version+" does not answer")
	}
	return notes
}

// judgeComponents says which components run, from the settings of the manager and from what is served.
func judgeComponents(settings installed.Settings, set served.Set) []Component {
	var out []Component
	for _, known := range ours.Components() {
		c := Component{Name: known.Name, State: On, WaitsFor: known.Missing(set)}
		switch {
		case !settings.Known:
			c.State = Unclear
		case !settings.Config.Enabled(known.Name):
			c.State, c.WaitsFor = Off, nil
		case len(c.WaitsFor) > 0:
			c.State = Waiting
		}
		out = append(out, c)
	}
	return out
}

// runtimeVerdict judges a runtime by the Deployments that it owns: the worst one counts.
func runtimeVerdict(runtime *unstructured.Unstructured, workloads []unstructured.Unstructured) health.Verdict {
	verdict := health.Of(runtime)
	if verdict.State != health.Healthy {
		return verdict
	}
	verdict = health.Verdict{
		State: health.Idle, Reason: "NotDeployed", Paused: verdict.Paused,
		Message: "it has no pods: no namespace that ModelMesh serves uses it, or its events say what is wrong with it",
	}
	seen := false
	for i := range workloads {
		w := &workloads[i]
		if !owned(w, runtime.GetUID()) {
			continue
		}
		if found := health.Of(w); !seen || found.State.Rank() < verdict.State.Rank() {
			found.Paused = verdict.Paused
			verdict, seen = found, true
		}
	}
	return verdict
}

func owned(u *unstructured.Unstructured, by types.UID) bool {
	return slices.ContainsFunc(u.GetOwnerReferences(), func(ref metav1.OwnerReference) bool { return ref.UID == by })
}

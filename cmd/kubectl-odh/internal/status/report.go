package status

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/odh-platform/odh-platform-operator/cmd/internal/kinds"
	"github.com/odh-platform/odh-platform-operator/cmd/kubectl-odh/internal/cli"
	"github.com/odh-platform/odh-platform-operator/cmd/kubectl-odh/internal/fetch"
	"github.com/odh-platform/odh-platform-operator/cmd/kubectl-odh/internal/installed"
	"github.com/odh-platform/odh-platform-operator/cmd/kubectl-odh/internal/render"
	"github.com/odh-platform/odh-platform-operator/pkg/names"
	"github.com/odh-platform/odh-platform-operator/pkg/status/health"
)

// Report is what the command found out.
type Report struct {
	// OK tells that nothing is wrong.
	OK         bool        `json:"ok"`
	Manager    Manager     `json:"manager"`
	Components []Component `json:"components"`
	// Resources are those that need attention first.
	Resources []Resource `json:"resources"`
	// Notes tell what could not be found out.
	Notes []string `json:"notes,omitempty"`
}

// Manager is how the manager is.
type Manager struct {
	// Found tells whether there is a Deployment of it.
	Found bool `json:"found"`
	// Hidden tells that you may not look for it, so that nothing is known of it.
	Hidden    bool   `json:"hidden,omitempty"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name,omitempty"`
	health.Verdict
	Image   string `json:"image,omitempty"`
	Version string `json:"version,omitempty"`
	// Others are namespaces with further Deployments of the same name.
	Others []string         `json:"others,omitempty"`
	Lease  *installed.Lease `json:"lease,omitempty"`
	// Leads tells whether a replica leads.
	Leads bool `json:"leads"`
	// SettingsProblem says why the settings are not known; empty when they are.
	SettingsProblem string `json:"settingsProblem,omitempty"`
}

// Switch is whether a component runs.
type Switch string

// States of a component.
const (
	On      Switch = "on"
	Off     Switch = "off"
	Waiting Switch = "waiting"
	// Unclear means that the settings of the manager could not be read.
	Unclear Switch = "unknown"
)

// Component is how a component is.
type Component struct {
	Name  string `json:"name"`
	State Switch `json:"state"`
	// WaitsFor are the kinds that it requires and the cluster does not serve.
	WaitsFor []string `json:"waitsFor,omitempty"`
	// Resources counts what it looks after, and NotReady those that need attention.
	Resources int `json:"resources"`
	NotReady  int `json:"notReady"`
}

// Resource is how a resource is.
type Resource struct {
	Component  string    `json:"component"`
	APIVersion string    `json:"apiVersion"`
	Kind       string    `json:"kind"`
	Namespace  string    `json:"namespace,omitempty"`
	Name       string    `json:"name"`
	Created    time.Time `json:"created,omitzero"`
	health.Verdict
}

// began is when the present state began, as far as it is known.
func (r Resource) began() time.Time {
	if !r.Since.IsZero() {
		return r.Since
	}
	return r.Created
}

// rank is that of the state, in which resources that are paused come first.
func (r Resource) rank() int {
	if r.Paused {
		return 2 * r.State.Rank()
	}
	return 2*r.State.Rank() + 1
}

func newManager(m installed.Manager, now time.Time) Manager {
	out := Manager{
		Verdict: m.Health, Image: m.Image, Version: m.Version, Others: m.Others, Lease: m.Lease, Leads: m.Lease.Held(now),
		SettingsProblem: m.Settings.Problem,
	}
	if m.Deployment != nil {
		out.Found, out.Namespace, out.Name = true, m.Deployment.Namespace, m.Deployment.Name
		if out.State == health.Idle {
			out.State, out.Message = health.Failed, out.Message+", so nothing is reconciled"
		}
		return out
	}
	out.SettingsProblem = "there is no Deployment of the manager that could be read"
	switch {
	case out.Leads:
		out.Verdict = health.Verdict{State: health.Healthy, Reason: "NoDeployment", Message: "it runs, and no Deployment of it is to be seen"}
	case m.Hidden:
		out.Hidden = true
		out.Verdict = health.Verdict{State: health.Unknown, Reason: "NotAllowed", Message: "you may not look for its Deployment and its Lease; --manager-namespace names its namespace"}
	default:
		out.Verdict = health.Verdict{
			State: health.Failed, Reason: "NotFound", Message: "there is neither a Deployment " + installed.DeploymentName + " nor a replica that leads",
		}
	}
	return out
}

// gatherer reads the cluster.
type gatherer struct {
	fetch.Reader
	// namespace to look at, empty for all.
	namespace string
	// confined to the namespace of the context, since listing all is forbidden.
	confined atomic.Bool

	manager installed.Manager
	// lists are what was read, by component.
	lists map[string][]*list
	// workloads are the Deployments of ModelMesh, which tell how its runtimes are: those have no status.
	workloads []unstructured.Unstructured
}

// list are the resources of a kind.
type list struct {
	kind  kinds.Kind
	found []unstructured.Unstructured
}

// gather finds out everything. An error means that nothing was found out.
func gather(ctx context.Context, o *cli.Options, selector string) (Report, error) {
	_, reader, err := o.Read(ctx)
	if err != nil {
		return Report{}, err
	}
	g := &gatherer{Reader: reader, namespace: o.Namespace(), lists: map[string][]*list{}}
	tasks := []func(){
		func() { g.manager = installed.Find(ctx, reader, o.ManagerNamespace) },
		func() {
			labels := names.ComponentLabel + "=modelmesh," + names.OperatorLabel + "=" + names.OperatorName
			g.workloads = g.read(ctx, "Deployment.apps", labels)
		},
	}
	for _, component := range kinds.Components() {
		for _, kind := range component.Kinds {
			l := &list{kind: kind}
			g.lists[component.Name] = append(g.lists[component.Name], l)
			tasks = append(tasks, func() { l.found = kind.Of(g.read(ctx, kind.GroupKind().String(), selector)) })
		}
	}
	fetch.Each(tasks, func(task func()) { task() })
	if err := g.Unanswered(); err != nil {
		return Report{}, err
	}
	if g.missing(ctx) {
		return Report{}, fmt.Errorf("namespace %q does not exist", g.namespace)
	}
	return g.report(ctx, o.Clock.Now()), nil
}

// report brings what was read into order and sums it up.
func (g *gatherer) report(ctx context.Context, now time.Time) Report {
	r := Report{Manager: newManager(g.manager, now)}
	// As far as that can be seen. Whether a replica leads counts where there is a Lease.
	r.OK = r.Manager.Hidden || r.Manager.State.OK() && (r.Manager.Lease == nil || r.Manager.Leads)
	refusal := render.Refusals(ctx, g.Reader, g.manager)
	for _, component := range kinds.Components() {
		c := newComponent(component, g.manager.Settings, g.Set)
		for _, resource := range g.resources(c.Name, refusal) {
			r.Resources = append(r.Resources, resource)
			c.Resources++
			if !resource.State.OK() {
				c.NotReady++
				r.OK = false
			}
		}
		r.Components = append(r.Components, c)
	}
	slices.SortStableFunc(r.Resources, func(a, b Resource) int {
		return cmp.Or(cmp.Compare(a.rank(), b.rank()), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Namespace, b.Namespace),
			cmp.Compare(a.Name, b.Name))
	})
	r.Notes = g.notes()
	return r
}

// resources are the custom resources of a component.
func (g *gatherer) resources(component string, refusal func(*unstructured.Unstructured) string) []Resource {
	var out []Resource
	for _, l := range g.lists[component] {
		for i := range l.found {
			u := &l.found[i]
			verdict := health.Of(u)
			if kinds.IsRuntime(l.kind.GroupVersionKind) {
				verdict = runtimeVerdict(u, g.workloads, refusal(u))
			}
			out = append(out, Resource{
				Component: component, APIVersion: u.GetAPIVersion(), Kind: u.GetKind(), Namespace: u.GetNamespace(), Name: u.GetName(),
				Created: u.GetCreationTimestamp().Time, Verdict: verdict,
			})
		}
	}
	return out
}

// missing reports whether the namespace to look at does not exist.
func (g *gatherer) missing(ctx context.Context) bool {
	kind := g.Kind("Namespace")
	if !kind.Served() || g.namespace == "" {
		return false
	}
	found, err := g.Noting(nil).Get(ctx, kind, "", g.namespace)
	return found == nil && err == nil
}

// read lists a kind in all namespaces, or at least in the one of the context.
func (g *gatherer) read(ctx context.Context, name, selector string) []unstructured.Unstructured {
	kind, quiet, options := g.Kind(name), g.Noting(nil), metav1.ListOptions{LabelSelector: selector}
	found, err := quiet.List(ctx, kind, g.namespace, options)
	if apierrors.IsForbidden(err) && kind.Namespaced && g.namespace == "" {
		g.confined.Store(true)
		found, err = quiet.List(ctx, kind, g.Own, options)
	}
	g.Note(err)
	return found
}

func (g *gatherer) notes() []string {
	var notes []string
	if g.confined.Load() {
		notes = append(notes, "not allowed to look at all namespaces; what is in namespace "+g.Own+" is shown, -n chooses another")
	}
	notes = append(notes, g.Notes()...)
	if unread := g.manager.Settings.Unreadable(); unread != "" {
		notes = append(notes, unread)
	}
	return notes
}

// newComponent says whether a component runs, from the settings of the manager and from what is served.
func newComponent(component kinds.Component, settings installed.Settings, set fetch.Set) Component {
	c := Component{Name: component.Name, State: On, WaitsFor: component.Missing(set.Has)}
	switch {
	case !settings.Known:
		c.State = Unclear
	case !settings.Config.Enabled(c.Name):
		c.State, c.WaitsFor = Off, nil
	case len(c.WaitsFor) > 0:
		c.State = Waiting
	}
	return c
}

// runtimeVerdict judges a runtime by why the manager refuses it, and by the Deployments that it owns: the worst one counts.
func runtimeVerdict(runtime *unstructured.Unstructured, workloads []unstructured.Unstructured, refusal string) health.Verdict {
	verdict := health.Of(runtime)
	switch {
	case refusal != "" && verdict.Reason != health.InvalidRuntime:
		return health.Verdict{State: health.Failed, Reason: health.InvalidRuntime, Message: health.NoPods + refusal, Paused: verdict.Paused}
	case verdict.State != health.Healthy:
		return verdict
	}
	worst := health.Verdict{
		State: health.Idle, Reason: "NotDeployed",
		Message: "it has no pods: no namespace that ModelMesh serves uses it, or its events say what is wrong with it",
	}
	seen := false
	for i := range workloads {
		owned := slices.ContainsFunc(workloads[i].GetOwnerReferences(), func(ref metav1.OwnerReference) bool {
			return ref.UID == runtime.GetUID()
		})
		if found := health.Of(&workloads[i]); owned && (!seen || found.State.Rank() < worst.State.Rank()) {
			worst, seen = found, true
		}
	}
	worst.Paused = verdict.Paused
	return worst
}

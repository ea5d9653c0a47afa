// Package status is the sub-command that shows the state of the manager, its components and all their resources.
//
// A [Report] contains the verdicts of package health. Text and structured output show the same report.
package status

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"
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

const long = `Show the manager, its components and every resource that they reconcile.

Resources of all namespaces are shown unless -n names one, those that need attention first.
The exit code is 1 if the manager or a resource needs attention or is still starting,
and 3 if nothing needs attention but something could not be read.`

const examples = `  kubectl odh status
  kubectl odh status -n team
  kubectl odh status -o json | jq '.resources[] | select(.state == "Failed")'
  watch kubectl odh status`

// Command returns the command status.
func Command(o *cli.Options) *cobra.Command {
	var selector string
	c := &cobra.Command{
		Use: "status", Short: "Show the manager, its components and their resources", Long: long, Example: examples, Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			r, err := gather(c.Context(), o, selector)
			if err != nil {
				return err
			}
			return o.Show(cli.View{Kind: "Status", Object: r, Text: r.text(o.Clock.Now()), Err: cli.ResultError(!r.OK, len(r.Notes) > 0)})
		},
	}
	c.Flags().StringVarP(&selector, "selector", "l", "", "Show only resources with these labels, as in kubectl.")
	o.AddOutput(c)
	return c
}

// indent is the indentation of continued lines.
const indent = "  "

func (r Report) text(now time.Time) string {
	out := managerText(r.Manager, now) + "\n" + r.components() + "\n" + r.resources(now)
	if len(r.Notes) > 0 {
		out += "\n" + cli.Notes(r.Notes)
	}
	return out
}

func managerText(m installed.Manager, now time.Time) string {
	lines := []string{m.Message, "image " + m.Image}
	if m.Found {
		lines[0] = fmt.Sprintf("%s in %s: %s", m.Name, m.Namespace, m.Message)
	}
	if m.Image == "" {
		lines = lines[:1]
	}
	switch {
	case m.Lease == nil:
	case m.Leads:
		lines = append(lines, fmt.Sprintf("Lease renewed %s ago by %s", cli.Age(m.Lease.Renewed, now), m.Lease.Holder))
	case m.Lease.Holder == "":
		lines = append(lines, "no replica leads: the Lease in "+m.Lease.Namespace+" was released")
	default:
		lines = append(lines, fmt.Sprintf("no replica leads: %s renewed the Lease %s ago", m.Lease.Holder, cli.Age(m.Lease.Renewed, now)))
	}
	if len(m.Others) > 0 {
		lines = append(lines, "another manager runs in "+strings.Join(m.Others, ", ")+", and both write the same objects: remove one of them")
	}
	out := "MANAGER  " + string(m.State) + "\n"
	for _, line := range lines {
		out += cli.Wrap(indent, line)
	}
	return out
}

func (r Report) components() string {
	table := cli.Table{Columns: []string{"Component", "State", "Resources"}}
	for _, c := range r.Components {
		counts := fmt.Sprint(c.Resources)
		if c.NotReady > 0 {
			counts += fmt.Sprintf(", %d not ready", c.NotReady)
		}
		if len(c.WaitsFor) > 0 {
			counts += "; the cluster does not serve " + strings.Join(c.WaitsFor, ", ")
		}
		table.Add("", c.Name, c.State, counts)
	}
	out := table.String()
	if problem := r.Manager.SettingsProblem; problem != "" {
		out += cli.Wrap(indent, "The enabled components are unknown: "+problem+".")
	}
	return out
}

func (r Report) resources(now time.Time) string {
	switch {
	case len(r.Resources) == 0 && len(r.Notes) > 0:
		return "No resources were found; the notes list what could not be read.\n"
	case len(r.Resources) == 0:
		return "There are no resources yet.\n"
	}
	table := cli.Table{Columns: []string{"State", "Namespace", "Resource", "Reason", "Age"}}
	for _, resource := range r.Resources {
		since := resource.Since
		if since.IsZero() {
			since = resource.Created
		}
		table.Add(cli.Below(indent, resource.Verdict), resource.Label(), resource.Namespace, resource.Kind+"/"+resource.Name, resource.Reason, cli.Age(since, now))
	}
	return table.String()
}

// Report is the structured output.
type Report struct {
	// OK means that nothing needs attention.
	OK         bool              `json:"ok"`
	Manager    installed.Manager `json:"manager"`
	Components []Component       `json:"components"`
	// Resources that need attention are first.
	Resources []Resource `json:"resources"`
	// Notes list gaps.
	Notes []string `json:"notes,omitempty"`
}

// Component is the state of a component.
type Component struct {
	Name string `json:"name"`
	// State is on, off, waiting, or unknown if the settings of the manager could not be read.
	State string `json:"state"`
	// WaitsFor are the required kinds that the cluster does not serve.
	WaitsFor []string `json:"waitsFor,omitempty"`
	// Resources is the number of reconciled resources, NotReady the number of those that need attention.
	Resources int `json:"resources"`
	NotReady  int `json:"notReady"`
}

// Resource is the state of a resource.
type Resource struct {
	Component  string    `json:"component"`
	APIVersion string    `json:"apiVersion"`
	Kind       string    `json:"kind"`
	Namespace  string    `json:"namespace,omitempty"`
	Name       string    `json:"name"`
	Created    time.Time `json:"created,omitzero"`
	health.Verdict
}

// gatherer reads the cluster.
type gatherer struct {
	fetch.Reader
	// namespace is the namespace to read; empty means all.
	namespace string
	// restricted is true if only the namespace of the context is read, because the user may not list all namespaces.
	restricted atomic.Bool
}

// gather reads the cluster and returns the report. It fails if nothing can be read or the namespace does not exist.
func gather(ctx context.Context, o *cli.Options, selector string) (Report, error) {
	_, reader, err := o.Read(ctx)
	if err != nil {
		return Report{}, err
	}
	g := &gatherer{Reader: reader, namespace: o.Namespace()}
	if g.namespace != "" {
		if u, err := g.WithGaps(nil).Get(ctx, g.Kind("Namespace"), "", g.namespace); u == nil && err == nil {
			return Report{}, fmt.Errorf("namespace %q does not exist", g.namespace)
		}
	}
	manager := installed.Find(ctx, reader, o.ManagerNamespace, o.Clock.Now())
	// It is no problem if the user may not list the manager, or if there is no Lease that a leader could hold.
	r := Report{Manager: manager, OK: manager.MayExistUnseen && !manager.Found || manager.State.OK() && (manager.Lease == nil || manager.Leads)}
	verdictOf := g.verdictFunc(ctx, manager)
	all := kinds.All()
	lists := fetch.Map(all, func(k kinds.Kind) []unstructured.Unstructured {
		return k.Select(g.list(ctx, k.GroupKind().String(), selector))
	})
	for _, component := range kinds.Components() {
		r.add(newComponent(component, manager, reader.Set), slices.Concat(lists[:len(component.Kinds)]...), verdictOf)
		lists = lists[len(component.Kinds):]
	}
	slices.SortStableFunc(r.Resources, func(a, b Resource) int {
		return cmp.Or(cmp.Compare(a.State.Rank(), b.State.Rank()), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Namespace, b.Namespace),
			cmp.Compare(a.Name, b.Name))
	})
	if g.restricted.Load() {
		r.Notes = append(r.Notes, "not allowed to list all namespaces; only namespace "+g.ContextNamespace+" is shown, choose another with -n")
	}
	r.Notes = append(r.Notes, g.Notes()...)
	if unread := manager.Unreadable(); unread != "" {
		r.Notes = append(r.Notes, unread)
	}
	return r, nil
}

// add adds a component and its objects.
func (r *Report) add(c Component, objects []unstructured.Unstructured, verdictOf func(*unstructured.Unstructured) health.Verdict) {
	for i := range objects {
		u := &objects[i]
		resource := Resource{c.Name, u.GetAPIVersion(), u.GetKind(), u.GetNamespace(), u.GetName(), u.GetCreationTimestamp().Time, verdictOf(u)}
		r.Resources = append(r.Resources, resource)
		c.Resources++
		if !resource.State.OK() {
			c.NotReady, r.OK = c.NotReady+1, false
		}
	}
	r.Components = append(r.Components, c)
}

// list lists a kind in g.namespace. If the user may not list all namespaces, it lists the kind in the namespace of the context.
func (g *gatherer) list(ctx context.Context, name, selector string) []unstructured.Unstructured {
	kind, quiet, options := g.Kind(name), g.WithGaps(nil), metav1.ListOptions{LabelSelector: selector}
	found, err := quiet.List(ctx, kind, g.namespace, options)
	if apierrors.IsForbidden(err) && kind.Namespaced && g.namespace == "" {
		g.restricted.Store(true)
		found, err = quiet.List(ctx, kind, g.ContextNamespace, options)
	}
	g.Note(err)
	return found
}

// newComponent returns the state of a component, from the settings of the manager and the served kinds.
func newComponent(component kinds.Component, manager installed.Manager, set fetch.Set) Component {
	c := Component{Name: component.Name, State: "on", WaitsFor: component.MissingKinds(set.Has)}
	switch {
	case !manager.Known():
		c.State = "unknown"
	case !manager.IsEnabled(c.Name):
		c.State, c.WaitsFor = "off", nil
	case len(c.WaitsFor) > 0:
		c.State = "waiting"
	}
	return c
}

// verdictFunc returns a function that returns the verdict of a resource. A runtime of ModelMesh has no status. Its verdict is the rejection by
// the manager, or else the worst verdict of its Deployments.
func (g *gatherer) verdictFunc(ctx context.Context, manager installed.Manager) func(*unstructured.Unstructured) health.Verdict {
	workloads := g.list(ctx, "Deployment.apps", names.ComponentLabel+"=modelmesh,"+names.OperatorLabel+"="+names.OperatorName)
	runtimeProblem := render.RuntimeProblems(ctx, g.Reader, manager)
	return func(u *unstructured.Unstructured) health.Verdict {
		verdict := health.Of(u)
		if verdict.State != health.Healthy || !kinds.IsRuntime(u.GroupVersionKind()) {
			return verdict
		}
		worst := health.Verdict{
			State: health.Idle, Reason: "NotDeployed",
			Message: "it has no pods: no namespace that ModelMesh serves uses it, or its events report a problem",
		}
		for i := range workloads {
			owned := slices.ContainsFunc(workloads[i].GetOwnerReferences(), func(ref metav1.OwnerReference) bool { return ref.UID == u.GetUID() })
			if found := health.Of(&workloads[i]); owned && (worst.Reason == "NotDeployed" || found.State.Rank() < worst.State.Rank()) {
				worst = found
			}
		}
		if problem := runtimeProblem(u); problem != "" {
			worst = health.Verdict{State: health.Failed, Reason: "InvalidRuntime", Message: problem}
		}
		worst.Paused = verdict.Paused
		return worst
	}
}

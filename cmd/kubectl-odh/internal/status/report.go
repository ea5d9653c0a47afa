package status

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/odh-platform/odh-platform-operator/cmd/kubectl-odh/internal/installed"
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

func newResource(component string, u *unstructured.Unstructured, verdict health.Verdict) Resource {
	return Resource{
		Component: component, APIVersion: u.GetAPIVersion(), Kind: u.GetKind(), Namespace: u.GetNamespace(), Name: u.GetName(),
		Created: u.GetCreationTimestamp().Time, Verdict: verdict,
	}
}

// newReport brings the findings into order and sums them up.
func newReport(f findings, now time.Time) Report {
	r := Report{Manager: newManager(f.manager, now), Resources: f.resources, Notes: f.notes}
	slices.SortStableFunc(r.Resources, func(a, b Resource) int {
		return cmp.Or(cmp.Compare(a.State.Rank(), b.State.Rank()), compareBool(a.Paused, b.Paused), cmp.Compare(a.Kind, b.Kind),
			cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	r.OK = r.Manager.ok()
	for _, c := range f.components {
		for _, resource := range r.Resources {
			if resource.Component != c.Name {
				continue
			}
			c.Resources++
			if !resource.State.OK() {
				c.NotReady++
				r.OK = false
			}
		}
		r.Components = append(r.Components, c)
	}
	return r
}

// compareBool puts true first.
func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
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

// ok tells whether the manager does its work, as far as that can be seen. Whether a replica leads counts where there is a Lease.
func (m Manager) ok() bool {
	return m.Hidden || m.State.OK() && (m.Lease == nil || m.Leads)
}

package raycluster

import (
	"slices"
	"strconv"

	"github.com/odh-platform/odh-platform-operator/pkg/config"
	"github.com/odh-platform/odh-platform-operator/pkg/nested"
	"github.com/odh-platform/odh-platform-operator/pkg/raycluster"
)

// Settings are what the webhooks have to know besides the object.
type Settings struct {
	config.RayCluster
	raycluster.Platform
	// Domain is the one under which the cluster publishes; empty when it is not known.
	Domain string
	// Version is the value of the annotation on new clusters.
	Version string
}

// place leads from the top of an object to a value in it; indexes of lists are written as numbers.
type fieldPath []string

func (p fieldPath) child(names ...string) fieldPath { return slices.Concat(p, names) }

// content is what belongs into one pod template. Zero fields are not injected.
type injection struct {
	sidecar        element
	sidecarVolumes []element
	env            []element
	certificate    element // the init container
	volumes        []element
	mounts         []element
}

// group is one pod template of a cluster.
type group struct {
	path fieldPath // of the group
	head bool
	name string
	// fields are those of the group as it was submitted.
	fields map[string]any
	injection
	// renewed tells that the user changed the template, so that its pods will be replaced anyway.
	templateChanged bool
}

func (g *group) podPath() fieldPath { return g.path.child("template", "spec") }

func (g *group) spec() map[string]any {
	return nested.Map(g.fields, "template", "spec")
}

func (g *group) containers() []any {
	return nested.List(g.spec(), "containers")
}

// plan is what belongs into a cluster.
type plan struct {
	settings Settings
	mode     raycluster.Mode
	// cluster is as it was submitted, old as it is stored; the zero value for a new one.
	cluster, old raycluster.Cluster
	names        raycluster.Names
	groups       []*group
	// remade tells that the pods of the head will be replaced anyway, or would not start: only then certificates come or go, for pods
	// with and without them cannot talk to each other.
	recreated bool
	// autoscaler tells what KubeRay's autoscaler, a container of the head, needs.
	autoscaler autoscaler
	// variables and mounts are those of the certificates, whether they are wanted or not, token is the mount of the account's token.
	variables, mounts []element
	token             element
}

// autoscaler is what belongs into spec.autoscalerOptions.
type autoscaler struct{ env, mounts []element }

// planFor plans for a new cluster, or for the change of an old one. The shape of both is known to be as expected.
func newPlan(s Settings, cluster, old raycluster.Cluster) *plan {
	p := &plan{settings: s, mode: raycluster.Decide(s.RayCluster, s.Platform, cluster, old), cluster: cluster, old: old, names: cluster.Names()}
	if !p.mode.Active() {
		return p
	}
	switch {
	case old.Object() == nil:
	case old.HasHashedNames():
		p.names = cluster.HashedNames()
	default:
		p.names = cluster.LegacyNames()
	}
	p.variables, p.mounts, p.token = elementsOf(raycluster.TLSEnv()), elementsOf(raycluster.TLS{}.Mounts()), elementOf(raycluster.TokenMount())
	before := groupsOf(old)
	p.groups = groupsOf(cluster)
	for _, g := range p.groups {
		was := counterpart(g, before)
		g.templateChanged = was == nil || p.isTemplateChanged(was, g)
	}
	p.recreated = cluster.Suspended() || p.groups[0].templateChanged || p.mode.ByKubeRay
	if !p.recreated {
		p.mode = p.mode.KeepForRunningPods(cluster, old)
	}
	for _, g := range p.groups {
		p.planGroup(g)
		if !g.templateChanged {
			p.keepStored(counterpart(g, before), g)
		}
	}
	p.planAutoscaler()
	return p
}

// groupsOf lists the head and the groups of workers. The head is there even if it has no fields.
func groupsOf(c raycluster.Cluster) []*group {
	head := fieldPath{"spec", "headGroupSpec"}
	groups := []*group{{path: head, head: true, fields: nested.Map(c.Object(), head...)}}
	workers := fieldPath{"spec", "workerGroupSpecs"}
	for i, worker := range nested.List(c.Object(), workers...) {
		groups = append(groups, &group{path: workers.child(strconv.Itoa(i)), name: nested.Text(worker, "groupName"), fields: nested.Map(worker)})
	}
	return groups
}

// counterpart finds a group among those which are stored: workers by their name.
func counterpart(g *group, stored []*group) *group {
	i := slices.IndexFunc(stored, func(s *group) bool { return s.head == g.head && s.name == g.name })
	if i < 0 || len(stored[i].fields) == 0 {
		return nil
	}
	return stored[i]
}

// fill plans a group as for a new cluster. A group without a container for Ray is left as it is; validation refuses it.
func (p *plan) planGroup(g *group) {
	if rayContainerProblem(g) != "" {
		return
	}
	if g.head && p.mode.Auth.Sidecar() {
		sidecar := p.sidecar()
		g.sidecar, g.sidecarVolumes = elementOf(sidecar.Container()), elementsOf(sidecar.Volumes())
	}
	if p.mode.MTLS {
		t := raycluster.TLS{
			Issuer: p.mode.Issuer, Names: p.names, Head: g.head, Image: p.settings.CertGeneratorImage, Resources: p.settings.CertificateResources,
			SignedNames: []string{p.cluster.ClientDNSName(p.settings.Domain), p.cluster.HeadDNSName()}, Pod: g.spec(), OpenShift: p.settings.OpenShift,
		}
		g.env, g.certificate, g.volumes, g.mounts = p.variables, elementOf(t.InitContainer()), elementsOf(t.Volumes()), elementsOf(t.Mounts())
	}
}

func (p *plan) sidecar() raycluster.Sidecar {
	image := p.settings.OAuthProxyImage
	if p.mode.Auth == raycluster.AuthProxy {
		image = p.settings.AuthProxyImage
	}
	return raycluster.Sidecar{
		Auth: p.mode.Auth, Names: p.names, Namespace: p.cluster.Namespace(), DashboardPort: p.cluster.Port(raycluster.PortDashboard), Image: image, Resources: p.settings.SidecarResources,
		TLS: p.settings.TLS, SecretToken: p.mode.KeepsServiceAccount,
	}
}

// forAutoscaler plans for the autoscaler, which talks to Ray and to Kubernetes from the pod of the head. What it has not
// while the template of the head stays, it does not get.
func (p *plan) planAutoscaler() {
	head := p.groups[0]
	if !p.cluster.HasAutoscaler() {
		return
	}
	was := nested.List(p.old.Object(), autoscalerOptions.child("volumeMounts")...)
	if p.recreated || nested.Named(was, raycluster.VolumeServer) != nil {
		p.autoscaler.env, p.autoscaler.mounts = head.env, slices.Clone(head.mounts)
	}
	if slices.Contains(namesOf(head.sidecarVolumes), raycluster.VolumeToken) && !p.mode.KeepsServiceAccount {
		p.autoscaler.mounts = append(p.autoscaler.mounts, p.token)
	}
}

var autoscalerOptions = fieldPath{"spec", "autoscalerOptions"}

// account is under which account the head runs: that of the dashboard, or that of the user; empty for that of the namespace.
func (p *plan) serviceAccount() string {
	if p.groups[0].sidecar != nil && !p.mode.KeepsServiceAccount {
		return p.names.ServiceAccount
	}
	return p.cluster.UserServiceAccount()
}

// version is the value of the annotation that selects hashed names, and whether it belongs there. A legacy cluster keeps its
// names (R8), and the value follows the program only when pods are replaced anyway (R34).
func (p *plan) version(current string) (string, bool) {
	if p.old.Object() == nil {
		return current, true
	}
	stored, hashed := p.old.Annotation(raycluster.AnnotationVersion)
	if hashed && slices.ContainsFunc(p.groups, func(g *group) bool { return g.templateChanged }) {
		return current, true
	}
	return stored, hashed
}

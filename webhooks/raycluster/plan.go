package raycluster

import (
	"slices"
	"strconv"

	"github.com/odh-platform/odh-platform-operator/pkg/config"
	"github.com/odh-platform/odh-platform-operator/pkg/nested"
	"github.com/odh-platform/odh-platform-operator/pkg/raycluster"
)

// Settings are the inputs of the webhooks in addition to the object.
type Settings struct {
	config.RayCluster
	raycluster.Platform
	// Domain is the ingress domain; "" if unknown.
	Domain string
	// Version is the value of the version annotation of new clusters.
	Version string
}

// fieldPath is the path to a value in an object; indexes of lists are written as numbers.
type fieldPath []string

func (p fieldPath) child(names ...string) fieldPath { return slices.Concat(p, names) }

// injection holds the injected elements of one pod template. A zero field injects nothing.
type injection struct {
	sidecar        element
	sidecarVolumes []element
	env            []element
	initContainer  element
	volumes        []element
	mounts         []element
}

// group is the head group or a worker group of a cluster.
type group struct {
	path   fieldPath
	isHead bool
	name   string
	// fields are the fields of the group in the submitted or stored object.
	fields map[string]any
	injection
	// templateChanged reports whether the group is new or the user changed its pods, which recreates them.
	templateChanged bool
}

func (g *group) podPath() fieldPath { return g.path.child("template", "spec") }

func (g *group) spec() map[string]any {
	return nested.Map(g.fields, "template", "spec")
}

func (g *group) containers() []any {
	return nested.List(g.spec(), "containers")
}

// plan holds the injections of a cluster.
type plan struct {
	settings Settings
	mode     raycluster.Mode
	// cluster is the submitted object, old the stored one, which is empty on creation.
	cluster, old raycluster.Cluster
	names        raycluster.Names
	groups       []*group
	// recreated reports whether the head pod is created after the update, or would never become ready. Only then are certificates added or
	// removed, because pods with and without certificates cannot communicate.
	recreated  bool
	autoscaler autoscaler
	// variables and mounts are those of the certificates, even if they are not desired; token is the mount of the ServiceAccount's token.
	variables, mounts []element
	token             element
}

// autoscaler holds the injections of spec.autoscalerOptions, for KubeRay's autoscaler container in the head.
type autoscaler struct{ env, mounts []element }

// newPlan returns the plan of a new cluster, or of an update of old. Both objects must have no shapeErrors.
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
	stored := groupsOf(old)
	p.groups = groupsOf(cluster)
	for _, g := range p.groups {
		previous := counterpart(g, stored)
		g.templateChanged = previous == nil || p.isTemplateChanged(previous, g)
	}
	p.recreated = cluster.Suspended() || p.groups[0].templateChanged || p.mode.ByKubeRay
	if !p.recreated {
		p.mode = p.mode.KeepForRunningPods(cluster, old)
	}
	for _, g := range p.groups {
		p.planGroup(g)
		if !g.templateChanged {
			p.keepStored(counterpart(g, stored), g)
		}
	}
	p.planAutoscaler()
	return p
}

// groupsOf returns the head group, even if it is not set, and the worker groups.
func groupsOf(c raycluster.Cluster) []*group {
	head := fieldPath{"spec", "headGroupSpec"}
	groups := []*group{{path: head, isHead: true, fields: nested.Map(c.Object(), head...)}}
	workers := fieldPath{"spec", "workerGroupSpecs"}
	for i, worker := range nested.List(c.Object(), workers...) {
		groups = append(groups, &group{path: workers.child(strconv.Itoa(i)), name: nested.String(worker, "groupName"), fields: nested.Map(worker)})
	}
	return groups
}

// counterpart returns the stored group for g, or nil: the head group, or the worker group of the same name.
func counterpart(g *group, stored []*group) *group {
	i := slices.IndexFunc(stored, func(s *group) bool { return s.isHead == g.isHead && s.name == g.name })
	if i < 0 || len(stored[i].fields) == 0 {
		return nil
	}
	return stored[i]
}

// planGroup plans a group as for a new cluster. It skips a group without a container for Ray.
func (p *plan) planGroup(g *group) {
	if rayContainerProblem(g) != "" {
		return
	}
	if g.isHead && p.mode.Auth.UsesSidecar() {
		sidecar := p.sidecar()
		g.sidecar, g.sidecarVolumes = elementOf(sidecar.Container()), elementsOf(sidecar.Volumes())
	}
	if p.mode.MTLS {
		t := raycluster.TLS{
			Issuer: p.mode.Issuer, Names: p.names, Head: g.isHead, Image: p.settings.CertGeneratorImage, Resources: p.settings.CertificateResources,
			SignedNames: []string{p.cluster.ClientDNSName(p.settings.Domain), p.cluster.HeadDNSName()}, Pod: g.spec(), OpenShift: p.settings.OpenShift,
		}
		g.env, g.initContainer, g.volumes, g.mounts = p.variables, elementOf(t.InitContainer()), elementsOf(t.Volumes()), elementsOf(t.Mounts())
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

// planAutoscaler plans the autoscaler, which connects to Ray and to Kubernetes from the head pod. It adds certificates only if the head
// pod is recreated.
func (p *plan) planAutoscaler() {
	head := p.groups[0]
	if !p.cluster.HasAutoscaler() {
		return
	}
	storedMounts := nested.List(p.old.Object(), autoscalerOptions.child("volumeMounts")...)
	if p.recreated || nested.ByName(storedMounts, raycluster.VolumeServer) != nil {
		p.autoscaler.env, p.autoscaler.mounts = head.env, slices.Clone(head.mounts)
	}
	if slices.Contains(namesOf(head.sidecarVolumes), raycluster.VolumeToken) && !p.mode.KeepsServiceAccount {
		p.autoscaler.mounts = append(p.autoscaler.mounts, p.token)
	}
}

var autoscalerOptions = fieldPath{"spec", "autoscalerOptions"}

// serviceAccount returns the ServiceAccount of the head: that of the sidecar or that of the user; "" for the default one.
func (p *plan) serviceAccount() string {
	if p.groups[0].sidecar != nil && !p.mode.KeepsServiceAccount {
		return p.names.ServiceAccount
	}
	return p.cluster.UserServiceAccount()
}

// version returns the value of the version annotation, and whether it is desired. A legacy cluster keeps its names [R8], and the value is
// updated only when another change recreates the pods [R34].
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

package raycluster

import (
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/odh-platform/odh-platform-operator/pkg/nested"
	"github.com/odh-platform/odh-platform-operator/pkg/raycluster"
)

// Names of injected elements, which are ignored when templates are compared.
var (
	injectedContainers     = []string{raycluster.ContainerOAuth, raycluster.ContainerProxy}
	injectedVolumes        = raycluster.ReadVolumes
	injectedEnv            = []string{"MY_POD_IP", "RAY_USE_TLS", "RAY_TLS_SERVER_CERT", "RAY_TLS_SERVER_KEY", "RAY_TLS_CA_CERT"}
	injectedInitContainers = []string{raycluster.InitCertificate}
)

// isTemplateChanged reports whether userSpec of a group has changed, or other fields that determine the head pod.
func (p *plan) isTemplateChanged(stored, submitted *group) bool {
	headFields := func(c raycluster.Cluster) []any {
		return []any{c.UserServiceAccount(), c.HasAutoscaler(), c.UserSecurity(), withoutInjected(nested.At(c.Object(), autoscalerOptions...))}
	}
	return !reflect.DeepEqual(userSpec(stored), userSpec(submitted)) || submitted.isHead && !reflect.DeepEqual(headFields(p.old), headFields(p.cluster))
}

// schedulingFields are the fields of a pod spec that Kueue sets when it admits a workload. They do not change containers. Kueue
// compares the other fields with those of the admitted workload.
var schedulingFields = []string{"nodeSelector", "tolerations", "schedulingGates"}

// userSpec returns the pod spec of a group without injected elements (by name), schedulingFields and the ServiceAccount of the head.
func userSpec(g *group) any {
	if g.spec() == nil {
		return nil
	}
	spec := runtime.DeepCopyJSON(g.spec())
	for _, field := range schedulingFields {
		delete(spec, field)
	}
	dropNamed(spec, "containers", injectedContainers)
	dropNamed(spec, "initContainers", injectedInitContainers)
	dropNamed(spec, "volumes", injectedVolumes)
	if g.isHead {
		delete(spec, "serviceAccountName")
	}
	if containers := nested.List(spec, "containers"); len(containers) > 0 {
		containers[0] = withoutInjected(containers[0])
	}
	return normalize(spec)
}

// withoutInjected returns a container or the autoscaler options without injected variables and mounts (by name).
func withoutInjected(container any) any {
	fields := maps.Clone(nested.Map(container))
	dropNamed(fields, "env", injectedEnv)
	dropNamed(fields, "volumeMounts", injectedVolumes)
	return normalize(fields)
}

// dropNamed deletes the elements with these names from a list. It deletes the list if no element remains.
func dropNamed(fields map[string]any, list string, names []string) {
	dropElements(fields, list, func(e element) bool { return slices.Contains(names, nested.String(e, "name")) })
}

// keepStored keeps stored injected containers in a group with an unchanged template: another image or a change by a newer version would
// recreate the pods [R34]. The containers must have been written by this operator or the CodeFlare operator.
func (p *plan) keepStored(storedGroup, g *group) {
	spec := storedGroup.spec()
	if g.sidecar != nil {
		stored := nested.ByName(nested.List(spec, "containers"), g.sidecar["name"])
		switch {
		case stored == nil:
		case p.isManagedSidecar(stored):
			g.sidecar = stored
		case p.isLegacySidecar(stored):
			g.sidecar = stored
			g.sidecarVolumes = slices.DeleteFunc(g.sidecarVolumes, func(v element) bool { return v["name"] == raycluster.VolumeToken })
		}
	}
	if stored := nested.ByName(nested.List(spec, "initContainers"), raycluster.InitCertificate); stored != nil && g.initContainer != nil && p.isKnownInitContainer(stored, g) {
		g.initContainer = stored
	}
}

// isManagedSidecar reports whether a sidecar is that of this release, or of an earlier release that ignored the port of the dashboard or
// passed the cookie secret in the command line.
func (p *plan) isManagedSidecar(stored element) bool {
	sidecar := p.sidecar()
	for _, port := range []int32{sidecar.DashboardPort, 0} {
		for _, cookieInArgs := range []bool{false, true} {
			sidecar.DashboardPort, sidecar.CookieInArgs = port, cookieInArgs
			if equalContainers(stored, elementOf(sidecar.Container()), "image") {
				return true
			}
		}
	}
	return false
}

// isLegacySidecar reports whether a sidecar is that of the CodeFlare operator.
func (p *plan) isLegacySidecar(stored element) bool {
	if p.mode.Auth != raycluster.AuthOAuth || p.mode.KeepsServiceAccount {
		return false
	}
	sidecar := p.sidecar()
	sidecar.CookieInArgs, sidecar.DashboardPort = true, 0
	legacy := elementOf(sidecar.Container())
	legacy["args"] = toAnySlice(sidecar.LegacyArgs())
	dropNamed(legacy, "volumeMounts", []string{raycluster.VolumeToken})
	delete(legacy, "securityContext")
	return equalContainers(stored, legacy, "image")
}

// signedNames matches the additional names that a head signs for itself. Early releases of the CodeFlare operator had only one of the two.
var signedNames = regexp.MustCompile(`\\nDNS\.[56] = ([-a-z0-9.]*)`)

// isKnownInitContainer reports whether this operator, or the CodeFlare operator, which set no security context, injected an init container
// into the group, possibly with another image or domain.
func (p *plan) isKnownInitContainer(stored element, g *group) bool {
	security, issuedByPod := stored["securityContext"], p.mode.Issuer == raycluster.IssuerPod
	switch {
	case !equalContainers(stored, g.initContainer, "image", "command", "securityContext"):
		return false
	case isEmpty(security) && !issuedByPod, !isEmpty(security) && !equalElements(security, g.initContainer["securityContext"]):
		return false
	case !issuedByPod:
		return equalElements(stored["command"], g.initContainer["command"])
	}
	var names []string
	for _, found := range signedNames.FindAllStringSubmatch(nested.String(stored, "command", "2"), -1) {
		names = append(names, found[1])
	}
	if g.isHead != (len(names) > 0) || slices.ContainsFunc(names, p.isForeignName) {
		return false
	}
	command := raycluster.SignCommand(names...)
	earlier := []any{command[0], command[1], strings.Replace(command[2], `">./`, `" >./`, 1)} // version 0.1 had a space
	return equalElements(stored["command"], toAnySlice(command)) || equalElements(stored["command"], earlier)
}

// isForeignName reports whether the head has no such name in any domain.
func (p *plan) isForeignName(name string) bool {
	defaultName := p.cluster.Name() + "-head-svc." + p.cluster.Namespace() + ".svc"
	return name != defaultName && name != p.cluster.HeadDNSName() &&
		!strings.HasPrefix(name, p.names.Client+"-"+p.cluster.Namespace()+".") && !strings.HasPrefix(name, p.cluster.ClientHostLabel()+".")
}

func toAnySlice(texts []string) []any {
	list := make([]any, len(texts))
	for i := range texts {
		list[i] = texts[i]
	}
	return list
}

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

// Names of elements that are set aside when templates are compared.
var (
	ourContainers = []string{raycluster.ContainerOAuth, raycluster.ContainerProxy}
	ourVolumes    = raycluster.Volumes
	ourEnv        = []string{"MY_POD_IP", "RAY_USE_TLS", "RAY_TLS_SERVER_CERT", "RAY_TLS_SERVER_KEY", "RAY_TLS_CA_CERT"}
	ourInits      = []string{raycluster.InitCertificate}
)

// changed tells whether the user changed the template of a group: what is ours does not count.
func (p *plan) changed(was, is *group) bool {
	ofHead := func(c raycluster.Cluster) []any {
		return []any{c.UserAccount(), c.Autoscaled(), c.OwnSecurity(), withoutOurs(nested.At(c.Object(), autoscalerOptions...))}
	}
	return !reflect.DeepEqual(ofUser(was), ofUser(is)) || is.head && !reflect.DeepEqual(ofHead(p.old), ofHead(p.cluster))
}

// placement are the fields of a pod spec that Kueue writes when it admits a workload. Metadata is another: they choose where
// pods run and not what runs in them, and Kueue compares the rest with what it admitted.
var placement = []string{"nodeSelector", "tolerations", "schedulingGates"}

// ofUser is the pod spec of a group without what is ours by its name, and without what says where pods run.
func ofUser(g *group) any {
	if g.spec() == nil {
		return nil
	}
	spec := runtime.DeepCopyJSON(g.spec())
	for _, field := range placement {
		delete(spec, field)
	}
	without(spec, "containers", ourContainers)
	without(spec, "initContainers", ourInits)
	without(spec, "volumes", ourVolumes)
	if g.head {
		delete(spec, "serviceAccountName")
	}
	if containers := nested.List(spec, "containers"); len(containers) > 0 {
		containers[0] = withoutOurs(containers[0])
	}
	return normal(spec)
}

// withoutOurs is a container, or something like it, without the variables and mounts that are ours by their name.
func withoutOurs(container any) any {
	fields := maps.Clone(nested.Map(container))
	without(fields, "env", ourEnv)
	without(fields, "volumeMounts", ourVolumes)
	return normal(fields)
}

// without drops the elements with these names from a list, and a list with its last element.
func without(fields map[string]any, list string, names []string) {
	drop(fields, list, func(e element) bool { return slices.Contains(names, nested.String(e, "name")) })
}

// pin keeps what is stored of ours in a group whose template stays as it is: another image, or whatever else a newer program
// would write, were a change of the pods (R34). It has to be something that this program, or the one before it, has written.
func (p *plan) pin(was, is *group) {
	spec := was.spec()
	if is.sidecar != nil {
		stored := nested.ByName(nested.List(spec, "containers"), is.sidecar["name"])
		switch {
		case stored == nil:
		case sameContainer(stored, is.sidecar, "image"), sameContainer(stored, p.sidecarOfDefaultPort(), "image"):
			is.sidecar = stored
		case p.original(stored, is.sidecar):
			is.sidecar = stored
			is.sidecarVolumes = slices.DeleteFunc(is.sidecarVolumes, func(v element) bool { return v["name"] == raycluster.VolumeToken })
		}
	}
	if stored := nested.ByName(nested.List(spec, "initContainers"), raycluster.InitCertificate); stored != nil && is.certificate != nil && p.knownCertificate(stored, is) {
		is.certificate = stored
	}
}

// sidecarOfDefaultPort is what releases wrote that did not read the port of the dashboard.
func (p *plan) sidecarOfDefaultPort() element {
	sidecar := p.sidecar()
	sidecar.Dashboard = 0
	return elementOf(sidecar.Container())
}

// original tells whether a sidecar is the one of the operator that is replaced.
func (p *plan) original(stored, fresh element) bool {
	if p.mode.Auth != raycluster.AuthOAuth || p.mode.KeepsAccount {
		return false
	}
	was := maps.Clone(fresh)
	was["args"] = asAny(raycluster.Sidecar{Names: p.names, Namespace: p.cluster.Namespace()}.OriginalArgs())
	without(was, "volumeMounts", []string{raycluster.VolumeToken})
	delete(was, "securityContext")
	return sameContainer(stored, was, "image")
}

// signedNames finds the further names that a head signs for itself. Older releases of the CodeFlare operator had one of the two.
var signedNames = regexp.MustCompile(`\\nDNS\.[56] = ([-a-z0-9.]*)`)

// knownCertificate tells whether an init container is one that was written for the group, be it under another domain or by
// the operator that is replaced, which knew no security context.
func (p *plan) knownCertificate(stored element, is *group) bool {
	security, byPod := stored["securityContext"], p.mode.Issuer == raycluster.IssuerPod
	switch {
	case !sameContainer(stored, is.certificate, "image", "command", "securityContext"):
		return false
	case empty(security) && !byPod, !empty(security) && !same(security, is.certificate["securityContext"]):
		return false
	case !byPod:
		return same(stored["command"], is.certificate["command"])
	}
	var names []string
	for _, found := range signedNames.FindAllStringSubmatch(nested.String(stored, "command", "2"), -1) {
		names = append(names, found[1])
	}
	if is.head != (len(names) > 0) || slices.ContainsFunc(names, p.foreignName) {
		return false
	}
	command := raycluster.SignCommand(names...)
	spaced := []any{command[0], command[1], strings.Replace(command[2], `">./`, `" >./`, 1)} // as version 0.1 wrote it
	return same(stored["command"], asAny(command)) || same(stored["command"], spaced)
}

// foreignName tells whether a name is not one of the head, under any domain.
func (p *plan) foreignName(name string) bool {
	plain := p.cluster.Name() + "-head-svc." + p.cluster.Namespace() + ".svc"
	return name != plain && name != p.cluster.HeadDNSName() &&
		!strings.HasPrefix(name, p.names.Client+"-"+p.cluster.Namespace()+".") && !strings.HasPrefix(name, p.cluster.ClientHost()+".")
}

func asAny(texts []string) []any {
	list := make([]any, len(texts))
	for i := range texts {
		list[i] = texts[i]
	}
	return list
}

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
	injectedContainers     = []string{raycluster.ContainerOAuth, raycluster.ContainerProxy}
	injectedVolumes        = raycluster.Volumes
	injectedEnv            = []string{"MY_POD_IP", "RAY_USE_TLS", "RAY_TLS_SERVER_CERT", "RAY_TLS_SERVER_KEY", "RAY_TLS_CA_CERT"}
	injectedInitContainers = []string{raycluster.InitCertificate}
)

// changed tells whether the user changed the template of a group: what is ours does not count.
func (p *plan) isTemplateChanged(was, is *group) bool {
	ofHead := func(c raycluster.Cluster) []any {
		return []any{c.UserServiceAccount(), c.HasAutoscaler(), c.UserSecurity(), withoutInjected(nested.At(c.Object(), autoscalerOptions...))}
	}
	return !reflect.DeepEqual(userSpec(was), userSpec(is)) || is.head && !reflect.DeepEqual(ofHead(p.old), ofHead(p.cluster))
}

// placement are the fields of a pod spec that Kueue writes when it admits a workload. Metadata is another: they choose where
// pods run and not what runs in them, and Kueue compares the rest with what it admitted.
var schedulingFields = []string{"nodeSelector", "tolerations", "schedulingGates"}

// ofUser is the pod spec of a group without what is ours by its name, and without what says where pods run.
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
	if g.head {
		delete(spec, "serviceAccountName")
	}
	if containers := nested.List(spec, "containers"); len(containers) > 0 {
		containers[0] = withoutInjected(containers[0])
	}
	return normalize(spec)
}

// withoutOurs is a container, or something like it, without the variables and mounts that are ours by their name.
func withoutInjected(container any) any {
	fields := maps.Clone(nested.Map(container))
	dropNamed(fields, "env", injectedEnv)
	dropNamed(fields, "volumeMounts", injectedVolumes)
	return normalize(fields)
}

// without drops the elements with these names from a list, and a list with its last element.
func dropNamed(fields map[string]any, list string, names []string) {
	dropElements(fields, list, func(e element) bool { return slices.Contains(names, nested.Text(e, "name")) })
}

// pin keeps what is stored of ours in a group whose template stays as it is: another image, or whatever else a newer program
// would write, were a change of the pods (R34). It has to be something that this program, or the one before it, has written.
func (p *plan) keepStored(was, is *group) {
	spec := was.spec()
	if is.sidecar != nil {
		stored := nested.Named(nested.List(spec, "containers"), is.sidecar["name"])
		switch {
		case stored == nil:
		case equalContainers(stored, is.sidecar, "image"), equalContainers(stored, p.defaultPortSidecar(), "image"):
			is.sidecar = stored
		case p.isLegacySidecar(stored, is.sidecar):
			is.sidecar = stored
			is.sidecarVolumes = slices.DeleteFunc(is.sidecarVolumes, func(v element) bool { return v["name"] == raycluster.VolumeToken })
		}
	}
	if stored := nested.Named(nested.List(spec, "initContainers"), raycluster.InitCertificate); stored != nil && is.certificate != nil && p.isKnownInitContainer(stored, is) {
		is.certificate = stored
	}
}

// sidecarOfDefaultPort is what releases wrote that did not read the port of the dashboard.
func (p *plan) defaultPortSidecar() element {
	sidecar := p.sidecar()
	sidecar.DashboardPort = 0
	return elementOf(sidecar.Container())
}

// original tells whether a sidecar is the one of the operator that is replaced.
func (p *plan) isLegacySidecar(stored, fresh element) bool {
	if p.mode.Auth != raycluster.AuthOAuth || p.mode.KeepsServiceAccount {
		return false
	}
	was := maps.Clone(fresh)
	was["args"] = asAny(raycluster.Sidecar{Names: p.names, Namespace: p.cluster.Namespace()}.LegacyArgs())
	dropNamed(was, "volumeMounts", []string{raycluster.VolumeToken})
	delete(was, "securityContext")
	return equalContainers(stored, was, "image")
}

// signedNames finds the further names that a head signs for itself. Older releases of the CodeFlare operator had one of the two.
var signedNames = regexp.MustCompile(`\\nDNS\.[56] = ([-a-z0-9.]*)`)

// knownCertificate tells whether an init container is one that was written for the group, be it under another domain or by
// the operator that is replaced, which knew no security context.
func (p *plan) isKnownInitContainer(stored element, is *group) bool {
	security, byPod := stored["securityContext"], p.mode.Issuer == raycluster.IssuerPod
	switch {
	case !equalContainers(stored, is.certificate, "image", "command", "securityContext"):
		return false
	case empty(security) && !byPod, !empty(security) && !equalElements(security, is.certificate["securityContext"]):
		return false
	case !byPod:
		return equalElements(stored["command"], is.certificate["command"])
	}
	var names []string
	for _, found := range signedNames.FindAllStringSubmatch(nested.Text(stored, "command", "2"), -1) {
		names = append(names, found[1])
	}
	if is.head != (len(names) > 0) || slices.ContainsFunc(names, p.isForeignName) {
		return false
	}
	command := raycluster.SignCommand(names...)
	spaced := []any{command[0], command[1], strings.Replace(command[2], `">./`, `" >./`, 1)} // as version 0.1 wrote it
	return equalElements(stored["command"], asAny(command)) || equalElements(stored["command"], spaced)
}

// foreignName tells whether a name is not one of the head, under any domain.
func (p *plan) isForeignName(name string) bool {
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

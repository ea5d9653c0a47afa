package raycluster

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/odh-platform/odh-platform-operator/pkg/config"
	"github.com/odh-platform/odh-platform-operator/pkg/nested"
	"github.com/odh-platform/odh-platform-operator/pkg/raycluster"
)

// Messages that clients know.
const (
	noIngress = "RayCluster with enableIngress set to true is not allowed: KubeRay would publish the dashboard without a guard; " +
		"leave it out, and the operator publishes the guarded dashboard"
	sidecarImmutable    = "OAuth Proxy container is immutable"
	sidecarVolumes      = "OAuth Proxy TLS Secret volume is immutable"
	accountImmutable    = "RayCluster head group service account is immutable"
	initImmutable       = "create-cert Init Container is immutable"
	variablesImmutable  = "RAY_TLS related environment variables are immutable"
	volumesImmutable    = "ca-vol and server-cert Secret volumes are immutable"
	mountsImmutable     = "ca-vol and server-cert volume mounts are immutable"
	autoscalerImmutable = "what the autoscaler needs to reach Ray and Kubernetes is immutable"
	versionImmutable    = "selects the names of objects that exist already, so it cannot be set or removed: recreate the RayCluster"
)

// Messages of ours.
const (
	noContainer   = "needs the container in which Ray runs as its first entry: add it"
	sidecarFirst  = "the first container is the one in which Ray runs: put it before "
	kubeRayDenied = "the setting raycluster.kubeRaySecurity of the operator denies it: leave it out, and the operator secures the cluster"
	unknownIssuer = `must be "operator", "cert-manager" or "pod", or absent for the setting of the operator`
)

// violations compares a new cluster with its plan, or an update with its.
func (p *plan) violations() field.ErrorList {
	if !p.mode.Active() || p.mode.ByKubeRay {
		return nil
	}
	r := &specValidator{plan: p}
	update := p.old.Object() != nil
	r.ingress()
	r.issuer()
	r.kubeRay()
	if !update {
		r.errs = append(r.errs, nameErrors(p.cluster.Name())...)
	} else if p.old.HasHashedNames() != p.cluster.HasHashedNames() {
		value, _ := p.cluster.Annotation(raycluster.AnnotationVersion)
		r.add(field.Invalid(field.NewPath("metadata", "annotations").Key(raycluster.AnnotationVersion), value, versionImmutable))
	}
	for _, g := range p.groups {
		r.containers(g)
		if g.sidecar != nil {
			r.sidecar(g)
		}
		if update && g.certificate != nil {
			r.certificates(g)
		}
	}
	if update {
		r.autoscaler()
	}
	return r.errs
}

// review collects what is wrong.
type specValidator struct {
	*plan
	errs field.ErrorList
}

func (r *specValidator) add(err *field.Error) { r.errs = append(r.errs, err) }

// path writes indexes as elements of their own, as clients know it.
func toFieldPath(p fieldPath) *field.Path { return field.NewPath(p[0], p[1:]...) }

// ingress refuses KubeRay's own Ingress, unless it is stored: finalizers of such a cluster must come and go.
func (r *specValidator) ingress() {
	at := []string{"spec", "headGroupSpec", "enableIngress"}
	if nested.At(r.cluster.Object(), at...) == true && nested.At(r.old.Object(), at...) != true {
		r.add(field.Invalid(toFieldPath(at), true, noIngress))
	}
}

// kubeRay refuses what lets KubeRay secure the cluster, where an administrator wants that and it is new.
func (r *specValidator) kubeRay() {
	if r.settings.KubeRaySecurity != config.KubeRaySecurityDeny {
		return
	}
	before := securityFields(r.old.UserSecurity())
	for name := range securityFields(r.cluster.UserSecurity()) {
		if _, stored := before[name]; !stored {
			r.add(field.Forbidden(field.NewPath("spec", name), kubeRayDenied))
		}
	}
}

// issuer refuses an annotation that selects no issuer, when it is new.
func (r *specValidator) issuer() {
	value, there := r.cluster.Annotation(raycluster.AnnotationCertificates)
	before, _ := r.old.Annotation(raycluster.AnnotationCertificates)
	if there && value != before && !raycluster.Issuer(value).Valid() {
		r.add(field.Invalid(field.NewPath("metadata", "annotations").Key(raycluster.AnnotationCertificates), value, unknownIssuer))
	}
}

// containers refuses groups without a container for Ray (R5), unless they are stored like that.
func (r *specValidator) containers(g *group) {
	at := g.podPath().child("containers")
	was := counterpart(g, groupsOf(r.old))
	if was != nil && rayContainerProblem(was) == rayContainerProblem(g) {
		return
	}
	switch name := rayContainerProblem(g); name {
	case "":
	case "nothing":
		r.add(field.Required(toFieldPath(at), noContainer))
	default:
		r.add(field.Invalid(toFieldPath(at.child("0", "name")), name, sidecarFirst+name))
	}
}

// rayContainer is empty for a group whose first container can be that of Ray, and otherwise says what stands there.
func rayContainerProblem(g *group) string {
	if len(g.containers()) == 0 || nested.Map(g.containers()[0]) == nil {
		return "nothing"
	}
	name := nested.Text(g.containers()[0], "name")
	if slices.Contains(injectedContainers, name) {
		return name
	}
	return ""
}

func (r *specValidator) sidecar(g *group) {
	r.element(g.podPath().child("containers"), g.sidecar, true, sidecarImmutable)
	r.elements(g.podPath().child("volumes"), g.sidecarVolumes, sidecarVolumes)
	if account := r.cluster.HeadServiceAccount(); account != r.serviceAccount() {
		r.add(field.Invalid(toFieldPath(g.podPath().child("serviceAccountName")), account, accountImmutable))
	}
}

func (r *specValidator) certificates(g *group) {
	pod := g.podPath()
	r.element(pod.child("initContainers"), g.certificate, true, initImmutable)
	container := pod.child("containers", "0")
	r.elements(container.child("env"), g.env, variablesImmutable)
	r.elements(pod.child("volumes"), g.volumes, volumesImmutable)
	r.elements(container.child("volumeMounts"), g.mounts, mountsImmutable)
}

func (r *specValidator) autoscaler() {
	r.elements(autoscalerOptions.child("env"), r.plan.autoscaler.env, autoscalerImmutable)
	r.elements(autoscalerOptions.child("volumeMounts"), r.plan.autoscaler.mounts, autoscalerImmutable)
}

// elements reports the first of the elements that is not there as it should be.
func (r *specValidator) elements(list fieldPath, wanted []element, message string) {
	for _, w := range wanted {
		if !r.element(list, w, false, message) {
			return
		}
	}
}

// element tells whether a list has exactly one element of the name, and it is the wanted one; otherwise it is reported. In a container
// users may set some fields.
func (r *specValidator) element(list fieldPath, wanted element, container bool, message string) bool {
	entries := nested.List(r.cluster.Object(), list...)
	found := nested.Indexes(entries, wanted["name"])
	switch {
	case len(found) == 0:
		r.add(field.Required(toFieldPath(list), message))
		return false
	case len(found) > 1:
		r.add(field.Invalid(toFieldPath(list), strconv.Itoa(len(found))+" times "+wanted["name"].(string), message))
		return false
	}
	present := entries[found[0]].(map[string]any)
	if container && !equalContainers(present, wanted) || !container && !equalElements(present, wanted) {
		r.add(field.Invalid(toFieldPath(list), wanted["name"], message))
		return false
	}
	return true
}

// warnings tell a user of what happens otherwise than they may expect, when it is new.
func (p *plan) warnings() []string {
	if !p.mode.Active() || p.mode.ByKubeRay {
		return nil
	}
	var out []string
	if p.old.Object() == nil {
		out = append(out, hostWarnings(p.cluster)...)
	}
	if user := p.cluster.UserServiceAccount(); user != "" && p.serviceAccount() != user && p.old.UserServiceAccount() != user {
		out = append(out, fmt.Sprintf("spec.headGroupSpec.template.spec.serviceAccountName: the head runs under %s, the account of its dashboard, "+
			"and not under %s: annotation %s: \"true\" keeps the latter", p.serviceAccount(), user, raycluster.AnnotationKeepServiceAccount))
	}
	before, now := securityFields(p.old.UserSecurity()), securityFields(p.cluster.UserSecurity())
	for _, name := range slices.Sorted(maps.Keys(now)) {
		if _, stored := before[name]; !stored && p.settings.KubeRaySecurity != config.KubeRaySecurityTrust {
			out = append(out, "spec."+name+": "+now[name])
		}
	}
	return out
}

// replaced warns about containers, volumes and variables of a new cluster that have the names of those of the operator.
func (p *plan) replacementWarnings() []string {
	if p.old.Object() != nil {
		return nil
	}
	var out []string
	warn := func(list fieldPath, ours ...element) {
		for _, o := range ours {
			if o == nil {
				continue
			}
			if theirs := nested.Named(nested.List(p.cluster.Object(), list...), o["name"]); theirs != nil && !equalContainers(theirs, o) {
				out = append(out, fmt.Sprintf("%s: %v is replaced by that of the operator, which secures the cluster itself: remove it", toFieldPath(list), o["name"]))
			}
		}
	}
	for _, g := range p.groups {
		pod := g.podPath()
		warn(pod.child("containers"), g.sidecar)
		warn(pod.child("initContainers"), g.certificate)
		warn(pod.child("volumes"), slices.Concat(g.sidecarVolumes, g.volumes)...)
		warn(pod.child("containers", "0", "env"), g.env...)
	}
	return out
}

// ownFields are the fields by which a user has KubeRay secure a cluster, and what becomes of that while an administrator has not
// said that KubeRay is trusted with it.
func securityFields(own raycluster.UserSecurity) map[string]string {
	out := map[string]string{}
	if own.Token {
		out["authOptions"] = "the sidecar stays before the dashboard as well, unless raycluster.kubeRaySecurity of the operator is trust"
	}
	if own.MTLS {
		out["tlsOptions"] = "the operator puts no certificates of its own into the pods, and does not publish the client port; KubeRay issues " +
			"certificates with its feature gate RayClusterMTLS and cert-manager, and makes no pods for this cluster without the gate"
	}
	if own.NetworkPolicy {
		out["networkPolicy"] = "the NetworkPolicies of the operator stay as well, unless raycluster.kubeRaySecurity of the operator is trust, " +
			"and what any of them admits is admitted; a mode that denies egress has to let the head reach DNS and the API server, which the sidecar " +
			"asks; KubeRay makes no pods for this cluster without its feature gate RayClusterNetworkPolicy"
	}
	return out
}

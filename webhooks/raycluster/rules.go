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

// Messages that clients compare.
const (
	noIngress = "RayCluster with enableIngress set to true is not allowed: KubeRay would publish the dashboard without authentication; " +
		"remove it, and the operator publishes the dashboard with authentication"
	sidecarImmutable    = "OAuth Proxy container is immutable: leave it as the operator sets it"
	sidecarVolumes      = "OAuth Proxy TLS Secret volume is immutable: leave it as the operator sets it"
	accountImmutable    = "RayCluster head group service account is immutable: leave it as the operator sets it"
	initImmutable       = "create-cert Init Container is immutable: leave it as the operator sets it"
	variablesImmutable  = "RAY_TLS related environment variables are immutable: leave them as the operator sets them"
	volumesImmutable    = "ca-vol and server-cert Secret volumes are immutable: leave them as the operator sets them"
	mountsImmutable     = "ca-vol and server-cert volume mounts are immutable: leave them as the operator sets them"
	autoscalerImmutable = "the fields with which the autoscaler reaches Ray and Kubernetes are immutable: leave them as the operator sets them"
	versionImmutable    = "selects the names of objects that exist already, so it cannot be set or removed: recreate the RayCluster"
)

// Other messages.
const (
	noContainer   = "needs the container in which Ray runs as its first entry: add it"
	sidecarFirst  = "the first container must be the Ray container: put it before "
	kubeRayDenied = "the setting raycluster.kubeRaySecurity of the operator denies it: remove the field, and the operator secures the cluster"
	unknownIssuer = `must be "operator", "cert-manager" or "pod": remove the annotation to use the setting of the operator`
)

// violations returns the differences of a new or updated cluster from its plan.
func (p *plan) violations() field.ErrorList {
	if !p.mode.Active() || p.mode.ByKubeRay {
		return nil
	}
	r := &specValidator{plan: p}
	update := p.old.Object() != nil
	r.validateIngress()
	r.validateIssuer()
	r.validateKubeRay()
	if !update {
		r.errs = append(r.errs, validateName(p.cluster.Name())...)
	} else if p.old.HasHashedNames() != p.cluster.HasHashedNames() {
		value, _ := p.cluster.Annotation(raycluster.AnnotationVersion)
		r.add(field.Invalid(field.NewPath("metadata", "annotations").Key(raycluster.AnnotationVersion), value, versionImmutable))
	}
	for _, g := range p.groups {
		r.validateContainers(g)
		if g.sidecar != nil {
			r.validateSidecar(g)
		}
		if update && g.initContainer != nil {
			r.validateCertificates(g)
		}
	}
	if update {
		r.validateAutoscaler()
	}
	return r.errs
}

// specValidator collects the errors of a cluster.
type specValidator struct {
	*plan
	errs field.ErrorList
}

func (r *specValidator) add(err *field.Error) { r.errs = append(r.errs, err) }

// toFieldPath returns the path with indexes as names, as in a.0 instead of a[0], which clients expect.
func toFieldPath(p fieldPath) *field.Path { return field.NewPath(p[0], p[1:]...) }

// validateIngress rejects KubeRay's own Ingress. It accepts a stored one, because the finalizers of such a cluster must
// be changeable.
func (r *specValidator) validateIngress() {
	enableIngress := []string{"spec", "headGroupSpec", "enableIngress"}
	if nested.At(r.cluster.Object(), enableIngress...) == true && nested.At(r.old.Object(), enableIngress...) != true {
		r.add(field.Invalid(toFieldPath(enableIngress), true, noIngress))
	}
}

// validateKubeRay rejects new fields by which KubeRay secures the cluster, if an administrator denies them.
func (r *specValidator) validateKubeRay() {
	if r.settings.KubeRaySecurity != config.KubeRaySecurityDeny {
		return
	}
	stored := securityFields(r.old.UserSecurity())
	for name := range securityFields(r.cluster.UserSecurity()) {
		if _, unchanged := stored[name]; !unchanged {
			r.add(field.Forbidden(field.NewPath("spec", name), kubeRayDenied))
		}
	}
}

// validateIssuer rejects a new annotation with an invalid issuer.
func (r *specValidator) validateIssuer() {
	value, found := r.cluster.Annotation(raycluster.AnnotationCertificates)
	stored, _ := r.old.Annotation(raycluster.AnnotationCertificates)
	if found && value != stored && !raycluster.Issuer(value).Valid() {
		r.add(field.Invalid(field.NewPath("metadata", "annotations").Key(raycluster.AnnotationCertificates), value, unknownIssuer))
	}
}

// validateContainers rejects groups without a container for Ray [R5], unless the stored group lacks it too.
func (r *specValidator) validateContainers(g *group) {
	containers := g.podPath().child("containers")
	stored := counterpart(g, groupsOf(r.old))
	if stored != nil && rayContainerProblem(stored) == rayContainerProblem(g) {
		return
	}
	switch name := rayContainerProblem(g); name {
	case "":
	case "nothing":
		r.add(field.Required(toFieldPath(containers), noContainer))
	default:
		r.add(field.Invalid(toFieldPath(containers.child("0", "name")), name, sidecarFirst+name))
	}
}

// rayContainerProblem returns "" if the first container can be that of Ray, and otherwise "nothing" or the name of an injected container.
func rayContainerProblem(g *group) string {
	if len(g.containers()) == 0 || nested.Map(g.containers()[0]) == nil {
		return "nothing"
	}
	name := nested.String(g.containers()[0], "name")
	if slices.Contains(injectedContainers, name) {
		return name
	}
	return ""
}

func (r *specValidator) validateSidecar(g *group) {
	r.validateElement(g.podPath().child("containers"), g.sidecar, true, sidecarImmutable)
	r.validateElements(g.podPath().child("volumes"), g.sidecarVolumes, sidecarVolumes)
	if account := r.cluster.HeadServiceAccount(); account != r.serviceAccount() {
		r.add(field.Invalid(toFieldPath(g.podPath().child("serviceAccountName")), account, accountImmutable))
	}
}

func (r *specValidator) validateCertificates(g *group) {
	pod := g.podPath()
	r.validateElement(pod.child("initContainers"), g.initContainer, true, initImmutable)
	container := pod.child("containers", "0")
	r.validateElements(container.child("env"), g.env, variablesImmutable)
	r.validateElements(pod.child("volumes"), g.volumes, volumesImmutable)
	r.validateElements(container.child("volumeMounts"), g.mounts, mountsImmutable)
}

func (r *specValidator) validateAutoscaler() {
	r.validateElements(autoscalerOptions.child("env"), r.autoscaler.env, autoscalerImmutable)
	r.validateElements(autoscalerOptions.child("volumeMounts"), r.autoscaler.mounts, autoscalerImmutable)
}

// validateElements reports the first of the desired elements that is missing or different.
func (r *specValidator) validateElements(list fieldPath, desired []element, message string) {
	for _, d := range desired {
		if !r.validateElement(list, d, false, message) {
			return
		}
	}
}

// validateElement reports whether a list has exactly one element of the name, equal to the desired one; otherwise it adds an error. It
// ignores userFields of containers.
func (r *specValidator) validateElement(list fieldPath, desired element, container bool, message string) bool {
	entries := nested.List(r.cluster.Object(), list...)
	found := nested.Indexes(entries, desired["name"])
	switch {
	case len(found) == 0:
		r.add(field.Required(toFieldPath(list), message))
		return false
	case len(found) > 1:
		r.add(field.Invalid(toFieldPath(list), strconv.Itoa(len(found))+" times "+desired["name"].(string), message))
		return false
	}
	existing := entries[found[0]].(map[string]any)
	if container && !equalContainers(existing, desired) || !container && !equalElements(existing, desired) {
		r.add(field.Invalid(toFieldPath(list), desired["name"], message))
		return false
	}
	return true
}

// warnings returns warnings about new fields whose effect may surprise users.
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
			"and not under %s: set annotation %s to \"true\" to keep the latter", p.serviceAccount(), user, raycluster.AnnotationKeepServiceAccount))
	}
	stored, submitted := securityFields(p.old.UserSecurity()), securityFields(p.cluster.UserSecurity())
	for _, name := range slices.Sorted(maps.Keys(submitted)) {
		if _, unchanged := stored[name]; !unchanged && p.settings.KubeRaySecurity != config.KubeRaySecurityTrust {
			out = append(out, "spec."+name+": "+submitted[name])
		}
	}
	return out
}

// replacementWarnings returns warnings about elements of a new cluster that are replaced by injected elements of the same name.
func (p *plan) replacementWarnings() []string {
	if p.old.Object() != nil {
		return nil
	}
	var out []string
	warn := func(list fieldPath, injected ...element) {
		for _, e := range injected {
			if e == nil {
				continue
			}
			if submitted := nested.ByName(nested.List(p.cluster.Object(), list...), e["name"]); submitted != nil && !equalContainers(submitted, e) {
				out = append(out, fmt.Sprintf("%s: %v is replaced by that of the operator, which secures the cluster itself: remove it", toFieldPath(list), e["name"]))
			}
		}
	}
	for _, g := range p.groups {
		pod := g.podPath()
		warn(pod.child("containers"), g.sidecar)
		warn(pod.child("initContainers"), g.initContainer)
		warn(pod.child("volumes"), slices.Concat(g.sidecarVolumes, g.volumes)...)
		warn(pod.child("containers", "0", "env"), g.env...)
	}
	return out
}

// securityFields returns the fields by which a user lets KubeRay secure a cluster, each with its warning, which applies unless an
// administrator trusts KubeRay.
func securityFields(user raycluster.UserSecurity) map[string]string {
	out := map[string]string{}
	if user.Token {
		out["authOptions"] = "the sidecar still protects the dashboard, unless raycluster.kubeRaySecurity of the operator is trust"
	}
	if user.MTLS {
		out["tlsOptions"] = "the operator adds no certificates to the pods and does not publish the client port; KubeRay issues " +
			"certificates with its feature gate RayClusterMTLS and cert-manager, and creates no pods for this cluster without the gate"
	}
	if user.NetworkPolicy {
		out["networkPolicy"] = "the NetworkPolicies of the operator stay, unless raycluster.kubeRaySecurity of the operator is trust, " +
			"and traffic that any NetworkPolicy allows is allowed; a mode that denies egress must allow the head to reach DNS and the API server, " +
			"which the sidecar calls; KubeRay creates no pods for this cluster without its feature gate RayClusterNetworkPolicy"
	}
	return out
}

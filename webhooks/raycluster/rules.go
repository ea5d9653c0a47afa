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
	sidecarImmutable        = "OAuth Proxy container is immutable: leave it as the operator sets it"
	sidecarVolumesImmutable = "OAuth Proxy TLS Secret volume is immutable: leave it as the operator sets it"
	accountImmutable        = "RayCluster head group service account is immutable: leave it as the operator sets it"
	initImmutable           = "create-cert Init Container is immutable: leave it as the operator sets it"
	variablesImmutable      = "RAY_TLS related environment variables are immutable: leave them as the operator sets them"
	volumesImmutable        = "ca-vol and server-cert Secret volumes are immutable: leave them as the operator sets them"
	mountsImmutable         = "ca-vol and server-cert volume mounts are immutable: leave them as the operator sets them"
)

// Other messages.
const (
	autoscalerImmutable = "the fields with which the autoscaler reaches Ray and Kubernetes are immutable: leave them as the operator sets them"
	versionImmutable    = "selects the names of objects that exist already, so it cannot be set or removed: recreate the RayCluster"
	noContainer         = "the first container must be the Ray container: add it"
	sidecarFirst        = "the first container must be the Ray container: put it before "
	kubeRayDenied       = "the setting raycluster.kubeRaySecurity of the operator denies it: remove the field, and the operator secures the cluster"
	unknownIssuer       = `must be "operator", "cert-manager" or "pod": remove the annotation to use the setting of the operator`
)

// violations returns the invalid fields of a cluster and its differences from the plan; of a new cluster, only those of the sidecar.
func (p *plan) violations() field.ErrorList {
	if !p.mode.Active() || p.mode.ByKubeRay {
		return nil
	}
	v := &specValidator{plan: p}
	update := p.old.Object() != nil
	v.validateIngress()
	v.validateIssuer()
	v.validateKubeRay()
	if !update {
		v.errs = append(v.errs, validateName(p.cluster.Name())...)
	} else if p.old.HasHashedNames() != p.cluster.HasHashedNames() {
		value, _ := p.cluster.Annotation(raycluster.AnnotationVersion)
		v.add(field.Invalid(field.NewPath("metadata", "annotations").Key(raycluster.AnnotationVersion), value, versionImmutable))
	}
	for _, g := range p.groups {
		v.validateContainers(g)
		if g.sidecar != nil {
			v.validateSidecar(g)
		}
		if update && g.initContainer != nil {
			v.validateCertificates(g)
		}
	}
	if update {
		v.validateAutoscaler()
	}
	return v.errs
}

// specValidator collects the errors of a cluster.
type specValidator struct {
	*plan
	errs field.ErrorList
}

func (v *specValidator) add(err *field.Error) { v.errs = append(v.errs, err) }

// toFieldPath returns the path with indexes as names: clients expect a.0 instead of a[0].
func toFieldPath(p fieldPath) *field.Path { return field.NewPath(p[0], p[1:]...) }

// validateIngress rejects KubeRay's own Ingress. It accepts a stored field, because the finalizers of such a cluster must be changeable.
func (v *specValidator) validateIngress() {
	enableIngress := []string{"spec", "headGroupSpec", "enableIngress"}
	if nested.At(v.cluster.Object(), enableIngress...) == true && nested.At(v.old.Object(), enableIngress...) != true {
		v.add(field.Invalid(toFieldPath(enableIngress), true, noIngress))
	}
}

// validateKubeRay rejects newly set fields by which KubeRay secures the cluster, if an administrator denies these fields.
func (v *specValidator) validateKubeRay() {
	if v.settings.KubeRaySecurity != config.KubeRaySecurityDeny {
		return
	}
	stored := securityFields(v.old.UserSecurity())
	for name := range securityFields(v.cluster.UserSecurity()) {
		if _, unchanged := stored[name]; !unchanged {
			v.add(field.Forbidden(field.NewPath("spec", name), kubeRayDenied))
		}
	}
}

// validateIssuer rejects a new annotation with an invalid issuer.
func (v *specValidator) validateIssuer() {
	value, found := v.cluster.Annotation(raycluster.AnnotationCertificates)
	stored, _ := v.old.Annotation(raycluster.AnnotationCertificates)
	if found && value != stored && !raycluster.Issuer(value).Valid() {
		v.add(field.Invalid(field.NewPath("metadata", "annotations").Key(raycluster.AnnotationCertificates), value, unknownIssuer))
	}
}

// validateContainers rejects groups without a container for Ray [R5], unless the stored group lacks it too.
func (v *specValidator) validateContainers(g *group) {
	containers := g.podPath().child("containers")
	stored := counterpart(g, groupsOf(v.old))
	if stored != nil && rayContainerProblem(stored) == rayContainerProblem(g) {
		return
	}
	switch name := rayContainerProblem(g); name {
	case "":
	case "nothing":
		v.add(field.Required(toFieldPath(containers), noContainer))
	default:
		v.add(field.Invalid(toFieldPath(containers.child("0", "name")), name, sidecarFirst+name))
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

func (v *specValidator) validateSidecar(g *group) {
	v.validateElement(g.podPath().child("containers"), g.sidecar, true, sidecarImmutable)
	v.validateElements(g.podPath().child("volumes"), g.sidecarVolumes, sidecarVolumesImmutable)
	if account := v.cluster.HeadServiceAccount(); account != v.serviceAccount() {
		v.add(field.Invalid(toFieldPath(g.podPath().child("serviceAccountName")), account, accountImmutable))
	}
}

func (v *specValidator) validateCertificates(g *group) {
	pod := g.podPath()
	v.validateElement(pod.child("initContainers"), g.initContainer, true, initImmutable)
	container := pod.child("containers", "0")
	v.validateElements(container.child("env"), g.env, variablesImmutable)
	v.validateElements(pod.child("volumes"), g.volumes, volumesImmutable)
	v.validateElements(container.child("volumeMounts"), g.mounts, mountsImmutable)
}

func (v *specValidator) validateAutoscaler() {
	v.validateElements(autoscalerOptions.child("env"), v.autoscaler.env, autoscalerImmutable)
	v.validateElements(autoscalerOptions.child("volumeMounts"), v.autoscaler.mounts, autoscalerImmutable)
}

// validateElements reports the first of the desired elements that is missing or different.
func (v *specValidator) validateElements(list fieldPath, desired []element, message string) {
	for _, d := range desired {
		if !v.validateElement(list, d, false, message) {
			return
		}
	}
}

// validateElement reports whether a list has exactly one element of the name, equal to the desired one; otherwise it adds an error. It
// ignores userFields of containers.
func (v *specValidator) validateElement(list fieldPath, desired element, isContainer bool, message string) bool {
	entries := nested.List(v.cluster.Object(), list...)
	found := nested.Indexes(entries, desired["name"])
	switch {
	case len(found) == 0:
		v.add(field.Required(toFieldPath(list), message))
		return false
	case len(found) > 1:
		v.add(field.Invalid(toFieldPath(list), strconv.Itoa(len(found))+" times "+desired["name"].(string), message))
		return false
	}
	existing := entries[found[0]].(map[string]any)
	if isContainer && !equalContainers(existing, desired) || !isContainer && !equalElements(existing, desired) {
		v.add(field.Invalid(toFieldPath(list), desired["name"], message))
		return false
	}
	return true
}

// warnings returns warnings about a truncated host and about newly set fields whose effect may surprise users.
func (p *plan) warnings() []string {
	if !p.mode.Active() || p.mode.ByKubeRay {
		return nil
	}
	var out []string
	if p.old.Object() == nil {
		out = append(out, hostWarnings(p.cluster)...)
	}
	if user := p.cluster.UserServiceAccount(); user != "" && p.serviceAccount() != user && p.old.UserServiceAccount() != user {
		out = append(out, fmt.Sprintf("spec.headGroupSpec.template.spec.serviceAccountName: the head runs under ServiceAccount %s of the sidecar "+
			"instead of %s: set annotation %s to \"true\" to keep the ServiceAccount", p.serviceAccount(), user, raycluster.AnnotationKeepServiceAccount))
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

// securityFields returns the fields by which a user lets KubeRay secure a cluster, each with a warning. The warnings apply unless an
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

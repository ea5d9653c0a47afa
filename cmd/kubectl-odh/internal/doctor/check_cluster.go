package doctor

import (
	"fmt"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/odh-platform/odh-platform-operator/cmd/kubectl-odh/internal/ours"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
)

func checkOriginals(f *Facts, _ Shipped) []Finding {
	out := f.unreadable(topicOriginals)
	for _, r := range f.Originals {
		out = append(out, judgeOriginal(f, r))
	}
	if len(out) == 0 {
		out = append(out, fine("", "no former operator is there"))
	}
	return out
}

func judgeOriginal(f *Facts, r Running) Finding {
	subject := "Deployment " + r.Namespace + "/" + r.Deployment
	components := strings.Join(r.Components, ", ")
	switch {
	case !r.Present:
		return Finding{Result: Fail, Subject: "Lease " + r.Namespace + "/" + r.Lease, Found: "held by " + r.Holder + ", a replica of a former operator that does the work of " + components,
			Cure: "stop the program that holds it"}
	case r.Replicas == 0 && !r.Leads:
		return Finding{Result: OK, Subject: subject, Found: "a former operator, scaled to zero"}
	}
	finding := Finding{Result: Fail, Subject: subject, Found: "a former operator that does the work of " + components + " runs beside this one",
		Cure: "kubectl -n " + r.Namespace + " scale deployment " + r.Deployment + " --replicas=0; docs/upgrade tells how to hand over"}
	if f.Manager.Settings.Known && !slices.ContainsFunc(r.Components, f.enabled) {
		finding.Result, finding.Why = OK, ""
		finding.Found, finding.Cure = "a former operator; the component that takes its place is off", ""
	}
	return finding
}

func checkCRDs(f *Facts, ships Shipped) []Finding {
	out := f.unreadable(topicCRDs)
	if len(out) > 0 && len(f.CRDs) == 0 {
		return out
	}
	for _, name := range sortedKeys(ships.CRDs) {
		out = append(out, judgeCRD(f, ships, name)...)
	}
	return out
}

const installCRDs = "kubectl apply --server-side --force-conflicts -k config/crd, or make install"

func judgeCRD(f *Facts, ships Shipped, name string) []Finding {
	subject := "CRD " + name
	live, wanted := f.CRDs[name], ships.CRDs[name]
	if live == nil {
		if slices.ContainsFunc(f.gaps[topicCRDs], func(g Gap) bool { return strings.HasSuffix(g.What, " "+name) }) {
			return nil // told already
		}
		if off := f.offFor(wanted); off != "" {
			return []Finding{fine(subject, "not needed: component "+off+" is off")}
		}
		return []Finding{{Result: Fail, Subject: subject, Found: "not there", Cure: installCRDs}}
	}
	var out []Finding
	if why := unestablished(live); why != "" {
		out = append(out, Finding{Result: Fail, Subject: subject, Found: why, Why: "its resources cannot be reached", Cure: "kubectl describe crd " + name})
	}
	if there, here := Fingerprint(live), Fingerprint(wanted); there != here {
		finding := Finding{Result: Warn, Subject: subject, Found: fmt.Sprintf("differs from the one of this release (%s, here %s)", there, here), Cure: installCRDs}
		if missing := versionsMissing(live, wanted); missing != "" {
			finding.Result, finding.Found = Fail, finding.Found+missing
		}
		out = append(out, finding)
	}
	for _, stored := range live.Status.StoredVersions {
		if !slices.ContainsFunc(wanted.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Name == stored && v.Storage }) {
			out = append(out, Finding{Result: Warn, Subject: subject, Found: "objects may still be stored as " + stored, Why: "a later release that drops the version could not be installed",
				Cure: "let the manager migrate them: it needs rights on the CRD's status, and STORAGE_MIGRATION_* name the versions"})
		}
	}
	out = append(out, conversion(f, live, subject)...)
	if len(out) == 0 {
		out = append(out, fine(subject, "established, as this release has it"))
	}
	return out
}

// offFor is the component that looks after the kind of a CRD and is known to be off; "" where nobody needs to be asked or it is on.
func (f *Facts) offFor(crd *apiextensionsv1.CustomResourceDefinition) string {
	kind := schema.GroupKind{Group: crd.Spec.Group, Kind: crd.Spec.Names.Kind}
	for _, c := range ours.Components() {
		if slices.ContainsFunc(c.Kinds, func(k ours.Kind) bool { return k.GroupKind() == kind }) && f.off(c.Name) {
			return c.Name
		}
	}
	return ""
}

// unestablished says why a CRD does not work yet; "" when it does.
func unestablished(crd *apiextensionsv1.CustomResourceDefinition) string {
	established := false
	for _, c := range crd.Status.Conditions {
		switch {
		case c.Type == apiextensionsv1.Established:
			established = c.Status == apiextensionsv1.ConditionTrue
		case c.Type == apiextensionsv1.NamesAccepted && c.Status == apiextensionsv1.ConditionFalse:
			return "its names are refused: " + c.Message
		case c.Type == apiextensionsv1.NonStructuralSchema && c.Status == apiextensionsv1.ConditionTrue:
			return "its schema is not structural: " + c.Message
		}
	}
	if !established {
		return "not established"
	}
	return ""
}

// versionsMissing names the versions that are not served and should be.
func versionsMissing(live, wanted *apiextensionsv1.CustomResourceDefinition) string {
	var missing []string
	for _, v := range wanted.Spec.Versions {
		if v.Served && !slices.ContainsFunc(live.Spec.Versions, func(l apiextensionsv1.CustomResourceDefinitionVersion) bool { return l.Name == v.Name && l.Served }) {
			missing = append(missing, v.Name)
		}
	}
	if len(missing) == 0 {
		return ""
	}
	return "; not served: " + strings.Join(missing, ", ")
}

func checkCapabilities(f *Facts, _ Shipped) []Finding {
	var out []Finding
	for _, kind := range capability.Known() {
		if f.Served.Has(kind) {
			continue
		}
		if other, has := f.Served.Kind(kind.Group, kind.Kind); has && !servedOtherwise(f, kind) {
			out = append(out, Finding{Result: Warn, Subject: kind.Kind + "." + kind.Group, Found: "served as " + other.Version + " and not as " + kind.Version,
				Why: "it counts as not there", Cure: "install a release of its operator that serves " + kind.Version})
		}
	}
	if !f.Manager.Settings.Known {
		out = append(out, Finding{Result: Unknown, Subject: "components", Found: "which of them are on is not known, so neither is what they lack",
			Cure: "run it as somebody who may read the Deployment of the manager; --manager-namespace names its namespace"})
	}
	for _, c := range ours.Components() {
		out = append(out, required(f, c)...)
	}
	if f.enabled("appwrapper") && !hasKind(f, capability.KueueWorkload.Group, capability.KueueWorkload.Kind) {
		out = append(out, Finding{Result: Warn, Subject: "Kueue", Found: "not there, and the component appwrapper is on",
			Why: "AppWrappers with a queue stay suspended; those without one start at once", Cure: "install Kueue with the framework workload.codeflare.dev/appwrapper enabled, if there shall be quotas"})
	}
	if len(out) == 0 {
		out = append(out, fine("", "everything that the components need is served"))
	}
	return out
}

// servedOtherwise tells whether another version of the kind in the table is there.
func servedOtherwise(f *Facts, kind schema.GroupVersionKind) bool {
	return slices.ContainsFunc(capability.Known(), func(k schema.GroupVersionKind) bool {
		return k.GroupKind() == kind.GroupKind() && k != kind && f.Served.Has(k)
	})
}

// required looks at what an enabled component rests without.
func required(f *Facts, c ours.Component) []Finding {
	if !f.enabled(c.Name) {
		return nil
	}
	var missing []string
	for _, kind := range c.Requires {
		if !f.Served.Has(kind) {
			missing = append(missing, kind.Kind+"."+kind.GroupVersion().String())
		}
	}
	if len(missing) == 0 || c.Any && len(missing) < len(c.Requires) {
		return nil
	}
	cure := installCRDs
	if c.Name == "raycluster" {
		cure = "install KubeRay, or switch the component off with ENABLE_RAYCLUSTER=false"
	}
	return []Finding{{Result: Warn, Subject: "component " + c.Name, Found: "on, and rests: not served are " + strings.Join(missing, ", "), Cure: cure}}
}

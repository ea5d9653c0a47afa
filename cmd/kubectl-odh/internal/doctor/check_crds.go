package doctor

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/odh-platform/odh-platform-operator/cmd/kubectl-odh/internal/ours"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
)

const installCRDs = "kubectl apply --server-side --force-conflicts -k config/crd, or make install"

func checkCRDs(f *Facts, ships Shipped) (problems []Finding, fine string) {
	for _, name := range slices.Sorted(maps.Keys(ships.CRDs)) {
		problems = append(problems, judgeCRD(f, ships.CRDs[name])...)
	}
	return problems, fmt.Sprintf("%d CRDs are established, as this release has them", len(f.CRDs))
}

func judgeCRD(f *Facts, wanted *apiextensionsv1.CustomResourceDefinition) []Finding {
	subject := "CRD " + wanted.Name
	live, known := f.CRDs[wanted.Name]
	switch {
	case !known, live == nil && f.notNeeded(wanted):
		return nil
	case live == nil:
		return []Finding{{Result: Fail, Subject: subject, Found: "does not exist", Fix: installCRDs}}
	}
	var out []Finding
	if !apihelpers.IsCRDConditionTrue(live, apiextensionsv1.Established) {
		out = append(out, Finding{Result: Fail, Subject: subject, Found: "not established", Why: "its resources cannot be reached", Fix: "kubectl describe crd " + wanted.Name})
	}
	if there, here := Fingerprint(live), Fingerprint(wanted); there != here {
		finding := Finding{Result: Warn, Subject: subject, Found: fmt.Sprintf("differs from the one of this release (%s, here %s)", there, here), Fix: installCRDs}
		if missing := versionsMissing(live, wanted); len(missing) > 0 {
			finding.Result, finding.Found = Fail, finding.Found+"; not served: "+strings.Join(missing, ", ")
		}
		out = append(out, finding)
	}
	for _, stored := range live.Status.StoredVersions {
		if !slices.ContainsFunc(wanted.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Name == stored && v.Storage }) {
			out = append(out, Finding{Result: Warn, Subject: subject, Found: "objects may still be stored as " + stored, Why: "a later release that drops the version could not be installed",
				Fix: "let the manager migrate them: it needs permissions on the CRD's status, and STORAGE_MIGRATION_* name the versions"})
		}
	}
	return append(out, judgeConversion(f, live, subject)...)
}

// notNeeded tells that the component that owns the kind of a CRD is known to be off.
func (f *Facts) notNeeded(crd *apiextensionsv1.CustomResourceDefinition) bool {
	kind := schema.GroupKind{Group: crd.Spec.Group, Kind: crd.Spec.Names.Kind}
	return slices.ContainsFunc(ours.Components(), func(c ours.Component) bool { return c.Owns(kind) && f.off(c.Name) })
}

// versionsMissing are the versions that are not served and should be.
func versionsMissing(live, wanted *apiextensionsv1.CustomResourceDefinition) []string {
	var missing []string
	for _, v := range wanted.Spec.Versions {
		if v.Served && !apihelpers.HasServedCRDVersion(live, v.Name) {
			missing = append(missing, v.Name)
		}
	}
	return missing
}

func checkCapabilities(f *Facts, _ Shipped) (problems []Finding, fine string) {
	if !f.Manager.Settings.Known {
		problems = append(problems, Finding{Result: Unknown, Subject: "components", Found: "it is not known which of them are on and what they need",
			Fix: "run this as a user who may read the Deployment of the manager; --manager-namespace names its namespace"})
	}
	for _, kind := range capability.Known() {
		served := slices.ContainsFunc(capability.Known(), func(k schema.GroupVersionKind) bool { return k.GroupKind() == kind.GroupKind() && f.Served.Has(k) })
		if other, has := f.Served.Kind(kind.Group, kind.Kind); has && !served {
			problems = append(problems, Finding{Result: Warn, Subject: kind.Kind + "." + kind.Group, Found: "served as " + other.Version + " and not as " + kind.Version,
				Why: "it counts as not installed", Fix: "install a release of its operator that serves " + kind.Version})
		}
	}
	for _, c := range ours.Components() {
		missing := c.Missing(f.Served)
		if !f.enabled(c.Name) || len(missing) == 0 {
			continue
		}
		fix := installCRDs
		if c.Name == "raycluster" {
			fix = "install KubeRay, or switch the component off with ENABLE_RAYCLUSTER=false"
		}
		problems = append(problems, Finding{Result: Warn, Subject: "component " + c.Name, Found: "on, and waits for " + strings.Join(missing, ", "), Fix: fix})
	}
	if f.enabled("appwrapper") && !f.hasKind(capability.KueueWorkload.Group, capability.KueueWorkload.Kind) {
		problems = append(problems, Finding{Result: Warn, Subject: "Kueue", Found: "not installed, and the component appwrapper is on",
			Why: "AppWrappers with a queue stay suspended; those without one start at once", Fix: "install Kueue with the framework workload.codeflare.dev/appwrapper enabled, if you want quotas"})
	}
	return problems, "everything that the components need is served"
}

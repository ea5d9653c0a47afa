package resources

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/validation"

	mm "github.com/odh-platform/odh-platform-operator/pkg/modelmesh"
)

// ClaimInputs is what the claims of a runtime are found by.
type ClaimInputs struct {
	Form Form
	// Listed are the claims that the storage Secret names.
	Listed []string
	// AllowAny also mounts those that models name.
	AllowAny bool
	// Models are those of the namespace, and Labels what the runtime offers.
	Models []mm.Model
	Labels []string
	// Exists tells whether there is a claim of that name.
	Exists func(claim string) bool
}

// Claims are the PersistentVolumeClaims that pods of a runtime mount, and those that they would mount if they existed; both
// sorted. Pods never start with a claim that does not exist. The original mounted it nevertheless if the storage Secret named it.
func Claims(in ClaimInputs) (claims, missing []string) {
	for _, claim := range in.Listed {
		switch {
		case len(validation.IsDNS1123Subdomain(claim)) > 0: // no claim can have that name
			missing = append(missing, claim)
		case in.Form == Original || in.Exists(claim):
			claims = append(claims, claim)
		default:
			missing = append(missing, claim)
		}
	}
	if in.AllowAny {
		for _, claim := range in.wanted() {
			if len(validation.IsDNS1123Subdomain(claim)) == 0 && in.Exists(claim) {
				claims = append(claims, claim)
			} else {
				missing = append(missing, claim)
			}
		}
	}
	slices.Sort(claims)
	slices.Sort(missing)
	claims, missing = slices.Compact(claims), slices.Compact(missing)
	return claims, slices.DeleteFunc(missing, func(claim string) bool { return slices.Contains(claims, claim) })
}

// wanted are the claims of models that the runtime may serve.
func (in ClaimInputs) wanted() []string {
	var all []string
	for _, m := range in.Models {
		if claim := m.Claim(); claim != "" && mm.Supports(in.Labels, m.Label()) {
			all = append(all, claim)
		}
	}
	return all
}

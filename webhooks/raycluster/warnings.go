package raycluster

import (
	"fmt"
	"maps"
	"slices"

	"github.com/odh-platform/odh-platform-operator/pkg/config"
	"github.com/odh-platform/odh-platform-operator/pkg/raycluster"
)

// warnings tell a user of what happens otherwise than they may expect, when it is new.
func (p *plan) warnings() []string {
	if !p.mode.Active() {
		return nil
	}
	var out []string
	if p.old.Object() == nil {
		out = append(out, hostWarnings(p.cluster)...)
	}
	if user := p.cluster.UserAccount(); user != "" && p.account() != user && p.old.UserAccount() != user {
		out = append(out, fmt.Sprintf("spec.headGroupSpec.template.spec.serviceAccountName: the head runs under %s, the account of its dashboard, "+
			"and not under %s: annotation %s: \"true\" keeps the latter", p.account(), user, raycluster.AnnotationKeepServiceAccount))
	}
	before, now := ownFields(p.old.OwnSecurity()), ownFields(p.cluster.OwnSecurity())
	for _, name := range slices.Sorted(maps.Keys(now)) {
		if _, stored := before[name]; !stored && p.settings.KubeRaySecurity != config.KubeRaySecurityTrust {
			out = append(out, "spec."+name+": "+now[name])
		}
	}
	return out
}

// ownFields are the fields by which a user has KubeRay secure a cluster, and what becomes of that while an administrator has not
// said that KubeRay is trusted with it.
func ownFields(own raycluster.OwnSecurity) map[string]string {
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

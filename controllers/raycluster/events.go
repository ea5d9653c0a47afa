package raycluster

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/odh-platform/odh-platform-operator/controllers/raycluster/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/config"
	"github.com/odh-platform/odh-platform-operator/pkg/raycluster"
	"github.com/odh-platform/odh-platform-operator/pkg/raycluster/raysettings"
	"github.com/odh-platform/odh-platform-operator/pkg/status/conditions"
)

// Reasons of the Events on a RayCluster, whose status is KubeRay's.
const (
	ReasonNotApplied         = "ObjectsNotApplied"
	ReasonNoDomain           = "DashboardWaitsForDomain"
	ReasonNotPublished       = "DashboardNotPublished"
	ReasonPublished          = "DashboardPublished"
	ReasonNoKubeRay          = "KubeRayNotFound"
	ReasonPaused             = "Paused"
	ReasonPauseIgnored       = "PauseIgnored"
	ReasonNotSecured         = "PodsNotSecured"
	ReasonOutdated           = "PodTemplatesOutdated"
	ReasonPullSecrets        = "PullSecretsMissing"
	ReasonBindingTaken       = "ClusterRoleBindingTaken"
	eventAction              = "Secure"
	maxNote                  = 1000 // bytes, as the API of events has it
	topicApply         topic = "apply"
	topicPublication   topic = "publication"
	topicPublished     topic = "published"
	topicKubeRay       topic = "kuberay"
	topicPaused        topic = "paused"
	topicPods          topic = "pods"
	topicBinding       topic = "binding"
)

// clip makes a text fit for an Event.
func clip(text string) string { return conditions.Clip(text, maxNote) }

// tell says why a cluster is not published or guarded as its user may expect, once for each change of that.
func (r *clusters) tell(cluster *unstructured.Unstructured, c raycluster.Cluster, in resources.Inputs) {
	if !in.Mode.Active() {
		return
	}
	known := r.memory.of(cluster)
	if reason, text := unpublishedFor(c, in); text != "" {
		r.note(cluster, topicPublication, reason, text)
	} else if known.resolve(topicPublication) && in.Published(c) {
		r.note(cluster, topicPublished, ReasonPublished, "the dashboard is published"+below(in.Domain))
		known.resolve(topicPublished)
	}
	if reason, text := shortfall(c, in); text != "" {
		r.warn(cluster, topicPods, reason, text)
	} else {
		known.resolve(topicPods)
	}
	if in.Mode.Policies && len(in.KubeRay) == 0 {
		r.warn(cluster, topicKubeRay, ReasonNoKubeRay, "KubeRay was not found, so the NetworkPolicies do not admit it to the head, "+
			"and RayJobs and RayServices cannot reach it: set raycluster.kubeRayNamespaces")
	} else {
		known.resolve(topicKubeRay)
	}
}

func below(domain string) string {
	if domain == "" {
		return ""
	}
	return " below " + domain
}

// unpublishedFor says why a dashboard is not published although the settings publish dashboards; empty when it is.
func unpublishedFor(c raycluster.Cluster, in resources.Inputs) (reason, text string) {
	switch {
	case in.Publish == config.PublishNone || !in.Published(c):
	case in.MissingDomain(c):
		return ReasonNoDomain, fmt.Sprintf("the dashboard has no Ingress, because no ingress domain is known: "+
			"set kuberay.ingressDomain in ConfigMap %s of the operator's namespace, or raycluster.publish to none", raysettings.ConfigMapName)
	case in.Guard(c).Sidecar() && in.ViaGateway() && in.Exposure(c) == resources.Unpublished:
		return ReasonNotPublished, "an HTTPRoute cannot route to the TLS port of the sidecar: serve the kind BackendTLSPolicy of the Gateway API, " +
			"which works except on OpenShift, publish dashboards in another way, or set rayDashboardOAuthEnabled to false"
	case in.Mode.Auth == raycluster.AuthRay && in.Exposure(c) != resources.Bare:
		return ReasonNotPublished, "a dashboard that a Ray token protects is published once all head pods require the token: " +
			"delete head pods that were created before spec.authOptions was set, so that they are recreated"
	case in.Exposure(c) == resources.Unpublished:
		return ReasonNotPublished, "OAuth is disabled, and a dashboard without authentication is published only if raycluster.publish is open"
	}
	return "", ""
}

// shortfall compares what the pod templates and the pods have with what they should have; empty when they agree.
func shortfall(c raycluster.Cluster, in resources.Inputs) (reason, text string) {
	has := c.Injected()
	older := func(lacks func(raycluster.Injected) bool) bool { return slices.ContainsFunc(in.Heads, lacks) }
	switch {
	case in.Mode.Auth.Sidecar() && !has.Sidecar.Sidecar():
		return ReasonNotSecured, "no sidecar protects the dashboard, because the cluster was stored while the webhook was not installed: " +
			"change the cluster in any way, or recreate it"
	case in.Mode.Auth.Sidecar() && older(func(head raycluster.Injected) bool { return !head.Sidecar.Sidecar() }):
		return ReasonNotSecured, "the head runs without the sidecar that its pod template has: delete its pod, so that it is recreated"
	case in.Mode.MTLS && !has.MTLS:
		return ReasonNotSecured, "the pods have no certificates, so the client port is not published: " +
			"change the pod template of the head, suspend the cluster for a while, or recreate it"
	case in.Mode.MTLS && older(func(head raycluster.Injected) bool { return !head.Encrypted }):
		return ReasonNotSecured, "the head runs without the certificates that its pod template has, so the client port is not published: " +
			"delete its pod, so that it is recreated"
	case !in.Mode.Auth.Sidecar() && has.Sidecar.Sidecar(), !in.Mode.MTLS && has.MTLS:
		return ReasonOutdated, "the pod templates still contain a sidecar or certificates that are now disabled; these stay, with everything that they require, " +
			"until the pod template of the head is changed or the cluster is suspended"
	default:
		return "", ""
	}
}

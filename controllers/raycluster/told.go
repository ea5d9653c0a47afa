package raycluster

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/odh-platform/odh-platform-operator/pkg/conditions"
	"github.com/odh-platform/odh-platform-operator/pkg/ray"
	"github.com/odh-platform/odh-platform-operator/pkg/raysettings"
)

// Reasons of the Events on a RayCluster, whose status is KubeRay's.
const (
	ReasonNotApplied         = "ObjectsNotApplied"
	ReasonNoDomain           = "DashboardWaitsForDomain"
	ReasonPublished          = "DashboardPublished"
	ReasonNotSecured         = "PodsNotSecured"
	ReasonOutdated           = "PodTemplatesOutdated"
	ReasonPullSecrets        = "PullSecretsMissing"
	ReasonBindingTaken       = "ClusterRoleBindingTaken"
	eventAction              = "Secure"
	maxNote                  = 1000 // bytes, as the API of events has it
	topicApply         topic = "apply"
	topicDomain        topic = "domain"
	topicPods          topic = "pods"
	topicBinding       topic = "binding"
)

// clip makes a text fit for an Event.
func clip(text string) string { return conditions.Clip(text, maxNote) }

// tell says why a cluster is not published or guarded as its user may expect, once for each change of that.
func (r *clusters) tell(cluster *unstructured.Unstructured, c ray.Cluster, in Inputs) {
	if !in.Mode.Active() {
		return
	}
	known := r.memory.of(cluster)
	if in.missingDomain(c) {
		r.warn(cluster, topicDomain, ReasonNoDomain, fmt.Sprintf("the dashboard has no Ingress, because no ingress domain is known: "+
			"set kuberay.ingressDomain in ConfigMap %s of the operator's namespace, or raycluster.publish to none", raysettings.ConfigMapName))
	} else if known.settle(topicDomain) && in.published(c) {
		r.recorder.Eventf(cluster, nil, corev1.EventTypeNormal, ReasonPublished, eventAction, "the dashboard is published below %s", in.Domain)
	}
	if reason, text := shortfall(c, in); text != "" {
		r.warn(cluster, topicPods, reason, text)
	} else {
		known.settle(topicPods)
	}
}

// shortfall compares what the pod templates have with what they should have; empty when they agree.
func shortfall(c ray.Cluster, in Inputs) (reason, text string) {
	has := c.Injected()
	switch {
	case in.Mode.Auth.Sidecar() && !has.Sidecar.Sidecar():
		return ReasonNotSecured, "no sidecar guards the dashboard, because the cluster was stored while the webhook was not there: " +
			"change the cluster in any way, or create it again"
	case in.Mode.MTLS && !has.MTLS:
		return ReasonNotSecured, "the pods have no certificates, so the client port is not published: " +
			"change the cluster in any way, or create it again"
	case !in.Mode.Auth.Sidecar() && has.Sidecar.Sidecar(), !in.Mode.MTLS && has.MTLS:
		return ReasonOutdated, "the pod templates still have what is switched off; what they need is kept until they are changed"
	default:
		return "", ""
	}
}

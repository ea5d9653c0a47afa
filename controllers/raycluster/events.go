package raycluster

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/controllers/raycluster/certificates"
	"github.com/odh-platform/odh-platform-operator/controllers/raycluster/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/config"
	"github.com/odh-platform/odh-platform-operator/pkg/raycluster"
	"github.com/odh-platform/odh-platform-operator/pkg/raycluster/raysettings"
	"github.com/odh-platform/odh-platform-operator/pkg/reconciler"
	"github.com/odh-platform/odh-platform-operator/pkg/routestatus"
)

// Reasons and topics of Events. Problems are reported as Events on the RayCluster, because KubeRay owns its status.
const (
	ReasonNotApplied             = "ObjectsNotApplied"
	ReasonNoDomain               = "DashboardWaitsForDomain"
	ReasonNotPublished           = "DashboardNotPublished"
	ReasonPublished              = "DashboardPublished"
	ReasonNoKubeRay              = "KubeRayNotFound"
	ReasonPaused                 = "Paused"
	ReasonPauseIgnored           = "PauseIgnored"
	ReasonNotSecured             = "PodsNotSecured"
	ReasonOutdated               = "PodTemplatesOutdated"
	ReasonSecuredByKubeRay       = "SecuredByKubeRay"
	ReasonPodsOutdated           = "PodsOutdated"
	ReasonCookieReplaced         = "CookieKeyReplaced"
	ReasonPullSecrets            = "PullSecretsMissing"
	ReasonBindingTaken           = "ClusterRoleBindingTaken"
	eventAction                  = "Secure"
	topicApply             topic = "apply"
	topicPublication       topic = "publication"
	topicKubeRay           topic = "kuberay"
	topicPaused            topic = "paused"
	topicPods              topic = "pods"
	topicBinding           topic = "binding"
	topicPlatform          topic = "platform"
	topicCookie            topic = "cookie"
)

// recordEvents records Events about the publication of a cluster, its injections and KubeRay, once for each change, unless the cluster is
// skipped.
func (r *clusterReconciler) recordEvents(cluster *unstructured.Unstructured, c raycluster.Cluster, in resources.Inputs, routes routestatus.Report) {
	if !in.Mode.Active() {
		return
	}
	if in.Mode.ByKubeRay {
		r.recordKubeRayEvents(cluster, in)
		return
	}
	r.stateOf(cluster).messages.Replace(topicPlatform, "")
	reason, note := unpublishedReason(c, in)
	eventType, action := corev1.EventTypeNormal, eventAction
	if problem := routes.FirstProblem(); note == "" && problem != nil {
		reason, note, eventType, action = ReasonNotPublished, problem.Message, corev1.EventTypeWarning, problem.Action()
	}
	if note == "" && in.Exposure(c) > resources.Unchanged && r.stateOf(cluster).messages.Replace(topicPublication, "") {
		domain := ""
		if in.Domain != "" && !in.ViaGateway() {
			domain = " below " + in.Domain
		}
		r.recorder.Eventf(cluster, nil, corev1.EventTypeNormal, ReasonPublished, eventAction, "the dashboard is published%s", domain)
	}
	r.recordEvent(cluster, topicPublication, eventType, reason, action, note)
	reason, note = injectionProblem(c, in)
	r.recordWarning(cluster, topicPods, reason, note)
	note = ""
	if in.Mode.Policies && len(in.KubeRay) == 0 {
		note = "KubeRay was not found, so the NetworkPolicies do not allow KubeRay to connect to the head, " +
			"and RayJobs and RayServices do not run: set raycluster.kubeRayNamespaces"
	}
	r.recordWarning(cluster, topicKubeRay, ReasonNoKubeRay, note)
}

// recordKubeRayEvents reports that the KubeRay of the platform secures the cluster, and warns while pods have injections of the operator,
// which are incompatible with those of KubeRay.
func (r *clusterReconciler) recordKubeRayEvents(cluster *unstructured.Unstructured, in resources.Inputs) {
	state := r.stateOf(cluster)
	state.messages.Replace(topicPublication, "")
	state.messages.Replace(topicKubeRay, "")
	r.recordNormal(cluster, topicPlatform, ReasonSecuredByKubeRay, "the KubeRay of the platform secures this cluster: the operator adds nothing to its pods, "+
		"publishes nothing, and deletes the objects that it created")
	note := ""
	if in.Mounted.MTLS || slices.ContainsFunc(in.Heads, func(head raycluster.Injected) bool { return head.Sidecar.UsesSidecar() }) {
		note = "pods still have the sidecar or the certificates of the operator, which do not fit those of the KubeRay of the platform: " +
			"delete all pods of the cluster, so that they are recreated"
	}
	r.recordWarning(cluster, topicPods, ReasonPodsOutdated, note)
}

// unpublishedReason returns reason and note of the Event about a dashboard that is not published although the settings enable publication.
func unpublishedReason(c raycluster.Cluster, in resources.Inputs) (reason, note string) {
	switch {
	case in.Publish == config.PublishNone || c.Suspended():
	case in.MissingDomain(c) && in.Publish == config.PublishGateway && in.GatewayNamespace == "":
		return ReasonNotPublished, "the dashboard has no HTTPRoute, because no Gateway is named: set raycluster.gatewayNamespace, or GATEWAY_NAMESPACE if exposure.kind is gateway"
	case in.MissingDomain(c):
		return ReasonNoDomain, fmt.Sprintf("the dashboard has no Ingress, because no ingress domain is known: "+
			"set raycluster.ingressDomain, or kuberay.ingressDomain in ConfigMap %s of the operator's namespace, or set raycluster.publish to none", raysettings.ConfigMapName)
	case in.EffectiveAuth(c).UsesSidecar() && in.ViaGateway() && in.Exposure(c) == resources.Unpublished:
		return ReasonNotPublished, "a Gateway cannot verify the certificate of the sidecar: install the CustomResourceDefinition BackendTLSPolicy of the Gateway API " +
			"(without effect on OpenShift), set raycluster.publish to another value, or set raycluster.rayDashboardOAuthEnabled to false"
	case in.Mode.Auth == raycluster.AuthRay && in.Exposure(c) != resources.Direct:
		return ReasonNotPublished, "a dashboard that a Ray token protects is published once all head pods require the token: " +
			"delete head pods that were created before spec.authOptions was set, so that they are recreated"
	case in.Exposure(c) == resources.Unpublished:
		return ReasonNotPublished, "OAuth is disabled, and on OpenShift no Route publishes a dashboard without authentication unless raycluster.publish is open: set raycluster.rayDashboardOAuthEnabled to true, or raycluster.publish to open, which lets anyone run code"
	}
	return "", ""
}

// injectionProblem returns reason and note of the Event about pod templates or pods that differ from the mode.
func injectionProblem(c raycluster.Cluster, in resources.Inputs) (reason, note string) {
	injected := c.Injected()
	anyHead := func(matches func(raycluster.Injected) bool) bool { return slices.ContainsFunc(in.Heads, matches) }
	switch {
	case in.Mode.Auth.UsesSidecar() && !injected.Sidecar.UsesSidecar():
		return ReasonNotSecured, "no sidecar protects the dashboard, because the cluster was stored while OAuth was disabled, while the webhook was not installed, " +
			"or while the KubeRay of the platform secured it: " +
			"change the cluster in any way, or recreate it"
	case in.Mode.Auth.UsesSidecar() && anyHead(func(head raycluster.Injected) bool { return head.Sidecar != injected.Sidecar }):
		return ReasonNotSecured, "the head runs without the sidecar that its pod template has: delete its pod, so that it is recreated"
	case in.Mode.MTLS && !injected.MTLS:
		return ReasonNotSecured, "the pods have no certificates, so the client port is not published: " +
			"change the pod template of the head, suspend the cluster for a while, or recreate it"
	case in.Mode.MTLS && anyHead(func(head raycluster.Injected) bool { return !head.Encrypted }):
		return ReasonNotSecured, "the head runs without the certificates that its pod template has, so the client port is not published: " +
			"delete its pod, so that it is recreated"
	case !in.Mode.Auth.UsesSidecar() && injected.Sidecar.UsesSidecar(), !in.Mode.MTLS && injected.MTLS:
		return ReasonOutdated, "the pod templates still contain a sidecar or certificates that are now disabled; to remove them, with everything that they require, " +
			"change the pod template of the head or suspend the cluster"
	default:
		return "", ""
	}
}

// clusterState is the state of one cluster between reconciles, which never overlap. Losing the state is harmless.
type clusterState struct {
	uid types.UID
	// cookie is the key in the Secret of the sidecar.
	cookie []byte
	// admissionGeneration and admissionTriggeredAt are the generation and the time at which triggerAdmission last sent a patch.
	// sidecarMismatchSince is zero unless the head template has the sidecar of the other authentication.
	admissionGeneration                        int64
	admissionTriggeredAt, sidecarMismatchSince time.Time
	// deletedPods are the pods that were deleted because of a missing pull secret.
	deletedPods  map[types.UID]bool
	certificates certificates.Memory
	// messages holds the last message of each topic.
	messages reconciler.LastMessages[topic]
}

// stateOf returns the state of a cluster, and creates it if it does not exist.
func (r *clusterReconciler) stateOf(cluster *unstructured.Unstructured) *clusterState {
	name := client.ObjectKeyFromObject(cluster)
	state, found := r.states.Get(name)
	if !found || state.uid != cluster.GetUID() {
		state = &clusterState{uid: cluster.GetUID(), deletedPods: map[types.UID]bool{}, messages: reconciler.LastMessages[topic]{}}
		r.states.Set(name, state)
	}
	return state
}

// forget deletes the state of the cluster with that name unless it has the given UID.
func (r *clusterReconciler) forget(name types.NamespacedName, uid types.UID) {
	if state, found := r.states.Get(name); found && state.uid != uid {
		r.states.Delete(name)
		r.applier.Forget(state.uid)
		state.certificates.Forget()
	}
}

// topic is the subject of an Event.
type topic string

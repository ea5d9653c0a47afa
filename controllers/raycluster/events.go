package raycluster

import (
	"fmt"
	"slices"
	"sync"
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
	"github.com/odh-platform/odh-platform-operator/pkg/routestatus"
)

// Reasons of the Events on a RayCluster, whose status is KubeRay's.
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
	maxNote                      = 1000 // bytes, as the API of events has it
	topicApply             topic = "apply"
	topicPublication       topic = "publication"
	topicKubeRay           topic = "kuberay"
	topicPaused            topic = "paused"
	topicPods              topic = "pods"
	topicBinding           topic = "binding"
	topicPlatform          topic = "platform"
	topicCookie            topic = "cookie"
)

// tell says why a cluster is not published or guarded as its user may expect, once for each change of that.
func (r *clusters) tell(cluster *unstructured.Unstructured, c raycluster.Cluster, in resources.Inputs, said routestatus.Report) {
	if !in.Mode.Active() {
		return
	}
	if in.Mode.ByKubeRay {
		r.tellByKubeRay(cluster, in)
		return
	}
	r.memory.of(cluster).resolve(topicPlatform)
	reason, text := unpublishedFor(c, in)
	severity, action := corev1.EventTypeNormal, eventAction
	if text == "" && said.FirstProblem() != nil {
		reason, text, severity, action = ReasonNotPublished, said.Message(), corev1.EventTypeWarning, said.Action()
	}
	if text == "" && r.memory.of(cluster).resolve(topicPublication) && in.Published(c) {
		where := ""
		if in.Domain != "" {
			where = " below " + in.Domain
		}
		r.recorder.Eventf(cluster, nil, corev1.EventTypeNormal, ReasonPublished, eventAction, "the dashboard is published%s", where)
	}
	r.event(cluster, topicPublication, severity, reason, action, text)
	reason, text = shortfall(c, in)
	r.warn(cluster, topicPods, reason, text)
	text = ""
	if in.Mode.Policies && len(in.KubeRay) == 0 {
		text = "KubeRay was not found, so the NetworkPolicies do not admit it to the head, " +
			"and RayJobs and RayServices cannot reach it: set raycluster.kubeRayNamespaces"
	}
	r.warn(cluster, topicKubeRay, ReasonNoKubeRay, text)
}

// tellByKubeRay says that the KubeRay of the platform does what this program did, and which pods do not fit that.
func (r *clusters) tellByKubeRay(cluster *unstructured.Unstructured, in resources.Inputs) {
	known := r.memory.of(cluster)
	known.resolve(topicPublication)
	known.resolve(topicKubeRay)
	r.note(cluster, topicPlatform, ReasonSecuredByKubeRay, "the KubeRay of the platform secures this cluster: the operator adds nothing to its pods, "+
		"publishes nothing, and removes what it made before")
	text := ""
	if in.Mounted.MTLS || slices.ContainsFunc(in.Heads, func(head raycluster.Injected) bool { return head.Sidecar.Sidecar() }) {
		text = "pods still have the sidecar or the certificates of the operator, which do not fit those of the KubeRay of the platform: " +
			"delete all pods of the cluster, so that they are recreated"
	}
	r.warn(cluster, topicPods, ReasonPodsOutdated, text)
}

// unpublishedFor says why a dashboard is not published although the settings publish dashboards; empty when it is.
func unpublishedFor(c raycluster.Cluster, in resources.Inputs) (reason, text string) {
	switch {
	case in.Publish == config.PublishNone || !in.Published(c):
	case in.MissingDomain(c) && in.Publish == config.PublishGateway && in.GatewayNamespace == "":
		return ReasonNotPublished, "the dashboard has no HTTPRoute, because no Gateway is named: set raycluster.gatewayNamespace, or GATEWAY_NAMESPACE if exposure.kind is gateway"
	case in.MissingDomain(c):
		return ReasonNoDomain, fmt.Sprintf("the dashboard has no Ingress, because no ingress domain is known: "+
			"set kuberay.ingressDomain in ConfigMap %s of the operator's namespace, or raycluster.publish to none", raysettings.ConfigMapName)
	case in.HostTaken:
		return ReasonNotPublished, fmt.Sprintf("the dashboard has no Ingress, because an older RayCluster has the host %s.%s: "+
			"create this RayCluster under another name", c.DashboardHost(), in.Domain)
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
		return ReasonNotSecured, "no sidecar protects the dashboard, because the cluster was stored while the webhook was not installed, " +
			"or while the KubeRay of the platform secured it: " +
			"change the cluster in any way, or recreate it"
	case in.Mode.Auth.Sidecar() && older(func(head raycluster.Injected) bool { return head.Sidecar != has.Sidecar }):
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

// memory is what is remembered of each cluster between two reconciles. All of it can be lost.
type memory struct {
	mu       sync.Mutex
	clusters map[types.NamespacedName]*remembered
}

// remembered is what is remembered of one cluster. One worker at a time deals with a cluster.
type remembered struct {
	uid types.UID
	// cookie is the key in the Secret of the sidecar.
	cookie []byte
	// asked is the generation at which admission was asked to bring the pod templates up to date, askedAt is when.
	// mismatch is since when the head has the sidecar for another state of the OAuth server; zero while it has the right one.
	asked             int64
	askedAt, mismatch time.Time
	// deleted are the pods that were deleted for want of a pull secret.
	deleted map[types.UID]bool
	// certificates is what their keeper remembers.
	certificates certificates.Memory
	// messages are the last ones on each topic.
	messages map[topic]string
}

// of returns what is remembered of a cluster, nothing at first.
func (m *memory) of(cluster *unstructured.Unstructured) *remembered {
	m.mu.Lock()
	defer m.mu.Unlock()
	name := client.ObjectKeyFromObject(cluster)
	known := m.clusters[name]
	if known == nil || known.uid != cluster.GetUID() {
		if m.clusters == nil {
			m.clusters = map[types.NamespacedName]*remembered{}
		}
		known = &remembered{uid: cluster.GetUID(), deleted: map[types.UID]bool{}, messages: map[topic]string{}}
		m.clusters[name] = known
	}
	return known
}

// replace forgets the cluster of that name unless it has the uid, and returns what was remembered; nil for nothing.
func (m *memory) replace(name types.NamespacedName, uid types.UID) *remembered {
	m.mu.Lock()
	defer m.mu.Unlock()
	known := m.clusters[name]
	if known == nil || known.uid == uid {
		return nil
	}
	delete(m.clusters, name)
	return known
}

// topic is what a user is informed about.
type topic string

// isNews remembers the message on a topic, and reports whether it differs from the last one.
func (k *remembered) isNews(about topic, text string) bool {
	if k.messages[about] == text {
		return false
	}
	k.messages[about] = text
	return true
}

// resolve forgets the last message on a topic, and reports whether there was one.
func (k *remembered) resolve(about topic) bool {
	_, open := k.messages[about]
	delete(k.messages, about)
	return open
}

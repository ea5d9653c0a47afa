package certificates

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/certs"
	"github.com/odh-platform/odh-platform-operator/pkg/config"
	"github.com/odh-platform/odh-platform-operator/pkg/objectmeta"
	"github.com/odh-platform/odh-platform-operator/pkg/raycluster"
	"github.com/odh-platform/odh-platform-operator/pkg/reconciler"
)

var secretGVK = corev1.SchemeGroupVersion.WithKind("Secret")

const (
	// addressBatchWindow is how long addresses are collected after a certificate was issued: pods start in batches.
	addressBatchWindow = time.Second
	// cacheLag is the maximum delay of the cache after a write.
	cacheLag = 5 * time.Second
	// foreignRecheck is the interval of reading a foreign Secret, which the cache does not hold.
	foreignRecheck = 10 * time.Minute
)

// Reconciler maintains the CA and the certificates of each RayCluster. All fields but Recorder are required.
//
// The CA is stored in a Secret, for clients that issue their own certificates. All pods of a role share a certificate for their addresses.
// A pod waits in an init container until the certificate contains its address: the address is added once the pod has it, and an annotation
// of the pod makes the kubelet update the Secret volume immediately. With IssuerPod, each pod issues its own certificate.
type Reconciler struct {
	// Cached reads the metadata of managed Secrets. APIReader reads complete objects from the API server.
	Cached, APIReader client.Reader
	// Writer patches pods.
	Writer  client.Writer
	Applier *apply.Applier
	Clock   clock.PassiveClock
	// Recorder records Events about the RayCluster.
	Recorder events.EventRecorder
}

// Inputs are the inputs of the certificates in addition to the RayCluster.
type Inputs struct {
	config.RayCluster
	Mode raycluster.Mode
	// OpenShift reports whether OpenShift issues the certificate of the dashboard's proxy.
	OpenShift bool
	// Domain is the domain of published clusters; "" if unknown.
	Domain string
	// CertManager reports whether the API of cert-manager is served.
	CertManager bool
	// PublishesAuthority reports whether the CA of the proxy is published.
	PublishesAuthority bool
	// Pods are the pods that the RayCluster controls.
	Pods []corev1.Pod
}

// Reconcile issues missing and due certificates. It returns the time until the next reconcile, or 0 if none is needed.
func (r *Reconciler) Reconcile(ctx context.Context, cluster *unstructured.Unstructured, in Inputs, memory *Memory) (time.Duration, error) {
	memory.init(cluster)
	current := &reconciliation{
		Reconciler: r, cluster: cluster, memory: memory, now: r.Clock.Now(),
		plan: planCertificates(raycluster.View(cluster.Object), in), live: map[string]*corev1.Secret{},
	}
	memory.retainOnly(current.plan.secretNames())
	current.warnOnce("cert-manager", in.Mode.MTLS && in.Mode.Issuer == raycluster.IssuerCertManager && current.plan.issuer != in.Mode.Issuer,
		reasonNoCertManager, "the API of cert-manager is not served, so the operator issues the certificates")
	if err := current.run(ctx); err != nil {
		return 0, err
	}
	if err := current.annotatePods(ctx, in.Pods); err != nil {
		return 0, err
	}
	for _, s := range memory.secrets {
		if at := s.checkAt; at.After(current.now) {
			current.requeueAt(at)
		} else {
			current.requeueAt(current.now.Add(reconciler.RequeueBlocked)) // another program must renew or delete the Secret
		}
	}
	if current.requeueTime.IsZero() {
		return 0, nil
	}
	return max(current.requeueTime.Sub(current.now), time.Second/10), nil
}

// reconciliation is one reconcile of the certificates of a RayCluster.
type reconciliation struct {
	*Reconciler
	cluster     *unstructured.Unstructured
	memory      *Memory
	plan        certificatePlan
	now         time.Time
	live        map[string]*corev1.Secret // Secrets read in this reconcile; nil if not found
	requeueTime time.Time                 // time of the next reconcile; zero for none
}

func (r *reconciliation) run(ctx context.Context) error {
	switch {
	case r.plan.authoritySecret == "":
	case r.plan.issuer == raycluster.IssuerCertManager:
		if err := r.reconcileCertManager(ctx); err != nil {
			return err
		}
	default:
		if err := r.reconcileOperatorCA(ctx); err != nil {
			return err
		}
	}
	return r.reconcileProxy(ctx)
}

// isUpToDate returns the state of a Secret, and whether the Secret needs no check: it is not due and, unless foreign, unchanged.
func (r *reconciliation) isUpToDate(ctx context.Context, leaf leafPlan) (state secretState, upToDate bool, err error) {
	secret := leaf.secret
	state, ok := r.memory.secrets[secret]
	if !ok {
		return r.restore(ctx, leaf)
	}
	if !r.now.Before(state.checkAt) || state.foreign {
		return state, r.now.Before(state.checkAt), nil
	}
	metadata, err := objectmeta.Get(ctx, r.Cached, secretGVK, r.key(secret))
	if err != nil {
		return state, false, err
	}
	if lagEnd := state.appliedAt.Add(cacheLag); metadata == nil {
		if state.cached || !r.now.Before(lagEnd) {
			return state, false, nil
		}
		r.requeueAt(lagEnd) // the cache may not have received the last write yet
		return state, true, nil
	}
	state.cached = true
	r.memory.secrets[secret] = state
	return state, metadata.UID == state.uid && metadata.DeletionTimestamp == nil && !isNewer(metadata, state.version), nil
}

// isNewer reports whether an object is newer than version, or the two cannot be compared.
func isNewer(object metav1.Object, version string) bool {
	order, err := resourceversion.CompareResourceVersion(object.GetResourceVersion(), version)
	return err != nil || order > 0
}

// requeueAt requeues the RayCluster at the given time, unless an earlier one is set.
func (r *reconciliation) requeueAt(at time.Time) {
	if r.requeueTime.IsZero() || at.Before(r.requeueTime) {
		r.requeueTime = at
	}
}

func (r *reconciliation) key(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: r.cluster.GetNamespace(), Name: name}
}

// getSecret returns a Secret from the API server, or nil if it does not exist. It reads each Secret at most once per reconcile.
func (r *reconciliation) getSecret(ctx context.Context, name string) (*corev1.Secret, error) {
	if secret, ok := r.live[name]; ok {
		return secret, nil
	}
	if r.plan.issuer != raycluster.IssuerCertManager {
		if isNew, err := r.Applier.IsNew(ctx, r.cluster, secretGVK, r.key(name)); err != nil || isNew {
			return nil, err
		}
	}
	secret := &corev1.Secret{}
	err := r.APIReader.Get(ctx, r.key(name), secret)
	if client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("reading Secret %s: %w", r.key(name), err)
	}
	if err != nil {
		secret = nil
	}
	r.live[name] = secret
	return secret, nil
}

// isWritable reports whether a Secret may be written: it does not exist, or it belongs to this RayCluster, even if the CodeFlare operator
// created the Secret or the RayCluster was restored from a backup.
func (r *reconciliation) isWritable(secret *corev1.Secret) bool {
	if secret == nil {
		return true
	}
	if owner := metav1.GetControllerOf(secret); owner != nil {
		return owner.Kind == raycluster.GVK.Kind && owner.Name == r.cluster.GetName()
	}
	return r.Applier.IsManaged(secret)
}

// applySecret applies a Secret, without a request if nothing changes, and stores its state. With nil data it applies only labels and owner.
func (r *reconciliation) applySecret(ctx context.Context, name string, secretType corev1.SecretType, data map[string][]byte, s secretState) error {
	object := apply.Object{Config: r.secretConfig(name, secretType, data, s.summarize(data)), NeverDelete: true}
	if live := r.live[name]; live != nil {
		object.Existing = live
	}
	if err := r.Applier.Apply(ctx, r.cluster, apply.Desired{object}); err != nil {
		r.memory.remove(name)
		return err
	}
	s.appliedAt = r.now
	s.uid, s.version = r.Applier.Version(r.cluster.GetUID(), secretGVK, r.key(name))
	if live := r.live[name]; live != nil && live.UID == s.uid && isNewer(live, s.version) {
		s.version = live.ResourceVersion // another client wrote it after the applier, and this reconcile read that version
	}
	r.memory.store(name, s)
	return nil
}

// warnOnce records a Warning when a problem appears, and again only after it was absent.
func (r *reconciliation) warnOnce(topic string, problem bool, reason, format string, args ...any) {
	number := 0
	if problem {
		number = 1
	}
	if r.memory.setReported(topic, number) {
		r.recordEvent(corev1.EventTypeWarning, reason, format, args...)
	}
}

// recordEvent records an Event about the RayCluster.
func (r *reconciliation) recordEvent(eventType, reason, format string, args ...any) {
	if r.Recorder != nil {
		r.Recorder.Eventf(r.cluster, nil, eventType, reason, "KeepCertificates", format, args...)
	}
}

// secretState is the state of a checked Secret, so that each version is read only once. It contains no private keys.
type secretState struct {
	role string
	// foreign reports whether the operator must not, or cannot, write the Secret. The cache does not hold such a Secret.
	foreign bool
	uid     types.UID
	version string
	// checkAt is the time of the next check. The certificate was issued at issuedAt and expires at expiresAt; appliedAt is the last apply.
	checkAt, expiresAt, issuedAt, appliedAt time.Time
	// cached reports whether the cache has contained the Secret since the last apply.
	cached bool
	// authority is ca.crt in the Secret of the proxy; nil if it was not read. authorityHash is the hash of ca.crt, if the operator signs with that CA.
	authority     []byte
	authorityHash string
	// names and addresses are those of the certificate.
	names     sets.Set[string]
	addresses sets.Set[netip.Addr]
}

// Memory is the state of the certificates of one cluster. The zero value is empty. It must not be used concurrently.
type Memory struct {
	key     types.NamespacedName
	secrets map[string]secretState // by name of the Secret
	trust   certs.Trust            // the CAs of the proxy
	// reported is the last reported number by topic.
	reported map[string]int
}

func (m *Memory) init(cluster metav1.Object) {
	m.key = types.NamespacedName{Namespace: cluster.GetNamespace(), Name: cluster.GetName()}
	if m.secrets == nil {
		m.secrets, m.reported = map[string]secretState{}, map[string]int{}
	}
}

// setReported stores a number for a topic and reports whether it increased.
func (m *Memory) setReported(topic string, number int) bool {
	previous := m.reported[topic]
	m.reported[topic] = number
	return number > previous
}

// Forget deletes the state of a deleted cluster and its metrics.
func (m *Memory) Forget() { m.retainOnly(nil) }

// Authority returns the CA certificates for the proxy Secret, and whether the Secret is known. A foreign Secret may contain none.
func (m *Memory) Authority(secret string, now time.Time) ([]byte, bool) {
	s, known := m.secrets[secret]
	if s.foreign {
		return s.authority, known
	}
	return m.trust.Bundle(now), known
}

// store stores the state of a Secret and updates the metric, which exists only if the expiry is known. The expiry of a foreign Secret is
// known only if the Secret contains a CA.
func (m *Memory) store(secret string, s secretState) {
	m.secrets[secret] = s
	if s.expiresAt.IsZero() {
		expiry.DeleteLabelValues(m.key.Namespace, m.key.Name, s.role)
		return
	}
	expiry.WithLabelValues(m.key.Namespace, m.key.Name, s.role).Set(float64(s.expiresAt.Unix()))
}

// retainOnly deletes the state and metrics of all Secrets except the given ones.
func (m *Memory) retainOnly(secrets []string) {
	for name := range m.secrets {
		if !slices.Contains(secrets, name) {
			m.remove(name)
		}
	}
}

// remove deletes the state and the metric of a Secret.
func (m *Memory) remove(secret string) {
	expiry.DeleteLabelValues(m.key.Namespace, m.key.Name, m.secrets[secret].role)
	delete(m.secrets, secret)
}

// covers reports whether a certificate has all required names and addresses.
func (s secretState) covers(o certs.LeafOptions) bool {
	return s.names.HasAll(o.DNSNames...) && s.addresses.HasAll(o.Addresses...)
}

// expiry is the metric of expiry times, including certificates of other issuers.
var expiry = promauto.With(metrics.Registry).NewGaugeVec(prometheus.GaugeOpts{
	Name: "odh_platform_raycluster_certificate_expiry_timestamp_seconds",
	Help: "Unix time at which a certificate of a RayCluster expires, by namespace, name and role of the certificate: authority, head, worker or proxy.",
}, []string{"namespace", "name", "certificate"})

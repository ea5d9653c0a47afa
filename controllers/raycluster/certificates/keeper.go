package certificates

import (
	"context"
	"fmt"
	"maps"
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
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/certs"
	"github.com/odh-platform/odh-platform-operator/pkg/config"
	"github.com/odh-platform/odh-platform-operator/pkg/raycluster"
)

var secretGVK = corev1.SchemeGroupVersion.WithKind("Secret")

const (
	// addressBatchWindow is how long addresses are gathered after a certificate was written: pods come in swarms.
	addressBatchWindow = time.Second
	// cacheLag is how long the cache may need to show what was written.
	cacheLag = 5 * time.Second
	// foreignRecheck is how often a foreign Secret is read, which the cache does not show.
	foreignRecheck = 10 * time.Minute
)

// Keeper keeps the CA of each RayCluster, and the certificates of its pods. All fields are required but Recorder.
//
// The CA stays in its Secret, for clients that issue their own certificates. Pods get a certificate for their role, which is
// good for the addresses of all living pods of that role. A pod waits in an init container until its address is in: it is
// added once the pod has it, and an annotation of the pod makes the kubelet read the Secret at once. In the form of the
// original operator each pod issues its own.
type Keeper struct {
	// Cached reads the metadata of Secrets with our labels, Live whole objects from the API server.
	Cached, Live client.Reader
	// Writer patches pods.
	Writer  client.Writer
	Applier *apply.Applier
	Clock   clock.PassiveClock
	// Recorder receives Events about the cluster.
	Recorder events.EventRecorder
}

// Inputs are what the certificates of a cluster depend on beside the cluster itself.
type Inputs struct {
	config.RayCluster
	Mode raycluster.Mode
	// OpenShift issues the certificate of the dashboard's proxy.
	OpenShift bool
	// Domain is the one under which the cluster publishes; empty while it is unknown.
	Domain string
	// CertManager tells that the API of cert-manager is served.
	CertManager bool
	// Pods are those that the RayCluster controls.
	Pods []corev1.Pod
}

// Keep issues what is missing or due. It returns after which time something will be due; 0 says that nothing will.
func (k *Keeper) Keep(ctx context.Context, cluster *unstructured.Unstructured, in Inputs, memory *Memory) (time.Duration, error) {
	memory.begin(cluster)
	p := &reconciliation{
		Keeper: k, cluster: cluster, memory: memory, now: k.Clock.Now(),
		plan: planCertificates(raycluster.View(cluster.Object), in), live: map[string]*corev1.Secret{},
	}
	memory.keepOnly(p.plan.secrets())
	fallback := 0
	if in.Mode.MTLS && in.Mode.Issuer == raycluster.IssuerCertManager && p.plan.issuer != in.Mode.Issuer {
		fallback = 1
	}
	if memory.isNews("cert-manager", fallback) {
		p.tell(corev1.EventTypeWarning, reasonNoCertManager, "the API of cert-manager is not served, so the operator issues the certificates")
	}
	if err := p.run(ctx); err != nil {
		return 0, err
	}
	if err := p.serve(ctx, in.Pods); err != nil {
		return 0, err
	}
	for _, s := range memory.slots {
		p.comeBack(s.next)
	}
	if p.resume.IsZero() {
		return 0, nil
	}
	return max(p.resume.Sub(p.now), time.Second/10), nil
}

// reconciliation is one reconcile of the certificates of a cluster.
type reconciliation struct {
	*Keeper
	cluster *unstructured.Unstructured
	memory  *Memory
	plan    certificatePlan
	now     time.Time
	live    map[string]*corev1.Secret // what was read in this reconcile; nil for what does not exist
	resume  time.Time                 // when to come back; zero for never
}

func (p *reconciliation) run(ctx context.Context) error {
	switch {
	case p.plan.authority == "":
	case p.plan.issuer == raycluster.IssuerCertManager:
		if err := p.keepByCertManager(ctx); err != nil {
			return err
		}
	default:
		if err := p.keepAuthority(ctx); err != nil {
			return err
		}
	}
	return p.keepProxy(ctx)
}

// isGood reports whether nothing is to be done about a Secret: it is as it was when it was found good, and its time has not come.
func (p *reconciliation) isGood(ctx context.Context, secret string) (known slot, good bool, err error) {
	known, ok := p.memory.slots[secret]
	if !ok || !p.now.Before(known.next) || known.foreign {
		return known, ok && p.now.Before(known.next), nil
	}
	head, err := capability.GetMetadata(ctx, p.Cached, secretGVK, p.key(secret))
	if err != nil {
		return known, false, err
	}
	if lag := known.written.Add(cacheLag); head == nil {
		if known.seen || !p.now.Before(lag) {
			return known, false, nil
		}
		p.comeBack(lag) // the cache does not show yet what was written a moment ago
		return known, true, nil
	}
	known.seen = true
	p.memory.slots[secret] = known
	return known, head.UID == known.uid && head.DeletionTimestamp == nil && !isNewer(head, known.version), nil
}

// isNewer compares the version of an object with another one of it. Of one that cannot be compared nothing is known.
func isNewer(object metav1.Object, version string) bool {
	order, err := resourceversion.CompareResourceVersion(object.GetResourceVersion(), version)
	return err != nil || order > 0
}

// comeBack requeues the cluster for a moment.
func (p *reconciliation) comeBack(at time.Time) {
	if p.resume.IsZero() || at.Before(p.resume) {
		p.resume = at
	}
}

func (p *reconciliation) key(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: p.cluster.GetNamespace(), Name: name}
}

// read returns a Secret as it is now; nil when it does not exist, or as good as certainly does not. Each is read once in a reconcile.
func (p *reconciliation) read(ctx context.Context, name string) (*corev1.Secret, error) {
	if known, ok := p.live[name]; ok {
		return known, nil
	}
	if p.plan.issuer != raycluster.IssuerCertManager {
		if fresh, err := p.Applier.IsNew(ctx, p.cluster, secretGVK, p.key(name)); err != nil || fresh {
			return nil, err
		}
	}
	secret := &corev1.Secret{}
	err := p.Live.Get(ctx, p.key(name), secret)
	if client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("reading Secret %s: %w", p.key(name), err)
	}
	if err != nil {
		secret = nil
	}
	p.live[name] = secret
	return secret, nil
}

// isOurs reports whether a Secret may be written: it was made for this cluster, by whatever operator, perhaps before the
// cluster was restored from a backup. One that does not exist is.
func (p *reconciliation) isOurs(secret *corev1.Secret) bool {
	if secret == nil {
		return true
	}
	if owner := metav1.GetControllerOf(secret); owner != nil {
		return owner.Kind == raycluster.GVK.Kind && owner.Name == p.cluster.GetName()
	}
	return p.Applier.IsManaged(secret)
}

// write applies a Secret, which costs nothing when it is like that, and remembers it. Without data only its labels and its
// owner are kept.
func (p *reconciliation) write(ctx context.Context, name string, kind corev1.SecretType, data map[string][]byte, s slot) error {
	config := corev1ac.Secret(name, p.cluster.GetNamespace()).
		WithLabels(map[string]string{raycluster.LabelClusterName: p.cluster.GetName()})
	if data != nil {
		config.WithData(data)
	}
	if kind != "" {
		config.WithType(kind)
	}
	object := apply.Object{Config: config, NeverDelete: true}
	if live := p.live[name]; live != nil {
		object.Existing = live
	}
	if err := p.Applier.Apply(ctx, p.cluster, apply.Desired{object}); err != nil {
		delete(p.memory.slots, name)
		return err
	}
	s.written = p.now
	s.uid, s.version = p.Applier.Version(p.cluster.GetUID(), secretGVK, p.key(name))
	if live := p.live[name]; live != nil && live.UID == s.uid && isNewer(live, s.version) {
		s.version = live.ResourceVersion // others have written since the applier did, and what they left was read in this reconcile
	}
	p.memory.store(name, s)
	return nil
}

// tell sends an Event about the cluster.
func (p *reconciliation) tell(severity, reason, format string, args ...any) {
	if p.Recorder != nil {
		p.Recorder.Eventf(p.cluster, nil, severity, reason, "KeepCertificates", format, args...)
	}
}

// slot is what is remembered of a Secret that was found good, so that each of its versions is read once. No key is kept.
type slot struct {
	role string
	// foreign says that the Secret belongs to another owner, so that the cache does not show it.
	foreign bool
	uid     types.UID
	version string
	// next is when it is to be checked again, expires when its certificate ends, issued when that was made, written when the
	// Secret was last applied.
	next, expires, issued, written time.Time
	// seen says that the cache has shown it since.
	seen bool
	// authority is the ca.crt beside a certificate.
	authority []byte
	// names and addresses that the certificate is good for.
	names     sets.Set[string]
	addresses sets.Set[netip.Addr]
}

// Memory is what is remembered of the certificates of one cluster. The zero value remembers nothing yet. All work for one cluster
// is done by one worker at a time.
type Memory struct {
	key   types.NamespacedName
	slots map[string]slot // by name of the Secret
	trust certs.Trust     // in the proxy
	// reported is how much of a trouble was reported, by what it is about.
	reported map[string]int
}

// begin prepares the memory of a cluster.
func (m *Memory) begin(cluster metav1.Object) {
	m.key = types.NamespacedName{Namespace: cluster.GetNamespace(), Name: cluster.GetName()}
	if m.slots == nil {
		m.slots, m.reported = map[string]slot{}, map[string]int{}
	}
}

// isNews notes how much there is of a trouble, and tells whether that is more than was reported.
func (m *Memory) isNews(about string, number int) bool {
	before := m.reported[about]
	m.reported[about] = number
	return number > before
}

// Forget drops what is remembered of a cluster that is gone.
func (m *Memory) Forget() { m.keepOnly(nil) }

// Authority returns the certificates of the CAs of a proxy, by its Secret, and whether they are known; one that a user brings may have none.
func (m *Memory) Authority(secret string, now time.Time) ([]byte, bool) {
	s, known := m.slots[secret]
	if s.foreign {
		return s.authority, known
	}
	return m.trust.Bundle(now), known
}

// store remembers a Secret that is good now.
func (m *Memory) store(secret string, s slot) {
	m.slots[secret] = s
	expiry.WithLabelValues(m.key.Namespace, m.key.Name, s.role).Set(float64(s.expires.Unix()))
}

// keepOnly forgets Secrets that do not belong to the cluster any more.
func (m *Memory) keepOnly(secrets []string) {
	maps.DeleteFunc(m.slots, func(name string, s slot) bool {
		if slices.Contains(secrets, name) {
			return false
		}
		expiry.DeleteLabelValues(m.key.Namespace, m.key.Name, s.role)
		return true
	})
}

// covers reports whether a certificate is good for all that it has to be.
func (s slot) covers(o certs.LeafOptions) bool {
	return s.names.HasAll(o.DNSNames...) && s.addresses.HasAll(o.Addresses...)
}

// expiry shows when the certificates of clusters end, those of other issuers too.
var expiry = promauto.With(metrics.Registry).NewGaugeVec(prometheus.GaugeOpts{
	Name: "odh_platform_raycluster_certificate_expiry_timestamp_seconds",
	Help: "Unix time at which a certificate of a RayCluster expires, by namespace, name and role of the certificate: authority, head, worker or proxy.",
}, []string{"namespace", "name", "certificate"})

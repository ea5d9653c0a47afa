package certificates

import (
	"context"
	"net/netip"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/odh-platform/odh-platform-operator/pkg/certs"
)

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
	// authority is the certificate of the CA of a proxy.
	authority []byte
	// names and addresses that the certificate is good for.
	names     sets.Set[string]
	addresses sets.Set[netip.Addr]
}

// Memory is what is remembered of the certificates of one cluster. The zero value remembers nothing yet. All work for one cluster
// is done by one worker at a time.
type Memory struct {
	key types.NamespacedName
	// bundle is the content of ca.crt that the leaves were issued with.
	bundle string
	slots  map[string]slot // by name of the Secret
	// served are the pods that were marked because their address is in the certificate.
	served sets.Set[types.UID]
	// full remembers for each role how many addresses were reported not to fit.
	full map[string]int
	// fallback remembers that it was reported that cert-manager is not there.
	fallback bool
}

// begin prepares the memory of a cluster.
func (m *Memory) begin(cluster metav1.Object) {
	m.key = types.NamespacedName{Namespace: cluster.GetNamespace(), Name: cluster.GetName()}
	if m.slots == nil {
		m.slots, m.served, m.full = map[string]slot{}, sets.New[types.UID](), map[string]int{}
	}
}

// Forget drops what is remembered of a cluster that is gone.
func (m *Memory) Forget() { m.keepOnly(nil) }

// Authority returns the certificate of the CA of a proxy, by its Secret, and whether it is known; one that a user brings may have none.
func (m *Memory) Authority(secret string) ([]byte, bool) {
	s, known := m.slots[secret]
	return s.authority, known
}

// store remembers a Secret that is good now.
func (m *Memory) store(secret string, s slot) {
	m.slots[secret] = s
	observe(m.key, s.role, s.expires)
}

// keepOnly forgets Secrets that do not belong to the cluster any more.
func (m *Memory) keepOnly(secrets []string) {
	wanted := sets.New(secrets...)
	for name, s := range m.slots {
		if !wanted.Has(name) {
			unobserve(m.key, s.role)
			delete(m.slots, name)
		}
	}
}

// next is when the first Secret is due.
func (m *Memory) next() time.Time {
	var first time.Time
	for _, s := range m.slots {
		if first.IsZero() || s.next.Before(first) {
			first = s.next
		}
	}
	return first
}

// covers reports whether a certificate is good for all that it has to be.
func (s slot) covers(o certs.LeafOptions) bool {
	return s.names.HasAll(o.DNSNames...) && s.addresses.HasAll(o.Addresses...)
}

// state is what the cache says about a Secret that was found good.
type state int

const (
	// moved says that it has to be read.
	moved state = iota
	// unseen says that the cache does not show yet what was written a moment ago.
	unseen
	// good says that nothing is to be done.
	good
)

// look compares a Secret with what it was when it was found good.
func (s slot) look(ctx context.Context, cached client.Reader, key types.NamespacedName, now time.Time) (state, error) {
	if !now.Before(s.next) {
		return moved, nil
	}
	if s.foreign {
		return good, nil
	}
	head := &metav1.PartialObjectMetadata{}
	head.SetGroupVersionKind(secretGVK)
	err := cached.Get(ctx, key, head)
	switch {
	case apierrors.IsNotFound(err) && !s.seen && now.Before(s.written.Add(cacheLag)):
		return unseen, nil
	case err != nil:
		return moved, client.IgnoreNotFound(err)
	case head.UID != s.uid || head.DeletionTimestamp != nil:
		return moved, nil
	}
	if order, err := resourceversion.CompareResourceVersion(head.ResourceVersion, s.version); err != nil || order > 0 {
		return moved, nil // of a version that cannot be compared nothing is known
	}
	return good, nil
}

// expiry shows when the certificates of clusters end, those of other issuers too.
var expiry = promauto.With(metrics.Registry).NewGaugeVec(prometheus.GaugeOpts{
	Name: "odh_platform_raycluster_certificate_expiry_timestamp_seconds",
	Help: "Unix time at which a certificate of a RayCluster expires, by namespace, name and role of the certificate: authority, head, worker or proxy.",
}, []string{"namespace", "name", "certificate"})

func observe(cluster types.NamespacedName, role string, expires time.Time) {
	expiry.WithLabelValues(cluster.Namespace, cluster.Name, role).Set(float64(expires.Unix()))
}

func unobserve(cluster types.NamespacedName, role string) {
	expiry.DeleteLabelValues(cluster.Namespace, cluster.Name, role)
}

package certificates

import (
	"maps"
	"net/netip"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
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

// Authority returns the certificate of the CA of a proxy, by its Secret, and whether it is known; one that a user brings may have none.
func (m *Memory) Authority(secret string) ([]byte, bool) {
	s, known := m.slots[secret]
	return s.authority, known
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

package certificates

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net/netip"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/raycluster"
)

// AnnotationSummary is set on each Secret that the operator fills, so that a new process needs no read: it is in the cached metadata. The
// value is a function of the content alone; otherwise a restart would write.
//
// It is trusted only if the field manager of this operator owns it and all data, so that changes by other clients are noticed. A client that
// may write the Secret and uses the name of that field manager can break the certificate of its own cluster until the next check. Keys and
// CAs that sign or are published are always read from the Secret.
const AnnotationSummary = "platform.opendatahub.io/certificate"

// summarize returns the annotation for a state: the hash of ca.crt, that of names and addresses, the times of expiry and of the next check
// in seconds since 1970, and the keys of the data. It returns "" for a certificate of another issuer.
func (s secretState) summarize(data map[string][]byte) string {
	if s.authorityHash == "" {
		return ""
	}
	names := hashNames(s.names.UnsortedList(), s.addresses.UnsortedList())
	return strings.TrimSpace(fmt.Sprintln(s.authorityHash, names, s.expires.Unix(), s.checkAt.Unix(), strings.Join(sets.List(sets.KeySet(data)), ",")))
}

// restore returns the state of a Secret that this process has not read, and whether its metadata shows that it needs no check.
func (p *reconciliation) restore(ctx context.Context, plan leafPlan) (state secretState, ok bool, err error) {
	metadata, err := capability.GetMetadata(ctx, p.Cached, secretGVK, p.key(plan.secret))
	if err != nil || metadata == nil || metadata.DeletionTimestamp != nil {
		return state, false, err
	}
	var authority, names, keys string
	var expires, checkAt int64
	summary := metadata.Annotations[AnnotationSummary]
	if _, err := fmt.Sscan(summary, &authority, &names, &expires, &checkAt, &keys); err != nil || names != hashNames(plan.options.DNSNames, plan.options.Addresses) {
		return state, false, nil
	}
	kind, data := corev1.SecretTypeTLS, map[string][]byte{}
	if plan.role == roleAuthority {
		kind = ""
	}
	for key := range strings.SplitSeq(keys, ",") {
		data[key] = []byte{}
	}
	if !p.Applier.OwnsExactly(p.cluster, apply.Object{Config: p.secretConfig(plan.secret, kind, data, summary)}, metadata) {
		return state, false, nil
	}
	state = secretState{
		role: plan.role, uid: metadata.UID, version: metadata.ResourceVersion, cached: true, authorityHash: authority,
		expires: time.Unix(expires, 0), checkAt: time.Unix(checkAt, 0), names: sets.New(plan.options.DNSNames...), addresses: sets.New(plan.options.Addresses...),
	}
	p.memory.store(plan.secret, state)
	return state, p.now.Before(state.checkAt), nil
}

// secretConfig returns the apply configuration of a Secret. It omits an empty annotation and an empty type.
func (p *reconciliation) secretConfig(name string, kind corev1.SecretType, data map[string][]byte, summary string) *corev1ac.SecretApplyConfiguration {
	config := corev1ac.Secret(name, p.cluster.GetNamespace()).WithLabels(map[string]string{raycluster.LabelClusterName: p.cluster.GetName()}).WithData(data)
	if kind != "" {
		config.WithType(kind)
	}
	if summary != "" {
		config.WithAnnotations(map[string]string{AnnotationSummary: summary})
	}
	return config
}

// hashNames returns a hash of names and addresses in any order. The same names always have the same hash, unlike in package apply.
func hashNames(names []string, addresses []netip.Addr) string {
	all := sets.New(names...)
	for _, a := range addresses {
		all.Insert(a.Unmap().String())
	}
	return hashContent([]byte(strings.Join(sets.List(all), "\n")))
}

func hashContent(content []byte) string { return fmt.Sprintf("%x", sha256.Sum256(content)) }

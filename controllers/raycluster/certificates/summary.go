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
	"github.com/odh-platform/odh-platform-operator/pkg/objectmeta"
	"github.com/odh-platform/odh-platform-operator/pkg/raycluster"
)

// AnnotationSummary is set on each Secret whose certificate the operator issued: a new process reads the summary from the cached metadata
// instead of the Secret. The value depends on the content alone; otherwise a restart would write it.
//
// The summary is trusted only if the field manager of this operator owns the annotation and all data, so changes by other clients are
// detected. A client that may write the Secret and uses the name of that field manager can break the certificate of its own cluster until
// the next check. Keys and CAs that sign or are published are always read from the Secret.
const AnnotationSummary = "platform.opendatahub.io/certificate"

// summarize returns the annotation for a state: the hash of ca.crt, that of names and addresses, the times of expiry and of the next check
// in seconds since 1970, and the keys of the data. It returns "" for a certificate of another issuer.
func (s secretState) summarize(data map[string][]byte) string {
	if s.authorityHash == "" {
		return ""
	}
	names := hashNames(s.names.UnsortedList(), s.addresses.UnsortedList())
	return strings.TrimSpace(fmt.Sprintln(s.authorityHash, names, s.expiresAt.Unix(), s.checkAt.Unix(), strings.Join(sets.List(sets.KeySet(data)), ",")))
}

// restore returns the state of a Secret that this process has not read, and whether its metadata shows that it needs no check.
func (r *reconciliation) restore(ctx context.Context, leaf leafPlan) (state secretState, upToDate bool, err error) {
	metadata, err := objectmeta.Get(ctx, r.Cached, secretGVK, r.key(leaf.secret))
	if err != nil || metadata == nil || metadata.DeletionTimestamp != nil {
		return state, false, err
	}
	var authority, names, keys string
	var expiresAt, checkAt int64
	summary := metadata.Annotations[AnnotationSummary]
	if _, err := fmt.Sscan(summary, &authority, &names, &expiresAt, &checkAt, &keys); err != nil || names != hashNames(leaf.options.DNSNames, leaf.options.Addresses) {
		return state, false, nil
	}
	secretType, data := corev1.SecretTypeTLS, map[string][]byte{}
	if leaf.role == roleAuthority {
		secretType = ""
	}
	for key := range strings.SplitSeq(keys, ",") {
		data[key] = []byte{}
	}
	if !r.Applier.OwnsExactly(r.cluster, apply.Object{Config: r.secretConfig(leaf.secret, secretType, data, summary)}, metadata) {
		return state, false, nil
	}
	state = secretState{
		role: leaf.role, uid: metadata.UID, version: metadata.ResourceVersion, cached: true, authorityHash: authority,
		expiresAt: time.Unix(expiresAt, 0), checkAt: time.Unix(checkAt, 0), names: sets.New(leaf.options.DNSNames...), addresses: sets.New(leaf.options.Addresses...),
	}
	r.memory.store(leaf.secret, state)
	return state, r.now.Before(state.checkAt), nil
}

// secretConfig returns the apply configuration of a Secret. It omits an empty annotation and an empty type.
func (r *reconciliation) secretConfig(name string, secretType corev1.SecretType, data map[string][]byte, summary string) *corev1ac.SecretApplyConfiguration {
	config := corev1ac.Secret(name, r.cluster.GetNamespace()).WithLabels(map[string]string{raycluster.LabelClusterName: r.cluster.GetName()}).WithData(data)
	if secretType != "" {
		config.WithType(secretType)
	}
	if summary != "" {
		config.WithAnnotations(map[string]string{AnnotationSummary: summary})
	}
	return config
}

// hashNames returns a hash of names and addresses in any order. Unlike hashes of package apply, it is the same in all processes.
func hashNames(names []string, addresses []netip.Addr) string {
	all := sets.New(names...)
	for _, a := range addresses {
		all.Insert(a.Unmap().String())
	}
	return hashContent([]byte(strings.Join(sets.List(all), "\n")))
}

func hashContent(content []byte) string { return fmt.Sprintf("%x", sha256.Sum256(content)) }

package certificates

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/netip"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/raycluster"
)

// AnnotationSummary is set on each Secret that the operator fills; its value is a summary.
const AnnotationSummary = "platform.opendatahub.io/certificate"

// summary describes the content of a Secret, so that a new process needs no read: it is in the cached metadata. It is a function of the
// content alone; otherwise a restart would write.
//
// It is believed only if our field manager owns it and all data, so another client cannot change either of them unnoticed. A client that
// may write the Secret and pretends to be that field manager can break the certificate of its own cluster until the next check. Nothing
// is ever signed with a key, or published from a CA, that was not read from the Secret.
type summary struct {
	// Authority is the hash of ca.crt, Names that of the names and addresses of the certificate.
	Authority string    `json:"authority"`
	Names     string    `json:"names,omitempty"`
	Expires   time.Time `json:"expires"`
	CheckAt   time.Time `json:"checkAt"`
	// Keys are the keys of the data.
	Keys []string `json:"keys"`
}

// summarize returns the annotation for a state and its data.
func (s secretState) summarize(data map[string][]byte) (string, error) {
	out := summary{Authority: s.authorityHash, Expires: s.expires.UTC(), CheckAt: s.checkAt.UTC(), Keys: sets.List(sets.KeySet(data))}
	if s.role != roleAuthority {
		out.Names = hashNames(s.names.UnsortedList(), s.addresses.UnsortedList())
	}
	raw, err := json.Marshal(out)
	return string(raw), err
}

// restore returns the state of a Secret that this process has not read, and whether its metadata shows that it needs no check.
func (p *reconciliation) restore(ctx context.Context, plan leafPlan) (secretState, bool, error) {
	metadata, err := capability.GetMetadata(ctx, p.Cached, secretGVK, p.key(plan.secret))
	if err != nil || metadata == nil || metadata.DeletionTimestamp != nil {
		return secretState{}, false, err
	}
	var s summary
	text := metadata.Annotations[AnnotationSummary]
	if json.Unmarshal([]byte(text), &s) != nil {
		return secretState{}, false, nil
	}
	kind, data := corev1.SecretTypeTLS, make(map[string][]byte, len(s.Keys))
	if plan.role == roleAuthority {
		kind = ""
	} else if s.Names != hashNames(plan.options.DNSNames, plan.options.Addresses) {
		return secretState{}, false, nil
	}
	for _, key := range s.Keys {
		data[key] = []byte{}
	}
	owned, err := p.Applier.OwnsExactly(p.cluster, apply.Object{Config: p.secretConfig(plan.secret, kind, data, text)}, metadata)
	if err != nil || !owned {
		return secretState{}, false, err
	}
	state := secretState{
		role: plan.role, uid: metadata.UID, version: metadata.ResourceVersion, cached: true, checkAt: s.CheckAt, expires: s.Expires, authorityHash: s.Authority,
		names: sets.New(plan.options.DNSNames...), addresses: sets.New(plan.options.Addresses...),
	}
	p.memory.store(plan.secret, state)
	return state, p.now.Before(s.CheckAt), nil
}

// secretConfig returns the apply configuration of a Secret. An empty annotation, nil data and an empty type are not part of it.
func (p *reconciliation) secretConfig(name string, kind corev1.SecretType, data map[string][]byte, annotation string) *corev1ac.SecretApplyConfiguration {
	config := corev1ac.Secret(name, p.cluster.GetNamespace()).
		WithLabels(map[string]string{raycluster.LabelClusterName: p.cluster.GetName()})
	if data != nil {
		config.WithData(data)
	}
	if kind != "" {
		config.WithType(kind)
	}
	if annotation != "" {
		config.WithAnnotations(map[string]string{AnnotationSummary: annotation})
	}
	return config
}

// hashNames returns a hash of names and addresses in any order. The same names always have the same hash, unlike in package apply.
func hashNames(names []string, addresses []netip.Addr) string {
	all := slices.Clone(names)
	for _, a := range addresses {
		all = append(all, a.Unmap().String())
	}
	slices.Sort(all)
	return hashContent([]byte(strings.Join(slices.Compact(all), "\n")))
}

func hashContent(content []byte) string {
	sum := sha256.Sum256(content)
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

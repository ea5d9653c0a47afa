package certificates

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/odh-platform/odh-platform-operator/pkg/certs"
	"github.com/odh-platform/odh-platform-operator/pkg/raycluster"
)

// Reasons of Events. The note of the Event states the cause.
const (
	reasonAuthority     = "CertificateAuthority"
	reasonRenewed       = "CertificateRenewed"
	reasonNotUsable     = "CertificateNotUsable"
	reasonExpiring      = "CertificateExpiring"
	reasonTooMany       = "CertificateTooManyPods"
	reasonNoCertManager = "CertificateIssuerMissing"
)

const (
	// expiryWarning is the remaining lifetime of a foreign CA below which a Warning is recorded.
	expiryWarning   = 30 * 24 * time.Hour
	podIssuerAdvice = "annotate a new cluster with " + raycluster.AnnotationCertificates + ": " + string(raycluster.IssuerPod)
)

// reconcileOperatorCA checks the CA and its certificates. It reads the key of the CA only if the CA or a certificate is due.
func (r *reconciliation) reconcileOperatorCA(ctx context.Context) error {
	ca, upToDate, err := r.isUpToDate(ctx, leafPlan{role: roleAuthority, secret: r.plan.authoritySecret})
	if err != nil {
		return err
	}
	due, err := r.dueLeaves(ctx, ca)
	if err != nil || upToDate && len(due) == 0 {
		return err
	}
	root, err := r.ensureRoot(ctx)
	if err != nil || root == nil {
		return err
	}
	for _, leaf := range r.plan.leaves {
		if !slices.Contains(due, leaf.secret) && r.memory.secrets[leaf.secret].authorityHash == hashContent(root.Data[raycluster.KeyCACert]) {
			continue
		}
		ensure := func(data map[string][]byte) (certs.Leaf, error) { return root.EnsureLeaf(data, leaf.options, r.now) }
		if err := r.reconcileLeaf(ctx, leaf.secret, leaf.role, ensure); err != nil {
			return err
		}
	}
	return nil
}

// dueLeaves returns the Secrets of certificates that must be checked, such as those of another CA. A certificate that only lacks names or
// addresses is due when addressBatchWindow has passed since it was issued.
func (r *reconciliation) dueLeaves(ctx context.Context, ca secretState) ([]string, error) {
	var due []string
	for _, leaf := range r.plan.leaves {
		state, upToDate, err := r.isUpToDate(ctx, leaf)
		if err != nil {
			return nil, err
		}
		r.reportExcludedAddresses(leaf)
		switch batchEnd := state.issuedAt.Add(addressBatchWindow); {
		case upToDate && state.foreign:
		case upToDate && ca.authorityHash != "" && state.authorityHash != ca.authorityHash:
			due = append(due, leaf.secret)
		case upToDate && state.covers(leaf.options):
		case upToDate && r.now.Before(batchEnd):
			r.requeueAt(batchEnd)
		default:
			due = append(due, leaf.secret)
		}
	}
	return due, nil
}

// reportExcludedAddresses reports addresses that exceed maxAddresses, once for each increase.
func (r *reconciliation) reportExcludedAddresses(leaf leafPlan) {
	if r.memory.setReported(leaf.role, leaf.excludedAddresses) {
		r.recordEvent(corev1.EventTypeWarning, reasonTooMany,
			"the certificate of role %s can contain %d addresses; %d more do not fit, so their pods wait: %s", leaf.role, maxAddresses, leaf.excludedAddresses, podIssuerAdvice)
	}
}

// ensureRoot returns the CA, and creates or rotates it if due. It returns nil if no CA can sign yet.
func (r *reconciliation) ensureRoot(ctx context.Context) (*certs.Root, error) {
	live, err := r.getSecret(ctx, r.plan.authoritySecret)
	if err != nil {
		return nil, err
	}
	if live != nil && live.DeletionTimestamp != nil {
		return nil, nil // the event of its deletion requeues the RayCluster
	}
	if !r.isWritable(live) {
		return r.loadForeignCA(live), nil
	}
	data, err := r.authorityData(ctx, live)
	if err != nil {
		return nil, err
	}
	root, err := certs.EnsureRoot(data, r.plan.root, r.now)
	if err != nil {
		return nil, fmt.Errorf("ensuring the CA in Secret %s: %w", r.key(r.plan.authoritySecret), err)
	}
	err = r.applySecret(ctx, r.plan.authoritySecret, "", root.Data,
		secretState{role: roleAuthority, checkAt: root.Next, expiresAt: root.Expires, authorityHash: hashContent(root.Data[raycluster.KeyCACert])})
	if err != nil {
		return nil, err
	}
	r.reportRootChange(root)
	return &root, nil
}

// authorityData returns the data of the CA. If the CA Secret was deleted, it returns the CA certificate from the Secret of a leaf, so that
// pods still trust that CA.
func (r *reconciliation) authorityData(ctx context.Context, live *corev1.Secret) (map[string][]byte, error) {
	if live != nil {
		return live.Data, nil
	}
	for _, leaf := range r.plan.leaves {
		secret, err := r.getSecret(ctx, leaf.secret)
		if err != nil {
			return nil, err
		}
		if secret != nil && r.isWritable(secret) && len(secret.Data[raycluster.KeyCACert]) > 0 {
			return map[string][]byte{raycluster.KeyCACert: secret.Data[raycluster.KeyCACert]}, nil
		}
	}
	return nil, nil
}

func (r *reconciliation) reportRootChange(root certs.Root) {
	switch root.Step {
	case certs.Unchanged:
	case certs.Repaired:
		r.recordEvent(corev1.EventTypeWarning, reasonAuthority, "a new CA replaces the previous one, because %s; restart running pods, which do not trust it", root.Cause)
	case certs.Announced:
		r.recordEvent(corev1.EventTypeNormal, reasonAuthority, "the CA is rotated at %s: the next CA is published, and pods that start from now on trust both CAs",
			root.Next.Format(time.RFC3339))
	case certs.Replaced:
		r.recordEvent(corev1.EventTypeNormal, reasonAuthority, "the CA was rotated: restart pods that started before the new CA was published, before their certificates expire")
	default:
		r.recordEvent(corev1.EventTypeNormal, reasonAuthority, "CA %s, because %s; it is valid until %s", root.Step, root.Cause, root.Expires.Format(time.RFC3339))
	}
}

// loadForeignCA returns the CA of a foreign Secret, or nil if the CA is not usable, which it reports once in an Event.
func (r *reconciliation) loadForeignCA(live *corev1.Secret) *certs.Root {
	root, err := certs.LoadRoot(live.Data, r.now)
	r.warnOnce("unusable CA", err != nil, reasonNotUsable,
		"Secret %s was not created by this operator and cannot be used: %v; fix it, or delete it so that the operator creates one",
		live.Name, err)
	if err != nil {
		r.requeueAt(r.now.Add(foreignRecheck))
		r.memory.remove(live.Name)
		return nil
	}
	r.warnOnce("expiring CA", root.Expires.Sub(r.now) < expiryWarning, reasonExpiring,
		"the CA in Secret %s, which was not created by this operator, expires at %s: renew it", live.Name, root.Expires.Format(time.RFC3339))
	hash := hashContent(root.Data[raycluster.KeyCACert])
	r.memory.store(live.Name, secretState{role: roleAuthority, foreign: true, checkAt: r.now.Add(foreignRecheck), expiresAt: root.Expires, authorityHash: hash})
	return &root
}

// reconcileLeaf checks one certificate and issues it if needed. It skips terminating and foreign Secrets.
func (r *reconciliation) reconcileLeaf(ctx context.Context, secret, role string, ensure func(data map[string][]byte) (certs.Leaf, error)) error {
	live, err := r.getSecret(ctx, secret)
	var data map[string][]byte
	switch {
	case err != nil:
		return err
	case live == nil:
	case live.DeletionTimestamp != nil:
		return nil
	case !r.isWritable(live):
		r.memory.store(secret, secretState{role: role, foreign: true, checkAt: r.now.Add(foreignRecheck), authority: live.Data[raycluster.KeyCACert]})
		return nil
	default:
		data = live.Data
	}
	leaf, err := ensure(data)
	if err != nil {
		return fmt.Errorf("ensuring the certificate in Secret %s: %w", r.key(secret), err)
	}
	s := secretState{
		role: role, checkAt: leaf.Next, expiresAt: leaf.Expires, authorityHash: hashContent(leaf.Data[raycluster.KeyCACert]),
		names: sets.New(leaf.Names...), addresses: sets.New(leaf.Addresses...),
	}
	if role == roleProxy {
		s.authority = leaf.Data[raycluster.KeyCACert]
	}
	if leaf.Cause != "" {
		s.issuedAt = r.now
	}
	if err := r.applySecret(ctx, secret, corev1.SecretTypeTLS, leaf.Data, s); err != nil {
		return err
	}
	if leaf.Renewed {
		r.recordEvent(corev1.EventTypeNormal, reasonRenewed, "the certificate of role %s was renewed, because %s; it is valid until %s. Running pods keep the certificate that they read at start: "+
			"restart them before that certificate expires", role, leaf.Cause, leaf.Expires.Format(time.RFC3339))
	}
	return nil
}

// reconcileProxy issues the certificate of the dashboard's proxy, unless the platform issues it. The proxy reloads it without a restart.
func (r *reconciliation) reconcileProxy(ctx context.Context) error {
	if r.plan.proxySecret == "" {
		return nil
	}
	leaf := leafPlan{role: roleProxy, secret: r.plan.proxySecret, options: certs.LeafOptions{DNSNames: r.plan.serving.DNSNames}}
	state, upToDate, err := r.isUpToDate(ctx, leaf)
	unknownAuthority := state.authority == nil && !state.foreign
	if err == nil && (!upToDate || unknownAuthority && r.plan.publishesAuthority) {
		err = r.reconcileLeaf(ctx, r.plan.proxySecret, roleProxy, func(data map[string][]byte) (certs.Leaf, error) {
			return certs.EnsureServing(data, r.plan.serving, r.now)
		})
	}
	s, known := r.memory.secrets[r.plan.proxySecret]
	switch {
	case !known:
	case s.foreign:
		r.memory.trust = certs.Trust{}
	case s.authority != nil:
		r.memory.trust.Update(s.authority, r.now)
		r.requeueAt(r.now.Add(r.memory.trust.RequeueAfter(s.checkAt.Sub(r.now), r.now)))
	}
	return err
}

package certificates

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/odh-platform/odh-platform-operator/pkg/certs"
	"github.com/odh-platform/odh-platform-operator/pkg/raycluster"
)

// Reasons of Events. What follows in the note is why.
const (
	reasonAuthority     = "CertificateAuthority"
	reasonRenewed       = "CertificateRenewed"
	reasonNotUsable     = "CertificateNotUsable"
	reasonExpiring      = "CertificateExpiring"
	reasonTooMany       = "CertificateTooManyPods"
	reasonNoCertManager = "CertificateIssuerMissing"
)

const (
	// expiryWarning is how long before its end there is a warning about a foreign CA.
	expiryWarning    = 30 * 24 * time.Hour
	advisePodIssuing = "annotate a new cluster with " + raycluster.AnnotationCertificates + ": " + string(raycluster.IssuerPod)
)

// keepAuthority looks at the CA and the certificates that it signs. The key of the CA is read only when one has to be written.
func (p *reconciliation) keepAuthority(ctx context.Context) error {
	_, good, err := p.isGood(ctx, p.plan.authority)
	if err != nil {
		return err
	}
	due, err := p.dueLeaves(ctx)
	if err != nil || good && len(due) == 0 {
		return err
	}
	root, err := p.root(ctx)
	if err != nil || root == nil {
		return err
	}
	for _, leaf := range p.plan.leaves {
		if !slices.Contains(due, leaf.secret) && bytes.Equal(p.memory.slots[leaf.secret].authority, root.Data[raycluster.KeyCACert]) {
			continue
		}
		keep := func(data map[string][]byte) (certs.Leaf, error) { return root.EnsureLeaf(data, leaf.options, p.now) }
		if err := p.keepLeaf(ctx, leaf.secret, leaf.role, keep); err != nil {
			return err
		}
	}
	return nil
}

// dueLeaves returns the Secrets of certificates that have to be checked. Addresses that are all that is missing wait for others to
// join them, if a certificate was written a moment ago.
func (p *reconciliation) dueLeaves(ctx context.Context) ([]string, error) {
	var due []string
	for _, leaf := range p.plan.leaves {
		known, good, err := p.isGood(ctx, leaf.secret)
		if err != nil {
			return nil, err
		}
		p.tellOfRoom(leaf)
		switch wait := known.issued.Add(addressBatchWindow); {
		case good && (known.foreign || known.covers(leaf.options)):
		case good && p.now.Before(wait):
			p.comeBack(wait)
		default:
			due = append(due, leaf.secret)
		}
	}
	return due, nil
}

// tellOfRoom says once for each number of pods that there is no room for some.
func (p *reconciliation) tellOfRoom(leaf leafPlan) {
	if p.memory.isNews(leaf.role, leaf.left) {
		p.tell(corev1.EventTypeWarning, reasonTooMany,
			"the certificate of role %s can contain %d addresses; %d more do not fit, so their pods wait: %s", leaf.role, maxAddresses, leaf.left, advisePodIssuing)
	}
}

// root reads the CA and does what is due. It returns nil when there is none that can sign, after telling why.
func (p *reconciliation) root(ctx context.Context) (*certs.Root, error) {
	live, err := p.read(ctx, p.plan.authority)
	if err != nil {
		return nil, err
	}
	if live != nil && live.DeletionTimestamp != nil {
		return nil, nil // its end brings us back
	}
	if !p.isOurs(live) {
		return p.foreignRoot(live), nil
	}
	data, err := p.knownAuthority(ctx, live)
	if err != nil {
		return nil, err
	}
	root, err := certs.EnsureRoot(data, p.plan.root, p.now)
	if err != nil {
		return nil, fmt.Errorf("keeping the CA in Secret %s: %w", p.key(p.plan.authority), err)
	}
	err = p.write(ctx, p.plan.authority, "", root.Data, slot{role: roleAuthority, next: root.Next, expires: root.Expires})
	if err != nil {
		return nil, err
	}
	p.tellOfRoot(root)
	return &root, nil
}

// knownAuthority returns the data of the CA. Where the Secret is gone, what the pods trust stays trusted.
func (p *reconciliation) knownAuthority(ctx context.Context, live *corev1.Secret) (map[string][]byte, error) {
	if live != nil {
		return live.Data, nil
	}
	for _, leaf := range p.plan.leaves {
		secret, err := p.read(ctx, leaf.secret)
		if err != nil {
			return nil, err
		}
		if secret != nil && p.isOurs(secret) && len(secret.Data[raycluster.KeyCACert]) > 0 {
			return map[string][]byte{raycluster.KeyCACert: secret.Data[raycluster.KeyCACert]}, nil
		}
	}
	return nil, nil
}

func (p *reconciliation) tellOfRoot(root certs.Root) {
	switch root.Step {
	case certs.Unchanged:
	case certs.Repaired:
		p.tell(corev1.EventTypeWarning, reasonAuthority, "a new CA signs, because %s; pods that run trust it after a restart", root.Cause)
	case certs.Announced:
		p.tell(corev1.EventTypeNormal, reasonAuthority, "the next CA is published beside the one that signs until %s; pods that start from now on trust both",
			root.Next.Format(time.RFC3339))
	case certs.Replaced:
		p.tell(corev1.EventTypeNormal, reasonAuthority, "the next CA signs now; pods that started before it was published must be restarted before their certificates expire")
	default:
		p.tell(corev1.EventTypeNormal, reasonAuthority, "CA %s, because %s; it is valid until %s", root.Step, root.Cause, root.Expires.Format(time.RFC3339))
	}
}

// foreignRoot uses the CA of a foreign Secret.
func (p *reconciliation) foreignRoot(live *corev1.Secret) *certs.Root {
	_, known := p.memory.slots[live.Name]
	root, err := certs.LoadRoot(live.Data, p.now)
	if err != nil {
		p.tell(corev1.EventTypeWarning, reasonNotUsable,
			"Secret %s was not made by this operator and cannot be used: %v; fix it, or delete it so that the operator creates one", live.Name, err)
		p.comeBack(p.now.Add(foreignRecheck))
		delete(p.memory.slots, live.Name)
		return nil
	}
	if left := root.Expires.Sub(p.now); !known && left < expiryWarning {
		p.tell(corev1.EventTypeWarning, reasonExpiring, "the CA in Secret %s, which was not made by this operator, expires at %s", live.Name, root.Expires.Format(time.RFC3339))
	}
	p.memory.store(live.Name, slot{role: roleAuthority, foreign: true, next: p.now.Add(foreignRecheck), expires: root.Expires})
	return &root
}

// keepLeaf looks at one certificate and writes it if it will not do. Not to be kept are one that is on its way out and one of a user who
// brings certificates.
func (p *reconciliation) keepLeaf(ctx context.Context, secret, role string, keep func(data map[string][]byte) (certs.Leaf, error)) error {
	live, err := p.read(ctx, secret)
	var data map[string][]byte
	switch {
	case err != nil:
		return err
	case live == nil:
	case live.DeletionTimestamp != nil:
		return nil
	case !p.isOurs(live):
		p.memory.store(secret, slot{role: role, foreign: true, next: p.now.Add(foreignRecheck), authority: live.Data[raycluster.KeyCACert]})
		return nil
	default:
		data = live.Data
	}
	leaf, err := keep(data)
	if err != nil {
		return fmt.Errorf("keeping the certificate in Secret %s: %w", p.key(secret), err)
	}
	s := slot{
		role: role, next: leaf.Next, expires: leaf.Expires, authority: leaf.Data[raycluster.KeyCACert],
		names: sets.New(leaf.Names...), addresses: sets.New(leaf.Addresses...),
	}
	if leaf.Cause != "" {
		s.issued = p.now
	}
	if err := p.write(ctx, secret, corev1.SecretTypeTLS, leaf.Data, s); err != nil {
		return err
	}
	if leaf.Renewed {
		p.tell(corev1.EventTypeNormal, reasonRenewed, "the certificate of role %s was renewed, because %s; it is valid until %s. Running pods keep the one that they read when they started: "+
			"restart them before that one expires", role, leaf.Cause, leaf.Expires.Format(time.RFC3339))
	}
	return nil
}

// keepProxy issues the certificate of the dashboard's proxy where the platform does not. The proxy reads a new one without a restart.
func (p *reconciliation) keepProxy(ctx context.Context) error {
	if p.plan.proxy == "" {
		return nil
	}
	_, good, err := p.isGood(ctx, p.plan.proxy)
	if !good && err == nil {
		err = p.keepLeaf(ctx, p.plan.proxy, roleProxy, func(data map[string][]byte) (certs.Leaf, error) {
			return certs.EnsureServing(data, p.plan.serving, p.now)
		})
	}
	if s, known := p.memory.slots[p.plan.proxy]; known && s.foreign {
		p.memory.trust = certs.Trust{}
	} else if known {
		p.memory.trust.Update(s.authority, p.now)
		p.comeBack(p.now.Add(p.memory.trust.RequeueAfter(s.next.Sub(p.now), p.now)))
	}
	return err
}

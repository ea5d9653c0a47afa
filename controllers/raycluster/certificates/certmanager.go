package certificates

import (
	"context"
	"crypto/x509"
	"maps"
	"net/netip"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/certs"
	"github.com/odh-platform/odh-platform-operator/pkg/config"
	"github.com/odh-platform/odh-platform-operator/pkg/names"
	"github.com/odh-platform/odh-platform-operator/pkg/raycluster"
)

// annotationIssued is set by cert-manager on a Secret; its value is the name of the Certificate.
const annotationIssued = "cert-manager.io/certificate-name"

// reconcileCertManager applies Certificates. The Secrets of cert-manager have the same keys as those of the operator, so pods do not differ.
// The CA Secret gets the issued ca.crt but no ca.key, because the CA of cert-manager is not a CA of the RayCluster.
func (r *reconciliation) reconcileCertManager(ctx context.Context) error {
	if err := r.Applier.Apply(ctx, r.cluster, r.plan.certificates()); err != nil {
		return err
	}
	_, published, err := r.isUpToDate(ctx, leafPlan{role: roleAuthority, secret: r.plan.authoritySecret})
	if err != nil {
		return err
	}
	for _, leaf := range r.plan.leaves {
		if err := r.recordIssued(ctx, leaf, published || leaf.role != roleHead); err != nil {
			return err
		}
		r.reportExpired(leaf)
	}
	return nil
}

// reportExpired reports once that a certificate has expired and was not renewed.
func (r *reconciliation) reportExpired(leaf leafPlan) {
	expiresAt := r.memory.secrets[leaf.secret].expiresAt
	r.warnOnce("expired "+leaf.role, !expiresAt.IsZero() && !r.now.Before(expiresAt), reasonNotUsable,
		"the certificate of role %s expired at %s and was not renewed: read the status of Certificate %s, and correct its issuer",
		leaf.role, expiresAt.Format(time.RFC3339), leaf.secret)
}

// recordIssued stores the state of an issued certificate, publishes the head's CA, and makes the RayCluster own an unowned Secret.
// published reports whether the CA Secret needs no check.
func (r *reconciliation) recordIssued(ctx context.Context, leaf leafPlan, published bool) error {
	state, upToDate, err := r.isUpToDate(ctx, leaf)
	if err != nil || upToDate && published && state.covers(leaf.options) {
		return err
	}
	live, err := r.getSecret(ctx, leaf.secret)
	if err != nil || live == nil || live.Annotations[annotationIssued] != leaf.secret { // the event of the issued Secret requeues the RayCluster
		return err
	}
	issued := certs.FirstCertificate(live.Data[corev1.TLSCertKey])
	if issued == nil {
		return nil
	}
	state = stateOfIssued(leaf, issued)
	if r.isWritable(live) {
		err = r.applySecret(ctx, leaf.secret, "", nil, state)
	} else { // for example, cert-manager sets owner references
		state.uid, state.version = live.UID, live.ResourceVersion
		r.memory.store(leaf.secret, state)
	}
	if err != nil || leaf.role != roleHead {
		return err
	}
	return r.publishBundle(ctx, live.Data[raycluster.KeyCACert], state)
}

// stateOfIssued returns the state of a certificate of cert-manager. IP addresses among the desired DNS names count as issued, because a
// Certificate cannot request them.
func stateOfIssued(leaf leafPlan, issued *x509.Certificate) secretState {
	s := secretState{role: leaf.role, checkAt: issued.NotAfter, expiresAt: issued.NotAfter, names: sets.New(issued.DNSNames...), addresses: sets.New[netip.Addr]()}
	for _, name := range leaf.options.DNSNames {
		if _, err := netip.ParseAddr(name); err == nil {
			s.names.Insert(name)
		}
	}
	for _, ip := range issued.IPAddresses {
		if a, ok := netip.AddrFromSlice(ip); ok {
			s.addresses.Insert(a.Unmap())
		}
	}
	return s
}

// publishBundle writes the CA of the head's certificate into the Secret that pods and clients read. It leaves a foreign Secret as it is,
// and reports once that pods wait for a CA that it cannot write.
func (r *reconciliation) publishBundle(ctx context.Context, bundle []byte, head secretState) error {
	name := r.plan.authoritySecret
	live, err := r.getSecret(ctx, name)
	if err != nil {
		return err
	}
	canPublish := r.isWritable(live) && len(bundle) > 0
	r.warnOnce("missing CA", !canPublish && (live == nil || len(live.Data[raycluster.KeyCACert]) == 0), reasonNotUsable,
		"Secret %s has no %s, so the pods wait: the issuer returned no CA, or another client created the Secret; add the CA of the issuer under that key",
		name, raycluster.KeyCACert)
	if !canPublish {
		r.memory.store(name, secretState{role: roleAuthority, foreign: true, checkAt: r.now.Add(foreignRecheck)})
		return nil
	}
	return r.applySecret(ctx, name, "", map[string][]byte{raycluster.KeyCACert: bundle},
		secretState{role: roleAuthority, checkAt: head.checkAt, expiresAt: head.expiresAt})
}

// buildCertificate returns the Certificate of a role. Names and addresses are sorted for a stable order.
func buildCertificate(c raycluster.Cluster, leaf leafPlan, issuer config.Issuer) runtime.ApplyConfiguration {
	var addresses []any
	for _, a := range slices.SortedFunc(slices.Values(leaf.options.Addresses), netip.Addr.Compare) {
		addresses = append(addresses, a.String())
	}
	dns := []any{}
	for _, name := range slices.Sorted(slices.Values(leaf.options.DNSNames)) {
		if _, err := netip.ParseAddr(name); err != nil { // cert-manager rejects addresses in dnsNames
			dns = append(dns, name)
		}
	}
	algorithm, size := string(certs.ECDSA), int64(256)
	if leaf.options.Algorithm == certs.RSA {
		algorithm, size = string(certs.RSA), 2048
	}
	label := map[string]any{raycluster.LabelClusterName: c.Name()}
	secretLabels := maps.Clone(label)
	for key, value := range names.Labels(raycluster.ComponentName) {
		secretLabels[key] = value
	}
	u := &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"name": leaf.secret, "namespace": c.Namespace(), "labels": label},
		"spec": map[string]any{
			"secretName": leaf.secret, "secretTemplate": map[string]any{"labels": secretLabels},
			"commonName": leaf.options.CommonName, "dnsNames": dns, "ipAddresses": addresses,
			"duration": leaf.options.Lifetime.String(), "renewBefore": (leaf.options.Lifetime * 2 / 3).String(),
			"usages":     []any{"digital signature", "key encipherment", "server auth", "client auth"},
			"privateKey": map[string]any{"algorithm": algorithm, "size": size, "encoding": "PKCS8", "rotationPolicy": "Always"},
			"issuerRef":  map[string]any{"name": issuer.Name, "kind": issuer.Kind, "group": issuer.Group},
		},
	}}
	u.SetGroupVersionKind(capability.Certificate)
	return client.ApplyConfigurationFromUnstructured(u)
}

package certificates

import (
	"context"
	"crypto/x509"
	"maps"
	"net/netip"
	"slices"

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
	for _, leaf := range r.plan.leaves {
		if err := r.recordIssued(ctx, leaf); err != nil {
			return err
		}
	}
	return nil
}

// recordIssued stores the state of an issued certificate, publishes the head's CA, and makes the RayCluster own an unowned Secret.
func (r *reconciliation) recordIssued(ctx context.Context, leaf leafPlan) error {
	state, upToDate, err := r.isUpToDate(ctx, leaf)
	if err != nil || upToDate && state.covers(leaf.options) {
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
	if bundle := live.Data[raycluster.KeyCACert]; err == nil && len(bundle) > 0 && leaf.role == roleHead {
		return r.publishBundle(ctx, bundle, state)
	}
	return err
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

// publishBundle writes the CA of the head's certificate into the Secret that pods and clients read.
func (r *reconciliation) publishBundle(ctx context.Context, bundle []byte, head secretState) error {
	live, err := r.getSecret(ctx, r.plan.authoritySecret)
	if err != nil || !r.isWritable(live) {
		return err
	}
	return r.applySecret(ctx, r.plan.authoritySecret, "", map[string][]byte{raycluster.KeyCACert: bundle},
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

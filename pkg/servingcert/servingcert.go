// Package servingcert manages the serving certificates of components on clusters whose platform issues none. It issues certificates into
// Secrets and renews them. Foreign certificates are not written; a condition reports when they expire.
package servingcert

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/certs"
	"github.com/odh-platform/odh-platform-operator/pkg/reconciler"
	"github.com/odh-platform/odh-platform-operator/pkg/status/conditions"
)

const (
	// Condition is False on an owner while its foreign certificate expires soon, and absent otherwise.
	Condition = "CertificateReady"
	// ReasonExpires is the reason for a foreign certificate that expires soon.
	ReasonExpires = "CertificateExpires"

	// Lifetime is the validity of a certificate and its own CA. It is long because some servers restart for a renewal.
	Lifetime = 365 * 24 * time.Hour
	// expiryWarning is how long before its expiry a foreign certificate is reported. It is shorter for short-lived certificates.
	expiryWarning = 14 * 24 * time.Hour
)

// Spec describes the Secret with a serving certificate.
type Spec struct {
	// Namespace and Name are the key of the Secret.
	Namespace, Name string
	// External reports whether another controller or a user creates the Secret. It is not written, and only its expiry is checked.
	External bool
	// CACommonName is the common name of the CA. A certificate of another CA in a managed Secret is foreign.
	CACommonName string
	// Service is the name of the Service of the certificate, in the same namespace.
	Service string
	// Labels are additional labels of the Secret.
	Labels map[string]string
	// DropOwnerReferences reports whether an owner reference is removed, see apply.Object.
	DropOwnerReferences func(metav1.OwnerReference) bool
}

// certificateState is the state of one version of a Secret.
type certificateState struct {
	uid      types.UID
	version  string
	external bool
	// renewAt is when to renew a certificate or to report a foreign one; zero for never.
	renewAt time.Time
	foreign bool
	// expires is the expiry of a foreign certificate.
	expires time.Time
	// trust holds the CAs of an issued certificate.
	trust certs.Trust
}

// Issuer issues the certificates of one component, one per owner. All fields but Condition are required.
type Issuer struct {
	// Cached holds the metadata of Secrets; Live reads from the API server.
	Cached, Live client.Reader
	Applier      *apply.Applier
	Clock        clock.PassiveClock
	// Condition is the condition type; empty for the constant Condition. An owner with two Issuers needs two types.
	Condition string

	owners reconciler.UIDMap[certificateState]
}

// Ensure issues or renews the certificate of an owner. It does not write a Secret of another owner, or one in which a user replaced the
// certificate. Condition reports when such a certificate expires. Servers reload renewed certificates. Errors of writes are those of
// apply.Applier.
func (k *Issuer) Ensure(ctx context.Context, owner reconciler.Object, spec Spec) error {
	key := client.ObjectKey{Namespace: spec.Namespace, Name: spec.Name}
	metadata, err := capability.GetMetadata(ctx, k.Cached, corev1.SchemeGroupVersion.WithKind("Secret"), key)
	switch {
	case err != nil:
		return err
	case metadata == nil && spec.External:
		k.Release(owner)
		return nil
	case metadata == nil || !k.isUpToDate(owner, metadata, spec):
		if err := k.ensureSecret(ctx, owner, key, spec); err != nil {
			return err
		}
	}
	k.setCondition(owner, spec)
	return nil
}

// Release deletes state and condition of an owner that needs no certificate.
func (k *Issuer) Release(owner reconciler.Object) {
	k.Forget(owner.GetUID())
	conditions.Remove(owner.ConditionsRef(), k.conditionType())
}

func (k *Issuer) conditionType() string { return cmp.Or(k.Condition, Condition) }

// Forget deletes the state of a deleted owner.
func (k *Issuer) Forget(owner types.UID) { k.owners.Delete(owner) }

// CABundle returns the PEM certificates of the CAs that issued the certificate of an owner; nil for a foreign certificate.
func (k *Issuer) CABundle(owner types.UID) []byte {
	state, _ := k.owners.Get(owner)
	return state.trust.Bundle(k.Clock.Now())
}

// AwaitRenewal returns a *reconciler.Wait until the next renewal or report for an owner; nil for none. It belongs in the last phase, since
// each reconcile calls Ensure anyway.
func (k *Issuer) AwaitRenewal(owner types.UID) error {
	state, ok := k.owners.Get(owner)
	remaining := state.trust.RequeueAfter(state.renewAt.Sub(k.Clock.Now()), k.Clock.Now())
	if !ok || state.foreign && (state.renewAt.IsZero() || remaining <= 0) {
		return nil // already reported, or never expires
	}
	return &reconciler.Wait{For: "the serving certificate to be due", Retry: max(remaining, time.Second)}
}

// isUpToDate reports whether this version of the Secret was read and needs no renewal.
func (k *Issuer) isUpToDate(owner, metadata metav1.Object, spec Spec) bool {
	state, ok := k.owners.Get(owner.GetUID())
	return ok && state.uid == metadata.GetUID() && state.version == metadata.GetResourceVersion() && state.external == spec.External &&
		(state.foreign || k.Clock.Now().Before(state.renewAt))
}

// ensureSecret reads the Secret from the API server, since the cache may be stale after a write, and applies it if certificate, owner or
// labels are not as desired.
func (k *Issuer) ensureSecret(ctx context.Context, owner client.Object, key client.ObjectKey, spec Spec) error {
	live := &corev1.Secret{}
	err := k.Live.Get(ctx, key, live)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading Secret %s: %w", key, err)
	}
	exists := err == nil
	pair, _ := tls.X509KeyPair(live.Data[corev1.TLSCertKey], live.Data[corev1.TLSPrivateKeyKey])
	// A user may replace the certificate in a managed Secret. An unreadable certificate is issued again.
	replaced := pair.Leaf != nil && pair.Leaf.Issuer.CommonName != spec.CACommonName
	if exists && (spec.External || !k.Applier.IsManaged(live) || replaced) {
		k.owners.Set(owner.GetUID(), newForeignState(live, pair.Leaf, spec))
		return nil
	}
	if live.DeletionTimestamp != nil || !exists && spec.External {
		return nil // the next event of the Secret starts a reconcile
	}
	serving, err := certs.EnsureServing(live.Data, certs.ServingOptions{
		CACommonName: spec.CACommonName, DNSNames: DNSNames(spec.Service, spec.Namespace), Lifetime: Lifetime,
	}, k.Clock.Now())
	if err != nil {
		return fmt.Errorf("issuing the serving certificate: %w", err)
	}
	if serving.Cause != "" || !metav1.IsControlledBy(live, owner) || !apply.HasComponentLabels(live, k.Applier.Component) || !labels.SelectorFromSet(spec.Labels).Matches(labels.Set(live.Labels)) {
		live = &corev1.Secret{} // the new version is read once
		secret := corev1ac.Secret(spec.Name, spec.Namespace).WithLabels(spec.Labels).WithType(corev1.SecretTypeTLS).WithData(serving.Data)
		if err := k.Applier.Apply(ctx, owner, apply.Desired{{Config: secret, DropOwnerReferences: spec.DropOwnerReferences}}); err != nil {
			return err
		}
	}
	state, _ := k.owners.Get(owner.GetUID())
	state = certificateState{uid: live.UID, version: live.ResourceVersion, renewAt: serving.Next, trust: state.trust}
	state.trust.Update(serving.Data[corev1.ServiceAccountRootCAKey], k.Clock.Now())
	k.owners.Set(owner.GetUID(), state)
	return nil
}

// newForeignState returns the state of a foreign certificate. An unreadable certificate has no expiry.
func newForeignState(s *corev1.Secret, leaf *x509.Certificate, spec Spec) certificateState {
	state := certificateState{uid: s.UID, version: s.ResourceVersion, external: spec.External, foreign: true}
	if leaf != nil {
		lifetime := leaf.NotAfter.Sub(leaf.NotBefore)
		state.expires, state.renewAt = leaf.NotAfter, leaf.NotAfter.Add(-min(expiryWarning, lifetime/10))
	}
	return state
}

// setCondition sets Condition while a foreign certificate expires soon.
func (k *Issuer) setCondition(owner reconciler.Object, spec Spec) {
	state, _ := k.owners.Get(owner.GetUID())
	if !state.foreign || state.renewAt.IsZero() || k.Clock.Now().Before(state.renewAt) {
		conditions.Remove(owner.ConditionsRef(), k.conditionType())
		return
	}
	text := fmt.Sprintf("The certificate in Secret %s, which the operator did not issue, is valid until %s: renew it", spec.Name, state.expires.UTC().Format(time.RFC3339))
	if !spec.External {
		text += "; or delete the Secret, and the operator issues a certificate"
	}
	conditions.Set(owner.ConditionsRef(), k.conditionType(), metav1.ConditionFalse, ReasonExpires, text, owner.GetGeneration())
}

// DNSNames returns the names of a Service inside the cluster, and localhost for a forwarded port.
func DNSNames(service, namespace string) []string {
	local := service + "." + namespace
	return []string{service, local, local + ".svc", local + ".svc.cluster.local", "localhost"}
}

// Package servingcert manages the serving certificates of components. Where neither the platform nor a user provides a certificate, it
// issues one into a Secret and renews it. Foreign certificates are not written; a condition reports when they expire.
package servingcert

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/certs"
	"github.com/odh-platform/odh-platform-operator/pkg/objectmeta"
	"github.com/odh-platform/odh-platform-operator/pkg/reconciler"
	"github.com/odh-platform/odh-platform-operator/pkg/status/conditions"
)

const (
	// Condition is False on an owner while a foreign certificate of a server expires soon, and absent otherwise.
	Condition = "CertificateReady"
	// DatabaseCondition is Condition for the certificate of a database.
	DatabaseCondition = "DatabaseCertificateReady"
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
	// External reports whether another controller or a user creates the Secret. Such a Secret is not written; only its expiry is checked.
	External bool
	// CACommonName is the common name of the CA. A certificate of another CA in a managed Secret is foreign.
	CACommonName string
	// Service is the name of the Service of the certificate, in the same namespace.
	Service string
	// Labels are additional labels of the Secret.
	Labels map[string]string
	// Ownership is the kind of owner reference of the Secret: Controlled or Unowned.
	Ownership apply.Ownership
	// DropOwnerReferences reports whether an owner reference is removed, see apply.Object.
	DropOwnerReferences func(metav1.OwnerReference) bool
	// Condition is the type of the condition; empty for the constant Condition.
	Condition string
}

func (s *Spec) condition() string { return cmp.Or(s.Condition, Condition) }

// Secret returns the desired Secret with the given data.
func (s *Spec) Secret(data map[string][]byte) apply.Object {
	secret := corev1ac.Secret(s.Name, s.Namespace).WithLabels(s.Labels).WithType(corev1.SecretTypeTLS).WithData(data)
	return apply.Object{Config: secret, Ownership: s.Ownership, DropOwnerReferences: s.DropOwnerReferences}
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

// Issuer issues the certificates of one component. All fields are required.
type Issuer struct {
	// Cached holds the metadata of Secrets; Live reads from the API server.
	Cached, Live client.Reader
	Applier      *apply.Applier
	Clock        clock.PassiveClock

	// owners holds the states of the certificates of each owner, by the name of their Secret.
	owners reconciler.UIDMap[map[string]certificateState]
}

// Ensure issues or renews the certificates of an owner. It does not write a Secret that the component does not manage, or in which a user
// replaced the certificate. The condition of the spec reports when such a certificate expires. State and conditions of other certificates
// are deleted. Errors of writes are those of apply.Applier.
func (i *Issuer) Ensure(ctx context.Context, owner reconciler.Object, specs ...Spec) error {
	if err := i.EnsureSecrets(ctx, owner, specs...); err != nil {
		return err
	}
	states, _ := i.owners.Get(owner.GetUID())
	for _, conditionType := range []string{Condition, DatabaseCondition} {
		i.setCondition(owner, conditionType, specs, states)
	}
	return nil
}

// EnsureSecrets is Ensure for an owner without conditions.
func (i *Issuer) EnsureSecrets(ctx context.Context, owner client.Object, specs ...Spec) error {
	last, _ := i.owners.Get(owner.GetUID())
	states, errs := make(map[string]certificateState, len(specs)), make([]error, len(specs))
	for index := range specs {
		spec := &specs[index]
		states[spec.Name], errs[index] = i.ensure(ctx, owner, spec, last[spec.Name])
	}
	i.owners.Set(owner.GetUID(), states)
	return errors.Join(errs...)
}

// ensure returns the state of one certificate, which is empty while an external Secret does not exist.
func (i *Issuer) ensure(ctx context.Context, owner client.Object, spec *Spec, last certificateState) (certificateState, error) {
	key := client.ObjectKey{Namespace: spec.Namespace, Name: spec.Name}
	metadata, err := objectmeta.Get(ctx, i.Cached, corev1.SchemeGroupVersion.WithKind("Secret"), key)
	switch {
	case err != nil:
		return last, err
	case metadata == nil && spec.External:
		return certificateState{}, nil
	case metadata != nil && i.isUpToDate(last, metadata, spec):
		return last, nil
	}
	return i.ensureSecret(ctx, owner, key, spec, last)
}

// Forget deletes the state of a deleted owner.
func (i *Issuer) Forget(owner types.UID) { i.owners.Delete(owner) }

// CABundle returns the PEM certificates of the CAs of a Secret of an owner, see certs.Trust; nil for a foreign certificate.
func (i *Issuer) CABundle(owner types.UID, secret string) []byte {
	states, _ := i.owners.Get(owner)
	trust := states[secret].trust
	return trust.Bundle(i.Clock.Now())
}

// AwaitRenewal returns the joined Waits until the next renewal or report of each certificate, or nil. It belongs in the last phase,
// since each reconcile calls Ensure anyway.
func (i *Issuer) AwaitRenewal(owner types.UID) error {
	states, _ := i.owners.Get(owner)
	var errs []error
	for _, state := range states {
		remaining := state.trust.RequeueAfter(state.renewAt.Sub(i.Clock.Now()), i.Clock.Now())
		if state.renewAt.IsZero() || state.foreign && remaining <= 0 {
			continue // the expiry is unknown, or already reported
		}
		errs = append(errs, &reconciler.Wait{For: "the renewal of a certificate", Retry: max(remaining, time.Second)})
	}
	return errors.Join(errs...)
}

// isUpToDate reports whether this version of the Secret was read and needs no renewal.
func (i *Issuer) isUpToDate(state certificateState, metadata metav1.Object, spec *Spec) bool {
	return state.uid == metadata.GetUID() && state.version == metadata.GetResourceVersion() && state.external == spec.External &&
		(state.foreign || i.Clock.Now().Before(state.renewAt))
}

// ensureSecret reads the Secret from the API server, since the cache may be stale after a write, and applies it if certificate, owner or
// labels are not as desired.
func (i *Issuer) ensureSecret(ctx context.Context, owner client.Object, key client.ObjectKey, spec *Spec, last certificateState) (certificateState, error) {
	secret := &corev1.Secret{}
	err := i.Live.Get(ctx, key, secret)
	if client.IgnoreNotFound(err) != nil {
		return last, fmt.Errorf("reading Secret %s: %w", key, err)
	}
	exists := err == nil
	pair, _ := tls.X509KeyPair(secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey])
	// A user may replace the certificate in a managed Secret. An unreadable certificate is issued again.
	replaced := pair.Leaf != nil && pair.Leaf.Issuer.CommonName != spec.CACommonName
	if exists && (spec.External || !i.Applier.IsManaged(secret) || replaced) {
		return newForeignState(secret, pair.Leaf, spec), nil
	}
	if secret.DeletionTimestamp != nil || !exists && spec.External {
		return last, nil // the next event of the Secret starts a reconcile
	}
	serving, err := certs.EnsureServing(secret.Data, certs.ServingOptions{
		CACommonName: spec.CACommonName, DNSNames: DNSNames(spec.Service, spec.Namespace), Lifetime: Lifetime,
	}, i.Clock.Now())
	if err != nil {
		return last, fmt.Errorf("issuing the serving certificate: %w", err)
	}
	if serving.Cause != "" || !i.hasDesiredMetadata(secret, owner, spec) {
		secret = &corev1.Secret{} // without a version, so that the next reconcile reads the written Secret
		if err := i.Applier.Apply(ctx, owner, apply.Desired{spec.Secret(serving.Data)}); err != nil {
			return last, err
		}
	}
	state := certificateState{uid: secret.UID, version: secret.ResourceVersion, renewAt: serving.Next, trust: last.trust}
	state.trust.Update(serving.Data[corev1.ServiceAccountRootCAKey], i.Clock.Now())
	return state, nil
}

// hasDesiredMetadata reports whether the Secret has the desired owner and labels.
func (i *Issuer) hasDesiredMetadata(secret *corev1.Secret, owner client.Object, spec *Spec) bool {
	return (spec.Ownership == apply.Unowned || metav1.IsControlledBy(secret, owner)) && apply.HasComponentLabels(secret, i.Applier.Component) &&
		labels.SelectorFromSet(spec.Labels).Matches(labels.Set(secret.Labels))
}

// newForeignState returns the state of a foreign certificate. An unreadable certificate has no expiry.
func newForeignState(secret *corev1.Secret, leaf *x509.Certificate, spec *Spec) certificateState {
	state := certificateState{uid: secret.UID, version: secret.ResourceVersion, external: spec.External, foreign: true}
	if leaf != nil {
		lifetime := leaf.NotAfter.Sub(leaf.NotBefore)
		state.expires, state.renewAt = leaf.NotAfter, leaf.NotAfter.Add(-min(expiryWarning, lifetime/10))
	}
	return state
}

// setCondition sets a condition for the first foreign certificate with that condition that expires soon, or removes it if there is none.
func (i *Issuer) setCondition(owner reconciler.Object, conditionType string, specs []Spec, states map[string]certificateState) {
	index := slices.IndexFunc(specs, func(spec Spec) bool {
		state := states[spec.Name]
		return spec.condition() == conditionType && state.foreign && !state.renewAt.IsZero() && !i.Clock.Now().Before(state.renewAt)
	})
	if index < 0 {
		conditions.Remove(owner.ConditionsRef(), conditionType)
		return
	}
	text := fmt.Sprintf("The certificate in Secret %s, which the operator did not issue, is valid until %s: renew it",
		specs[index].Name, states[specs[index].Name].expires.UTC().Format(time.RFC3339))
	if !specs[index].External {
		text += "; or delete the Secret, and the operator issues a certificate"
	}
	conditions.Set(owner.ConditionsRef(), conditionType, metav1.ConditionFalse, ReasonExpires, text, owner.GetGeneration())
}

// DNSNames returns the names of a Service inside the cluster, and localhost for a forwarded port.
func DNSNames(service, namespace string) []string {
	local := service + "." + namespace
	return []string{service, local, local + ".svc", local + ".svc.cluster.local", "localhost"}
}

// Package servingcert keeps the serving certificates of components where no platform makes them: it issues them into Secrets,
// renews what it issued, and leaves the foreign certificates alone, of which it says when they run out.
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
	// Condition exists on an owner, and is False, only while its certificate is not what it should be.
	Condition = "CertificateReady"
	// ReasonExpires says that a foreign certificate runs out.
	ReasonExpires = "CertificateExpires"

	// Lifetime of a certificate and of the CA that signed it and nothing else: as long as servers may go without the pause of a
	// renewal, for which some are replaced.
	Lifetime = 365 * 24 * time.Hour
	// expiryWarning is how long before its end a certificate should have been renewed, unless it lives for a short time only.
	expiryWarning = 14 * 24 * time.Hour
)

// Wanted describes the Secret with a serving certificate.
type Spec struct {
	// Namespace and Name of the Secret.
	Namespace, Name string
	// Provided: another controller or a user makes it. It is not written, and looked at for its end only.
	External bool
	// Authority is the common name of the CA. A certificate in our Secret that another one issued is foreign.
	CACommonName string
	// Service is the name of the Service that the certificate is for, in the same namespace.
	Service string
	// Labels of the Secret, beside those that every object gets.
	Labels map[string]string
	// Disowns decides which owners of before go, see apply.Object.
	DropOwnerReferences func(metav1.OwnerReference) bool
}

// known is what is remembered of a Secret, so that it is read once for each of its versions.
type certificateState struct {
	uid      types.UID
	version  string
	external bool
	// due is when it is to be renewed; zero for never. A foreign one gets a warning, once.
	renewAt time.Time
	foreign bool
	// expires is the end of one that is not ours.
	expires time.Time
	// trust is the CA of one that is ours.
	trust certs.Trust
}

// Keeper keeps the certificates of one component, one for each owner. Its fields are needed but for Condition.
type Issuer struct {
	// Cached holds the metadata of Secrets; Live reads past the cache.
	Cached, Live client.Reader
	Applier      *apply.Applier
	Clock        clock.PassiveClock
	// Condition is the type of the condition that it reports in, Condition where it is empty: an owner may have certificates of two Keepers.
	Condition string

	owners reconciler.Memory[certificateState]
}

// Keep issues the certificate of an owner, or renews the one that it issued. It writes neither a Secret that the component did not
// make nor a certificate that a user has put in the place of ours, and says in Condition when one of these runs out. The controller that
// serves with a renewed one takes it up by itself. Errors of writes are those of apply.Applier.
func (k *Issuer) Ensure(ctx context.Context, owner reconciler.Object, want Spec) error {
	key := client.ObjectKey{Namespace: want.Namespace, Name: want.Name}
	head, err := capability.GetMetadata(ctx, k.Cached, corev1.SchemeGroupVersion.WithKind("Secret"), key)
	switch {
	case err != nil:
		return err
	case head == nil && want.External:
		k.Release(owner)
		return nil
	case head == nil || !k.isUpToDate(owner, head, want):
		if err := k.ensureSecret(ctx, owner, key, want); err != nil {
			return err
		}
	}
	k.setCondition(owner, want)
	return nil
}

// Leave ends the care for the certificate of an owner that needs none.
func (k *Issuer) Release(owner reconciler.Object) {
	k.Forget(owner.GetUID())
	conditions.Remove(owner.ConditionsRef(), k.conditionType())
}

func (k *Issuer) conditionType() string { return cmp.Or(k.Condition, Condition) }

// Forget drops what is remembered for an owner that is gone.
func (k *Issuer) Forget(owner types.UID) { k.owners.Forget(owner) }

// Authority returns the certificates of the CAs by which the certificate of an owner is verified, in PEM; nil when another one issued it.
func (k *Issuer) CABundle(owner types.UID) []byte {
	found, _ := k.owners.Get(owner)
	return found.trust.Bundle(k.Clock.Now())
}

// AwaitRenewal returns a *reconciler.Wait until something is due about the certificate of an owner, nil when nothing will be. It
// belongs to the last phase: what comes back earlier for other reasons looks at the certificate as well.
func (k *Issuer) AwaitRenewal(owner types.UID) error {
	found, ok := k.owners.Get(owner)
	left := found.trust.RequeueAfter(found.renewAt.Sub(k.Clock.Now()), k.Clock.Now())
	if !ok || found.foreign && (found.renewAt.IsZero() || left <= 0) {
		return nil // said already, or nothing to say
	}
	return &reconciler.Wait{For: "the serving certificate to be due", Retry: max(left, time.Second)}
}

// isSettled reports whether this version of the Secret is known, and nothing is due.
func (k *Issuer) isUpToDate(owner, head metav1.Object, want Spec) bool {
	found, ok := k.owners.Get(owner.GetUID())
	return ok && found.uid == head.GetUID() && found.version == head.GetResourceVersion() && found.external == want.External &&
		(found.foreign || k.Clock.Now().Before(found.renewAt))
}

// look reads the live Secret, because the cache may be behind what was written a moment ago, and writes it if what it holds, or by
// what we know it, will not do.
func (k *Issuer) ensureSecret(ctx context.Context, owner client.Object, key client.ObjectKey, want Spec) error {
	live := &corev1.Secret{}
	err := k.Live.Get(ctx, key, live)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading Secret %s: %w", key, err)
	}
	exists := err == nil
	pair, _ := tls.X509KeyPair(live.Data[corev1.TLSCertKey], live.Data[corev1.TLSPrivateKeyKey])
	// A user has put a certificate of another authority into a Secret of ours. A damaged one is mended.
	replaced := pair.Leaf != nil && pair.Leaf.Issuer.CommonName != want.CACommonName
	if exists && (want.External || !k.Applier.IsManaged(live) || replaced) {
		k.owners.Set(owner.GetUID(), newForeignState(live, pair.Leaf, want))
		return nil
	}
	if live.DeletionTimestamp != nil || !exists && want.External {
		return nil // its event brings us back
	}
	serving, err := certs.EnsureServing(live.Data, certs.ServingOptions{
		CACommonName: want.CACommonName, DNSNames: DNSNames(want.Service, want.Namespace), Lifetime: Lifetime,
	}, k.Clock.Now())
	if err != nil {
		return fmt.Errorf("issuing the serving certificate: %w", err)
	}
	if serving.Reason != "" || !metav1.IsControlledBy(live, owner) || !apply.HasComponentLabels(live, k.Applier.Component) || !labels.SelectorFromSet(want.Labels).Matches(labels.Set(live.Labels)) {
		live = &corev1.Secret{} // what is written has another version, which is read once
		secret := corev1ac.Secret(want.Name, want.Namespace).WithLabels(want.Labels).WithType(corev1.SecretTypeTLS).WithData(serving.Data)
		if err := k.Applier.Apply(ctx, owner, apply.Desired{{Config: secret, DropOwnerReferences: want.DropOwnerReferences}}); err != nil {
			return err
		}
	}
	found, _ := k.owners.Get(owner.GetUID())
	found = certificateState{uid: live.UID, version: live.ResourceVersion, renewAt: serving.Next, trust: found.trust}
	found.trust.Update(serving.Data[corev1.ServiceAccountRootCAKey], k.Clock.Now())
	k.owners.Set(owner.GetUID(), found)
	return nil
}

// foreign is what there is to know of a foreign certificate. One that cannot be read has no end.
func newForeignState(s *corev1.Secret, leaf *x509.Certificate, want Spec) certificateState {
	found := certificateState{uid: s.UID, version: s.ResourceVersion, external: want.External, foreign: true}
	if leaf != nil {
		lifetime := leaf.NotAfter.Sub(leaf.NotBefore)
		found.expires, found.renewAt = leaf.NotAfter, leaf.NotAfter.Add(-min(expiryWarning, lifetime/10))
	}
	return found
}

// report sets a condition when a foreign certificate was not renewed in time.
func (k *Issuer) setCondition(owner reconciler.Object, want Spec) {
	found, _ := k.owners.Get(owner.GetUID())
	if !found.foreign || found.renewAt.IsZero() || k.Clock.Now().Before(found.renewAt) {
		conditions.Remove(owner.ConditionsRef(), k.conditionType())
		return
	}
	text := fmt.Sprintf("The certificate in Secret %s, which the operator did not issue, is good until %s: renew it", want.Name, found.expires.UTC().Format(time.RFC3339))
	if !want.External {
		text += "; or delete the Secret, and one is issued in its place"
	}
	conditions.Set(owner.ConditionsRef(), k.conditionType(), metav1.ConditionFalse, ReasonExpires, text, owner.GetGeneration())
}

// DNSNames are all names under which clients in the cluster know a Service, and the one under which a forwarded port is reached.
func DNSNames(service, namespace string) []string {
	local := service + "." + namespace
	return []string{service, local, local + ".svc", local + ".svc.cluster.local", "localhost"}
}

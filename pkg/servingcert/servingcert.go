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
type Wanted struct {
	// Namespace and Name of the Secret.
	Namespace, Name string
	// Provided: another controller or a user makes it. It is not written, and looked at for its end only.
	Provided bool
	// Authority is the common name of the CA. A certificate in our Secret that another one issued is foreign.
	Authority string
	// Service is the name of the Service that the certificate is for, in the same namespace.
	Service string
	// Labels of the Secret, beside those that every object gets.
	Labels map[string]string
	// Disowns decides which owners of before go, see apply.Object.
	Disowns func(metav1.OwnerReference) bool
}

// known is what is remembered of a Secret, so that it is read once for each of its versions.
type known struct {
	uid      types.UID
	version  string
	provided bool
	// due is when it is to be renewed; zero for never. A foreign one gets a warning, once.
	due    time.Time
	theirs bool
	// expires is the end of one that is not ours.
	expires time.Time
	// trust is the CA of one that is ours.
	trust certs.Trust
}

// Keeper keeps the certificates of one component, one for each owner. Its fields are needed but for Condition.
type Keeper struct {
	// Cached holds the metadata of Secrets; Live reads past the cache.
	Cached, Live client.Reader
	Applier      *apply.Applier
	Clock        clock.PassiveClock
	// Condition is the type of the condition that it reports in, Condition where it is empty: an owner may have certificates of two Keepers.
	Condition string

	owners reconciler.UIDMap[known]
}

// Keep issues the certificate of an owner, or renews the one that it issued. It writes neither a Secret that the component did not
// make nor a certificate that a user has put in the place of ours, and says in Condition when one of these runs out. The controller that
// serves with a renewed one takes it up by itself. Errors of writes are those of apply.Applier.
func (k *Keeper) Keep(ctx context.Context, owner reconciler.Object, want Wanted) error {
	key := client.ObjectKey{Namespace: want.Namespace, Name: want.Name}
	head, err := capability.GetMetadata(ctx, k.Cached, corev1.SchemeGroupVersion.WithKind("Secret"), key)
	switch {
	case err != nil:
		return err
	case head == nil && want.Provided:
		k.Leave(owner)
		return nil
	case head == nil || !k.isSettled(owner, head, want):
		if err := k.look(ctx, owner, key, want); err != nil {
			return err
		}
	}
	k.report(owner, want)
	return nil
}

// Leave ends the care for the certificate of an owner that needs none.
func (k *Keeper) Leave(owner reconciler.Object) {
	k.Forget(owner.GetUID())
	conditions.Remove(owner.ConditionsRef(), k.condition())
}

func (k *Keeper) condition() string { return cmp.Or(k.Condition, Condition) }

// Forget drops what is remembered for an owner that is gone.
func (k *Keeper) Forget(owner types.UID) { k.owners.Delete(owner) }

// Authority returns the certificates of the CAs by which the certificate of an owner is verified, in PEM; nil when another one issued it.
func (k *Keeper) Authority(owner types.UID) []byte {
	found, _ := k.owners.Get(owner)
	return found.trust.Bundle(k.Clock.Now())
}

// AwaitRenewal returns a *reconciler.Wait until something is due about the certificate of an owner, nil when nothing will be. It
// belongs to the last phase: what comes back earlier for other reasons looks at the certificate as well.
func (k *Keeper) AwaitRenewal(owner types.UID) error {
	found, ok := k.owners.Get(owner)
	left := found.trust.Sooner(found.due.Sub(k.Clock.Now()), k.Clock.Now())
	if !ok || found.theirs && (found.due.IsZero() || left <= 0) {
		return nil // said already, or nothing to say
	}
	return &reconciler.Wait{For: "the serving certificate to be due", Retry: max(left, time.Second)}
}

// isSettled reports whether this version of the Secret is known, and nothing is due.
func (k *Keeper) isSettled(owner, head metav1.Object, want Wanted) bool {
	found, ok := k.owners.Get(owner.GetUID())
	return ok && found.uid == head.GetUID() && found.version == head.GetResourceVersion() && found.provided == want.Provided &&
		(found.theirs || k.Clock.Now().Before(found.due))
}

// look reads the live Secret, because the cache may be behind what was written a moment ago, and writes it if what it holds, or by
// what we know it, will not do.
func (k *Keeper) look(ctx context.Context, owner client.Object, key client.ObjectKey, want Wanted) error {
	live := &corev1.Secret{}
	err := k.Live.Get(ctx, key, live)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading Secret %s: %w", key, err)
	}
	exists := err == nil
	pair, _ := tls.X509KeyPair(live.Data[corev1.TLSCertKey], live.Data[corev1.TLSPrivateKeyKey])
	// A user has put a certificate of another authority into a Secret of ours. A damaged one is mended.
	replaced := pair.Leaf != nil && pair.Leaf.Issuer.CommonName != want.Authority
	if exists && (want.Provided || !k.Applier.IsManaged(live) || replaced) {
		k.owners.Set(owner.GetUID(), foreign(live, pair.Leaf, want))
		return nil
	}
	if live.DeletionTimestamp != nil || !exists && want.Provided {
		return nil // its event brings us back
	}
	serving, err := certs.KeepServing(live.Data, certs.ServingOptions{
		Authority: want.Authority, DNSNames: DNSNames(want.Service, want.Namespace), Lifetime: Lifetime,
	}, k.Clock.Now())
	if err != nil {
		return fmt.Errorf("issuing the serving certificate: %w", err)
	}
	if serving.Why != "" || !metav1.IsControlledBy(live, owner) || !apply.IsOurs(live, k.Applier.Component) || !labels.SelectorFromSet(want.Labels).Matches(labels.Set(live.Labels)) {
		live = &corev1.Secret{} // what is written has another version, which is read once
		secret := corev1ac.Secret(want.Name, want.Namespace).WithLabels(want.Labels).WithType(corev1.SecretTypeTLS).WithData(serving.Data)
		if err := k.Applier.Apply(ctx, owner, apply.Desired{{Config: secret, DropOwnerReferences: want.Disowns}}); err != nil {
			return err
		}
	}
	found, _ := k.owners.Get(owner.GetUID())
	found = known{uid: live.UID, version: live.ResourceVersion, due: serving.Next, trust: found.trust}
	found.trust.Follow(serving.Data[corev1.ServiceAccountRootCAKey], k.Clock.Now())
	k.owners.Set(owner.GetUID(), found)
	return nil
}

// foreign is what there is to know of a foreign certificate. One that cannot be read has no end.
func foreign(s *corev1.Secret, leaf *x509.Certificate, want Wanted) known {
	found := known{uid: s.UID, version: s.ResourceVersion, provided: want.Provided, theirs: true}
	if leaf != nil {
		lifetime := leaf.NotAfter.Sub(leaf.NotBefore)
		found.expires, found.due = leaf.NotAfter, leaf.NotAfter.Add(-min(expiryWarning, lifetime/10))
	}
	return found
}

// report sets a condition when a foreign certificate was not renewed in time.
func (k *Keeper) report(owner reconciler.Object, want Wanted) {
	found, _ := k.owners.Get(owner.GetUID())
	if !found.theirs || found.due.IsZero() || k.Clock.Now().Before(found.due) {
		conditions.Remove(owner.ConditionsRef(), k.condition())
		return
	}
	text := fmt.Sprintf("The certificate in Secret %s, which the operator did not issue, is good until %s: renew it", want.Name, found.expires.UTC().Format(time.RFC3339))
	if !want.Provided {
		text += "; or delete the Secret, and one is issued in its place"
	}
	conditions.Set(owner.ConditionsRef(), k.condition(), metav1.ConditionFalse, ReasonExpires, text, owner.GetGeneration())
}

// DNSNames are all names under which clients in the cluster know a Service, and the one under which a forwarded port is reached.
func DNSNames(service, namespace string) []string {
	local := service + "." + namespace
	return []string{service, local, local + ".svc", local + ".svc.cluster.local", "localhost"}
}

// Package servingcert keeps the serving certificates of components where no platform makes them: it issues them into Secrets,
// renews what it issued, and leaves the Secrets of others alone.
package servingcert

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/certs"
	"github.com/odh-platform/odh-platform-operator/pkg/names"
	"github.com/odh-platform/odh-platform-operator/pkg/reconciler"
)

// lifetime of a certificate and of the CA that signed it and nothing else.
const lifetime = 365 * 24 * time.Hour

// Wanted describes the Secret with a serving certificate.
type Wanted struct {
	// Namespace and Name of the Secret.
	Namespace, Name string
	// Authority is the common name of the CA.
	Authority string
	// Service is the name of the Service that the certificate is for, in the same namespace.
	Service string
	// Labels of the Secret, beside those that every object gets.
	Labels map[string]string
	// Disowns decides which owners of before go, see apply.Object.
	Disowns func(metav1.OwnerReference) bool
}

// known is what is remembered of a Secret that was found good, so that it is read once for each of its versions.
type known struct {
	uid     types.UID
	version string
	renew   time.Time
}

// Keeper keeps the certificates of one component, one for each owner. Its fields are all needed.
type Keeper struct {
	// Component is the value of names.ComponentLabel on its Secrets.
	Component string
	// Cached holds the metadata of Secrets; Live reads past the cache.
	Cached, Live client.Reader
	Applier      *apply.Applier
	Clock        clock.PassiveClock

	owners sync.Map // of types.UID to known
}

// Keep issues the certificate of an owner, or renews the one that it issued. A Secret without the labels of the component is
// somebody else's: it is neither read nor written. Whoever serves with a renewed one takes it up by itself. Errors of writes are
// those of apply.Applier.
func (k *Keeper) Keep(ctx context.Context, owner client.Object, want Wanted) error {
	key := client.ObjectKey{Namespace: want.Namespace, Name: want.Name}
	head := &metav1.PartialObjectMetadata{}
	head.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	err := k.Cached.Get(ctx, key, head)
	switch {
	case client.IgnoreNotFound(err) != nil:
		return fmt.Errorf("reading metadata of Secret %s: %w", key, err)
	case err == nil && !k.ours(head):
		k.Forget(owner.GetUID())
		return nil
	case err == nil && k.isGood(owner, head):
		return nil
	}
	return k.renew(ctx, owner, key, want)
}

// Forget drops what is remembered for an owner that is gone, or that needs no certificate.
func (k *Keeper) Forget(owner types.UID) { k.owners.Delete(owner) }

// AwaitRenewal returns a *reconciler.Wait until the certificate of an owner is due, nil when none is kept. It belongs to the last
// phase: what comes back earlier for other reasons looks at the certificate as well.
func (k *Keeper) AwaitRenewal(owner types.UID) error {
	found, ok := k.of(owner)
	if !ok {
		return nil
	}
	return &reconciler.Wait{For: "the serving certificate to be renewed", Retry: max(found.renew.Sub(k.Clock.Now()), time.Second)}
}

func (k *Keeper) of(owner types.UID) (known, bool) {
	value, _ := k.owners.Load(owner)
	found, ok := value.(known)
	return found, ok
}

func (k *Keeper) isGood(owner client.Object, head metav1.Object) bool {
	found, ok := k.of(owner.GetUID())
	return ok && found.uid == head.GetUID() && found.version == head.GetResourceVersion() && k.Clock.Now().Before(found.renew)
}

// ours reports whether the component made a Secret.
func (k *Keeper) ours(o metav1.Object) bool {
	own := o.GetLabels()
	return own[names.OperatorLabel] == names.OperatorName && own[names.ComponentLabel] == k.Component
}

// renew reads the live Secret, because the cache may be behind what was written a moment ago, and writes it if what it holds will
// not do.
func (k *Keeper) renew(ctx context.Context, owner client.Object, key client.ObjectKey, want Wanted) error {
	live := &corev1.Secret{}
	err := k.Live.Get(ctx, key, live)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading Secret %s: %w", key, err)
	}
	if !apierrors.IsNotFound(err) && (!k.ours(live) || live.DeletionTimestamp != nil) {
		return nil // its event brings us back
	}
	serving, err := certs.KeepServing(live.Data, certs.ServingOptions{
		Authority: want.Authority, DNSNames: serviceNames(want), Lifetime: lifetime,
	}, k.Clock.Now())
	if err != nil {
		return fmt.Errorf("issuing the serving certificate: %w", err)
	}
	if serving.Issued || !metav1.IsControlledBy(live, owner) { // the latter comes out of a backup
		live = &corev1.Secret{} // what is written has another version, which is read once
		secret := corev1ac.Secret(want.Name, want.Namespace).WithLabels(want.Labels).WithType(corev1.SecretTypeTLS).WithData(serving.Data)
		if err := k.Applier.Apply(ctx, owner, apply.Desired{{Config: secret, Disowns: want.Disowns}}); err != nil {
			return err
		}
	}
	k.owners.Store(owner.GetUID(), known{uid: live.UID, version: live.ResourceVersion, renew: serving.Renew})
	return nil
}

// serviceNames are all names under which clients in the cluster know a Service.
func serviceNames(want Wanted) []string {
	local := want.Service + "." + want.Namespace
	return []string{want.Service, local, local + ".svc", local + ".svc.cluster.local", "localhost"}
}

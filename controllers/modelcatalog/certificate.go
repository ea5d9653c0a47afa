package modelcatalog

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	aihubv1alpha1 "github.com/odh-platform/odh-platform-operator/apis/aihub/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/certs"
	"github.com/odh-platform/odh-platform-operator/pkg/reconciler"
)

const (
	certificateLifetime  = 365 * 24 * time.Hour
	certificateAuthority = "odh-platform-operator-model-catalog-ca"
)

// issues reports whether the serving certificate is made here: where no platform does it, and the user does not.
func issues(c *aihubv1alpha1.Catalog, in Inputs) bool {
	return proxied(c) && !in.OpenShift && servingSecret(c) == certificateSecret
}

// keepCertificate issues the serving certificate where nobody else does, and renews what it issued. A Secret that does not
// bear our label is that of somebody else: it is not written. The proxy takes a renewed one up by itself.
func (r *catalogs) keepCertificate(ctx context.Context, c *aihubv1alpha1.Catalog) error {
	if !issues(c, r.inputs()) {
		r.state.setRenewal(c.UID, time.Time{})
		return nil
	}
	key := client.ObjectKey{Namespace: c.Namespace, Name: certificateSecret}
	known, err := r.metadataOf(ctx, secretKind, key)
	switch {
	case err != nil:
		return err
	case known != nil && !ours(known):
		r.state.setRenewal(c.UID, time.Time{})
		return nil
	case known != nil && r.state.isGood(c.UID, certificateSecret, known) && r.clock.Now().Before(r.state.renewal(c.UID)):
		return nil
	}
	return r.renewCertificate(ctx, c, key)
}

// renewCertificate reads the live Secret, because the cache may be behind what was written a moment ago, and writes it if
// what it holds will not do.
func (r *catalogs) renewCertificate(ctx context.Context, c *aihubv1alpha1.Catalog, key client.ObjectKey) error {
	live := &corev1.Secret{}
	err := r.live.Get(ctx, key, live)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading Secret %s: %w", key, err)
	}
	if !apierrors.IsNotFound(err) && (!ours(live) || live.DeletionTimestamp != nil) {
		return nil // its event brings us back
	}
	serving, err := certs.KeepServing(live.Data, certs.ServingOptions{
		Authority: certificateAuthority, DNSNames: serviceNames(c.Namespace), Lifetime: certificateLifetime,
	}, r.clock.Now())
	if err != nil {
		return fmt.Errorf("issuing the serving certificate: %w", err)
	}
	if serving.Issued || !metav1.IsControlledBy(live, c) { // the latter comes out of a backup
		live = &corev1.Secret{} // what is written has another version, which is read once
		secret := corev1ac.Secret(certificateSecret, c.Namespace).WithLabels(labels(baseName)).
			WithType(corev1.SecretTypeTLS).WithData(serving.Data)
		if err := r.applier.Apply(ctx, c, apply.Desired{{Config: secret, Disowns: formerOwner}}); err != nil {
			return r.notApplied(c, err)
		}
	}
	r.state.found(c.UID, certificateSecret, live)
	r.state.setRenewal(c.UID, serving.Renew)
	return nil
}

func serviceNames(namespace string) []string {
	local := baseName + "." + namespace
	return []string{baseName, local, local + ".svc", local + ".svc.cluster.local", "localhost"}
}

// awaitRenewal brings the Catalog back when its certificate is due.
func (r *catalogs) awaitRenewal(_ context.Context, c *aihubv1alpha1.Catalog) error {
	renew := r.state.renewal(c.UID)
	if renew.IsZero() {
		return nil
	}
	return &reconciler.Wait{For: "the serving certificate to be renewed", Retry: max(renew.Sub(r.clock.Now()), soon)}
}

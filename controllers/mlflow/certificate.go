package mlflow

import (
	"context"
	"crypto/tls"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/certs"
	"github.com/odh-platform/odh-platform-operator/pkg/reconciler"
)

const (
	// certificateLifetime is as long as servers may go without the pause of a renewal, for which their pods are replaced.
	certificateLifetime = 365 * 24 * time.Hour
	// certificateAuthority is the common name of the CA that signs one certificate.
	certificateAuthority = "odh-platform-operator-mlflow-ca"
)

// certificate is what is remembered of a Secret, so that it is read once for each of its versions.
type certificate struct {
	uid     types.UID
	version string
	// renew is when a certificate of ours is due.
	renew time.Time
	// theirs: somebody else made or replaced it, and renews it. It ends at expires; zero when it cannot be read.
	theirs  bool
	expires time.Time
	// warn is when it should have been renewed.
	warn time.Time
}

// expiryWarning is how long before its end a certificate should have been renewed, unless it lives for a short time only.
const expiryWarning = 14 * 24 * time.Hour

// issues reports whether the serving certificate is made here, as far as the spec and the platform decide it.
func issues(m *mlflowv1.MLflow, in Inputs) bool {
	provided := m.Spec.TLS != nil && m.Spec.TLS.Mode == mlflowv1.TLSProvided
	return !provided && !in.OpenShift
}

// keepCertificate issues the serving certificate where nobody else does, and renews what it issued. A Secret that does not
// bear our label, or whose certificate somebody has replaced, is not written.
func (r *objects) keepCertificate(ctx context.Context, m *mlflowv1.MLflow) error {
	in := r.inputs()
	key := client.ObjectKey{Namespace: in.Namespace, Name: tlsSecretName}
	head := &metav1.PartialObjectMetadata{}
	head.SetGroupVersionKind(secretKind)
	err := r.cached.Get(ctx, key, head)
	switch {
	case client.IgnoreNotFound(err) != nil:
		return fmt.Errorf("reading metadata of Secret %s: %w", key, err)
	case err != nil && !issues(m, in):
		r.certificates.Delete(m.UID)
		return nil
	case err == nil && r.isSettled(m, head):
		return nil
	}
	return r.renewCertificate(ctx, m, in, key)
}

// isSettled reports whether this version of the Secret is known, and nothing is due.
func (r *objects) isSettled(m *mlflowv1.MLflow, head metav1.Object) bool {
	known, ok := r.certificateOf(m)
	return ok && known.uid == head.GetUID() && known.version == head.GetResourceVersion() && (known.theirs || r.clock.Now().Before(known.renew))
}

// renewCertificate reads the live Secret, because the cache may be behind what was written a moment ago, and writes it if
// what it holds will not do.
func (r *objects) renewCertificate(ctx context.Context, m *mlflowv1.MLflow, in Inputs, key client.ObjectKey) error {
	live := &corev1.Secret{}
	err := r.live.Get(ctx, key, live)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading Secret %s: %w", key, err)
	}
	if err == nil && (!issues(m, in) || !apply.IsOurs(live, ComponentName) || replacedByOthers(live)) {
		r.certificates.Store(m.UID, foreignCertificate(live))
		return nil
	}
	if live.DeletionTimestamp != nil || err != nil && !issues(m, in) {
		return nil // its event brings us back
	}
	serving, err := certs.KeepServing(live.Data, certs.ServingOptions{
		Authority: certificateAuthority, DNSNames: serviceNames(m, in), Lifetime: certificateLifetime,
	}, r.clock.Now())
	if err != nil {
		return fmt.Errorf("issuing the serving certificate: %w", err)
	}
	if serving.Issued {
		live = &corev1.Secret{} // what is written has another version, which is read once
		if err := r.applier.Apply(ctx, m, apply.Desired{{Config: certificateSecret(m, in, serving.Data)}}); err != nil {
			return err
		}
	}
	r.certificates.Store(m.UID, certificate{uid: live.UID, version: live.ResourceVersion, renew: serving.Renew})
	return nil
}

// replacedByOthers reports that somebody has put a certificate of their own into a Secret of ours. A damaged one is mended.
func replacedByOthers(s *corev1.Secret) bool {
	others := slices.ContainsFunc(s.ManagedFields, func(e metav1.ManagedFieldsEntry) bool {
		return e.Manager != FieldOwner && e.FieldsV1 != nil && strings.Contains(e.FieldsV1.String(), `"f:`+corev1.TLSCertKey+`"`)
	})
	_, err := tls.X509KeyPair(s.Data[corev1.TLSCertKey], s.Data[corev1.TLSPrivateKeyKey])
	return others && err == nil
}

// foreignCertificate is what there is to know of a certificate that somebody else looks after.
func foreignCertificate(s *corev1.Secret) certificate {
	c := certificate{uid: s.UID, version: s.ResourceVersion, theirs: true}
	pair, err := tls.X509KeyPair(s.Data[corev1.TLSCertKey], s.Data[corev1.TLSPrivateKeyKey])
	if err != nil {
		return c // the server says so
	}
	lifetime := pair.Leaf.NotAfter.Sub(pair.Leaf.NotBefore)
	c.expires, c.warn = pair.Leaf.NotAfter, pair.Leaf.NotAfter.Add(-min(expiryWarning, lifetime/10))
	return c
}

// reportCertificate says that the certificate could not be kept, or that nobody has renewed it in time.
func (r *objects) reportCertificate(m *mlflowv1.MLflow, err error) error {
	known, _ := r.certificateOf(m)
	if err == nil && known.theirs && !known.expires.IsZero() && !r.clock.Now().Before(known.warn) {
		setCondition(m, ConditionCertificate, metav1.ConditionFalse, ReasonCertificateExpires, fmt.Sprintf(
			"The certificate in Secret %s, which the operator did not issue, is good until %s: renew it; or delete the Secret, and one is issued in its place unless spec.tls.mode is Provided",
			tlsSecretName, known.expires.UTC().Format(time.RFC3339)))
		return nil
	}
	return reportAside(m, ConditionCertificate, ReasonCertificateFailed, "The serving certificate could not be kept", err)
}

// certificateSecret goes with its MLflow.
func certificateSecret(m *mlflowv1.MLflow, in Inputs, data map[string][]byte) *corev1ac.SecretApplyConfiguration {
	return corev1ac.Secret(tlsSecretName, in.Namespace).
		WithLabels(labels(resourceName(m))).
		WithType(corev1.SecretTypeTLS).
		WithData(data)
}

// awaitRenewal brings the MLflow back when its certificate is due. It is the last phase: what comes back earlier for other
// reasons looks at the certificate as well.
func (r *objects) awaitRenewal(_ context.Context, m *mlflowv1.MLflow) error {
	known, ok := r.certificateOf(m)
	due := known.renew
	if known.theirs {
		due = known.warn
	}
	left := due.Sub(r.clock.Now())
	if !ok || known.theirs && (due.IsZero() || left <= 0) {
		return nil // said already, or nothing to say
	}
	return &reconciler.Wait{For: "the serving certificate to be due", Retry: max(left, time.Second)}
}

func (r *objects) certificateOf(m *mlflowv1.MLflow) (certificate, bool) {
	known, _ := r.certificates.Load(m.UID)
	c, ok := known.(certificate)
	return c, ok
}

package mlflow

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/certs"
	"github.com/odh-platform/odh-platform-operator/pkg/names"
	"github.com/odh-platform/odh-platform-operator/pkg/reconciler"
)

const (
	// certificateLifetime is as long as servers may go without the pause of a renewal, for which their pods are replaced.
	certificateLifetime = 365 * 24 * time.Hour
	// certificateAuthority is the common name of the CA that signs one certificate.
	certificateAuthority = "odh-platform-operator-mlflow-ca"
)

// certificate is what is remembered of a Secret that was found good, so that it is read once for each of its versions.
type certificate struct {
	uid     types.UID
	version string
	renew   time.Time
}

// issues reports whether the serving certificate is made here, as far as the spec and the platform decide it.
func issues(m *mlflowv1.MLflow, in Inputs) bool {
	provided := m.Spec.TLS != nil && m.Spec.TLS.Mode == mlflowv1.TLSProvided
	return !provided && !in.OpenShift
}

// keepCertificate issues the serving certificate where nobody else does, and renews what it issued. A Secret that does not
// bear our label is that of somebody else: it is neither read nor written.
func (r *objects) keepCertificate(ctx context.Context, m *mlflowv1.MLflow) error {
	in := r.inputs()
	if !issues(m, in) {
		r.certificates.Delete(m.UID)
		return nil
	}
	key := client.ObjectKey{Namespace: in.Namespace, Name: tlsSecretName}
	head := &metav1.PartialObjectMetadata{}
	head.SetGroupVersionKind(secretKind)
	err := r.cached.Get(ctx, key, head)
	switch {
	case client.IgnoreNotFound(err) != nil:
		return fmt.Errorf("reading metadata of Secret %s: %w", key, err)
	case err == nil && !ourSecret(head):
		r.certificates.Delete(m.UID)
		return nil
	case err == nil && r.isGood(m, head):
		return nil
	}
	return r.renewCertificate(ctx, m, in, key)
}

// isGood reports whether this version of the Secret was found good, and nothing is due.
func (r *objects) isGood(m *mlflowv1.MLflow, head metav1.Object) bool {
	known, ok := r.certificateOf(m)
	return ok && known.uid == head.GetUID() && known.version == head.GetResourceVersion() && r.clock.Now().Before(known.renew)
}

// renewCertificate reads the live Secret, because the cache may be behind what was written a moment ago, and writes it if
// what it holds will not do.
func (r *objects) renewCertificate(ctx context.Context, m *mlflowv1.MLflow, in Inputs, key client.ObjectKey) error {
	live := &corev1.Secret{}
	err := r.live.Get(ctx, key, live)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading Secret %s: %w", key, err)
	}
	if !apierrors.IsNotFound(err) && (!ourSecret(live) || live.DeletionTimestamp != nil) {
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
			return notApplied(m, err)
		}
	}
	r.certificates.Store(m.UID, certificate{uid: live.UID, version: live.ResourceVersion, renew: serving.Renew})
	return nil
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
	if !ok {
		return nil
	}
	return &reconciler.Wait{For: "the serving certificate to be renewed", Retry: max(known.renew.Sub(r.clock.Now()), time.Second)}
}

func (r *objects) certificateOf(m *mlflowv1.MLflow) (certificate, bool) {
	known, _ := r.certificates.Load(m.UID)
	c, ok := known.(certificate)
	return c, ok
}

// ourSecret reports whether this component made a Secret.
func ourSecret(o metav1.Object) bool {
	own := o.GetLabels()
	return own[names.OperatorLabel] == names.OperatorName && own[names.ComponentLabel] == ComponentName
}

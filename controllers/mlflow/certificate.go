package mlflow

import (
	"context"

	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
	"github.com/odh-platform/odh-platform-operator/controllers/mlflow/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/servingcert"
)

const certificateAuthority = "odh-platform-operator-mlflow-ca"

// issues reports whether the serving certificate is made here, as far as the spec and the platform decide it.
func issues(m *mlflowv1.MLflow, in resources.Inputs) bool {
	provided := m.Spec.TLS != nil && m.Spec.TLS.Mode == mlflowv1.TLSProvided
	return !provided && !in.OpenShift
}

// keepCertificate issues the serving certificate where no platform does, and renews what it issued.
func (r *objects) keepCertificate(ctx context.Context, m *mlflowv1.MLflow) error {
	in := r.inputs()
	err := r.certificates.Keep(ctx, m, servingcert.Wanted{
		Namespace: in.Namespace, Name: resources.TLSSecretName, Provided: !issues(m, in), Authority: certificateAuthority, Service: resources.NameOf(m),
		Labels: resources.Labels(resources.NameOf(m)),
	})
	if err != nil {
		return reportAside(m, ConditionCertificate, ReasonCertificateFailed, "The serving certificate could not be kept", err)
	}
	return nil
}

package mlflow

import (
	"context"
	"errors"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
	"github.com/odh-platform/odh-platform-operator/controllers/mlflow/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/servingcert"
	"github.com/odh-platform/odh-platform-operator/pkg/status/conditions"
)

const certificateAuthority = "odh-platform-operator-mlflow-ca"

// keeper makes what keeps one certificate of each MLflow.
func (r *objects) keeper() *servingcert.Keeper {
	return &servingcert.Keeper{Cached: r.cached, Live: r.live, Applier: r.applier, Clock: r.clock}
}

// issues reports whether the serving certificate is made here, as far as the spec and the platform decide it.
func issues(m *mlflowv1.MLflow, in resources.Inputs) bool {
	provided := m.Spec.TLS != nil && m.Spec.TLS.Mode == mlflowv1.TLSProvided
	return !provided && !in.OpenShift
}

// authorities are the CAs of the certificates that were issued here, by the names of servers.
func (r *objects) authorities(m *mlflowv1.MLflow) map[string][]byte {
	return map[string][]byte{
		resources.Tracking(m).Name:  r.certificates.Authority(m.UID),
		resources.Artifacts(m).Name: r.artifactsCertificates.Authority(m.UID),
	}
}

// keepCertificates issues the serving certificates where no platform does, and renews what it issued. All have one condition, which is
// about the first that is not what it should be.
func (r *objects) keepCertificates(ctx context.Context, m *mlflowv1.MLflow) error {
	keepers := []*servingcert.Keeper{r.certificates, r.artifactsCertificates}
	servers := resources.Servers(m)
	var errs []error
	var found *metav1.Condition
	for i, keeper := range keepers {
		if i >= len(servers) {
			keeper.Forget(m.UID)
			continue
		}
		seen := m.DeepCopy()
		errs = append(errs, r.keepCertificate(ctx, seen, servers[i], keeper))
		if c, bad := conditions.Get(seen.Status.Conditions, ConditionCertificate); bad && found == nil {
			found = &c
		}
	}
	if err := errors.Join(errs...); err != nil || found == nil {
		return reportAside(m, ConditionCertificate, ReasonCertificateFailed, "The serving certificate could not be kept", err)
	}
	setCondition(m, ConditionCertificate, found.Status, found.Reason, found.Message)
	return nil
}

// keepCertificate does so for one server.
func (r *objects) keepCertificate(ctx context.Context, m *mlflowv1.MLflow, s resources.Server, keeper *servingcert.Keeper) error {
	in := r.inputs()
	return keeper.Keep(ctx, m, servingcert.Wanted{
		Namespace: in.Namespace, Name: s.Secret, Provided: !issues(m, in), Authority: certificateAuthority, Service: s.Name,
		Labels: resources.Labels(resources.NameOf(m)),
	})
}

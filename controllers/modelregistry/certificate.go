package modelregistry

import (
	"context"

	"github.com/odh-platform/odh-platform-operator/apis/modelregistry/v1beta1"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/servingcert"
)

const certificateAuthority = "odh-platform-operator-model-registry-ca"

// keepCertificate issues the serving certificate of the proxy where no platform does, and the user brings none.
func (r *registries) keepCertificate(ctx context.Context, m *v1beta1.ModelRegistry) error {
	if m.Spec.KubeRBACProxy == nil || m.Spec.KubeRBACProxy.TLSCertificateSecret != nil || r.served().Has(capability.Route) {
		r.certificates.Leave(m)
		return nil
	}
	return r.certificates.Keep(ctx, m, servingcert.Wanted{
		Namespace: m.Namespace, Name: servingSecretName(m), Authority: certificateAuthority, Service: serviceName(m),
		Labels: labels(m, serviceName(m)),
	})
}

// awaitRenewal brings the registry back when its certificate is due.
func (r *registries) awaitRenewal(_ context.Context, m *v1beta1.ModelRegistry) error {
	return r.certificates.AwaitRenewal(m.UID)
}

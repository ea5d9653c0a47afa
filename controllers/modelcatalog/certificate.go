package modelcatalog

import (
	"context"

	aihubv1alpha1 "github.com/odh-platform/odh-platform-operator/apis/aihub/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/pkg/servingcert"
)

const certificateAuthority = "odh-platform-operator-model-catalog-ca"

// issues reports whether the serving certificate is made here: where no platform does it, and the user does not.
func issues(c *aihubv1alpha1.Catalog, in Inputs) bool {
	return proxied(c) && !in.OpenShift && servingSecret(c) == certificateSecret
}

// keepCertificate issues the serving certificate where nobody else does, and renews what it issued.
func (r *catalogs) keepCertificate(ctx context.Context, c *aihubv1alpha1.Catalog) error {
	if !issues(c, r.seen(c).Inputs) {
		r.certificates.Leave(c)
		return nil
	}
	err := r.certificates.Keep(ctx, c, servingcert.Wanted{
		Namespace: c.Namespace, Name: certificateSecret, Authority: certificateAuthority, Service: baseName,
		Labels: labels(baseName), Disowns: formerOwner,
	})
	if err != nil {
		return r.notApplied(c, err)
	}
	return nil
}

// awaitRenewal brings the Catalog back when its certificate is due.
func (r *catalogs) awaitRenewal(_ context.Context, c *aihubv1alpha1.Catalog) error {
	return r.certificates.AwaitRenewal(c.UID)
}

package modelcatalog

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"

	aihubv1alpha1 "github.com/odh-platform/odh-platform-operator/apis/aihub/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/reference"
)

// references are what the pods of a Deployment read when they start, so that a change rolls them: the Secret of the database. The
// server and the proxy notice by themselves when the files of sources and of the serving certificate change, and the rule of the
// proxy is ours and never another. The Secret of a database elsewhere is not among them: it may have any name, and the
// catalog may not read the Secrets of others, among which are the passwords of registries.
func references(c *aihubv1alpha1.Catalog, deployment string) []reference.Reference {
	if external(c) != nil && deployment == baseName {
		return nil
	}
	return []reference.Reference{{Kind: reference.Secret, Name: databaseName, Keys: []string{keyDatabase, keyUser, keyPassword}}}
}

// stamp records on Deployments what their pods read, and rolls those for which that has changed.
func (r *catalogs) stamp(ctx context.Context, c *aihubv1alpha1.Catalog, desired apply.Desired) error {
	var refs []reference.Reference
	for _, o := range desired {
		if d, ok := o.Config.(*appsv1ac.DeploymentApplyConfiguration); ok {
			refs = append(refs, references(c, *d.Name)...)
		}
	}
	resolved, err := r.references.Resolve(ctx, c.UID, c.Namespace, refs)
	if err != nil {
		return err
	}
	for _, o := range desired {
		d, ok := o.Config.(*appsv1ac.DeploymentApplyConfiguration)
		if !ok {
			continue
		}
		live, err := r.looked(ctx, c, *d.Name) // also one that lost our label, or its pods would roll
		if err != nil {
			return err
		}
		if live == nil {
			live = &appsv1.Deployment{}
		}
		stamp, err := reference.NextOn(live, resolved.Hashes, references(c, *d.Name))
		if err != nil {
			return err
		}
		stamp.Mark(d)
	}
	return nil
}

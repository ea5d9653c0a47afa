package modelcatalog

import (
	"context"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	aihubv1alpha1 "github.com/odh-platform/odh-platform-operator/apis/aihub/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/controllers/modelcatalog/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/reference"
	common "github.com/odh-platform/odh-platform-operator/pkg/resources"
)

// references are what the pods of a Deployment read when they start, so that a change rolls them: the Secret of the database. The
// server and the proxy notice by themselves when the files of sources and of the serving certificate change, and the rule of the
// proxy is ours and never another. The Secret of a database elsewhere is among them only if it has the name of our own: the
// catalog may read no other Secrets, among which are the passwords of registries.
func references(c *aihubv1alpha1.Catalog, deployment string) []reference.Reference {
	if ext := resources.External(c); resources.Connection(c) != nil || ext != nil && deployment == resources.Name && ext.SecretName != resources.DatabaseName {
		return nil
	}
	refs := []reference.Reference{{Kind: reference.Secret, Name: resources.DatabaseName, Keys: []string{resources.KeyDatabase, resources.KeyUser, resources.KeyPassword}}}
	if resources.EncryptsDatabase(c) {
		refs = append(refs, reference.Reference{Kind: reference.Secret, Name: resources.DatabaseCertificate, Keys: []string{corev1.TLSCertKey, corev1.TLSPrivateKeyKey, common.CAKey}})
	}
	return refs
}

// sourcesOfUsers are the ConfigMaps of users without whose key the server does not start. It notices changes by itself, so that
// none rolls its pods.
func sourcesOfUsers() []reference.Reference {
	refs := make([]reference.Reference, 0, len(resources.UserSources))
	for _, s := range resources.UserSources {
		refs = append(refs, reference.Reference{Kind: reference.ConfigMap, Name: s.Name, Keys: []string{resources.SourcesKey}})
	}
	return refs
}

// reportMissing names in a condition what pods need and does not exist, but for missing objects that are about to be made here.
func reportMissing(c *aihubv1alpha1.Catalog, in resources.Inputs, missing, absent []reference.Missing) {
	missing = slices.DeleteFunc(missing, func(x reference.Missing) bool {
		return x.Key == "" && (x.Kind == reference.ConfigMap || resources.OwnsDatabase(c, in))
	})
	reference.Report(&c.Status.Conditions, c.Generation, c.Namespace, append(missing, absent...))
}

// absent are the objects that the spec mounts, or pulls images with, and that do not exist. Secrets are found by the right to find keys
// for Hugging Face; an installation without it learns nothing of them. What was found is looked for again after a while only, since nothing
// of it is cached; what was not is looked for at each reconcile, and the pods that wait for it cause one when it comes.
func (r *catalogs) absent(ctx context.Context, c *aihubv1alpha1.Catalog) ([]reference.Missing, error) {
	present := r.remembered(c.UID).present
	return reference.Absent(reference.OfPods(&c.Spec.Pods), func(ref reference.Reference) (bool, error) {
		name := string(ref.Kind) + "/" + ref.Name
		if r.clock.Since(present[name]) < presence {
			return true, nil
		}
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(string(ref.Kind) + "List"))
		err := r.live.List(ctx, list, client.InNamespace(c.Namespace), client.MatchingFields{metav1.ObjectNameField: ref.Name})
		found := len(list.Items) > 0 || apierrors.IsForbidden(err)
		if found {
			present[name] = r.clock.Now()
			return true, nil
		}
		return false, err
	})
}

// stamp records on Deployments what their pods read, and rolls those for which that has changed.
func (r *catalogs) stamp(ctx context.Context, c *aihubv1alpha1.Catalog, desired apply.Desired) error {
	refs := sourcesOfUsers()
	for _, o := range desired {
		if d, ok := o.Config.(*appsv1ac.DeploymentApplyConfiguration); ok {
			refs = append(refs, references(c, *d.Name)...)
		}
	}
	resolved, err := r.references.Resolve(ctx, c.UID, c.Namespace, refs)
	if err != nil {
		return err
	}
	absent, err := r.absent(ctx, c)
	if err != nil {
		return err
	}
	reportMissing(c, r.snapshot(c).Inputs, resolved.Missing, absent)
	for _, o := range desired {
		d, ok := o.Config.(*appsv1ac.DeploymentApplyConfiguration)
		if !ok {
			continue
		}
		live, err := r.findDeployment(ctx, c, *d.Name) // also one that lost our label, or its pods would roll
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

package modelcatalog

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	aihubv1alpha1 "github.com/odh-platform/odh-platform-operator/apis/aihub/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/controllers/modelcatalog/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/reference"
	"github.com/odh-platform/odh-platform-operator/pkg/registry"
	common "github.com/odh-platform/odh-platform-operator/pkg/resources"
)

// references are what the pods of a Deployment read when they start, so that a change rolls them: the Secret of the database. The
// server and the proxy notice by themselves when the files of sources and of the serving certificate change, and the rule of the
// proxy is ours and never another. The Secret of a database elsewhere is among them only if it has the name of our own: the
// catalog may read no other Secrets, among which are the passwords of registries.
func deploymentReferences(c *aihubv1alpha1.Catalog, deployment string) []reference.Reference {
	if ext := resources.ExternalDatabase(c); resources.DatabaseConnection(c) != nil || ext != nil && deployment == resources.Name && ext.SecretName != resources.DatabaseName {
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
func userSourceReferences() []reference.Reference {
	refs := make([]reference.Reference, 0, len(resources.UserSources))
	for _, s := range resources.UserSources {
		refs = append(refs, reference.Reference{Kind: reference.ConfigMap, Name: s.Name, Keys: []string{resources.SourcesKey}})
	}
	return refs
}

// presence is how long an object that the pods mount counts as there once it was found.
const foundTTL = 10 * time.Minute

// absent are the objects that the spec mounts, or pulls images with, and that do not exist. Secrets are found by the right to find keys
// for Hugging Face; an installation without it learns nothing of them. What was found is looked for again after a while only, since nothing
// of it is cached; what was not is looked for at each reconcile, and the pods that wait for it cause one when it comes.
func (r *catalogReconciler) findMissing(ctx context.Context, c *aihubv1alpha1.Catalog) ([]reference.Missing, error) {
	present := r.stateOf(c.UID).foundAt
	return reference.FindMissing(reference.OfPods(&c.Spec.Pods), func(ref reference.Reference) (bool, error) {
		name := string(ref.Kind) + "/" + ref.Name
		if r.clock.Since(present[name]) < foundTTL {
			return true, nil
		}
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(string(ref.Kind) + "List"))
		err := r.apiReader.List(ctx, list, client.InNamespace(c.Namespace), client.MatchingFields{metav1.ObjectNameField: ref.Name})
		found := len(list.Items) > 0 || apierrors.IsForbidden(err)
		if found {
			present[name] = r.clock.Now()
			return true, nil
		}
		return false, err
	})
}

// stamp records on Deployments what their pods read, and rolls those for which that has changed.
func (r *catalogReconciler) applyRolloutHashes(ctx context.Context, c *aihubv1alpha1.Catalog, desired apply.Desired) error {
	refs := userSourceReferences()
	for _, d := range deployments(desired) {
		refs = append(refs, deploymentReferences(c, *d.Name)...)
	}
	resolved, err := r.references.Resolve(ctx, c.UID, c.Namespace, refs)
	if err != nil {
		return err
	}
	absent, err := r.findMissing(ctx, c)
	if err != nil {
		return err
	}
	missing := slices.DeleteFunc(resolved.Missing, func(x reference.Missing) bool { // which is about to be made here
		return x.Key == "" && (x.Kind == reference.ConfigMap || resources.OwnsDatabase(c, r.inputsOf(c)))
	})
	reference.Report(&c.Status.Conditions, c.Generation, c.Namespace, append(missing, absent...))
	for _, d := range deployments(desired) {
		live, err := registry.FindDeployment(ctx, r.cached, r.apiReader, c.Namespace, *d.Name) // also one that lost our label, or its pods would roll
		if err != nil {
			return err
		}
		stamp, err := reference.ForDeployment(live, resolved.Hashes, deploymentReferences(c, *d.Name))
		if err != nil {
			return err
		}
		stamp.Apply(d)
	}
	return nil
}

// deployments are those among the wanted objects.
func deployments(desired apply.Desired) []*appsv1ac.DeploymentApplyConfiguration {
	var all []*appsv1ac.DeploymentApplyConfiguration
	for _, o := range desired {
		if d, ok := o.Config.(*appsv1ac.DeploymentApplyConfiguration); ok {
			all = append(all, d)
		}
	}
	return all
}

// annotationDatabasePod is the uid of the pod of the database: on the Deployment of the server that which was seen last, on its pods
// that for which they were replaced.
const annotationDatabasePod = "catalog.opendatahub.io/database-pod"

// followDatabase replaces the pods of the server when that of its database was replaced: the new one starts empty, and a server fills
// its database when it starts, and only then. Server pods that are younger than the database need not be.
func (r *catalogReconciler) restartForNewDatabase(ctx context.Context, c *aihubv1alpha1.Catalog, desired apply.Desired) error {
	want := desired.Deployment(resources.Name)
	if want == nil || !resources.OwnsDatabase(c, r.inputsOf(c)) {
		return nil
	}
	live, err := registry.FindDeployment(ctx, r.cached, r.apiReader, c.Namespace, resources.Name)
	if err != nil || live.Name == "" {
		return err
	}
	known, replaced := live.Annotations[annotationDatabasePod], live.Spec.Template.Annotations[annotationDatabasePod]
	pods, err := r.listPodsIfChanged(ctx, c, known != "")
	if err != nil {
		return err
	}
	if present := databasePod(pods); present != nil {
		if known != "" && known != string(present.UID) && hasOlderServerPod(pods, present) {
			replaced = string(present.UID)
		}
		known = string(present.UID)
	}
	if known != "" {
		want.WithAnnotations(map[string]string{annotationDatabasePod: known})
	}
	if replaced != "" {
		want.Spec.Template.WithAnnotations(map[string]string{annotationDatabasePod: replaced})
	}
	return nil
}

// changedPods lists the pods of server and database when the Deployment of an available database has changed, or when the Deployment of
// the server, which another client may have deleted, has no mark; else there are none.
func (r *catalogReconciler) listPodsIfChanged(ctx context.Context, c *aihubv1alpha1.Catalog, marked bool) ([]corev1.Pod, error) {
	database, err := registry.FindDeployment(ctx, r.cached, r.apiReader, c.Namespace, resources.DatabaseName)
	good := r.stateOf(c.UID).validVersions
	if err != nil || database.Status.AvailableReplicas == 0 || marked && good[annotationDatabasePod] == objectVersion(database) {
		return nil, err
	}
	pods := &corev1.PodList{}
	all := client.MatchingLabels{resources.LabelApp: resources.Name, resources.LabelComponent: resources.Name}
	if err := r.apiReader.List(ctx, pods, client.InNamespace(c.Namespace), all, client.Limit(20)); err != nil {
		return nil, fmt.Errorf("listing the pods of the catalog: %w", err)
	}
	if databasePod(pods.Items) != nil {
		good[annotationDatabasePod] = objectVersion(database)
	}
	return pods.Items, nil
}

// databasePod is the one pod of the database that is to stay; nil while there are none or two.
func databasePod(pods []corev1.Pod) *corev1.Pod {
	var found *corev1.Pod
	for i := range pods {
		if pods[i].Labels[resources.LabelName] != resources.DatabaseName || !pods[i].DeletionTimestamp.IsZero() || pods[i].Status.Phase == corev1.PodFailed {
			continue
		}
		if found != nil {
			return nil
		}
		found = &pods[i]
	}
	return found
}

// olderServer says whether a pod of the server was there before the database.
func hasOlderServerPod(pods []corev1.Pod, database *corev1.Pod) bool {
	return slices.ContainsFunc(pods, func(p corev1.Pod) bool {
		older := p.CreationTimestamp.Before(&database.CreationTimestamp)
		return p.Labels[resources.LabelName] == resources.Name && p.DeletionTimestamp.IsZero() && older
	})
}

package modelcatalog

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	aihubv1alpha1 "github.com/odh-platform/odh-platform-operator/apis/aihub/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/controllers/modelcatalog/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/names"
	"github.com/odh-platform/odh-platform-operator/pkg/objectmeta"
	"github.com/odh-platform/odh-platform-operator/pkg/reference"
	pkgresources "github.com/odh-platform/odh-platform-operator/pkg/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/servers"
)

// isValidated reports whether the cached version of an object was validated before.
func (r *catalogReconciler) isValidated(ctx context.Context, c *aihubv1alpha1.Catalog, kind schema.GroupVersionKind, name string) (bool, error) {
	metadata, err := objectmeta.Get(ctx, r.Cached, kind, client.ObjectKey{Namespace: c.Namespace, Name: name})
	return metadata != nil && r.stateOf(c.UID).validVersions[name] == objectVersion(metadata), err
}

// ensureUserSources creates missing user-editable ConfigMaps. It adds the managed labels to existing ones and removes legacy data from
// them. It reads each version of a ConfigMap from the API server once.
func (r *catalogReconciler) ensureUserSources(ctx context.Context, c *aihubv1alpha1.Catalog) error {
	var errs []error
	for _, s := range resources.UserSources {
		if err := r.ensureUserSource(ctx, c, s.Name, s.Content); err != nil {
			errs = append(errs, fmt.Errorf("ensuring ConfigMap %s: %w", s.Name, err))
		}
	}
	return errors.Join(errs...)
}

func (r *catalogReconciler) ensureUserSource(ctx context.Context, c *aihubv1alpha1.Catalog, name, content string) error {
	key := client.ObjectKey{Namespace: c.Namespace, Name: name}
	if valid, err := r.isValidated(ctx, c, servers.ConfigMap, name); err != nil || valid {
		return err
	}
	live := &corev1.ConfigMap{}
	err := r.APIReader.Get(ctx, key, live)
	if apierrors.IsNotFound(err) {
		return r.Applier.Create(ctx, c, apply.Object{Config: resources.UserSourcesConfigMap(c, name, content), Ownership: apply.Unowned})
	}
	if err != nil {
		return err
	}
	if err := r.Applier.PatchExisting(ctx, live, func() {
		live.Labels = labels.Merge(live.Labels, names.Labels(ComponentName))
		r.takeOver.CleanSources(ctx, live)
	}); err != nil {
		return err
	}
	r.stateOf(c.UID).validVersions[name] = objectVersion(live)
	return nil
}

// ensureDatabaseSecret creates the Secret of the database, and adds missing keys.
func (r *catalogReconciler) ensureDatabaseSecret(ctx context.Context, c *aihubv1alpha1.Catalog) error {
	if !resources.OwnsDatabase(c, r.inputsOf(c)) {
		return nil
	}
	key := client.ObjectKey{Namespace: c.Namespace, Name: resources.DatabaseName}
	if valid, err := r.isValidated(ctx, c, servers.Secret, key.Name); err != nil || valid {
		return err
	}
	live := &corev1.Secret{}
	err := r.APIReader.Get(ctx, key, live)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading Secret %s: %w", key, err)
	}
	if live.DeletionTimestamp != nil {
		return nil // the event of its deletion requeues the Catalog
	}
	data := withMissingKeys(live.Data, r.settings.CatalogPostgresUser, r.settings.CatalogPostgresDatabase)
	objects := apply.Desired{{Config: databaseSecret(c, live.Type, data), NeverDelete: true}}
	r.takeOver.Adopt(c, objects)
	if err := r.Applier.Apply(ctx, c, objects); err != nil {
		return r.reportApplyError(c, err)
	}
	if live.UID != "" && resources.IsManaged(live) && metav1.IsControlledBy(live, c) && maps.EqualFunc(live.Data, data, slices.Equal[[]byte]) {
		r.stateOf(c.UID).validVersions[key.Name] = objectVersion(live)
	}
	return nil
}

// withMissingKeys returns the data of the Secret with missing or empty keys set. Existing values are kept, because the database was created with
// them.
func withMissingKeys(data map[string][]byte, user, database string) map[string][]byte {
	out := map[string][]byte{}
	maps.Copy(out, data)
	for key, value := range map[string]string{resources.KeyDatabase: database, resources.KeyUser: user, resources.KeyPassword: pkgresources.NewPassword()} {
		if len(out[key]) == 0 {
			out[key] = []byte(value)
		}
	}
	return out
}

// databaseSecret returns the Secret of the database. The type of an existing Secret is immutable.
func databaseSecret(c *aihubv1alpha1.Catalog, secretType corev1.SecretType, data map[string][]byte) *corev1ac.SecretApplyConfiguration {
	return corev1ac.Secret(resources.DatabaseName, c.Namespace).WithLabels(resources.Labels(resources.DatabaseName)).
		WithType(cmp.Or(secretType, corev1.SecretTypeOpaque)).WithData(data)
}

// deploymentReferences returns the Secrets of the database that the pods of a Deployment read only when they start. A change must restart
// the pods. The Secret of spec.database.external is included only if it has the name of the managed one, because RBAC may allow no others.
func deploymentReferences(c *aihubv1alpha1.Catalog, deployment string) []reference.Reference {
	if ext := resources.ExternalDatabase(c); resources.DatabaseConnection(c) != nil || ext != nil && deployment == resources.Name && ext.SecretName != resources.DatabaseName {
		return nil
	}
	refs := []reference.Reference{{Kind: reference.Secret, Name: resources.DatabaseName, Keys: []string{resources.KeyDatabase, resources.KeyUser, resources.KeyPassword}}}
	if resources.EncryptsDatabase(c) {
		refs = append(refs, reference.Reference{Kind: reference.Secret, Name: resources.DatabaseCertificate, Keys: []string{corev1.TLSCertKey, corev1.TLSPrivateKeyKey, pkgresources.CAKey}})
	}
	return refs
}

// userSourceReferences returns the user-editable ConfigMaps, whose key the server needs to start. Changes do not restart the pods, because the
// server reloads the ConfigMaps.
func userSourceReferences() []reference.Reference {
	refs := make([]reference.Reference, 0, len(resources.UserSources))
	for _, s := range resources.UserSources {
		refs = append(refs, reference.Reference{Kind: reference.ConfigMap, Name: s.Name, Keys: []string{resources.SourcesKey}})
	}
	return refs
}

// foundTTL is the period for which a mounted object is assumed to exist after it was found.
const foundTTL = 10 * time.Minute

// exists reports whether an object that the spec mounts or uses as pull secret exists. Objects count as found if listing them is forbidden,
// because permission to list Secrets is optional. Found objects are listed again after foundTTL, missing ones in each reconcile.
func (r *catalogReconciler) exists(ctx context.Context, c *aihubv1alpha1.Catalog, ref reference.Reference) (bool, error) {
	foundAt := r.stateOf(c.UID).foundAt
	if r.Clock.Since(foundAt[ref.ID()]) < foundTTL {
		return true, nil
	}
	list := objectmeta.NewList(corev1.SchemeGroupVersion.WithKind(string(ref.Kind)))
	err := r.APIReader.List(ctx, list, client.InNamespace(c.Namespace), client.MatchingFields{metav1.ObjectNameField: ref.Name})
	if len(list.Items) > 0 || apierrors.IsForbidden(err) {
		foundAt[ref.ID()] = r.Clock.Now()
		return true, nil
	}
	return false, err
}

// applyRolloutHashes sets the hashes of consumed objects on Deployments, so that changes restart their pods, and reports missing objects.
func (r *catalogReconciler) applyRolloutHashes(ctx context.Context, c *aihubv1alpha1.Catalog, desired apply.Desired) error {
	rollouts := map[string][]reference.Reference{}
	for _, d := range servers.Deployments(desired) {
		rollouts[*d.Name] = deploymentReferences(c, *d.Name)
	}
	hashes, _, err := r.ResolveReferences(ctx, c, c.Namespace, servers.References{
		Rollouts: rollouts, Required: userSourceReferences(), Mounted: servers.PodReferences(&c.Spec.Pods),
		Exists: func(ref reference.Reference) (bool, error) { return r.exists(ctx, c, ref) },
		IsManaged: func(x reference.Missing) bool { // this reconcile creates it
			return x.Key == "" && (x.Kind == reference.ConfigMap || resources.OwnsDatabase(c, r.inputsOf(c)))
		},
	})
	for _, d := range servers.Deployments(desired) {
		hashes[*d.Name].Apply(d)
	}
	return err
}

// annotationDatabasePod contains the UID of a database pod. On the Deployment of the server, it is the last pod that was seen. On the pod
// template, it is the pod for which the server pods were replaced.
const annotationDatabasePod = "catalog.opendatahub.io/database-pod"

// restartForNewDatabase replaces the pods of the server after the pod of the database was replaced: a new pod starts without data, and the
// server fills the database only when it starts. No pod is replaced if all are younger than the database pod.
func (r *catalogReconciler) restartForNewDatabase(ctx context.Context, c *aihubv1alpha1.Catalog, desired apply.Desired) error {
	all := servers.Deployments(desired)
	i := slices.IndexFunc(all, func(d *appsv1ac.DeploymentApplyConfiguration) bool { return *d.Name == resources.Name })
	if i < 0 || !resources.OwnsDatabase(c, r.inputsOf(c)) {
		return nil
	}
	live, err := r.Deployment(ctx, c.Namespace, resources.Name)
	if err != nil || live.Name == "" {
		return err
	}
	lastSeen, restartedFor := live.Annotations[annotationDatabasePod], live.Spec.Template.Annotations[annotationDatabasePod]
	pods, err := r.listPodsIfChanged(ctx, c, lastSeen != "")
	if err != nil {
		return err
	}
	if current := databasePod(pods); current != nil {
		if lastSeen != "" && lastSeen != string(current.UID) && hasOlderServerPod(pods, current) {
			restartedFor = string(current.UID)
		}
		lastSeen = string(current.UID)
	}
	if lastSeen != "" {
		all[i].WithAnnotations(map[string]string{annotationDatabasePod: lastSeen})
	}
	if restartedFor != "" {
		all[i].Spec.Template.WithAnnotations(map[string]string{annotationDatabasePod: restartedFor})
	}
	return nil
}

// listPodsIfChanged lists the pods of server and database if the database is available, and either its Deployment changed or the Deployment of
// the server is not annotated, such as after another client recreated it.
func (r *catalogReconciler) listPodsIfChanged(ctx context.Context, c *aihubv1alpha1.Catalog, annotated bool) ([]corev1.Pod, error) {
	database, err := r.Deployment(ctx, c.Namespace, resources.DatabaseName)
	state := r.stateOf(c.UID)
	if err != nil || database.Status.AvailableReplicas == 0 || annotated && state.podsListedFor == objectVersion(database) {
		return nil, err
	}
	pods, err := r.ListPods(ctx, c.Namespace, resources.Selector(resources.DatabaseName))
	if err != nil || databasePod(pods) == nil {
		return nil, err
	}
	serverPods, err := r.ListPods(ctx, c.Namespace, resources.Selector(resources.Name)) // a separate list, so that its limit never omits the database pod
	if err == nil {
		state.podsListedFor = objectVersion(database)
	}
	return append(pods, serverPods...), err
}

// databasePod returns the only active pod of the database, or nil if no pod or more than one is active.
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

// hasOlderServerPod reports whether a pod of the server is older than the pod of the database.
func hasOlderServerPod(pods []corev1.Pod, database *corev1.Pod) bool {
	return slices.ContainsFunc(pods, func(p corev1.Pod) bool {
		return p.Labels[resources.LabelName] == resources.Name && p.DeletionTimestamp.IsZero() && p.CreationTimestamp.Before(&database.CreationTimestamp)
	})
}

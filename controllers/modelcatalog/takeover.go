package modelcatalog

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"go.yaml.in/yaml/v3"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	aihubv1alpha1 "github.com/odh-platform/odh-platform-operator/apis/aihub/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/apis/modelregistry/v1beta1"
	"github.com/odh-platform/odh-platform-operator/controllers/modelcatalog/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/names"
	"github.com/odh-platform/odh-platform-operator/pkg/reconciler"
)

// This file takes over what the original operator left behind, and may go with release 1.0: who comes from the original has to run
// an earlier release first.

// leftovers are what older releases made and nothing uses any more.
var leftovers = []place{{claimKind, resources.DatabaseName}, {configMapKind, "model-catalog-default-sources"}, {secretKind, "model-catalog-oauth-cookie-secret"}}

// removeLeftovers removes them, once in the life of the process: nothing makes more of them.
func (r *catalogs) removeLeftovers(ctx context.Context, c *aihubv1alpha1.Catalog) error {
	if r.remembered(c.UID).withoutLeftovers {
		return nil
	}
	var errs []error
	for _, p := range leftovers {
		errs = append(errs, r.applier.RemoveNamed(ctx, c.UID, p.kind, client.ObjectKey{Namespace: c.Namespace, Name: p.name},
			func(found *metav1.PartialObjectMetadata) (bool, error) { return madeHere(found), nil }))
	}
	err := errors.Join(errs...)
	r.remembered(c.UID).withoutLeftovers = err == nil
	return err
}

// madeHere reports whether this operator or the one before it made an object.
func madeHere(o metav1.Object) bool {
	return ours(o) || o.GetLabels()[resources.LabelCreatedBy] == resources.CreatedBy && !ofAnother(o)
}

// ofAnother says whether its labels name another component as the one that an object was made for: those of registries bear the
// same created-by, and a registry may be called as the catalog is.
func ofAnother(o metav1.Object) bool {
	former, said := o.GetLabels()[resources.LabelComponent]
	return apply.OfAnother(o, ComponentName) || said && former != resources.Name && former != resources.DatabaseName
}

// formerOwner recognises the owners that the catalog had before there was a Catalog.
func formerOwner(ref metav1.OwnerReference) bool {
	switch ref.Kind {
	case "ModelRegistry":
		return ref.Name == "default-modelregistry"
	case "Deployment":
		return ref.Name == resources.Name || ref.Name == resources.DatabaseName
	default:
		return false
	}
}

// adopting lets objects of the older operators be taken over. What they made is found by its name in the namespace of the catalog,
// unless its labels say that it was made for a registry; elsewhere it must bear their label.
func adopting(objects apply.Desired) apply.Desired {
	for i := range objects {
		objects[i].Disowns = formerOwner
		objects[i].Adopts = func(live *unstructured.Unstructured) bool { return !ofAnother(live) }
		if kind, _, err := objects[i].Place(); err == nil && (kind == clusterBindingKind || kind.Kind == capability.HTTPRoute.Kind) {
			objects[i].Adopts = func(live *unstructured.Unstructured) bool { return madeHere(live) }
		}
	}
	return objects
}

// outdated returns the live Deployments whose selector is that of an older release and cannot be changed, and all wanted objects
// but Deployments.
func (r *catalogs) outdated(ctx context.Context, c *aihubv1alpha1.Catalog, desired apply.Desired) (others apply.Desired, old []*appsv1.Deployment, err error) {
	for _, o := range desired {
		want, ok := o.Config.(*appsv1ac.DeploymentApplyConfiguration)
		if !ok {
			others = append(others, o)
			continue
		}
		live, err := r.findDeployment(ctx, c, *want.Name)
		if err != nil {
			return nil, nil, err
		}
		if live != nil && isOutdated(live, *want.Name) {
			old = append(old, live)
		}
	}
	return others, old, nil
}

// deleteOutdated deletes Deployments that have to be recreated, once the other objects are free of them, and waits until their pods are
// gone. Nothing else makes a Deployment go.
func (r *catalogs) deleteOutdated(ctx context.Context, c *aihubv1alpha1.Catalog, others apply.Desired, outdated []*appsv1.Deployment) error {
	if len(outdated) == 0 {
		return nil
	}
	if err := r.applier.Apply(ctx, c, others); err != nil {
		return r.notApplied(c, err)
	}
	for _, d := range outdated {
		if err := r.applier.Discard(ctx, c.UID, d); err != nil {
			return err
		}
	}
	return &reconciler.Wait{For: "Deployment " + outdated[0].Name + " of an older release to be gone", Retry: soon}
}

// isOutdated reports whether a Deployment cannot become what is wanted of it: its selector never changes, and the database may
// not leave RollingUpdate while the settings of that are stored.
func isOutdated(d *appsv1.Deployment, name string) bool {
	selectors := d.Spec.Selector == nil || equality.Semantic.DeepEqual(d.Spec.Selector, &metav1.LabelSelector{MatchLabels: resources.Selector(name)})
	return !selectors || name == resources.DatabaseName && d.Spec.Strategy.RollingUpdate != nil
}

// tidy marks a ConfigMap of users as one that we watch, and removes what older releases left in it. What users wrote stays,
// to the byte where the one entry is not in it.
func tidy(ctx context.Context, m *corev1.ConfigMap) {
	if !ours(m) {
		if m.Labels == nil {
			m.Labels = map[string]string{}
		}
		maps.Copy(m.Labels, names.Labels(ComponentName))
	}
	delete(m.Annotations, LastApplied)
	m.OwnerReferences = slices.DeleteFunc(m.OwnerReferences, formerOwner)
	text, err := withoutFormerDefault(m.Data[resources.SourcesKey])
	if err != nil {
		log.FromContext(ctx).Info("Sources are not understood and left alone", "configMap", m.Name, "reason", err.Error())
		return
	}
	if text != "" {
		m.Data[resources.SourcesKey] = text
	}
}

// formerDefault is the entry that releases before 3.0 put into the sources of users.
const formerDefault = "default_catalog"

// listsOfModels are the sections in which that entry can stand.
var listsOfModels = []string{"catalogs", "model_catalogs"}

// withoutFormerDefault returns sources without the entry of older releases: that entry goes, and everything else stays, also
// keys that are not known here. Empty means that there is nothing to remove. An error says why the text is not understood; it
// is left alone then.
func withoutFormerDefault(text string) (string, error) {
	document, err := readSources(text)
	if err != nil || document == nil {
		return "", err
	}
	removed := false
	for _, section := range listsOfModels {
		list := valueOf(document.Content[0], section)
		if list == nil || list.Tag == "!!null" {
			continue
		}
		if list.Kind != yaml.SequenceNode {
			return "", fmt.Errorf("%s is no list", section)
		}
		before := len(list.Content)
		list.Content = slices.DeleteFunc(list.Content, isFormerDefault)
		removed = removed || len(list.Content) != before
	}
	if !removed {
		return "", nil
	}
	var out bytes.Buffer
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	if err := encoder.Encode(document); err != nil {
		return "", fmt.Errorf("encoding the sources without %s: %w", formerDefault, err)
	}
	if _, err := readSources(out.String()); err != nil { // something refers to what was removed
		return "", fmt.Errorf("%s cannot be removed: %w", formerDefault, err)
	}
	return out.String(), nil
}

func isFormerDefault(entry *yaml.Node) bool {
	if entry.Kind != yaml.MappingNode {
		return false
	}
	id := valueOf(entry, "id")
	return id != nil && id.Kind == yaml.ScalarNode && id.Value == formerDefault
}

// sharedGrantName is the ReferenceGrant to every Service of a namespace that the original made for registries and the catalog.
const sharedGrantName = "allow-gateway-httproutes"

// removeSharedGrant removes the grant of the original where the catalog alone lived by it: its own one was written before. Where
// there are registries, their controller knows whether they need it still. It is looked for once: nothing makes another one.
func (r *catalogs) removeSharedGrant(ctx context.Context, c *aihubv1alpha1.Catalog) error {
	past := &metav1.PartialObjectMetadata{}
	past.Name = sharedGrantName
	past.UID = c.UID
	if !r.snapshot(c).ReferenceGrants || r.remembered(c.UID).isGood(sharedGrantName, past) {
		return nil
	}
	grant := head(capability.ReferenceGrant)
	err := r.live.Get(ctx, client.ObjectKey{Namespace: c.Namespace, Name: sharedGrantName}, grant)
	if err != nil && !apierrors.IsNotFound(err) && !meta.IsNoMatchError(err) {
		return fmt.Errorf("reading ReferenceGrant %s: %w", sharedGrantName, err)
	}
	if err == nil && (ours(grant) || grant.GetLabels()[resources.LabelCreatedBy] == resources.CreatedBy) { // its labels name the component of registries
		alone, err := r.withoutRegistries(ctx, c.Namespace)
		if err != nil {
			return err
		}
		if alone {
			err = r.applier.Remove(ctx, c.UID, grant)
		}
		if err != nil && !apierrors.IsConflict(err) { // a conflict: another one has the name
			return err
		}
	}
	r.remembered(c.UID).found(sharedGrantName, past)
	return nil
}

// withoutRegistries says whether no registry lives in a namespace.
func (r *catalogs) withoutRegistries(ctx context.Context, namespace string) (bool, error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(v1beta1.GroupVersion.WithKind(v1beta1.Kind + "List"))
	err := r.live.List(ctx, list, client.InNamespace(namespace), client.Limit(1))
	if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("listing model registries: %w", err)
	}
	return len(list.Items) == 0, nil
}

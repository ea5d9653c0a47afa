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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/log"

	aihubv1alpha1 "github.com/odh-platform/odh-platform-operator/apis/aihub/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/controllers/modelcatalog/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/names"
	"github.com/odh-platform/odh-platform-operator/pkg/reconciler"
	"github.com/odh-platform/odh-platform-operator/pkg/servers"
)

// This file adopts or deletes objects of the legacy operator. It may be removed in release 1.0: migration from the legacy operator then
// needs an earlier release first.

// Names of legacy objects that this operator does not create.
const (
	legacyCookieSecret   = "model-catalog-oauth-cookie-secret"
	legacyDefaultSources = "model-catalog-default-sources"
)

// deleteLegacyObjects deletes legacy objects without a successor, once per process, because no new ones are created. It deletes the shared
// ReferenceGrant when no HTTPRoute needs it.
func (r *catalogReconciler) deleteLegacyObjects(ctx context.Context, c *aihubv1alpha1.Catalog, in resources.Inputs) error {
	state, errs := r.stateOf(c.UID), make([]error, 2)
	if !state.legacyDeleted {
		errs[0] = deleteManaged(ctx, r.Applier, c.UID, []apply.Key{
			apply.NewKey(servers.Claim, c.Namespace, resources.DatabaseName), apply.NewKey(servers.ConfigMap, c.Namespace, legacyDefaultSources),
			apply.NewKey(servers.Secret, c.Namespace, legacyCookieSecret),
		})
		state.legacyDeleted = errs[0] == nil
	}
	if in.Served.Has(capability.ReferenceGrant) && !state.sharedGrantDeleted {
		state.sharedGrantDeleted, errs[1] = servers.DeleteSharedGrant(ctx, r.APIReader, r.Applier, c.UID, c.Namespace)
	}
	return errors.Join(errs...)
}

// deleteManaged deletes objects of this or the legacy operator.
func deleteManaged(ctx context.Context, applier *apply.Applier, forOwner types.UID, keys []apply.Key) error {
	var errs []error
	for _, key := range keys {
		errs = append(errs, applier.DeleteIf(ctx, forOwner, key.GroupVersionKind, key.NamespacedName,
			func(found *metav1.PartialObjectMetadata) (bool, error) { return isManagedOrLegacy(found), nil }))
	}
	return errors.Join(errs...)
}

// isManagedOrLegacy reports whether an object has the labels of this component, or those of the legacy operator for the catalog.
func isManagedOrLegacy(o metav1.Object) bool {
	return isManaged(o) || o.GetLabels()[resources.LabelCreatedBy] == resources.CreatedBy && !isOfOtherComponent(o)
}

// isOfOtherComponent reports whether the labels of an object name another component: objects of registries have the same created-by label,
// and a registry can be named model-catalog.
func isOfOtherComponent(o metav1.Object) bool {
	legacyComponent, found := o.GetLabels()[resources.LabelComponent]
	return apply.ManagedByOther(o, ComponentName) || found && legacyComponent != resources.Name && legacyComponent != resources.DatabaseName
}

// isLegacyOwner reports whether the legacy operator, which had no Catalog, set an owner reference.
func isLegacyOwner(ref metav1.OwnerReference) bool {
	switch ref.Kind {
	case "ModelRegistry":
		return ref.Name == "default-modelregistry"
	case "Deployment":
		return ref.Name == resources.Name || ref.Name == resources.DatabaseName
	default:
		return false
	}
}

// isCatalogDeployment reports whether a Deployment has labels, the annotation or an owner reference of this or the legacy operator.
func isCatalogDeployment(d metav1.Object) bool {
	_, isCopied := d.GetAnnotations()[servers.LegacyCopyAnnotation]
	isOwner := func(ref metav1.OwnerReference) bool { return isLegacyOwner(ref) || isCatalogReference(ref) }
	return !isOfOtherComponent(d) && (isCopied || isManagedOrLegacy(d) || slices.ContainsFunc(d.GetOwnerReferences(), isOwner))
}

func isCatalogReference(ref metav1.OwnerReference) bool {
	return servers.RefersTo(ref, aihubv1alpha1.GroupVersion.WithKind(aihubv1alpha1.Kind))
}

// withAdoption allows the adoption of existing objects. In the namespace of the catalog, their labels must not name another component, and
// Deployments must be those of a catalog. Other objects must have the labels of the legacy operator.
func withAdoption(objects apply.Desired) apply.Desired {
	for i := range objects {
		objects[i].DropOwnerReferences = isLegacyOwner
		objects[i].AdoptIf = func(live *unstructured.Unstructured) bool { return !isOfOtherComponent(live) }
		switch objects[i].Key().GroupVersionKind {
		case servers.ClusterRoleBinding, capability.HTTPRoute:
			objects[i].AdoptIf = func(live *unstructured.Unstructured) bool { return isManagedOrLegacy(live) }
		case servers.Deployment:
			objects[i].AdoptIf = func(live *unstructured.Unstructured) bool { return isCatalogDeployment(live) }
		}
	}
	return objects
}

// deleteOutdated deletes outdated Deployments, after it has applied the other objects to remove legacy owner references to the Deployments. It
// returns a Wait until the Deployments are deleted. A later reconcile creates the new ones.
func (r *catalogReconciler) deleteOutdated(ctx context.Context, c *aihubv1alpha1.Catalog, desired apply.Desired) error {
	var outdated []*appsv1.Deployment
	for _, desiredDeployment := range servers.Deployments(desired) {
		live, err := r.Deployment(ctx, c.Namespace, *desiredDeployment.Name)
		if err != nil {
			return err
		}
		if isOutdated(live, c) {
			outdated = append(outdated, live)
		}
	}
	if len(outdated) == 0 {
		return nil
	}
	if err := r.Applier.Apply(ctx, c, desired.InStages(apply.Prerequisites, apply.Exposure)); err != nil {
		return r.reportApplyError(c, err)
	}
	for _, d := range outdated {
		if err := r.Applier.DeleteOwned(ctx, c.UID, d, apply.Foreground); err != nil {
			return err
		}
	}
	return &reconciler.Wait{For: "Deployment " + outdated[0].Name + " to be deleted", Retry: reconciler.RequeueSoon}
}

// isOutdated reports whether a Deployment cannot be updated: its selector is immutable, and the strategy of the database cannot change while
// fields of RollingUpdate are stored. It returns false for foreign Deployments, for which Apply reports the conflict.
func isOutdated(d *appsv1.Deployment, c *aihubv1alpha1.Catalog) bool {
	owner := metav1.GetControllerOfNoCopy(d)
	if !isCatalogDeployment(d) || owner != nil && owner.UID != c.UID && !isLegacyOwner(*owner) && !isCatalogReference(*owner) {
		return false
	}
	selector := &metav1.LabelSelector{MatchLabels: resources.Selector(d.Name)}
	return d.Spec.Selector != nil && !equality.Semantic.DeepEqual(d.Spec.Selector, selector) || d.Name == resources.DatabaseName && d.Spec.Strategy.RollingUpdate != nil
}

// cleanUserSources adds the managed labels to a user-editable ConfigMap, and removes legacy metadata and the legacy default entry. Without such an
// entry, the content does not change.
func cleanUserSources(ctx context.Context, m *corev1.ConfigMap) {
	if !isManaged(m) {
		if m.Labels == nil {
			m.Labels = map[string]string{}
		}
		maps.Copy(m.Labels, names.Labels(ComponentName))
	}
	delete(m.Annotations, servers.LegacyCopyAnnotation)
	m.OwnerReferences = slices.DeleteFunc(m.OwnerReferences, isLegacyOwner)
	text, err := withoutLegacyDefault(m.Data[resources.SourcesKey])
	if err != nil {
		log.FromContext(ctx).Info("The default entry of the legacy operator was not removed, because the sources are invalid", "configMap", m.Name, "reason", err.Error())
		return
	}
	if text != "" {
		m.Data[resources.SourcesKey] = text
	}
}

// legacyDefaultEntry is the id of the entry that the legacy operator before release 3.0 added to the user-editable ConfigMaps.
const legacyDefaultEntry = "default_catalog"

// modelSections are the sections that can contain legacyDefaultEntry.
var modelSections = []string{"catalogs", "model_catalogs"}

// withoutLegacyDefault returns sources without the legacy default entry and with all other keys, or "" if there is no such entry. It
// returns an error if the text cannot be parsed.
func withoutLegacyDefault(text string) (string, error) {
	document, err := parseSources(text)
	if err != nil || document == nil {
		return "", err
	}
	removed := false
	for _, section := range modelSections {
		list := mapValue(document.Content[0], section)
		if list == nil || list.Tag == "!!null" {
			continue
		}
		if list.Kind != yaml.SequenceNode {
			return "", fmt.Errorf("%s must be a list", section)
		}
		length := len(list.Content)
		list.Content = slices.DeleteFunc(list.Content, isLegacyDefault)
		removed = removed || len(list.Content) != length
	}
	if !removed {
		return "", nil
	}
	var out bytes.Buffer
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	if err := encoder.Encode(document); err != nil {
		return "", fmt.Errorf("encoding the sources without %s: %w", legacyDefaultEntry, err)
	}
	if _, err := parseSources(out.String()); err != nil { // an alias refers to the removed entry
		return "", fmt.Errorf("%s cannot be removed: %w", legacyDefaultEntry, err)
	}
	return out.String(), nil
}

func isLegacyDefault(entry *yaml.Node) bool {
	if entry.Kind != yaml.MappingNode {
		return false
	}
	id := mapValue(entry, "id")
	return id != nil && id.Kind == yaml.ScalarNode && id.Value == legacyDefaultEntry
}

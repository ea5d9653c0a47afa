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
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/log"

	aihubv1alpha1 "github.com/odh-platform/odh-platform-operator/apis/aihub/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/controllers/modelcatalog/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/names"
	"github.com/odh-platform/odh-platform-operator/pkg/reconciler"
	"github.com/odh-platform/odh-platform-operator/pkg/registry"
)

// This file takes over what the original operator left behind, and may go with release 1.0: who comes from the original has to run
// an earlier release first.

// place is where an object is.
type objectKey struct {
	kind schema.GroupVersionKind
	types.NamespacedName
}

// What releases of the original left under names that are not used any more.
const legacyCookieSecret, legacyDefaultSources = "model-catalog-oauth-cookie-secret", "model-catalog-default-sources"

// removeLeftovers removes what older releases made and nothing uses any more, once in the life of the process: nothing makes more of it.
// Of the grant that the original made for registries too, that is so when they need it no more.
func (r *catalogReconciler) deleteLegacyObjects(ctx context.Context, c *aihubv1alpha1.Catalog, in resources.Inputs) error {
	memory, errs := r.stateOf(c.UID), make([]error, 2)
	if !memory.legacyDeleted {
		here := func(name string) types.NamespacedName {
			return types.NamespacedName{Namespace: c.Namespace, Name: name}
		}
		errs[0] = deleteManaged(ctx, r.applier, c.UID, []objectKey{
			{registry.Claim, here(resources.DatabaseName)}, {registry.ConfigMap, here(legacyDefaultSources)}, {registry.Secret, here(legacyCookieSecret)},
		})
		memory.legacyDeleted = errs[0] == nil
	}
	if in.ReferenceGrants && !memory.sharedGrantDeleted {
		memory.sharedGrantDeleted, errs[1] = registry.DeleteSharedGrant(ctx, r.apiReader, r.applier, c.UID, c.Namespace)
	}
	return errors.Join(errs...)
}

// removeMade removes objects that this operator or the one before it made.
func deleteManaged(ctx context.Context, applier *apply.Applier, forOwner types.UID, places []objectKey) error {
	var errs []error
	for _, p := range places {
		errs = append(errs, applier.DeleteIf(ctx, forOwner, p.kind, p.NamespacedName,
			func(found *metav1.PartialObjectMetadata) (bool, error) { return isManagedOrLegacy(found), nil }))
	}
	return errors.Join(errs...)
}

// madeHere reports whether this operator or the one before it made an object.
func isManagedOrLegacy(o metav1.Object) bool {
	return isManaged(o) || o.GetLabels()[resources.LabelCreatedBy] == resources.CreatedBy && !isOfOtherComponent(o)
}

// ofAnother says whether its labels name another component as the one that an object was made for: those of registries bear the
// same created-by, and a registry may be called as the catalog is.
func isOfOtherComponent(o metav1.Object) bool {
	former, said := o.GetLabels()[resources.LabelComponent]
	return apply.ManagedByOther(o, ComponentName) || said && former != resources.Name && former != resources.DatabaseName
}

// formerOwner recognises the owners that the catalog had before there was a Catalog.
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

// adopting lets objects of the older operators be taken over. What they made is found by its name in the namespace of the catalog,
// unless its labels say that it was made for a registry; elsewhere it must bear their label.
func withAdoption(objects apply.Desired) apply.Desired {
	for i := range objects {
		objects[i].DropOwnerReferences = isLegacyOwner
		objects[i].AdoptIf = func(live *unstructured.Unstructured) bool { return !isOfOtherComponent(live) }
		if kind, _, err := objects[i].Key(); err == nil && (kind == registry.ClusterRoleBinding || kind.Kind == capability.HTTPRoute.Kind) {
			objects[i].AdoptIf = func(live *unstructured.Unstructured) bool { return isManagedOrLegacy(live) }
		}
	}
	return objects
}

// replaceOutdated deletes the Deployments that have to be recreated, once all other objects are free of them, and waits until their pods
// are gone. Nothing else makes a Deployment go.
func (r *catalogReconciler) recreateOutdated(ctx context.Context, c *aihubv1alpha1.Catalog, desired apply.Desired) error {
	var outdated []*appsv1.Deployment
	for _, want := range deployments(desired) {
		live, err := registry.FindDeployment(ctx, r.cached, r.apiReader, c.Namespace, *want.Name)
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
	if err := r.applier.Apply(ctx, c, desired.Of(apply.Guards, apply.Exposure)); err != nil {
		return r.reportApplyError(c, err)
	}
	for _, d := range outdated {
		if err := r.applier.DeleteForeground(ctx, c.UID, d); err != nil {
			return err
		}
	}
	return &reconciler.Wait{For: "Deployment " + outdated[0].Name + " of an older release to be gone", Retry: shortRequeueAfter}
}

// isOutdated reports whether a Deployment of ours cannot become what is wanted of it: its selector never changes, and the database may
// not leave RollingUpdate while the settings of that are stored. One that belongs to something else is reported when it is to be written.
func isOutdated(d *appsv1.Deployment, c *aihubv1alpha1.Catalog) bool {
	other := metav1.GetControllerOfNoCopy(d)
	if other != nil && other.UID != c.UID && !isLegacyOwner(*other) && other.Kind != aihubv1alpha1.Kind {
		return false
	}
	wanted := &metav1.LabelSelector{MatchLabels: resources.Selector(d.Name)}
	return d.Spec.Selector != nil && !equality.Semantic.DeepEqual(d.Spec.Selector, wanted) || d.Name == resources.DatabaseName && d.Spec.Strategy.RollingUpdate != nil
}

// tidy marks a ConfigMap of users as one that we watch, and removes what older releases left in it. What users wrote stays,
// to the byte where the one entry is not in it.
func cleanUserSources(ctx context.Context, m *corev1.ConfigMap) {
	if !isManaged(m) {
		if m.Labels == nil {
			m.Labels = map[string]string{}
		}
		maps.Copy(m.Labels, names.Labels(ComponentName))
	}
	delete(m.Annotations, LastApplied)
	m.OwnerReferences = slices.DeleteFunc(m.OwnerReferences, isLegacyOwner)
	text, err := withoutLegacyDefault(m.Data[resources.SourcesKey])
	if err != nil {
		log.FromContext(ctx).Info("Sources are not understood and left alone", "configMap", m.Name, "reason", err.Error())
		return
	}
	if text != "" {
		m.Data[resources.SourcesKey] = text
	}
}

// formerDefault is the entry that releases before 3.0 put into the sources of users.
const legacyDefaultEntry = "default_catalog"

// listsOfModels are the sections in which that entry can stand.
var modelSections = []string{"catalogs", "model_catalogs"}

// withoutFormerDefault returns sources without the entry of older releases: that entry goes, and everything else stays, also
// keys that are not known here. Empty means that there is nothing to remove. An error says why the text is not understood; it
// is left alone then.
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
			return "", fmt.Errorf("%s is no list", section)
		}
		before := len(list.Content)
		list.Content = slices.DeleteFunc(list.Content, isLegacyDefault)
		removed = removed || len(list.Content) != before
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
	if _, err := parseSources(out.String()); err != nil { // something refers to what was removed
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

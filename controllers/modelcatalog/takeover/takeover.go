// Package takeover adopts or deletes the objects of the legacy catalog, for which no Catalog existed. The manager works without this
// package: it can be deleted in version 1.0, unless that version supports direct upgrades from the legacy operator.
package takeover

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/go-logr/logr"
	"go.yaml.in/yaml/v3"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	aihubv1alpha1 "github.com/odh-platform/odh-platform-operator/apis/aihub/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/controllers/modelcatalog/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/objectmeta"
	"github.com/odh-platform/odh-platform-operator/pkg/reconciler"
	"github.com/odh-platform/odh-platform-operator/pkg/resources/rbacproxy"
	"github.com/odh-platform/odh-platform-operator/pkg/servers"
)

// Names of legacy objects that this operator does not create.
const (
	cookieSecret   = "model-catalog-oauth-cookie-secret"
	defaultSources = "model-catalog-default-sources"
)

// ReasonNotAdopted is the reason of Events on Deployments with the labels of a legacy catalog in an untrusted namespace.
const ReasonNotAdopted = "CatalogNotTakenOver"

// TakeOver is the take-over of the legacy catalog.
type TakeOver struct {
	Settings servers.Settings
	// Platform returns the current settings of the platform, or a Wait.
	Platform func() (servers.Platform, error)
	Applier  *apply.Applier
	Recorder events.EventRecorder
	Log      logr.Logger

	// pruned holds the progress of Prune for each Catalog.
	pruned reconciler.UIDMap[progress]
}

// progress reports whether Prune is done with the legacy objects, and with the shared ReferenceGrant.
type progress struct{ objects, sharedGrant bool }

// New returns the take-over with the dependencies of the controller.
func New(mgr ctrl.Manager, d servers.Deps) *TakeOver {
	platform := func() (servers.Platform, error) {
		return servers.DetectPlatform(d.Settings.ModelRegistry, d.Hub, d.Served.Current(), nil)
	}
	return &TakeOver{
		Settings: d.Settings, Platform: platform, Applier: d.Applier(mgr.GetClient()),
		Recorder: mgr.GetEventRecorder(resources.ComponentName), Log: mgr.GetLogger().WithName(resources.ComponentName),
	}
}

// Adopt implements takeover.Interface. In the namespace of the catalog, the labels of an existing object must not name another component,
// and Deployments must be those of a catalog. Objects outside of it must have the labels of this component or of the legacy operator.
func (t *TakeOver) Adopt(_ *aihubv1alpha1.Catalog, desired apply.Desired) {
	for i := range desired {
		matches := func(o metav1.Object) bool { return !isOfOtherComponent(o) }
		switch desired[i].Key().GroupVersionKind {
		case servers.ClusterRoleBinding, capability.HTTPRoute:
			matches = isManagedOrLegacy
		case servers.Deployment:
			matches = isCatalogDeployment
		}
		desired[i].AdoptIf = func(live *unstructured.Unstructured) bool { return matches(live) }
		desired[i].DropOwnerReferences = isLegacyOwner
	}
}

// Prune implements takeover.Interface. It deletes legacy objects without a successor, once per process, because no new ones are created. It
// deletes the shared ReferenceGrant when no HTTPRoute needs it.
func (t *TakeOver) Prune(ctx context.Context, c *aihubv1alpha1.Catalog, _ apply.Desired) error {
	done, _ := t.pruned.Get(c.UID)
	platform, _ := t.Platform() // the served APIs are known even if there is an error
	errs := make([]error, 2)
	if !done.objects {
		errs[0] = t.delete(ctx, c.UID, isManagedOrLegacy, apply.NewKey(servers.Claim, c.Namespace, resources.DatabaseName),
			apply.NewKey(servers.ConfigMap, c.Namespace, defaultSources), apply.NewKey(servers.Secret, c.Namespace, cookieSecret))
		done.objects = errs[0] == nil
	}
	if !done.sharedGrant && platform.Served.Has(capability.ReferenceGrant) {
		done.sharedGrant, errs[1] = servers.DeleteSharedGrant(ctx, t.Applier.Live, t.Applier, c.UID, c.Namespace)
	}
	t.pruned.Set(c.UID, done)
	return errors.Join(errs...)
}

// Finalize implements takeover.Interface. It deletes the ClusterRoleBinding and the HTTPRoute, unless they belong to another Catalog. For a
// Catalog without a UID, which does not exist, it deletes the legacy catalog in the namespace of the Catalog, or all if it is "".
func (t *TakeOver) Finalize(ctx context.Context, c *aihubv1alpha1.Catalog) error {
	if c.UID == "" {
		return t.deleteCatalogs(ctx, c.Namespace)
	}
	t.pruned.Delete(c.UID)
	platform, err := t.Platform()
	if err != nil {
		return err
	}
	list := &aihubv1alpha1.CatalogList{}
	if err := t.Applier.Client.List(ctx, list); err != nil {
		return fmt.Errorf("listing Catalogs: %w", err)
	}
	keys := []apply.Key{apply.NewKey(servers.ClusterRoleBinding, "", resources.DelegatorBinding)}
	if platform.Served.Has(capability.HTTPRoute) {
		keys = append(keys, apply.NewKey(capability.HTTPRoute, platform.Gateway.RouteNamespace, resources.Name))
	}
	return t.delete(ctx, c.UID, func(found metav1.Object) bool {
		// Legacy objects have no namespace label: they belong to the active Catalog.
		active := resources.ActiveCatalog(list.Items, platform.Namespace)
		namespace, hasNamespace := found.GetLabels()[resources.LabelNamespace]
		return isManagedOrLegacy(found) && (namespace == c.Namespace || !hasNamespace && (active == nil || active.UID == c.UID))
	}, keys...)
}

// delete deletes the objects of the given keys that match.
func (t *TakeOver) delete(ctx context.Context, forOwner types.UID, matches func(metav1.Object) bool, keys ...apply.Key) error {
	var errs []error
	for _, key := range keys {
		errs = append(errs, t.Applier.DeleteIf(ctx, forOwner, key.GroupVersionKind, key.NamespacedName,
			func(found *metav1.PartialObjectMetadata) (bool, error) { return matches(found), nil }))
	}
	return errors.Join(errs...)
}

// isManagedOrLegacy reports whether an object has the labels of this component, or those of the legacy operator for the catalog.
func isManagedOrLegacy(o metav1.Object) bool {
	return resources.IsManaged(o) || o.GetLabels()[resources.LabelCreatedBy] == resources.CreatedBy && !isOfOtherComponent(o)
}

// isOfOtherComponent reports whether the labels of an object name another component: objects of registries have the same created-by label,
// and a registry can be named model-catalog.
func isOfOtherComponent(o metav1.Object) bool {
	legacyComponent, found := o.GetLabels()[resources.LabelComponent]
	return apply.ManagedByOther(o, resources.ComponentName) || found && legacyComponent != resources.Name && legacyComponent != resources.DatabaseName
}

// isLegacyOwner reports whether the legacy operator, which had no Catalog, set an owner reference.
func isLegacyOwner(ref metav1.OwnerReference) bool {
	return ref.Kind == "ModelRegistry" && ref.Name == "default-modelregistry" ||
		ref.Kind == servers.Deployment.Kind && (ref.Name == resources.Name || ref.Name == resources.DatabaseName)
}

var catalogKind = aihubv1alpha1.GroupVersion.WithKind(aihubv1alpha1.Kind)

// isCatalogDeployment reports whether a Deployment has labels, the annotation or an owner reference of this or the legacy operator, and no
// other controller.
func isCatalogDeployment(d metav1.Object) bool {
	_, isCopied := d.GetAnnotations()[servers.LegacyCopyAnnotation]
	isOwner := func(ref metav1.OwnerReference) bool { return isLegacyOwner(ref) || servers.RefersTo(ref, catalogKind) }
	controller := metav1.GetControllerOfNoCopy(d)
	return !isOfOtherComponent(d) && (controller == nil || isOwner(*controller)) &&
		(isCopied || isManagedOrLegacy(d) || slices.ContainsFunc(d.GetOwnerReferences(), isOwner))
}

// Namespaces returns the trusted namespaces with a Deployment of a legacy catalog that is neither terminating nor controlled by a Catalog.
// In other namespaces, a user may have set the labels to get a ServiceAccount that may create access reviews.
func (t *TakeOver) Namespaces(ctx context.Context) ([]string, error) {
	trusted, err := t.trustedNamespaces(ctx)
	if err != nil {
		return nil, err
	}
	list := objectmeta.NewList(servers.Deployment)
	legacyLabels := client.MatchingLabels{resources.LabelComponent: resources.Name, resources.LabelCreatedBy: resources.CreatedBy}
	if err := t.Applier.Live.List(ctx, list, client.InNamespace(t.Settings.Namespace), legacyLabels); err != nil {
		return nil, fmt.Errorf("listing the Deployments of a legacy catalog: %w", err)
	}
	var namespaces []string
	for i := range list.Items {
		d := &list.Items[i]
		owner := metav1.GetControllerOfNoCopy(d)
		switch {
		case d.Name != resources.Name || !d.DeletionTimestamp.IsZero() || owner != nil && owner.Kind == aihubv1alpha1.Kind:
		case slices.Contains(trusted, d.Namespace):
			namespaces = append(namespaces, d.Namespace)
		default:
			t.reportUntrusted(d)
		}
	}
	slices.Sort(namespaces)
	return namespaces, nil
}

// trustedNamespaces returns the namespaces in which a legacy catalog is accepted: the configured one, or else that of the manager and that
// of the subject of the legacy ClusterRoleBinding. Users cannot create ClusterRoleBindings.
func (t *TakeOver) trustedNamespaces(ctx context.Context) ([]string, error) {
	if t.Settings.Namespace != "" {
		return []string{t.Settings.Namespace}, nil
	}
	trusted := []string{t.Settings.AdmissionRules.Namespace}
	binding := &rbacv1.ClusterRoleBinding{}
	if err := t.Applier.Live.Get(ctx, client.ObjectKey{Name: resources.DelegatorBinding}, binding); client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("reading ClusterRoleBinding %s: %w", resources.DelegatorBinding, err)
	}
	// Ignore the ClusterRoleBinding of a registry named model-catalog, and that of this operator, whose Catalog can be in any namespace.
	isLegacy := !resources.IsManaged(binding) && isManagedOrLegacy(binding) && binding.RoleRef.Name == rbacproxy.DelegatorRole
	if s := binding.Subjects; isLegacy && len(s) == 1 && s[0].Kind == rbacv1.ServiceAccountKind && s[0].Name == resources.Name {
		trusted = append(trusted, s[0].Namespace)
	}
	return trusted, nil
}

// reportUntrusted records an Event for a Deployment with legacy labels that a user may have created.
func (t *TakeOver) reportUntrusted(d *metav1.PartialObjectMetadata) {
	d.SetGroupVersionKind(servers.Deployment)
	text := fmt.Sprintf("Deployment %s has the labels of the catalog of a legacy operator, but neither the settings nor ClusterRoleBinding %s name its namespace: "+
		"nothing is taken over; if it is the catalog of this cluster, set REGISTRIES_NAMESPACE to %s or create Catalog %s there",
		client.ObjectKeyFromObject(d), resources.DelegatorBinding, d.Namespace, aihubv1alpha1.CatalogName)
	t.Log.Info(text)
	t.Recorder.Eventf(d, nil, corev1.EventTypeWarning, ReasonNotAdopted, "TakeOver", "%s", text)
}

// deleteCatalogs deletes the objects of the legacy catalog in a namespace, or in all trusted namespaces for "". The garbage collector
// deletes others. The ConfigMaps of users are kept, and with SkipCatalogDatabase the Secret of the database.
func (t *TakeOver) deleteCatalogs(ctx context.Context, namespace string) (err error) {
	namespaces := []string{namespace}
	if namespace == "" {
		if namespaces, err = t.Namespaces(ctx); err != nil {
			return err
		}
	}
	var keys []apply.Key
	for _, namespace := range namespaces {
		key := func(kind schema.GroupVersionKind, name string) apply.Key { return apply.NewKey(kind, namespace, name) }
		keys = append(keys, apply.NewKey(servers.ClusterRoleBinding, "", resources.DelegatorBinding),
			apply.NewKey(capability.HTTPRoute, t.Settings.Gateway.ForPlatform(true).RouteNamespace, resources.Name),
			key(servers.Deployment, resources.Name), key(servers.Deployment, resources.DatabaseName), key(servers.Service, resources.DatabaseName),
			key(servers.ServiceAccount, resources.Name), key(servers.ConfigMap, resources.ProxyConfig), key(servers.Claim, resources.DatabaseName),
			key(servers.NetworkPolicy, resources.DatabaseName), key(servers.NetworkPolicy, resources.RoutePolicy), key(servers.Secret, cookieSecret),
			key(capability.Route, resources.RouteName))
		if !t.Settings.SkipCatalogDatabase {
			keys = append(keys, key(servers.Secret, resources.DatabaseName))
		}
	}
	return t.delete(ctx, "", isManagedOrLegacy, keys...)
}

// CleanSources removes legacy metadata and the legacy default entry from a user-editable ConfigMap. Without such an entry, the content does
// not change.
func (*TakeOver) CleanSources(ctx context.Context, m *corev1.ConfigMap) {
	delete(m.Annotations, servers.LegacyCopyAnnotation)
	m.OwnerReferences = slices.DeleteFunc(m.OwnerReferences, isLegacyOwner)
	switch text, err := withoutLegacyDefault(m.Data[resources.SourcesKey]); {
	case err != nil:
		log.FromContext(ctx).Info("The default entry of the legacy operator, if any, was not removed from the sources", "configMap", m.Name, "reason", err.Error())
	case text != "":
		m.Data[resources.SourcesKey] = text
	}
}

// legacyDefaultEntry is the id of the entry that the legacy operator before release 3.0 added to the user-editable ConfigMaps.
const legacyDefaultEntry = "default_catalog"

// withoutLegacyDefault returns sources without the legacy default entry and with all other keys, or "" if there is no such entry. It
// returns an error if the text is invalid or the entry cannot be removed.
func withoutLegacyDefault(text string) (string, error) {
	document, err := resources.ParseSources(text)
	if err != nil || document == nil {
		return "", err
	}
	removed := false
	for _, section := range []string{"catalogs", "model_catalogs"} {
		list := resources.MapValue(document.Content[0], section)
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
	if _, err := resources.ParseSources(out.String()); err != nil { // an alias refers to the removed entry
		return "", fmt.Errorf("%s cannot be removed: %w", legacyDefaultEntry, err)
	}
	return out.String(), nil
}

func isLegacyDefault(entry *yaml.Node) bool {
	id := resources.MapValue(entry, "id")
	return entry.Kind == yaml.MappingNode && id != nil && id.Kind == yaml.ScalarNode && id.Value == legacyDefaultEntry
}

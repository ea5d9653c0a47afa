package modelregistry

import (
	"context"
	"errors"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	networkingv1ac "k8s.io/client-go/applyconfigurations/networking/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/apis/modelregistry/v1beta1"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/names"
)

// place is where an object is.
type place struct {
	schema.GroupKind
	types.NamespacedName
}

func placesOf(desired apply.Desired) (map[place]bool, error) {
	taken := map[place]bool{}
	for _, o := range desired {
		kind, name, err := o.Place()
		if err != nil {
			return nil, err
		}
		taken[place{kind.GroupKind(), name}] = true
	}
	return taken, nil
}

// removeUnwanted removes what the registry does not want any more: its own objects, those that only their labels lead to it, and
// what the original left that never became ours. At rest that costs no request.
func (r *registries) removeUnwanted(ctx context.Context, m *v1beta1.ModelRegistry, desired apply.Desired, in Inputs) error {
	if err := r.applier.Prune(ctx, m, append(desired[:len(desired):len(desired)], keptDatabase(m)...), prunable(in), nil); err != nil {
		return fmt.Errorf("removing objects that are no longer wanted: %w", err)
	}
	wanted, err := placesOf(desired)
	if err != nil {
		return err
	}
	for _, kind := range publishedKinds(in) {
		if err := r.removePublished(ctx, m, kind, wanted); err != nil {
			return fmt.Errorf("removing objects that are no longer wanted: %w", err)
		}
	}
	return explain("removing what the original left", r.removeLeftovers(ctx, m, wanted, in))
}

// prunable are the kinds that a registry owns and of which an object may become unwanted.
func prunable(in Inputs) []schema.GroupVersionKind {
	kinds := []schema.GroupVersionKind{policyKind, configMapKind, deploymentKind, serviceKind}
	if in.OpenShift {
		kinds = append(kinds, capability.Route)
	}
	if in.ReferenceGrants {
		kinds = append(kinds, capability.ReferenceGrant)
	}
	return kinds
}

// keptDatabase names what a generated database consists of, which stays where the registry turned to another one: its data is
// for people to move.
func keptDatabase(m *v1beta1.ModelRegistry) apply.Desired {
	var kept apply.Desired
	kept.Add(appsv1ac.Deployment(databaseName(m), m.Namespace), corev1ac.Service(databaseName(m), m.Namespace),
		networkingv1ac.NetworkPolicy(databaseName(m), m.Namespace))
	return kept
}

// publishedKinds are the kinds of objects that no registry can own, as far as they are served.
func publishedKinds(in Inputs) []schema.GroupVersionKind {
	kinds := []schema.GroupVersionKind{clusterBindingKind}
	if in.HTTPRoutes {
		kinds = append(kinds, capability.HTTPRoute)
	}
	if in.HasUserAPI {
		kinds = append(kinds, capability.UserGroup)
	}
	return kinds
}

// removePublished removes the objects of a kind whose labels lead to the registry and that it does not want. They come from the
// cache, wherever they are: the namespace of HTTPRoutes is a setting that may have changed.
func (r *registries) removePublished(ctx context.Context, m *v1beta1.ModelRegistry, kind schema.GroupVersionKind, wanted map[place]bool) error {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	mine := client.MatchingLabels(names.Labels(ComponentName))
	mine[labelApp], mine[labelNamespace] = labelOf(m.Name), m.Namespace
	if err := r.cached.List(ctx, list, mine); err != nil {
		if meta.IsNoMatchError(err) {
			return nil
		}
		return fmt.Errorf("listing %s objects: %w", kind.Kind, err)
	}
	var errs []error
	for i := range list.Items {
		object := &list.Items[i]
		if !wanted[place{kind.GroupKind(), client.ObjectKeyFromObject(object)}] {
			object.SetGroupVersionKind(kind)
			errs = append(errs, r.applier.Remove(ctx, m.UID, object))
		}
	}
	return errors.Join(errs...)
}

// leftovers are the objects of the original that do not bear our labels, by namespace. They are cached for the life of the
// process, because nothing makes more of them. What is remembered may have been adopted since, so it is read again before it is
// deleted.
type leftovers struct {
	mu         sync.Mutex
	namespaces map[string]map[place]*metav1.PartialObjectMetadata
}

// removeLeftovers removes what the original made under names that its releases used and that are not wanted.
func (r *registries) removeLeftovers(ctx context.Context, m *v1beta1.ModelRegistry, wanted map[place]bool, in Inputs) error {
	l := &r.leftovers
	l.mu.Lock()
	defer l.mu.Unlock()
	found, ok := l.namespaces[m.Namespace]
	if !ok {
		var err error
		if found, err = r.lookBack(ctx, m.Namespace, in); err != nil {
			return err
		}
		if l.namespaces == nil {
			l.namespaces = map[string]map[place]*metav1.PartialObjectMetadata{}
		}
		l.namespaces[m.Namespace] = found
	}
	var errs []error
	for _, at := range olderPlaces(m, r.decided(m).Gateway.RouteNamespace) {
		object := found[at]
		if object == nil || wanted[at] || !leftBy(object, m) {
			continue
		}
		err := r.removeLeft(ctx, m, object)
		if err == nil || apierrors.IsConflict(err) { // another object has the name
			delete(found, at)
			continue
		}
		errs = append(errs, err)
	}
	return errors.Join(append(errs, r.removeSharedGrant(ctx, m, found, in))...)
}

// removeLeft removes an object of the original if it is still that of the registry.
func (r *registries) removeLeft(ctx context.Context, m *v1beta1.ModelRegistry, remembered *metav1.PartialObjectMetadata) error {
	live := metadataOf(remembered.GroupVersionKind())
	err := r.live.Get(ctx, client.ObjectKeyFromObject(remembered), live)
	if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading %s %s: %w", remembered.Kind, remembered.Name, err)
	}
	if live.Labels[labelCreatedBy] != createdBy || !leftBy(live, m) {
		return nil
	}
	return r.applier.Remove(ctx, m.UID, live)
}

// leftBy says whether the original made an object for this very registry. It made the registry control whatever a registry can
// own, but for the Secret with the key of cookies. Another owner, or the labels of another component, say whose it is: names of
// registries and of the catalog can be the same.
func leftBy(object *metav1.PartialObjectMetadata, m *v1beta1.ModelRegistry) bool {
	if namespace, known := object.Labels[labelNamespace]; known && namespace != m.Namespace || ofAnother(object) {
		return false
	}
	if owner := metav1.GetControllerOfNoCopy(object); owner != nil {
		return owner.UID == m.UID
	}
	ownable := object.Namespace != "" && object.Kind != capability.HTTPRoute.Kind
	return !ownable || object.Name == cookieSecretName(m)
}

// ofAnother says whether its labels name another component as the one that an object was made for.
func ofAnother(object client.Object) bool {
	former, said := object.GetLabels()[labelComponent]
	return apply.OfAnother(object, ComponentName) || said && former != partOf && former != databaseComponent
}

// olderPlaces are the names under which releases of the original left objects that a registry may not want.
func olderPlaces(m *v1beta1.ModelRegistry, routeNamespace string) []place {
	at := func(kind schema.GroupVersionKind, namespace, name string) place {
		return place{kind.GroupKind(), types.NamespacedName{Namespace: namespace, Name: name}}
	}
	return []place{
		at(capability.Route, m.Namespace, plainRouteName(m)),
		at(capability.Route, m.Namespace, secureRouteName(m)),
		at(capability.Route, m.Namespace, m.Name+"-catalog-https"),
		at(policyKind, m.Namespace, routePolicyName(m)),
		at(policyKind, m.Namespace, m.Name+"-catalog-https-route"),
		at(configMapKind, m.Namespace, proxyConfigName(m)),
		at(deploymentKind, m.Namespace, m.Name+"-catalog"),
		at(serviceKind, m.Namespace, m.Name+"-catalog"),
		at(secretKind, m.Namespace, cookieSecretName(m)),
		at(clusterBindingKind, "", delegatorName(m)),
		at(capability.HTTPRoute, routeNamespace, httpRouteName(m)),
	}
}

// lookBack lists what the original made in a namespace, and of the kinds without one.
func (r *registries) lookBack(ctx context.Context, namespace string, in Inputs) (map[place]*metav1.PartialObjectMetadata, error) {
	kinds := map[schema.GroupVersionKind]string{
		deploymentKind: namespace, serviceKind: namespace, policyKind: namespace, configMapKind: namespace, secretKind: namespace,
		clusterBindingKind: "",
	}
	if in.OpenShift {
		kinds[capability.Route] = namespace
	}
	if in.HTTPRoutes {
		kinds[capability.HTTPRoute] = in.Gateway.RouteNamespace
	}
	if in.ReferenceGrants {
		kinds[capability.ReferenceGrant] = namespace
	}
	found := map[place]*metav1.PartialObjectMetadata{}
	for kind, where := range kinds {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		err := r.live.List(ctx, list, client.InNamespace(where), client.MatchingLabels{labelCreatedBy: createdBy})
		if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("listing %s objects: %w", kind.Kind, err)
		}
		for i := range list.Items {
			object := &list.Items[i]
			if object.Labels[names.OperatorLabel] == names.OperatorName {
				continue // the cache knows it
			}
			object.SetGroupVersionKind(kind)
			found[place{kind.GroupKind(), client.ObjectKeyFromObject(object)}] = object
		}
	}
	return found, nil
}

// finalize undoes what garbage collection cannot: objects that no registry can own. Data that is to stay loses its owner first.
func (r *registries) finalize(ctx context.Context, m *v1beta1.ModelRegistry) error {
	if err := r.awaitHub(ctx, m); err != nil {
		return err
	}
	if meta.FindStatusCondition(m.Status.Conditions, ConditionDegraded) == nil {
		setCondition(m, ConditionDegraded, metav1.ConditionUnknown, ReasonFinalizing, "Performing finalizer operations for the custom resource: "+m.Name)
		return waitForStatus()
	}
	stays, err := r.releaseData(ctx, m)
	if err != nil {
		return err
	}
	if err := r.removeAllPublished(ctx, m); err != nil {
		setCondition(m, ConditionDegraded, metav1.ConditionUnknown, ReasonFinalizing, "Finalizer operations have not succeeded yet: "+err.Error())
		return err
	}
	if meta.IsStatusConditionTrue(m.Status.Conditions, ConditionDegraded) {
		return nil
	}
	r.eventf(m, corev1.EventTypeNormal, "Deleting", "Custom resource %s is being deleted from the namespace %s", m.Name, m.Namespace)
	if stays {
		r.eventf(m, corev1.EventTypeNormal, "DataRetained", "Claim %s and Secret %s of the database stay; a new registry of the same name uses them",
			claimName(m), credentialsName(m))
	}
	setCondition(m, ConditionDegraded, metav1.ConditionTrue, ReasonFinalizing, "Finalizer operations for custom resource "+m.Name+" were successfully accomplished")
	return waitForStatus()
}

// removeAllPublished removes Group, ClusterRoleBinding and HTTPRoute of a registry, also those that never got our labels. An API
// that is not there is no obstacle.
func (r *registries) removeAllPublished(ctx context.Context, m *v1beta1.ModelRegistry) error {
	in := r.decided(m).inputs(r.served())
	var errs []error
	for _, kind := range publishedKinds(in) {
		errs = append(errs, r.removePublished(ctx, m, kind, nil))
	}
	older := map[schema.GroupVersionKind]types.NamespacedName{clusterBindingKind: {Name: delegatorName(m)}}
	if in.HTTPRoutes {
		older[capability.HTTPRoute] = types.NamespacedName{Namespace: in.Gateway.RouteNamespace, Name: httpRouteName(m)}
	}
	if in.HasUserAPI {
		older[capability.UserGroup] = types.NamespacedName{Name: usersName(m)}
	}
	for kind, name := range older {
		object := metadataOf(kind)
		err := r.live.Get(ctx, name, object)
		switch {
		case apierrors.IsNotFound(err), meta.IsNoMatchError(err):
		case err != nil:
			errs = append(errs, fmt.Errorf("reading %s %s: %w", kind.Kind, name.Name, err))
		case object.Labels[labelCreatedBy] == createdBy && leftBy(object, m):
			errs = append(errs, client.IgnoreNotFound(r.applier.Remove(ctx, m.UID, object)))
		}
	}
	return errors.Join(errs...)
}

package modelregistry

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	userv1 "github.com/openshift/api/user/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	aihubv1alpha1 "github.com/odh-platform/odh-platform-operator/apis/aihub/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/apis/modelregistry/v1beta1"
	"github.com/odh-platform/odh-platform-operator/controllers/modelregistry/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/names"
	"github.com/odh-platform/odh-platform-operator/pkg/reconciler"
	"github.com/odh-platform/odh-platform-operator/pkg/reference"
	"github.com/odh-platform/odh-platform-operator/pkg/registry"
	"github.com/odh-platform/odh-platform-operator/pkg/resources/rbacproxy"
)

// goneRetry is the pause while a Deployment is being deleted to be recreated.
const recreateRequeueAfter = 2 * time.Second

// The catalog has objects of the same kinds, and some of its names could be those of a registry.
const catalogComponent, catalogName = "modelcatalog", "model-catalog"

// split separates what a registry owns from what is of cluster scope or in another namespace, and has no owner reference.
func splitByOwnership(desired apply.Desired) (own, published apply.Desired) {
	for _, o := range desired {
		if o.Ownership == apply.Unowned {
			published = append(published, o)
			continue
		}
		own = append(own, o)
	}
	return own, published
}

// recreate deletes a live Deployment, pods first, that selects its pods by other labels than it should. Whatever else the API server
// refuses, and the applier cannot put right, is left to people: a running server is never deleted for that.
func (r *registryReconciler) recreateOnSelectorChange(ctx context.Context, m *v1beta1.ModelRegistry, live *appsv1.Deployment, selector map[string]string) error {
	present := live.Spec.Selector
	if present == nil || !metav1.IsControlledBy(live, m) || len(present.MatchExpressions) == 0 && maps.Equal(present.MatchLabels, selector) {
		return nil
	}
	if live.DeletionTimestamp == nil {
		r.eventf(m, corev1.EventTypeWarning, "RecreatingDeployment", "Deployment %s selects its pods by other labels, which cannot be changed: it is recreated", live.Name)
		if err := r.applier.DeleteForeground(ctx, m.UID, live); err != nil {
			return err
		}
	}
	return &reconciler.Wait{For: "a Deployment to be recreated", Retry: recreateRequeueAfter, Unready: true}
}

// held is what waits while a registry gets a proxy or loses it: what leads to the server follows the pods that serve, and not the
// template of those that are to come.
type proxyTransition struct {
	// pods: those that are ready are all of the other form.
	serving bool
	// proxied: the registry is to have a proxy.
	toProxy bool
	// secret: there is no certificate for the proxy, so that pods with it could not start.
	certificateMissing bool
}

func (r *registryReconciler) detectProxyTransition(ctx context.Context, m, used *v1beta1.ModelRegistry) (proxyTransition, error) {
	h := proxyTransition{toProxy: used.Spec.KubeRBACProxy != nil}
	pods, err := r.podsOf(ctx, m, resources.ServerSelector(m))
	if err != nil {
		return h, err
	}
	for i := range pods {
		if !pods[i].DeletionTimestamp.IsZero() || !isReady(&pods[i]) {
			continue
		}
		if hasProxy(&pods[i]) == h.toProxy {
			return proxyTransition{toProxy: h.toProxy}, nil
		}
		h.serving = true
	}
	certificate := certificateReferences(used)
	h.certificateMissing = slices.ContainsFunc(r.stateOf(m).missingReferences, func(missing reference.Missing) bool {
		return slices.ContainsFunc(certificate, func(ref reference.Reference) bool { return ref.ID() == missing.ID() })
	})
	return h, nil
}

// without leaves out what is not to be written yet. A Service that gets a proxy is written, in the form of the pods that serve: it
// asks the platform for the certificate.
func (h proxyTransition) withoutDeferred(desired apply.Desired) apply.Desired {
	if !h.serving {
		return desired
	}
	return slices.DeleteFunc(slices.Clone(desired), func(o apply.Object) bool {
		switch kind, _, _ := o.Key(); kind {
		case capability.Route, capability.HTTPRoute, registry.Ingress:
			return true
		case registry.Service:
			return !h.toProxy
		case registry.Deployment:
			return h.certificateMissing
		}
		return false
	})
}

func isReady(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

func hasProxy(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Spec.Containers, func(c corev1.Container) bool { return c.Name == rbacproxy.ContainerName })
}

// publish writes the objects of which there is one of a name in the whole cluster, whatever the namespace of the registry. One
// that serves another registry of the same name is reported and left alone.
func (r *registryReconciler) applyUnowned(ctx context.Context, m *v1beta1.ModelRegistry, published apply.Desired) error {
	r.publishing.Lock()
	defer r.publishing.Unlock()
	var errs []error
	free := make(apply.Desired, 0, len(published))
	for _, o := range published {
		kind, key, err := o.Key()
		var live *metav1.PartialObjectMetadata
		if err == nil {
			live, err = r.getUnowned(ctx, m, kind, key)
		}
		switch {
		case err != nil:
			errs = append(errs, err)
		case kind == capability.UserGroup:
			errs = append(errs, r.ensureGroup(ctx, m, live))
		default:
			o.AdoptIf = adoptable(m)
			free = append(free, o)
		}
	}
	return errors.Join(append(errs, r.applier.Apply(ctx, m, free))...)
}

// adoptable accepts objects that the original made for this registry. It put its namespace on some kinds only.
func adoptable(m *v1beta1.ModelRegistry) func(*unstructured.Unstructured) bool {
	return func(live *unstructured.Unstructured) bool {
		namespace, known := live.GetLabels()[resources.LabelNamespace]
		return live.GetLabels()[resources.LabelCreatedBy] == resources.CreatedBy && live.GetLabels()[resources.LabelApp] == resources.LabelValue(m.Name) &&
			(!known || namespace == m.Namespace) && !isOfOtherComponent(live)
	}
}

// present reads the metadata of an object, nil when it is not there. One that serves a registry of the same name in another namespace, or
// the catalog, is an error.
func (r *registryReconciler) getUnowned(ctx context.Context, m *v1beta1.ModelRegistry, kind schema.GroupVersionKind, key client.ObjectKey) (
	*metav1.PartialObjectMetadata, error,
) {
	live := capability.MetadataOf(kind)
	found, err := registry.Find(ctx, r.cached, r.apiReader, key, live)
	if err == nil && found {
		err = r.checkNotForeign(ctx, m, live)
	}
	switch {
	case err != nil:
		return nil, &apply.Error{Kind: kind.Kind, Namespace: key.Namespace, Name: key.Name, Stage: apply.StageOf(kind.GroupKind()), Err: err}
	case !found:
		return nil, nil
	}
	return live, nil
}

// servesAnother returns an error when an object was made for the catalog, or bears the namespace of another registry that exists.
func (r *registryReconciler) checkNotForeign(ctx context.Context, m *v1beta1.ModelRegistry, live *metav1.PartialObjectMetadata) error {
	other := live.Labels[resources.LabelNamespace]
	foreign := foreignError(live)
	switch {
	case isOfOtherComponent(live):
		foreign.Controller = strings.TrimSpace("component " + live.Labels[names.ComponentLabel])
		if live.Labels[names.ComponentLabel] == catalogComponent || live.Labels[resources.LabelComponent] == catalogName {
			foreign.Controller = fmt.Sprintf("%s %s/%s", aihubv1alpha1.Kind, other, aihubv1alpha1.CatalogName)
		}
	case other == "" || other == m.Namespace:
		return nil
	default:
		err := r.cached.Get(ctx, client.ObjectKey{Namespace: other, Name: m.Name}, &v1beta1.ModelRegistry{})
		if err != nil {
			return client.IgnoreNotFound(err) // what is left of a registry that is gone may be taken over
		}
		foreign.Controller = fmt.Sprintf("%s %s/%s", v1beta1.Kind, other, m.Name)
	}
	return foreign
}

// ofAnother says whether its labels name another component as the one that an object was made for.
func isOfOtherComponent(object client.Object) bool {
	former, said := object.GetLabels()[resources.LabelComponent]
	return apply.ManagedByOther(object, ComponentName) || said && former != resources.PartOf && former != resources.DatabaseComponent
}

func foreignError(live client.Object) *apply.ForeignError {
	return &apply.ForeignError{Kind: live.GetObjectKind().GroupVersionKind().Kind, Namespace: live.GetNamespace(), Name: live.GetName()}
}

// keepGroup makes the Group, or puts the labels of the one that is there right. It holds what administrators put into it. Its list of users
// is made empty, because the API demands one, and is never written again: not even as a field that a server-side apply gives up.
func (r *registryReconciler) ensureGroup(ctx context.Context, m *v1beta1.ModelRegistry, live *metav1.PartialObjectMetadata) error {
	if live == nil {
		return r.applier.Create(ctx, m, apply.Object{Config: resources.Group(m, userv1.OptionalNames{}), Ownership: apply.Unowned})
	}
	written := slices.ContainsFunc(live.ManagedFields, func(e metav1.ManagedFieldsEntry) bool { return e.Manager == FieldOwner })
	if !isManaged(live) && !written { // labels may have been taken away
		return &apply.Error{Kind: live.Kind, Name: live.Name, Err: foreignError(live)}
	}
	return r.applier.PatchExisting(ctx, live, func() {
		updateLabels(live, labels.Merge(resources.ClusterLabels(m, live.Name), names.Labels(ComponentName)))
	})
}

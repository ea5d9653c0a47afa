package modelregistry

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	aihubv1alpha1 "github.com/odh-platform/odh-platform-operator/apis/aihub/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/apis/modelregistry/v1beta1"
	"github.com/odh-platform/odh-platform-operator/controllers/modelregistry/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/names"
	"github.com/odh-platform/odh-platform-operator/pkg/reconciler"
)

// goneRetry is the pause while a Deployment is being deleted to be recreated.
const goneRetry = 2 * time.Second

// split separates what a registry owns from what is of cluster scope or in another namespace, and has no owner reference.
func split(desired apply.Desired) (own, published apply.Desired) {
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
func (r *registries) recreate(ctx context.Context, m *v1beta1.ModelRegistry, live *appsv1.Deployment, selector map[string]string) error {
	present := live.Spec.Selector
	if present == nil || !metav1.IsControlledBy(live, m) || len(present.MatchExpressions) == 0 && maps.Equal(present.MatchLabels, selector) {
		return nil
	}
	if live.DeletionTimestamp == nil {
		r.eventf(m, corev1.EventTypeWarning, "RecreatingDeployment", "Deployment %s selects its pods by other labels, which cannot be changed: it is recreated", live.Name)
		if err := r.applier.Discard(ctx, m.UID, live); err != nil {
			return err
		}
	}
	return &reconciler.Wait{For: "a Deployment to be recreated", Retry: goneRetry, Unready: true}
}

// publish writes the objects of which there is one of a name in the whole cluster, whatever the namespace of the registry. One
// that serves another registry of the same name is reported and left alone.
func (r *registries) publish(ctx context.Context, m *v1beta1.ModelRegistry, published apply.Desired) error {
	r.publishing.Lock()
	defer r.publishing.Unlock()
	var errs []error
	free := make(apply.Desired, 0, len(published))
	for _, o := range published {
		if isGroup(o) {
			errs = append(errs, r.keepGroup(ctx, m))
			continue
		}
		if err := r.contested(ctx, m, o); err != nil {
			errs = append(errs, err)
			continue
		}
		o.Adopts = adoptable(m)
		free = append(free, o)
	}
	return errors.Join(append(errs, r.applier.Apply(ctx, m, free))...)
}

// adoptable accepts objects that the original made for this registry. It put its namespace on some kinds only.
func adoptable(m *v1beta1.ModelRegistry) func(*unstructured.Unstructured) bool {
	return func(live *unstructured.Unstructured) bool {
		namespace, known := live.GetLabels()[resources.LabelNamespace]
		return live.GetLabels()[resources.LabelCreatedBy] == resources.CreatedBy && live.GetLabels()[resources.LabelApp] == resources.LabelOf(m.Name) &&
			(!known || namespace == m.Namespace) && !ofAnother(live)
	}
}

// contested returns an error when an object serves a registry of the same name in another namespace.
func (r *registries) contested(ctx context.Context, m *v1beta1.ModelRegistry, o apply.Object) error {
	kind, name, err := o.Place()
	if err != nil {
		return err
	}
	live := metadataOf(kind)
	err = r.cached.Get(ctx, name, live)
	if apierrors.IsNotFound(err) { // the cache holds those that bear our label
		err = r.live.Get(ctx, name, live)
	}
	if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
		return nil
	}
	if err != nil {
		return &apply.Error{Kind: kind.Kind, Namespace: name.Namespace, Name: name.Name, Stage: o.Stage(), Err: err}
	}
	return r.servesAnother(ctx, m, live)
}

// servesAnother returns an error when an object was made for the catalog, or bears the namespace of another registry that exists.
func (r *registries) servesAnother(ctx context.Context, m *v1beta1.ModelRegistry, live client.Object) error {
	other := live.GetLabels()[resources.LabelNamespace]
	foreign := foreignError(live)
	switch {
	case ofAnother(live):
		foreign.Controller = strings.TrimSpace("component " + live.GetLabels()[names.ComponentLabel])
		if live.GetLabels()[names.ComponentLabel] == catalogComponent || live.GetLabels()[resources.LabelComponent] == catalogRouteName {
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
	stage := apply.StageOf(live.GetObjectKind().GroupVersionKind().GroupKind())
	return &apply.Error{Kind: foreign.Kind, Namespace: foreign.Namespace, Name: foreign.Name, Stage: stage, Err: foreign}
}

func foreignError(live client.Object) *apply.ForeignError {
	return &apply.ForeignError{Kind: live.GetObjectKind().GroupVersionKind().Kind, Namespace: live.GetNamespace(), Name: live.GetName()}
}

func metadataOf(kind schema.GroupVersionKind) *metav1.PartialObjectMetadata {
	object := &metav1.PartialObjectMetadata{}
	object.SetGroupVersionKind(kind)
	return object
}

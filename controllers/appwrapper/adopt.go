package appwrapper

import (
	"cmp"
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	awv1beta2 "github.com/odh-platform/odh-platform-operator/apis/appwrapper/v1beta2"
)

// errNotAdoptable is returned for an object that differs from its template, has a controller or is terminating.
var errNotAdoptable = errors.New("it differs from its template, has a controller or is terminating")

// setController adds a controller reference to an existing object without a controller, as after a restore that strips owner references. A
// dry-run apply of the template must leave the object unchanged. The error is errNotAdoptable, or one of the API server.
func (w *workloadReconciler) setController(ctx context.Context, aw *awv1beta2.AppWrapper, template *unstructured.Unstructured) (types.UID, error) {
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(template.GroupVersionKind())
	if err := w.applier.Live.Get(ctx, client.ObjectKeyFromObject(template), live); err != nil {
		return "", err //nolint:wrapcheck // the error names the object
	}
	if metav1.GetControllerOfNoCopy(live) != nil || live.GetDeletionTimestamp() != nil {
		return "", errNotAdoptable
	}
	if matches, err := w.matchesTemplate(ctx, template, live); err != nil || !matches {
		return "", cmp.Or(err, errNotAdoptable)
	}
	var referenceErr error
	err := w.applier.PatchExisting(ctx, live, func() { referenceErr = controllerutil.SetControllerReference(aw, live, w.applier.Client.Scheme()) })
	if referenceErr != nil {
		err = errNotAdoptable
	}
	return live.GetUID(), err
}

// matchesTemplate reports, by a dry run, whether an apply of the template would change nothing but the managed fields of the live object.
func (w *workloadReconciler) matchesTemplate(ctx context.Context, template, live *unstructured.Unstructured) (bool, error) {
	applied := template.DeepCopy()
	applied.SetGenerateName("")
	applied.SetOwnerReferences(nil)
	applied.SetUID(live.GetUID())
	applied.SetResourceVersion(live.GetResourceVersion())
	err := w.applier.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(applied), client.FieldOwner(FieldOwner), client.ForceOwnership, client.DryRunAll)
	if apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) { // an immutable field differs, for example
		return false, nil
	}
	original := live.DeepCopy()
	original.SetManagedFields(nil)
	applied.SetManagedFields(nil)
	return equality.Semantic.DeepEqual(original.Object, applied.Object), err
}

package appwrapper

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	awv1beta2 "github.com/odh-platform/odh-platform-operator/apis/appwrapper/v1beta2"
	"github.com/odh-platform/odh-platform-operator/controllers/appwrapper/rules"
	"github.com/odh-platform/odh-platform-operator/pkg/appwrapper/podset"
	webhook "github.com/odh-platform/odh-platform-operator/webhooks/appwrapper"
)

// terminalError is an error that no retry can fix.
type terminalError struct{ error }

// Unwrap returns the cause.
func (e terminalError) Unwrap() error { return e.error }

// notCreatedError is a retriable error of an attempt that created no object.
type notCreatedError struct{ error }

// createComponents creates the components that are not deployed, in order, up to the first error, and sets their status.
func (w *workloadReconciler) createComponents(ctx context.Context, aw *awv1beta2.AppWrapper) *rules.Creation {
	for i := range aw.Status.ComponentStatus {
		status := &aw.Status.ComponentStatus[i]
		if stageOf(status) == rules.Deployed {
			continue
		}
		err := w.createComponent(ctx, aw, i)
		now := w.settings.Clock.Now()
		switch {
		case err == nil:
			setResourcesDeployed(status, metav1.ConditionTrue, awv1beta2.ReasonComponentCreated, "", now)
			continue
		case isAmbiguous(err): // the object may exist
			setResourcesDeployed(status, metav1.ConditionUnknown, awv1beta2.ReasonComponentInitiated, err.Error(), now)
		default:
			setResourcesDeployed(status, metav1.ConditionFalse, awv1beta2.ReasonComponentErrored, err.Error(), now)
		}
		_, terminal := errors.AsType[terminalError](err)
		return &rules.Creation{Err: err, Terminal: terminal}
	}
	return &rules.Creation{}
}

func (w *workloadReconciler) createComponent(ctx context.Context, aw *awv1beta2.AppWrapper, index int) error {
	object, warnings, err := buildObject(aw, index, w.settings)
	if err != nil {
		return terminalError{err}
	}
	for _, warning := range warnings {
		ctrl.LoggerFrom(ctx).Info("Creating a component", "component", index, "warning", warning)
	}
	kind := object.GroupVersionKind()
	if err := w.checkKind(kind); err != nil {
		return err
	}
	if err := w.settings.AdmissionRules.Forbidden(webhook.References(aw)); err != nil {
		return terminalError{err}
	}
	status := &aw.Status.ComponentStatus[index]
	if id := identify(aw, index); id.prefix != "" {
		object.SetName(id.name)
		if status.Name == "" || status.Name == id.name { // an object with a name that the API server generated may exist
			if existing, err := w.findExisting(ctx, aw, index, object, id.prefix); err != nil || existing != "" {
				status.Name = existing
				return err
			}
		}
	}
	status.Name, status.Kind, status.APIVersion = object.GetName(), kind.Kind, kind.GroupVersion().String()
	w.kinds.ensureWatch(ctx, kind) // before the creation, to miss no event
	if err := controllerutil.SetControllerReference(aw, object, w.applier.Client.Scheme()); err != nil {
		return terminalError{fmt.Errorf("the AppWrapper cannot be the controller of %s %s: %w; remove metadata.ownerReferences from its template", kind.Kind, object.GetName(), err)}
	}
	err = w.applier.CreateAsIs(ctx, object)
	switch {
	case err == nil:
		w.memory.setCreated(aw.UID, index, object.GetUID(), false)
		return nil
	case apierrors.IsAlreadyExists(err):
		return w.adoptExisting(ctx, aw, index, object)
	case isTerminal(err):
		return terminalError{err}
	default:
		return withRequiredPermissions(err, kind)
	}
}

// checkKind rejects kinds that are forbidden in components, as admission does: an AppWrapper may have been stored without the webhook.
func (w *workloadReconciler) checkKind(kind schema.GroupVersionKind) error {
	mapping, err := w.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if meta.IsNoMatchError(err) {
		return terminalError{err}
	}
	if err != nil {
		return notCreatedError{fmt.Errorf("finding the resource of %s: %w", kind, err)}
	}
	if problem := webhook.KindProblem(mapping); problem != "" {
		return terminalError{errors.New(problem)}
	}
	return nil
}

// findExisting returns the name of an existing object of a component with generateName, or "": the CodeFlare operator did not store names that
// the API server generated. It adopts an object that was restored without owner references. It skips objects of other components.
func (w *workloadReconciler) findExisting(ctx context.Context, aw *awv1beta2.AppWrapper, index int, object *unstructured.Unstructured, prefix string) (string, error) {
	kind := object.GroupVersionKind()
	candidates, err := w.listLabeled(ctx, aw, kind)
	candidates = slices.DeleteFunc(candidates, func(o metav1.PartialObjectMetadata) bool {
		otherStatuses := slices.Concat(aw.Status.ComponentStatus[:index], aw.Status.ComponentStatus[index+1:])
		belongsToOther := slices.ContainsFunc(otherStatuses, func(s awv1beta2.AppWrapperComponentStatus) bool { return s.Name == o.Name && s.Kind == kind.Kind })
		return o.DeletionTimestamp != nil || !strings.HasPrefix(o.Name, truncatedPrefix(prefix)) || belongsToOther
	})
	for i := range candidates {
		if controls(aw, &candidates[i]) {
			return candidates[i].Name, nil
		}
	}
	for i := range candidates {
		if metav1.GetControllerOfNoCopy(&candidates[i]) != nil || !hasGeneratedSuffix(candidates[i].Name, prefix) {
			continue
		}
		restored := object.DeepCopy()
		restored.SetName(candidates[i].Name)
		adoptErr := w.adoptObject(ctx, aw, index, restored)
		switch {
		case adoptErr == nil:
			return restored.GetName(), nil
		case !errors.Is(adoptErr, errNotAdoptable):
			return "", adoptErr
		case !hasSharedPrefix(aw, index): // creating another object would run the workload twice
			return "", terminalError{fmt.Errorf("%s %s has the label of this AppWrapper and no owner, but differs from its template: delete it", kind.Kind, restored.GetName())}
		}
	}
	return "", err
}

// hasGeneratedSuffix reports whether a name that starts with the prefix, or the truncated prefix, can end with a generated suffix.
func hasGeneratedSuffix(name, prefix string) bool {
	truncated := truncatedPrefix(prefix)
	return !strings.ContainsAny(strings.TrimPrefix(strings.TrimPrefix(name, truncated), prefix[len(truncated):]), "-.")
}

// hasSharedPrefix reports whether another component of the kind has the same generateName: an object may then belong to either.
func hasSharedPrefix(aw *awv1beta2.AppWrapper, index int) bool {
	id := identify(aw, index)
	for i := range aw.Spec.Components {
		if other := identify(aw, i); i != index && other.kind == id.kind && other.prefix == id.prefix {
			return true
		}
	}
	return false
}

// adoptObject adopts an object with the label of the AppWrapper, if it has no controller and equals the template.
func (w *workloadReconciler) adoptObject(ctx context.Context, aw *awv1beta2.AppWrapper, index int, object *unstructured.Unstructured) error {
	uid, err := w.setController(ctx, aw, object)
	switch {
	case err == nil:
		w.memory.setCreated(aw.UID, index, uid, true)
	case apierrors.IsForbidden(err):
		return notCreatedError{fmt.Errorf("%s %s has no owner: grant the ServiceAccount of the operator the verb patch on it, or delete it: %w", object.GetKind(), object.GetName(), err)}
	}
	return err
}

// listLabeled lists the objects of a kind with the label of this AppWrapper from the API server.
func (w *workloadReconciler) listLabeled(ctx context.Context, aw *awv1beta2.AppWrapper, kind schema.GroupVersionKind, options ...client.ListOption) ([]metav1.PartialObjectMetadata, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	options = append(options, client.InNamespace(aw.Namespace), client.MatchingLabels{awv1beta2.LabelAppWrapper: aw.Name})
	if err := w.kinds.apiReader.List(ctx, list, options...); err != nil {
		return nil, fmt.Errorf("looking for %s of the AppWrapper: %w", kind.Kind, err)
	}
	return list.Items, nil
}

// adoptExisting handles an object that exists already: it succeeds if this AppWrapper controls or adopts it. The error is retriable if the
// object is terminating, cannot be read, was deleted after the create request, or belongs to a previous AppWrapper of the same name.
func (w *workloadReconciler) adoptExisting(ctx context.Context, aw *awv1beta2.AppWrapper, index int, object *unstructured.Unstructured) error {
	status := &aw.Status.ComponentStatus[index]
	key := types.NamespacedName{Namespace: aw.Namespace, Name: status.Name}
	observed, err := w.kinds.getLive(ctx, kindOf(status), key)
	objectName := status.Kind + " " + key.String()
	switch {
	case err != nil:
		return err
	case observed.unreadable != nil && isUnserved(observed.unreadable):
		return notCreatedError{fmt.Errorf("%s exists, but cannot be read, since its kind is not served in this version: %w", objectName, observed.unreadable)}
	case observed.unreadable != nil:
		return notCreatedError{fmt.Errorf("%s exists, but cannot be read: grant the ServiceAccount of the operator the verb get on it: %w", objectName, observed.unreadable)}
	case observed.object == nil:
		return fmt.Errorf("%s existed, but was deleted meanwhile: waiting for the next attempt", objectName)
	case observed.object.GetDeletionTimestamp() != nil:
		return notCreatedError{fmt.Errorf("%s exists and is being deleted: waiting until it is deleted", objectName)}
	case sameComponent(aw, index) < index && podset.Total(status.PodSets) > 0:
		return terminalError{fmt.Errorf("%s is the object of spec.components[%d] and spec.components[%d], and its pods would be counted twice: choose another name",
			objectName, sameComponent(aw, index), index)}
	case controls(aw, observed.object):
		w.memory.setCreated(aw.UID, index, observed.object.GetUID(), false)
		return nil
	}
	owner := metav1.GetControllerOf(observed.object)
	switch {
	case owner != nil && isAppWrapper(owner) && owner.Name == aw.Name:
		return notCreatedError{fmt.Errorf("%s belongs to an earlier AppWrapper of this name: waiting until it is deleted", objectName)}
	case owner == nil && observed.object.GetLabels()[awv1beta2.LabelAppWrapper] == aw.Name:
		if err := w.adoptObject(ctx, aw, index, object); !errors.Is(err, errNotAdoptable) {
			return err
		}
	}
	return terminalError{fmt.Errorf("resource %s exists, but is not controlled by appwrapper: delete it or recreate it under another name", objectName)}
}

// sameComponent returns the index of the first component with the kind and name of a component.
func sameComponent(aw *awv1beta2.AppWrapper, index int) int {
	status := &aw.Status.ComponentStatus[index]
	return slices.IndexFunc(aw.Status.ComponentStatus, func(s awv1beta2.AppWrapperComponentStatus) bool {
		return s.Name == status.Name && kindOf(&s).GroupKind() == kindOf(status).GroupKind()
	})
}

// isAmbiguous reports whether the API server may have executed the failed request.
func isAmbiguous(err error) bool {
	if _, terminal := errors.AsType[terminalError](err); terminal {
		return false
	}
	status, ok := errors.AsType[*apierrors.StatusError](err)
	if !ok {
		_, notCreated := errors.AsType[notCreatedError](err)
		return !notCreated
	}
	code := int(status.Status().Code)
	return code == 0 || code == http.StatusRequestTimeout || code >= http.StatusInternalServerError
}

// isTerminal reports whether the API server or an admission webhook would reject the object again.
func isTerminal(err error) bool {
	denied := strings.HasPrefix(err.Error(), "admission webhook ") && strings.Contains(err.Error(), "denied the request")
	return denied || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || meta.IsNoMatchError(err)
}

// withRequiredPermissions adds to an RBAC error which permissions to grant. RBAC errors differ from quota and policy errors only in the text.
func withRequiredPermissions(err error, kind schema.GroupVersionKind) error {
	status, ok := errors.AsType[*apierrors.StatusError](err)
	if !ok || !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "cannot create resource") {
		return err
	}
	resource := strings.ToLower(kind.Kind)
	if details := status.Status().Details; details != nil && details.Kind != "" {
		resource = details.Kind
	}
	return fmt.Errorf("%w: bind a ClusterRole with the verbs get, list, watch, create and delete on %q of the API group %q to the ServiceAccount of the operator",
		err, resource, kind.Group)
}

// componentID identifies the object of a component.
type componentID struct {
	apiVersion, kind, name string
	// prefix is the generateName of the template.
	prefix string
}

// identify returns the ID from the template. It returns an empty ID for an invalid template, for which buildObject returns an error.
func identify(aw *awv1beta2.AppWrapper, index int) componentID {
	u, err := podset.Decode(&aw.Spec.Components[index])
	if err != nil {
		return componentID{}
	}
	id := componentID{apiVersion: u.GetAPIVersion(), kind: u.GetKind(), name: u.GetName()}
	if id.name == "" && u.GetGenerateName() != "" {
		id.prefix = u.GetGenerateName()
		id.name = generateName(id.prefix, aw.UID, index)
	}
	return id
}

const (
	// maxGeneratedLength is the maximum length of the name of a RayJob or RayService, the lowest limit of the kinds that Kueue supports:
	// controllers append suffixes to names.
	maxGeneratedLength = 47
	// suffixLength is the number of digits of the suffix.
	suffixLength = 10
)

// generateName returns a deterministic name: if the response of a creation is lost, the next attempt finds the object.
func generateName(prefix string, uid types.UID, index int) string {
	sum := sha256.Sum256([]byte(string(uid) + "/" + strconv.Itoa(index)))
	suffix := hex.EncodeToString(sum[:])[:suffixLength]
	return truncatedPrefix(prefix) + suffix
}

// truncatedPrefix returns the prefix without the characters that do not fit.
func truncatedPrefix(prefix string) string {
	return prefix[:min(len(prefix), maxGeneratedLength-suffixLength)]
}

// kindOf returns the kind of the object that a component status names.
func kindOf(status *awv1beta2.AppWrapperComponentStatus) schema.GroupVersionKind {
	return schema.FromAPIVersionAndKind(status.APIVersion, status.Kind)
}

// controls reports whether the AppWrapper controls an object, by UID.
func controls(aw *awv1beta2.AppWrapper, object metav1.Object) bool {
	owner := metav1.GetControllerOf(object)
	return owner != nil && isAppWrapper(owner) && owner.UID == aw.UID
}

// isAppWrapper reports whether a reference refers to an AppWrapper of any version.
func isAppWrapper(ref *metav1.OwnerReference) bool {
	group, err := schema.ParseGroupVersion(ref.APIVersion)
	return err == nil && group.Group == awv1beta2.GroupVersion.Group && ref.Kind == awv1beta2.Kind
}

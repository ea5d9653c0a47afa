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

	awv1beta2 "github.com/odh-platform/odh-platform-operator/apis/appwrapper/v1beta2"
	"github.com/odh-platform/odh-platform-operator/controllers/appwrapper/rules"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/appwrapper/podset"
	webhook "github.com/odh-platform/odh-platform-operator/webhooks/appwrapper"
)

// fatalError is a failure that trying again cannot mend.
type fatalError struct{ error }

// Unwrap implements errors.Unwrap.
func (e fatalError) Unwrap() error { return e.error }

// waitError is a failure before anything was asked for: nothing can have been created.
type notSentError struct{ error }

// create makes the components that are not deployed, in their order, and stops at the first that fails. What became of each
// is in its status afterwards.
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
		case isAmbiguous(err): // it may exist: deletion has to look for it
			setResourcesDeployed(status, metav1.ConditionUnknown, awv1beta2.ReasonComponentInitiated, err.Error(), now)
		default:
			setResourcesDeployed(status, metav1.ConditionFalse, awv1beta2.ReasonComponentErrored, err.Error(), now)
		}
		_, fatal := errors.AsType[fatalError](err)
		return &rules.Creation{Err: err, Fatal: fatal}
	}
	return &rules.Creation{}
}

func (w *workloadReconciler) createComponent(ctx context.Context, aw *awv1beta2.AppWrapper, index int) error {
	object, warnings, err := buildObject(aw, index, w.settings)
	if err != nil {
		return fatalError{err}
	}
	for _, warning := range warnings {
		ctrl.LoggerFrom(ctx).Info("Creating a component", "component", index, "warning", warning)
	}
	kind := object.GroupVersionKind()
	if err := w.checkKind(kind); err != nil {
		return err
	}
	if err := w.settings.Authors.Forbidden(webhook.References(aw)); err != nil {
		return fatalError{err}
	}
	status := &aw.Status.ComponentStatus[index]
	if id := identify(aw, index); id.prefix != "" {
		object.SetName(id.name)
		if status.Name == "" || status.Name == id.name { // it has no object that is known
			if found, err := w.findExisting(ctx, aw, index, object, id.prefix); err != nil || found != "" {
				status.Name = found
				return err
			}
		}
	}
	status.Name, status.Kind, status.APIVersion = object.GetName(), kind.Kind, kind.GroupVersion().String()
	w.kinds.ensureWatch(ctx, kind) // its changes are to be heard from the start
	err = w.applier.CreateAsIs(ctx, aw, object)
	switch {
	case err == nil:
		w.memory.setCreated(aw.UID, index, object.GetUID())
		return nil
	case apierrors.IsAlreadyExists(err):
		return w.adoptExisting(ctx, aw, index, object)
	case isPermanent(err):
		return fatalError{err}
	default:
		return withRequiredRights(err, kind)
	}
}

// mayWrap refuses kinds that no component may have. Admission does so too; objects may have been stored before it did.
func (w *workloadReconciler) checkKind(kind schema.GroupVersionKind) error {
	mapping, err := w.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if meta.IsNoMatchError(err) {
		return fatalError{err}
	}
	if err != nil {
		return notSentError{fmt.Errorf("finding the resource of %s: %w", kind, err)}
	}
	if why := webhook.KindProblem(mapping); why != "" {
		return fatalError{errors.New(why)}
	}
	return nil
}

// madeBefore looks for what was made for a component whose name its template leaves open: by the original, which let the API server
// complete the name and announced none, or before a restore that stripped the owners, which is adopted. Names that are announced
// are those of other components.
func (w *workloadReconciler) findExisting(ctx context.Context, aw *awv1beta2.AppWrapper, index int, object *unstructured.Unstructured, prefix string) (string, error) {
	kind := object.GroupVersionKind()
	found, err := w.listLabelled(ctx, aw, kind)
	found = slices.DeleteFunc(found, func(o metav1.PartialObjectMetadata) bool {
		others := slices.Concat(aw.Status.ComponentStatus[:index], aw.Status.ComponentStatus[index+1:])
		announced := slices.ContainsFunc(others, func(s awv1beta2.AppWrapperComponentStatus) bool { return s.Name == o.Name && s.Kind == kind.Kind })
		return o.DeletionTimestamp != nil || !strings.HasPrefix(o.Name, truncatedPrefix(prefix)) || announced
	})
	for i := range found {
		if controls(aw, &found[i]) {
			return found[i].Name, nil
		}
	}
	for i := range found {
		if metav1.GetControllerOfNoCopy(&found[i]) != nil || !hasGeneratedName(found[i].Name, prefix) {
			continue
		}
		restored := object.DeepCopy()
		restored.SetName(found[i].Name)
		refusal := w.adoptObject(ctx, aw, index, restored)
		switch {
		case refusal == nil:
			return restored.GetName(), nil
		case !errors.Is(refusal, apply.ErrNotAdoptable):
			return "", refusal
		case !hasSharedPrefix(aw, index): // both would run
			return "", fatalError{fmt.Errorf("%s %s has the label of this AppWrapper and no owner, but differs from its template: delete it", kind.Kind, restored.GetName())}
		}
	}
	return "", err
}

// completes reports whether a name is a prefix with what the API server or this operator adds to one.
func hasGeneratedName(name, prefix string) bool {
	short := truncatedPrefix(prefix)
	return !strings.ContainsAny(strings.TrimPrefix(strings.TrimPrefix(name, short), prefix[len(short):]), "-.")
}

// sharesPrefix reports whether another component of the kind begins its name in the same way: what differs from this one may be that one.
func hasSharedPrefix(aw *awv1beta2.AppWrapper, index int) bool {
	id := identify(aw, index)
	for i := range aw.Spec.Components {
		if other := identify(aw, i); i != index && other.kind == id.kind && other.prefix == id.prefix {
			return true
		}
	}
	return false
}

// takeOver adopts an object without a controller, if it has our label and is what the template makes.
func (w *workloadReconciler) adoptObject(ctx context.Context, aw *awv1beta2.AppWrapper, index int, object *unstructured.Unstructured) error {
	err := w.applier.AdoptAsIs(ctx, aw, object)
	switch {
	case err == nil:
		w.memory.setAdopted(aw.UID, index, object.GetUID())
	case apierrors.IsForbidden(err):
		return notSentError{fmt.Errorf("%s %s has no owner: grant the service account of the operator patch on it, or delete it: %w", object.GetKind(), object.GetName(), err)}
	}
	return err
}

// ours lists, from the API server, the objects of a kind that this AppWrapper controls.
func (w *workloadReconciler) listControlled(ctx context.Context, aw *awv1beta2.AppWrapper, kind schema.GroupVersionKind) ([]metav1.PartialObjectMetadata, error) {
	found, err := w.listLabelled(ctx, aw, kind)
	return slices.DeleteFunc(found, func(object metav1.PartialObjectMetadata) bool { return !controls(aw, &object) }), err
}

// labelled lists, from the API server, the objects of a kind with the label of this AppWrapper.
func (w *workloadReconciler) listLabelled(ctx context.Context, aw *awv1beta2.AppWrapper, kind schema.GroupVersionKind) ([]metav1.PartialObjectMetadata, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	err := w.kinds.live.List(ctx, list, client.InNamespace(aw.Namespace), client.MatchingLabels{awv1beta2.LabelAppWrapper: aw.Name})
	if err != nil {
		return nil, fmt.Errorf("looking for %s of the AppWrapper: %w", kind.Kind, err)
	}
	return list.Items, nil
}

// adopt decides about an object that exists already: it is ours if this very AppWrapper controls it, or takes it over because it was
// restored without its owner. What is on its way out, or belongs to an earlier AppWrapper of the name, is waited for.
func (w *workloadReconciler) adoptExisting(ctx context.Context, aw *awv1beta2.AppWrapper, index int, object *unstructured.Unstructured) error {
	status := &aw.Status.ComponentStatus[index]
	key := types.NamespacedName{Namespace: aw.Namespace, Name: status.Name}
	observed, err := w.kinds.getLive(ctx, kindOf(status), key)
	title := status.Kind + " " + key.String()
	switch {
	case err != nil:
		return err
	case observed.unreadable != nil:
		return notSentError{fmt.Errorf("%s exists and may not be read: grant the service account of the operator get on it", title)}
	case observed.object == nil:
		return fmt.Errorf("%s went just now", title)
	case observed.object.GetDeletionTimestamp() != nil:
		return notSentError{fmt.Errorf("%s exists and is being deleted: waiting for it to go", title)}
	case controls(aw, observed.object):
		w.memory.setCreated(aw.UID, index, observed.object.GetUID())
		return nil
	}
	owner := metav1.GetControllerOf(observed.object)
	switch {
	case owner != nil && isAppWrapper(owner) && owner.Name == aw.Name:
		return notSentError{fmt.Errorf("%s belongs to an earlier AppWrapper of this name: waiting for it to go", title)}
	case owner == nil && observed.object.GetLabels()[awv1beta2.LabelAppWrapper] == aw.Name:
		if err := w.adoptObject(ctx, aw, index, object); !errors.Is(err, apply.ErrNotAdoptable) {
			return err
		}
	}
	return fatalError{fmt.Errorf("resource %s exists, but is not controlled by appwrapper: delete or rename it", title)}
}

// ambiguous tells whether an error leaves open if the API server has carried out what was asked.
func isAmbiguous(err error) bool {
	if _, fatal := errors.AsType[fatalError](err); fatal {
		return false
	}
	status, ok := errors.AsType[*apierrors.StatusError](err)
	if !ok {
		_, waits := errors.AsType[notSentError](err)
		return !waits
	}
	code := int(status.Status().Code)
	return code == 0 || code == http.StatusRequestTimeout || code >= http.StatusInternalServerError
}

// isFinal tells whether an object would be refused again: for what it is, by the API server or by an admission webhook.
func isPermanent(err error) bool {
	denied := strings.HasPrefix(err.Error(), "admission webhook ") && strings.Contains(err.Error(), "denied the request")
	return denied || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || meta.IsNoMatchError(err) || errors.Is(err, apply.ErrCannotOwn)
}

// explained says which rights to grant after a refusal, which differs from those of quotas and policies by its words.
func withRequiredRights(err error, kind schema.GroupVersionKind) error {
	status, ok := errors.AsType[*apierrors.StatusError](err)
	if !ok || !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "cannot create resource") {
		return err
	}
	resource := strings.ToLower(kind.Kind)
	if details := status.Status().Details; details != nil && details.Kind != "" {
		resource = details.Kind
	}
	return fmt.Errorf("%w: bind a ClusterRole with the verbs get, list, watch, create and delete on %q of the API group %q to the service account of the operator",
		err, resource, kind.Group)
}

// whole returns an unstructured object as such, and nil for metadata.
func fullObject(object client.Object) *unstructured.Unstructured {
	u, _ := object.(*unstructured.Unstructured)
	return u
}

// identity is the place of a component.
type componentID struct {
	apiVersion, kind, name string
	// prefix is how the name begins when the template leaves the rest of it open.
	prefix string
}

// identify reads the identity of a component from its template. What cannot be read stays empty: creation reports it.
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
	// maxGenerated is the longest name that every kind takes, those included whose objects make others of longer names: a
	// CronJob takes no more.
	maxGeneratedLength = 52
	// suffixLength digits tell objects apart whose names begin alike.
	suffixLength = 10
)

// generateName completes a name always in the same way, so that an object whose creation was not answered is found again
// instead of being made twice.
func generateName(prefix string, uid types.UID, index int) string {
	sum := sha256.Sum256([]byte(string(uid) + "/" + strconv.Itoa(index)))
	suffix := hex.EncodeToString(sum[:])[:suffixLength]
	return truncatedPrefix(prefix) + suffix
}

// shortened leaves room for the digits.
func truncatedPrefix(prefix string) string {
	return prefix[:min(len(prefix), maxGeneratedLength-suffixLength)]
}

// kindOf is the kind of a component that was announced.
func kindOf(status *awv1beta2.AppWrapperComponentStatus) schema.GroupVersionKind {
	return schema.FromAPIVersionAndKind(status.APIVersion, status.Kind)
}

// controls tells whether an object is controlled by this very AppWrapper: group, kind and uid count, and not the name.
func controls(aw *awv1beta2.AppWrapper, object metav1.Object) bool {
	owner := metav1.GetControllerOf(object)
	return owner != nil && isAppWrapper(owner) && owner.UID == aw.UID
}

// isAppWrapper tells whether a reference points at an AppWrapper of any version.
func isAppWrapper(ref *metav1.OwnerReference) bool {
	group, err := schema.ParseGroupVersion(ref.APIVersion)
	return err == nil && group.Group == awv1beta2.GroupVersion.Group && ref.Kind == awv1beta2.Kind
}

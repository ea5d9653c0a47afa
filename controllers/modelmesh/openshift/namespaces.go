package openshift

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/controllers/modelmesh"
	"github.com/odh-platform/odh-platform-operator/controllers/modelmesh/authproxy"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/certs"
	meshsettings "github.com/odh-platform/odh-platform-operator/pkg/modelmesh/settings"
	"github.com/odh-platform/odh-platform-operator/pkg/names"
	"github.com/odh-platform/odh-platform-operator/pkg/resources/oauthproxy"
	"github.com/odh-platform/odh-platform-operator/pkg/status/conditions"
)

const (
	// strangerRetry is the pause while a foreign object has a name that we need: its end is no event for us.
	foreignObjectRetry = time.Minute
	// lookAgain is the pause where what is missing comes without an event, such as an API that goes.
	pollInterval = time.Second
	// eventAction is what controllers do when they tell something.
	eventAction = "Reconcile"
	// ReasonNotApplied is the reason of the events about what could not be made.
	ReasonNotApplied = "CompanionNotApplied"
	// ReasonNoRoute is the reason of the events about models that cannot be published as their runtime demands.
	ReasonNoRoute = "RouteNotPublished"
)

// baseReconciler is what both controllers need.
type baseReconciler struct {
	*modelmesh.Catalog
	// cached reads InferenceServices and runtimes whole, of all else the metadata, and writes.
	cached   client.Client
	live     client.Reader
	applier  *apply.Applier
	recorder events.EventRecorder
	enabled  func(context.Context, string) (bool, error)
	// exposure matters where there are no Routes.
	exposure exposure
}

// namespaces makes what a served namespace needs.
type namespaceReconciler struct {
	baseReconciler
	// connections holds the metadata of data connections.
	connections client.Reader
	monitoring  string
	clock       clock.PassiveClock
	states      modelmesh.Store[string, *namespaceState]
}

// Reconcile implements reconcile.Reconciler. Requests name a namespace.
func (r *namespaceReconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	enabled, err := r.enabled(ctx, request.Name)
	if err != nil {
		return ctrl.Result{}, err
	}
	if !enabled {
		r.states.Delete(request.Name)
		return ctrl.Result{}, r.deleteObsolete(ctx, "", request.Name, nil)
	}
	namespace, err := r.Namespaces.Metadata(ctx, request.Name)
	if err != nil || namespace == nil || namespace.DeletionTimestamp != nil {
		return ctrl.Result{}, err
	}
	settings, err := r.Settings(ctx, request.Name)
	if err != nil {
		return ctrl.Result{}, err
	}
	retry, err := r.reconcile(ctx, namespace, settings)
	return ctrl.Result{RequeueAfter: retry}, err
}

// reconcile brings the objects around a served namespace to what they should be.
func (r *namespaceReconciler) reconcile(ctx context.Context, namespace *metav1.PartialObjectMetadata, s meshsettings.Settings) (time.Duration, error) {
	in, err := r.collectInputs(ctx, namespace.Name, s)
	if err != nil {
		return 0, err
	}
	known, found := r.states.Get(namespace.Name)
	if !found {
		known = &namespaceState{}
		r.states.Set(namespace.Name, known)
	}
	kept, err := r.collectSecrets(ctx, &in, known)
	if err != nil {
		return 0, err
	}
	desired := desiredObjects(in)
	retry, err := r.applyObjects(ctx, namespace, desired, known)
	if err != nil {
		return 0, err
	}
	for _, object := range desired {
		kind, name, err := object.Key()
		if err != nil {
			return 0, err
		}
		kept = append(kept, objectRef{kind, name})
	}
	return modelmesh.Sooner(retry, r.renewalDelay(known)), r.deleteObsolete(ctx, namespace.UID, namespace.Name, kept)
}

// inputs gathers what does not have to be read from Secrets.
func (r *namespaceReconciler) collectInputs(ctx context.Context, namespace string, s meshsettings.Settings) (Inputs, error) {
	served := r.Served()
	in := Inputs{
		Namespace: namespace, Settings: s, Monitoring: r.monitoring,
		Account: authproxy.AccountOf(s, served), Proxy: authproxy.Decide(s, namespace, served),
	}
	var err error
	in.InUse, in.HasRuntimes, err = r.getUsage(ctx, namespace)
	return in, err
}

// secrets fills in what is kept in Secrets, and returns the places of those that are good as they are.
func (r *namespaceReconciler) collectSecrets(ctx context.Context, in *Inputs, known *namespaceState) ([]objectRef, error) {
	if !in.InUse {
		return nil, nil
	}
	kept, err := r.collectStorage(ctx, in, known)
	if err != nil || in.Proxy == nil {
		return kept, err
	}
	if in.Proxy.HasCookie() {
		key := client.ObjectKey{Namespace: in.Namespace, Name: authproxy.CookieSecret}
		if known.cookie, err = oauthproxy.Cookie(ctx, r.cached, r.live, key, known.cookie); err != nil {
			return nil, err
		}
		in.Cookie = known.cookie
	}
	more, err := r.collectCertificate(ctx, in, known)
	return append(kept, more...), err
}

// write makes what is wanted, and records an Event about what could not be made.
func (r *namespaceReconciler) applyObjects(ctx context.Context, namespace client.Object, desired apply.Desired, known *namespaceState) (time.Duration, error) {
	problem, retry, err := r.apply(ctx, namespace, desired)
	if err != nil {
		problem = err.Error()
	}
	if problem != "" {
		known.storageVersions, known.certificateVersion = "", "" // Secrets are read again
	}
	if replaceProblem(&known.lastApplyProblem, problem) {
		r.recordWarning(namespace, problem)
	}
	return retry, err
}

// apply writes what is wanted. The problem is why that was not possible, unless trying again soon may help.
func (a *baseReconciler) apply(ctx context.Context, owner client.Object, desired apply.Desired) (problem string, retry time.Duration, err error) {
	err = a.applier.Apply(ctx, owner, desired)
	switch {
	case err == nil, isNamespaceTerminating(err):
		return "", 0, nil
	case apply.IsTerminating(err):
		return "", pollInterval, nil
	case apply.Blocked(err):
		return err.Error(), foreignObjectRetry, nil
	}
	return "", 0, err
}

func (r *namespaceReconciler) recordWarning(about runtime.Object, text string) {
	r.recorder.Eventf(about, nil, corev1.EventTypeWarning, ReasonNotApplied, eventAction, "%s", conditions.Clip(text, modelmesh.MaxNote))
}

// clear removes what was made for a namespace and is not among the places that are kept.
func (r *namespaceReconciler) deleteObsolete(ctx context.Context, uid types.UID, namespace string, kept []objectRef) error {
	keep := map[objectRef]bool{}
	for _, p := range kept {
		keep[p] = true
	}
	storages, err := r.listStorageSecrets(ctx, namespace)
	if err != nil {
		return err
	}
	var errs []error
	for _, p := range append(possibleObjects(namespace, r.Served()), storages...) {
		if !keep[p] {
			keep[p] = true // once is enough
			errs = append(errs, r.deleteIfManaged(ctx, uid, p))
		}
	}
	return errors.Join(errs...)
}

// storages are the Secrets of storage entries, also under a name that the settings had before.
func (r *namespaceReconciler) listStorageSecrets(ctx context.Context, namespace string) ([]objectRef, error) {
	labels := names.Labels(modelmesh.ComponentName)
	labels[LabelManaged] = valueTrue
	heads, err := modelmesh.Heads(ctx, r.cached, secretKind, client.InNamespace(namespace), client.MatchingLabels(labels))
	var out []objectRef
	for i := range heads {
		out = append(out, objectRef{secretKind, client.ObjectKeyFromObject(&heads[i])})
	}
	return out, err
}

// remove removes one object if we made it. The uid is that of the namespace, or empty.
func (r *namespaceReconciler) deleteIfManaged(ctx context.Context, uid types.UID, p objectRef) error {
	head, err := r.getMetadata(ctx, p)
	if err != nil || head == nil || !isManaged(head) {
		return err
	}
	return r.applier.DeleteOwned(ctx, uid, head)
}

// headOf reads the metadata of an object from the cache; nil when there is none.
func (a *baseReconciler) getMetadata(ctx context.Context, p objectRef) (*metav1.PartialObjectMetadata, error) {
	return capability.GetMetadata(ctx, a.cached, p.GroupVersionKind, p.NamespacedName)
}

// ending tells whether an error consists of nothing but what a namespace on its way out refuses.
func isNamespaceTerminating(err error) bool {
	return apply.OnlyErrors(err, func(err error) bool { return apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) })
}

// remembered is what is remembered of one namespace. No credential is among it but the key of cookies.
type namespaceState struct {
	// cookie is the key of the sidecar's cookies.
	cookie []byte
	// gathered are the versions of what the storage entries were made of, and of the Secret that held them then.
	storageVersions string
	// certificate is the version of the Secret with a certificate that was found good until renewal, trust its CA.
	certificateVersion string
	trust              certs.Trust
	renewalTime        time.Time
	// notApplied and notStored are the texts of the last Events about what could not be written, and about storage entries.
	lastApplyProblem, lastStorageProblem string
}

// news replaces the text of the last Event about something, and reports whether the new one differs. An empty text ends the matter.
func replaceProblem(last *string, text string) bool {
	before := *last
	*last = text
	return text != "" && text != before
}

// usage tells whether a namespace is used, and whether it has runtimes. What pods need stays as long as there are pods, also when the last
// model is gone: without its account a new pod would be refused.
func (a *baseReconciler) getUsage(ctx context.Context, namespace string) (used, runtimes bool, err error) {
	var deployments appsv1.DeploymentList
	made := client.MatchingLabels(names.Labels(modelmesh.ComponentName))
	if err := a.cached.List(ctx, &deployments, client.InNamespace(namespace), made, client.UnsafeDisableDeepCopy); err != nil {
		return false, false, fmt.Errorf("listing the Deployments of runtimes: %w", err)
	}
	hasPods := func(d appsv1.Deployment) bool {
		return d.Spec.Replicas == nil || *d.Spec.Replicas > 0 || d.Status.Replicas > 0
	}
	runtimes = len(deployments.Items) > 0
	if slices.ContainsFunc(deployments.Items, hasPods) {
		return true, runtimes, nil
	}
	models, err := a.Models(ctx, namespace)
	return len(models) > 0, runtimes, err
}

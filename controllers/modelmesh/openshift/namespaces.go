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
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/controllers/modelmesh"
	"github.com/odh-platform/odh-platform-operator/controllers/modelmesh/authproxy"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	meshsettings "github.com/odh-platform/odh-platform-operator/pkg/modelmesh/settings"
	"github.com/odh-platform/odh-platform-operator/pkg/names"
	"github.com/odh-platform/odh-platform-operator/pkg/objectmeta"
	"github.com/odh-platform/odh-platform-operator/pkg/reconciler"
	"github.com/odh-platform/odh-platform-operator/pkg/resources/oauthproxy"
	"github.com/odh-platform/odh-platform-operator/pkg/servingcert"
)

const (
	// eventAction is the default action of the Events of both controllers.
	eventAction = "Reconcile"
	// ReasonNotApplied is the reason of Events about objects that could not be applied.
	ReasonNotApplied = "CompanionNotApplied"
	// ReasonNoRoute is the reason of Events about models that cannot be published although their runtime requests it.
	ReasonNoRoute = "RouteNotPublished"
)

// baseReconciler holds the dependencies of both controllers.
type baseReconciler struct {
	*modelmesh.Lister
	// cached reads full objects of KServe, full Deployments, and the metadata of the other kinds. It also writes.
	cached   client.Client
	live     client.Reader
	applier  *apply.Applier
	takeOver modelmesh.TakeOver
	recorder events.EventRecorder
	enabled  func(context.Context, string) (bool, error)
	// exposure is used if the cluster serves no Routes.
	exposure exposure
}

// namespaceReconciler reconciles the objects of enabled namespaces.
type namespaceReconciler struct {
	baseReconciler
	// connections reads the metadata of data connections.
	connections client.Reader
	monitoring  string
	// certificates issues the certificates of sidecars.
	certificates *servingcert.Issuer
	states       reconciler.SyncMap[string, *namespaceState]
}

// Reconcile implements reconcile.Reconciler. Requests name a namespace.
func (r *namespaceReconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	enabled, err := r.enabled(ctx, request.Name)
	if err != nil {
		return ctrl.Result{}, err
	}
	if !enabled {
		if state, found := r.states.Delete(request.Name); found {
			r.certificates.Forget(state.uid)
		}
		return ctrl.Result{}, r.deleteObsolete(ctx, "", request.Name, nil)
	}
	namespace, err := r.Namespaces.GetMetadata(ctx, request.Name)
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

// reconcile applies the desired objects of an enabled namespace and deletes the obsolete ones.
func (r *namespaceReconciler) reconcile(ctx context.Context, namespace *metav1.PartialObjectMetadata, s meshsettings.Settings) (time.Duration, error) {
	served := r.Served()
	in := Inputs{
		Namespace: namespace.Name, Settings: s, MonitoringNamespace: r.monitoring,
		Account: authproxy.ServiceAccountName(s, served), Proxy: authproxy.Decide(s, namespace.Name, served),
	}
	var err error
	if in.InUse, in.HasRuntimes, err = r.getUsage(ctx, namespace.Name); err != nil {
		return 0, err
	}
	state, found := r.states.Get(namespace.Name)
	if !found {
		state = &namespaceState{uid: namespace.UID, lastProblems: reconciler.LastMessages[string]{}}
		r.states.Set(namespace.Name, state)
	}
	kept, err := r.collectSecrets(ctx, &in, state)
	if err != nil {
		return 0, err
	}
	err = r.ensureCertificate(ctx, namespace, &in)
	desired := desiredObjects(in)
	r.takeOver.Adopt(namespace, desired)
	if err == nil {
		err = r.applier.Apply(ctx, namespace, desired)
	}
	retry, err := r.reportProblem(namespace, err, state)
	if err != nil {
		return 0, err
	}
	for _, object := range desired {
		kept = append(kept, object.Key())
	}
	for _, c := range in.certificates() {
		kept = append(kept, apply.NewKey(secretKind, c.Namespace, c.Name))
	}
	if renewal, ok := reconciler.AsWait(r.certificates.AwaitRenewal(namespace.UID)); ok {
		retry = reconciler.Sooner(retry, renewal.Retry)
	}
	return retry, r.deleteObsolete(ctx, namespace.UID, namespace.Name, kept)
}

// collectSecrets sets the inputs that come from Secrets, and returns the keys of the Secrets that are kept without an update.
func (r *namespaceReconciler) collectSecrets(ctx context.Context, in *Inputs, state *namespaceState) ([]apply.Key, error) {
	if !in.InUse {
		return nil, nil
	}
	kept, err := r.collectStorage(ctx, in, state)
	if err != nil || in.Proxy == nil {
		return kept, err
	}
	if in.Proxy.NeedsCookieSecret() {
		key := client.ObjectKey{Namespace: in.Namespace, Name: authproxy.CookieSecret}
		if state.cookie, err = oauthproxy.LoadOrGenerateCookie(ctx, r.cached, r.live, key, state.cookie); err != nil {
			return nil, err
		}
		in.Cookie = state.cookie
	}
	return kept, nil
}

// reportProblem classifies the error of a write, and records an Event about it.
func (r *namespaceReconciler) reportProblem(namespace client.Object, err error, state *namespaceState) (time.Duration, error) {
	problem, retry, err := classify(err)
	if err != nil {
		problem = err.Error()
	}
	if problem != "" {
		state.storageVersions = "" // the next reconcile reads the Secrets
	}
	if state.lastProblems.Replace("objects", problem) && problem != "" {
		r.recordWarning(namespace, problem)
	}
	return retry, err
}

// classify returns the message of a write error that a user must resolve, and the delay until the next attempt. For terminating objects
// it returns only the delay. It ignores rejections because the namespace is terminating, and returns all other errors.
func classify(err error) (problem string, retry time.Duration, _ error) {
	switch {
	case err == nil, isNamespaceTerminating(err):
		return "", 0, nil
	case apply.IsTerminating(err):
		return "", reconciler.RequeueSoon, nil
	case apply.IsBlocked(err):
		return err.Error(), reconciler.RequeueBlocked, nil
	}
	return "", 0, err
}

func (r *namespaceReconciler) recordWarning(object runtime.Object, message string) {
	r.recorder.Eventf(object, nil, corev1.EventTypeWarning, ReasonNotApplied, eventAction, "%s", message)
}

// deleteObsolete deletes the managed objects of a namespace that are not in kept.
func (r *namespaceReconciler) deleteObsolete(ctx context.Context, uid types.UID, namespace string, kept []apply.Key) error {
	keep := sets.New(kept...)
	storages, err := r.listStorageSecrets(ctx, namespace)
	if err != nil {
		return err
	}
	var errs []error
	for key := range sets.New(append(possibleObjects(namespace, r.Served()), storages...)...).Difference(keep) {
		metadata, err := r.getMetadata(ctx, key)
		if metadata != nil && isManaged(metadata) {
			err = r.deleteManaged(ctx, uid, metadata, slices.Contains(storages, key))
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// deleteManaged deletes an object, except a storage Secret with entries of others.
func (r *namespaceReconciler) deleteManaged(ctx context.Context, uid types.UID, o *metav1.PartialObjectMetadata, isStorage bool) error {
	if isStorage {
		if released, err := r.releaseStorageSecret(ctx, o); err != nil || released {
			return err
		}
	}
	return r.applier.DeleteOwned(ctx, uid, o)
}

// listStorageSecrets returns the Secrets with storage entries, including those with an earlier storageSecretName.
func (r *namespaceReconciler) listStorageSecrets(ctx context.Context, namespace string) ([]apply.Key, error) {
	labels := names.Labels(modelmesh.ComponentName)
	labels[LabelManaged] = valueTrue
	metadata, err := modelmesh.ListMetadata(ctx, r.cached, secretKind, client.InNamespace(namespace), client.MatchingLabels(labels))
	var keys []apply.Key
	for i := range metadata {
		keys = append(keys, apply.NewKey(secretKind, metadata[i].Namespace, metadata[i].Name))
	}
	return keys, err
}

// getMetadata returns the metadata of an object from the cache, or nil if it does not exist.
func (r *baseReconciler) getMetadata(ctx context.Context, key apply.Key) (*metav1.PartialObjectMetadata, error) {
	return objectmeta.Get(ctx, r.cached, key.GroupVersionKind, key.NamespacedName)
}

// isNamespaceTerminating reports whether all errors are rejections because the namespace is terminating.
func isNamespaceTerminating(err error) bool {
	return apply.AllErrorsMatch(err, func(err error) bool { return apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) })
}

// namespaceState is the state of one namespace between reconciles. The cookie key is its only credential.
type namespaceState struct {
	uid types.UID
	// cookie is the cookie key of the sidecar.
	cookie []byte
	// storageVersions holds the versions of the storage Secret and of the objects from which its entries are built.
	storageVersions string
	// lastProblems holds the messages of the last Events about objects and about storage.
	lastProblems reconciler.LastMessages[string]
}

// getUsage reports whether a namespace has models or runtime pods, and whether it has Deployments of runtimes. A namespace with pods is in
// use even without models, because new pods need the ServiceAccount.
func (r *baseReconciler) getUsage(ctx context.Context, namespace string) (inUse, hasRuntimes bool, err error) {
	var deployments appsv1.DeploymentList
	managed := client.MatchingLabels(names.Labels(modelmesh.ComponentName))
	if err := r.cached.List(ctx, &deployments, client.InNamespace(namespace), managed, client.UnsafeDisableDeepCopy); err != nil {
		return false, false, fmt.Errorf("listing the Deployments of runtimes: %w", err)
	}
	hasPods := func(d appsv1.Deployment) bool {
		return d.Spec.Replicas == nil || *d.Spec.Replicas > 0 || d.Status.Replicas > 0
	}
	hasRuntimes = len(deployments.Items) > 0
	if slices.ContainsFunc(deployments.Items, hasPods) {
		return true, hasRuntimes, nil
	}
	models, err := r.Models(ctx, namespace)
	return len(models) > 0, hasRuntimes, err
}

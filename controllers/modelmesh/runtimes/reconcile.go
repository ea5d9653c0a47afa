package runtimes

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/controllers/modelmesh"
	meshclient "github.com/odh-platform/odh-platform-operator/controllers/modelmesh/client"
	meshetcd "github.com/odh-platform/odh-platform-operator/controllers/modelmesh/etcd"
	"github.com/odh-platform/odh-platform-operator/controllers/modelmesh/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/admission"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	pkgmodelmesh "github.com/odh-platform/odh-platform-operator/pkg/modelmesh"
	meshsettings "github.com/odh-platform/odh-platform-operator/pkg/modelmesh/settings"
	"github.com/odh-platform/odh-platform-operator/pkg/reconciler"
	"github.com/odh-platform/odh-platform-operator/pkg/reference"
)

// clientPool and etcdWatcher are the methods of meshclient.Pool and meshevents.Watcher that a reconcile calls.
type (
	clientPool interface {
		Ensure(namespace string, target meshclient.Target) error
		Forget(namespace string)
	}
	etcdWatcher interface {
		Connect(data map[string][]byte) error
		ConnectOwn(namespace string, data map[string][]byte) error
		Ensure(namespace, service string)
		Grant(ctx context.Context, account meshetcd.Account) error
		Forget(namespace string)
	}
)

// runtimeReconciler reconciles the runtimes of a namespace. Requests are namespaces.
type runtimeReconciler struct {
	*modelmesh.Lister
	admissionRules admission.Rules
	clock          clock.Clock
	recorder       events.EventRecorder
	// live reads from the API server, claims and pods read from separate caches.
	live, claims, pods client.Reader
	applier            *apply.Applier
	takeOver           modelmesh.TakeOver
	pool               clientPool
	etcdWatcher        etcdWatcher

	// etcd holds the etcd Secret of the operator's namespace, namespaceEtcd the etcd Secrets of other namespaces.
	etcd          *reference.ContentCache[map[string][]byte]
	namespaceEtcd *reference.ContentCache[map[string][]byte]
	storage       *reference.ContentCache[storageContent]
	tls           *reference.ContentCache[tlsContent]

	caches reconciler.SyncMap[string, *namespaceCache]
	// operatorDeployment owns the Service in a single-namespace installation.
	operatorDeployment atomic.Pointer[appsv1.Deployment]
}

// tlsContent is the parsed TLS Secret.
type tlsContent struct {
	pair  *meshclient.KeyPair
	hasCA bool
	err   error
}

// storageContent holds the keys of the entries of a storage Secret, their PersistentVolumeClaims, and notices about invalid entries.
type storageContent struct {
	claims  []string
	notices []string
	keys    sets.Set[string]
}

// newReconciler adds the Secret caches to a reconciler.
func newReconciler(r *runtimeReconciler) *runtimeReconciler {
	r.etcd = reference.NewContentCache(r.Cached, r.live, func(secret *corev1.Secret) map[string][]byte { return secret.Data })
	r.namespaceEtcd = reference.NewContentCache(r.Cached, r.live, foreignSecretData)
	r.storage = reference.NewContentCache(r.Cached, r.live, readStorage)
	r.tls = reference.NewContentCache(r.Cached, r.live, readTLS)
	return r
}

func readTLS(secret *corev1.Secret) tlsContent {
	pair, err := meshclient.ParseKeyPair(secret.Name, secret.Data)
	return tlsContent{pair: pair, hasCA: len(secret.Data["ca.crt"]) > 0, err: err}
}

// foreignSecretData returns the data of a Secret, or nil for a copy that this operator or the legacy controller created.
func foreignSecretData(secret *corev1.Secret) map[string][]byte {
	switch {
	case resources.HasManagedByLabel(secret):
		return nil
	case secret.Data == nil:
		return map[string][]byte{}
	}
	return secret.Data
}

func readStorage(secret *corev1.Secret) storageContent {
	claims, notices := meshsettings.StorageClaims(secret.Data)
	return storageContent{claims: claims, notices: notices, keys: sets.KeySet(secret.Data)}
}

// Reconcile implements reconcile.Reconciler.
func (r *runtimeReconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	enabled, err := r.Namespaces.Enabled(ctx, request.Name)
	if err != nil {
		return ctrl.Result{}, err
	}
	if !enabled {
		return ctrl.Result{}, r.deleteAll(ctx, request.Name)
	}
	state, err := r.collectState(ctx, request.Name)
	if err != nil {
		return ctrl.Result{}, err
	}
	if r.isUnused(state) {
		return ctrl.Result{}, r.deleteAll(ctx, request.Name)
	}
	if err := r.updateMissingReferences(ctx, state); err != nil {
		return ctrl.Result{}, err
	}
	requeueAfter, err := r.reconcileNamespace(ctx, state)
	return toResult(requeueAfter, err)
}

// isUnused reports whether the namespace is the operator's and has neither multi-model runtimes nor models. It returns false in a
// single-namespace installation. The operator's namespace is enabled without a label, but must not get a Service in a cluster without
// ModelMesh.
func (r *runtimeReconciler) isUnused(state *namespaceState) bool {
	isMultiModel := func(rt modelmesh.Runtime) bool { return pkgmodelmesh.IsMultiModel(rt.Spec) }
	return state.Namespace == state.OperatorNamespace && !state.SingleNamespace && len(state.models) == 0 &&
		!slices.ContainsFunc(slices.Collect(maps.Values(state.runtimes)), isMultiModel)
}

// toResult requeues for terminating objects and if a user must fix all errors, and returns others for a retry with backoff.
func toResult(requeueAfter time.Duration, err error) (ctrl.Result, error) {
	switch {
	case err == nil:
		return ctrl.Result{RequeueAfter: requeueAfter}, nil
	case apply.IsTerminating(err):
		return ctrl.Result{RequeueAfter: reconciler.Sooner(requeueAfter, reconciler.RequeueSoon)}, nil
	case apply.AllErrorsMatch(err, needsUserAction):
		return ctrl.Result{RequeueAfter: reconciler.Sooner(requeueAfter, reconciler.RequeueBlocked)}, nil
	}
	return ctrl.Result{}, err
}

// needsUserAction reports whether a user must resolve the error: a foreign object has the name, a deletion timed out, or the API server
// rejects the object as invalid.
func needsUserAction(err error) bool {
	switch e := any(err).(type) {
	case *apply.ForeignError, *apply.TerminatingError:
		return apply.IsBlocked(err)
	case *apierrors.StatusError:
		return apierrors.IsInvalid(e)
	default:
		return false
	}
}

// reconcileNamespace applies the objects of a namespace and prunes obsolete ones. It continues after errors and returns them joined.
func (r *runtimeReconciler) reconcileNamespace(ctx context.Context, state *namespaceState) (requeueAfter time.Duration, err error) {
	var guards apply.Desired
	if state.needsDeployments() {
		guards = state.buildGuards(state.namespaceInputs(state.tls))
	}
	state.errPrerequisites = errors.Join(r.apply(ctx, state.owner, guards), r.reconcileSharedConfig(ctx, state))
	serviceErr := r.reconcileService(ctx, state)
	state.reportToAllRuntimes(actionApplyService, userMessage(serviceErr)) // users see no other report of this error
	errs := []error{serviceErr, state.errPrerequisites}
	if state.Settings.EtcdUserPerNamespace {
		requeueAfter = grantInterval
	}
	// keep has the names of Deployments, and the UIDs of paused runtimes, all of whose objects are kept.
	keep, existingRuntimes, causes := map[string]bool{}, map[types.UID]bool{}, map[string]modelmesh.Cause{}
	for _, name := range sortedNames(state.runtimes) {
		rt := state.runtimes[name]
		existingRuntimes[rt.Object.GetUID()] = true
		deployment := resources.DeploymentName(state.Settings.ServiceName, name)
		if state.reportPaused(rt.Object) {
			keep[deployment], keep[string(rt.Object.GetUID())] = true, true
			continue
		}
		if !rt.NeedsDeployment() {
			delete(state.idleSince, name)
			continue
		}
		keep[deployment] = true
		runtimeRequeue, err := r.reconcileRuntime(ctx, state, name, rt)
		state.warn(rt.Object, actionApplyGuards, ReasonRefused, userMessage(state.blockedError(deployment)))
		state.warn(rt.Object, actionApply, ReasonRefused, userMessage(err))
		var causeErr error
		causes[name], causeErr = r.findCause(ctx, state, rt, deployment)
		errs = append(errs, err, causeErr)
		requeueAfter = reconciler.Sooner(requeueAfter, runtimeRequeue)
	}
	r.NotServingCauses.Set(state.Namespace, causes)
	state.forgetDeleted(existingRuntimes)
	maps.DeleteFunc(state.idleSince, func(name string, _ time.Time) bool { return state.runtimes[name].Object == nil })
	deploymentsFound, err := r.pruneDeployments(ctx, state.Namespace, keep)
	errs = append(errs, err)
	if len(keep) > 0 || !deploymentsFound {
		errs = append(errs, r.pruneGuards(ctx, state.Namespace, guards))
	}
	return requeueAfter, errors.Join(errs...)
}

// apply applies desired objects, and adopts those of the legacy controller.
func (r *runtimeReconciler) apply(ctx context.Context, owner client.Object, desired apply.Desired) error {
	r.takeOver.Adopt(owner, desired)
	return r.applier.Apply(ctx, owner, desired)
}

// userMessage returns the message of an error that a user must fix, or "" for errors that are retried and logged. Forbidden errors
// (a quota, a missing permission) are both reported and retried.
func userMessage(err error) string {
	if apply.AllErrorsMatch(err, func(err error) bool {
		status, ok := any(err).(*apierrors.StatusError)
		return needsUserAction(err) || ok && apierrors.IsForbidden(status)
	}) {
		return err.Error()
	}
	return ""
}

func namespacedName(namespace, name string) types.NamespacedName {
	return types.NamespacedName{Namespace: namespace, Name: name}
}

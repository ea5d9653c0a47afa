package runtimes

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
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
	meshsettings "github.com/odh-platform/odh-platform-operator/pkg/modelmesh/settings"
)

// foreignRetry is how long a name that a foreign object has taken is left alone: no event shows when it becomes free. So is an object
// that the API server refused.
const foreignObjectRequeue = 2 * time.Minute

// pool and stream are the parts of meshclient.Pool and meshevents.Stream that a reconcile needs.
type (
	pool interface {
		Ensure(namespace string, target meshclient.Target) error
		Forget(namespace string)
	}
	stream interface {
		Connect(data map[string][]byte) error
		ConnectOwn(namespace string, data map[string][]byte) error
		Ensure(namespace, service string)
		Grant(ctx context.Context, account meshetcd.Account) error
		Forget(namespace string)
	}
)

// server is the controller of what serves models in a namespace. Requests are namespaces.
type runtimeReconciler struct {
	*modelmesh.Catalog
	authors  admission.Rules
	clock    clock.Clock
	recorder events.EventRecorder
	// live reads from the API server, claims and pods from caches of their own.
	live, claims, pods client.Reader
	applier            *apply.Applier
	pool               pool
	stream             stream

	// What is known of Secrets, by what they are for.
	etcd          *modelmesh.SecretCache[map[string][]byte]
	namespaceEtcd *modelmesh.SecretCache[map[string][]byte]
	storage       *modelmesh.SecretCache[storageContent]
	tls           *modelmesh.SecretCache[tlsContent]

	reporter *reporter
	// idle says since when no model needs a runtime; zero while one does.
	idleRuntimes modelmesh.SyncMap[types.NamespacedName, time.Time]
	// granted says when an account of a namespace was last seen to be as it should be.
	grantedAccounts modelmesh.SyncMap[string, grantedAccount]
	// headless is what the Service of a namespace was seen to be.
	headlessServices modelmesh.SyncMap[string, bool]
	// manager is the Deployment of the manager, where only its own namespace is served.
	operatorDeployment atomic.Pointer[appsv1.Deployment]
}

// tlsContent is what a TLS Secret is used for.
type tlsContent struct {
	pair  *meshclient.KeyPair
	hasCA bool
	err   error
}

// storageContent are the claims that the entries of a storage Secret name, and what could not be read of it.
type storageContent struct {
	claims  []string
	notices []string
	// keys of the entries.
	keys map[string]bool
}

// newServer fills in what is made of the rest.
func newReconciler(s *runtimeReconciler) *runtimeReconciler {
	s.etcd = modelmesh.NewSecretCache(s.Cached, s.live, func(secret *corev1.Secret) map[string][]byte { return secret.Data })
	s.namespaceEtcd = modelmesh.NewSecretCache(s.Cached, s.live, foreignSecretData)
	s.storage = modelmesh.NewSecretCache(s.Cached, s.live, readStorage)
	s.tls = modelmesh.NewSecretCache(s.Cached, s.live, readTLS)
	s.reporter = &reporter{recorder: s.recorder}
	return s
}

func readTLS(secret *corev1.Secret) tlsContent {
	pair, err := meshclient.KeyPairOf(secret.Name, secret.Data)
	return tlsContent{pair: pair, hasCA: len(secret.Data["ca.crt"]) > 0, err: err}
}

// foreignData is the content of a Secret that another client made, nil of the copies that the original made.
func foreignSecretData(secret *corev1.Secret) map[string][]byte {
	switch {
	case isLegacy(secret):
		return nil
	case secret.Data == nil:
		return map[string][]byte{}
	}
	return secret.Data
}

func readStorage(secret *corev1.Secret) storageContent {
	claims, notices := meshsettings.StorageClaims(secret.Data)
	keys := make(map[string]bool, len(secret.Data))
	for key := range secret.Data {
		keys[key] = true
	}
	return storageContent{claims: claims, notices: notices, keys: keys}
}

// Reconcile implements reconcile.Reconciler.
func (r *runtimeReconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	on, err := r.Namespaces.Enabled(ctx, request.Name)
	if err != nil {
		return ctrl.Result{}, err
	}
	if !on {
		return ctrl.Result{}, r.deleteAll(ctx, request.Name)
	}
	f, err := r.collectState(ctx, request.Name)
	if err != nil {
		return ctrl.Result{}, err
	}
	if r.isUnused(f) {
		return ctrl.Result{}, r.deleteAll(ctx, request.Name)
	}
	if err := r.updateMissingReferences(ctx, f); err != nil {
		return ctrl.Result{}, err
	}
	again, err := r.reconcileNamespace(ctx, f)
	return toResult(again, err)
}

// unused tells that ModelMesh is not used in the manager's own namespace, which is served without a label: there is neither a
// runtime nor a model. The manager has other components, whose users want no Service there.
func (r *runtimeReconciler) isUnused(f *namespaceState) bool {
	return f.Namespace == f.OperatorNamespace && !f.SingleNamespace && len(f.runtimes) == 0 && len(f.models) == 0
}

// conclude tells errors that a user must fix, which are checked now and then, from errors that are retried soon.
func toResult(again time.Duration, err error) (ctrl.Result, error) {
	switch {
	case err == nil, apply.IsTerminating(err):
		return ctrl.Result{RequeueAfter: again}, nil
	case apply.OnlyErrors(err, needsUserAction):
		return ctrl.Result{RequeueAfter: modelmesh.MinNonZero(again, foreignObjectRequeue)}, nil
	}
	return ctrl.Result{}, err
}

// isLasting says that trying again soon does not mend an error: a name that others have taken, or an object that the API server will not
// have as it is.
func needsUserAction(err error) bool {
	switch e := any(err).(type) {
	case *apply.ForeignError, *apply.DeletingError:
		return apply.Blocked(err)
	case *apierrors.StatusError:
		return apierrors.IsInvalid(e)
	default:
		return false
	}
}

// serve reconciles a namespace. Errors are collected, not returned early: what fails in one place holds up no other.
func (r *runtimeReconciler) reconcileNamespace(ctx context.Context, f *namespaceState) (again time.Duration, err error) {
	var guards apply.Desired
	if f.needsDeployments() {
		if guards, err = f.buildGuards(f.namespaceInputs(f.tls)); err != nil {
			return 0, err
		}
	}
	f.errPrerequisites = errors.Join(r.applier.Apply(ctx, f.owner, guards), r.reconcileSharedConfig(ctx, f))
	frontErr := r.reconcileService(ctx, f)
	r.reportToAllRuntimes(f, actionApplyService, userMessage(frontErr)) // nothing else would tell
	errs := []error{frontErr, f.errPrerequisites}
	if f.Settings.EtcdUserPerNamespace {
		again = grantInterval
	}
	kept, alive, causes := map[string]bool{}, map[types.UID]bool{}, map[string]modelmesh.Cause{}
	for _, name := range sortedNames(f.runtimes) {
		t := f.runtimes[name]
		alive[t.Object.GetUID()] = true
		deployment := resources.DeploymentName(f.Settings.ServiceName, name)
		if r.reporter.reportPaused(f.Namespace, t.Object) {
			kept[deployment] = true
			continue
		}
		if !t.NeedsDeployment() {
			r.idleRuntimes.Delete(namespacedName(f.Namespace, name))
			continue
		}
		kept[deployment] = true
		rest, err := r.reconcileRuntime(ctx, f, name, t)
		r.reporter.warn(f.Namespace, t.Object, actionApplyGuards, ReasonRefused, userMessage(f.blockedError(deployment)))
		r.reporter.warn(f.Namespace, t.Object, actionApply, ReasonRefused, userMessage(err))
		var unknown error
		causes[name], unknown = r.findCause(ctx, f, t, deployment)
		errs = append(errs, err, unknown)
		again = modelmesh.MinNonZero(again, rest)
	}
	r.Causes.Set(f.Namespace, causes)
	r.reporter.forgetDeleted(f.Namespace, alive)
	left, err := r.pruneDeployments(ctx, f.Namespace, kept)
	errs = append(errs, err)
	if len(kept) > 0 || !left {
		errs = append(errs, r.pruneGuards(ctx, f.Namespace, guards))
	}
	return again, errors.Join(errs...)
}

// forUsers is the text of an error that a user must fix; "" for all other errors, which are retried and logged. What is
// forbidden, by a quota or for want of a right, is both.
func userMessage(err error) string {
	if apply.OnlyErrors(err, func(err error) bool {
		status, is := any(err).(*apierrors.StatusError)
		return needsUserAction(err) || is && apierrors.IsForbidden(status)
	}) {
		return err.Error()
	}
	return ""
}

// inside is a name in a namespace.
func namespacedName(namespace, name string) types.NamespacedName {
	return types.NamespacedName{Namespace: namespace, Name: name}
}

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
const foreignRetry = 2 * time.Minute

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
type server struct {
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
	etcd    *modelmesh.Contents[map[string][]byte]
	copies  *modelmesh.Contents[map[string][]byte]
	storage *modelmesh.Contents[storageContent]
	tls     *modelmesh.Contents[tlsContent]

	reports *reporter
	// idle says since when no model needs a runtime; zero while one does.
	idle modelmesh.Store[types.NamespacedName, time.Time]
	// granted says when an account of a namespace was last seen to be as it should be.
	granted modelmesh.Store[string, grant]
	// headless is what the Service of a namespace was seen to be.
	headless modelmesh.Store[string, bool]
	// manager is the Deployment of the manager, where only its own namespace is served.
	manager atomic.Pointer[appsv1.Deployment]
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
func newServer(s *server) *server {
	s.etcd = modelmesh.NewContents(s.Cached, s.live, func(secret *corev1.Secret) map[string][]byte { return secret.Data })
	s.copies = modelmesh.NewContents(s.Cached, s.live, foreignData)
	s.storage = modelmesh.NewContents(s.Cached, s.live, readStorage)
	s.tls = modelmesh.NewContents(s.Cached, s.live, readTLS)
	s.reports = &reporter{recorder: s.recorder}
	return s
}

func readTLS(secret *corev1.Secret) tlsContent {
	pair, err := meshclient.ParseKeyPair(secret.Name, secret.Data)
	return tlsContent{pair: pair, hasCA: len(secret.Data["ca.crt"]) > 0, err: err}
}

// foreignData is the content of a Secret that another client made, nil of the copies that the original made.
func foreignData(secret *corev1.Secret) map[string][]byte {
	switch {
	case originals(secret):
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
func (s *server) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	on, err := s.Namespaces.Enabled(ctx, request.Name)
	if err != nil {
		return ctrl.Result{}, err
	}
	if !on {
		return ctrl.Result{}, s.cleanUp(ctx, request.Name)
	}
	f, err := s.gather(ctx, request.Name)
	if err != nil {
		return ctrl.Result{}, err
	}
	if s.unused(f) {
		return ctrl.Result{}, s.cleanUp(ctx, request.Name)
	}
	if err := s.noteReferences(ctx, f); err != nil {
		return ctrl.Result{}, err
	}
	again, err := s.serve(ctx, f)
	return conclude(again, err)
}

// unused tells that ModelMesh is not used in the manager's own namespace, which is served without a label: there is neither a
// runtime nor a model. The manager has other components, whose users want no Service there.
func (s *server) unused(f *facts) bool {
	return f.Namespace == f.Home && !f.OnlyOwn && len(f.runtimes) == 0 && len(f.models) == 0
}

// conclude tells errors that a user must fix, which are checked now and then, from errors that are retried soon.
func conclude(again time.Duration, err error) (ctrl.Result, error) {
	switch {
	case err == nil, apply.IsTerminating(err):
		return ctrl.Result{RequeueAfter: again}, nil
	case apply.OnlyErrors(err, isLasting):
		return ctrl.Result{RequeueAfter: modelmesh.Sooner(again, foreignRetry)}, nil
	}
	return ctrl.Result{}, err
}

// isLasting says that trying again soon does not mend an error: a name that others have taken, or an object that the API server will not
// have as it is.
func isLasting(err error) bool {
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
func (s *server) serve(ctx context.Context, f *facts) (again time.Duration, err error) {
	var guards apply.Desired
	if f.wanted() {
		if guards, err = f.guards(f.inputs(f.tls)); err != nil {
			return 0, err
		}
	}
	f.held = errors.Join(s.applier.Apply(ctx, f.owner, guards), s.common(ctx, f))
	frontErr := s.front(ctx, f)
	s.refuseAll(f, aboutFront, forUsers(frontErr)) // nothing else would tell
	errs := []error{frontErr, f.held}
	if f.Settings.EtcdUserPerNamespace {
		again = grantEvery
	}
	kept, alive, causes := map[string]bool{}, map[types.UID]bool{}, map[string]modelmesh.Cause{}
	for _, name := range sortedNames(f.runtimes) {
		t := f.runtimes[name]
		alive[t.Object.GetUID()] = true
		deployment := resources.DeploymentName(f.Settings.ServiceName, name)
		if s.reports.paused(f.Namespace, t.Object) {
			kept[deployment] = true
			continue
		}
		if !t.Wanted() {
			s.idle.Delete(inside(f.Namespace, name))
			continue
		}
		kept[deployment] = true
		rest, err := s.runtime(ctx, f, name, t)
		s.reports.say(f.Namespace, t.Object, aboutGuards, ReasonRefused, forUsers(f.waits(deployment)))
		s.reports.say(f.Namespace, t.Object, aboutWriting, ReasonRefused, forUsers(err))
		var unknown error
		causes[name], unknown = s.cause(ctx, f, t, deployment)
		errs = append(errs, err, unknown)
		again = modelmesh.Sooner(again, rest)
	}
	s.Causes.Set(f.Namespace, causes)
	s.reports.keep(f.Namespace, alive)
	left, err := s.sweep(ctx, f.Namespace, kept)
	errs = append(errs, err)
	if len(kept) > 0 || !left {
		errs = append(errs, s.unguard(ctx, f.Namespace, guards))
	}
	return again, errors.Join(errs...)
}

// forUsers is the text of an error that a user must fix; "" for all other errors, which are retried and logged. What is
// forbidden, by a quota or for want of a right, is both.
func forUsers(err error) string {
	if apply.OnlyErrors(err, func(err error) bool {
		status, is := any(err).(*apierrors.StatusError)
		return isLasting(err) || is && apierrors.IsForbidden(status)
	}) {
		return err.Error()
	}
	return ""
}

// inside is a name in a namespace.
func inside(namespace, name string) types.NamespacedName {
	return types.NamespacedName{Namespace: namespace, Name: name}
}

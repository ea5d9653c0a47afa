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
	strangerRetry = time.Minute
	// lookAgain is the pause where what is missing comes without an event, such as an API that goes.
	lookAgain = time.Second
	// eventAction is what controllers do when they tell something.
	eventAction = "Reconcile"
	// ReasonNotApplied is the reason of the events about what could not be made.
	ReasonNotApplied = "CompanionNotApplied"
	// ReasonNoRoute is the reason of the events about models that cannot be published as their runtime demands.
	ReasonNoRoute = "RouteNotPublished"
)

// common is what both controllers need.
type common struct {
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
type namespaces struct {
	common
	// connections holds the metadata of data connections.
	connections client.Reader
	monitoring  string
	clock       clock.PassiveClock
	memory      modelmesh.SyncMap[string, *remembered]
}

// Reconcile implements reconcile.Reconciler. Requests name a namespace.
func (r *namespaces) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	enabled, err := r.enabled(ctx, request.Name)
	if err != nil {
		return ctrl.Result{}, err
	}
	if !enabled {
		r.memory.Delete(request.Name)
		return ctrl.Result{}, r.clear(ctx, "", request.Name, nil)
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

// reconcile brings the objects around a served namespace to what they should be.
func (r *namespaces) reconcile(ctx context.Context, namespace *metav1.PartialObjectMetadata, s meshsettings.Settings) (time.Duration, error) {
	in, err := r.inputs(ctx, namespace.Name, s)
	if err != nil {
		return 0, err
	}
	known, found := r.memory.Get(namespace.Name)
	if !found {
		known = &remembered{}
		r.memory.Set(namespace.Name, known)
	}
	kept, err := r.secrets(ctx, &in, known)
	if err != nil {
		return 0, err
	}
	desired := objects(in)
	retry, err := r.write(ctx, namespace, desired, known)
	if err != nil {
		return 0, err
	}
	for _, object := range desired {
		kind, name, err := object.Key()
		if err != nil {
			return 0, err
		}
		kept = append(kept, place{kind, name})
	}
	return modelmesh.MinNonZero(retry, r.untilRenewal(known)), r.clear(ctx, namespace.UID, namespace.Name, kept)
}

// inputs gathers what does not have to be read from Secrets.
func (r *namespaces) inputs(ctx context.Context, namespace string, s meshsettings.Settings) (Inputs, error) {
	served := r.Served()
	in := Inputs{
		Namespace: namespace, Settings: s, Monitoring: r.monitoring,
		Account: authproxy.ServiceAccountName(s, served), Proxy: authproxy.Decide(s, namespace, served),
	}
	var err error
	in.Used, in.Runtimes, err = r.usage(ctx, namespace)
	return in, err
}

// secrets fills in what is kept in Secrets, and returns the places of those that are good as they are.
func (r *namespaces) secrets(ctx context.Context, in *Inputs, known *remembered) ([]place, error) {
	if !in.Used {
		return nil, nil
	}
	kept, err := r.gatherStorage(ctx, in, known)
	if err != nil || in.Proxy == nil {
		return kept, err
	}
	if in.Proxy.NeedsCookieSecret() {
		key := client.ObjectKey{Namespace: in.Namespace, Name: authproxy.CookieSecret}
		if known.cookie, err = oauthproxy.EnsureCookie(ctx, r.cached, r.live, key, known.cookie); err != nil {
			return nil, err
		}
		in.Cookie = known.cookie
	}
	more, err := r.certify(ctx, in, known)
	return append(kept, more...), err
}

// write makes what is wanted, and records an Event about what could not be made.
func (r *namespaces) write(ctx context.Context, namespace client.Object, desired apply.Desired, known *remembered) (time.Duration, error) {
	problem, retry, err := r.apply(ctx, namespace, desired)
	if err != nil {
		problem = err.Error()
	}
	if problem != "" {
		known.gathered, known.certificate = "", "" // Secrets are read again
	}
	if news(&known.notApplied, problem) {
		r.warn(namespace, problem)
	}
	return retry, err
}

// apply writes what is wanted. The problem is why that was not possible, unless trying again soon may help.
func (a *common) apply(ctx context.Context, owner client.Object, desired apply.Desired) (problem string, retry time.Duration, err error) {
	err = a.applier.Apply(ctx, owner, desired)
	switch {
	case err == nil, ending(err):
		return "", 0, nil
	case apply.IsTerminating(err):
		return "", lookAgain, nil
	case apply.IsBlocked(err):
		return err.Error(), strangerRetry, nil
	}
	return "", 0, err
}

func (r *namespaces) warn(about runtime.Object, text string) {
	r.recorder.Eventf(about, nil, corev1.EventTypeWarning, ReasonNotApplied, eventAction, "%s", conditions.Clip(text, modelmesh.MaxEventNoteBytes))
}

// clear removes what was made for a namespace and is not among the places that are kept.
func (r *namespaces) clear(ctx context.Context, uid types.UID, namespace string, kept []place) error {
	keep := map[place]bool{}
	for _, p := range kept {
		keep[p] = true
	}
	storages, err := r.storages(ctx, namespace)
	if err != nil {
		return err
	}
	var errs []error
	for _, p := range append(places(namespace, r.Served()), storages...) {
		if !keep[p] {
			keep[p] = true // once is enough
			errs = append(errs, r.remove(ctx, uid, p))
		}
	}
	return errors.Join(errs...)
}

// storages are the Secrets of storage entries, also under a name that the settings had before.
func (r *namespaces) storages(ctx context.Context, namespace string) ([]place, error) {
	labels := names.Labels(modelmesh.ComponentName)
	labels[LabelManaged] = yes
	heads, err := modelmesh.ListMetadata(ctx, r.cached, secretKind, client.InNamespace(namespace), client.MatchingLabels(labels))
	var out []place
	for i := range heads {
		out = append(out, place{secretKind, client.ObjectKeyFromObject(&heads[i])})
	}
	return out, err
}

// remove removes one object if we made it. The uid is that of the namespace, or empty.
func (r *namespaces) remove(ctx context.Context, uid types.UID, p place) error {
	head, err := r.headOf(ctx, p)
	if err != nil || head == nil || !ours(head) {
		return err
	}
	return r.applier.DeleteOwned(ctx, uid, head)
}

// headOf reads the metadata of an object from the cache; nil when there is none.
func (a *common) headOf(ctx context.Context, p place) (*metav1.PartialObjectMetadata, error) {
	return capability.GetMetadata(ctx, a.cached, p.GroupVersionKind, p.NamespacedName)
}

// ending tells whether an error consists of nothing but what a namespace on its way out refuses.
func ending(err error) bool {
	return apply.AllErrorsMatch(err, func(err error) bool { return apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) })
}

// remembered is what is remembered of one namespace. No credential is among it but the key of cookies.
type remembered struct {
	// cookie is the key of the sidecar's cookies.
	cookie []byte
	// gathered are the versions of what the storage entries were made of, and of the Secret that held them then.
	gathered string
	// certificate is the version of the Secret with a certificate that was found good until renewal, trust its CA.
	certificate string
	trust       certs.Trust
	renewal     time.Time
	// notApplied and notStored are the texts of the last Events about what could not be written, and about storage entries.
	notApplied, notStored string
}

// news replaces the text of the last Event about something, and reports whether the new one differs. An empty text ends the matter.
func news(last *string, text string) bool {
	before := *last
	*last = text
	return text != "" && text != before
}

// usage tells whether a namespace is used, and whether it has runtimes. What pods need stays as long as there are pods, also when the last
// model is gone: without its account a new pod would be refused.
func (a *common) usage(ctx context.Context, namespace string) (used, runtimes bool, err error) {
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

package servers

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/odh-platform/odh-platform-operator/pkg/admission"
	"github.com/odh-platform/odh-platform-operator/pkg/aihub"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/clusterdomain"
	"github.com/odh-platform/odh-platform-operator/pkg/config"
	"github.com/odh-platform/odh-platform-operator/pkg/reconciler"
	"github.com/odh-platform/odh-platform-operator/pkg/reference"
	"github.com/odh-platform/odh-platform-operator/pkg/routestatus"
	"github.com/odh-platform/odh-platform-operator/pkg/servingcert"
	"github.com/odh-platform/odh-platform-operator/pkg/status/conditions"
	"github.com/odh-platform/odh-platform-operator/pkg/status/serving"
)

// Settings is the configuration of the controllers of registries and the catalog.
type Settings struct {
	config.ModelRegistry
	// AdmissionRules are the rules for references in specs.
	AdmissionRules admission.Rules
}

// Deps are the dependencies of the controllers of registries and the catalog.
type Deps struct {
	Settings Settings
	Served   *capability.Watcher
	Domain   *clusterdomain.Watcher
	Dynamic  dynamic.Interface
	// Hub watches the AIHub; nil if component platform is disabled.
	Hub *aihub.Watcher
	// Applier returns an Applier that reads through the given client.
	Applier func(client.Client) *apply.Applier
	Clock   clock.Clock
}

// Reconciler holds the dependencies and the state that the reconcilers of all servers share.
type Reconciler struct {
	// Cached reads from caches and writes to the API server. FullObjects reads kinds of which Cached holds only metadata.
	Cached                 client.Client
	FullObjects, APIReader client.Reader
	Applier                *apply.Applier
	Clock                  clock.PassiveClock
	References             *reference.Tracker
	Certificates           *servingcert.Issuer

	// routes holds the status of the routes of each owner, as reported by Gateway and routers.
	routes reconciler.UIDMap[routestatus.Report]
}

// NewReconciler returns a Reconciler.
func NewReconciler(cached client.Client, fullObjects, apiReader client.Reader, applier *apply.Applier, clk clock.PassiveClock) *Reconciler {
	return &Reconciler{
		Cached: cached, FullObjects: fullObjects, APIReader: apiReader, Applier: applier, Clock: clk, References: reference.NewTracker(cached, apiReader),
		Certificates: &servingcert.Issuer{Cached: cached, Live: apiReader, Applier: applier, Clock: clk},
	}
}

// Forget removes the state of a deleted owner.
func (r *Reconciler) Forget(owner types.UID) {
	r.Applier.Forget(owner)
	r.Certificates.Forget(owner)
	r.routes.Delete(owner)
}

// Enqueue returns a handler that enqueues the owners for which matches returns true. list is an empty list of their kind. With
// sameNamespace, the owners must be in the namespace of the object.
func Enqueue[T client.Object](cached client.Reader, list client.ObjectList, sameNamespace bool, matches func(owner T, object client.Object) bool) handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, object client.Object) (requests []reconcile.Request) {
		owners, _ := list.DeepCopyObject().(client.ObjectList)
		namespace := ""
		if sameNamespace {
			namespace = object.GetNamespace()
		}
		err := cached.List(ctx, owners, client.InNamespace(namespace), client.UnsafeDisableDeepCopy)
		if err == nil {
			err = meta.EachListItem(owners, func(item runtime.Object) error {
				if owner, ok := item.(T); ok && matches(owner, object) {
					requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(owner)})
				}
				return nil
			})
		}
		if err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "Failed to list the custom resources to enqueue")
		}
		return requests
	})
}

// ReadRoutes reads the status of the routes among objects, and sets the condition of the owner.
func (r *Reconciler) ReadRoutes(ctx context.Context, owner reconciler.Object, in *Publishing, objects apply.Desired) (err error) {
	if in.RouteReport, err = routestatus.Read(ctx, r.FullObjects, in.gateway(), objects, r.Clock.Now()); err != nil {
		return err
	}
	in.RouteReport.Set(owner.ConditionsRef(), owner.GetGeneration())
	r.routes.Set(owner.GetUID(), in.RouteReport)
	return nil
}

// AwaitDeadlines returns the joined Waits until a certificate must be renewed and until the routes must be read again, or nil. It belongs
// in the last phase.
func (r *Reconciler) AwaitDeadlines(owner types.UID) error {
	report, _ := r.routes.Get(owner)
	return errors.Join(r.Certificates.AwaitRenewal(owner), report.Wait())
}

// Find reads an object from the cache, or from the API server if the cache does not contain it, such as one without the
// operator label. It reports whether the object exists.
func (r *Reconciler) Find(ctx context.Context, key client.ObjectKey, object client.Object) (bool, error) {
	return find(ctx, key, object, r.Cached, r.APIReader)
}

// find reads an object from the first reader that has it.
func find(ctx context.Context, key client.ObjectKey, object client.Object, readers ...client.Reader) (found bool, err error) {
	for _, reader := range readers {
		if err = reader.Get(ctx, key, object); !apierrors.IsNotFound(err) {
			break
		}
	}
	if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
		return false, nil
	}
	return err == nil, err
}

// Deployment returns a Deployment, or an empty one if it does not exist.
func (r *Reconciler) Deployment(ctx context.Context, namespace, name string) (*appsv1.Deployment, error) {
	return DeploymentFrom(ctx, namespace, name, r.Cached, r.APIReader)
}

// DeploymentOf returns a Deployment of an owner, or an empty one. If the cache does not contain the Deployment, DeploymentOf reads from the
// API server, because removing the operator label must not restart the pods. An owner without conditions is new and has no such Deployment.
func (r *Reconciler) DeploymentOf(ctx context.Context, owner reconciler.Object, namespace, name string) (*appsv1.Deployment, error) {
	if len(*owner.ConditionsRef()) == 0 {
		return DeploymentFrom(ctx, namespace, name, r.Cached)
	}
	return r.Deployment(ctx, namespace, name)
}

// DeploymentFrom returns a Deployment from the first reader that has it, or an empty one.
func DeploymentFrom(ctx context.Context, namespace, name string, readers ...client.Reader) (*appsv1.Deployment, error) {
	d := &appsv1.Deployment{}
	if _, err := find(ctx, client.ObjectKey{Namespace: namespace, Name: name}, d, readers...); err != nil {
		return d, fmt.Errorf("reading Deployment %s: %w", name, err)
	}
	return d, nil
}

// ListPods lists up to 20 pods of a server from the API server.
func (r *Reconciler) ListPods(ctx context.Context, namespace string, labels map[string]string) ([]corev1.Pod, error) {
	pods := &corev1.PodList{}
	if err := r.APIReader.List(ctx, pods, client.InNamespace(namespace), client.MatchingLabels(labels), client.Limit(20)); err != nil {
		return nil, fmt.Errorf("listing the pods of the server: %w", err)
	}
	return pods.Items, nil
}

// References lists the Secrets and ConfigMaps that the pods of a server use.
type References struct {
	// Rollouts has the objects that pods read only when they start, by the name of the Deployment. A change of an object restarts the pods.
	Rollouts map[string][]reference.Reference
	// Hashes has the hashes of objects of Rollouts that this reconcile writes, by ID.
	Hashes map[string]string
	// Required has other objects, or keys, without which pods do not start.
	Required []reference.Reference
	// Mounted has the objects of [PodReferences], of which no key is required. Exists reports whether an
	// object exists; nil reads the cache.
	Mounted []reference.Reference
	Exists  func(reference.Reference) (bool, error)
	// IsManaged reports whether the platform or the operator, rather than the user, creates a missing object.
	IsManaged func(reference.Missing) bool
	// Inspect, if set, is called for each Deployment of Rollouts, with an empty Deployment if it does not exist.
	Inspect func(*appsv1.Deployment) error
}

// ResolveReferences returns the RolloutHash of each Deployment, by its name, and the missing objects. It sets
// [reference.Condition] for missing objects that users must create.
func (r *Reconciler) ResolveReferences(ctx context.Context, owner reconciler.Object, namespace string, refs References) (
	rollouts map[string]reference.RolloutHash, missing []reference.Missing, err error,
) {
	all := slices.Concat(append(slices.Collect(maps.Values(refs.Rollouts)), refs.Required)...)
	all = slices.DeleteFunc(all, func(ref reference.Reference) bool { return refs.Hashes[ref.ID()] != "" })
	resolved, err := r.References.Resolve(ctx, namespace, all)
	if err != nil {
		return nil, nil, err
	}
	if missing, err = r.References.FindMissing(ctx, namespace, refs.Mounted, refs.Exists); err != nil {
		return nil, nil, err
	}
	missingOfUser := slices.DeleteFunc(slices.Clone(resolved.Missing), refs.IsManaged)
	reference.SetCondition(owner.ConditionsRef(), owner.GetGeneration(), namespace, append(missingOfUser, missing...))
	missing = append(resolved.Missing, missing...)
	maps.Copy(resolved.Hashes, refs.Hashes)
	rollouts = map[string]reference.RolloutHash{}
	for _, name := range slices.Sorted(maps.Keys(refs.Rollouts)) {
		deployment, err := r.DeploymentOf(ctx, owner, namespace, name)
		if err == nil && refs.Inspect != nil {
			err = refs.Inspect(deployment)
		}
		if err == nil {
			rollouts[name] = reference.NewRolloutHash(deployment, resolved.Hashes, refs.Rollouts[name])
		}
		if err != nil {
			return nil, missing, err
		}
	}
	return rollouts, missing, nil
}

// DatabaseCause returns a suffix for the status message of a server with the problem of its generated database, or "".
func (r *Reconciler) DatabaseCause(ctx context.Context, namespace, name string, pods []corev1.Pod, fields conditions.ResourceFields) (string, error) {
	d, err := r.Deployment(ctx, namespace, name)
	if err != nil {
		return "", err
	}
	if cause := fields.Cause(d, pods); cause != "" {
		return "; its database: " + cause, nil
	}
	return "", nil
}

// Evaluate returns the state of a server from its Deployment and the EndpointSlices of its Service. For an available server it returns a
// Wait until the Deployment controller has observed the current generation, which normally takes milliseconds: an annotation that another
// client sets changes the generation too.
func (r *Reconciler) Evaluate(ctx context.Context, d *appsv1.Deployment, service client.ObjectKey, wasAvailable bool) (serving.State, error) {
	if wasAvailable && d.Generation != d.Status.ObservedGeneration {
		return serving.State{}, &reconciler.Wait{For: "the Deployment controller", Retry: time.Second}
	}
	return serving.Evaluate(d, service.Name, r.Clock.Now(), wasAvailable, func() ([]discoveryv1.EndpointSlice, error) {
		return serving.Endpoints(ctx, r.Cached, r.APIReader, service.Namespace, service.Name)
	})
}

// ReportError calls report and returns the error of a write. For terminating objects, which are not a failure, it only returns a Wait.
func ReportError(err error, report func()) error {
	if err == nil {
		return nil
	}
	if apply.IsTerminating(err) {
		return &reconciler.Wait{For: "deletions to finish", Retry: reconciler.RequeueSoon}
	}
	report()
	return err
}

// RefersTo reports whether an owner reference is to an object of a kind in any version.
func RefersTo(ref metav1.OwnerReference, kind schema.GroupVersionKind) bool {
	group, err := schema.ParseGroupVersion(ref.APIVersion)
	return err == nil && group.Group == kind.Group && ref.Kind == kind.Kind
}

// DataOwnerReferences returns the owner references of an object with data of a user. It keeps references to other kinds. Unless retain is
// set, it also keeps the reference to the owner, or adds one if there is no other reference.
func DataOwnerReferences(object, owner metav1.Object, kind schema.GroupVersionKind, retain bool) []metav1.OwnerReference {
	references := slices.DeleteFunc(slices.Clone(object.GetOwnerReferences()), func(ref metav1.OwnerReference) bool {
		return RefersTo(ref, kind) && (retain || ref.UID != owner.GetUID())
	})
	if !retain && len(references) == 0 {
		references = append(references, *metav1.NewControllerRef(owner, kind))
	}
	return references
}

// Retry calls try until it succeeds or ctx ends, with exponential backoff. It calls failed with the error and the backoff after each
// failure.
func Retry(ctx context.Context, clk clock.Clock, minBackoff, maxBackoff time.Duration,
	try func(context.Context) error, failed func(error, time.Duration),
) {
	for backoff := minBackoff; ; backoff = min(2*backoff, maxBackoff) {
		err := try(ctx)
		if err == nil || ctx.Err() != nil {
			return
		}
		failed(err, backoff)
		select {
		case <-ctx.Done():
			return
		case <-clk.After(backoff):
		}
	}
}

package modelregistry

import (
	"context"
	"errors"
	"fmt"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	k8slabels "k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/odh-platform/odh-platform-operator/apis/modelregistry/v1beta1"
	"github.com/odh-platform/odh-platform-operator/controllers/modelregistry/resources"
	"github.com/odh-platform/odh-platform-operator/controllers/modelregistry/storage"
	"github.com/odh-platform/odh-platform-operator/pkg/admission"
	"github.com/odh-platform/odh-platform-operator/pkg/aihub"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/clusterdomain"
	"github.com/odh-platform/odh-platform-operator/pkg/component"
	"github.com/odh-platform/odh-platform-operator/pkg/config"
	"github.com/odh-platform/odh-platform-operator/pkg/reconciler"
	"github.com/odh-platform/odh-platform-operator/pkg/reference"
	"github.com/odh-platform/odh-platform-operator/pkg/registry"
	"github.com/odh-platform/odh-platform-operator/pkg/routestatus"
)

// ComponentName is the name of the component in flags, labels, metrics and folders.
const ComponentName = "modelregistry"

// FieldOwner is the field manager of server-side apply. Objects in clusters refer to it, so it must not change.
const FieldOwner = "model-registry-operator"

// LegacyManagers returns the field managers of the legacy operator, which updated whole objects.
func LegacyManagers() []string { return []string{"manager"} }

// LastApplied is the annotation in which the legacy operator stored a copy of each object, including passwords.
const LastApplied = "banzaicloud.com/last-applied"

// Permissions on cluster-scoped objects and on HTTPRoutes, which are in the namespace of the gateway. Optional kinds are always watched in all
// namespaces. Package beside holds the permissions in namespaces of registries.

// +kubebuilder:rbac:groups=modelregistry.opendatahub.io,resources=modelregistries,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=modelregistry.opendatahub.io,resources=modelregistries/status,verbs=patch
// +kubebuilder:rbac:groups=modelregistry.opendatahub.io,resources=modelregistries/finalizers,verbs=update
// +kubebuilder:rbac:groups=rbac.authorization.k8s.io,resources=clusterrolebindings,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=user.openshift.io,resources=groups,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=gateway.networking.k8s.io,resources=httproutes,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=gateway.networking.k8s.io,resources=referencegrants;backendtlspolicies,verbs=list;watch
// +kubebuilder:rbac:groups=route.openshift.io,resources=routes,verbs=list;watch

// Settings is the configuration of the controller.
type Settings struct {
	config.ModelRegistry
	// Authors holds the admission rules for references in specs.
	Authors admission.Rules
}

var cronJobKind = batchv1.SchemeGroupVersion.WithKind("CronJob")

// Caches returns the informers of the controller: children by their managed label, and only the metadata of Secrets and ConfigMaps, which
// may belong to users. An empty namespace selects all namespaces. Pods have a cache of their own, see newPodCache.
func Caches(namespace string) []component.CacheNeed {
	return append(registry.Caches(namespace),
		component.CacheNeed{Kind: registry.Claim, Namespace: namespace, FullObjects: true},
		component.CacheNeed{Kind: cronJobKind, Namespace: namespace, FullObjects: true},
		component.CacheNeed{Kind: registry.Secret, Namespace: namespace, IncludeForeign: true},
		component.CacheNeed{Kind: registry.ConfigMap, Namespace: namespace, IncludeForeign: true},
		component.CacheNeed{Kind: capability.UserGroup})
}

// Deps are the dependencies of the controller.
type Deps struct {
	Settings Settings
	Served   *capability.Watcher
	Domain   *clusterdomain.Watcher
	// Hub watches the AIHub; nil if component platform is disabled.
	Hub   *aihub.Watcher
	Clock clock.Clock
	// Applier has FieldOwner, LegacyManagers and LastApplied.
	Applier *apply.Applier
}

// Setup registers the controller of registries with a manager.
func Setup(mgr ctrl.Manager, d Deps) error {
	pods, err := newPodCache(mgr, d.Settings.Namespace)
	if err != nil {
		return err
	}
	logs, err := newLogReader(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return err
	}
	r := &registryReconciler{
		settings:    d.Settings,
		aihub:       d.Hub,
		served:      d.Served.Current,
		domain:      d.Domain,
		clock:       d.Clock,
		cached:      mgr.GetClient(),
		fullObjects: mgr.GetCache(),
		apiReader:   mgr.GetAPIReader(),
		pods:        pods,
		applier:     d.Applier,
		references:  reference.NewTracker(mgr.GetClient(), mgr.GetAPIReader()),
		recorder:    mgr.GetEventRecorder(ComponentName),
		readPodLog:  logs,
	}
	r.certificates = registry.NewCertificates(r.cached, r.apiReader, r.applier, r.clock)
	if err := r.watch(mgr, pods, d.Served, d.Domain); err != nil {
		return fmt.Errorf("building the controller of model registries: %w", err)
	}
	log := mgr.GetLogger().WithName(ComponentName)
	return errors.Join(
		mgr.Add(&legacyCleaner{apiReader: mgr.GetAPIReader(), applier: r.applier, clock: r.clock, log: log}),
		mgr.Add(&storage.Migration{
			Reader: mgr.GetAPIReader(), Client: mgr.GetClient(), Clock: r.clock, Log: log.WithName("storage"),
			Source: d.Settings.StorageMigration.Source, Target: d.Settings.StorageMigration.Target,
		}))
}

// watch builds the controller.
func (r *registryReconciler) watch(mgr ctrl.Manager, pods cache.Cache, served *capability.Watcher, domain *clusterdomain.Watcher) error {
	base := reconciler.New(reconciler.Options{Client: mgr.GetClient(), Recorder: r.recorder, Component: ComponentName}, r.logic())
	b := reconciler.NewController(mgr, ComponentName).
		For(&v1beta1.ModelRegistry{}, builder.WithPredicates(reconciler.Changed()))
	owned := handler.EnqueueRequestForOwner(mgr.GetScheme(), mgr.GetRESTMapper(), &v1beta1.ModelRegistry{}, handler.OnlyControllerOwner())
	for _, kind := range []schema.GroupVersionKind{capability.Route, capability.ReferenceGrant, capability.BackendTLSPolicy} {
		b.WatchesRawSource(served.Kind(mgr.GetCache(), kind, nil, owned))
	}
	for _, kind := range []schema.GroupVersionKind{capability.HTTPRoute, capability.UserGroup} {
		b.WatchesRawSource(served.Kind(mgr.GetCache(), kind, nil, enqueueByLabels()))
	}
	routestatus.Watch(b, served, mgr.GetCache(), []schema.GroupVersionKind{capability.Route, capability.BackendTLSPolicy}, owned)
	routestatus.Watch(b, served, mgr.GetCache(), []schema.GroupVersionKind{capability.HTTPRoute}, enqueueByLabels())
	return registry.OwnServerChildren(b).
		Owns(&batchv1.CronJob{}).
		Owns(&corev1.ConfigMap{}, builder.OnlyMetadata).
		Watches(&discoveryv1.EndpointSlice{}, enqueueByServiceName()).
		Watches(&corev1.PersistentVolumeClaim{}, r.enqueueConsumers(usesClaim)).
		WatchesMetadata(&corev1.Secret{}, r.enqueueConsumers(usesSecret)).
		WatchesMetadata(&corev1.ConfigMap{}, r.enqueueConsumers(usesConfigMap)).
		WatchesMetadata(&rbacv1.ClusterRoleBinding{}, enqueueByLabels()).
		WatchesRawSource(source.Kind(pods, client.Object(&corev1.Pod{}), enqueueByAppLabel())).
		WatchesRawSource(served.EventSource(&v1beta1.ModelRegistry{}, r.enqueueAll())). // an optional API was installed or removed
		WatchesRawSource(domain.EventSource(&v1beta1.ModelRegistry{}, r.enqueueAll())).
		WatchesRawSource(r.aihub.Changes(&v1beta1.ModelRegistry{}, r.enqueueAll())).
		Complete(base)
}

// newPodCache returns a cache of the pods of registries and their databases, trimmed by trimPod.
func newPodCache(mgr ctrl.Manager, namespace string) (cache.Cache, error) {
	options := cache.ByObject{Label: k8slabels.SelectorFromSet(k8slabels.Set{resources.LabelComponent: resources.PartOf})}
	if namespace != "" {
		options.Namespaces = map[string]cache.Config{namespace: {}}
	}
	return component.NewSelectorCache(mgr, &corev1.Pod{}, options, trimPod)
}

// trimPod keeps only labels, container names and status of a pod.
func trimPod(in any) (any, error) {
	pod, ok := in.(*corev1.Pod)
	if !ok {
		return in, nil // the object of a tombstone is already trimmed
	}
	pod.ManagedFields, pod.Annotations, pod.OwnerReferences = nil, nil, nil
	containers := make([]corev1.Container, len(pod.Spec.Containers))
	for i, c := range pod.Spec.Containers {
		containers[i].Name = c.Name
	}
	pod.Spec = corev1.PodSpec{Containers: containers}
	return pod, nil
}

// registryRequest returns a request for a registry, or none if namespace or name is empty.
func registryRequest(namespace, name string) []reconcile.Request {
	if namespace == "" || name == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}}}
}

// enqueueByLabels maps objects without an owner reference to their registry.
func enqueueByLabels() handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(_ context.Context, o client.Object) []reconcile.Request {
		if !apply.HasComponentLabels(o, ComponentName) {
			return nil
		}
		return registryRequest(o.GetLabels()[resources.LabelNamespace], o.GetLabels()[resources.LabelApp])
	})
}

// enqueueByAppLabel maps pods to their registry.
func enqueueByAppLabel() handler.TypedEventHandler[client.Object, reconcile.Request] {
	return handler.EnqueueRequestsFromMapFunc(func(_ context.Context, o client.Object) []reconcile.Request {
		return registryRequest(o.GetNamespace(), o.GetLabels()[resources.LabelApp])
	})
}

// enqueueByServiceName maps EndpointSlices to the registry of their Service.
func enqueueByServiceName() handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(_ context.Context, o client.Object) []reconcile.Request {
		if !apply.HasComponentLabels(o, ComponentName) {
			return nil
		}
		return registryRequest(o.GetNamespace(), o.GetLabels()[discoveryv1.LabelServiceName])
	})
}

// enqueueConsumers maps an object to the registries in its namespace that use it.
func (r *registryReconciler) enqueueConsumers(isUsed func(*v1beta1.ModelRegistry, string) bool) handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, o client.Object) []reconcile.Request {
		return r.requestsForMatching(ctx, o.GetNamespace(), func(m *v1beta1.ModelRegistry) bool { return isUsed(m, o.GetName()) })
	})
}

// enqueueAll maps any event to all registries.
func (r *registryReconciler) enqueueAll() handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, _ client.Object) []reconcile.Request {
		return r.requestsForMatching(ctx, "", func(*v1beta1.ModelRegistry) bool { return true })
	})
}

// requestsForMatching returns requests for the matching registries of a namespace, "" for all.
func (r *registryReconciler) requestsForMatching(ctx context.Context, namespace string, matches func(*v1beta1.ModelRegistry) bool) []reconcile.Request {
	list := &v1beta1.ModelRegistryList{}
	if err := r.cached.List(ctx, list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Listing model registries")
		return nil
	}
	var requests []reconcile.Request
	for i := range list.Items {
		if m := &list.Items[i]; matches(m) {
			requests = append(requests, registryRequest(m.Namespace, m.Name)...)
		}
	}
	return requests
}

func usesClaim(m *v1beta1.ModelRegistry, name string) bool {
	return generatesDatabase(m) && (name == resources.ClaimName(m) || name == resources.BackupClaimName(m))
}

func usesSecret(m *v1beta1.ModelRegistry, name string) bool {
	return name == resources.ServingSecretName(m) || generatesDatabase(m) && isDatabaseSecret(m, name) || hasReference(m, reference.Secret, name)
}

func usesConfigMap(m *v1beta1.ModelRegistry, name string) bool {
	return hasReference(m, reference.ConfigMap, name)
}

// hasReference reports whether the stored spec refers to an object that pods consume.
func hasReference(m *v1beta1.ModelRegistry, kind reference.Kind, name string) bool {
	all := slices.Concat(serverReferences(m), certificateReferences(m), reference.OfPods(&m.Spec.Pods))
	return slices.ContainsFunc(all, func(ref reference.Reference) bool { return ref.Kind == kind && ref.Name == name })
}

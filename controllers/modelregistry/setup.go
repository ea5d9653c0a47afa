package modelregistry

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
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
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/caches"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/clusterdomain"
	"github.com/odh-platform/odh-platform-operator/pkg/managercache"
	"github.com/odh-platform/odh-platform-operator/pkg/reconciler"
	"github.com/odh-platform/odh-platform-operator/pkg/reference"
	"github.com/odh-platform/odh-platform-operator/pkg/routestatus"
	"github.com/odh-platform/odh-platform-operator/pkg/servers"
	"github.com/odh-platform/odh-platform-operator/pkg/status/serving"
	"github.com/odh-platform/odh-platform-operator/pkg/takeover"
)

// ComponentName is the name of the component in flags, labels, metrics and folders.
const ComponentName = resources.ComponentName

// FieldOwner is the field manager of server-side apply. Objects in clusters refer to it, so it must not change.
const FieldOwner = "model-registry-operator"

// Permissions on registries, on cluster-scoped objects and on HTTPRoutes, whose namespace is a setting. Optional kinds are always watched
// in all namespaces. Package namespaced holds the permissions in namespaces of registries.

// +kubebuilder:rbac:groups=modelregistry.opendatahub.io,resources=modelregistries,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=modelregistry.opendatahub.io,resources=modelregistries/status,verbs=patch
// +kubebuilder:rbac:groups=modelregistry.opendatahub.io,resources=modelregistries/finalizers,verbs=update
// +kubebuilder:rbac:groups=rbac.authorization.k8s.io,resources=clusterrolebindings,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=user.openshift.io,resources=groups,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=gateway.networking.k8s.io,resources=httproutes,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=gateway.networking.k8s.io,resources=referencegrants;backendtlspolicies,verbs=list;watch
// +kubebuilder:rbac:groups=route.openshift.io,resources=routes,verbs=list;watch

type (
	// Settings is the configuration of the controller.
	Settings = servers.Settings
	// Deps are the dependencies of the controller.
	Deps = servers.Deps
	// NewTakeOver is the type of New in controllers/modelregistry/takeover. platform returns the settings of the current reconcile.
	NewTakeOver = func(apiReader client.Reader, applier *apply.Applier, platform func(*v1beta1.ModelRegistry) servers.Platform) takeover.Interface[*v1beta1.ModelRegistry]
)

// Caches returns the caches of the controller: child objects with the operator label, and the metadata of all Secrets and ConfigMaps, which
// may belong to users. An empty namespace selects all namespaces. Pods have a separate cache, see newPodCache.
func Caches(namespace string) []managercache.Need {
	return servers.Caches(namespace,
		managercache.Need{Kind: servers.Claim, Namespace: namespace, FullObjects: true},
		managercache.Need{Kind: servers.CronJob, Namespace: namespace, FullObjects: true},
		managercache.Need{Kind: servers.Secret, Namespace: namespace, IncludeForeign: true},
		managercache.Need{Kind: servers.ConfigMap, Namespace: namespace, IncludeForeign: true},
		managercache.Need{Kind: capability.UserGroup})
}

// Setup adds the controller of registries, the deletion of orphaned objects and the storage migration to a manager. newTakeOver may be nil.
func Setup(mgr ctrl.Manager, d Deps, newTakeOver NewTakeOver) error {
	pods, err := newPodCache(mgr, d.Settings.Namespace)
	if err != nil {
		return err
	}
	logs, err := newLogReader(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return err
	}
	r := &registryReconciler{
		Reconciler: servers.NewReconciler(mgr.GetClient(), mgr.GetCache(), mgr.GetAPIReader(), d.Applier(mgr.GetClient()), d.Clock),
		settings:   d.Settings, aihub: d.Hub, served: d.Served.Current, domain: d.Domain, pods: pods,
		recorder: mgr.GetEventRecorder(ComponentName), readPodLog: logs, takeOver: takeover.None[*v1beta1.ModelRegistry]{},
	}
	if newTakeOver != nil {
		r.takeOver = newTakeOver(r.APIReader, r.Applier, func(m *v1beta1.ModelRegistry) servers.Platform { return r.stateOf(m).platform })
	}
	if err := r.watch(mgr, pods, d.Served, d.Domain); err != nil {
		return fmt.Errorf("building the controller of model registries: %w", err)
	}
	log := mgr.GetLogger().WithName(ComponentName)
	return errors.Join(
		mgr.Add(&orphanCleaner{apiReader: mgr.GetAPIReader(), applier: r.Applier, clock: d.Clock, log: log}),
		mgr.Add(&storage.Migration{
			Reader: mgr.GetAPIReader(), Client: mgr.GetClient(), Clock: d.Clock, Log: log.WithName("storage"),
			Source: d.Settings.StorageMigration.Source, Target: d.Settings.StorageMigration.Target,
		}))
}

func (r *registryReconciler) watch(mgr ctrl.Manager, pods cache.Cache, served *capability.Watcher, domain *clusterdomain.Watcher) error {
	base := reconciler.New(reconciler.Options{Client: mgr.GetClient(), Recorder: r.recorder, Component: ComponentName, SettleTime: serving.Cooldown + reconciler.SettleTime}, r.logic())
	b := reconciler.NewController(mgr, ComponentName).
		For(&v1beta1.ModelRegistry{}, builder.WithPredicates(reconciler.Changed()))
	owned := handler.EnqueueRequestForOwner(mgr.GetScheme(), mgr.GetRESTMapper(), &v1beta1.ModelRegistry{}, handler.OnlyControllerOwner())
	enqueueByApp := enqueueNamed(resources.LabelApp, true) // objects without an owner reference
	for _, kind := range []schema.GroupVersionKind{capability.Route, capability.ReferenceGrant, capability.BackendTLSPolicy} {
		b.WatchesRawSource(served.Kind(mgr.GetCache(), kind, nil, owned))
	}
	for _, kind := range []schema.GroupVersionKind{capability.HTTPRoute, capability.UserGroup} {
		b.WatchesRawSource(served.Kind(mgr.GetCache(), kind, nil, enqueueByApp))
	}
	routestatus.Watch(b, served, mgr.GetCache(), []schema.GroupVersionKind{capability.Route, capability.BackendTLSPolicy}, owned)
	routestatus.Watch(b, served, mgr.GetCache(), []schema.GroupVersionKind{capability.HTTPRoute}, enqueueByApp)
	return servers.OwnChildren(b, &corev1.ConfigMap{}, &rbacv1.Role{}, &rbacv1.RoleBinding{}).
		Owns(&batchv1.CronJob{}).
		Watches(&discoveryv1.EndpointSlice{}, enqueueNamed(discoveryv1.LabelServiceName, true)).
		Watches(&corev1.PersistentVolumeClaim{}, r.enqueueConsumers(usesClaim)).
		WatchesMetadata(&corev1.Secret{}, r.enqueueConsumers(usesSecret)).
		WatchesMetadata(&corev1.ConfigMap{}, r.enqueueConsumers(usesConfigMap)).
		WatchesMetadata(&rbacv1.ClusterRoleBinding{}, enqueueByApp).
		WatchesRawSource(source.Kind(pods, client.Object(&corev1.Pod{}), enqueueNamed(resources.LabelApp, false))).
		WatchesRawSource(served.EventSource(&v1beta1.ModelRegistry{}, r.enqueueAll())). // an optional API was installed or removed
		WatchesRawSource(domain.EventSource(&v1beta1.ModelRegistry{}, r.enqueueAll())).
		WatchesRawSource(r.aihub.EventSource(&v1beta1.ModelRegistry{}, r.enqueueAll())).
		Complete(base)
}

// newPodCache returns a cache of the pods of registries and their databases, trimmed by trimPod.
func newPodCache(mgr ctrl.Manager, namespace string) (cache.Cache, error) {
	return caches.New(mgr, resources.LabelComponent+"="+resources.PartOf,
		cache.Options{DefaultNamespaces: map[string]cache.Config{namespace: {}}, DefaultTransform: trimPod})
}

// trimPod removes managed fields, annotations, owner references and spec of a pod, except the names of its containers.
func trimPod(in any) (any, error) {
	pod, ok := in.(*corev1.Pod)
	if !ok {
		return in, nil // a tombstone, whose object is already trimmed
	}
	pod.ManagedFields, pod.Annotations, pod.OwnerReferences = nil, nil, nil
	containers := make([]corev1.Container, len(pod.Spec.Containers))
	for i, c := range pod.Spec.Containers {
		containers[i].Name = c.Name
	}
	pod.Spec = corev1.PodSpec{Containers: containers}
	return pod, nil
}

// enqueueNamed enqueues the registry that a label of an object names, in the namespace of LabelNamespace, or else of the object. If managed
// is true, it ignores objects without the labels of this component.
func enqueueNamed(label string, managed bool) handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(_ context.Context, o client.Object) []reconcile.Request {
		name := types.NamespacedName{Namespace: cmp.Or(o.GetLabels()[resources.LabelNamespace], o.GetNamespace()), Name: o.GetLabels()[label]}
		if name.Namespace == "" || name.Name == "" || managed && !apply.HasComponentLabels(o, ComponentName) {
			return nil
		}
		return []reconcile.Request{{NamespacedName: name}}
	})
}

// enqueueConsumers enqueues the registries that use an object of their namespace.
func (r *registryReconciler) enqueueConsumers(isUsed func(*v1beta1.ModelRegistry, string) bool) handler.EventHandler {
	return servers.Enqueue(r.Cached, &v1beta1.ModelRegistryList{}, true, func(m *v1beta1.ModelRegistry, o client.Object) bool { return isUsed(m, o.GetName()) })
}

// enqueueAll enqueues all registries for any event.
func (r *registryReconciler) enqueueAll() handler.EventHandler {
	return servers.Enqueue(r.Cached, &v1beta1.ModelRegistryList{}, false, func(*v1beta1.ModelRegistry, client.Object) bool { return true })
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
	all := slices.Concat(serverReferences(m), certificateReferences(m), servers.PodReferences(&m.Spec.Pods))
	return slices.ContainsFunc(all, func(ref reference.Reference) bool { return ref.Kind == kind && ref.Name == name })
}

package modelregistry

import (
	"context"
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/odh-platform/odh-platform-operator/apis/modelregistry/v1beta1"
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
	"github.com/odh-platform/odh-platform-operator/pkg/servingcert"
)

// ComponentName is the name of the component in flags, labels, metrics and folders.
const ComponentName = "modelregistry"

// FieldOwner is the manager of every field we set; it is stable, whatever the program is called.
const FieldOwner = "model-registry-operator"

// LegacyManagers are the names under which the original replaced whole objects.
func LegacyManagers() []string { return []string{"manager"} }

// LastApplied is the annotation in which the original kept a copy of each object, passwords included.
const LastApplied = "banzaicloud.com/last-applied"

// Rights on what has no namespace, and on HTTPRoutes, which live where the gateway looks for them. Optional kinds are always
// watched in all namespaces. The rights on what stands beside a registry are in package beside.

// +kubebuilder:rbac:groups=modelregistry.opendatahub.io,resources=modelregistries,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=modelregistry.opendatahub.io,resources=modelregistries/status,verbs=patch
// +kubebuilder:rbac:groups=modelregistry.opendatahub.io,resources=modelregistries/finalizers,verbs=update
// +kubebuilder:rbac:groups=rbac.authorization.k8s.io,resources=clusterrolebindings,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=user.openshift.io,resources=groups,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=gateway.networking.k8s.io,resources=httproutes,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=gateway.networking.k8s.io,resources=referencegrants;backendtlspolicies,verbs=list;watch
// +kubebuilder:rbac:groups=route.openshift.io,resources=routes,verbs=list;watch

// Settings are what the manager's configuration says about registries.
type Settings struct {
	config.ModelRegistry
	// Version of the program, for nothing but messages.
	Version string
	// Authors says what no author may let pods use.
	Authors admission.Rules
}

// effective returns the settings of the process with the decisions of the platform laid over them. They are taken once at the start
// of a reconcile, so that all objects of a registry follow the same ones.
func (r *registries) effective(m *v1beta1.ModelRegistry) Settings {
	if s, ok := r.snapshots.Get(m.UID); ok {
		return s
	}
	return r.takeDecisions(m)
}

// takeDecisions takes the decisions of the platform as they are now.
func (r *registries) takeDecisions(m *v1beta1.ModelRegistry) Settings {
	s := r.settings
	s.ModelRegistry = r.hub.Over(s.ModelRegistry)
	r.snapshots.Set(m.UID, s)
	return s
}

var (
	deploymentKind     = appsv1.SchemeGroupVersion.WithKind("Deployment")
	serviceKind        = corev1.SchemeGroupVersion.WithKind("Service")
	serviceAccountKind = corev1.SchemeGroupVersion.WithKind("ServiceAccount")
	secretKind         = corev1.SchemeGroupVersion.WithKind("Secret")
	configMapKind      = corev1.SchemeGroupVersion.WithKind("ConfigMap")
	claimKind          = corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaim")
	ingressKind        = networkingv1.SchemeGroupVersion.WithKind("Ingress")
	policyKind         = networkingv1.SchemeGroupVersion.WithKind("NetworkPolicy")
	budgetKind         = policyv1.SchemeGroupVersion.WithKind("PodDisruptionBudget")
	roleKind           = rbacv1.SchemeGroupVersion.WithKind("Role")
	roleBindingKind    = rbacv1.SchemeGroupVersion.WithKind("RoleBinding")
	clusterBindingKind = rbacv1.SchemeGroupVersion.WithKind("ClusterRoleBinding")
	cronJobKind        = batchv1.SchemeGroupVersion.WithKind("CronJob")
	sliceKind          = discoveryv1.SchemeGroupVersion.WithKind("EndpointSlice")
)

// Caches says what is held in memory: children by our label, which EndpointSlices copy from their Service, and of Secrets and
// ConfigMaps, which belong to users, the metadata. An empty namespace is all. Pods have a cache of their own, see Setup.
func Caches(namespace string) []component.CacheNeed {
	return []component.CacheNeed{
		{Kind: deploymentKind, Namespace: namespace, Whole: true},
		{Kind: sliceKind, Namespace: namespace, Whole: true},
		{Kind: claimKind, Namespace: namespace, Whole: true},
		{Kind: cronJobKind, Namespace: namespace, Whole: true},
		{Kind: serviceKind, Namespace: namespace},
		{Kind: serviceAccountKind, Namespace: namespace},
		{Kind: policyKind, Namespace: namespace},
		{Kind: budgetKind, Namespace: namespace},
		{Kind: roleKind, Namespace: namespace},
		{Kind: roleBindingKind, Namespace: namespace},
		{Kind: secretKind, Namespace: namespace, Everything: true},
		{Kind: configMapKind, Namespace: namespace, Everything: true},
		{Kind: clusterBindingKind},
		{Kind: capability.Route},
		{Kind: capability.UserGroup},
		{Kind: capability.HTTPRoute},
		{Kind: capability.ReferenceGrant},
		{Kind: capability.BackendTLSPolicy},
		{Kind: ingressKind, Namespace: namespace},
	}
}

// Environment is what Setup needs from the program. What the functions return is needed when the controller starts, not before.
type Environment struct {
	Settings Settings
	Served   func() *capability.Watcher
	Domain   func() *clusterdomain.Watcher
	// Hub knows the decisions of the platform; nil where the component platform is off.
	Hub   func() *aihub.Watcher
	Clock func() clock.Clock
	// Applier writes as FieldOwner, takes over from LegacyManagers and strips LastApplied.
	Applier func(ctrl.Manager) *apply.Applier
}

// Setup registers the controller of registries with a manager.
func Setup(e Environment) func(context.Context, ctrl.Manager) error {
	return func(ctx context.Context, mgr ctrl.Manager) error {
		pods, err := podCache(mgr, e.Settings.Namespace)
		if err != nil {
			return err
		}
		logs, err := newLogReader(mgr.GetConfig(), mgr.GetHTTPClient())
		if err != nil {
			return err
		}
		served, domain, hub := e.Served(), e.Domain(), e.Hub()
		r := &registries{
			settings:   e.Settings,
			hub:        hub,
			served:     served.Current,
			domain:     domain,
			clock:      e.Clock(),
			cached:     mgr.GetClient(),
			whole:      mgr.GetCache(),
			live:       mgr.GetAPIReader(),
			pods:       pods,
			applier:    e.Applier(mgr),
			references: reference.NewTracker(mgr.GetClient(), mgr.GetAPIReader()),
			recorder:   mgr.GetEventRecorder(ComponentName),
			readLog:    logs,
		}
		r.certificates = &servingcert.Keeper{Cached: r.cached, Live: r.live, Applier: r.applier, Clock: r.clock}
		r.databaseCertificates = &servingcert.Keeper{Cached: r.cached, Live: r.live, Applier: r.applier, Clock: r.clock, Condition: ConditionDatabaseCertificate}
		c, err := r.watch(mgr, pods, served, domain)
		if err != nil {
			return fmt.Errorf("building the controller of model registries: %w", err)
		}
		r.watchOptional(ctx, mgr, served, c)
		log := mgr.GetLogger().WithName(ComponentName)
		return errors.Join(
			mgr.Add(&sweeper{live: mgr.GetAPIReader(), applier: r.applier, clock: r.clock, log: log}),
			mgr.Add(storage.New(storage.Options{
				Reader: mgr.GetAPIReader(), Client: mgr.GetClient(), Clock: r.clock, Log: log.WithName("storage"),
				Source: e.Settings.StorageMigration.Source, Target: e.Settings.StorageMigration.Target,
			})))
	}
}

// watch builds the controller on all kinds that are always there.
func (r *registries) watch(mgr ctrl.Manager, pods cache.Cache, served *capability.Watcher, domain *clusterdomain.Watcher) (controller.Controller, error) {
	shell := reconciler.New(reconciler.Options{Client: mgr.GetClient(), Recorder: r.recorder, Component: ComponentName}, r.logic())
	changed := predicate.Or(predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{}, predicate.LabelChangedPredicate{})
	return ctrl.NewControllerManagedBy(mgr).Named(ComponentName).WithOptions(reconciler.ControllerOptions()).
		For(&v1beta1.ModelRegistry{}, builder.WithPredicates(changed)).
		Owns(&appsv1.Deployment{}).
		Owns(&batchv1.CronJob{}).
		Owns(&corev1.Service{}, builder.OnlyMetadata).
		Owns(&corev1.ServiceAccount{}, builder.OnlyMetadata).
		Owns(&networkingv1.NetworkPolicy{}, builder.OnlyMetadata).
		Owns(&policyv1.PodDisruptionBudget{}, builder.OnlyMetadata).
		Owns(&networkingv1.Ingress{}, builder.OnlyMetadata).
		Owns(&rbacv1.Role{}, builder.OnlyMetadata).
		Owns(&rbacv1.RoleBinding{}, builder.OnlyMetadata).
		Owns(&corev1.ConfigMap{}, builder.OnlyMetadata).
		Watches(&discoveryv1.EndpointSlice{}, byServiceName()).
		Watches(&corev1.PersistentVolumeClaim{}, r.consumers(usesClaim)).
		WatchesMetadata(&corev1.Secret{}, r.consumers(usesSecret)).
		WatchesMetadata(&corev1.ConfigMap{}, r.consumers(usesConfigMap)).
		WatchesMetadata(&rbacv1.ClusterRoleBinding{}, byLabels()).
		WatchesRawSource(source.Kind(pods, client.Object(&corev1.Pod{}), byApp())).
		WatchesRawSource(served.Changes(&v1beta1.ModelRegistry{}, r.every())). // an optional API appears or goes
		WatchesRawSource(domain.Changes(&v1beta1.ModelRegistry{}, r.every())).
		WatchesRawSource(r.hub.Changes(&v1beta1.ModelRegistry{}, r.every())).
		Build(shell)
}

// watchOptional follows the children whose APIs may come and go.
func (r *registries) watchOptional(ctx context.Context, mgr ctrl.Manager, served *capability.Watcher, c controller.Controller) {
	owned := handler.EnqueueRequestForOwner(mgr.GetScheme(), mgr.GetRESTMapper(), &v1beta1.ModelRegistry{}, handler.OnlyControllerOwner())
	for kind, h := range map[schema.GroupVersionKind]handler.EventHandler{
		capability.Route: owned, capability.ReferenceGrant: owned, capability.BackendTLSPolicy: owned, capability.HTTPRoute: byLabels(), capability.UserGroup: byLabels(),
	} {
		served.WatchMetadata(ctx, c, kind, h)
	}
	for _, kind := range []schema.GroupVersionKind{capability.ReferenceGrant, capability.HTTPRoute} {
		served.WatchMetadata(ctx, c, kind, r.besideCatalog())
	}
	// Whether a router admits a Route is in its status, which is not among its metadata.
	served.Watch(ctx, c, capability.Route, func() source.Source {
		return source.Kind(mgr.GetCache(), client.Object(wholeObject(capability.Route)), owned)
	})
}

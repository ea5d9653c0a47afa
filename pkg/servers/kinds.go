package servers

import (
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/odh-platform/odh-platform-operator/pkg/caches"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/managercache"
)

// Kinds of the objects of a server and its database.
var (
	Deployment         = appsv1.SchemeGroupVersion.WithKind("Deployment")
	CronJob            = batchv1.SchemeGroupVersion.WithKind("CronJob")
	Job                = batchv1.SchemeGroupVersion.WithKind("Job")
	Service            = corev1.SchemeGroupVersion.WithKind("Service")
	ServiceAccount     = corev1.SchemeGroupVersion.WithKind("ServiceAccount")
	Secret             = corev1.SchemeGroupVersion.WithKind("Secret")
	ConfigMap          = corev1.SchemeGroupVersion.WithKind("ConfigMap")
	Claim              = corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaim")
	EndpointSlice      = discoveryv1.SchemeGroupVersion.WithKind("EndpointSlice")
	Ingress            = networkingv1.SchemeGroupVersion.WithKind("Ingress")
	NetworkPolicy      = networkingv1.SchemeGroupVersion.WithKind("NetworkPolicy")
	DisruptionBudget   = policyv1.SchemeGroupVersion.WithKind("PodDisruptionBudget")
	Role               = rbacv1.SchemeGroupVersion.WithKind("Role")
	RoleBinding        = rbacv1.SchemeGroupVersion.WithKind("RoleBinding")
	ClusterRole        = rbacv1.SchemeGroupVersion.WithKind("ClusterRole")
	ClusterRoleBinding = rbacv1.SchemeGroupVersion.WithKind("ClusterRoleBinding")
)

// OptionalKinds are the kinds of child objects whose APIs are optional.
var OptionalKinds = []schema.GroupVersionKind{capability.Route, capability.HTTPRoute, capability.ReferenceGrant, capability.BackendTLSPolicy}

// Caches returns the caches of the child objects of registries and the catalog, and additional ones. They select the operator label, which
// EndpointSlices copy from their Service. An empty namespace selects all; optional kinds are always watched in all namespaces.
func Caches(namespace string, additional ...managercache.Need) []managercache.Need {
	needs := CacheNeeds(managercache.Need{Namespace: namespace, FullObjects: true}, Deployment, EndpointSlice)
	needs = append(needs, CacheNeeds(managercache.Need{Namespace: namespace}, Service, ServiceAccount, NetworkPolicy, DisruptionBudget, Role, RoleBinding, Ingress)...)
	needs = append(needs, CacheNeeds(managercache.Need{}, append([]schema.GroupVersionKind{ClusterRoleBinding}, OptionalKinds...)...)...)
	return append(needs, additional...)
}

// CacheNeeds returns a need for each kind with the options of need.
func CacheNeeds(need managercache.Need, kinds ...schema.GroupVersionKind) []managercache.Need {
	needs := make([]managercache.Need, 0, len(kinds))
	for _, need.Kind = range kinds {
		needs = append(needs, need)
	}
	return needs
}

// NamedCaches adds a cache for each name to the manager, in a namespace, "" for all: RBAC allows list and watch by name only.
func NamedCaches(mgr ctrl.Manager, namespace string, transform toolscache.TransformFunc, names ...string) (map[string]cache.Cache, error) {
	all := make(map[string]cache.Cache, len(names))
	for _, name := range names {
		options := cache.Options{
			DefaultFieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, name),
			DefaultNamespaces:    map[string]cache.Config{namespace: {}},
			DefaultTransform:     transform,
		}
		var err error
		if all[name], err = caches.New(mgr, "", options); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// ExistenceChanged accepts creations, deletions and the start of a deletion.
func ExistenceChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return (e.ObjectOld.GetDeletionTimestamp() == nil) != (e.ObjectNew.GetDeletionTimestamp() == nil)
	}}
}

// OwnChildren adds watches of the kinds of child objects that every server has, and of additional ones. Only Deployments are watched as
// full objects.
func OwnChildren(b *builder.Builder, additional ...client.Object) *builder.Builder {
	b.Owns(&appsv1.Deployment{})
	for _, child := range append(additional, &corev1.Service{}, &corev1.ServiceAccount{}, &networkingv1.NetworkPolicy{}, &policyv1.PodDisruptionBudget{}, &networkingv1.Ingress{}) {
		b.Owns(child, builder.OnlyMetadata)
	}
	return b
}

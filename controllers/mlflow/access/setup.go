package access

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/caches"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/objectmeta"
	"github.com/odh-platform/odh-platform-operator/pkg/reconciler"
	"github.com/odh-platform/odh-platform-operator/pkg/servers"
)

// controllerName distinguishes this controller from others that reconcile namespaces.
const controllerName = "mlflow-namespace-rbac"

// Permissions for the two RoleBindings. The verb bind allows granting the two roles without having their permissions. Another
// RESOURCE_NAME_PREFIX needs the same permission for the roles with that prefix.

// +kubebuilder:rbac:groups="",resources=namespaces,verbs=list;watch
// +kubebuilder:rbac:groups=mlflow.opendatahub.io,resources=mlflows,verbs=list;watch
// +kubebuilder:rbac:groups=mlflow.opendatahub.io,resources=mlflows/finalizers,verbs=update
// +kubebuilder:rbac:groups=services.platform.opendatahub.io,resources=auths,resourceNames=auth,verbs=list;watch
// +kubebuilder:rbac:groups=rbac.authorization.k8s.io,resources=rolebindings,resourceNames=odh-group-mlflow-view;odh-group-mlflow-edit,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=rbac.authorization.k8s.io,resources=clusterroles,resourceNames=mlflow-operator-mlflow-view;mlflow-operator-mlflow-edit,verbs=bind

// RoleBindingKind is cached as full objects, because roleRef is compared.
var RoleBindingKind = rbacv1.SchemeGroupVersion.WithKind("RoleBinding")

// Deps are the dependencies of the controller.
type Deps struct {
	// Prefix is the prefix of the names of the bound ClusterRoles.
	Prefix  string
	Served  *capability.Watcher
	Dynamic dynamic.Interface
	Clock   clock.Clock
	// Applier returns an Applier that reads full RoleBindings with the given client and writes as mlflow-operator.
	Applier func(client.Client) *apply.Applier
}

// Setup registers the controller with a manager. It returns the Report for the MLflow controller.
func Setup(ctx context.Context, mgr ctrl.Manager, d Deps) (*Report, error) {
	namespaces, err := caches.New(mgr, WorkspaceLabel, cache.Options{DefaultTransform: apply.Transform()})
	if err != nil {
		return nil, err
	}
	bindings, err := servers.NamedCaches(mgr, "", apply.Transform(fieldOwner), bindingNames...)
	if err != nil {
		return nil, err
	}
	watcher := newAuthWatcher(d.Dynamic, d.Served.Current, d.Clock, mgr.GetLogger().WithName("auth"))
	report := &Report{auth: watcher.current, failures: map[string]string{}}
	d.Served.OnChange(ctx, func(set capability.Set) { watcher.SetServed(set.Has(capability.PlatformAuth)) })
	watcher.Subscribe(ctx, func(auth) { report.listeners.Notify(struct{}{}) })
	if err := mgr.Add(watcher); err != nil {
		return nil, fmt.Errorf("adding the watcher of Auth: %w", err)
	}
	reader := &caches.DelegatingClient{Client: mgr.GetClient(), Route: func(key client.ObjectKey, object client.Object) client.Reader {
		if _, ok := object.(*rbacv1.RoleBinding); ok {
			return bindings[key.Name]
		}
		return nil
	}}
	r := &namespaceReconciler{
		cached: mgr.GetClient(), namespaces: namespaces, bindings: bindings,
		applier: d.Applier(reader), auth: watcher, report: report, prefix: d.Prefix,
	}
	if err := reconciler.NewController(mgr, controllerName, r.eventSources(mgr.GetCache())...).Complete(reconciler.ClassifyErrors(r)); err != nil {
		return nil, fmt.Errorf("building the controller %s: %w", controllerName, err)
	}
	return report, nil
}

func (r *namespaceReconciler) eventSources(main cache.Cache) []source.Source {
	sources := []source.Source{
		source.Kind(r.namespaces, client.Object(objectmeta.New(namespaceKind)), &handler.EnqueueRequestForObject{}, hasWorkspaceLabel()),
		source.Kind(main, client.Object(&mlflowv1.MLflow{}), r.enqueueNamespaces(), servers.ExistenceChanged()),
		// The MLflow without a name enqueues the namespaces of every MLflow, because Auth affects all of them.
		r.auth.EventSource(&mlflowv1.MLflow{}, r.enqueueNamespaces()),
	}
	for _, bindings := range r.bindings {
		sources = append(sources, source.Kind(bindings, client.Object(&rbacv1.RoleBinding{}), enqueueNamespace()))
	}
	return sources
}

var namespaceKind = corev1.SchemeGroupVersion.WithKind("Namespace")

// hasWorkspaceLabel accepts events of namespaces with WorkspaceLabel, including updates that remove it.
func hasWorkspaceLabel() predicate.Predicate {
	return reconciler.MatchesOldOrNew(func(o client.Object) bool {
		_, labelled := o.GetLabels()[WorkspaceLabel]
		return labelled
	})
}

// enqueueNamespace enqueues the namespace of a RoleBinding, even without WorkspaceLabel.
func enqueueNamespace() handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(_ context.Context, o client.Object) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: o.GetNamespace()}}}
	})
}

// enqueueNamespaces enqueues the namespaces that name the MLflow in WorkspaceLabel. An MLflow without a name enqueues those of every MLflow.
func (r *namespaceReconciler) enqueueNamespaces() handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, mlflow client.Object) []reconcile.Request {
		list := objectmeta.NewList(namespaceKind)
		if err := r.namespaces.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "Failed to list the namespaces with the workspace label")
			return nil
		}
		var requests []reconcile.Request
		for i := range list.Items {
			if mlflow.GetName() == "" || list.Items[i].Labels[WorkspaceLabel] == mlflow.GetName() {
				requests = append(requests, reconcile.Request{NamespacedName: types.NamespacedName{Name: list.Items[i].Name}})
			}
		}
		return requests
	})
}

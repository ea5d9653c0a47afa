package platform

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
	platformv1alpha1 "github.com/odh-platform/odh-platform-operator/apis/platform/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/component"
	"github.com/odh-platform/odh-platform-operator/pkg/reconciler"
)

// ComponentName is the name of the component in flags, metrics and folders.
const ComponentName = "platform"

// configMapName is the ConfigMap in which the platform reports its version.
const configMapName = "odh-mlflowoperator-config"

// +kubebuilder:rbac:groups=components.platform.opendatahub.io,resources=mlflowoperators,verbs=list;watch
// +kubebuilder:rbac:groups=components.platform.opendatahub.io,resources=mlflowoperators;mlflowoperators/status,resourceNames=default-mlflowoperator,verbs=patch
// +kubebuilder:rbac:groups=mlflow.opendatahub.io,resources=mlflows,verbs=list;watch
// +kubebuilder:rbac:namespace=system,groups="",resources=configmaps,resourceNames=odh-mlflowoperator-config,verbs=list;watch

var (
	mlflowOperatorKind = platformv1alpha1.GroupVersion.WithKind("MLflowOperator")
	mlflowKind         = mlflowv1.GroupVersion.WithKind("MLflow")
)

// Settings are what the manager's configuration says.
type Settings struct {
	// Namespace is the applications namespace, in which the platform leaves its ConfigMap.
	Namespace string
	// MLflowVersion is the release of MLflow that this build is made for, without a leading "v".
	MLflowVersion string
}

// Optional are the kinds that the component looks at while they are served.
func Optional() []schema.GroupVersionKind {
	return []schema.GroupVersionKind{mlflowOperatorKind, mlflowKind, hubKind, catalogKind}
}

// Parts are what the component consists of: one for each resource of the platform, which waits until that is served. They
// bear the name of the component, since they are switched as one.
func Parts(mlflowOperator, hub func(context.Context, ctrl.Manager) error) []component.Component {
	return []component.Component{
		{Name: ComponentName, Requires: []schema.GroupVersionKind{mlflowOperatorKind}, Controllers: mlflowOperator},
		{Name: ComponentName, Requires: []schema.GroupVersionKind{hubKind}, Controllers: hub},
	}
}

// Caches says what is held in memory: the few objects of cluster scope.
func Caches() []component.CacheNeed {
	return []component.CacheNeed{
		{Kind: mlflowOperatorKind, Whole: true, Everything: true},
		{Kind: mlflowKind, Whole: true, Everything: true},
		{Kind: hubKind, Whole: true, Everything: true},
		{Kind: catalogKind, Whole: true, Everything: true},
		{Kind: namespaceKind, Everything: true},
	}
}

// SetupMLflowOperator registers the controller of MLflowOperator with a manager.
func SetupMLflowOperator(settings Settings, served func() *capability.Watcher, clk func() clock.Clock) func(context.Context, ctrl.Manager) error {
	return func(ctx context.Context, mgr ctrl.Manager) error {
		served := served()
		key := types.NamespacedName{Namespace: settings.Namespace, Name: configMapName}
		r := &mlflowOperator{
			cached: mgr.GetClient(), live: mgr.GetAPIReader(), clock: clk(), served: served.Current, release: settings.MLflowVersion,
			versionKey: key,
		}
		shell := reconciler.NewWith(reconciler.Options{
			Client: mgr.GetClient(), Recorder: mgr.GetEventRecorder(ComponentName), Component: ComponentName,
		}, r.logic(), r.access())
		b := ctrl.NewControllerManagedBy(mgr).Named("mlflowoperator").WithOptions(reconciler.ControllerOptions()).
			For(&platformv1alpha1.MLflowOperator{}).
			// Objects of an API that goes are gone without events.
			WatchesRawSource(served.Changes(&platformv1alpha1.MLflowOperator{}, toMLflowOperator()))
		if key.Namespace != "" {
			versions, err := versionCache(mgr, key.Namespace, key.Name)
			if err != nil {
				return err
			}
			r.versions = versions
			b.WatchesRawSource(source.Kind(versions, client.Object(&corev1.ConfigMap{}), toMLflowOperator()))
		}
		c, err := b.Build(shell)
		if err != nil {
			return fmt.Errorf("building the controller of MLflowOperator: %w", err)
		}
		served.Watch(ctx, c, mlflowKind, func() source.Source {
			return source.Kind(mgr.GetCache(), client.Object(&mlflowv1.MLflow{}), toMLflowOperator(), comesAndGoes())
		})
		return nil
	}
}

// toMLflowOperator maps whatever happened to the one MLflowOperator.
func toMLflowOperator() handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: platformv1alpha1.MLflowOperatorName}}}
	})
}

// comesAndGoes admits what changes the number of objects.
func comesAndGoes() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(event.UpdateEvent) bool { return false }}
}

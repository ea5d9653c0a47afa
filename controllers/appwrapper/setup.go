package appwrapper

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	awv1beta2 "github.com/odh-platform/odh-platform-operator/apis/appwrapper/v1beta2"
	"github.com/odh-platform/odh-platform-operator/controllers/appwrapper/nodes"
	"github.com/odh-platform/odh-platform-operator/pkg/admission"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/caches"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/config"
	"github.com/odh-platform/odh-platform-operator/pkg/managercache"
	"github.com/odh-platform/odh-platform-operator/pkg/reconciler"
)

// ComponentName is the name of the component in flags, labels, metrics and folders.
const ComponentName = "appwrapper"

// FieldOwner is the field manager of created objects.
const FieldOwner = "appwrapper"

// Components of these kinds need no additional roles: they are the kinds in the role of the CodeFlare operator.

// +kubebuilder:rbac:groups=workload.codeflare.dev,resources=appwrappers,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=workload.codeflare.dev,resources=appwrappers/status,verbs=patch
// +kubebuilder:rbac:groups=workload.codeflare.dev,resources=appwrappers/finalizers,verbs=update
// +kubebuilder:rbac:groups="",resources=pods;services,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups="",resources=events,verbs=list
// +kubebuilder:rbac:groups="",resources=nodes;namespaces,verbs=list;watch
// +kubebuilder:rbac:groups=apps,resources=deployments;statefulsets,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=batch,resources=jobs,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=scheduling.k8s.io;scheduling.sigs.k8s.io;scheduling.x-k8s.io,resources=podgroups,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=kubeflow.org,resources=pytorchjobs,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=ray.io,resources=rayclusters;rayjobs,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=jobset.x-k8s.io,resources=jobsets,verbs=get;list;watch;create;patch;delete

// Caches returns the kinds in the manager's cache: all AppWrappers, and metadata of namespaces. Pods and components are in another cache,
// which is limited to objects with the label of an AppWrapper.
func Caches() []managercache.Need {
	return []managercache.Need{
		{Kind: awv1beta2.GroupVersion.WithKind(awv1beta2.Kind), FullObjects: true, IncludeForeign: true},
		{Kind: corev1.SchemeGroupVersion.WithKind("Namespace"), IncludeForeign: true},
	}
}

// Setup registers the workload controller with a manager, and if configured, the watch of nodes and the controller of the slack queue.
func Setup(ctx context.Context, mgr ctrl.Manager, settings Settings, served *capability.Watcher, applier *apply.Applier) error {
	kinds := &kindReader{
		apiReader: mgr.GetAPIReader(), apiDeleted: apiDeletedFunc(mgr), clock: settings.Clock, log: mgr.GetLogger().WithName(ComponentName),
		watched: map[schema.GroupVersionKind]*watchedKind{},
	}
	labeledCache, err := caches.New(mgr, awv1beta2.LabelAppWrapper, cache.Options{DefaultTransform: trimObject, ReaderFailOnMissingInformer: true})
	if err != nil {
		return fmt.Errorf("pods and components: %w", err)
	}
	if err := addIndexes(ctx, labeledCache); err != nil {
		return err
	}
	kinds.cache = labeledCache
	w := newWorkloadReconciler(settings, applier, kinds, mgr.GetRESTMapper())
	w.recorder = mgr.GetEventRecorder(RecorderName)
	watchedNodes, err := nodes.Setup(mgr, settings.AppWrapper, served)
	if err != nil {
		return err
	}
	return w.watch(mgr, labeledCache, watchedNodes)
}

// addIndexes indexes pods by AppWrapper and by node.
func addIndexes(ctx context.Context, labeledCache cache.Cache) error {
	for name, value := range map[string]func(*corev1.Pod) string{
		podIndex:  func(pod *corev1.Pod) string { return pod.Labels[awv1beta2.LabelAppWrapper] },
		nodeIndex: func(pod *corev1.Pod) string { return pod.Spec.NodeName },
	} {
		err := labeledCache.IndexField(ctx, &corev1.Pod{}, name, func(object client.Object) []string {
			if pod, ok := object.(*corev1.Pod); ok {
				return []string{value(pod)}
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("indexing pods: %w", err)
		}
	}
	return nil
}

// watch builds the controller. watchedNodes is nil if nodes are not watched.
func (w *workloadReconciler) watch(mgr ctrl.Manager, labeledCache cache.Cache, watchedNodes *nodes.Nodes) error {
	base := reconciler.New(reconciler.Options{Client: mgr.GetClient(), Component: ComponentName, SettleTime: reconciler.SettleTime}, w.logic())
	controller := reconciler.NewController(mgr, ComponentName).
		For(&awv1beta2.AppWrapper{}, builder.WithPredicates(reconciler.Changed())).
		WatchesMetadata(&corev1.Namespace{}, handler.Funcs{DeleteFunc: forgetNamespace}).
		WatchesRawSource(source.Kind(labeledCache, client.Object(&corev1.Pod{}), handler.EnqueueRequestsFromMapFunc(labelToAppWrapper), podChanged{})).
		WatchesRawSource(source.Func(func(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
			w.kinds.handler = componentHandler(queue, w.memory.setSucceeded)
			return nil
		}))
	if watchedNodes != nil {
		w.nodes = watchedNodes
		controller.WatchesRawSource(watchedNodes.Changes(w.nodeToAppWrappers))
	}
	if err := controller.Complete(base); err != nil {
		return fmt.Errorf("building the AppWrapper controller: %w", err)
	}
	return nil
}

// Settings are the settings of AppWrappers.
type Settings struct {
	config.AppWrapper
	// AdmissionRules are the rules for references of components.
	AdmissionRules admission.Rules
	Clock          clock.WithTicker
}

// SettingsOf returns the settings of a configuration.
func SettingsOf(c config.AppWrapper) Settings {
	return Settings{AppWrapper: c, Clock: clock.RealClock{}}
}

// Validate returns an error for each period out of its bounds. Errors name the keys below faultTolerance in the configuration.
func Validate(f config.FaultTolerance) error {
	var errs []error
	checkAtMost := func(key string, value time.Duration, boundKey string, bound time.Duration) {
		if value > bound {
			errs = append(errs, fmt.Errorf("faultTolerance.%s is %s and exceeds %s %s: lower the first or raise the second", key, value, boundKey, bound))
		}
	}
	checkAtMost("deletionGracePeriod", f.DeletionGracePeriod, "gracePeriodCeiling", f.GracePeriodCeiling)
	checkAtMost("resetPause", f.ResetPause, "gracePeriodCeiling", f.GracePeriodCeiling)
	checkAtMost("failureGracePeriod", f.FailureGracePeriod, "gracePeriodCeiling", f.GracePeriodCeiling)
	checkAtMost("admissionGracePeriod", f.AdmissionGracePeriod, "gracePeriodCeiling", f.GracePeriodCeiling)
	checkAtMost("warmupGracePeriod", f.WarmupGracePeriod, "gracePeriodCeiling", f.GracePeriodCeiling)
	checkAtMost("admissionGracePeriod", f.AdmissionGracePeriod, "warmupGracePeriod", f.WarmupGracePeriod)
	if f.SuccessTTLCeiling <= 0 {
		errs = append(errs, fmt.Errorf("faultTolerance.successTTLCeiling is %s: write a number of nanoseconds above 0, such as %d for a week",
			f.SuccessTTLCeiling, 7*24*time.Hour))
	}
	return errors.Join(errs...)
}

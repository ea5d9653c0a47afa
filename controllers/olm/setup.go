package olm

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/managercache"
	"github.com/odh-platform/odh-platform-operator/pkg/objectmeta"
	"github.com/odh-platform/odh-platform-operator/pkg/reconciler"
)

const (
	// ComponentName is the name of the component in flags, metrics and folders.
	ComponentName = "olm"
	// FieldOwner is the field manager of the objects.
	FieldOwner = "odh-platform-operator-olm"
	// deploymentName is the name of the Deployment of the manager in the CSV.
	deploymentName = "odh-platform-operator-controller-manager"
)

// Permission to read the owner of the monitors. The owners of samples are CRDs, which the manager may list already.
// +kubebuilder:rbac:namespace=system,groups=apps,resources=deployments,resourceNames=odh-platform-operator-controller-manager,verbs=list

// +kubebuilder:rbac:groups=monitoring.coreos.com,resources=servicemonitors;prometheusrules,verbs=list;watch
// +kubebuilder:rbac:namespace=system,groups=monitoring.coreos.com,resources=servicemonitors;prometheusrules,verbs=create
// +kubebuilder:rbac:namespace=system,groups=monitoring.coreos.com,resources=servicemonitors,resourceNames=odh-platform-operator-metrics,verbs=get;patch;delete
// +kubebuilder:rbac:namespace=system,groups=monitoring.coreos.com,resources=prometheusrules,resourceNames=odh-platform-operator,verbs=get;patch;delete

// Permissions on samples are restricted by name: other operators create samples too.

// +kubebuilder:rbac:groups=console.openshift.io,resources=consoleyamlsamples,verbs=list;watch;create
// +kubebuilder:rbac:groups=console.openshift.io,resources=consoleyamlsamples,resourceNames=odh-platform-operator-appwrapper-deployment;odh-platform-operator-appwrapper-failing-job;odh-platform-operator-appwrapper-failing-pod;odh-platform-operator-appwrapper-failing-pytorch-job;odh-platform-operator-appwrapper-gpu-job;odh-platform-operator-appwrapper-jobset;odh-platform-operator-appwrapper-leader-worker-set;odh-platform-operator-appwrapper-pod;odh-platform-operator-appwrapper-pytorch-job,verbs=get;patch;delete
// +kubebuilder:rbac:groups=console.openshift.io,resources=consoleyamlsamples,resourceNames=odh-platform-operator-mlflow-artifacts-server;odh-platform-operator-mlflow-digest;odh-platform-operator-mlflow-minimal;odh-platform-operator-mlflow-provided-tls;odh-platform-operator-mlflow-remote;odh-platform-operator-mlflow-trace-archival,verbs=get;patch;delete
// +kubebuilder:rbac:groups=console.openshift.io,resources=consoleyamlsamples,resourceNames=odh-platform-operator-modelmesh-predictor-claim;odh-platform-operator-modelmesh-predictor-pinned,verbs=get;patch;delete
// +kubebuilder:rbac:groups=console.openshift.io,resources=consoleyamlsamples,resourceNames=odh-platform-operator-modelregistry-mysql;odh-platform-operator-modelregistry-postgres;odh-platform-operator-modelregistry-proxy;odh-platform-operator-modelregistry-secure-mysql;odh-platform-operator-modelregistry-secure-postgres,verbs=get;patch;delete

// Deps are the dependencies of the controller.
type Deps struct {
	// Namespace is the namespace of the manager.
	Namespace string
	Served    *capability.Watcher
	Applier   *apply.Applier
}

// kinds lists the kinds of the managed objects.
var kinds = []schema.GroupVersionKind{capability.ServiceMonitor, capability.PrometheusRule, capability.ConsoleYAMLSample}

// Requires returns a kind that every cluster serves, so that the controller starts after the first discovery.
func Requires() []schema.GroupVersionKind { return []schema.GroupVersionKind{crdKind} }

// Caches returns the kinds in the manager's cache: the metadata of managed objects.
func Caches() []managercache.Need {
	var needs []managercache.Need
	for _, kind := range kinds {
		needs = append(needs, managercache.Need{Kind: kind})
	}
	return needs
}

// Setup registers the controller with a manager.
func Setup(mgr ctrl.Manager, d Deps) error {
	all, err := newGroups(d.Namespace)
	if err != nil {
		return err
	}
	r := &addonReconciler{
		groups: all, served: d.Served.Current, apiReader: mgr.GetAPIReader(), applier: d.Applier, recorder: mgr.GetEventRecorder(ComponentName),
	}
	enqueueAll := handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcile.Request { return r.requests() })
	b := reconciler.NewController(mgr, ComponentName).
		WatchesRawSource(source.Func(func(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
			for _, request := range r.requests() {
				queue.Add(request)
			}
			return nil
		})).
		WatchesRawSource(d.Served.EventSource(objectmeta.New(deploymentKind), enqueueAll))
	for _, kind := range kinds {
		b.WatchesRawSource(d.Served.Kind(mgr.GetCache(), kind, nil, handler.EnqueueRequestsFromMapFunc(r.enqueueOwner), reconciler.ManagedBy(ComponentName)))
	}
	if err := b.Complete(reconciler.ClassifyErrors(r)); err != nil {
		return fmt.Errorf("building the controller: %w", err)
	}
	return nil
}

// requests returns a request for each owner.
func (r *addonReconciler) requests() []reconcile.Request {
	var all []reconcile.Request
	for name := range r.groups {
		all = append(all, reconcile.Request{NamespacedName: name})
	}
	return all
}

// enqueueOwner returns a request for the owner of an object, even without an ownerReference.
func (r *addonReconciler) enqueueOwner(_ context.Context, changed client.Object) []reconcile.Request {
	for name, g := range r.groups {
		for _, object := range g.objects {
			if client.ObjectKeyFromObject(object) == client.ObjectKeyFromObject(changed) {
				return []reconcile.Request{{NamespacedName: name}}
			}
		}
	}
	return nil
}

package mlflow

import (
	"cmp"
	"fmt"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
	platformv1alpha1 "github.com/odh-platform/odh-platform-operator/apis/platform/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/controllers/mlflow/artifactstore"
	"github.com/odh-platform/odh-platform-operator/controllers/mlflow/migration"
	"github.com/odh-platform/odh-platform-operator/controllers/mlflow/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/admission"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/config"
	"github.com/odh-platform/odh-platform-operator/pkg/managercache"
	"github.com/odh-platform/odh-platform-operator/pkg/reconciler"
	"github.com/odh-platform/odh-platform-operator/pkg/reference"
	"github.com/odh-platform/odh-platform-operator/pkg/routestatus"
	"github.com/odh-platform/odh-platform-operator/pkg/servers"
	"github.com/odh-platform/odh-platform-operator/pkg/servingcert"
)

// ComponentName is the name of the component in flags, labels, metrics and folders.
const ComponentName = "mlflow"

// FieldOwner is the field manager of every apply. It equals that of the legacy operator, so that an apply removes the fields
// that only the legacy operator set.
const FieldOwner = "mlflow-operator"

// Permissions of the controller, including those that the roles of the server and garbage collection grant: RBAC forbids
// granting a permission that the grantor does not have.

// +kubebuilder:rbac:groups=mlflow.opendatahub.io,resources=mlflows,verbs=list;watch;patch
// +kubebuilder:rbac:groups=mlflow.opendatahub.io,resources=mlflows/status,verbs=patch
// +kubebuilder:rbac:groups=mlflow.opendatahub.io,resources=mlflows/finalizers,verbs=update
// +kubebuilder:rbac:groups=rbac.authorization.k8s.io,resources=clusterroles;clusterrolebindings,verbs=list;watch;create
// +kubebuilder:rbac:groups=rbac.authorization.k8s.io,resources=clusterroles;clusterrolebindings,resourceNames=mlflow,verbs=get;patch;delete
// +kubebuilder:rbac:groups=rbac.authorization.k8s.io,resources=clusterroles;clusterrolebindings,resourceNames=mlflow-gc,verbs=get;patch;delete
// +kubebuilder:rbac:groups=mlflow.kubeflow.org,resources=experiments,verbs=get;list;update
// +kubebuilder:rbac:groups=console.openshift.io,resources=consolelinks,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=monitoring.coreos.com,resources=servicemonitors,verbs=list;watch
// +kubebuilder:rbac:groups=gateway.networking.k8s.io,resources=httproutes;backendtlspolicies,verbs=list;watch
// +kubebuilder:rbac:groups="",resources=namespaces,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=secrets,resourceNames=mlflow-artifact-connection;mlflow-archive-secret,verbs=get;list;watch
// +kubebuilder:rbac:groups=mlflow.kubeflow.org,resources=mlflowconfigs,verbs=get;list;watch
// +kubebuilder:rbac:groups=mlflow.kubeflow.org,resources=mlflowconfigs/status,verbs=patch

// +kubebuilder:rbac:namespace=system,groups=apps,resources=deployments,verbs=get;list;watch;create;patch
// +kubebuilder:rbac:namespace=system,groups="",resources=persistentvolumeclaims;services,verbs=get;list;watch;create;patch
// OpenShift requires the delete permission to change ownerReferences. They change when an object is adopted, when a client
// removes them, when an MLflow is recreated, and on the PersistentVolumeClaim with the retention policy.
// +kubebuilder:rbac:namespace=system,groups=apps,resources=deployments,resourceNames=mlflow;mlflow-artifacts,verbs=delete
// +kubebuilder:rbac:namespace=system,groups="",resources=services,resourceNames=mlflow;mlflow-artifacts,verbs=delete
// +kubebuilder:rbac:namespace=system,groups="",resources=persistentvolumeclaims,resourceNames=mlflow-pvc,verbs=delete
// +kubebuilder:rbac:namespace=system,groups=networking.k8s.io,resources=networkpolicies,resourceNames=mlflow;mlflow-migration,verbs=delete
// +kubebuilder:rbac:namespace=system,groups="",resources=serviceaccounts,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:namespace=system,groups="",resources=secrets,verbs=get;list;watch;create
// +kubebuilder:rbac:namespace=system,groups="",resources=secrets,resourceNames=mlflow-tls;mlflow-artifacts-tls,verbs=patch;delete
// +kubebuilder:rbac:namespace=system,groups="",resources=configmaps,verbs=get;list;watch;create
// +kubebuilder:rbac:namespace=system,groups="",resources=configmaps,resourceNames=mlflow-trace-archival-config;mlflow-ca;mlflow-artifacts-ca,verbs=patch;delete
// +kubebuilder:rbac:namespace=system,groups=batch,resources=cronjobs,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:namespace=system,groups=batch,resources=jobs,verbs=get;list;watch;create;delete
// +kubebuilder:rbac:namespace=system,groups="",resources=pods;events,verbs=list
// +kubebuilder:rbac:namespace=system,groups=networking.k8s.io,resources=networkpolicies,verbs=get;list;watch;create;patch
// +kubebuilder:rbac:namespace=system,groups=policy,resources=poddisruptionbudgets,verbs=list;watch;create
// +kubebuilder:rbac:namespace=system,groups=policy,resources=poddisruptionbudgets,resourceNames=mlflow;mlflow-artifacts,verbs=get;patch;delete
// +kubebuilder:rbac:namespace=system,groups=monitoring.coreos.com,resources=servicemonitors,verbs=get;create;patch;delete
// +kubebuilder:rbac:namespace=system,groups=gateway.networking.k8s.io,resources=httproutes,verbs=get;create;patch;delete
// +kubebuilder:rbac:namespace=system,groups=gateway.networking.k8s.io,resources=backendtlspolicies,verbs=create
// +kubebuilder:rbac:namespace=system,groups=gateway.networking.k8s.io,resources=backendtlspolicies,resourceNames=mlflow-ca;mlflow-artifacts-ca,verbs=get;patch;delete
// +kubebuilder:rbac:namespace=system,groups=networking.k8s.io,resources=ingresses,verbs=list;watch;create
// +kubebuilder:rbac:namespace=system,groups=networking.k8s.io,resources=ingresses,resourceNames=mlflow,verbs=get;patch;delete

// Settings holds the MLflow section of the manager's configuration.
type Settings struct {
	// Inputs holds the inputs that do not depend on the cluster.
	resources.Inputs
	// Platform makes MLflow objects wait for a ready MLflowOperator.
	Platform bool
	// AdmissionRules are the rules for references of pods.
	AdmissionRules admission.Rules
}

// InputsFor completes the settings with the APIs that the cluster serves. On OpenShift Exposure is ignored and GatewayNamespace has a default.
func (s Settings) InputsFor(served capability.Set) resources.Inputs {
	in := s.Inputs
	in.Served, in.OpenShift = served, served.IsOpenShift()
	if in.OpenShift {
		in.Exposure, in.GatewayNamespace = config.Exposure{}, cmp.Or(in.GatewayNamespace, config.OpenShiftGateways)
	}
	if in.Exposure.UsesIngress() {
		in.ExternalURL = resources.IngressURL(in.Exposure.IngressDomain)
	}
	return in
}

// Render returns the objects, except Secrets, that the operator would create for an MLflow in an empty cluster with the given APIs. The
// migration Job is omitted if status.version is set. Unknown fields are errors.
func Render(settings Settings, served capability.Set, object *unstructured.Unstructured) ([]*unstructured.Unstructured, error) {
	m := &mlflowv1.MLflow{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(object.Object, m, true); err != nil {
		return nil, fmt.Errorf("decoding MLflow %s: %w", object.GetName(), err)
	}
	in := settings.InputsFor(served)
	desired, err := resources.Build(m, in)
	if err != nil {
		return nil, fmt.Errorf("building the objects of MLflow %s: %w", m.Name, err)
	}
	if m.Status.Version == "" {
		m.Generation = max(m.Generation, 1)
		desired.Add(resources.MigrationJob(m, in, ""))
	}
	return apply.Render(desired, ComponentName, m)
}

// optionalChildKinds lists the kinds of children whose APIs can be installed or removed at runtime.
var optionalChildKinds = []schema.GroupVersionKind{capability.ServiceMonitor, capability.HTTPRoute, capability.BackendTLSPolicy, capability.ConsoleLink}

// Caches returns the kinds in the manager's cache. Secrets and ConfigMaps of the operand namespace include foreign ones, because pods
// consume those of users.
func Caches(namespace string) []managercache.Need {
	return slices.Concat(
		servers.CacheNeeds(managercache.Need{Namespace: namespace, FullObjects: true}, servers.Deployment, servers.Claim),
		servers.CacheNeeds(managercache.Need{Namespace: namespace}, servers.Service, servers.ServiceAccount, servers.NetworkPolicy, servers.DisruptionBudget,
			servers.Ingress, servers.CronJob, servers.Job, capability.ServiceMonitor, capability.HTTPRoute, capability.BackendTLSPolicy),
		servers.CacheNeeds(managercache.Need{}, servers.ClusterRole, servers.ClusterRoleBinding, capability.ConsoleLink),
		servers.CacheNeeds(managercache.Need{Namespace: namespace, IncludeForeign: true}, servers.Secret, servers.ConfigMap),
		[]managercache.Need{{Kind: mlflowOperatorKind, IncludeForeign: true}, {Kind: artifactstore.Kind, FullObjects: true, IncludeForeign: true}})
}

// Deps are the dependencies of the controller.
type Deps struct {
	Settings Settings
	Served   *capability.Watcher
	// Applier writes as FieldOwner.
	Applier *apply.Applier
	Clock   clock.Clock
	// Feedback provides the condition of namespace RBAC; nil if that is disabled.
	Feedback Feedback
}

// Setup registers the MLflow controller with a manager.
func Setup(mgr ctrl.Manager, d Deps) error {
	platform := &platformGate{settings: d.Settings, cached: mgr.GetClient(), served: d.Served.Current}
	r := &mlflowReconciler{
		Reconciler: servers.NewReconciler(mgr.GetClient(), mgr.GetCache(), mgr.GetAPIReader(), d.Applier, d.Clock),
		platform:   platform, admissionRules: d.Settings.AdmissionRules, feedback: d.Feedback, inputs: platform.inputs,
		stores: newStoreCache(mgr.GetClient(), mgr.GetAPIReader()),
	}
	if err := r.watch(mgr, d.Served); err != nil {
		return fmt.Errorf("building the MLflow controller: %w", err)
	}
	if err := artifactstore.Setup(mgr, d.Served); err != nil || d.Settings.Platform {
		return err
	}
	return setupFinalizerRemover(mgr, d.Served) // without the component platform no other controller removes the finalizer
}

// watch builds the controller.
func (r *mlflowReconciler) watch(mgr ctrl.Manager, served *capability.Watcher) error {
	base := reconciler.New(reconciler.Options{
		Client: mgr.GetClient(), Recorder: mgr.GetEventRecorder(ComponentName), Component: ComponentName,
	}, r.logic())

	owned := handler.EnqueueRequestForOwner(mgr.GetScheme(), mgr.GetRESTMapper(), &mlflowv1.MLflow{})
	b := reconciler.NewController(mgr, ComponentName)
	if r.feedback != nil {
		b.WatchesRawSource(r.feedback.Source(r.enqueueMLflow()))
	}
	if r.platform.settings.Platform {
		b.WatchesRawSource(served.Kind(mgr.GetCache(), mlflowOperatorKind, &platformv1alpha1.MLflowOperator{}, r.enqueueMLflow(), isDefaultMLflowOperator()))
	}
	for _, kind := range optionalChildKinds {
		b.WatchesRawSource(served.Kind(mgr.GetCache(), kind, nil, owned))
	}
	routestatus.Watch(b, served, mgr.GetCache(), []schema.GroupVersionKind{capability.HTTPRoute, capability.BackendTLSPolicy}, owned)
	b.For(&mlflowv1.MLflow{}, builder.WithPredicates(reconciler.Changed()))
	return servers.OwnChildren(b, &batchv1.CronJob{}, &batchv1.Job{}, &corev1.ConfigMap{}).
		Watches(&corev1.PersistentVolumeClaim{}, r.enqueueMLflow()).
		WatchesMetadata(&rbacv1.ClusterRole{}, owned).
		WatchesMetadata(&rbacv1.ClusterRoleBinding{}, owned).
		WatchesMetadata(&corev1.Secret{}, r.enqueueConsumer(reference.Secret)).
		WatchesMetadata(&corev1.ConfigMap{}, r.enqueueConsumer(reference.ConfigMap)).
		WatchesRawSource(served.EventSource(&mlflowv1.MLflow{}, r.enqueueMLflow())). // an optional API is installed or removed
		Complete(base)
}

func (r *mlflowReconciler) logic() reconciler.Logic[*mlflowv1.MLflow] {
	return reconciler.Logic[*mlflowv1.MLflow]{
		Phases: r.phases(), OnDeleted: r.forget, OnPaused: migration.ResetMetrics, Summary: r.resetAgeWithoutPlan,
		AfterStatusUpdate: func(before, after *mlflowv1.MLflow) {
			migration.CountFinishedJob(before.Status.Migration, after.Status.Migration)
		},
		InformationalConditions: []string{ConditionCredentials, ConditionMLflowOperator, ConditionNamespaceRBAC, servingcert.ReasonExpires},
	}
}

// resetAgeWithoutPlan sets the age of the migration Job to 0 unless the reconcile has planned the migration, which sets the age.
func (r *mlflowReconciler) resetAgeWithoutPlan(*mlflowv1.MLflow) {
	if !r.hasPlan {
		migration.ResetMetrics()
	}
	r.hasPlan = false
}

// forget deletes the state of a deleted MLflow.
func (r *mlflowReconciler) forget(owner types.UID) {
	r.Forget(owner)
	r.idleAt.Delete(owner)
	r.claimLookups.Delete(owner)
	migration.ResetMetrics()
}

// enqueueMLflow enqueues the singleton MLflow, if it exists, for any event.
func (r *mlflowReconciler) enqueueMLflow() handler.EventHandler {
	return servers.Enqueue(r.Cached, &mlflowv1.MLflowList{}, false, func(*mlflowv1.MLflow, client.Object) bool { return true })
}

// enqueueConsumer enqueues the MLflow if its pods consume the Secret or ConfigMap.
func (r *mlflowReconciler) enqueueConsumer(kind reference.Kind) handler.EventHandler {
	return servers.Enqueue(r.Cached, &mlflowv1.MLflowList{}, false, func(m *mlflowv1.MLflow, o client.Object) bool { return consumes(m, kind, o.GetName()) })
}

// prunableKinds returns the served kinds that a reconcile prunes. While pods of an earlier spec may run, it omits the kinds that they
// need and, if HTTPRoutes publish the server, HTTPRoute and BackendTLSPolicy.
func prunableKinds(in resources.Inputs, runsAsSpecified bool) []schema.GroupVersionKind {
	kinds := append(in.Served.Filter(capability.ServiceMonitor, capability.ConsoleLink), servers.DisruptionBudget, servers.CronJob, servers.Ingress)
	if runsAsSpecified || !in.ViaGateway() {
		kinds = append(kinds, in.Served.Filter(capability.HTTPRoute, capability.BackendTLSPolicy)...)
	}
	if runsAsSpecified {
		kinds = append(kinds, servers.ConfigMap, servers.ServiceAccount, servers.ClusterRoleBinding, servers.ClusterRole)
	}
	return kinds
}

package mlflow

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
	"github.com/odh-platform/odh-platform-operator/controllers/mlflow/migration"
	"github.com/odh-platform/odh-platform-operator/controllers/mlflow/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/names"
	"github.com/odh-platform/odh-platform-operator/pkg/reconciler"
	"github.com/odh-platform/odh-platform-operator/pkg/servers"
	"github.com/odh-platform/odh-platform-operator/pkg/status/conditions"
	"github.com/odh-platform/odh-platform-operator/test/fakeapi"
	"github.com/odh-platform/odh-platform-operator/test/mlflowtest"
)

// fixture is the reconciler with a fake API server that can reject writes.
type fixture struct {
	*mlflowReconciler
	t      *testing.T
	server *fakeapi.Server
	// refuse returns the error of a write to an object, or nil to accept it.
	refuse        func(kind, name string) error
	reconcileOnce func() (ctrl.Result, error)
}

func newFixture(t *testing.T, objects ...client.Object) *fixture {
	t.Helper()
	w := &fixture{t: t, refuse: func(string, string) error { return nil }, server: newServer(t, objects...)}
	w.server.Refuse = func(write fakeapi.Write) error { return w.refuse(write.Kind, write.Name) }
	w.mlflowReconciler, w.reconcileOnce = newReconciler(t, w.server)
	return w
}

// newServer returns a fake API server that serves MLflow.
func newServer(t testing.TB, objects ...client.Object) *fakeapi.Server {
	t.Helper()
	scheme := fakeapi.Scheme(mlflowv1.AddToScheme)
	return fakeapi.New(t, func() *fake.ClientBuilder {
		return fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&mlflowv1.MLflow{}, &appsv1.Deployment{}, &batchv1.Job{}).
			WithIndex(&corev1.Event{}, "involvedObject.uid", involvedUID).
			WithIndex(&mlflowv1.MLflow{}, metav1.ObjectNameField, func(o client.Object) []string { return []string{o.GetName()} })
	}, objects...)
}

// newReconciler returns a reconciler without state, and a function that reconciles once.
func newReconciler(t testing.TB, server client.Client) (*mlflowReconciler, func() (ctrl.Result, error)) {
	t.Helper()
	in := platformInputs["openshift"]
	r := &mlflowReconciler{
		Reconciler: servers.NewReconciler(server, server, server, apply.New(apply.Options{Client: server, Live: server, FieldOwner: FieldOwner, Component: ComponentName}),
			clocktesting.NewFakePassiveClock(midday)),
		inputs:   func() resources.Inputs { return in },
		platform: &platformGate{cached: server, served: func() capability.Set { return capability.Set{} }},
		stores:   newStoreCache(server, server),
	}
	base := reconciler.New(reconciler.Options{Client: server, Component: ComponentName}, r.logic())
	return r, func() (ctrl.Result, error) {
		return base.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Name: "mlflow"}})
	}
}

// mlflowWithAllChildren returns an MLflow with storage, garbage collection and trace archival.
func mlflowWithAllChildren() *mlflowv1.MLflow {
	m := mlflowtest.MLflow(mlflowtest.WithGarbageCollection, mlflowtest.WithTraceArchival, mlflowtest.WithStorage(corev1.PersistentVolumeClaimSpec{}))
	m.Generation = 1
	return m
}

// reconcileUntilStable reconciles five times. After each, it sets status.observedGeneration of the Deployment.
func (w *fixture) reconcileUntilStable() (last ctrl.Result, err error) {
	w.t.Helper()
	for range 5 {
		last, err = w.reconcileOnce()
		d := &appsv1.Deployment{}
		if w.get("mlflow", d) {
			d.Status.ObservedGeneration = d.Generation
			if err := w.server.Status().Update(w.t.Context(), d); err != nil {
				w.t.Fatal(err)
			}
		}
	}
	return last, err
}

func (w *fixture) get(name string, o client.Object) bool {
	w.t.Helper()
	err := w.server.Get(w.t.Context(), client.ObjectKey{Namespace: "opendatahub", Name: name}, o)
	if client.IgnoreNotFound(err) != nil {
		w.t.Fatal(err)
	}
	return err == nil
}

func (w *fixture) migrationJobExists() bool { return w.get("mlflow-mg-3140-g1", &batchv1.Job{}) }

func (w *fixture) condition(conditionType string) metav1.Condition {
	w.t.Helper()
	m := &mlflowv1.MLflow{}
	if err := w.server.Get(w.t.Context(), client.ObjectKey{Name: "mlflow"}, m); err != nil {
		w.t.Fatal(err)
	}
	c, _ := conditions.Get(m.Status.Conditions, conditionType)
	return c
}

// fault is a child object that cannot be written, with the expected state of the other objects.
type fault struct {
	kind, name                           string
	deploymentExists, migrationJobExists bool
	// condition is the type of the condition that reports the fault with status False.
	condition, reason string
}

var faults = []fault{
	{"ServiceAccount", "mlflow-sa", false, false, ConditionAvailable, ReasonApplyFailed},
	{"ClusterRole", "mlflow", false, false, ConditionAvailable, ReasonApplyFailed},
	{"ClusterRoleBinding", "mlflow", false, false, ConditionAvailable, ReasonApplyFailed},
	{"ConfigMap", "mlflow-trace-archival-config", false, false, ConditionAvailable, ReasonApplyFailed},
	{"NetworkPolicy", "mlflow", false, false, ConditionAvailable, ReasonApplyFailed},
	{"NetworkPolicy", "mlflow-migration", false, false, ConditionAvailable, ReasonApplyFailed},
	{"Deployment", "mlflow", false, false, ConditionAvailable, ReasonApplyFailed},
	{"ClusterRole", "mlflow-gc", true, true, ConditionCronJobs, ReasonScheduledJobsFailed},
	{"CronJob", "mlflow-gc", true, true, ConditionCronJobs, ReasonScheduledJobsFailed},
	{"CronJob", "mlflow-trace-archival", true, true, ConditionCronJobs, ReasonScheduledJobsFailed},
	{"Service", "mlflow", true, true, ConditionAvailable, ReasonApplyFailed},
	{"ServiceMonitor", "mlflow-metrics-monitor", true, true, ConditionMonitor, ReasonServiceMonitorFailed},
	{"HTTPRoute", "mlflow", true, true, ConditionRoute, ReasonHTTPRouteFailed},
	{"ConsoleLink", "mlflow", true, true, ConditionConsoleLink, ReasonConsoleLinkFailed},
}

// TestOneFault reconciles while one child object cannot be written. An object that the server needs blocks the Deployment and the migration
// Job; any other object blocks neither. A condition reports the fault.
func TestOneFault(t *testing.T) {
	group := schema.GroupResource{Resource: "things"}
	for code, refusal := range map[string]error{
		"403": apierrors.NewForbidden(group, "x", errors.New("denied by a policy")),
		"422": apierrors.NewInvalid(schema.GroupKind{Kind: "Thing"}, "x", nil),
		"500": apierrors.NewInternalError(errors.New("policy webhook timed out")),
	} {
		for _, f := range faults {
			t.Run(code+" "+f.kind+" "+f.name, func(t *testing.T) {
				w := newFixture(t, mlflowWithAllChildren())
				w.refuse = func(kind, name string) error {
					if kind == f.kind && name == f.name {
						return refusal
					}
					return nil
				}
				w.expect(f, refusal.Error())
			})
		}
	}
	for _, f := range faults {
		t.Run("stuck "+f.kind+" "+f.name, func(t *testing.T) {
			stuck := foreign(t, f.kind, f.name)
			stuck.SetLabels(names.Labels(ComponentName))
			stuck.SetFinalizers([]string{"example.com/audit"})
			stuck.SetDeletionTimestamp(new(metav1.NewTime(time.Now().Add(-2 * time.Minute))))
			w := newFixture(t, mlflowWithAllChildren(), stuck)
			f.deploymentExists = f.deploymentExists || f.kind == "Deployment"
			w.expect(f, "held by finalizers example.com/audit")
			if result, err := w.reconcileOnce(); err != nil || result.RequeueAfter <= 0 || result.RequeueAfter > time.Minute {
				t.Errorf("unexpected requeue after %s or error %v", result.RequeueAfter, err)
			}
		})
	}
	for _, f := range faults {
		if f.kind == "ServiceAccount" {
			continue // a ServiceAccount of a user is used unchanged
		}
		t.Run("foreign "+f.kind+" "+f.name, func(t *testing.T) {
			w := newFixture(t, mlflowWithAllChildren(), foreign(t, f.kind, f.name))
			f.deploymentExists = f.deploymentExists || f.kind == "Deployment" // a foreign Deployment exists
			w.expect(f, "exists and was not created by this operator")
		})
	}
}

func (w *fixture) expect(f fault, message string) {
	w.t.Helper()
	last, err := w.reconcileUntilStable()
	if exists := w.get("mlflow", &appsv1.Deployment{}); exists != f.deploymentExists {
		w.t.Errorf("Deployment exists: %t, want %t", exists, f.deploymentExists)
	}
	if exists := w.migrationJobExists(); exists != f.migrationJobExists {
		w.t.Errorf("migration Job exists: %t, want %t", exists, f.migrationJobExists)
	}
	c := w.condition(f.condition)
	if c.Status != metav1.ConditionFalse || c.Reason != f.reason || !strings.Contains(c.Message, message) {
		w.t.Errorf("unexpected condition %s=%s with reason %s: %s", f.condition, c.Status, c.Reason, c.Message)
	}
	if err == nil && (last.RequeueAfter == 0 || last.RequeueAfter > reconciler.RequeueBlocked) {
		w.t.Errorf("no requeue within %s: %+v", reconciler.RequeueBlocked, last)
	}
}

// foreign returns an object of a user with the kind and name of a child object.
func foreign(t *testing.T, kind, name string) client.Object {
	t.Helper()
	for _, o := range renderObjects(t, mlflowWithAllChildren(), platformInputs["openshift"]) {
		if o.GetKind() == kind && o.GetName() == name {
			empty := &unstructured.Unstructured{}
			empty.SetGroupVersionKind(o.GroupVersionKind())
			empty.SetName(name)
			empty.SetNamespace(o.GetNamespace())
			return empty
		}
	}
	t.Fatalf("no %s %s is rendered", kind, name)
	return nil
}

// If no write fails, the migration Job exists and no condition reports a fault.
func TestNoFault(t *testing.T) {
	w := newFixture(t, mlflowWithAllChildren())
	if _, err := w.reconcileUntilStable(); err != nil {
		t.Fatal(err)
	}
	for _, conditionType := range []string{ConditionCronJobs, ConditionMonitor, ConditionRoute, ConditionConsoleLink, ConditionCertificate, ConditionStorage, ConditionPruned} {
		if c := w.condition(conditionType); c.Type != "" {
			t.Errorf("condition %s=%s with reason %s was not removed: %s", conditionType, c.Status, c.Reason, c.Message)
		}
	}
	if !w.migrationJobExists() {
		t.Error("no migration Job was created")
	}
}

// A persistent rejection is reported once: later reconciles do not write the status.
func TestRejectedExposureIsReportedOnce(t *testing.T) {
	w := newFixture(t, mlflowWithAllChildren())
	w.reconcileUntil("ready", workloads{}, migratedAndReady)
	for _, o := range renderObjects(t, mlflowWithAllChildren(), platformInputs["openshift"]) {
		if slices.Contains([]string{"ServiceMonitor", "HTTPRoute", "ConsoleLink"}, o.GetKind()) {
			if err := w.server.Delete(t.Context(), o); err != nil {
				t.Fatal(err)
			}
		}
	}
	w.refuse = func(kind, _ string) error {
		if slices.Contains([]string{"ServiceMonitor", "HTTPRoute", "ConsoleLink"}, kind) {
			return apierrors.NewForbidden(schema.GroupResource{Resource: "things"}, "x", errors.New("no"))
		}
		return nil
	}
	w.Applier.Forget(getMLflow(t, w.server).UID)
	if _, err := w.reconcileUntilStable(); err != nil {
		t.Fatal(err)
	}
	m := getMLflow(t, w.server)
	for i := range m.Status.Conditions {
		m.Status.Conditions[i].LastTransitionTime = metav1.NewTime(midday)
	}
	if err := w.server.Status().Update(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	writesBefore := len(w.server.Writes)
	for range 3 {
		if _, err := w.reconcileOnce(); err != nil {
			t.Fatal(err)
		}
	}
	for _, write := range w.server.Writes[writesBefore:] {
		if write.Kind == "MLflow" {
			t.Errorf("unexpected write: %+v", write)
		}
	}
	for _, conditionType := range []string{ConditionMonitor, ConditionRoute, ConditionConsoleLink} {
		if c := w.condition(conditionType); c.Status != metav1.ConditionFalse || !c.LastTransitionTime.Time.Equal(midday) {
			t.Errorf("%s=%s since %s", conditionType, c.Status, c.LastTransitionTime)
		}
	}
}

// If the StorageClass does not allow expansion, only the size of the claim stays unchanged: the claim still gets its labels.
func TestRejectedExpansion(t *testing.T) {
	m := mlflowWithAllChildren()
	m.Spec.Storage.Resources.Requests = mlflowtest.StorageRequest("20Gi")
	claim := liveClaim()
	w := newFixture(t, m, claim)
	requests := 0
	w.refuse = func(kind, _ string) error {
		// The first write sets the labels of the claim, the later ones request the size.
		if kind != "PersistentVolumeClaim" {
			return nil
		}
		if requests++; requests > 1 {
			return apierrors.NewForbidden(schema.GroupResource{Resource: "persistentvolumeclaims"}, "mlflow-pvc",
				errors.New("the storageclass that provisions the pvc must support resize"))
		}
		return nil
	}
	w.expect(fault{deploymentExists: true, migrationJobExists: true, condition: ConditionStorage, reason: ReasonExpansionRefused}, "must support resize")
	if !w.get("mlflow-pvc", claim) || claim.Labels[names.ComponentLabel] != ComponentName {
		t.Errorf("labels of the claim: %v", claim.Labels)
	}
}

// If a CronJob cannot be suspended, the server is not stopped, because the migration could not start.
func TestMigrationWithUnsuspendableCronJob(t *testing.T) {
	m := mlflowWithAllChildren()
	m.Status.Version = "3.13.0"
	w := newFixture(t, m)
	d := renderedObject[appsv1.Deployment](t, m, "Deployment", "mlflow")
	cron := renderedObject[batchv1.CronJob](t, m, "CronJob", "mlflow-gc")
	for _, o := range []client.Object{d, cron} {
		if err := w.server.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	w.succeedCheck()
	w.refuse = func(kind, name string) error {
		if kind == "CronJob" && name == "mlflow-gc" {
			return apierrors.NewInvalid(schema.GroupKind{Kind: "CronJob"}, "mlflow-gc", nil)
		}
		return nil
	}
	w.expect(fault{deploymentExists: true, condition: ConditionCronJobs, reason: ReasonScheduledJobsFailed}, "mlflow-gc")
	if w.get("mlflow", d); *d.Spec.Replicas != 1 {
		t.Errorf("the server was stopped")
	}
	if c := w.condition(migration.ConditionMigration); c.Reason != migration.ReasonMigrationScalingDown || !strings.Contains(c.Message, "CronJobs to be suspended") {
		t.Errorf("Migration=%s %s: %s", c.Status, c.Reason, c.Message)
	}
}

// A migration stops the server only after the running Jobs of CronJobs have ended.
func TestServerRunsUntilCronJobRunsEnd(t *testing.T) {
	m := mlflowWithAllChildren()
	m.Status.Version = "3.13.0"
	cron := renderedObject[batchv1.CronJob](t, m, "CronJob", "mlflow-gc")
	cron.UID = "cron"
	_, run := garbageCollectionRun(time.Minute)
	pod := onNode(livePod("gc", map[string]string{"app": "mlflow-gc", jobUIDLabel: "run"}, corev1.PodRunning))
	d := renderedObject[appsv1.Deployment](t, m, "Deployment", "mlflow")
	w := newFixture(t, m, cron, run, pod, d)
	w.succeedCheck()
	if _, err := w.reconcileUntilStable(); err != nil {
		t.Fatal(err)
	}
	if w.get("mlflow", d); *d.Spec.Replicas != 1 || w.migrationJobExists() {
		t.Errorf("the server was stopped while garbage collection runs: %d replicas", *d.Spec.Replicas)
	}
	if w.get("mlflow-gc", cron); cron.Spec.Suspend == nil || !*cron.Spec.Suspend {
		t.Error("the CronJob is not suspended")
	}
	for _, o := range []client.Object{pod, run} {
		if err := w.server.Delete(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := w.reconcileUntilStable(); err != nil {
		t.Fatal(err)
	}
	if w.get("mlflow", d); *d.Spec.Replicas != 0 || !w.migrationJobExists() {
		t.Errorf("the migration has not started: %d replicas", *d.Spec.Replicas)
	}
}

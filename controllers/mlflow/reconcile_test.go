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

// fixture is the whole reconciler on a fake API server that refuses writes on demand.
type fixture struct {
	*mlflowReconciler
	t      *testing.T
	server *fakeapi.Server
	// refuse answers a write to an object; nil lets it through.
	refuse func(kind, name string) error
	once   func() (ctrl.Result, error)
}

func newFixture(t *testing.T, there ...client.Object) *fixture {
	t.Helper()
	w := &fixture{t: t, refuse: func(string, string) error { return nil }, server: newServer(t, there...)}
	w.server.Refuse = func(write fakeapi.Write) error { return w.refuse(write.Kind, write.Name) }
	w.mlflowReconciler, w.once = startOn(t, w.server)
	return w
}

// newServer is a fake API server that knows MLflow.
func newServer(t testing.TB, objects ...client.Object) *fakeapi.Server {
	t.Helper()
	scheme := fakeapi.Scheme(mlflowv1.AddToScheme)
	return fakeapi.New(t, func() *fake.ClientBuilder {
		return fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&mlflowv1.MLflow{}, &appsv1.Deployment{}, &batchv1.Job{}).
			WithIndex(&corev1.Event{}, "involvedObject.uid", involvedUID).
			WithIndex(&mlflowv1.MLflow{}, metav1.ObjectNameField, func(o client.Object) []string { return []string{o.GetName()} })
	}, objects...)
}

// startOn is a reconciler that has just been started, and one reconciliation of it.
func startOn(t testing.TB, server client.Client) (*mlflowReconciler, func() (ctrl.Result, error)) {
	t.Helper()
	in := platformInputs["openshift"]
	r := &mlflowReconciler{
		Reconciler: servers.NewReconciler(server, server, server, apply.New(apply.Options{Client: server, Live: server, FieldOwner: FieldOwner, Component: ComponentName}),
			clocktesting.NewFakePassiveClock(midday)),
		inputs:   func() resources.Inputs { return in },
		platform: &platformGate{cached: server, served: func() capability.Set { return capability.Set{} }},
		stores:   newStoreCache(server, server),
	}
	shell := reconciler.New(reconciler.Options{Client: server, Component: ComponentName}, reconciler.Logic[*mlflowv1.MLflow]{Phases: r.phases(), OnDeleted: r.Forget})
	return r, func() (ctrl.Result, error) {
		return shell.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Name: "mlflow"}})
	}
}

// mlflowWithAllChildren is an MLflow that asks for every kind of child, on a cluster that serves all of them.
func mlflowWithAllChildren() *mlflowv1.MLflow {
	m := mlflowtest.MLflow(mlflowtest.WithGarbageCollection, mlflowtest.WithTraceArchival, mlflowtest.WithStorage(corev1.PersistentVolumeClaimSpec{}))
	m.Generation = 1
	return m
}

// reconcileUntilStable reconciles a few times, and updates the status of the Deployment in between as its controller would.
func (w *fixture) reconcileUntilStable() (last ctrl.Result, err error) {
	w.t.Helper()
	for range 5 {
		last, err = w.once()
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

func (w *fixture) migrates() bool { return w.get("mlflow-mg-3140-g1", &batchv1.Job{}) }

func (w *fixture) condition(kind string) metav1.Condition {
	w.t.Helper()
	m := &mlflowv1.MLflow{}
	if err := w.server.Get(w.t.Context(), client.ObjectKey{Name: "mlflow"}, m); err != nil {
		w.t.Fatal(err)
	}
	c, _ := conditions.Get(m.Status.Conditions, kind)
	return c
}

// fault is one child that cannot be written, and the steps that are required nevertheless.
type fault struct {
	kind, name string
	// serves: the Deployment is written; migrates: so is the Job.
	serves, migrates bool
	// condition names the fault and stays False.
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

// TestOneFault runs the whole reconciler while one child cannot be written: what guards the server keeps it from being written,
// and everything else continues. A condition names the failure.
func TestOneFault(t *testing.T) {
	group := schema.GroupResource{Resource: "things"}
	for how, refusal := range map[string]error{
		"403": apierrors.NewForbidden(group, "x", errors.New("the policy of this cluster says no")),
		"422": apierrors.NewInvalid(schema.GroupKind{Kind: "Thing"}, "x", nil),
		"500": apierrors.NewInternalError(errors.New("the policy of this cluster has no answer")),
	} {
		for _, f := range faults {
			t.Run(how+" "+f.kind+" "+f.name, func(t *testing.T) {
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
			f.serves = f.serves || f.kind == "Deployment"
			w.expect(f, "held by finalizers example.com/audit")
			if result, err := w.once(); err != nil || result.RequeueAfter <= 0 || result.RequeueAfter > time.Minute {
				t.Errorf("unexpected requeue after %s or error %v", result.RequeueAfter, err)
			}
		})
	}
	for _, f := range faults {
		if f.kind == "ServiceAccount" {
			continue // an account that a user made is used as it is
		}
		t.Run("foreign "+f.kind+" "+f.name, func(t *testing.T) {
			w := newFixture(t, mlflowWithAllChildren(), foreign(t, f.kind, f.name))
			f.serves = f.serves || f.kind == "Deployment" // a foreign Deployment exists
			w.expect(f, "exists and was not created by this operator")
		})
	}
}

func (w *fixture) expect(f fault, words string) {
	w.t.Helper()
	last, err := w.reconcileUntilStable()
	if serves := w.get("mlflow", &appsv1.Deployment{}); serves != f.serves {
		w.t.Errorf("the Deployment is written: %t", serves)
	}
	if migrates := w.migrates(); migrates != f.migrates {
		w.t.Errorf("the database is migrated: %t", migrates)
	}
	c := w.condition(f.condition)
	if c.Status != metav1.ConditionFalse || c.Reason != f.reason || !strings.Contains(c.Message, words) {
		w.t.Errorf("unexpected condition %s=%s with reason %s: %s", f.condition, c.Status, c.Reason, c.Message)
	}
	if err == nil && (last.RequeueAfter == 0 || last.RequeueAfter > reconciler.RequeueBlocked) {
		w.t.Errorf("nothing brings the next reconciliation in time: %+v", last)
	}
}

// foreign is an object of a user with the name of a child.
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
	t.Fatalf("nothing makes a %s %s", kind, name)
	return nil
}

// With nothing refused there is a Job, and no condition reports a fault.
func TestNoFault(t *testing.T) {
	w := newFixture(t, mlflowWithAllChildren())
	if _, err := w.reconcileUntilStable(); err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{ConditionCronJobs, ConditionMonitor, ConditionRoute, ConditionConsoleLink, ConditionCertificate, ConditionStorage, ConditionPruned} {
		if c := w.condition(kind); c.Type != "" {
			t.Errorf("condition %s=%s with reason %s was not removed: %s", kind, c.Status, c.Reason, c.Message)
		}
	}
	if !w.migrates() {
		t.Error("no migration Job was created")
	}
}

// A refusal that stays is reported once: the passes after it write nothing.
func TestRejectedExposureIsNotRetriedWithBackoff(t *testing.T) {
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
	since := len(w.server.Writes)
	for range 3 {
		if _, err := w.once(); err != nil {
			t.Fatal(err)
		}
	}
	for _, write := range w.server.Writes[since:] {
		if write.Kind == "MLflow" {
			t.Errorf("unexpected write: %+v", write)
		}
	}
	for _, kind := range []string{ConditionMonitor, ConditionRoute, ConditionConsoleLink} {
		if c := w.condition(kind); c.Status != metav1.ConditionFalse || !c.LastTransitionTime.Time.Equal(midday) {
			t.Errorf("%s=%s since %s", kind, c.Status, c.LastTransitionTime)
		}
	}
}

// A storage class that does not let volumes grow keeps the size as it is, and nothing else: also the claim gets its marks.
func TestRefusedExpansion(t *testing.T) {
	m := mlflowWithAllChildren()
	m.Spec.Storage.Resources.Requests = mlflowtest.StorageRequest("20Gi")
	claim := liveClaim(func(c *corev1.PersistentVolumeClaim) { c.Namespace = "opendatahub" })
	w := newFixture(t, m, claim)
	requests := 0
	w.refuse = func(kind, _ string) error {
		// The first write marks the claim, those after it ask for the size.
		if kind != "PersistentVolumeClaim" {
			return nil
		}
		if requests++; requests > 1 {
			return apierrors.NewForbidden(schema.GroupResource{Resource: "persistentvolumeclaims"}, "mlflow-pvc",
				errors.New("the storageclass that provisions the pvc must support resize"))
		}
		return nil
	}
	w.expect(fault{serves: true, migrates: true, condition: ConditionStorage, reason: ReasonExpansionRefused}, "must support resize")
	if !w.get("mlflow-pvc", claim) || claim.Labels[names.ComponentLabel] != ComponentName {
		t.Errorf("labels of the claim: %v", claim.Labels)
	}
}

// A CronJob that cannot be suspended starts Jobs: the server is not stopped for a migration that may not begin.
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
	w.expect(fault{serves: true, condition: ConditionCronJobs, reason: ReasonScheduledJobsFailed}, "mlflow-gc")
	if w.get("mlflow", d); *d.Spec.Replicas != 1 {
		t.Errorf("the server is stopped")
	}
	if c := w.condition(migration.ConditionMigration); c.Reason != migration.ReasonMigrationScalingDown || !strings.Contains(c.Message, "CronJobs to be suspended") {
		t.Errorf("Migration=%s %s: %s", c.Status, c.Reason, c.Message)
	}
}

// The server stops only after the running Job has ended.
func TestServerRunsUntilCronJobRunsEnd(t *testing.T) {
	m := mlflowWithAllChildren()
	m.Status.Version = "3.13.0"
	cron := renderedObject[batchv1.CronJob](t, m, "CronJob", "mlflow-gc")
	cron.UID = "cron"
	_, run := collectorOf(time.Minute)
	pod := onNode(livePod("collecting", map[string]string{"app": "mlflow-gc", jobUIDLabel: "run"}, corev1.PodRunning))
	d := renderedObject[appsv1.Deployment](t, m, "Deployment", "mlflow")
	w := newFixture(t, m, cron, run, pod, d)
	w.succeedCheck()
	if _, err := w.reconcileUntilStable(); err != nil {
		t.Fatal(err)
	}
	if w.get("mlflow", d); *d.Spec.Replicas != 1 || w.migrates() {
		t.Errorf("the server is stopped under the garbage collection: %d replicas", *d.Spec.Replicas)
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
	if w.get("mlflow", d); *d.Spec.Replicas != 0 || !w.migrates() {
		t.Errorf("nothing is migrated: %d replicas", *d.Spec.Replicas)
	}
}

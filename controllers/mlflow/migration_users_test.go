package mlflow

import (
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	k8slabels "k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
	"github.com/odh-platform/odh-platform-operator/controllers/mlflow/migration"
	"github.com/odh-platform/odh-platform-operator/pkg/names"
	"github.com/odh-platform/odh-platform-operator/pkg/objectmeta"
	"github.com/odh-platform/odh-platform-operator/test/mlflowtest"
)

// [mlflow-45] [D14]
func TestObserveCountsDatabaseUsers(t *testing.T) {
	deployment := func(desired, replicas int32, observedGeneration int64) *appsv1.Deployment {
		return &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Namespace: "opendatahub", Name: "mlflow", Generation: 3}, Spec: appsv1.DeploymentSpec{Replicas: &desired},
			Status: appsv1.DeploymentStatus{Replicas: replicas, ObservedGeneration: observedGeneration},
		}
	}
	gcCronJob := func(suspended *bool) *batchv1.CronJob {
		cron, _ := garbageCollectionRun(time.Minute)
		cron.Spec.Suspend = suspended
		return cron
	}
	withOwners := func(o client.Object, labels map[string]string, owners ...metav1.OwnerReference) client.Object {
		o.SetOwnerReferences(owners)
		o.SetLabels(k8slabels.Merge(o.GetLabels(), labels))
		return o
	}
	_, run := garbageCollectionRun(time.Minute)
	artifactsServer := deployment(1, 1, 3)
	artifactsServer.Name = "mlflow-artifacts"
	previous := metav1.OwnerReference{APIVersion: "mlflow.opendatahub.io/v1", Kind: "MLflow", Name: "mlflow", UID: "before", Controller: new(true)}
	of := func(app string) map[string]string { return map[string]string{"app": app} }
	for name, c := range map[string]struct {
		objects       []client.Object
		databaseUsers int32
		scaledDown    bool
		cronJobsBusy  bool
	}{
		"no objects exist":                              {nil, 0, true, false},
		"scaled to zero":                                {[]client.Object{deployment(0, 0, 3), gcCronJob(new(true))}, 0, true, false},
		"replica that is not ready":                     {[]client.Object{deployment(0, 1, 3)}, 1, true, false},
		"stale status of the Deployment":                {[]client.Object{deployment(0, 0, 2)}, 0, false, false},
		"replicas desired":                              {[]client.Object{deployment(1, 0, 3)}, 0, false, false},
		"pod missing from the status of the Deployment": {[]client.Object{deployment(0, 0, 3), livePod("a", of("mlflow"), corev1.PodRunning)}, 1, true, false},
		"pod that is counted as a replica":              {[]client.Object{deployment(0, 1, 3), livePod("a", of("mlflow"), corev1.PodRunning)}, 1, true, false},
		"pod that may start":                            {[]client.Object{onNode(livePod("a", of("mlflow"), corev1.PodPending))}, 1, true, false},
		"unscheduled pod":                               {[]client.Object{livePod("a", of("mlflow"), corev1.PodPending)}, 0, true, false},
		"terminating pod that never ran":                {[]client.Object{terminating(onNode(livePod("a", of("mlflow"), corev1.PodPending)))}, 0, true, false},
		"terminating pod that runs":                     {[]client.Object{terminating(onNode(livePod("a", of("mlflow"), corev1.PodRunning)))}, 1, true, false},
		"finished pods":                                 {[]client.Object{livePod("a", of("mlflow-gc"), corev1.PodSucceeded), livePod("b", of("mlflow"), corev1.PodFailed)}, 0, true, false},
		"running garbage collection":                    {[]client.Object{livePod("a", of("mlflow-gc"), corev1.PodRunning), livePod("b", of("mlflow"), corev1.PodRunning)}, 2, true, false},
		"active CronJob":                                {[]client.Object{gcCronJob(new(false))}, 0, true, true},
		"CronJob without suspend":                       {[]client.Object{gcCronJob(nil)}, 0, true, true},
		"CronJob of a user, and its Job":                {[]client.Object{withOwners(gcCronJob(nil), nil), run}, 0, true, false},
		"CronJob of a deleted MLflow":                   {[]client.Object{withOwners(gcCronJob(nil), names.Labels(ComponentName), previous)}, 0, true, true},
		"CronJob that a deleted MLflow left":            {[]client.Object{withOwners(gcCronJob(nil), names.Labels(ComponentName))}, 0, true, true},
		"artifacts server that a deleted MLflow left":   {[]client.Object{withOwners(artifactsServer.DeepCopy(), names.Labels(ComponentName))}, 1, false, false},
		"artifacts server of a user":                    {[]client.Object{artifactsServer}, 0, true, false},
		"foreign pods":                                  {[]client.Object{livePod("a", of("other"), corev1.PodRunning)}, 0, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			workloads := observeWorkloads(t, newObserver(t, nil, c.objects...), observedMLflow())
			if workloads.DatabaseUsers != c.databaseUsers || workloads.ScaledDown != c.scaledDown || workloads.CronJobsBusy() != c.cronJobsBusy {
				t.Errorf("got database users %d, scaled down %t, CronJobs busy %t", workloads.DatabaseUsers, workloads.ScaledDown, workloads.CronJobsBusy())
			}
		})
	}
}

func onNode(p *corev1.Pod) *corev1.Pod {
	p.Spec.NodeName = "node-a"
	return p
}

func terminating(p *corev1.Pod) *corev1.Pod {
	p.DeletionTimestamp, p.Finalizers = new(metav1.NewTime(midday)), []string{"example.com/held"}
	return p
}

// garbageCollectionRun returns the suspended CronJob of the garbage collection, and its Job of the given age.
func garbageCollectionRun(age time.Duration) (*batchv1.CronJob, *batchv1.Job) {
	cron := &batchv1.CronJob{ObjectMeta: metav1.ObjectMeta{Namespace: "opendatahub", Name: "mlflow-gc", UID: "cron", Labels: map[string]string{"app": "mlflow-gc"},
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(observedMLflow(), mlflowv1.GroupVersion.WithKind("MLflow"))}},
		Spec: batchv1.CronJobSpec{Suspend: new(true)}}
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "opendatahub", Name: "mlflow-gc-29000000", UID: "run",
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(cron, batchv1.SchemeGroupVersion.WithKind("CronJob"))}}}
	job.Status.StartTime = new(metav1.NewTime(midday.Add(-age)))
	return cron, job
}

// A pending pod with an affinity to the server could never run once the server is stopped, so its Job is deleted before the server is
// stopped. The message contains the pod and the cause.
func TestCronJobRunEndsBeforeServer(t *testing.T) {
	labels := map[string]string{"app": "mlflow-gc", jobUIDLabel: "run"}
	stuck := livePod("mlflow-gc-29000000-abcde", labels, corev1.PodPending)
	stuck.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable,
		Message: "0/3 nodes are available: 3 node(s) didn't match pod affinity rules."}}
	for name, c := range map[string]struct {
		age     time.Duration
		pods    []client.Object
		step    migration.Step
		message string
	}{
		"no pod yet":       {time.Minute, nil, migration.StepDeleteJob, "Deleted Job mlflow-gc-29000000, which never started,"},
		"unschedulable":    {time.Minute, []client.Object{stuck}, migration.StepDeleteJob, "pod mlflow-gc-29000000-abcde: the pod cannot be scheduled (nodes didn't match pod affinity rules)"},
		"running":          {time.Minute, []client.Object{onNode(livePod("gc", labels, corev1.PodRunning))}, migration.StepNone, "Waiting for Job mlflow-gc-29000000 to end before migration"},
		"pod is replaced":  {time.Minute, []client.Object{livePod("gc", labels, corev1.PodFailed)}, migration.StepNone, "Waiting for Job mlflow-gc-29000000 to end"},
		"exceeds deadline": {3 * time.Hour, []client.Object{onNode(livePod("gc", labels, corev1.PodRunning))}, migration.StepDeleteJob, "runs for longer than 2h0m0s"},
	} {
		t.Run(name, func(t *testing.T) {
			cron, job := garbageCollectionRun(c.age)
			r := newObserver(t, nil, append(c.pods, cron, job)...)
			d, err := r.planMigration(t.Context(), observedMLflow(), r.inputs())
			if err != nil || d.Workloads != migration.Drain || d.Step != c.step || !strings.Contains(d.Report.Message, c.message) {
				t.Errorf("got error %v, workloads %q, step %q: %s", err, d.Workloads, d.Step, d.Report.Message)
			}
		})
	}
	t.Run("the Job is deleted", func(t *testing.T) {
		cron, _ := garbageCollectionRun(time.Minute)
		r := newObserver(t, nil, cron, stuck)
		if d, err := r.planMigration(t.Context(), observedMLflow(), r.inputs()); err != nil || d.Step != migration.StepCreateJob {
			t.Errorf("a pod that never started blocks the migration: error %v, rule %q", err, d.Rule)
		}
	})
}

// An MLflow that was deleted with --cascade=orphan leaves objects that the next MLflow does not need. A CronJob or a server among them
// would use the database during a migration, so all are deleted. Copies with other names are kept.
func TestMigrationStartsAfterOrphanedObjectsAreDeleted(t *testing.T) {
	previous := mlflowtest.MLflow(mlflowtest.WithGarbageCollection, func(s *mlflowv1.MLflowSpec) {
		s.ArtifactsServer = &mlflowv1.ArtifactsServerConfig{Enabled: true}
	})
	var left, copies []client.Object
	for _, o := range renderObjects(t, previous, platformInputs["openshift"]) {
		if o.GetName() != "mlflow-gc" && o.GetName() != "mlflow-artifacts" || o.GetKind() == "HTTPRoute" { // the fake server does not list routes
			continue
		}
		o.SetOwnerReferences(nil)
		userCopy := o.DeepCopy()
		userCopy.SetName("copy-of-a-user")
		left, copies = append(left, o), append(copies, userCopy)
	}
	if len(left) < 5 {
		t.Fatalf("only %d objects are rendered", len(left))
	}
	w := newFixture(t, append(slices.Concat(left, copies), mlflowtest.MLflow())...)
	w.reconcileUntil("ready", workloads{}, migratedAndReady)
	for i, o := range left {
		key := client.ObjectKeyFromObject(o)
		if err := w.server.Get(t.Context(), key, objectmeta.New(o.GetObjectKind().GroupVersionKind())); !apierrors.IsNotFound(err) {
			t.Errorf("%s %s still exists, error %v, condition %+v", o.GetObjectKind().GroupVersionKind().Kind, key, err, w.condition(ConditionPruned))
		}
		if err := w.server.Get(t.Context(), client.ObjectKeyFromObject(copies[i]), objectmeta.New(o.GetObjectKind().GroupVersionKind())); err != nil {
			t.Errorf("the copy: %v", err)
		}
	}
}

package mlflow

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
	"github.com/odh-platform/odh-platform-operator/controllers/mlflow/migration"
	"github.com/odh-platform/odh-platform-operator/controllers/mlflow/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/names"
	"github.com/odh-platform/odh-platform-operator/pkg/servers"
	"github.com/odh-platform/odh-platform-operator/test/fakeapi"
	"github.com/odh-platform/odh-platform-operator/test/mlflowtest"
)

// observer is a controller before a fake API server that refuses to list a kind, if one is named.
func observer(t *testing.T, broken client.ObjectList, there ...client.Object) *mlflowReconciler {
	t.Helper()
	server := fake.NewClientBuilder().WithScheme(fakeapi.Scheme(mlflowv1.AddToScheme)).WithObjects(there...).WithIndex(&corev1.Event{}, "involvedObject.uid", involvedUID).WithInterceptorFuncs(interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if broken != nil && reflect.TypeOf(list) == reflect.TypeOf(broken) {
				return errors.New("not now")
			}
			return c.List(ctx, list, opts...)
		},
	}).Build()
	return &mlflowReconciler{
		Reconciler: servers.NewReconciler(server, server, server, nil, clocktesting.NewFakePassiveClock(midday)),
		inputs:     func() resources.Inputs { return platformInputs["plain"] },
	}
}

// involvedUID is the field by which the API server selects Events.
func involvedUID(o client.Object) []string {
	if e, ok := o.(*corev1.Event); ok {
		return []string{string(e.InvolvedObject.UID)}
	}
	return nil
}

// watched is the MLflow that the observer looks for.
func watched() *mlflowv1.MLflow {
	m := mlflowtest.MLflow(func(s *mlflowv1.MLflowSpec) {
		s.GarbageCollection = &mlflowv1.GarbageCollectionConfig{Schedule: "@daily"}
	})
	m.Generation = 2
	return m
}

func liveJob(name, uid string, changes ...func(*batchv1.Job)) *batchv1.Job {
	j := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{
		Namespace: "opendatahub", Name: name, UID: types.UID(uid), Labels: map[string]string{resources.LabelMigrationJob: "true", resources.LabelMigrationInstance: "mlflow"},
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(watched(), mlflowv1.GroupVersion.WithKind("MLflow"))},
	}}
	j.Spec.Template.Spec.Containers = []corev1.Container{{Name: resources.MigrationContainer, Image: "mlflow:v3"}}
	for _, change := range changes {
		change(j)
	}
	return j
}

func livePod(name string, labels map[string]string, phase corev1.PodPhase) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "opendatahub", Name: name, Labels: labels}, Status: corev1.PodStatus{Phase: phase}}
}

func observeWorkloads(t *testing.T, r *mlflowReconciler, m *mlflowv1.MLflow) *migration.Workloads {
	t.Helper()
	in := r.inputs()
	f := migration.FactsOf(m, in, midday)
	seen, err := r.observeWorkloads(t.Context(), m, in, &f)
	if err != nil {
		t.Fatal(err)
	}
	return seen
}

// countReads counts the reads from the API server since the last call.
type countReads struct {
	client.Reader
	reads int
}

func (c *countReads) Get(ctx context.Context, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	c.reads++
	return c.Reader.Get(ctx, key, o, opts...)
}

func (c *countReads) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	c.reads++
	return c.Reader.List(ctx, list, opts...)
}

// While the migration Job runs, each of its events costs two reads, and everything is read again after JobPollInterval.
func TestObserveReadsOnlyTheJobWhileItRuns(t *testing.T) {
	const all, ofJob = 6, 2
	job := liveJob("mlflow-mg-3140-g2", "current")
	running := livePod("migrates", map[string]string{jobUIDLabel: "current"}, corev1.PodRunning)
	running.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: resources.MigrationContainer, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}
	user := livePod("server", map[string]string{resources.LabelApp: "mlflow"}, corev1.PodRunning)
	for name, tc := range map[string]struct {
		outcome mlflowv1.MigrationOutcome
		objects []client.Object
		passed  time.Duration
		second  int
	}{
		"it runs":                        {mlflowv1.MigrationRunning, []client.Object{job, running}, migration.JobPollInterval - 1, ofJob},
		"it runs for long":               {mlflowv1.MigrationRunning, []client.Object{job, running}, migration.JobPollInterval, all},
		"it was not recorded as started": {"", []client.Object{job, running}, 0, all},
		"the server uses the database":   {mlflowv1.MigrationRunning, []client.Object{job, running, user}, 0, all},
		"there is no Job":                {mlflowv1.MigrationRunning, nil, 0, all},
		"the Job is foreign":             {mlflowv1.MigrationRunning, []client.Object{liveJob(job.Name, "foreign", unowned)}, 0, all},
	} {
		t.Run(name, func(t *testing.T) {
			r, m := observer(t, nil, tc.objects...), watched()
			m.Status.Migration = &mlflowv1.MigrationStatus{Outcome: tc.outcome}
			clk, reads := clocktesting.NewFakePassiveClock(midday), &countReads{Reader: r.APIReader}
			r.Clock, r.APIReader = clk, reads
			first := observeWorkloads(t, r, m)
			reads.reads = 0
			clk.SetTime(midday.Add(tc.passed))
			second := observeWorkloads(t, r, m)
			if reads.reads != tc.second {
				t.Errorf("%d reads, want %d", reads.reads, tc.second)
			}
			if !reflect.DeepEqual(first.Job, second.Job) || first.DatabaseIdle() != second.DatabaseIdle() {
				t.Errorf("seen %+v, then %+v", first, second)
			}
		})
	}
}

func TestObserveIgnoresForeignJobs(t *testing.T) {
	m := watched()
	foreign := liveJob("mlflow-mg-3140-g1", "foreign", func(j *batchv1.Job) { j.OwnerReferences = nil })
	finished := liveJob("mlflow-mg-3130-g1", "finished", func(j *batchv1.Job) { j.Status.Succeeded = 1 })
	older := liveJob("mlflow-mg-3130-g2", "older")
	unrelated := liveJob("nightly", "unrelated", func(j *batchv1.Job) { j.Labels = nil })
	seen := observeWorkloads(t, observer(t, nil, foreign, finished, older, unrelated), m)
	if seen.Job != nil || len(seen.OtherJobs) != 1 || seen.OtherJobs[0].Name != older.Name || seen.OtherJobs[0].Managed {
		t.Errorf("seen %+v", seen)
	}
	if !seen.DatabaseIdle() {
		t.Error("want the database idle without pods")
	}
	current := liveJob("mlflow-mg-3140-g2", "current", func(j *batchv1.Job) {
		j.Annotations, j.Status = map[string]string{resources.ForcedByAnnotation: "token"}, batchv1.JobStatus{Conditions: []batchv1.JobCondition{
			{Type: batchv1.JobFailed, Status: corev1.ConditionTrue, Reason: "BackoffLimitExceeded", Message: "too often"}}}
	})
	seen = observeWorkloads(t, observer(t, nil, current), m)
	if seen.Job == nil || seen.Job.Phase != migration.JobFailed || seen.Job.RequestHash != "token" || seen.Job.Failure.Message != "too often" || seen.Job.Image != "mlflow:v3" {
		t.Errorf("job %+v", seen.Job)
	}
}

// fromHere makes a Job one of this operator.
func fromHere(j *batchv1.Job) {
	j.Labels[names.OperatorLabel], j.Labels[names.ComponentLabel] = names.OperatorName, ComponentName
}

func unowned(j *batchv1.Job)  { j.OwnerReferences = nil }
func finished(j *batchv1.Job) { j.Status.Succeeded = 1 }

func TestJobOwnership(t *testing.T) {
	owners := func(refs ...metav1.OwnerReference) func(*batchv1.Job) {
		return func(j *batchv1.Job) { j.OwnerReferences = refs }
	}
	labelled := func(key, value string) func(*batchv1.Job) {
		return func(j *batchv1.Job) { j.Labels[key] = value }
	}
	before := metav1.OwnerReference{APIVersion: "mlflow.opendatahub.io/v1", Kind: "MLflow", Name: "mlflow", UID: "before", Controller: new(true)}
	const kinNone, kinOwn, kinLeft = "foreign", "its own", "left behind"
	for name, c := range map[string]struct {
		changes []func(*batchv1.Job)
		want    string
	}{
		"it controls it": {[]func(*batchv1.Job){fromHere}, kinOwn},
		"controlled, created by the legacy operator": {nil, kinOwn},
		"labels of the operator without owner":       {[]func(*batchv1.Job){fromHere, unowned}, kinLeft},
		"no owner, created by the legacy operator":   {[]func(*batchv1.Job){unowned}, kinNone},
		"created by another component":               {[]func(*batchv1.Job){fromHere, unowned, labelled(names.ComponentLabel, "other")}, kinNone},
		"instance label of another MLflow":           {[]func(*batchv1.Job){fromHere, unowned, labelled(resources.LabelMigrationInstance, "other")}, kinNone},
		"another object controls it": {[]func(*batchv1.Job){fromHere,
			owners(metav1.OwnerReference{APIVersion: "batch/v1", Kind: "CronJob", Name: "nightly", UID: "n", Controller: new(true)})}, kinNone},
		"another object owns it": {[]func(*batchv1.Job){fromHere,
			owners(metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "backup", UID: "b"})}, kinNone},
		"an earlier MLflow still controls it": {[]func(*batchv1.Job){fromHere, owners(before)}, kinLeft},
		"an earlier MLflow controls it, and another object owns it": {[]func(*batchv1.Job){fromHere,
			owners(before, metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "backup", UID: "b"})}, kinNone},
		"it owns it, and does not control it": {[]func(*batchv1.Job){fromHere,
			owners(metav1.OwnerReference{APIVersion: "mlflow.opendatahub.io/v1", Kind: "MLflow", Name: "mlflow", UID: watched().UID})}, kinNone},
		"an MLflow of another API controls it": {[]func(*batchv1.Job){fromHere,
			owners(metav1.OwnerReference{APIVersion: "example.com/v1", Kind: "MLflow", Name: "mlflow", UID: "x", Controller: new(true)})}, kinNone},
	} {
		t.Run(name, func(t *testing.T) {
			own, left := jobOwnership(liveJob("mlflow-mg-3140-g2", "a", c.changes...), watched())
			if own != (c.want == kinOwn) || left != (c.want == kinLeft) {
				t.Errorf("own %t, left behind %t, want %s", own, left, c.want)
			}
		})
	}
}

func TestObserveFindsOrphanedJobs(t *testing.T) {
	done := liveJob("mlflow-mg-3140-g2", "done", fromHere, unowned, finished)
	doneBefore := liveJob("mlflow-mg-3140-g1", "done-before", fromHere, unowned, finished)
	runs := liveJob("mlflow-mg-3140-g3", "runs", fromHere, unowned)
	seen := observeWorkloads(t, observer(t, nil, done, doneBefore, runs), watched())
	if seen.Job != nil || len(seen.OtherJobs) != 2 {
		t.Fatalf("job %+v, others %+v", seen.Job, seen.OtherJobs)
	}
	if o := seen.OtherJobs[0]; o.UID != "done" || !o.Orphaned || o.Terminating || o.Phase != migration.JobSucceeded {
		t.Errorf("left over %+v", o)
	}
	if o := seen.OtherJobs[1]; o.UID != "runs" || !o.Orphaned || o.Phase != migration.JobRunning {
		t.Errorf("left running %+v", o)
	}
	current := liveJob("mlflow-mg-3140-g2", "current", fromHere, unowned)
	seen = observeWorkloads(t, observer(t, nil, current), watched())
	if seen.Job != nil || len(seen.OtherJobs) != 1 || seen.OtherJobs[0].UID != "current" {
		t.Errorf("a Job that runs is waited for, whatever its name: %+v", seen)
	}
}

// [mlflow-45] [D14]
func TestObserveCountsDatabaseUsers(t *testing.T) {
	deployment := func(wanted, replicas int32, seen int64) *appsv1.Deployment {
		return &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Namespace: "opendatahub", Name: "mlflow", Generation: 3}, Spec: appsv1.DeploymentSpec{Replicas: &wanted},
			Status: appsv1.DeploymentStatus{Replicas: replicas, ObservedGeneration: seen},
		}
	}
	chore := func(suspended *bool) *batchv1.CronJob {
		return &batchv1.CronJob{ObjectMeta: metav1.ObjectMeta{Namespace: "opendatahub", Name: "mlflow-gc", Labels: map[string]string{"app": "mlflow-gc"}},
			Spec: batchv1.CronJobSpec{Suspend: suspended}}
	}
	of := func(app string) map[string]string { return map[string]string{"app": app} }
	for name, c := range map[string]struct {
		objects []client.Object
		busy    int32
		settled bool
		working bool
	}{
		"no objects exist":               {nil, 0, true, false},
		"stopped":                        {[]client.Object{deployment(0, 0, 3), chore(new(true))}, 0, true, false},
		"not ready counts":               {[]client.Object{deployment(0, 1, 3)}, 1, true, false},
		"stale status of the Deployment": {[]client.Object{deployment(0, 0, 2)}, 0, false, false},
		"replicas desired":               {[]client.Object{deployment(1, 0, 3)}, 0, false, false},
		"pod missing from the status of the Deployment": {[]client.Object{deployment(0, 0, 3), livePod("a", of("mlflow"), corev1.PodRunning)}, 1, true, false},
		"a pod and its replica":                         {[]client.Object{deployment(0, 1, 3), livePod("a", of("mlflow"), corev1.PodPending)}, 1, true, false},
		"a pod that may start":                          {[]client.Object{onNode(livePod("a", of("mlflow"), corev1.PodPending))}, 1, true, false},
		"a pod without a node":                          {[]client.Object{livePod("a", of("mlflow"), corev1.PodPending)}, 0, true, false},
		"terminating pod that never ran":                {[]client.Object{terminating(onNode(livePod("a", of("mlflow"), corev1.PodPending)))}, 0, true, false},
		"terminating pod that runs":                     {[]client.Object{terminating(onNode(livePod("a", of("mlflow"), corev1.PodRunning)))}, 1, true, false},
		"pods that have ended":                          {[]client.Object{livePod("a", of("mlflow-gc"), corev1.PodSucceeded), livePod("b", of("mlflow"), corev1.PodFailed)}, 0, true, false},
		"garbage collection at work":                    {[]client.Object{livePod("a", of("mlflow-gc"), corev1.PodRunning), livePod("b", of("mlflow"), corev1.PodRunning)}, 2, true, false},
		"a CronJob that may start":                      {[]client.Object{chore(new(false))}, 0, true, true},
		"CronJob without a status":                      {[]client.Object{chore(nil)}, 0, true, true},
		"foreign pods":                                  {[]client.Object{livePod("a", of("other"), corev1.PodRunning)}, 0, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			seen := observeWorkloads(t, observer(t, nil, c.objects...), watched())
			if seen.DatabaseUsers != c.busy || seen.ScaledDown != c.settled || seen.CronJobsBusy() != c.working {
				t.Errorf("busy %d, settled %t, working %t", seen.DatabaseUsers, seen.ScaledDown, seen.CronJobsBusy())
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

// collectorOf is the suspended CronJob of the garbage collection, and a Job of it that began before.
func collectorOf(began time.Duration) (*batchv1.CronJob, *batchv1.Job) {
	cron := &batchv1.CronJob{ObjectMeta: metav1.ObjectMeta{Namespace: "opendatahub", Name: "mlflow-gc", UID: "cron", Labels: map[string]string{"app": "mlflow-gc"}},
		Spec: batchv1.CronJobSpec{Suspend: new(true)}}
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "opendatahub", Name: "mlflow-gc-29000000", UID: "run",
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(cron, batchv1.SchemeGroupVersion.WithKind("CronJob"))}}}
	job.Status.StartTime = new(metav1.NewTime(midday.Add(-began)))
	return cron, job
}

// A pod that the affinity binds to the server, which is about to be stopped, could never run: its Job goes before the server
// does, and the message names pod and cause.
func TestCronJobRunEndsBeforeServer(t *testing.T) {
	labels := map[string]string{"app": "mlflow-gc", jobUIDLabel: "run"}
	stuck := livePod("mlflow-gc-29000000-abcde", labels, corev1.PodPending)
	stuck.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable,
		Message: "0/3 nodes are available: 3 node(s) didn't match pod affinity rules."}}
	for name, c := range map[string]struct {
		began time.Duration
		pods  []client.Object
		step  migration.Step
		says  string
	}{
		"no pod yet":       {time.Minute, nil, migration.StepDeleteJob, "Deleted Job mlflow-gc-29000000, which never started,"},
		"it cannot start":  {time.Minute, []client.Object{stuck}, migration.StepDeleteJob, "pod mlflow-gc-29000000-abcde: the pod cannot be scheduled (nodes didn't match pod affinity rules)"},
		"it works":         {time.Minute, []client.Object{onNode(livePod("gc", labels, corev1.PodRunning))}, migration.StepNone, "Waiting for Job mlflow-gc-29000000 to end before migration"},
		"between two pods": {time.Minute, []client.Object{livePod("gc", labels, corev1.PodFailed)}, migration.StepNone, "Waiting for Job mlflow-gc-29000000 to end"},
		"it hangs":         {3 * time.Hour, []client.Object{onNode(livePod("gc", labels, corev1.PodRunning))}, migration.StepDeleteJob, "runs for longer than 2h0m0s"},
	} {
		t.Run(name, func(t *testing.T) {
			cron, job := collectorOf(c.began)
			r := observer(t, nil, append(c.pods, cron, job)...)
			d, err := r.planMigration(t.Context(), watched(), r.inputs())
			if err != nil || d.Workloads != migration.Drain || d.Step != c.step || !strings.Contains(d.Report.Message, c.says) {
				t.Errorf("error %v, workloads %q, step %q: %s", err, d.Workloads, d.Step, d.Report.Message)
			}
		})
	}
	t.Run("the Job is gone", func(t *testing.T) {
		cron, _ := collectorOf(time.Minute)
		r := observer(t, nil, cron, stuck)
		if d, err := r.planMigration(t.Context(), watched(), r.inputs()); err != nil || d.Step != migration.StepCreateJob {
			t.Errorf("a pod that never ran is in the way: error %v, rule %q", err, d.Rule)
		}
	})
}

// [mlflow-44]
func TestObserveReturnsReadErrors(t *testing.T) {
	for name, c := range map[string]struct {
		broken client.ObjectList
		job    *batchv1.Job
		text   string
	}{
		"Jobs":               {&batchv1.JobList{}, nil, "listing Jobs: not now"},
		"the pods of a Job":  {&corev1.PodList{}, liveJob("mlflow-mg-3140-g2", "a"), "listing the pods of Job mlflow-mg-3140-g2: not now"},
		"other pods":         {&corev1.PodList{}, nil, "listing the pods that use the database: not now"},
		"the CronJobs of it": {&batchv1.CronJobList{}, nil, "listing CronJobs: not now"},
	} {
		t.Run(name, func(t *testing.T) {
			var there []client.Object
			if c.job != nil {
				there = append(there, c.job)
			}
			r, m := observer(t, c.broken, there...), watched()
			_, err := r.planMigration(t.Context(), m, r.inputs())
			if err == nil || err.Error() != c.text {
				t.Fatalf("error %v", err)
			}
			condition := m.Status.Conditions[len(m.Status.Conditions)-1]
			if condition.Type != migration.ConditionMigration || condition.Reason != migration.ReasonMigrationError || condition.Status != metav1.ConditionUnknown ||
				!strings.Contains(condition.Message, "Failed to reconcile migration: "+c.text) {
				t.Errorf("condition %+v", condition)
			}
		})
	}
}

// At rest, and after a failure that is recorded, nothing is read.
func TestPlanReadsNothingWhenIdle(t *testing.T) {
	m := watched()
	m.Status.Version = "3.14.0"
	r := observer(t, &batchv1.JobList{})
	if d, err := r.planMigration(t.Context(), m, r.inputs()); err != nil || d.Workloads != migration.RunAsSpecified {
		t.Errorf("decision %+v, error %v", d, err)
	}
}

// [BR-F3] A Job has no condition for pods that are refused.
func TestPodCreationError(t *testing.T) {
	job := liveJob("mlflow-mg", "job")
	refused := &corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: "opendatahub", Name: "e"}, Reason: "FailedCreate", LastTimestamp: metav1.NewTime(midday),
		Message: `pods "mlflow-mg-x" is forbidden: exceeded quota: tight`, InvolvedObject: corev1.ObjectReference{Name: "mlflow-mg", UID: "job"}}
	for name, c := range map[string]struct {
		event *corev1.Event
		want  string
	}{
		"refused":        {refused, "pods cannot be created: exceeded quota: tight"},
		"of another Job": {func() *corev1.Event { e := refused.DeepCopy(); e.InvolvedObject.UID = "other"; return e }(), ""},
		"something else": {func() *corev1.Event { e := refused.DeepCopy(); e.Reason = "SuccessfulCreate"; return e }(), ""},
	} {
		got, err := observer(t, nil, job, c.event).podCreationError(t.Context(), job)
		if err != nil || got != c.want {
			t.Errorf("%s: podCreationError returned %q, error %v", name, got, err)
		}
	}
}

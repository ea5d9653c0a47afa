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

// newObserver returns a reconciler whose API server fails to list the type of failingList, unless it is nil.
func newObserver(t *testing.T, failingList client.ObjectList, objects ...client.Object) *mlflowReconciler {
	t.Helper()
	server := fake.NewClientBuilder().WithScheme(fakeapi.Scheme(mlflowv1.AddToScheme)).WithObjects(objects...).WithIndex(&corev1.Event{}, "involvedObject.uid", involvedUID).WithInterceptorFuncs(interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if failingList != nil && reflect.TypeOf(list) == reflect.TypeOf(failingList) {
				return errors.New("connection refused")
			}
			return c.List(ctx, list, opts...)
		},
	}).Build()
	return &mlflowReconciler{
		Reconciler: servers.NewReconciler(server, server, server, nil, clocktesting.NewFakePassiveClock(midday)),
		inputs:     func() resources.Inputs { return platformInputs["plain"] },
	}
}

// involvedUID returns the value of the field involvedObject.uid, by which the API server selects Events.
func involvedUID(o client.Object) []string {
	if e, ok := o.(*corev1.Event); ok {
		return []string{string(e.InvolvedObject.UID)}
	}
	return nil
}

// observedMLflow returns the MLflow whose workloads the tests observe.
func observedMLflow() *mlflowv1.MLflow {
	m := mlflowtest.MLflow(func(s *mlflowv1.MLflowSpec) {
		s.GarbageCollection = &mlflowv1.GarbageCollectionConfig{Schedule: "@daily"}
	})
	m.Generation = 2
	return m
}

func liveJob(name, uid string, changes ...func(*batchv1.Job)) *batchv1.Job {
	j := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{
		Namespace: "opendatahub", Name: name, UID: types.UID(uid), Labels: map[string]string{resources.LabelMigrationJob: "true", resources.LabelMigrationInstance: "mlflow"},
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(observedMLflow(), mlflowv1.GroupVersion.WithKind("MLflow"))},
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
	workloads, err := r.observeWorkloads(t.Context(), m, in, &f)
	if err != nil {
		t.Fatal(err)
	}
	return workloads
}

// countingReader counts the reads from the API server.
type countingReader struct {
	client.Reader
	reads int
}

func (c *countingReader) Get(ctx context.Context, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	c.reads++
	return c.Reader.Get(ctx, key, o, opts...)
}

func (c *countingReader) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	c.reads++
	return c.Reader.List(ctx, list, opts...)
}

// While the migration Job runs, a reconcile sends two reads. After JobPollInterval, all workloads are read again.
func TestObserveReadsOnlyTheJobWhileItRuns(t *testing.T) {
	const allReads, jobReads = 6, 2
	job := liveJob("mlflow-mg-3140-g2", "current")
	running := livePod("migrates", map[string]string{jobUIDLabel: "current"}, corev1.PodRunning)
	running.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: resources.MigrationContainer, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}
	user := livePod("server", map[string]string{resources.LabelApp: "mlflow"}, corev1.PodRunning)
	for name, tc := range map[string]struct {
		outcome mlflowv1.MigrationOutcome
		objects []client.Object
		elapsed time.Duration
		want    int // reads of the second observation
	}{
		"the Job runs":                 {mlflowv1.MigrationRunning, []client.Object{job, running}, migration.JobPollInterval - 1, jobReads},
		"JobPollInterval has passed":   {mlflowv1.MigrationRunning, []client.Object{job, running}, migration.JobPollInterval, allReads},
		"no Job is recorded":           {"", []client.Object{job, running}, 0, allReads},
		"the server uses the database": {mlflowv1.MigrationRunning, []client.Object{job, running, user}, 0, allReads},
		"the Job does not exist":       {mlflowv1.MigrationRunning, nil, 0, allReads},
		"the Job is foreign":           {mlflowv1.MigrationRunning, []client.Object{liveJob(job.Name, "foreign", unowned)}, 0, allReads},
	} {
		t.Run(name, func(t *testing.T) {
			r, m := newObserver(t, nil, tc.objects...), observedMLflow()
			m.Status.Migration = &mlflowv1.MigrationStatus{Outcome: tc.outcome}
			clk, reads := clocktesting.NewFakePassiveClock(midday), &countingReader{Reader: r.APIReader}
			r.Clock, r.APIReader = clk, reads
			first := observeWorkloads(t, r, m)
			reads.reads = 0
			clk.SetTime(midday.Add(tc.elapsed))
			second := observeWorkloads(t, r, m)
			if reads.reads != tc.want {
				t.Errorf("got %d reads, want %d", reads.reads, tc.want)
			}
			if !reflect.DeepEqual(first.Job, second.Job) || first.DatabaseIdle() != second.DatabaseIdle() {
				t.Errorf("the first observation is %+v, the second %+v", first, second)
			}
		})
	}
}

func TestObserveIgnoresForeignJobs(t *testing.T) {
	m := observedMLflow()
	foreign := liveJob("mlflow-mg-3140-g1", "foreign", func(j *batchv1.Job) { j.OwnerReferences = nil })
	finished := liveJob("mlflow-mg-3130-g1", "finished", func(j *batchv1.Job) { j.Status.Succeeded = 1 })
	older := liveJob("mlflow-mg-3130-g2", "older")
	unrelated := liveJob("nightly", "unrelated", func(j *batchv1.Job) { j.Labels = nil })
	workloads := observeWorkloads(t, newObserver(t, nil, foreign, finished, older, unrelated), m)
	if workloads.Job != nil || len(workloads.OtherJobs) != 1 || workloads.OtherJobs[0].Name != older.Name || workloads.OtherJobs[0].Managed {
		t.Errorf("unexpected workloads: %+v", workloads)
	}
	if !workloads.DatabaseIdle() {
		t.Error("want the database idle without pods")
	}
	current := liveJob("mlflow-mg-3140-g2", "current", func(j *batchv1.Job) {
		j.Annotations, j.Status = map[string]string{resources.ForcedByAnnotation: "token"}, batchv1.JobStatus{Conditions: []batchv1.JobCondition{
			{Type: batchv1.JobFailed, Status: corev1.ConditionTrue, Reason: "BackoffLimitExceeded", Message: "too often"}}}
	})
	workloads = observeWorkloads(t, newObserver(t, nil, current), m)
	if workloads.Job == nil || workloads.Job.Phase != migration.JobFailed || workloads.Job.RequestHash != "token" || workloads.Job.Failure.Message != "too often" || workloads.Job.Image != "mlflow:v3" {
		t.Errorf("got job %+v", workloads.Job)
	}
}

// withOperatorLabels adds the labels of this operator to a Job.
func withOperatorLabels(j *batchv1.Job) {
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
	previous := metav1.OwnerReference{APIVersion: "mlflow.opendatahub.io/v1", Kind: "MLflow", Name: "mlflow", UID: "before", Controller: new(true)}
	const foreign, owned, orphaned = "foreign", "owned", "orphaned"
	for name, c := range map[string]struct {
		changes []func(*batchv1.Job)
		want    string
	}{
		"controlled by the MLflow":                   {[]func(*batchv1.Job){withOperatorLabels}, owned},
		"controlled, created by the legacy operator": {nil, owned},
		"labels of the operator without owner":       {[]func(*batchv1.Job){withOperatorLabels, unowned}, orphaned},
		"no owner, created by the legacy operator":   {[]func(*batchv1.Job){unowned}, foreign},
		"created by another component":               {[]func(*batchv1.Job){withOperatorLabels, unowned, labelled(names.ComponentLabel, "other")}, foreign},
		"instance label of another MLflow":           {[]func(*batchv1.Job){withOperatorLabels, unowned, labelled(resources.LabelMigrationInstance, "other")}, foreign},
		"controlled by a CronJob": {[]func(*batchv1.Job){withOperatorLabels,
			owners(metav1.OwnerReference{APIVersion: "batch/v1", Kind: "CronJob", Name: "nightly", UID: "n", Controller: new(true)})}, foreign},
		"owned by a ConfigMap": {[]func(*batchv1.Job){withOperatorLabels,
			owners(metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "backup", UID: "b"})}, foreign},
		"controlled by a deleted MLflow": {[]func(*batchv1.Job){withOperatorLabels, owners(previous)}, orphaned},
		"controlled by a deleted MLflow and owned by a ConfigMap": {[]func(*batchv1.Job){withOperatorLabels,
			owners(previous, metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "backup", UID: "b"})}, foreign},
		"owned but not controlled by the MLflow": {[]func(*batchv1.Job){withOperatorLabels,
			owners(metav1.OwnerReference{APIVersion: "mlflow.opendatahub.io/v1", Kind: "MLflow", Name: "mlflow", UID: observedMLflow().UID})}, foreign},
		"controlled by an MLflow of another API group": {[]func(*batchv1.Job){withOperatorLabels,
			owners(metav1.OwnerReference{APIVersion: "example.com/v1", Kind: "MLflow", Name: "mlflow", UID: "x", Controller: new(true)})}, foreign},
	} {
		t.Run(name, func(t *testing.T) {
			isOwned, isOrphaned := jobOwnership(liveJob("mlflow-mg-3140-g2", "a", c.changes...), observedMLflow())
			if isOwned != (c.want == owned) || isOrphaned != (c.want == orphaned) {
				t.Errorf("owned %t, orphaned %t, want %s", isOwned, isOrphaned, c.want)
			}
		})
	}
}

func TestObserveFindsOrphanedJobs(t *testing.T) {
	current := liveJob("mlflow-mg-3140-g2", "current-finished", withOperatorLabels, unowned, finished)
	previous := liveJob("mlflow-mg-3140-g1", "previous", withOperatorLabels, unowned, finished)
	next := liveJob("mlflow-mg-3140-g3", "next", withOperatorLabels, unowned)
	workloads := observeWorkloads(t, newObserver(t, nil, current, previous, next), observedMLflow())
	if workloads.Job != nil || len(workloads.OtherJobs) != 2 {
		t.Fatalf("got job %+v, others %+v", workloads.Job, workloads.OtherJobs)
	}
	if o := workloads.OtherJobs[0]; o.UID != "current-finished" || !o.Orphaned || o.Terminating || o.Phase != migration.JobSucceeded {
		t.Errorf("finished orphaned Job: %+v", o)
	}
	if o := workloads.OtherJobs[1]; o.UID != "next" || !o.Orphaned || o.Phase != migration.JobRunning {
		t.Errorf("running orphaned Job: %+v", o)
	}
	current = liveJob("mlflow-mg-3140-g2", "current", withOperatorLabels, unowned)
	workloads = observeWorkloads(t, newObserver(t, nil, current), observedMLflow())
	if workloads.Job != nil || len(workloads.OtherJobs) != 1 || workloads.OtherJobs[0].UID != "current" {
		t.Errorf("got %+v, want the running orphaned Job with the desired name among the other Jobs", workloads)
	}
}

// [mlflow-45] [D14]
func TestObserveCountsDatabaseUsers(t *testing.T) {
	deployment := func(desired, replicas int32, observedGeneration int64) *appsv1.Deployment {
		return &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Namespace: "opendatahub", Name: "mlflow", Generation: 3}, Spec: appsv1.DeploymentSpec{Replicas: &desired},
			Status: appsv1.DeploymentStatus{Replicas: replicas, ObservedGeneration: observedGeneration},
		}
	}
	gcCronJob := func(suspended *bool) *batchv1.CronJob {
		return &batchv1.CronJob{ObjectMeta: metav1.ObjectMeta{Namespace: "opendatahub", Name: "mlflow-gc", Labels: map[string]string{"app": "mlflow-gc"}},
			Spec: batchv1.CronJobSpec{Suspend: suspended}}
	}
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
	cron := &batchv1.CronJob{ObjectMeta: metav1.ObjectMeta{Namespace: "opendatahub", Name: "mlflow-gc", UID: "cron", Labels: map[string]string{"app": "mlflow-gc"}},
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

// [mlflow-44]
func TestObserveReturnsReadErrors(t *testing.T) {
	for name, c := range map[string]struct {
		failingList client.ObjectList
		job         *batchv1.Job
		text        string
	}{
		"Jobs":              {&batchv1.JobList{}, nil, "listing Jobs: connection refused"},
		"the pods of a Job": {&corev1.PodList{}, liveJob("mlflow-mg-3140-g2", "a"), "listing the pods of Job mlflow-mg-3140-g2: connection refused"},
		"other pods":        {&corev1.PodList{}, nil, "listing the pods that use the database: connection refused"},
		"CronJobs":          {&batchv1.CronJobList{}, nil, "listing CronJobs: connection refused"},
	} {
		t.Run(name, func(t *testing.T) {
			var objects []client.Object
			if c.job != nil {
				objects = append(objects, c.job)
			}
			r, m := newObserver(t, c.failingList, objects...), observedMLflow()
			_, err := r.planMigration(t.Context(), m, r.inputs())
			if err == nil || err.Error() != c.text {
				t.Fatalf("got error %v", err)
			}
			condition := m.Status.Conditions[len(m.Status.Conditions)-1]
			if condition.Type != migration.ConditionMigration || condition.Reason != migration.ReasonMigrationError || condition.Status != metav1.ConditionUnknown ||
				!strings.Contains(condition.Message, "Failed to reconcile migration: "+c.text) {
				t.Errorf("got condition %+v", condition)
			}
		})
	}
}

// Without a requested migration, no workload is read.
func TestPlanReadsNothingWhenIdle(t *testing.T) {
	m := observedMLflow()
	m.Status.Version = "3.14.0"
	r := newObserver(t, &batchv1.JobList{})
	if d, err := r.planMigration(t.Context(), m, r.inputs()); err != nil || d.Workloads != migration.RunAsSpecified {
		t.Errorf("got decision %+v, error %v", d, err)
	}
}

// [BR-F3] The cause is read from Events, because a Job has no condition for pods that cannot be created.
func TestPodCreationError(t *testing.T) {
	job := liveJob("mlflow-mg", "job")
	failedCreate := &corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: "opendatahub", Name: "e"}, Reason: "FailedCreate", LastTimestamp: metav1.NewTime(midday),
		Message: `pods "mlflow-mg-x" is forbidden: exceeded quota: tight`, InvolvedObject: corev1.ObjectReference{Name: "mlflow-mg", UID: "job"}}
	for name, c := range map[string]struct {
		event *corev1.Event
		want  string
	}{
		"FailedCreate":         {failedCreate, "pods cannot be created: exceeded quota: tight"},
		"Event of another Job": {func() *corev1.Event { e := failedCreate.DeepCopy(); e.InvolvedObject.UID = "other"; return e }(), ""},
		"other reason":         {func() *corev1.Event { e := failedCreate.DeepCopy(); e.Reason = "SuccessfulCreate"; return e }(), ""},
	} {
		got, err := newObserver(t, nil, job, c.event).podCreationError(t.Context(), job)
		if err != nil || got != c.want {
			t.Errorf("%s: podCreationError returned %q, error %v", name, got, err)
		}
	}
}

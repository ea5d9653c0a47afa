package mlflow

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

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

// Within JobPollInterval after the database was idle, an observation reads only the migration Job and its pods, if the Job is
// recorded and exists.
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
	r := newObserver(t, nil)
	reads := &countingReader{Reader: r.APIReader}
	r.APIReader = reads
	if d, err := r.planMigration(t.Context(), m, r.inputs()); err != nil || d.Workloads != migration.RunAsSpecified || reads.reads != 0 {
		t.Errorf("got decision %+v, error %v, %d reads", d, err, reads.reads)
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

package migration

import (
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
	"github.com/odh-platform/odh-platform-operator/controllers/mlflow/resources"
)

var (
	anyVersion = rapid.SampledFrom([]string{"", "3.13.0", "3.14.0", "3.15.0", "nightly"})
	anyHash    = rapid.SampledFrom([]string{"", "", "a", "b"})
	anySetting = rapid.SampledFrom([]string{"here", "there"})
	anyUID     = rapid.SampledFrom([]types.UID{"", "one", "two"})
)

func anyJob(t *rapid.T, name string) JobState {
	return JobState{
		Name: name, UID: anyUID.Draw(t, "uid"),
		Phase:   rapid.SampledFrom([]jobPhase{JobRunning, JobSucceeded, JobFailed}).Draw(t, "phase"),
		Managed: rapid.Bool().Draw(t, "managed"), Terminating: rapid.Bool().Draw(t, "terminating"), Started: rapid.Bool().Draw(t, "started"),
		RequestHash: anyHash.Draw(t, "request hash"), Image: anySetting.Draw(t, "job image"),
		FailedAt:    noon.Add(-time.Duration(rapid.IntRange(0, 300).Draw(t, "failed ago")) * time.Second),
		ExitCode:    rapid.SampledFrom([]int32{0, resources.ExitNewerDatabase}).Draw(t, "code"),
		ImageReport: resources.ImageReport{MLflow: "3.18.0", Schema: anySetting.Draw(t, "schema"), Database: anySetting.Draw(t, "database")},
		Failure:     Failure{Terminal: rapid.Bool().Draw(t, "terminal"), Message: "it broke"},
	}
}

func anyFacts(t *rapid.T) *Facts {
	f := &Facts{
		Now: noon, Generation: rapid.Int64Range(1, 2).Draw(t, "generation"), Supported: "3.14.0",
		Recorded: anyVersion.Draw(t, "recorded"), Always: rapid.Bool().Draw(t, "always"), Force: anyHash.Draw(t, "force"),
		Image: anySetting.Draw(t, "image"), Stores: anySetting.Draw(t, "stores"), JobName: "current", Observed: &Workloads{},
		Record: mlflowv1.MigrationStatus{
			Outcome: rapid.SampledFrom([]mlflowv1.MigrationOutcome{"", running, pending, failed, done}).Draw(t, "outcome"),
			JobUID:  string(anyUID.Draw(t, "recorded uid")), Generation: rapid.Int64Range(0, 2).Draw(t, "recorded generation"),
			Version: anyVersion.Draw(t, "recorded version"), Image: anySetting.Draw(t, "recorded image"),
			Stores: anySetting.Draw(t, "recorded stores"), Force: anyHash.Draw(t, "recorded force"),
		},
	}
	if rapid.Bool().Draw(t, "condition") {
		f.Condition = &metav1.Condition{
			ObservedGeneration: rapid.Int64Range(0, 2).Draw(t, "condition generation"), Message: "as before",
			Status: rapid.SampledFrom([]metav1.ConditionStatus{"True", "False", "Unknown"}).Draw(t, "status"),
			Reason: rapid.SampledFrom([]string{ReasonMigrationRunning, ReasonMigrationFailed, ReasonMigrationSucceeded, ReasonMigrationRetrying,
				ReasonForceMigrationRunning, ReasonForceMigrationScalingDown, ReasonForceMigrationRestart, ReasonDowngradeRefused, ReasonMigrationError, ReasonMigrationCheckFailed}).Draw(t, "reason"),
		}
	}
	if rapid.Bool().Draw(t, "current job") {
		j := anyJob(t, f.JobName)
		f.Observed.Job = &j
	} else if rapid.Bool().Draw(t, "orphaned finished job") {
		j := anyJob(t, f.JobName)
		j.Orphaned = true
		if j.Phase == JobRunning {
			j.Phase = JobFailed
		}
		f.Observed.OtherJobs = append(f.Observed.OtherJobs, j)
	}
	for range rapid.IntRange(0, 2).Draw(t, "other jobs") {
		j := anyJob(t, "older")
		j.Phase, j.Orphaned = JobRunning, rapid.Bool().Draw(t, "orphaned")
		f.Observed.OtherJobs = append(f.Observed.OtherJobs, j)
	}
	f.Observed.CronJobsActive, f.Observed.ServerReady = rapid.Bool().Draw(t, "cron jobs active"), rapid.Bool().Draw(t, "server ready")
	for range rapid.IntRange(0, 2).Draw(t, "cron job runs") {
		c := anyJob(t, "mlflow-gc")
		c.Phase, c.StartedAt = JobRunning, rapid.SampledFrom([]time.Time{noon, noon.Add(-2 * cronJobDeadline)}).Draw(t, "started at")
		f.Observed.CronJobRuns = append(f.Observed.CronJobRuns, c)
	}
	f.Observed.ServerEnabled = rapid.Bool().Draw(t, "server enabled")
	if rapid.Bool().Draw(t, "check job") {
		c := anyJob(t, "check")
		c.RequestHash = rapid.SampledFrom([]string{f.checkHash(), "other"}).Draw(t, "check hash")
		f.Observed.Check = &c
	}
	f.Observed.DatabaseUsers, f.Observed.ScaledDown = rapid.Int32Range(0, 2).Draw(t, "database users"), rapid.Bool().Draw(t, "scaled down")
	return f
}

// checkDecision checks that a decision is complete and consistent: rule, step, report and requeue.
func checkDecision(t *rapid.T, f *Facts, d Decision) {
	if d.Rule == "" || d.Workloads == "" || d.Step == StepObserve {
		t.Fatalf("incomplete decision: %+v", d)
	}
	refusesDowngrade := d.Report != nil && d.Report.Reason == ReasonDowngradeRefused
	if refusesDowngrade && (d.Workloads != KeepRunning || d.Step != StepNone || d.Record != nil) {
		t.Fatalf("the decision refuses the downgrade and changes more than the report: %+v", d)
	}
	if d.Workloads == RunAsSpecified && d.Step != StepNone {
		t.Fatalf("the decision has a step while the server runs: %+v", d)
	}
	if (d.Step == StepDeleteJob) != (d.Job != nil) {
		t.Fatalf("step %q with Job %v", d.Step, d.Job)
	}
	if !d.ContinuesRollout() && d.Step != StepRemoveAnnotation && d.Report == nil {
		t.Fatalf("the server is stopped without a report: %+v", d)
	}
	final := d.Workloads == RunAsSpecified || d.Report != nil && d.Report.Status == metav1.ConditionFalse
	if !final && d.RequeueAfter <= 0 {
		t.Fatalf("the decision is not final and has no requeue: %+v", d)
	}
	if d.Workloads == RunAsSpecified && f.requested() && (d.Report == nil || d.Report.Status != unknown) {
		t.Fatalf("the migration is reported as successful before the server is ready: %+v", d)
	}
}

// checkSafety checks that at most one migration Job runs, never together with a server; that a migration Job starts only on request and is
// not interrupted; and that a server is stopped only after a successful check and while no Job of a CronJob runs.
func checkSafety(t *rapid.T, f *Facts, d Decision) {
	unobservedFacts := *f
	unobservedFacts.Observed = nil
	early := Decide(&unobservedFacts)
	if d.Workloads == ScaleToZero && early.Step == StepObserve && f.Observed.CronJobsBusy() {
		t.Fatalf("the server is stopped while Jobs of CronJobs run: %+v", d)
	}
	if d.Workloads == ScaleToZero && early.Step == StepObserve && f.needsCheck() {
		t.Fatalf("the server is stopped without a successful check: %+v", d)
	}
	switch d.Step {
	case StepCreateCheckJob:
		if !f.Observed.ServerEnabled || f.Observed.Check != nil || d.CheckHash != f.checkHash() {
			t.Fatalf("unexpected check Job: %+v", d)
		}
	case StepCreateJob:
		if f.Observed.Job != nil || len(f.Observed.OtherJobs) > 0 || !f.Observed.DatabaseIdle() || !f.requested() {
			t.Fatalf("unexpected migration Job: %+v", d)
		}
		if d.Record == nil || d.Record.Force != f.Force {
			t.Fatalf("a migration Job is created without a record: %+v", d)
		}
	case StepDeleteJob:
		expired := slices.ContainsFunc(f.Observed.CronJobRuns, func(c JobState) bool { return f.Now.Sub(c.StartedAt) > cronJobDeadline && c == *d.Job })
		if f.Observed.Check != nil && d.Job == f.Observed.Check {
			break // a check changes nothing
		}
		if d.Job.Phase == JobRunning && d.Job.Started && !expired || d.Job.Terminating {
			t.Fatalf("a running or terminating Job is deleted: %+v", d.Job)
		}
	case StepRemoveAnnotation:
		if f.Force == "" || !f.satisfiesRequest(f.Observed.Job) {
			t.Fatalf("the annotation is removed before its migration has finished: %+v", d)
		}
	case StepNone, StepObserve:
	}
}

func TestDecisionsAreSafe(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := anyFacts(t)
		d := Decide(f)
		checkDecision(t, f, d)
		checkSafety(t, f, d)
		unobservedFacts := *f
		unobservedFacts.Observed = nil
		if early := Decide(&unobservedFacts); early.Step != StepObserve && early.Rule != d.Rule {
			t.Fatalf("rule %q matches without an observation, and %q with it", early.Rule, d.Rule)
		}
	})
}

func TestMigrationRequested(t *testing.T) {
	for name, c := range map[string]struct {
		facts *Facts
		want  bool
	}{
		"[mlflow-36] empty version":                    {factsOf(), true},
		"[mlflow-36] equal version":                    {factsOf(withVersion("3.14.0")), false},
		"[mlflow-36] older version":                    {factsOf(withVersion("3.13.0")), true},
		"[mlflow-36] Always":                           {factsOf(withVersion("3.14.0"), always), true},
		"[mlflow-36] Always with success":              {factsOf(withVersion("3.14.0"), always, withCondition("True", ReasonMigrationSucceeded, 2)), false},
		"[mlflow-36] Always after a previous success":  {factsOf(withVersion("3.14.0"), always, withCondition("True", ReasonMigrationSucceeded, 1)), true},
		"[mlflow-36] older version despite a success":  {factsOf(withVersion("3.13.0"), withCondition("True", ReasonMigrationSucceeded, 2)), true},
		"[mlflow-36] False of this generation":         {factsOf(withVersion("3.14.0"), withCondition("False", ReasonMigrationFailed, 2)), true},
		"[mlflow-36] Unknown of this generation":       {factsOf(withVersion("3.14.0"), withCondition("Unknown", ReasonMigrationRunning, 2)), true},
		"[mlflow-36] Unknown of a previous generation": {factsOf(withVersion("3.14.0"), withCondition("Unknown", ReasonMigrationRunning, 1)), false},
		"[mlflow-36] annotation":                       {factsOf(withVersion("3.14.0"), withForce("a")), true},
		"refused downgrade":                            {factsOf(withVersion("3.14.0"), withCondition("False", ReasonDowngradeRefused, 2)), false},
		"stores differ from the migrated ones":         {factsOf(withVersion("3.14.0"), withOutcome(done, func(r *mlflowv1.MigrationStatus) { r.Stores = "there" })), true},
		"stores equal the migrated ones":               {factsOf(withVersion("3.14.0"), withOutcome(done)), false},
		"record without stores":                        {factsOf(withVersion("3.14.0"), withOutcome(done, func(r *mlflowv1.MigrationStatus) { r.Stores = "" })), false},
		"record of an unfinished migration":            {factsOf(withVersion("3.14.0"), withOutcome(running)), true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := c.facts.requested(); got != c.want {
				t.Errorf("requested %t, want %t", got, c.want)
			}
		})
	}
}

func TestOlderVersionComparesReleases(t *testing.T) { // [mlflow-39]
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{"3.14.0", "3.15.0", true}, {"3.14.0", "v3.14.1", true}, {"3.9.0", "3.14.0", true}, {"3.14.0", "3.14.0", false}, {"3.14.0", "3.13.9", false},
		{"3.14.0", "nightly", false}, {"nightly", "3.14.0", false}, {"3.14.0", "", false}, {"3.14.0-rc.1", "3.14.0", true},
	} {
		if got := olderVersion(c.a, c.b); got != c.want {
			t.Errorf("olderVersion(%q, %q) = %t, want %t", c.a, c.b, got, c.want)
		}
	}
}

package mlflow

import (
	"fmt"
	"time"

	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
)

// What the workloads of the server shall do.
type serving string

const (
	// serve: as the spec says.
	serve serving = "serve"
	// drain: no CronJob that starts, and the Deployment stays as it is: its server runs until the Jobs beside it have ended,
	// which may need it, and whose pods may be bound to its node.
	drain serving = "drain"
	// standDown: no replica, and no CronJob that starts.
	standDown serving = "stand down"
	// leaveAlone: the Deployment and the CronJobs stay as they are, whatever they are.
	leaveAlone serving = "leave alone"
)

// step is the one thing that a decision does beside that.
type step string

const (
	stepNone   step = ""
	stepLook   step = "look at the cluster"
	stepCreate step = "create the Job"
	stepDelete step = "delete a Job"
	stepUnmark step = "remove the annotation"
)

const (
	// retryDelay is the pause after a failure that may go away by itself.
	retryDelay = 2 * time.Minute
	// recreateDelay is the pause between deleting a failed Job and making the next.
	recreateDelay = 2 * time.Second
	// watchDelay is how often an unfinished Job is looked at: a pod that waits for something causes no event.
	watchDelay = 30 * time.Second
	// drainDelay is how often pods are counted that still use the database: their end causes no event.
	drainDelay = 5 * time.Second
	// fallbackDelay is for what an event reports long before.
	fallbackDelay = 5 * time.Minute
)

// migrationDecision is what one pass does about the migration.
type migrationDecision struct {
	// Rule is the name of the rule that decided.
	Rule string
	// Workloads says what becomes of server and CronJobs.
	Workloads serving
	// Serving: the server is ready while the Jobs beside it end.
	Serving bool
	// Step is done after the objects are applied. Job is the Job that it is about.
	Step step
	Job  *migrationJobState
	// Report is what the conditions say; nil leaves them to the rollout.
	Report *migrationReport
	// Record replaces what is written down; nil leaves it.
	Record *mlflowv1.MigrationStatus
	// Retry is when to look again at the latest; zero waits for an event.
	Retry time.Duration
}

// rolls reports that the pass goes on to the rollout of the server.
func (d *migrationDecision) rolls() bool { return d.Workloads == serve || d.Workloads == leaveAlone }

// migrationRule is one line of the state machine.
type migrationRule struct {
	name string
	when func(*migrationFacts) bool
	then func(*migrationFacts) migrationDecision
}

// decideMigration returns what the first rule that fits says. The last rule fits always. Whatever stops the server stops the
// Jobs beside it first.
func decideMigration(f *migrationFacts) migrationDecision {
	for _, rule := range migrationRules {
		if rule.when(f) {
			d := rule.then(f)
			d.Rule = rule.name
			if d.Workloads == standDown && f.Live != nil && f.Live.working() {
				d.Workloads, d.Serving = drain, f.Live.Serving
			}
			return d
		}
	}
	return migrationDecision{} // not reached, see the test of the last rule
}

// migrationRules are the state machine. Rules above "look" need nothing but the object, so that an object at rest costs
// no request; those below may rely on Live.
var migrationRules = []migrationRule{
	{"a downgrade is refused",
		func(f *migrationFacts) bool { return f.Force == "" && f.downgrade() }, refuseDowngrade},
	{"a refused downgrade is over",
		func(f *migrationFacts) bool { return !f.requested() && f.reasonIs(ReasonDowngradeRefused) }, forgetDowngrade},
	{"nothing is asked for",
		func(f *migrationFacts) bool { return !f.requested() },
		func(*migrationFacts) migrationDecision { return migrationDecision{Workloads: serve} }},
	{"the server follows a migrated database",
		func(f *migrationFacts) bool { return f.rolloutPending() }, awaitRollout},
	{"a recorded failure holds",
		func(f *migrationFacts) bool { return f.Force == "" && f.failureHolds() }, keepFailure},
	{"look",
		func(f *migrationFacts) bool { return f.Live == nil },
		func(*migrationFacts) migrationDecision {
			return migrationDecision{Workloads: standDown, Step: stepLook}
		}},
	{"the Job is on its way out",
		func(f *migrationFacts) bool { return f.Live.Job != nil && f.Live.Job.Leaving }, awaitDeletion},
	{"the Job does not answer the annotation",
		func(f *migrationFacts) bool { return f.finished() && !f.counts(f.Live.Job) }, restartForced},
	{"the Job failed under other settings",
		func(f *migrationFacts) bool {
			return f.failed() && f.Record.JobUID == string(f.Live.Job.UID) && f.changedSinceFailure()
		}, rerunChanged},
	{"the forced Job failed for good",
		func(f *migrationFacts) bool { return f.failed() && f.Live.Job.Failure.Terminal && f.Force != "" }, consumeForce},
	{"the Job failed for good",
		func(f *migrationFacts) bool { return f.failed() && f.Live.Job.Failure.Terminal }, recordFailure},
	{"the Job failed and is tried again later",
		func(f *migrationFacts) bool { return f.failed() && f.Now.Before(f.retryAt()) }, postponeRetry},
	{"the Job failed and is tried again",
		func(f *migrationFacts) bool { return f.failed() }, retryJob},
	{"the Job has migrated",
		func(f *migrationFacts) bool { return f.finished() }, recordSuccess},
	{"a failure that the original recorded holds",
		func(f *migrationFacts) bool {
			return f.Force == "" && f.Record.Outcome == "" && f.reasonIs(ReasonMigrationFailed)
		}, adoptFailure},
	{"the Job cannot be what is wanted and never started",
		func(f *migrationFacts) bool { return f.Live.Job != nil && f.outdated(f.Live.Job) }, replaceJob},
	{"a finished Job of an earlier MLflow has the name",
		func(f *migrationFacts) bool { return f.Live.Leftover != nil }, removeLeftover},
	{"a Job of another generation never started",
		func(f *migrationFacts) bool { return f.Live.Job == nil && f.idleOther() != nil }, removeOther},
	{"a Job beside the server never ran or overstays",
		func(f *migrationFacts) bool { return f.endable() != nil }, endChore},
	{"Jobs beside the server go on",
		func(f *migrationFacts) bool { return f.Live.working() }, awaitChores},
	{"pods still use the database",
		func(f *migrationFacts) bool { return !f.Live.quiet() }, awaitQuiet},
	{"the Job runs",
		func(f *migrationFacts) bool { return f.Live.Job != nil }, awaitJob},
	{"a Job of another generation runs",
		func(f *migrationFacts) bool { return len(f.Live.Others) > 0 }, awaitOther},
	{"a Job is needed",
		func(*migrationFacts) bool { return true }, createJob},
}

func (f *migrationFacts) finished() bool { return f.Live.Job != nil && f.Live.Job.Phase != jobRunning }

func (f *migrationFacts) failed() bool { return f.Live.Job != nil && f.Live.Job.Phase == jobFailed }

func (f *migrationFacts) retryAt() time.Time { return f.Live.Job.FailedAt.Add(retryDelay) }

func (f *migrationFacts) changedSinceFailure() bool {
	return f.Record.Outcome == mlflowv1.MigrationFailed && !f.failureHolds()
}

// outdated reports that a Job which has not started would run an older image, or was made before it was forced. Waiting
// for it could be for ever.
func (f *migrationFacts) outdated(j *migrationJobState) bool {
	return !j.Started && (j.Image != f.Image || f.Force != "" && j.Force != f.Force)
}

// idleOther is a Job of another generation that does not run its program, and so cannot be waited for.
func (f *migrationFacts) idleOther() *migrationJobState {
	for i := range f.Live.Others {
		if !f.Live.Others[i].Started && !f.Live.Others[i].Leaving {
			return &f.Live.Others[i]
		}
	}
	return nil
}

// endable is a Job beside the server that is not worth waiting for: it never ran, and may never be able to, or hangs.
func (f *migrationFacts) endable() *choreJob {
	for i := range f.Live.Chores {
		if c := &f.Live.Chores[i]; !c.Leaving && (!c.Started || c.Overdue) {
			return c
		}
	}
	return nil
}

// untilEvent is when to look after a Job is deleted. Nothing reports the end of a Job that the original made, or that nobody
// owns.
func untilEvent(j *migrationJobState) time.Duration {
	if j.Ours && !j.Left {
		return fallbackDelay
	}
	return recreateDelay
}

func (f *migrationFacts) because(format string, args ...any) string {
	return fmt.Sprintf(format, args...) + " because " + f.trigger()
}

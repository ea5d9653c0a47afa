package mlflow

import (
	"context"
	"errors"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	batchv1ac "k8s.io/client-go/applyconfigurations/batch/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
	"github.com/odh-platform/odh-platform-operator/controllers/mlflow/migration"
	"github.com/odh-platform/odh-platform-operator/controllers/mlflow/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/reconciler"
	"github.com/odh-platform/odh-platform-operator/pkg/servers"
	"github.com/odh-platform/odh-platform-operator/pkg/status/conditions"
)

// planMigration returns the migration decision of this reconcile. It does not write to the API server, and reads from it only if the
// decision depends on the workloads.
func (r *mlflowReconciler) planMigration(ctx context.Context, m *mlflowv1.MLflow, in resources.Inputs) (migration.Decision, error) {
	r.hasPlan = true
	f := migration.FactsOf(m, in, r.Clock.Now())
	d := migration.Decide(&f)
	if d.Step == migration.StepObserve {
		var err error
		if f.Observed, err = r.observeWorkloads(ctx, m, in, &f); err != nil {
			return migration.Decision{}, failMigration(m, &migration.Decision{}, err)
		}
		d = migration.Decide(&f)
	}
	migration.ReportAge(&f)
	return d, nil
}

// withKeptServers adds to the inputs the state of servers that a decision leaves unchanged. The account of the running pods keeps its
// permissions, and a missing artifacts server gets no route, which would take paths from the running server.
func (r *mlflowReconciler) withKeptServers(ctx context.Context, m *mlflowv1.MLflow, in resources.Inputs, existing *appsv1.Deployment,
	d *migration.Decision,
) (resources.Inputs, error) {
	if !d.KeepsDeployments() {
		return in, nil
	}
	if metav1.IsControlledBy(existing, m) {
		in.RunningAccount = existing.Spec.Template.Spec.ServiceAccountName
	}
	artifacts, err := servers.DeploymentFrom(ctx, in.Namespace, resources.Artifacts(m).Name, r.Cached)
	in.LacksArtifactsServer = artifacts.Name == ""
	return in, err
}

// objectsFor returns the objects to apply: workloads are scaled to zero, suspended or omitted, as the decision requires.
func objectsFor(p *resources.Plan, d *migration.Decision) (server, cronJobs apply.Desired) {
	server, cronJobs = without[*corev1ac.PersistentVolumeClaimApplyConfiguration](p.Server), p.CronJobs // reconcileClaim writes the claim
	if d.Workloads == migration.ScaleToZero || d.Workloads == migration.Drain {
		for _, o := range cronJobs {
			if cronJob, ok := o.Config.(*batchv1ac.CronJobApplyConfiguration); ok {
				cronJob.Spec.WithSuspend(true)
			}
		}
	}
	switch d.Workloads {
	case migration.ScaleToZero:
		for _, o := range server {
			if deployment, ok := o.Config.(*appsv1ac.DeploymentApplyConfiguration); ok {
				deployment.Spec.WithReplicas(0)
			}
		}
	case migration.Drain:
		server = without[*appsv1ac.DeploymentApplyConfiguration](server)
	case migration.KeepRunning:
		return without[*appsv1ac.DeploymentApplyConfiguration](server), without[*batchv1ac.CronJobApplyConfiguration](cronJobs)
	case migration.RunAsSpecified:
	}
	return server, cronJobs
}

// pruneLeftovers deletes the objects that a deleted MLflow left and this one does not desire, such as a CronJob, which would use the
// database during a migration.
func (r *mlflowReconciler) pruneLeftovers(ctx context.Context, m *mlflowv1.MLflow, in resources.Inputs, desired apply.Desired) error {
	var errs []error
	for _, kind := range append(prunableKinds(in, true), servers.Service, servers.Deployment) {
		errs = append(errs, r.Applier.DeleteByLabels(ctx, m.UID, kind, nil, func(o client.Object) bool {
			return !isLeftover(o, m) || slices.ContainsFunc(desired, func(d apply.Object) bool {
				return d.Key().Kind == kind.Kind && d.Key().Name == o.GetName()
			})
		}))
	}
	return errors.Join(errs...)
}

// without returns the objects of all kinds but T.
func without[T runtime.ApplyConfiguration](desired apply.Desired) apply.Desired {
	return slices.DeleteFunc(slices.Clone(desired), func(o apply.Object) bool {
		_, ok := o.Config.(T)
		return ok
	})
}

// executeDecision executes the step of a decision and reports it, after the objects are applied. It returns nil only if the reconcile
// continues with the rollout.
func (r *mlflowReconciler) executeDecision(ctx context.Context, m *mlflowv1.MLflow, in resources.Inputs, d *migration.Decision) error {
	if err := r.executeStep(ctx, m, in, d); err != nil {
		return err
	}
	reportMigration(m, d)
	if d.Record != nil {
		m.Status.Migration = d.Record
	}
	if d.ContinuesRollout() {
		return nil
	}
	return migrationWait(d)
}

// waitForRollout reports the rollout of the servers. While the workloads are kept running, it also returns the Wait of the migration.
func (r *mlflowReconciler) waitForRollout(ctx context.Context, m *mlflowv1.MLflow, d *migration.Decision) error {
	err := r.observeRollout(ctx, m)
	if d.Workloads == migration.KeepRunning {
		err = errors.Join(err, migrationWait(d))
	}
	return err
}

func migrationWait(d *migration.Decision) error {
	return &reconciler.Wait{
		For: "the database migration (" + d.Rule + ")", Retry: d.RequeueAfter, Unready: true, Stalled: d.Report != nil && !d.Report.Progressing,
	}
}

func (r *mlflowReconciler) executeStep(ctx context.Context, m *mlflowv1.MLflow, in resources.Inputs, d *migration.Decision) error {
	switch d.Step {
	case migration.StepCreateJob:
		return r.createJob(ctx, m, d, resources.MigrationJob(m, in, d.Record.Force))
	case migration.StepCreateCheckJob:
		return r.createJob(ctx, m, d, resources.CheckJob(m, in, d.CheckHash))
	case migration.StepDeleteJob:
		job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: in.Namespace, Name: d.Job.Name, UID: d.Job.UID}}
		err := r.Applier.DeleteOwned(ctx, m.UID, job) // with its pods
		if err != nil && !apierrors.IsConflict(err) {
			return failMigration(m, d, err)
		}
		if err == nil {
			migration.CountRetry(d)
		}
	case migration.StepRemoveAnnotation:
		return r.removeForceAnnotation(ctx, m, d)
	case migration.StepNone, migration.StepObserve:
	}
	return nil
}

func (r *mlflowReconciler) createJob(ctx context.Context, m *mlflowv1.MLflow, d *migration.Decision, job *batchv1ac.JobApplyConfiguration) error {
	err := r.Applier.Create(ctx, m, apply.Object{Config: job})
	if _, foreign := errors.AsType[*apply.ForeignError](err); foreign {
		return &reconciler.Wait{For: failMigration(m, d, err).Error(), Retry: reconciler.RequeueUnavailable}
	}
	if err != nil {
		return failMigration(m, d, err)
	}
	return nil
}

// removeForceAnnotation removes the annotation unless the MLflow has changed since it was read: the annotation may be a new request.
// It never returns nil: the update event triggers the next reconcile, which can set the status with the new resourceVersion.
func (r *mlflowReconciler) removeForceAnnotation(ctx context.Context, m *mlflowv1.MLflow, d *migration.Decision) error {
	updated := m.DeepCopy()
	delete(updated.Annotations, migration.ForceAnnotation)
	patch := client.MergeFromWithOptions(m, client.MergeFromWithOptimisticLock{})
	err := r.Cached.Patch(ctx, updated, patch, client.FieldOwner(FieldOwner))
	if err != nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
		return failMigration(m, d, fmt.Errorf("removing the annotation %s: %w", migration.ForceAnnotation, err))
	}
	return &reconciler.Wait{For: "the annotation " + migration.ForceAnnotation + " to be deleted", Retry: migration.ShortRequeue}
}

// concludeMigration reports success after the rollout. It removes the force annotation first; the next reconcile then sets version,
// condition and record together.
func (r *mlflowReconciler) concludeMigration(ctx context.Context, m *mlflowv1.MLflow) error {
	record := m.Status.Migration
	if !rolloutPending(m) {
		return nil
	}
	if _, forced := m.Annotations[migration.ForceAnnotation]; forced {
		return r.removeForceAnnotation(ctx, m, &migration.Decision{})
	}
	record.Outcome, record.Force = mlflowv1.MigrationCompleted, ""
	m.Status.Version = record.Version
	report := migration.Succeeded(m.Generation)
	setCondition(m, migration.ConditionMigration, report.Status, report.Reason, report.Message)
	return nil
}

// rolloutPending reports whether the stored outcome of the migration is RolloutPending.
func rolloutPending(m *mlflowv1.MLflow) bool {
	return m.Status.Migration != nil && m.Status.Migration.Outcome == mlflowv1.MigrationRolloutPending
}

// reportMigration sets the conditions of a decision.
func reportMigration(m *mlflowv1.MLflow, d *migration.Decision) {
	if d.Report == nil {
		return
	}
	report := d.Report
	setCondition(m, migration.ConditionMigration, report.Status, report.Reason, report.Message)
	if d.ContinuesRollout() {
		return
	}
	progressing := metav1.ConditionFalse
	if report.Progressing {
		progressing = metav1.ConditionTrue
	}
	if !d.ServerReady {
		setCondition(m, ConditionAvailable, metav1.ConditionFalse, report.Reason, report.Message)
	}
	setCondition(m, ConditionProgressing, progressing, report.Reason, report.Message)
}

// failMigration reports an error of the operator, as opposed to one of the Job, and returns it. An available server stays available unless
// the decision stops it.
func failMigration(m *mlflowv1.MLflow, d *migration.Decision, err error) error {
	text := fmt.Sprintf("Failed to reconcile migration: %v", err)
	stopsServer := d.Workloads == migration.ScaleToZero || d.Workloads == migration.Drain && !d.ServerReady
	if stopsServer || !conditions.IsTrue(m.Status.Conditions, ConditionAvailable) {
		setCondition(m, ConditionAvailable, metav1.ConditionFalse, migration.ReasonMigrationError, text)
	}
	setCondition(m, ConditionProgressing, metav1.ConditionFalse, migration.ReasonMigrationError, text)
	setCondition(m, migration.ConditionMigration, metav1.ConditionUnknown, migration.ReasonMigrationError, text)
	return err
}

// pinnedCondition returns the Migration condition, and whether its reason pins the Deployments of the servers.
func pinnedCondition(m *mlflowv1.MLflow) (c metav1.Condition, pinned bool) {
	c, found := conditions.Get(m.Status.Conditions, migration.ConditionMigration)
	return c, found && migration.PinsServer(c.Reason)
}

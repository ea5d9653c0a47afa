package mlflow

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"gomodules.xyz/jsonpatch/v2"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	batchv1ac "k8s.io/client-go/applyconfigurations/batch/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
	"github.com/odh-platform/odh-platform-operator/controllers/mlflow/migration"
	"github.com/odh-platform/odh-platform-operator/controllers/mlflow/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/reconciler"
	"github.com/odh-platform/odh-platform-operator/pkg/status/conditions"
)

// planMigration decides what this reconciliation does about the migration. It writes nothing, and reads from the API server only
// when a migration is requested and not settled by what is recorded.
func (r *objects) planMigration(ctx context.Context, m *mlflowv1.MLflow, in resources.Inputs) (migration.Decision, error) {
	f := migration.FactsOf(m, in, r.clock.Now())
	d := migration.Decide(&f)
	if d.Step == migration.StepLook {
		var err error
		if f.Live, err = r.look(ctx, m, in, &f); err != nil {
			return migration.Decision{}, failMigration(m, err)
		}
		d = migration.Decide(&f)
	}
	migration.Measure(&f, &d)
	return d, nil
}

// workloadsFor makes the wanted objects those of a decision: with all workloads off, or without them.
func workloadsFor(p *resources.Plan, d *migration.Decision) (server, chores apply.Desired) {
	server, chores = resources.WithoutClaim(p.Server), p.Chores
	if d.Workloads == migration.ScaleToZero || d.Workloads == migration.Drain {
		for _, o := range chores {
			if job, is := o.Config.(*batchv1ac.CronJobApplyConfiguration); is {
				job.Spec.WithSuspend(true)
			}
		}
	}
	switch d.Workloads {
	case migration.ScaleToZero:
		for _, o := range server {
			if server, is := o.Config.(*appsv1ac.DeploymentApplyConfiguration); is {
				server.Spec.WithReplicas(0)
			}
		}
	case migration.DoNotTouch, migration.ServeOn:
		return withoutWorkloads(server), withoutWorkloads(chores)
	case migration.Drain:
		return withoutWorkloads(server), chores
	case migration.RunAsSpecified:
	}
	return server, chores
}

func withoutWorkloads(desired apply.Desired) apply.Desired {
	return slices.DeleteFunc(slices.Clone(desired), func(o apply.Object) bool {
		switch o.Config.(type) {
		case *appsv1ac.DeploymentApplyConfiguration, *batchv1ac.CronJobApplyConfiguration:
			return true
		}
		return false
	})
}

// carryOut does the step of a decision, once the objects are as it wants them, and reports it. A reconciliation that
// continues with the rollout gets no error.
func (r *objects) carryOut(ctx context.Context, m *mlflowv1.MLflow, in resources.Inputs, d *migration.Decision) error {
	if err := r.takeStep(ctx, m, in, d); err != nil {
		return err
	}
	reportMigration(m, d)
	if d.Record != nil {
		m.Status.Migration = d.Record
	}
	if d.Rolls() {
		return nil
	}
	return awaitMigration(d)
}

// follow reports how far the servers are, and waits for a check that decides whether they may be stopped.
func (r *objects) follow(ctx context.Context, m *mlflowv1.MLflow, d *migration.Decision) error {
	err := r.observeRollout(ctx, m)
	if d.Workloads == migration.ServeOn {
		err = errors.Join(err, awaitMigration(d))
	}
	return err
}

func awaitMigration(d *migration.Decision) error {
	return &reconciler.Wait{
		For: "the database migration (" + d.Rule + ")", Retry: d.Retry, Unready: true, Stalled: d.Report != nil && !d.Report.Progressing,
	}
}

func (r *objects) takeStep(ctx context.Context, m *mlflowv1.MLflow, in resources.Inputs, d *migration.Decision) error {
	switch d.Step {
	case migration.StepCreate:
		return r.createJob(ctx, m, resources.MigrationJob(m, in, d.Record.Force))
	case migration.StepCheck:
		return r.createJob(ctx, m, resources.CheckJob(m, in, d.Subject))
	case migration.StepDelete:
		job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: in.Namespace, Name: d.Job.Name, UID: d.Job.UID}}
		if err := r.applier.Remove(ctx, m.UID, job); err != nil && !apierrors.IsConflict(err) { // with its pods
			return failMigration(m, err)
		}
	case migration.StepUnmark:
		return r.unmark(ctx, m)
	case migration.StepNone, migration.StepLook:
	}
	return nil
}

func (r *objects) createJob(ctx context.Context, m *mlflowv1.MLflow, job *batchv1ac.JobApplyConfiguration) error {
	err := r.applier.Create(ctx, m, apply.Object{Config: job})
	if _, taken := errors.AsType[*apply.ForeignError](err); taken {
		return &reconciler.Wait{For: failMigration(m, err).Error(), Retry: diagnoseAfter}
	}
	if err != nil {
		return failMigration(m, err)
	}
	return nil
}

// unmark removes the annotation, unless its value has been changed meanwhile: that is another wish. The reconciliation ends with
// it, because it changes the object that the status would be written to; its event brings the next.
func (r *objects) unmark(ctx context.Context, m *mlflowv1.MLflow) error {
	const path = "/metadata/annotations/mlflow.opendatahub.io~1force-migrate"
	patch, err := json.Marshal([]jsonpatch.Operation{
		{Operation: "test", Path: path, Value: m.Annotations[migration.ForceAnnotation]},
		{Operation: "remove", Path: path},
	})
	if err != nil {
		return fmt.Errorf("encoding the removal of the annotation %s: %w", migration.ForceAnnotation, err)
	}
	answer := &mlflowv1.MLflow{ObjectMeta: metav1.ObjectMeta{Name: m.Name}}
	err = r.cached.Patch(ctx, answer, client.RawPatch(types.JSONPatchType, patch), client.FieldOwner(FieldOwner))
	if err != nil && !apierrors.IsInvalid(err) && !apierrors.IsNotFound(err) {
		return failMigration(m, fmt.Errorf("removing the annotation %s: %w", migration.ForceAnnotation, err))
	}
	return &reconciler.Wait{For: "the annotation " + migration.ForceAnnotation + " to be gone", Retry: migration.RecreateDelay}
}

// concludeMigration makes a migration a success, once the server that follows it is ready: first the annotation that
// asked for it goes, then version, condition and record are written together.
func (r *objects) concludeMigration(ctx context.Context, m *mlflowv1.MLflow) error {
	in := r.inputs()
	record := m.Status.Migration
	if record == nil || record.Outcome != mlflowv1.MigrationRolloutPending || record.Version != in.Version {
		return nil
	}
	for _, s := range resources.Servers(m) { // the cache may still show the servers of before the migration
		d := &appsv1.Deployment{}
		if err := r.live.Get(ctx, client.ObjectKey{Namespace: in.Namespace, Name: s.Name}, d); err != nil {
			return failMigration(m, fmt.Errorf("reading Deployment %s: %w", s.Name, err))
		}
		if state := conditions.Rollout(d); !state.Ready || state.Desired == 0 {
			return &reconciler.Wait{For: "the cache to show Deployment " + d.Name, Retry: migration.RecreateDelay, Unready: true}
		}
	}
	if _, marked := m.Annotations[migration.ForceAnnotation]; marked {
		return r.unmark(ctx, m)
	}
	record.Outcome, record.Force = mlflowv1.MigrationCompleted, "" // what was asked for is done
	m.Status.Version = in.Version
	done := migration.Succeeded(m.Generation)
	setCondition(m, migration.ConditionMigration, done.Status, done.Reason, done.Message)
	return nil
}

package mlflow

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
	"github.com/odh-platform/odh-platform-operator/controllers/mlflow/migration"
	"github.com/odh-platform/odh-platform-operator/controllers/mlflow/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/admission"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/objectmeta"
	"github.com/odh-platform/odh-platform-operator/pkg/reconciler"
	"github.com/odh-platform/odh-platform-operator/pkg/reference"
	pkgresources "github.com/odh-platform/odh-platform-operator/pkg/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/servers"
	"github.com/odh-platform/odh-platform-operator/pkg/status/conditions"
	webhook "github.com/odh-platform/odh-platform-operator/webhooks/mlflow"
)

// mlflowReconciler reconciles the child objects of an MLflow.
type mlflowReconciler struct {
	*servers.Reconciler

	inputs         func() resources.Inputs
	platform       *platformGate
	admissionRules admission.Rules
	feedback       Feedback
	// stores caches, by Secret and key, whether the value is the URI of a database server.
	stores *reference.ContentCache[map[string]bool]
	// hasPlan is true once the current reconcile plans the migration, which reads the migration Job if a migration is requested. The only
	// MLflow is never reconciled concurrently.
	hasPlan bool
	// idleAt holds the last time at which no workload of an MLflow was found to use its database.
	idleAt reconciler.UIDMap[time.Time]
	// claimLookups has each MLflow without storage whose claim was looked up on the API server.
	claimLookups reconciler.UIDMap[struct{}]
}

func (r *mlflowReconciler) phases() []reconciler.Phase[*mlflowv1.MLflow] {
	return []reconciler.Phase[*mlflowv1.MLflow]{
		{Name: "reporting namespace RBAC", Run: reportFeedback(r.feedback)},
		{Name: "checking the MLflowOperator", Run: r.platform.wait},
		{Name: "checking the references of the pods", Run: r.checkReferences},
		{Name: "publishing addresses", Run: r.publishAddresses},
		{Name: "checking the artifacts server", Run: r.checkArtifactsServer},
		{Name: "checking the CA bundle", Run: r.checkCABundle},
		{Name: "reconciling objects", Run: r.reconcile},
	}
}

// reconcile writes the dependencies of the server, the server, the migration Job and the exposure, in this order. A failure of
// the CronJobs or the exposure blocks neither the server nor the migration.
func (r *mlflowReconciler) reconcile(ctx context.Context, m *mlflowv1.MLflow) error {
	nonFatal := &nonFatalErrors{}
	return nonFatal.join(ctx, r.reconcileObjects(ctx, m, nonFatal))
}

func (r *mlflowReconciler) reconcileObjects(ctx context.Context, m *mlflowv1.MLflow, nonFatal *nonFatalErrors) error {
	if err := resources.Check(m, r.inputs()); err != nil {
		fail(m, ReasonRenderFailed, fmt.Sprintf("Failed to build the objects of the server: %v", err))
		return &reconciler.Wait{For: "a valid spec", Stalled: true}
	}
	if err := r.reconcileClaim(ctx, m, nonFatal); err != nil {
		return fmt.Errorf("reconciling the PersistentVolumeClaim: %w", err)
	}
	nonFatal.add("issuing the serving certificate", r.reconcileCertificates(ctx, m))
	if err := r.applyObjects(ctx, m, nonFatal); err != nil {
		return fmt.Errorf("applying objects: %w", err)
	}
	return r.AwaitDeadlines(m.UID)
}

// nonFatalErrors collects the errors of a reconcile that do not block its other steps.
type nonFatalErrors []error

func (e *nonFatalErrors) add(action string, err error) {
	if err != nil {
		*e = append(*e, fmt.Errorf("%s: %w", action, err))
	}
}

// join returns the collected errors joined with result. A write that the API server rejects becomes a Wait, so that the backoff
// of the workqueue does not delay other steps.
func (e *nonFatalErrors) join(ctx context.Context, result error) error {
	for _, err := range *e {
		wait, waits := reconciler.AsWait(err)
		switch {
		case waits:
			err = wait
		case apply.AllErrorsMatch(err, isRejection):
			log.FromContext(ctx).Info("The API server rejected an object; the other objects are applied", "error", err.Error())
			err = &reconciler.Wait{For: "rejected objects: " + err.Error(), Retry: reconciler.RequeueBlocked}
		}
		result = errors.Join(result, err)
	}
	return result
}

// isRejection reports whether the API server rejected a write, or a foreign object or a deletion that timed out blocks the write.
func isRejection(err error) bool {
	if apply.IsBlocked(err) {
		return true
	}
	_, status := any(err).(apierrors.APIStatus)
	return status && (apierrors.IsForbidden(err) || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err))
}

// checkReferences rejects references that are forbidden for all users. The webhook rejects them too, but may not have been running when
// the MLflow was stored. Running pods are not changed.
func (r *mlflowReconciler) checkReferences(_ context.Context, m *mlflowv1.MLflow) error {
	err := r.admissionRules.Forbidden(webhook.References(r.admissionRules, m, r.inputs().Namespace))
	if err == nil {
		return nil
	}
	fail(m, ReasonForbidden, err.Error())
	return &reconciler.Wait{For: "a spec without forbidden references", Stalled: true}
}

// publishAddresses sets the URL within the cluster in the status and the condition for passwords in the spec. applyExposure sets the public
// URLs.
func (r *mlflowReconciler) publishAddresses(_ context.Context, m *mlflowv1.MLflow) error {
	in := r.inputs()
	m.Status.Address = nil
	if url := resources.AddressURL(m, in); url != "" {
		m.Status.Address = &mlflowv1.MLflowAddress{URL: url}
	}
	reportCredentials(m)
	return nil
}

// checkCABundle waits for spec.caBundleConfigMap: without it the server would not trust the CAs of the user.
func (r *mlflowReconciler) checkCABundle(ctx context.Context, m *mlflowv1.MLflow) error {
	if m.Spec.CABundleConfigMap == nil {
		return nil
	}
	name, namespace := m.Spec.CABundleConfigMap.Name, r.inputs().Namespace
	exists, err := r.configMapExists(ctx, name)
	if exists {
		return nil
	}
	text := fmt.Sprintf("Failed to get CA bundle ConfigMap %q: %v", name, err)
	if err == nil {
		text = fmt.Sprintf("CA bundle ConfigMap %q not found in namespace %q: create it, or correct spec.caBundleConfigMap", name, namespace)
		err = &reconciler.Wait{For: "ConfigMap " + namespace + "/" + name}
	}
	setCondition(m, ConditionAvailable, metav1.ConditionFalse, ReasonCABundleConfigMap, text)
	return err
}

// applyObjects applies the objects of the Plan except the PersistentVolumeClaim, prunes objects that are no longer desired and executes the
// next step of the migration. The migration decides whether the workloads are applied, omitted, suspended or scaled to zero.
func (r *mlflowReconciler) applyObjects(ctx context.Context, m *mlflowv1.MLflow, nonFatal *nonFatalErrors) error {
	in := r.inputs()
	exists, err := r.configMapExists(ctx, resources.PlatformCAName)
	if err != nil {
		setCondition(m, ConditionAvailable, metav1.ConditionFalse, ReasonPlatformCABundle,
			fmt.Sprintf("Failed to check for platform CA bundle ConfigMap %q: %v", resources.PlatformCAName, err))
		return err
	}
	in.PlatformCABundle = exists
	existing, err := r.DeploymentOf(ctx, m, in.Namespace, resources.NameOf(m))
	if err != nil {
		return reportApplyError(m, err)
	}
	in.VerifyPostgreSQL, in.Authorities = resources.VerifiesPostgres(existing), r.authorities(m)
	m.Status.Scale = pkgresources.ScaleStatus(existing, resources.Tracking(m).Selector())
	hashes, err := r.rolloutHashes(ctx, m, in.Namespace)
	if err != nil {
		return reportApplyError(m, err)
	}
	decision, err := r.planMigration(ctx, m, in)
	if err != nil {
		return err
	}
	if in, err = r.withKeptServers(ctx, m, in, existing, &decision); err != nil {
		return reportApplyError(m, err)
	}
	plan := resources.NewPlan(m, in)
	for _, d := range servers.Deployments(plan.Server) {
		hashes[*d.Name].Apply(d)
	}
	server, cronJobs := objectsFor(&plan, &decision)
	if err := r.Applier.Apply(ctx, m, server); err != nil {
		return reportApplyError(m, err)
	}
	if err := r.scaleDownArtifactsServer(ctx, m, &decision); err != nil {
		return reportApplyError(m, err)
	}
	nonFatal.add("applying the CronJobs", reportNonFatal(m, ConditionCronJobs, ReasonScheduledJobsFailed,
		"Garbage collection or trace archival could not be set up", r.Applier.Apply(ctx, m, cronJobs)))
	nonFatal.add("deleting objects that are no longer desired", reportNonFatal(m, ConditionPruned, ReasonRemovalFailed,
		"Deleting an object that is no longer desired failed", r.prune(ctx, m, in, plan.All(), &decision)))
	result := r.executeDecision(ctx, m, in, &decision)
	if result == nil || decision.Workloads == migration.KeepRunning {
		result = errors.Join(result, r.waitForRollout(ctx, m, &decision))
	}
	if serviceErr := r.applyExposure(ctx, m, in, plan.Exposure, nonFatal); serviceErr != nil {
		failApply(m, serviceErr)
	}
	return result
}

// prune deletes objects that are no longer desired, including those of the legacy operator. Only in mode RunAsSpecified it deletes what the
// pods of an earlier spec need, and the artifacts server with its serving certificate, because a migration waits for the Deployment to
// scale down. The check Job is deleted once no migration is requested, because a later request must not use its result.
func (r *mlflowReconciler) prune(ctx context.Context, m *mlflowv1.MLflow, in resources.Inputs, desired apply.Desired, d *migration.Decision) error {
	if err := r.pruneLeftovers(ctx, m, in, desired); err != nil {
		return err
	}
	runs := d.Workloads == migration.RunAsSpecified
	kinds, pruneArtifacts := prunableKinds(in, runs), !resources.HasArtifactsServer(m) && runs
	if pruneArtifacts {
		kinds = append(kinds, servers.Service, servers.Deployment)
	}
	err := r.Applier.Prune(ctx, m, desired, kinds, &client.ListOptions{Namespace: in.Namespace, LabelSelector: workloadSelector(m).Selector})
	if err == nil && runs && d.Report == nil {
		err = r.deleteControlled(ctx, m, servers.Job, resources.CheckJobName(m))
	}
	if err == nil && pruneArtifacts {
		err = r.deleteControlled(ctx, m, servers.Secret, resources.Artifacts(m).Secret)
	}
	return err
}

// deleteControlled deletes an object that the MLflow controls, if it exists.
func (r *mlflowReconciler) deleteControlled(ctx context.Context, m *mlflowv1.MLflow, kind schema.GroupVersionKind, name string) error {
	o, err := objectmeta.Get(ctx, r.Cached, kind, client.ObjectKey{Namespace: r.inputs().Namespace, Name: name})
	if err != nil || o == nil || !apply.HasComponentLabels(o, ComponentName) || !metav1.IsControlledBy(o, m) {
		return err
	}
	return r.Applier.DeleteOwned(ctx, m.UID, o)
}

// reportApplyError reports a failed apply in the conditions. For a terminating object, which is not a failure, it returns a Wait.
func reportApplyError(m *mlflowv1.MLflow, err error) error {
	return servers.ReportError(err, func() { failApply(m, err) })
}

// observeRollout reports the rollout of the first server that is not ready. Once all are ready, it completes a migration.
func (r *mlflowReconciler) observeRollout(ctx context.Context, m *mlflowv1.MLflow) error {
	for _, s := range resources.Servers(m) {
		if ready, err := r.observeServer(ctx, m, s); !ready {
			return err
		}
	}
	if _, pinned := pinnedCondition(m); !pinned { // the Deployments of a pinned server are those of an earlier reconcile
		if err := r.concludeMigration(ctx, m); err != nil {
			return err
		}
	}
	reportReady(m)
	return nil
}

// observeServer reports whether the Deployment of a server is ready. If it is not, the error is not nil.
func (r *mlflowReconciler) observeServer(ctx context.Context, m *mlflowv1.MLflow, s resources.Server) (ready bool, err error) {
	readers := []client.Reader{r.Cached, r.APIReader}
	if rolloutPending(m) {
		readers = readers[1:] // the cache may still hold the Deployment from before the migration
	}
	d, err := servers.DeploymentFrom(ctx, r.inputs().Namespace, s.Name, readers...)
	if err != nil {
		setCondition(m, ConditionAvailable, metav1.ConditionUnknown, ReasonRolloutUnknown, fmt.Sprintf("Deployment %s could not be read: %v", s.Name, err))
		return false, err
	}
	_, pinned := pinnedCondition(m)
	if d.Name == "" && pinned && s.Name != resources.NameOf(m) {
		return true, nil // the running server is available without the artifacts server, which is created after the migration
	}
	if d.Name == "" {
		d.Spec.Replicas = &s.Replicas // a pinned server is not created
	}
	state := conditions.Rollout(d)
	if !pinned && state.Desired == 0 {
		// The cache may hold the Deployment from before this reconcile scaled it up.
		state.Ready, state.Desired = false, s.Replicas
	}
	if state.Ready && state.Desired > 0 {
		return true, nil
	}
	if state.Reason == conditions.ReasonNotObserved && conditions.IsTrue(m.Status.Conditions, ConditionAvailable) {
		// Available stays True until the Deployment controller observes the change, normally within milliseconds and often without a rollout. If
		// the spec of the MLflow changed, Ready is False until then. An annotation of another client on the Deployment changes no condition.
		return false, &reconciler.Wait{For: "the Deployment controller", Retry: time.Second}
	}
	cause, err := r.diagnose(ctx, m, s, state)
	reportRollout(m, s, state, cause)
	if err != nil {
		return false, err
	}
	return false, &reconciler.Wait{
		For: "Deployment " + s.Name + " to become ready", Retry: reconciler.RequeueUnavailable, Stalled: state.Reason == conditions.ReasonDeadlineExceeded,
	}
}

// diagnose returns why the pods of a server do not run, or "" when the cause is unknown. With an error the cause describes the error.
func (r *mlflowReconciler) diagnose(ctx context.Context, m *mlflowv1.MLflow, s resources.Server, state conditions.RolloutState) (cause string, err error) {
	pods, err := r.ListPods(ctx, r.inputs().Namespace, s.Selector())
	if err == nil {
		cause, err = r.podFailureCause(ctx, m, pods)
	}
	switch {
	case err != nil:
		cause = fmt.Sprintf("the cause could not be determined: %v", err)
	case cause == "" && state.Failed: // each message of a healthy rollout would cause a status write
		cause = state.Message
	}
	return cause, err
}

func (r *mlflowReconciler) configMapExists(ctx context.Context, name string) (bool, error) {
	configMap, err := objectmeta.Get(ctx, r.Cached, servers.ConfigMap, client.ObjectKey{Namespace: r.inputs().Namespace, Name: name})
	return configMap != nil, err
}

package mlflow

import (
	"context"
	"errors"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
	"github.com/odh-platform/odh-platform-operator/controllers/mlflow/migration"
	"github.com/odh-platform/odh-platform-operator/controllers/mlflow/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/admission"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/reconciler"
	"github.com/odh-platform/odh-platform-operator/pkg/reference"
	common "github.com/odh-platform/odh-platform-operator/pkg/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/servingcert"
	"github.com/odh-platform/odh-platform-operator/pkg/status/conditions"
	webhook "github.com/odh-platform/odh-platform-operator/webhooks/mlflow"
)

// diagnoseAfter is how often the pods of a server that is not ready are read for the cause. A waiting pod changes
// nothing on its Deployment, so there is no event to wait for.
const diagnoseAfter = 30 * time.Second

// objects reconciles the children of an MLflow. Its phases run in the order in which they stand here.
type objects struct {
	cached     client.Client
	live       client.Reader
	applier    *apply.Applier
	references *reference.Tracker
	inputs     func() resources.Inputs
	module     *module
	authors    admission.Rules
	feedback   Feedback
	clock      clock.PassiveClock
	// whole reads objects of which the others hold the metadata only.
	whole client.Reader
	// certificates keep the serving certificates where no platform makes them, one for each server that there may be.
	certificates []*servingcert.Keeper
	stores       *storeJudge
}

func (r *objects) phases() []reconciler.Phase[*mlflowv1.MLflow] {
	return []reconciler.Phase[*mlflowv1.MLflow]{
		{Name: "relaying feedback", Run: relay(r.feedback)},
		{Name: "passing the gate", Run: r.module.pass},
		{Name: "checking what the pods use", Run: r.checkUses},
		{Name: "publishing addresses", Run: r.publishAddresses},
		{Name: "checking the server for artifacts", Run: r.checkArtifactsServer},
		{Name: "checking the CA bundle", Run: r.checkCABundle},
		{Name: "reconciling objects", Run: r.reconcile},
	}
}

// reconcile brings an MLflow to its desired state: first all that the server needs, then the server, the migration of its
// database, and what leads to it. Only the guards of the server keep it from being written, and nothing that leads to it keeps
// its database from being migrated.
func (r *objects) reconcile(ctx context.Context, m *mlflowv1.MLflow) error {
	aside := &troubles{}
	return aside.conclude(ctx, r.run(ctx, m, aside))
}

func (r *objects) run(ctx context.Context, m *mlflowv1.MLflow, aside *troubles) error {
	if err := resources.Check(m, r.inputs()); err != nil {
		fail(m, ReasonRenderFailed, fmt.Sprintf("Failed to build the objects of the server: %v", err))
		return &reconciler.Wait{For: "a valid spec", Stalled: true}
	}
	if err := r.keepClaim(ctx, m, aside); err != nil {
		return fmt.Errorf("keeping the volume claim: %w", err)
	}
	aside.add("keeping the serving certificate", r.keepCertificates(ctx, m))
	if err := r.applyObjects(ctx, m, aside); err != nil {
		return fmt.Errorf("applying objects: %w", err)
	}
	var renewals error
	for _, keeper := range r.certificates {
		renewals = errors.Join(renewals, keeper.AwaitRenewal(m.UID))
	}
	return renewals
}

// refusedRetry is how often something is tried again that the API server refused: no event reports when it would not any more.
const refusedRetry = time.Minute

// troubles are the failures of a reconciliation that keep nothing else from being done. Each stands in a condition of its own.
type troubles []error

// add notes a failure; nil is none.
func (t *troubles) add(what string, err error) {
	if err != nil {
		*t = append(*t, fmt.Errorf("%s: %w", what, err))
	}
}

// conclude joins the troubles with how the reconciliation ended. What the API server refuses is tried again after a minute, so that
// its back-off delays nothing that is waited for; all else is an error.
func (t *troubles) conclude(ctx context.Context, end error) error {
	for _, err := range *t {
		wait, waits := reconciler.AsWait(err)
		switch {
		case waits:
			err = wait
		case apply.OnlyErrors(err, isRefusal):
			log.FromContext(ctx).Info("Something was refused, and everything else continues", "error", err.Error())
			err = &reconciler.Wait{For: "what was refused: " + err.Error(), Retry: refusedRetry}
		}
		end = errors.Join(end, err)
	}
	return end
}

// isRefusal says that an error stays the same until an object changes.
func isRefusal(err error) bool {
	if apply.Blocked(err) {
		return true
	}
	_, status := any(err).(apierrors.APIStatus)
	return status && (apierrors.IsForbidden(err) || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err))
}

// forget drops what is remembered of an MLflow that is gone.
func (r *objects) forget(uid types.UID) {
	r.applier.Forget(uid)
	r.references.Forget(uid)
	for _, keeper := range r.certificates {
		keeper.Forget(uid)
	}
}

// checkUses holds back what no author may let pods use. Admission refuses it too; objects may have been stored while it did not. What
// runs continues as it is.
func (r *objects) checkUses(_ context.Context, m *mlflowv1.MLflow) error {
	err := r.authors.Forbidden(webhook.Uses(r.authors, m, r.inputs().Namespace))
	if err == nil {
		return nil
	}
	fail(m, ReasonForbidden, err.Error())
	return &reconciler.Wait{For: "a spec without what is forbidden", Stalled: true}
}

// publishAddresses reports where the server is reached, as soon as that is decided, and which password the spec shows.
func (r *objects) publishAddresses(_ context.Context, m *mlflowv1.MLflow) error {
	in := r.inputs()
	m.Status.Address = nil
	if url := resources.AddressURL(m, in); url != "" {
		m.Status.Address = &mlflowv1.MLflowAddress{URL: url}
	}
	m.Status.URL = resources.ExternalURL(m, in)
	m.Status.ArtifactsURL = resources.ArtifactsURL(m, in)
	reportCredentials(m)
	return nil
}

// checkCABundle waits for the ConfigMap that the user named: without it the server would trust less than asked for.
func (r *objects) checkCABundle(ctx context.Context, m *mlflowv1.MLflow) error {
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
		text = fmt.Sprintf("CA bundle ConfigMap %q not found in namespace %q", name, namespace)
		err = &reconciler.Wait{For: "ConfigMap " + namespace + "/" + name}
	}
	setCondition(m, ConditionAvailable, metav1.ConditionFalse, ReasonCABundleConfigMap, text)
	return err
}

// applyObjects writes everything but the claim, with the workloads on or off as the database migration demands, does what the
// migration needs next, and removes what is no longer wanted.
func (r *objects) applyObjects(ctx context.Context, m *mlflowv1.MLflow, aside *troubles) error {
	in := r.inputs()
	exists, err := r.configMapExists(ctx, resources.PlatformCAName)
	if err != nil {
		setCondition(m, ConditionAvailable, metav1.ConditionFalse, ReasonPlatformCABundle,
			fmt.Sprintf("Failed to check for platform CA bundle ConfigMap %q: %v", resources.PlatformCAName, err))
		return err
	}
	in.PlatformCABundle = exists
	running, err := r.deployment(ctx, resources.Tracking(m), r.cached, r.live) // the cache does not show one that has lost our label
	if client.IgnoreNotFound(err) != nil {
		return notApplied(m, err)
	}
	in.VerifyPostgres, in.Authorities = resources.KeepsVerification(running), r.authorities(m)
	m.Status.Scale = common.ScaleStatus(running, resources.Tracking(m).Selector())
	stamps, err := r.stamps(ctx, m, in.Namespace)
	if err != nil {
		return notApplied(m, err)
	}
	p := resources.NewPlan(m, in)
	for name, stamp := range stamps {
		stamp.Apply(p.Server.Deployment(name))
	}
	d, err := r.planMigration(ctx, m, in)
	if err != nil {
		return err
	}
	server, chores := workloadsFor(&p, &d)
	if err := r.applier.Apply(ctx, m, server); err != nil {
		return notApplied(m, err)
	}
	if err := r.stopArtifacts(ctx, m, &d); err != nil {
		return notApplied(m, err)
	}
	aside.add("scheduling jobs", reportAside(m, ConditionChores, ReasonScheduledJobsFailed,
		"Garbage collection or trace archival could not be set up", r.applier.Apply(ctx, m, chores)))
	aside.add("removing objects that are no longer wanted", reportAside(m, ConditionPruned, ReasonRemovalFailed,
		"An object that is no longer wanted could not be removed", r.prune(ctx, m, in, p.All(), &d)))
	end := r.carryOut(ctx, m, in, &d)
	if end == nil {
		end = r.follow(ctx, m, &d)
	}
	if unreachable := r.expose(ctx, m, in, p.Exposed, aside); unreachable != nil {
		failApply(m, unreachable)
	}
	return end
}

// prune removes what is no longer wanted, also of what an operator before this one may have left. A server for artifacts goes once no
// migration waits for its end, and its certificate with it.
func (r *objects) prune(ctx context.Context, m *mlflowv1.MLflow, in resources.Inputs, desired apply.Desired, d *migration.Decision) error {
	kinds, united := prunable(in), !resources.Splits(m) && d.Workloads == migration.RunAsSpecified
	if united {
		kinds = append(kinds, serviceKind, deploymentKind)
	}
	err := r.applier.Prune(ctx, m, desired, kinds, &client.ListOptions{Namespace: in.Namespace, LabelSelector: ofServers(m).Selector})
	if err != nil || !united {
		return err
	}
	head, err := capability.GetMetadata(ctx, r.cached, secretKind, client.ObjectKey{Namespace: in.Namespace, Name: resources.Artifacts(m).Secret})
	if err != nil || head == nil || !apply.IsOurs(head, ComponentName) || !metav1.IsControlledBy(head, m) {
		return err
	}
	return r.applier.DeleteOwned(ctx, m.UID, head)
}

// notApplied reports what could not be written, if anything. What is just going away is no fault of anything, and waited for.
func notApplied(m *mlflowv1.MLflow, err error) error {
	if err == nil {
		return nil
	}
	if apply.IsTerminating(err) {
		return &reconciler.Wait{For: "what is being deleted to be gone", Retry: time.Second}
	}
	failApply(m, err)
	return err
}

// stamps decides for each server whether running pods must be replaced because something they consume has changed since its Deployment
// was written, and says what of it does not exist.
func (r *objects) stamps(ctx context.Context, m *mlflowv1.MLflow, namespace string) (map[string]reference.RolloutHash, error) {
	resolved, err := r.references.Resolve(ctx, m.UID, namespace, references(m, resources.Servers(m)...))
	if err != nil {
		return nil, err
	}
	if err := r.reportMissing(ctx, m, namespace, resolved.Missing); err != nil {
		return nil, err
	}
	stamps := map[string]reference.RolloutHash{}
	for _, s := range resources.Servers(m) {
		d, err := r.deployment(ctx, s, r.cached, r.live)
		if client.IgnoreNotFound(err) != nil {
			return nil, err
		}
		refs := references(m, s)
		if s.Name == resources.NameOf(m) && resources.Archives(m) {
			ref, hash := resources.ArchivalReference(m)
			refs, resolved.Hashes[ref.ID()] = append(refs, ref), hash
		}
		if stamps[s.Name], err = reference.ForDeployment(d, resolved.Hashes, refs); err != nil {
			return nil, err
		}
	}
	return stamps, nil
}

// observeRollout reports how far the Deployments are, and why they are not further.
func (r *objects) observeRollout(ctx context.Context, m *mlflowv1.MLflow) error {
	for _, s := range resources.Servers(m) {
		if ready, err := r.observe(ctx, m, s); !ready {
			return err
		}
	}
	if _, is := keptAsIs(m); !is { // else the servers that are ready are those of before
		if err := r.concludeMigration(ctx, m); err != nil {
			return err
		}
	}
	reportReady(m)
	return nil
}

// observe reports how far the Deployment of a server is, unless it is ready.
func (r *objects) observe(ctx context.Context, m *mlflowv1.MLflow, s resources.Server) (ready bool, err error) {
	from := []client.Reader{r.cached, r.live}
	if rolloutPending(m) {
		from = from[1:] // the cache may still show the server of before the migration
	}
	d, err := r.deployment(ctx, s, from...)
	if client.IgnoreNotFound(err) != nil {
		setCondition(m, ConditionAvailable, metav1.ConditionUnknown, ReasonRolloutUnknown, fmt.Sprintf("Deployment %s could not be read: %v", s.Name, err))
		return false, err
	}
	if err != nil {
		d.Spec.Replicas = &s.Replicas // it is kept from being made
	}
	state := conditions.Rollout(d)
	if _, is := keptAsIs(m); !is && state.Desired == 0 {
		// This reconciliation has started what the migration had stopped, and the cache does not show it yet.
		state.Ready, state.Desired = false, s.Replicas
	}
	if state.Ready && state.Desired > 0 {
		return true, nil
	}
	if state.Reason == conditions.ReasonNotObserved && conditions.IsTrue(m.Status.Conditions, ConditionAvailable) {
		// A matter of milliseconds, and often of an annotation only. What was true stays so until more is known.
		return false, &reconciler.Wait{For: "the Deployment controller", Retry: time.Second, Unready: true}
	}
	cause, err := r.diagnose(ctx, m, s)
	switch {
	case err != nil:
		cause = fmt.Sprintf("the cause could not be looked up: %v", err)
	case cause == "" && state.Failed: // the stages of a rollout that goes well are not worth a status write each
		cause = state.Message
	}
	reportRollout(m, s, state, cause)
	if err != nil {
		return false, err
	}
	return false, &reconciler.Wait{
		For: "Deployment " + s.Name + " to become ready", Retry: diagnoseAfter, Stalled: state.Reason == conditions.ReasonDeadlineExceeded,
	}
}

// diagnose names what keeps the pods of a server from running; empty when nothing is known.
func (r *objects) diagnose(ctx context.Context, m *mlflowv1.MLflow, s resources.Server) (string, error) {
	pods := &corev1.PodList{}
	ofServer := client.MatchingLabels{resources.LabelApp: s.Name}
	if err := r.live.List(ctx, pods, client.InNamespace(r.inputs().Namespace), ofServer, client.Limit(20)); err != nil {
		return "", fmt.Errorf("listing the pods of the server: %w", err)
	}
	return r.causeOf(ctx, m, pods.Items)
}

// deployment is the Deployment of a server as the first reader that has it shows it; an empty one beside the error NotFound.
func (r *objects) deployment(ctx context.Context, s resources.Server, from ...client.Reader) (*appsv1.Deployment, error) {
	d := &appsv1.Deployment{}
	if err := r.read(ctx, s.Name, d, from...); err != nil {
		return d, fmt.Errorf("reading Deployment %s: %w", s.Name, err)
	}
	return d, nil
}

// read gets a child from the first reader that has it.
func (r *objects) read(ctx context.Context, name string, child client.Object, from ...client.Reader) (err error) {
	for _, reader := range from {
		err = reader.Get(ctx, client.ObjectKey{Namespace: r.inputs().Namespace, Name: name}, child)
		if !apierrors.IsNotFound(err) {
			break
		}
	}
	return err
}

func (r *objects) configMapExists(ctx context.Context, name string) (bool, error) {
	head, err := capability.GetMetadata(ctx, r.cached, configMapKind, client.ObjectKey{Namespace: r.inputs().Namespace, Name: name})
	return head != nil, err
}

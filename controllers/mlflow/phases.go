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

	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
	"github.com/odh-platform/odh-platform-operator/controllers/mlflow/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/admission"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
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
	// certificates and artifactsCertificates keep the serving certificates where no platform makes them.
	certificates, artifactsCertificates *servingcert.Keeper
	stores                              *storeJudge
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
		return failBuild(m, err)
	}
	if err := r.keepClaim(ctx, m, aside); err != nil {
		return fmt.Errorf("keeping the volume claim: %w", err)
	}
	aside.add("keeping the serving certificate", r.keepCertificates(ctx, m))
	if err := r.applyObjects(ctx, m, aside); err != nil {
		return fmt.Errorf("applying objects: %w", err)
	}
	return errors.Join(r.certificates.AwaitRenewal(m.UID), r.artifactsCertificates.AwaitRenewal(m.UID))
}

// forget drops what is remembered of an MLflow that is gone.
func (r *objects) forget(uid types.UID) {
	r.applier.Forget(uid)
	r.references.Forget(uid)
	r.certificates.Forget(uid)
	r.artifactsCertificates.Forget(uid)
	r.stores.forget(uid)
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
	exists, err := r.configMapExists(ctx, namespace, name)
	switch {
	case err != nil:
		setCondition(m, ConditionAvailable, metav1.ConditionFalse, ReasonCABundleConfigMap,
			fmt.Sprintf("Failed to get CA bundle ConfigMap %q: %v", name, err))
		return err
	case !exists:
		setCondition(m, ConditionAvailable, metav1.ConditionFalse, ReasonCABundleConfigMap,
			fmt.Sprintf("CA bundle ConfigMap %q not found in namespace %q", name, namespace))
		return &reconciler.Wait{For: "ConfigMap " + namespace + "/" + name}
	}
	return nil
}

// keepClaim creates the volume claim, or brings the marks, the owner and the size of a live one up to date.
// What the API server refuses of that is reported in a condition and keeps nothing else from being done.
func (r *objects) keepClaim(ctx context.Context, m *mlflowv1.MLflow, aside *troubles) error {
	if m.Spec.Storage == nil {
		reportClaim(m, "")
		return nil
	}
	claim, err := r.claim(ctx, m)
	if apierrors.IsNotFound(err) {
		reportClaim(m, "")
		return r.createClaim(ctx, m)
	}
	if err != nil {
		failApply(m, &apply.Error{Kind: claimKind.Kind, Name: resources.ClaimName(m), Err: err})
		return fmt.Errorf("reading PersistentVolumeClaim %s: %w", resources.ClaimName(m), err)
	}
	reportClaim(m, claimDifference(claim, m))
	if !ownsClaim(claim) {
		return nil
	}
	aside.add("keeping the volume claim", r.adjustClaim(ctx, m, claim))
	return nil
}

// adjustClaim brings a claim of ours up to date. A storage class that does not let it grow keeps nothing but its size as it is.
func (r *objects) adjustClaim(ctx context.Context, m *mlflowv1.MLflow, claim *corev1.PersistentVolumeClaim) error {
	marked := claim.DeepCopy()
	refused := r.applier.Adjust(ctx, claim, func() { markClaim(claim, m); growClaim(claim, m) })
	if refused == nil || apierrors.IsConflict(refused) {
		return refused
	}
	reason, err := ReasonApplyFailed, r.applier.Adjust(ctx, marked, func() { markClaim(marked, m) })
	if err == nil {
		reason, err = ReasonExpansionRefused, refused
	}
	setCondition(m, ConditionStorage, metav1.ConditionFalse, reason, fmt.Sprintf("PersistentVolumeClaim %s could not be changed: %v", claim.Name, cause(err)))
	return err
}

// cause is the reason that an apply.Error holds, for messages which name the object themselves.
func cause(err error) error {
	if failed, ok := errors.AsType[*apply.Error](err); ok {
		return failed.Err
	}
	return err
}

func (r *objects) createClaim(ctx context.Context, m *mlflowv1.MLflow) error {
	if err := r.applier.Apply(ctx, m, apply.Desired{resources.PVC(m, r.inputs())}); err != nil {
		return notApplied(m, err)
	}
	return nil
}

// claim reads the claim from the cache, which holds those that bear our label, and else from the API server.
func (r *objects) claim(ctx context.Context, m *mlflowv1.MLflow) (*corev1.PersistentVolumeClaim, error) {
	claim := &corev1.PersistentVolumeClaim{}
	key := client.ObjectKey{Namespace: r.inputs().Namespace, Name: resources.ClaimName(m)}
	if err := r.cached.Get(ctx, key, claim); !apierrors.IsNotFound(err) {
		return claim, err
	}
	return claim, r.live.Get(ctx, key, claim)
}

// applyObjects writes everything but the claim, with the workloads on or off as the database migration demands, does what the
// migration needs next, and removes what is no longer wanted.
func (r *objects) applyObjects(ctx context.Context, m *mlflowv1.MLflow, aside *troubles) error {
	in := r.inputs()
	exists, err := r.configMapExists(ctx, in.Namespace, resources.PlatformCAName)
	if err != nil {
		setCondition(m, ConditionAvailable, metav1.ConditionFalse, ReasonPlatformCABundle,
			fmt.Sprintf("Failed to check for platform CA bundle ConfigMap %q: %v", resources.PlatformCAName, err))
		return err
	}
	in.PlatformCABundle = exists
	d, err := r.lastDeployment(ctx, resources.Tracking(m), in.Namespace)
	if err != nil {
		failApply(m, err)
		return err
	}
	in.VerifyPostgres, in.Authorities = resources.KeepsVerification(d), r.authorities(m)
	m.Status.Scale = common.Scaled(d, resources.Tracking(m).Selector())
	stamps, err := r.stamps(ctx, m, in.Namespace)
	if err != nil {
		failApply(m, err)
		return err
	}
	p := resources.NewPlan(m, in)
	resources.Stamp(p.Server, stamps)
	migration, err := r.planMigration(ctx, m, in)
	if err != nil {
		return err
	}
	server, chores := workloadsFor(&p, &migration)
	if err := r.applier.Apply(ctx, m, server); err != nil {
		return notApplied(m, err)
	}
	if err := r.stopArtifacts(ctx, m, &migration); err != nil {
		return notApplied(m, err)
	}
	aside.add("scheduling jobs", reportAside(m, ConditionChores, ReasonScheduledJobsFailed,
		"Garbage collection or trace archival could not be set up", r.applier.Apply(ctx, m, chores)))
	aside.add("removing objects that are no longer wanted", reportAside(m, ConditionPruned, ReasonRemovalFailed,
		"An object that is no longer wanted could not be removed", errors.Join(r.prune(ctx, m, in, p.All()), r.pruneArtifacts(ctx, m, p.All(), &migration))))
	end := r.carryOut(ctx, m, in, &migration)
	if end == nil {
		end = r.follow(ctx, m, &migration)
	}
	if unreachable := r.expose(ctx, m, in, p.Exposed, aside); unreachable != nil {
		failApply(m, unreachable)
	}
	return end
}

// prune removes what is no longer wanted, also of what an operator before this one may have left.
func (r *objects) prune(ctx context.Context, m *mlflowv1.MLflow, in resources.Inputs, desired apply.Desired) error {
	apps, err := appsSelector(m)
	if err != nil {
		return err
	}
	return r.applier.Prune(ctx, m, desired, prunable(in), &client.ListOptions{Namespace: in.Namespace, LabelSelector: apps})
}

// failBuild ends the reconciliation until the spec changes: nothing else can help, and that comes with an event.
func failBuild(m *mlflowv1.MLflow, err error) error {
	fail(m, ReasonRenderFailed, fmt.Sprintf("Failed to build the objects of the server: %v", err))
	return &reconciler.Wait{For: "a valid spec", Stalled: true}
}

// notApplied reports what could not be written. What is just going away is no fault of anything.
func notApplied(m *mlflowv1.MLflow, err error) error {
	if apply.Vanishing(err) {
		return &reconciler.Wait{For: "what is being deleted to be gone", Retry: time.Second}
	}
	failApply(m, err)
	return err
}

// lastDeployment is the Deployment of a server as it is, empty when there is none.
func (r *objects) lastDeployment(ctx context.Context, s resources.Server, namespace string) (*appsv1.Deployment, error) {
	d, err := r.deployment(ctx, s)
	if apierrors.IsNotFound(err) {
		// One that has lost our label is not in memory; without its annotations its pods would roll.
		err = r.live.Get(ctx, client.ObjectKey{Namespace: namespace, Name: s.Name}, d)
	}
	if client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("reading what the pods were started with: %w", err)
	}
	return d, nil
}

// stamps decides for each server whether running pods must be replaced because something they consume has changed since its Deployment
// was written, and says what of it does not exist.
func (r *objects) stamps(ctx context.Context, m *mlflowv1.MLflow, namespace string) (map[string]reference.Stamp, error) {
	all := references(m)
	resolved, err := r.references.Resolve(ctx, m.UID, namespace, all)
	if err != nil {
		return nil, err
	}
	if err := r.reportMissing(ctx, m, namespace, resolved.Missing); err != nil {
		return nil, err
	}
	stamps := map[string]reference.Stamp{}
	for _, s := range resources.Servers(m) {
		d, err := r.lastDeployment(ctx, s, namespace)
		if err != nil {
			return nil, err
		}
		refs := consumedBy(s, m, all)
		if s.Name == resources.NameOf(m) && resources.Archives(m) {
			ref, hash := resources.ArchivalReference(m)
			refs, resolved.Hashes[ref.ID()] = append(refs, ref), hash
		}
		if stamps[s.Name], err = reference.NextOn(d, resolved.Hashes, refs); err != nil {
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
	d, err := r.deployment(ctx, s)
	if _, is := keptAsIs(m); is && apierrors.IsNotFound(err) {
		// It is left as it is, so it may lack the label by which the cache knows it.
		err = r.live.Get(ctx, client.ObjectKey{Namespace: r.inputs().Namespace, Name: s.Name}, d)
	}
	if apierrors.IsNotFound(err) {
		d, err = &appsv1.Deployment{Spec: appsv1.DeploymentSpec{Replicas: &s.Replicas}}, nil // made a moment ago
	}
	if err != nil {
		setCondition(m, ConditionAvailable, metav1.ConditionUnknown, ReasonRolloutUnknown, fmt.Sprintf("Deployment %s could not be read: %v", s.Name, err))
		return false, err
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
	cause, err := r.diagnose(ctx, m, s, state)
	if err != nil {
		reportRollout(m, s, state, fmt.Sprintf("the cause could not be looked up: %v", err))
		return false, err
	}
	reportRollout(m, s, state, cause)
	return false, &reconciler.Wait{
		For: "Deployment " + s.Name + " to become ready", Retry: diagnoseAfter, Stalled: state.Reason == conditions.ReasonDeadlineExceeded,
	}
}

// diagnose names the nearest cause: that of the pods, else what the Deployment says.
func (r *objects) diagnose(ctx context.Context, m *mlflowv1.MLflow, s resources.Server, state conditions.RolloutState) (string, error) {
	namespace := r.inputs().Namespace
	pods := &corev1.PodList{}
	if err := r.live.List(ctx, pods, client.InNamespace(namespace), client.MatchingLabels{resources.LabelApp: s.Name}, client.Limit(20)); err != nil {
		return "", fmt.Errorf("listing the pods of the server: %w", err)
	}
	if cause, err := r.causeOf(ctx, m, pods.Items); cause != "" || err != nil {
		return cause, err
	}
	if state.Failed {
		return state.Message, nil
	}
	return "", nil // the stages of a rollout that goes well are not worth a status write each
}

func (r *objects) deployment(ctx context.Context, s resources.Server) (*appsv1.Deployment, error) {
	d := &appsv1.Deployment{}
	err := r.cached.Get(ctx, client.ObjectKey{Namespace: r.inputs().Namespace, Name: s.Name}, d)
	return d, err
}

func (r *objects) configMapExists(ctx context.Context, namespace, name string) (bool, error) {
	head := &metav1.PartialObjectMetadata{}
	head.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
	err := r.cached.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, head)
	return err == nil, client.IgnoreNotFound(err)
}

package modelregistry

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/apis/modelregistry/v1beta1"
	"github.com/odh-platform/odh-platform-operator/controllers/modelregistry/database"
	"github.com/odh-platform/odh-platform-operator/controllers/modelregistry/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/aihub"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/reconciler"
	"github.com/odh-platform/odh-platform-operator/pkg/reference"
	"github.com/odh-platform/odh-platform-operator/pkg/servers"
	"github.com/odh-platform/odh-platform-operator/pkg/servingcert"
	"github.com/odh-platform/odh-platform-operator/pkg/status/conditions"
	"github.com/odh-platform/odh-platform-operator/pkg/status/serving"
	"github.com/odh-platform/odh-platform-operator/pkg/takeover"
)

// registryReconciler reconciles ModelRegistry objects. Its phases run in the order of the method phases.
type registryReconciler struct {
	*servers.Reconciler

	settings Settings
	// aihub watches the AIHub; nil if the component platform is disabled.
	aihub  *aihub.Watcher
	served func() capability.Set
	// domain is the default domain of the routers of OpenShift.
	domain     servers.Domain
	pods       client.Reader
	recorder   events.EventRecorder
	readPodLog logReader
	states     reconciler.UIDMap[*state]
	takeOver   takeover.Interface[*v1beta1.ModelRegistry]
	// unownedMu serializes the creation and update of objects outside of the namespaces of registries, because registries of the same name
	// use the same object names.
	unownedMu sync.Mutex
}

// state holds data of one registry between reconciles, which never overlap.
type state struct {
	// platform is the snapshot of platform settings for this reconcile.
	platform servers.Platform
	// defaulted is the registry with the defaults of admission, nil if the webhooks are enabled.
	defaulted *v1beta1.ModelRegistry
	// missingReferences are the missing objects that pods need to start, as found by this reconcile.
	missingReferences []reference.Missing
	// credentials of the generated database, from the last read of their Secret.
	credentials credentials
	// orphanedGeneration is the generation of a spec without a generated database for which the owner references of the data of an earlier
	// spec were updated.
	orphanedGeneration int64
	// dataImage is the image that wrote the data of the generated database.
	dataImage database.Image
	// databaseImage is the image of the Deployment of the generated database, "" if the registry controls no such Deployment.
	databaseImage string
	// backupBlocked is set if no backups can be made.
	backupBlocked *metav1.Condition
	// backupFailed is the time at which an unreported failure of a backup was first observed, or zero.
	backupFailed time.Time
	// recheck is the time of a reconcile without an event, or zero.
	recheck time.Time
	// rejectedSizes holds the rejected expansions of claims, by the storage field of the spec.
	rejectedSizes map[string]rejectedSize
	lastLog       *scannedLog
}

// recheckAt requests a reconcile at a time, unless an earlier one is requested.
func (s *state) recheckAt(at time.Time) {
	if s.recheck.IsZero() || at.Before(s.recheck) {
		s.recheck = at
	}
}

// awaitDeadlines returns a Wait until the next reconcile without an event, or nil.
func (r *registryReconciler) awaitDeadlines(_ context.Context, m *v1beta1.ModelRegistry) error {
	err := r.AwaitDeadlines(m.UID)
	if at := r.stateOf(m).recheck; !at.IsZero() {
		err = errors.Join(err, &reconciler.Wait{For: "a check of volumes and backups", Retry: max(at.Sub(r.Clock.Now()), time.Second)})
	}
	return err
}

func (r *registryReconciler) stateOf(m *v1beta1.ModelRegistry) *state {
	s, found := r.states.Get(m.UID)
	if !found {
		s = &state{rejectedSizes: map[string]rejectedSize{}}
		r.states.Set(m.UID, s)
	}
	return s
}

// forget removes the state of a deleted registry.
func (r *registryReconciler) forget(uid types.UID) {
	r.Forget(uid)
	r.states.Delete(uid)
}

func (r *registryReconciler) logic() reconciler.Logic[*v1beta1.ModelRegistry] {
	return reconciler.Logic[*v1beta1.ModelRegistry]{
		Phases:                  r.phases(),
		Finalizer:               v1beta1.Finalizer,
		Finalize:                r.finalize,
		OnDeleted:               r.forget,
		MayWait:                 mayWait,
		InformationalConditions: []string{ConditionUnusedDatabase, ConditionBackup, servingcert.ReasonExpires},
	}
}

// mayWait reports whether a status update may be delayed, because it only reports the normal start of a server. The first update of a
// generation is not delayed, nor a change of condition EarlierData, because its Event would be repeated.
func mayWait(original, m *v1beta1.ModelRegistry) bool {
	before, after := original.Status.Conditions, m.Status.Conditions
	available, _ := conditions.Get(after, ConditionAvailable)
	return original.Status.ObservedGeneration == m.Generation && !conditions.IsTrue(before, ConditionAvailable) &&
		slices.Contains([]string{serving.ReasonStarting, serving.ReasonCooldown}, available.Reason) &&
		conditions.IsTrue(before, ConditionEarlierData) == conditions.IsTrue(after, ConditionEarlierData)
}

func (r *registryReconciler) phases() []reconciler.Phase[*v1beta1.ModelRegistry] {
	return []reconciler.Phase[*v1beta1.ModelRegistry]{
		{Name: "reading the platform settings", Run: r.waitForPlatform},
		{Name: "removing outdated conditions", Run: r.removeOutdatedConditions},
		{Name: "checking the namespace", Run: r.validateNamespace},
		{Name: "migrating deprecated fields", Run: r.reportErrors(r.migrateSpec)},
		{Name: "checking the spec", Run: r.reportErrors(r.validateSpec)},
		{Name: "waiting for the domain", Run: r.waitForDomain},
		{Name: "ensuring the data", Run: r.reportErrors(r.ensureData)},
		{Name: "issuing certificates", Run: r.reportErrors(r.ensureCertificates)},
		{Name: "applying objects", Run: r.reportErrors(r.applyObjects)},
		{Name: "observing the server", Run: r.reportErrors(r.observeServer)},
		{Name: "scheduling the next reconcile", Run: r.awaitDeadlines},
	}
}

// reportErrors sets the condition Available to False if a phase fails. A Wait or a conflict is not a failure.
func (r *registryReconciler) reportErrors(run func(context.Context, *v1beta1.ModelRegistry) error) func(context.Context, *v1beta1.ModelRegistry) error {
	return func(ctx context.Context, m *v1beta1.ModelRegistry) error {
		err := run(ctx, m)
		if _, isWait := errors.AsType[*reconciler.Wait](err); isWait || apply.AllErrorsMatch(err, apierrors.IsConflict) {
			return err // a retry resolves a conflict
		}
		return servers.ReportError(err, func() { reportFailure(m, err) })
	}
}

// The common names of the CAs of server and database.
const (
	serverCAName   = "odh-platform-operator-model-registry-ca"
	databaseCAName = "odh-platform-operator-model-registry-database-ca"
)

// ensureCertificates issues the serving certificate of the proxy, unless the platform or the user provides one, and the certificate of a
// generated database with TLS.
func (r *registryReconciler) ensureCertificates(ctx context.Context, m *v1beta1.ModelRegistry) error {
	var specs []servingcert.Spec
	if m.Spec.KubeRBACProxy != nil && managesCertificate(m) && !r.stateOf(m).platform.Served.Has(capability.Route) {
		specs = append(specs, servingcert.Spec{
			Namespace: m.Namespace, Name: resources.ServingSecretName(m), CACommonName: serverCAName, Service: resources.ServiceName(m),
			Labels: resources.Labels(m, resources.ServiceName(m)),
		})
	}
	if generatesDatabase(m) && resources.EncryptsDatabase(m) {
		specs = append(specs, servingcert.Spec{
			Namespace: m.Namespace, Name: resources.DatabaseTLSName(m), CACommonName: databaseCAName, Service: resources.DatabaseName(m),
			Labels: resources.Labels(m, resources.DatabaseName(m)), Condition: servingcert.DatabaseCondition,
		})
	}
	return r.Certificates.Ensure(ctx, m, specs...)
}

// applyObjects applies all objects except data and certificates, deletes undesired objects, and sets hosts and defaults in the status.
func (r *registryReconciler) applyObjects(ctx context.Context, m *v1beta1.ModelRegistry) error {
	ctx, changes := apply.RecordChanges(ctx)
	s := r.stateOf(m)
	effective := withDefaults(cmp.Or(s.defaulted, m), &s.platform, s.credentials)
	if err := r.pinDatabaseImage(m, effective); err != nil {
		return err
	}
	in := buildInputs(m, &s.platform)
	in.Authority = r.Certificates.CABundle(m.UID, resources.ServingSecretName(m))
	if err := r.resolveReferences(ctx, m, effective, &in); err != nil {
		return err
	}
	if err := r.ReadRoutes(ctx, m, &in.Publishing, resources.ExposureObjects(effective, in)); err != nil {
		return err
	}
	reportSpec(m, effective, in)
	err := r.applyAll(ctx, m, effective, in)
	r.reportProgress(ctx, m, changes, err)
	return err
}

// applyAll applies objects in order. It stops at an error of a dependency, such as the database or the RBAC of the proxy. An error of the
// exposure only prevents the deletion of undesired objects.
func (r *registryReconciler) applyAll(ctx context.Context, m, effective *v1beta1.ModelRegistry, in resources.Inputs) error {
	exposureErr, err := r.applyDatabase(ctx, m, effective, in)
	if err != nil {
		return errors.Join(exposureErr, err)
	}
	transition, err := r.detectProxyTransition(ctx, m, effective)
	if err != nil {
		return err
	}
	in.ProxyPending = transition.inProgress && m.Spec.KubeRBACProxy != nil
	desired, err := resources.Build(effective, in)
	if err != nil {
		return rejectSpec(m, err)
	}
	owned, unowned := splitByOwnership(transition.withoutDeferred(desired))
	if err := r.applyUnowned(ctx, m, unowned.InStages(apply.Prerequisites)); err != nil {
		return err
	}
	err = r.Applier.Apply(ctx, m, owned)
	if err != nil && !apply.OnlyExposureFailed(err) {
		return errors.Join(exposureErr, err)
	}
	if err := errors.Join(exposureErr, err, r.applyUnowned(ctx, m, unowned.InStages(apply.Exposure))); err != nil {
		return err
	}
	if transition.inProgress {
		return nil // the ready pods still need the objects; the deletion of these pods triggers the next reconcile
	}
	return r.prune(ctx, m, desired, in)
}

// applyDatabase applies a generated database and its backups. exposureErr holds errors that only affect access from other pods.
func (r *registryReconciler) applyDatabase(ctx context.Context, m, effective *v1beta1.ModelRegistry, in resources.Inputs) (exposureErr, err error) {
	if !generatesDatabase(m) {
		return nil, nil
	}
	database, err := resources.BuildDatabase(effective, in)
	if err != nil {
		return nil, rejectSpec(m, err)
	}
	if exposureErr = r.Applier.Apply(ctx, m, database); exposureErr != nil && !apply.OnlyExposureFailed(exposureErr) {
		return nil, exposureErr
	}
	return exposureErr, r.applyBackup(ctx, m, effective, in)
}

func (r *registryReconciler) eventf(m *v1beta1.ModelRegistry, eventType, reason, note string, args ...any) {
	r.recorder.Eventf(m, nil, eventType, reason, reason, note, args...)
}

// reportProgress sets condition Progressing to True if objects were created or updated, and records the Events that the legacy operator
// recorded. An error without such a write does not change the condition.
func (r *registryReconciler) reportProgress(ctx context.Context, m *v1beta1.ModelRegistry, changes *apply.Changes, err error) {
	switch {
	case ctx.Err() != nil:
	case changes.Created > 0:
		r.eventf(m, corev1.EventTypeNormal, "ServiceCreated", "Created service for custom resource %s in namespace %s", m.Name, m.Namespace)
		setCondition(m, ConditionProgressing, metav1.ConditionTrue, ReasonCreating, "Creating deployment")
	case changes.Updated > 0:
		r.eventf(m, corev1.EventTypeNormal, "ServiceUpdated", "Updated service for custom resource %s in namespace %s", m.Name, m.Namespace)
		setCondition(m, ConditionProgressing, metav1.ConditionTrue, ReasonUpdating, "Updating deployment")
	case err == nil:
		setCondition(m, ConditionProgressing, metav1.ConditionFalse, ReasonCreated, "Deployment was successfully created")
	}
}

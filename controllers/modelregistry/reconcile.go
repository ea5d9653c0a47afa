package modelregistry

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/apis/modelregistry/v1beta1"
	"github.com/odh-platform/odh-platform-operator/controllers/modelregistry/database"
	"github.com/odh-platform/odh-platform-operator/controllers/modelregistry/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/aihub"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/reconciler"
	"github.com/odh-platform/odh-platform-operator/pkg/reference"
	"github.com/odh-platform/odh-platform-operator/pkg/registry"
	"github.com/odh-platform/odh-platform-operator/pkg/routestatus"
	"github.com/odh-platform/odh-platform-operator/pkg/servingcert"
)

// registries reconciles the children of registries. Its phases run in the order in which they stand here.
type registryReconciler struct {
	settings Settings
	// hub knows the decisions of the platform; nil is none.
	aihub  *aihub.Watcher
	served func() capability.Set
	// domain is that of the cluster's routers.
	domain       registry.Domain
	clock        clock.Clock
	cached       client.Client
	fullObjects  client.Reader // objects of which cached holds the metadata only
	apiReader    client.Reader
	pods         client.Reader
	applier      *apply.Applier
	references   *reference.Tracker
	certificates *registry.Certificates
	recorder     events.EventRecorder
	readPodLog   logReader
	states       reconciler.Memory[*state]
	legacy       legacyCache
	// publishing keeps two registries of one name from taking the same names of cluster scope at the same time.
	publishing sync.Mutex
}

// state is what is remembered of one registry. Reconciles of one registry never overlap.
type state struct {
	// platform is what the present reconcile has taken.
	platform registry.Platform
	// said is what Gateway and routers report about what publishes the registry.
	routeReport routestatus.Report
	// admitted is the registry as the webhooks would have stored it, nil where they have.
	defaulted *v1beta1.ModelRegistry
	// missing are the objects without which no pods start, as the present reconcile has found them.
	missingReferences []reference.Missing
	// credentials of a generated database, as they were read last.
	credentials credentials
	// released is the generation of a spec without a generated database for which the marks of data of before were put right.
	orphanedGeneration int64
	// wrote is what wrote the data of a generated database, and unsaved why there can be no backups of it, if so.
	dataVersion   database.Image
	backupBlocked *metav1.Condition
	// refusals of claims to grow, by the field that asks for the size.
	rejectedSizes map[string]rejectedSize
	lastLog       *logRun
}

// of returns what is remembered of a registry.
func (r *registryReconciler) stateOf(m *v1beta1.ModelRegistry) *state {
	s, known := r.states.Get(m.UID)
	if !known {
		s = &state{rejectedSizes: map[string]rejectedSize{}}
		r.states.Set(m.UID, s)
	}
	return s
}

// forget drops what is remembered of a registry that is gone.
func (r *registryReconciler) forget(uid types.UID) {
	r.applier.Forget(uid)
	r.references.Forget(uid)
	r.certificates.Forget(uid)
	r.states.Forget(uid)
}

func (r *registryReconciler) logic() reconciler.Logic[*v1beta1.ModelRegistry] {
	return reconciler.Logic[*v1beta1.ModelRegistry]{
		Phases:                  r.phases(),
		Finalizer:               v1beta1.Finalizer,
		Finalize:                r.finalize,
		OnDeleted:               r.forget,
		InformationalConditions: []string{ConditionUnusedDatabase, ConditionBackup, servingcert.ReasonExpires},
	}
}

func (r *registryReconciler) phases() []reconciler.Phase[*v1beta1.ModelRegistry] {
	return []reconciler.Phase[*v1beta1.ModelRegistry]{
		{Name: "dropping older conditions", Run: removeLegacyConditions},
		{Name: "learning the decisions of the platform", Run: r.waitForPlatform},
		{Name: "checking the namespace", Run: r.validateNamespace},
		{Name: "moving older fields", Run: r.reportErrors(r.migrateSpec)},
		{Name: "checking the spec", Run: r.reportErrors(r.validateSpec)},
		{Name: "learning the domain", Run: r.waitForDomain},
		{Name: "keeping the data", Run: r.reportErrors(r.ensureData)},
		{Name: "keeping the certificates", Run: r.reportErrors(r.ensureCertificates)},
		{Name: "applying objects", Run: r.reportErrors(r.applyObjects)},
		{Name: "observing the server", Run: r.reportErrors(r.observeServer)},
		{Name: "awaiting the renewal of the certificates", Run: r.requeueForRenewal},
	}
}

// reportErrors reports whatever ends a phase in the condition that users look at. Waiting is no failure.
func (r *registryReconciler) reportErrors(run func(context.Context, *v1beta1.ModelRegistry) error) func(context.Context, *v1beta1.ModelRegistry) error {
	return func(ctx context.Context, m *v1beta1.ModelRegistry) error {
		err := run(ctx, m)
		if _, waits := errors.AsType[*reconciler.Wait](err); err == nil || waits {
			return err
		}
		if apply.IsTerminating(err) {
			return &reconciler.Wait{For: "what is being deleted to be gone", Retry: time.Second}
		}
		if apply.OnlyErrors(err, apierrors.IsConflict) {
			return err // another client wrote in between: the next reconcile sees it
		}
		reportFailure(m, err)
		return err
	}
}

// The common names of the CAs of server and database.
const (
	certificateAuthority = "odh-platform-operator-model-registry-ca"
	databaseAuthority    = "odh-platform-operator-model-registry-database-ca"
)

// keepCertificates issues the serving certificate of the proxy where no platform does, and the user brings none, and that of a generated
// database that serves TLS.
func (r *registryReconciler) ensureCertificates(ctx context.Context, m *v1beta1.ModelRegistry) error {
	var server, database *servingcert.Wanted
	if m.Spec.KubeRBACProxy != nil && managesCertificate(m) && !r.stateOf(m).platform.Served.Has(capability.Route) {
		server = &servingcert.Wanted{
			Namespace: m.Namespace, Name: resources.ServingSecretName(m), Authority: certificateAuthority, Service: resources.ServiceName(m),
			Labels: resources.Labels(m, resources.ServiceName(m)),
		}
	}
	if generatesDatabase(m) && resources.EncryptsDatabase(m) {
		database = &servingcert.Wanted{
			Namespace: m.Namespace, Name: resources.DatabaseTLSName(m), Authority: databaseAuthority, Service: resources.DatabaseName(m),
			Labels: resources.Labels(m, resources.DatabaseName(m)),
		}
	}
	return r.certificates.Keep(ctx, m, server, database)
}

// awaitRenewal brings the registry back when one of its certificates, or the answer of a Gateway, is due.
func (r *registryReconciler) requeueForRenewal(_ context.Context, m *v1beta1.ModelRegistry) error {
	return errors.Join(r.certificates.AwaitRenewal(m.UID), r.stateOf(m).routeReport.Await())
}

// applyObjects writes everything but the data, removes what is no longer wanted, and says where the server is reached.
func (r *registryReconciler) applyObjects(ctx context.Context, m *v1beta1.ModelRegistry) error {
	ctx, changes := apply.CountChanges(ctx)
	s := r.stateOf(m)
	used := withDefaults(cmp.Or(s.defaulted, m), &s.platform, s.credentials)
	r.pinDatabaseImage(m, used)
	in := buildInputs(m, &s.platform)
	in.Authority = r.certificates.Authority(m.UID)
	if err := r.resolveReferences(ctx, m, used, &in); err != nil {
		return err
	}
	if err := in.Hear(ctx, r.fullObjects, resources.Published(used, in), r.clock.Now()); err != nil {
		return err
	}
	s.routeReport = in.Said
	s.routeReport.Set(&m.Status.Conditions, m.Generation)
	if err := reportSpec(m, used, in); err != nil {
		return err
	}
	err := r.applyAll(ctx, m, used, in)
	r.reportProgress(ctx, m, changes)
	return err
}

// writeAll stops at what later objects need: a database that is recreated comes before the server, and so do the rights of its
// proxy. What makes the server reachable holds up nothing.
func (r *registryReconciler) applyAll(ctx context.Context, m, used *v1beta1.ModelRegistry, in resources.Inputs) error {
	unexposed, err := r.applyDatabase(ctx, m, used, in)
	if err != nil {
		return errors.Join(unexposed, err)
	}
	held, err := r.detectProxyTransition(ctx, m, used)
	if err != nil {
		return err
	}
	in.ProxyPending = held.serving && m.Spec.KubeRBACProxy != nil
	desired, err := resources.Build(used, in)
	if err != nil {
		return rejectSpec(m, err)
	}
	own, published := splitByOwnership(held.withoutDeferred(desired))
	if err := r.applyUnowned(ctx, m, published.Of(apply.Guards)); err != nil {
		return err
	}
	err = r.applier.Apply(ctx, m, own)
	if err != nil && !apply.OnlyExposure(err) {
		return errors.Join(unexposed, err)
	}
	if err := errors.Join(unexposed, err, r.applyUnowned(ctx, m, published.Of(apply.Exposure))); err != nil {
		return err
	}
	if held.serving {
		return nil // what the pods that serve need stays; their end is an event
	}
	return r.prune(ctx, m, desired, in)
}

// writeDatabase writes a generated database and what makes its backups. unexposed says what only keeps others from reaching it.
func (r *registryReconciler) applyDatabase(ctx context.Context, m, used *v1beta1.ModelRegistry, in resources.Inputs) (unexposed, err error) {
	if !generatesDatabase(m) {
		return nil, nil
	}
	database, err := resources.BuildDatabase(used, in)
	if err != nil {
		return nil, rejectSpec(m, err)
	}
	if unexposed = r.applier.Apply(ctx, m, database); unexposed != nil && !apply.OnlyExposure(unexposed) {
		return nil, unexposed
	}
	return unexposed, r.applyBackup(ctx, m, used, in)
}

// eventf sends an event about a registry.
func (r *registryReconciler) eventf(m *v1beta1.ModelRegistry, kind, reason, note string, args ...any) {
	r.recorder.Eventf(m, nil, kind, reason, reason, note, args...)
}

// reportProgress says what this reconcile has written, all of it and not only the last object, with the events of the original.
func (r *registryReconciler) reportProgress(ctx context.Context, m *v1beta1.ModelRegistry, changes *apply.Changes) {
	switch {
	case ctx.Err() != nil:
	case changes.Created() > 0:
		r.eventf(m, corev1.EventTypeNormal, "ServiceCreated", "Created service for custom resource %s in namespace %s", m.Name, m.Namespace)
		setCondition(m, ConditionProgressing, metav1.ConditionTrue, ReasonCreating, "Creating deployment")
	case changes.Updated() > 0:
		r.eventf(m, corev1.EventTypeNormal, "ServiceUpdated", "Updated service for custom resource %s in namespace %s", m.Name, m.Namespace)
		setCondition(m, ConditionProgressing, metav1.ConditionTrue, ReasonUpdating, "Updating deployment")
	default:
		setCondition(m, ConditionProgressing, metav1.ConditionFalse, ReasonCreated, "Deployment was successfully created")
	}
}

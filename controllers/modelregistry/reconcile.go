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
type registries struct {
	settings Settings
	// hub knows the decisions of the platform; nil is none.
	hub    *aihub.Watcher
	served func() capability.Set
	// domain is that of the cluster's routers.
	domain       registry.Domain
	clock        clock.Clock
	cached       client.Client
	whole        client.Reader // objects of which cached holds the metadata only
	live         client.Reader
	pods         client.Reader
	applier      *apply.Applier
	references   *reference.Tracker
	certificates *registry.Certificates
	recorder     events.EventRecorder
	readLog      readLog
	states       reconciler.UIDMap[*state]
	leftovers    leftovers
	// publishing keeps two registries of one name from taking the same names of cluster scope at the same time.
	publishing sync.Mutex
}

// state is what is remembered of one registry. Reconciles of one registry never overlap.
type state struct {
	// platform is what the present reconcile has taken.
	platform registry.Platform
	// said is what Gateway and routers report about what publishes the registry.
	said routestatus.Report
	// admitted is the registry as the webhooks would have stored it, nil where they have.
	admitted *v1beta1.ModelRegistry
	// missing are the objects without which no pods start, as the present reconcile has found them.
	missing []reference.Missing
	// credentials of a generated database, as they were read last.
	credentials credentials
	// released is the generation of a spec without a generated database for which the marks of data of before were put right.
	released int64
	// wrote is what wrote the data of a generated database, and unsaved why there can be no backups of it, if so.
	wrote   database.Image
	unsaved *metav1.Condition
	// refusals of claims to grow, by the field that asks for the size.
	refusals map[string]refusedSize
	log      *logRun
}

// of returns what is remembered of a registry.
func (r *registries) of(m *v1beta1.ModelRegistry) *state {
	s, known := r.states.Get(m.UID)
	if !known {
		s = &state{refusals: map[string]refusedSize{}}
		r.states.Set(m.UID, s)
	}
	return s
}

// forget drops what is remembered of a registry that is gone.
func (r *registries) forget(uid types.UID) {
	r.applier.Forget(uid)
	r.references.Forget(uid)
	r.certificates.Forget(uid)
	r.states.Delete(uid)
}

func (r *registries) logic() reconciler.Logic[*v1beta1.ModelRegistry] {
	return reconciler.Logic[*v1beta1.ModelRegistry]{
		Phases:                  r.phases(),
		Finalizer:               v1beta1.Finalizer,
		Finalize:                r.finalize,
		OnDeleted:               r.forget,
		InformationalConditions: []string{ConditionLeftover, ConditionBackup, servingcert.ReasonExpires},
	}
}

func (r *registries) phases() []reconciler.Phase[*v1beta1.ModelRegistry] {
	return []reconciler.Phase[*v1beta1.ModelRegistry]{
		{Name: "dropping older conditions", Run: dropOlderConditions},
		{Name: "learning the decisions of the platform", Run: r.awaitHub},
		{Name: "checking the namespace", Run: r.checkPlace},
		{Name: "moving older fields", Run: r.reportErrors(r.moveFields)},
		{Name: "checking the spec", Run: r.reportErrors(r.checkSpec)},
		{Name: "learning the domain", Run: r.awaitDomain},
		{Name: "keeping the data", Run: r.reportErrors(r.keepData)},
		{Name: "keeping the certificates", Run: r.reportErrors(r.keepCertificates)},
		{Name: "applying objects", Run: r.reportErrors(r.applyObjects)},
		{Name: "observing the server", Run: r.reportErrors(r.observe)},
		{Name: "awaiting the renewal of the certificates", Run: r.awaitRenewal},
	}
}

// reportErrors reports whatever ends a phase in the condition that users look at. Waiting is no failure.
func (r *registries) reportErrors(run func(context.Context, *v1beta1.ModelRegistry) error) func(context.Context, *v1beta1.ModelRegistry) error {
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
func (r *registries) keepCertificates(ctx context.Context, m *v1beta1.ModelRegistry) error {
	var server, database *servingcert.Wanted
	if m.Spec.KubeRBACProxy != nil && issued(m) && !r.of(m).platform.Served.Has(capability.Route) {
		server = &servingcert.Wanted{
			Namespace: m.Namespace, Name: resources.ServingSecretName(m), Authority: certificateAuthority, Service: resources.ServiceName(m),
			Labels: resources.Labels(m, resources.ServiceName(m)),
		}
	}
	if generates(m) && resources.EncryptsDatabase(m) {
		database = &servingcert.Wanted{
			Namespace: m.Namespace, Name: resources.DatabaseTLSName(m), Authority: databaseAuthority, Service: resources.DatabaseName(m),
			Labels: resources.Labels(m, resources.DatabaseName(m)),
		}
	}
	return r.certificates.Keep(ctx, m, server, database)
}

// awaitRenewal brings the registry back when one of its certificates, or the answer of a Gateway, is due.
func (r *registries) awaitRenewal(_ context.Context, m *v1beta1.ModelRegistry) error {
	return errors.Join(r.certificates.AwaitRenewal(m.UID), r.of(m).said.Wait())
}

// applyObjects writes everything but the data, removes what is no longer wanted, and says where the server is reached.
func (r *registries) applyObjects(ctx context.Context, m *v1beta1.ModelRegistry) error {
	ctx, changes := apply.CountChanges(ctx)
	s := r.of(m)
	used := complete(cmp.Or(s.admitted, m), &s.platform, s.credentials)
	r.keepVersion(m, used)
	in := inputs(m, &s.platform)
	in.Authority = r.certificates.Authority(m.UID)
	if err := r.addReferences(ctx, m, used, &in); err != nil {
		return err
	}
	if err := in.Hear(ctx, r.whole, resources.Published(used, in), r.clock.Now()); err != nil {
		return err
	}
	s.said = in.Said
	s.said.Set(&m.Status.Conditions, m.Generation)
	if err := reportSpec(m, used, in); err != nil {
		return err
	}
	err := r.writeAll(ctx, m, used, in)
	r.reportProgress(ctx, m, changes)
	return err
}

// writeAll stops at what later objects need: a database that is recreated comes before the server, and so do the rights of its
// proxy. What makes the server reachable holds up nothing.
func (r *registries) writeAll(ctx context.Context, m, used *v1beta1.ModelRegistry, in resources.Inputs) error {
	unexposed, err := r.writeDatabase(ctx, m, used, in)
	if err != nil {
		return errors.Join(unexposed, err)
	}
	held, err := r.held(ctx, m, used)
	if err != nil {
		return err
	}
	in.Opening = held.pods && m.Spec.KubeRBACProxy != nil
	desired, err := resources.Build(used, in)
	if err != nil {
		return refuse(m, err)
	}
	own, published := split(held.without(desired))
	if err := r.publish(ctx, m, published.Of(apply.Guards)); err != nil {
		return err
	}
	err = r.applier.Apply(ctx, m, own)
	if err != nil && !apply.OnlyExposure(err) {
		return errors.Join(unexposed, err)
	}
	if err := errors.Join(unexposed, err, r.publish(ctx, m, published.Of(apply.Exposure))); err != nil {
		return err
	}
	if held.pods {
		return nil // what the pods that serve need stays; their end is an event
	}
	return r.removeUnwanted(ctx, m, desired, in)
}

// writeDatabase writes a generated database and what makes its backups. unexposed says what only keeps others from reaching it.
func (r *registries) writeDatabase(ctx context.Context, m, used *v1beta1.ModelRegistry, in resources.Inputs) (unexposed, err error) {
	if !generates(m) {
		return nil, nil
	}
	database, err := resources.BuildDatabase(used, in)
	if err != nil {
		return nil, refuse(m, err)
	}
	if unexposed = r.applier.Apply(ctx, m, database); unexposed != nil && !apply.OnlyExposure(unexposed) {
		return nil, unexposed
	}
	return unexposed, r.writeBackup(ctx, m, used, in)
}

// eventf sends an event about a registry.
func (r *registries) eventf(m *v1beta1.ModelRegistry, kind, reason, note string, args ...any) {
	r.recorder.Eventf(m, nil, kind, reason, reason, note, args...)
}

// reportProgress says what this reconcile has written, all of it and not only the last object, with the events of the original.
func (r *registries) reportProgress(ctx context.Context, m *v1beta1.ModelRegistry, changes *apply.Changes) {
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

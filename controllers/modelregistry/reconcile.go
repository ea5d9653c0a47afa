package modelregistry

import (
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
	"github.com/odh-platform/odh-platform-operator/pkg/servingcert"
)

// registries reconciles the children of registries. Its phases run in the order in which they stand here.
type registries struct {
	settings Settings
	// hub knows the decisions of the platform; nil is none.
	hub    *aihub.Watcher
	served func() capability.Set
	// domain is that of the cluster's routers.
	domain     routersDomain
	clock      clock.Clock
	cached     client.Client
	whole      client.Reader // objects of which cached holds the metadata only
	live       client.Reader
	pods       client.Reader
	applier    *apply.Applier
	references *reference.Tracker
	recorder   events.EventRecorder
	readLog    readLog
	logs       reconciler.Memory[logRun]
	stored     reconciler.Memory[credentials]
	leftovers  leftovers
	// certificates keeps the serving certificates where no platform makes them.
	certificates *servingcert.Keeper
	// snapshots hold the Settings of the present reconcile, by the uid of the registry.
	snapshots reconciler.Memory[Settings]
	// databaseCertificates keeps those of generated databases.
	databaseCertificates *servingcert.Keeper
	// refusals hold the refusals of claims to grow, by the uid of the registry and the field that asks for the size.
	refusals reconciler.Memory[map[string]refusedSize]
	// wrote is what wrote the data of generated databases, unsaved why there can be no backups of them, by the uid of the registry.
	wrote   reconciler.Memory[database.Image]
	unsaved reconciler.Memory[database.Backups]
	// publishing keeps two registries of one name from taking the same names of cluster scope at the same time.
	publishing sync.Mutex
}

// routersDomain is what *clusterdomain.Watcher knows.
type routersDomain interface {
	Domain() string
	Settled() bool
}

func (r *registries) logic() reconciler.Logic[*v1beta1.ModelRegistry] {
	return reconciler.Logic[*v1beta1.ModelRegistry]{
		Phases:    r.phases(),
		Finalizer: v1beta1.Finalizer,
		Finalize:  r.finalize,
		Gone:      r.forget,
		Advice:    []string{ConditionLeftover, ConditionBackup, servingcert.ReasonExpires},
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
		{Name: "keeping the serving certificate", Run: r.reportErrors(r.keepCertificate)},
		{Name: "keeping the certificate of the database", Run: r.reportErrors(r.keepDatabaseCertificate)},
		{Name: "applying objects", Run: r.reportErrors(r.applyObjects)},
		{Name: "observing the server", Run: r.reportErrors(r.observe)},
		{Name: "awaiting the renewal of the certificate", Run: r.awaitRenewal},
	}
}

// forget drops what is remembered of a registry that is gone.
func (r *registries) forget(uid types.UID) {
	r.applier.Forget(uid)
	r.references.Forget(uid)
	r.logs.Forget(uid)
	r.certificates.Forget(uid)
	r.stored.Forget(uid)
	r.snapshots.Forget(uid)
	r.refusals.Forget(uid)
	r.databaseCertificates.Forget(uid)
	r.wrote.Forget(uid)
	r.unsaved.Forget(uid)
}

// reportErrors reports whatever ends a phase in the condition that users look at. Waiting is no failure.
func (r *registries) reportErrors(run func(context.Context, *v1beta1.ModelRegistry) error) func(context.Context, *v1beta1.ModelRegistry) error {
	return func(ctx context.Context, m *v1beta1.ModelRegistry) error {
		err := run(ctx, m)
		if _, waits := errors.AsType[*reconciler.Wait](err); err == nil || waits {
			return err
		}
		if apply.Vanishing(err) {
			return &reconciler.Wait{For: "what is being deleted to be gone", Retry: time.Second}
		}
		if apply.Only(err, apierrors.IsConflict) {
			return err // another client wrote in between: the next reconcile sees it
		}
		reportFailure(m, err)
		return err
	}
}

// applyObjects writes everything but the data, removes what is no longer wanted, and says where the server is reached.
func (r *registries) applyObjects(ctx context.Context, m *v1beta1.ModelRegistry) error {
	ctx, changes := apply.Count(ctx)
	used, err := r.completed(m)
	if err != nil {
		return err
	}
	r.keepVersion(m, used)
	in, err := r.inputs(ctx, m, used)
	if err != nil {
		return err
	}
	if err := reportSpec(m, used, in); err != nil {
		return err
	}
	err = r.writeAll(ctx, m, used, in)
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

// refuse ends the reconcile until the spec changes: nothing else can help.
func refuse(m *v1beta1.ModelRegistry, err error) error {
	reportFailure(m, err)
	return &reconciler.Wait{For: "a valid spec", Stalled: true}
}

// inputs joins the settings with what the cluster serves and what the pods were started with.
func (r *registries) inputs(ctx context.Context, m, used *v1beta1.ModelRegistry) (resources.Inputs, error) {
	in := r.effective(m).inputs(r.served())
	in.NamedDomain = m.Spec.KubeRBACProxy != nil && m.Spec.KubeRBACProxy.Domain != ""
	in.Authority = r.certificates.Authority(m.UID)
	in.ServingCertificate = m.Spec.KubeRBACProxy == nil || m.Spec.KubeRBACProxy.TLSCertificateSecret == nil
	resolved, err := r.references.Resolve(ctx, m.UID, m.Namespace, consumed(m, used))
	if err != nil {
		return in, err
	}
	absent, err := r.references.Absent(ctx, m.Namespace, reference.OfPods(&m.Spec.Pods))
	if err != nil {
		return in, err
	}
	reference.Report(&m.Status.Conditions, m.Generation, m.Namespace, append(awaitedOfUsers(m, resolved.Missing), absent...))
	if in.Stamp, err = r.stamp(ctx, m, resources.ServiceName(m), resources.ServerSelector(m), resolved, references(used)); err != nil {
		return in, err
	}
	if generates(m) {
		in.PostgresStamp, err = r.stamp(ctx, m, resources.DatabaseName(m), resources.DatabaseSelector(m), resolved, databaseReferences(m))
	}
	return in, err
}

// consumed is all that the pods of a registry read of other objects.
func consumed(m, used *v1beta1.ModelRegistry) []reference.Reference {
	all := append(references(used), servingReferences(used)...)
	if generates(m) {
		all = append(all, databaseReferences(m)...)
	}
	return all
}

// stamp decides whether running pods must be replaced because something they consume has changed. A Deployment that cannot become what
// it should be is recreated.
func (r *registries) stamp(ctx context.Context, m *v1beta1.ModelRegistry, deployment string, selector map[string]string,
	resolved reference.Resolved, refs []reference.Reference,
) (reference.Stamp, error) {
	d, err := r.deployment(ctx, m.Namespace, deployment)
	if err == nil {
		err = r.recreate(ctx, m, d, selector)
	}
	if err != nil {
		return reference.Stamp{}, err
	}
	return reference.NextOn(d, resolved.Hashes, refs)
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

const certificateAuthority = "odh-platform-operator-model-registry-ca"

// keepCertificate issues the serving certificate of the proxy where no platform does, and the user brings none.
func (r *registries) keepCertificate(ctx context.Context, m *v1beta1.ModelRegistry) error {
	if m.Spec.KubeRBACProxy == nil || m.Spec.KubeRBACProxy.TLSCertificateSecret != nil || r.served().Has(capability.Route) {
		r.certificates.Leave(m)
		return nil
	}
	return r.certificates.Keep(ctx, m, servingcert.Wanted{
		Namespace: m.Namespace, Name: resources.ServingSecretName(m), Authority: certificateAuthority, Service: resources.ServiceName(m),
		Labels: resources.Labels(m, resources.ServiceName(m)),
	})
}

// awaitRenewal brings the registry back when one of its certificates is due.
func (r *registries) awaitRenewal(_ context.Context, m *v1beta1.ModelRegistry) error {
	return errors.Join(r.certificates.AwaitRenewal(m.UID), r.databaseCertificates.AwaitRenewal(m.UID))
}

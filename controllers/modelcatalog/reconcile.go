package modelcatalog

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	aihubv1alpha1 "github.com/odh-platform/odh-platform-operator/apis/aihub/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/controllers/modelcatalog/huggingface"
	"github.com/odh-platform/odh-platform-operator/controllers/modelcatalog/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/aihub"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/clusterdomain"
	"github.com/odh-platform/odh-platform-operator/pkg/reconciler"
	"github.com/odh-platform/odh-platform-operator/pkg/reference"
	"github.com/odh-platform/odh-platform-operator/pkg/registry"
	common "github.com/odh-platform/odh-platform-operator/pkg/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/routestatus"
	"github.com/odh-platform/odh-platform-operator/pkg/servingcert"
	"github.com/odh-platform/odh-platform-operator/pkg/singleton"
	"github.com/odh-platform/odh-platform-operator/pkg/status/conditions"
	"github.com/odh-platform/odh-platform-operator/pkg/status/serving"
	webhook "github.com/odh-platform/odh-platform-operator/webhooks/modelregistry"
)

const (
	// lookAgain is how often the pods of a catalog that is not available are read for the cause: a waiting pod changes nothing
	// on its Deployment, so there is no event to wait for.
	unavailableRequeueAfter = 30 * time.Second
	// soon is the pause for what is a matter of moments.
	shortRequeueAfter = time.Second
	// additions is how often sources may be added in a row, each of which replaces the pod.
	maxSourceAdditions = 6
	// additionsPerSecond are granted in addition: one a minute.
	sourceAdditionsPerSecond = 1.0 / 60
)

// catalogs reconciles Catalogs. Its phases run in the order in which they stand here.
type catalogReconciler struct {
	settings Settings
	// hub knows the decisions of the platform; nil is none.
	aihub  *aihub.Watcher
	served func() capability.Set
	// domain is that of the cluster's routers.
	domain       registry.Domain
	cached       client.Client
	apiReader    client.Reader
	fullObjects  client.Reader // objects of which cached holds the metadata only
	extraCaches  *extraCaches
	applier      *apply.Applier
	admins       *singleton.Value[[]string]
	proxy        *singleton.Value[resources.EgressProxy]
	keys         *huggingface.Watcher
	clock        clock.Clock
	references   *reference.Tracker
	certificates *registry.Certificates
	// recollections hold what is remembered of each Catalog.
	states reconciler.Memory[*cachedState]
}

// recollection is what is remembered of one Catalog as long as the process lives. It saves reading what was read, and bounds how often
// pods are replaced. Reconciles of one Catalog never overlap.
type cachedState struct {
	// platform is what the present reconcile has taken.
	platform registry.Platform
	// said is what Gateway and router report about what publishes the catalog.
	routeReport routestatus.Report
	// good are the versions of objects that were read and found as they should be, by name.
	validVersions map[string]string
	// present is when objects that the pods mount were found, by kind and name.
	foundAt         map[string]time.Time
	additionLimiter flowcontrol.PassiveRateLimiter // of additions
	// sources are those that were taken last, before the cache shows it; postponed means that there are others.
	mountedSources []string
	postponed      bool
	// withoutLeftovers: nothing of older releases is left, and withoutSharedGrant: nor is their grant, or it is needed no more.
	legacyDeleted, sharedGrantDeleted bool
}

// remembered returns the recollection of a Catalog.
func (r *catalogReconciler) stateOf(uid types.UID) *cachedState {
	known, ok := r.states.Get(uid)
	if !ok {
		known = &cachedState{
			validVersions: map[string]string{}, foundAt: map[string]time.Time{},
			additionLimiter: flowcontrol.NewTokenBucketPassiveRateLimiterWithClock(sourceAdditionsPerSecond, maxSourceAdditions, r.clock),
		}
		r.states.Set(uid, known)
	}
	return known
}

// versionOf identifies one state of one object.
func objectVersion(o metav1.Object) string { return string(o.GetUID()) + "/" + o.GetResourceVersion() }

// forget drops what is remembered of a Catalog that is gone.
func (r *catalogReconciler) forget(uid types.UID) {
	r.applier.Forget(uid)
	r.references.Forget(uid)
	r.states.Forget(uid)
	r.certificates.Forget(uid)
}

func (r *catalogReconciler) phases() []reconciler.Phase[*aihubv1alpha1.Catalog] {
	return []reconciler.Phase[*aihubv1alpha1.Catalog]{
		{Name: "finding the Catalog in charge", Run: r.validateActive},
		{Name: "checking the spec", Run: r.validateSpec},
		{Name: "keeping the sources of users", Run: r.ensureUserSources},
		{Name: "keeping the Secret of the database", Run: r.ensureDatabaseSecret},
		{Name: "keeping the certificates", Run: r.ensureCertificates},
		{Name: "applying objects", Run: r.applyObjects},
		{Name: "removing what is not wanted", Run: r.deleteUnwanted},
		{Name: "observing the rollout", Run: r.observeServer},
		{Name: "awaiting the renewal of the certificates", Run: r.requeueForRenewal},
	}
}

// awaitHub waits for the decisions of the platform and takes them for this reconcile.
func (r *catalogReconciler) waitForPlatform(c *aihubv1alpha1.Catalog) error {
	if err := r.aihub.Await(); err != nil {
		return err
	}
	r.stateOf(c.UID).platform = registry.DetectPlatform(r.settings.ModelRegistry, r.aihub, r.served(), r.domain)
	return nil
}

// inputs are what of the platform decides about the objects of the present reconcile.
func (r *catalogReconciler) inputsOf(c *aihubv1alpha1.Catalog) resources.Inputs {
	return buildInputs(&r.stateOf(c.UID).platform)
}

func buildInputs(p *registry.Platform) resources.Inputs {
	return resources.Inputs{
		Publishing: p.Publishing(), Domain: clusterdomain.Prefer(p.DefaultDomain, p.RouterDomain),
		Images: p.Images, SkipDatabase: p.SkipCatalogDatabase,
	}
}

// checkInCharge lets one Catalog of the cluster work: what it makes outside of its namespace exists once.
func (r *catalogReconciler) validateActive(ctx context.Context, c *aihubv1alpha1.Catalog) error {
	if err := r.waitForPlatform(c); err != nil {
		return err
	}
	list := &aihubv1alpha1.CatalogList{}
	if err := r.cached.List(ctx, list); err != nil {
		return fmt.Errorf("listing Catalogs: %w", err)
	}
	problem := inactiveState(c, list.Items, r.stateOf(c.UID).platform.Namespace)
	if problem.Reason == "" {
		return nil
	}
	setAvailable(c, problem)
	c.Status.Sources, c.Status.SourcesOmitted = nil, 0
	conditions.Remove(&c.Status.Conditions, ConditionHuggingFaceKeys)
	conditions.Remove(&c.Status.Conditions, routestatus.Condition)
	reference.Report(&c.Status.Conditions, c.Generation, c.Namespace, nil)
	return &reconciler.Wait{For: "this Catalog to be the one in charge", Stalled: true}
}

// checkSpec leaves everything as it is while an image cannot be chosen, since another one than was asked for is no answer, or while pods
// would use what no author may let them use. Admission refuses both; objects may have been stored while it did not.
func (r *catalogReconciler) validateSpec(_ context.Context, c *aihubv1alpha1.Catalog) error {
	reason, err := ReasonConfiguration, resources.CheckImages(c)
	if err == nil {
		reason, err = ReasonForbidden, r.settings.Authors.Forbidden(webhook.CatalogReferences(r.settings.Authors, c))
	}
	if err == nil {
		return nil
	}
	setAvailable(c, serving.State{Status: metav1.ConditionFalse, Reason: reason, Message: err.Error()})
	return &reconciler.Wait{For: "a spec that may be followed", Stalled: true}
}

// current joins what is known outside of the Catalog; judged are its further sources.
func (r *catalogReconciler) collectInputs(ctx context.Context, c *aihubv1alpha1.Catalog) (resources.Inputs, error) {
	memory, in := r.stateOf(c.UID), r.inputsOf(c)
	if err := memory.platform.WaitForDomain(); err != nil {
		return in, err
	}
	groups, known := r.admins.Current()
	if !known {
		return in, &reconciler.Wait{For: "the groups of administrators", Retry: shortRequeueAfter}
	}
	in.AdminGroups, in.Authority = groups, r.certificates.Authority(c.UID)
	if !resources.HasEgressProxy(c) {
		if in.Proxy, known = r.proxy.Current(); !known {
			return in, &reconciler.Wait{For: "the proxy of the cluster", Retry: shortRequeueAfter}
		}
	}
	if err := r.addHuggingFaceKeys(c, &in); err != nil {
		return in, err
	}
	candidates, err := r.extraCaches.listCandidates(ctx, c.Namespace)
	if err != nil {
		return in, err
	}
	d, err := registry.FindDeployment(ctx, r.cached, r.apiReader, c.Namespace, resources.Name)
	if err != nil {
		return in, err
	}
	present := append(mountedSources(d.Spec.Template.Spec.Volumes), memory.mountedSources...)
	v := selectSources(candidates, present, memory.additionLimiter.TryAccept)
	memory.mountedSources, memory.postponed = v.mounted, v.postponed
	c.Status.Sources, c.Status.SourcesOmitted = v.statuses, v.omitted
	in.Sources = v.mounted
	err = in.ReadRouteReport(ctx, r.fullObjects, resources.Published(c, in), r.clock.Now())
	memory.routeReport = in.RouteReport
	in.RouteReport.Set(&c.Status.Conditions, c.Generation)
	return in, err
}

// addHubKeys adds the keys for Hugging Face, and reports of Secrets that are of no use.
func (r *catalogReconciler) addHuggingFaceKeys(c *aihubv1alpha1.Catalog, in *resources.Inputs) error {
	v, known := r.keys.KeysIn(c.Namespace)
	if !known {
		return &reconciler.Wait{For: "the keys for Hugging Face", Retry: shortRequeueAfter}
	}
	in.HuggingFaceKeys, in.HuggingFaceKeysHash = v.Keys, v.Hash
	if len(v.Problems) == 0 {
		conditions.Remove(&c.Status.Conditions, ConditionHuggingFaceKeys)
		return nil
	}
	conditions.Set(&c.Status.Conditions, ConditionHuggingFaceKeys, metav1.ConditionFalse, ReasonKeysRejected,
		"In namespace "+c.Namespace+": "+strings.Join(v.Problems, "; "), c.Generation)
	return nil
}

// applyObjects writes all objects. Where a Deployment has to be recreated, what an older release tied to it must be free of it
// before it goes.
func (r *catalogReconciler) applyObjects(ctx context.Context, c *aihubv1alpha1.Catalog) error {
	in, err := r.collectInputs(ctx, c)
	if err != nil {
		return err
	}
	desired, err := resources.Build(c, in)
	if err != nil {
		return err
	}
	desired = withAdoption(desired)
	if err := r.recreateOutdated(ctx, c, desired); err != nil {
		return err
	}
	if err := errors.Join(r.applyRolloutHashes(ctx, c, desired), r.restartForNewDatabase(ctx, c, desired)); err != nil {
		return err
	}
	if err := r.applier.Apply(ctx, c, desired); err != nil {
		return r.reportApplyError(c, err)
	}
	if err := r.applier.Prune(ctx, c, withRetained(c, in, desired), in.Prunable(registry.RoleBinding), nil); err != nil {
		return fmt.Errorf("removing objects that are no longer wanted: %w", err)
	}
	return nil
}

// withKept adds what is not written and must not be removed: the database, while SkipDatabase leaves it alone. Secrets stay, and so do the
// ConfigMaps of users, which have no owner.
func withRetained(c *aihubv1alpha1.Catalog, in resources.Inputs, desired apply.Desired) apply.Desired {
	if !in.SkipDatabase || resources.HasExternalDatabase(c) {
		return desired
	}
	return append(slices.Clone(desired), resources.BuildDatabase(c, in)...)
}

// notApplied reports what stays until a user acts, and says when to try again. What passes by itself is retried, and the
// status stays as it is.
func (r *catalogReconciler) reportApplyError(c *aihubv1alpha1.Catalog, err error) error {
	if apply.IsTerminating(err) {
		return &reconciler.Wait{For: "what is being deleted to be gone", Retry: shortRequeueAfter}
	}
	_, foreign := errors.AsType[*apply.ForeignError](err)
	_, deleting := errors.AsType[*apply.DeletingError](err)
	switch {
	case apply.Blocked(err):
		setAvailable(c, serving.Unavailable(err.Error()))
	case foreign, deleting, apierrors.IsForbidden(err), apierrors.IsInvalid(err), apierrors.IsInternalError(err): // the last: a webhook fails
		setAvailable(c, serving.Unavailable("unexpected reconcile error: "+err.Error()))
	}
	return err
}

// observe reports how far the catalog is, and why it is not further.
func (r *catalogReconciler) observeServer(ctx context.Context, c *aihubv1alpha1.Catalog) error {
	d, err := registry.FindDeployment(ctx, r.cached, r.apiReader, c.Namespace, resources.Name)
	if err != nil {
		return err
	}
	c.Status.Scale = common.ScaleStatus(d, resources.Selector(resources.Name))
	service := client.ObjectKey{Namespace: c.Namespace, Name: resources.Name}
	a, err := registry.EvaluateDeployment(ctx, r.cached, r.apiReader, d, service, r.clock.Now(), conditions.IsTrue(c.Status.Conditions, ConditionAvailable))
	if err != nil {
		return err
	}
	if a.AskPods {
		pods, err := r.podsOf(ctx, c, resources.Name)
		if err != nil {
			return err
		}
		if a, err = r.addDatabaseCause(ctx, c, addPodCause(a, d, pods)); err != nil {
			return err
		}
	}
	setAvailable(c, a)
	switch {
	case a.Retry > 0:
		return &reconciler.Wait{For: "the catalog to stay available", Retry: a.Retry}
	case a.Status != metav1.ConditionTrue:
		return &reconciler.Wait{For: "the catalog to become available", Retry: unavailableRequeueAfter, Stalled: conditions.OutOfTime(d)}
	case a.AskPods:
		return &reconciler.Wait{For: "the rollout to end", Retry: unavailableRequeueAfter, Unready: true, Stalled: conditions.OutOfTime(d)}
	case r.stateOf(c.UID).postponed:
		return &reconciler.Wait{For: "sources that were postponed", Retry: unavailableRequeueAfter}
	case meta.IsStatusConditionFalse(c.Status.Conditions, reference.Condition):
		return &reconciler.Wait{For: "what the pods refer to", Retry: unavailableRequeueAfter}
	}
	return nil
}

// addDatabase adds to a state what keeps the pods of a database of ours.
func (r *catalogReconciler) addDatabaseCause(ctx context.Context, c *aihubv1alpha1.Catalog, a serving.State) (serving.State, error) {
	if a.Status == metav1.ConditionTrue || !resources.OwnsDatabase(c, r.inputsOf(c)) {
		return a, nil
	}
	pods, err := r.podsOf(ctx, c, resources.DatabaseName)
	if err != nil {
		return a, err
	}
	cause, err := registry.DatabaseCause(ctx, r.cached, r.apiReader, c.Namespace, resources.DatabaseName, pods, resourceFields)
	a.Message += cause
	return a, err
}

// podsOf lists pods of the server or of its database.
func (r *catalogReconciler) podsOf(ctx context.Context, c *aihubv1alpha1.Catalog, name string) ([]corev1.Pod, error) {
	pods := &corev1.PodList{}
	if err := r.apiReader.List(ctx, pods, client.InNamespace(c.Namespace), client.MatchingLabels(resources.Selector(name)), client.Limit(20)); err != nil {
		return nil, fmt.Errorf("listing the pods of %s: %w", name, err)
	}
	return pods.Items, nil
}

// The common names of the CAs of server and database.
const (
	certificateAuthority = "odh-platform-operator-model-catalog-ca"
	databaseAuthority    = "odh-platform-operator-model-catalog-database-ca"
)

// issues reports whether the serving certificate is made here: where no platform does it, and the user does not.
func issuesCertificate(c *aihubv1alpha1.Catalog, in resources.Inputs) bool {
	return resources.HasProxy(c) && !in.OpenShift && resources.ServingSecret(c) == resources.CertificateSecret
}

// keepCertificates issues the serving certificate where neither platform nor user does, and that of a database that serves TLS.
func (r *catalogReconciler) ensureCertificates(ctx context.Context, c *aihubv1alpha1.Catalog) error {
	var server, database *servingcert.Wanted
	if issuesCertificate(c, r.inputsOf(c)) {
		server = &servingcert.Wanted{
			Namespace: c.Namespace, Name: resources.CertificateSecret, Authority: certificateAuthority, Service: resources.Name,
			Labels: resources.Labels(resources.Name), Disowns: isLegacyOwner,
		}
	}
	if resources.EncryptsDatabase(c) && resources.OwnsDatabase(c, r.inputsOf(c)) {
		database = &servingcert.Wanted{
			Namespace: c.Namespace, Name: resources.DatabaseCertificate, Authority: databaseAuthority, Service: resources.DatabaseName,
			Labels: resources.Labels(resources.DatabaseName),
		}
	}
	if err := r.certificates.Ensure(ctx, c, server, database); err != nil {
		return r.reportApplyError(c, err)
	}
	return nil
}

// awaitRenewal brings the Catalog back when one of its certificates, or the answer of a Gateway, is due.
func (r *catalogReconciler) requeueForRenewal(_ context.Context, c *aihubv1alpha1.Catalog) error {
	return errors.Join(r.certificates.RequeueForRenewal(c.UID), r.stateOf(c.UID).routeReport.Await())
}

package modelcatalog

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	aihubv1alpha1 "github.com/odh-platform/odh-platform-operator/apis/aihub/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/controllers/modelcatalog/huggingface"
	"github.com/odh-platform/odh-platform-operator/controllers/modelcatalog/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/aihub"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/follow"
	"github.com/odh-platform/odh-platform-operator/pkg/reconciler"
	"github.com/odh-platform/odh-platform-operator/pkg/reference"
	common "github.com/odh-platform/odh-platform-operator/pkg/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/servingcert"
	"github.com/odh-platform/odh-platform-operator/pkg/status/conditions"
	"github.com/odh-platform/odh-platform-operator/pkg/status/serving"
	webhook "github.com/odh-platform/odh-platform-operator/webhooks/modelregistry"
)

const (
	// lookAgain is how often the pods of a catalog that is not available are read for the cause: a waiting pod changes nothing
	// on its Deployment, so there is no event to wait for.
	lookAgain = 30 * time.Second
	// soon is the pause for what is a matter of moments.
	soon = time.Second
)

// catalogs reconciles Catalogs. Its phases run in the order in which they stand here.
type catalogs struct {
	settings Settings
	// hub knows the decisions of the platform; nil is none.
	hub     *aihub.Watcher
	cached  client.Client
	live    client.Reader
	side    *sideCaches
	applier *apply.Applier
	admins  *follow.Value[[]string]
	proxy   *follow.Value[resources.EgressProxy]
	keys    *huggingface.Watcher
	served  func() capability.Set
	inputs  func() resources.Inputs
	// knowsDomain is false until the cluster has said what the domain of its routers is.
	knowsDomain func() bool
	clock       clock.Clock
	// recollections hold what is remembered of each Catalog.
	recollections reconciler.Memory[*recollection]
	// snapshots hold the snapshot of the present reconcile, by the uid of the Catalog.
	snapshots  reconciler.Memory[snapshot]
	references *reference.Tracker
	// certificates keeps the serving certificate where no platform makes it.
	certificates *servingcert.Keeper
	// databaseCertificates keeps that of the database.
	databaseCertificates *servingcert.Keeper
}

func (r *catalogs) phases() []reconciler.Phase[*aihubv1alpha1.Catalog] {
	return []reconciler.Phase[*aihubv1alpha1.Catalog]{
		{Name: "finding the Catalog in charge", Run: r.checkInCharge},
		{Name: "checking the images", Run: r.checkImages},
		{Name: "checking what the pods use", Run: r.checkUses},
		{Name: "keeping the sources of users", Run: r.keepUserSources},
		{Name: "keeping the Secret of the database", Run: r.keepDatabaseSecret},
		{Name: "keeping the serving certificate", Run: r.keepCertificate},
		{Name: "keeping the certificate of the database", Run: r.keepDatabaseCertificate},
		{Name: "applying objects", Run: r.applyObjects},
		{Name: "removing what is not wanted", Run: r.removeUnwanted},
		{Name: "observing the rollout", Run: r.observe},
		{Name: "awaiting the renewal of the certificate", Run: r.awaitRenewal},
	}
}

// forget drops what is remembered of a Catalog that is gone.
func (r *catalogs) forget(uid types.UID) {
	r.applier.Forget(uid)
	r.references.Forget(uid)
	r.recollections.Forget(uid)
	r.certificates.Forget(uid)
	r.databaseCertificates.Forget(uid)
	r.snapshots.Forget(uid)
}

// checkInCharge lets one Catalog of the cluster work: what it makes outside of its namespace exists once.
func (r *catalogs) checkInCharge(ctx context.Context, c *aihubv1alpha1.Catalog) error {
	if err := r.hub.Await(); err != nil {
		return err
	}
	list := &aihubv1alpha1.CatalogList{}
	if err := r.cached.List(ctx, list); err != nil {
		return fmt.Errorf("listing Catalogs: %w", err)
	}
	problem := standing(c, list.Items, r.takeSnapshot(c).namespace)
	if problem.Reason == "" {
		return nil
	}
	setAvailable(c, problem)
	c.Status.Sources, c.Status.SourcesOmitted = nil, 0
	conditions.Remove(&c.Status.Conditions, ConditionHubKeys)
	reference.Report(&c.Status.Conditions, c.Generation, c.Namespace, nil)
	return &reconciler.Wait{For: "this Catalog to be the one in charge", Stalled: true}
}

// checkImages leaves everything as it is while an image cannot be chosen: another one than was asked for is no answer.
func (r *catalogs) checkImages(_ context.Context, c *aihubv1alpha1.Catalog) error {
	err := resources.CheckImages(c)
	if err == nil {
		return nil
	}
	setAvailable(c, serving.State{Status: metav1.ConditionFalse, Reason: ReasonConfiguration, Message: err.Error()})
	return &reconciler.Wait{For: "a spec with images that can be chosen"}
}

// checkUses holds back what no author may let pods use. Admission refuses it too; objects may have been stored while it did not.
func (r *catalogs) checkUses(_ context.Context, c *aihubv1alpha1.Catalog) error {
	err := r.settings.Authors.Forbidden(webhook.CatalogUses(r.settings.Authors, c))
	if err == nil {
		return nil
	}
	setAvailable(c, serving.State{Status: metav1.ConditionFalse, Reason: ReasonForbidden, Message: err.Error()})
	return &reconciler.Wait{For: "a spec without what is forbidden", Stalled: true}
}

// current joins what is known outside of the Catalog; judged are its further sources.
func (r *catalogs) current(ctx context.Context, c *aihubv1alpha1.Catalog) (resources.Inputs, error) {
	seen := r.snapshot(c)
	in := seen.Inputs
	if !seen.knowsDomain {
		return in, &reconciler.Wait{For: "the domain of the cluster", Retry: soon}
	}
	groups, known := r.admins.Current()
	if !known {
		return in, &reconciler.Wait{For: "the groups of administrators", Retry: soon}
	}
	in.AdminGroups, in.Authority = groups, r.certificates.Authority(c.UID)
	var err error
	if in.Proxy, err = r.proxyFor(c); err != nil {
		return in, err
	}
	if err := r.addHubKeys(c, &in); err != nil {
		return in, err
	}
	candidates, err := r.side.candidates(ctx, c.Namespace)
	if err != nil {
		return in, err
	}
	d, err := r.deployment(ctx, c, resources.Name)
	if client.IgnoreNotFound(err) != nil {
		return in, err
	}
	memory := r.remembered(c.UID)
	present := append(presentSources(d.Spec.Template.Spec.Volumes), memory.sources...)
	v := judge(candidates, present, memory.budget.TryAccept)
	memory.sources, memory.postponed = v.mounted, v.postponed
	c.Status.Sources, c.Status.SourcesOmitted = v.reported, v.omitted
	in.Sources = v.mounted
	return in, nil
}

// addHubKeys adds the keys for Hugging Face, and reports of Secrets that are of no use.
func (r *catalogs) addHubKeys(c *aihubv1alpha1.Catalog, in *resources.Inputs) error {
	v, known := r.keys.In(c.Namespace)
	if !known {
		return &reconciler.Wait{For: "the keys for Hugging Face", Retry: soon}
	}
	in.HubKeys, in.HubKeysHash = v.Keys, v.Hash
	if len(v.Problems) == 0 {
		conditions.Remove(&c.Status.Conditions, ConditionHubKeys)
		return nil
	}
	conditions.Set(&c.Status.Conditions, ConditionHubKeys, metav1.ConditionFalse, ReasonKeysRejected,
		"In namespace "+c.Namespace+": "+strings.Join(v.Problems, "; "), c.Generation)
	return nil
}

// applyObjects writes all objects. Where a Deployment has to be recreated, what an older release tied to it must be free of it
// before it goes.
func (r *catalogs) applyObjects(ctx context.Context, c *aihubv1alpha1.Catalog) error {
	in, err := r.current(ctx, c)
	if err != nil {
		return err
	}
	desired, err := resources.Build(c, in)
	if err != nil {
		return err
	}
	desired = adopting(desired)
	if others, outdated, err := r.outdated(ctx, c, desired); err != nil || len(outdated) > 0 {
		return errors.Join(err, r.deleteOutdated(ctx, c, others, outdated))
	}
	if err := errors.Join(r.stamp(ctx, c, desired), r.followDatabase(ctx, c, desired)); err != nil {
		return err
	}
	if err := r.applier.Apply(ctx, c, desired); err != nil {
		return r.notApplied(c, err)
	}
	if err := r.applier.Prune(ctx, c, withKept(c, in, desired), prunable(in), nil); err != nil {
		return fmt.Errorf("removing objects that are no longer wanted: %w", err)
	}
	return nil
}

// withKept adds what is not written and must not be removed: the database, while SkipDatabase leaves it alone.
func withKept(c *aihubv1alpha1.Catalog, in resources.Inputs, desired apply.Desired) apply.Desired {
	if !in.SkipDatabase || resources.Elsewhere(c) {
		return desired
	}
	return append(slices.Clone(desired), resources.BuildDatabase(c, in)...)
}

// prunable are the kinds of which an object may become unwanted, as far as the cluster serves them. Secrets stay, and so do
// the ConfigMaps of users, which have no owner.
func prunable(in resources.Inputs) []schema.GroupVersionKind {
	kinds := []schema.GroupVersionKind{deploymentKind, serviceKind, configMapKind, policyKind, budgetKind, roleBindingKind, ingressKind}
	if in.OpenShift {
		kinds = append(kinds, capability.Route)
	}
	if in.ReferenceGrants {
		kinds = append(kinds, capability.ReferenceGrant)
	}
	if in.BackendTLSPolicies {
		kinds = append(kinds, capability.BackendTLSPolicy)
	}
	return kinds
}

// findDeployment returns the Deployment as the cache has it, or, until we have written it, as the API server has it; nil when there is
// none, or when it has another owner.
func (r *catalogs) findDeployment(ctx context.Context, c *aihubv1alpha1.Catalog, name string) (*appsv1.Deployment, error) {
	d, err := r.deployment(ctx, c, name)
	if apierrors.IsNotFound(err) {
		err = r.live.Get(ctx, client.ObjectKey{Namespace: c.Namespace, Name: name}, d)
	}
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading Deployment %s: %w", name, err)
	}
	if other := metav1.GetControllerOfNoCopy(d); other != nil && other.UID != c.UID && !formerOwner(*other) && other.Kind != aihubv1alpha1.Kind {
		return nil, nil // reported when it is to be written
	}
	return d, nil
}

func (r *catalogs) deployment(ctx context.Context, c *aihubv1alpha1.Catalog, name string) (*appsv1.Deployment, error) {
	d := &appsv1.Deployment{}
	err := r.cached.Get(ctx, client.ObjectKey{Namespace: c.Namespace, Name: name}, d)
	return d, err
}

// notApplied reports what stays until a user acts, and says when to try again. What passes by itself is retried, and the
// status stays as it is.
func (r *catalogs) notApplied(c *aihubv1alpha1.Catalog, err error) error {
	if apply.Vanishing(err) {
		return &reconciler.Wait{For: "what is being deleted to be gone", Retry: soon}
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
func (r *catalogs) observe(ctx context.Context, c *aihubv1alpha1.Catalog) error {
	d, err := r.deployment(ctx, c, resources.Name)
	if client.IgnoreNotFound(err) != nil {
		return err
	}
	c.Status.Scale = common.Scaled(d, resources.Selector(resources.Name))
	if d.Status.ObservedGeneration < d.Generation && conditions.IsTrue(c.Status.Conditions, ConditionAvailable) {
		return &reconciler.Wait{For: "the Deployment controller", Retry: soon, Unready: true} // a matter of milliseconds
	}
	before := conditions.IsTrue(c.Status.Conditions, ConditionAvailable)
	a, err := serving.Judge(d, resources.Name, r.clock.Now(), before, func() ([]discoveryv1.EndpointSlice, error) {
		return serving.Endpoints(ctx, r.cached, r.live, c.Namespace, resources.Name)
	})
	if err != nil {
		return err
	}
	if a.AskPods {
		pods := &corev1.PodList{}
		if err := r.live.List(ctx, pods, client.InNamespace(c.Namespace), client.MatchingLabels(resources.Selector(resources.Name)), client.Limit(20)); err != nil {
			return fmt.Errorf("listing the pods of the catalog: %w", err)
		}
		a = explain(a, pods.Items)
	}
	setAvailable(c, a)
	switch {
	case a.Retry > 0:
		return &reconciler.Wait{For: "the catalog to stay available", Retry: a.Retry}
	case a.Status != metav1.ConditionTrue:
		return &reconciler.Wait{For: "the catalog to become available", Retry: lookAgain, Stalled: conditions.OutOfTime(d)}
	case a.AskPods:
		return &reconciler.Wait{For: "the rollout to end", Retry: lookAgain, Unready: true, Stalled: conditions.OutOfTime(d)}
	case r.remembered(c.UID).postponed:
		return &reconciler.Wait{For: "sources that were postponed", Retry: lookAgain}
	case meta.IsStatusConditionFalse(c.Status.Conditions, reference.Condition):
		return &reconciler.Wait{For: "what the pods refer to", Retry: lookAgain}
	}
	return nil
}

// The common names of the CAs of server and database.
const (
	certificateAuthority = "odh-platform-operator-model-catalog-ca"
	databaseAuthority    = "odh-platform-operator-model-catalog-database-ca"
)

// issues reports whether the serving certificate is made here: where no platform does it, and the user does not.
func issues(c *aihubv1alpha1.Catalog, in resources.Inputs) bool {
	return resources.Proxied(c) && !in.OpenShift && resources.ServingSecret(c) == resources.CertificateSecret
}

// keepCertificate issues the serving certificate where neither platform nor user does, and renews what it issued.
func (r *catalogs) keepCertificate(ctx context.Context, c *aihubv1alpha1.Catalog) error {
	if !issues(c, r.snapshot(c).Inputs) {
		r.certificates.Leave(c)
		return nil
	}
	err := r.certificates.Keep(ctx, c, servingcert.Wanted{
		Namespace: c.Namespace, Name: resources.CertificateSecret, Authority: certificateAuthority, Service: resources.Name,
		Labels: resources.Labels(resources.Name), Disowns: formerOwner,
	})
	if err != nil {
		return r.notApplied(c, err)
	}
	return nil
}

// keepDatabaseCertificate issues the certificate of a database that serves TLS. Its only client is ours, so that no platform needs to
// know the CA.
func (r *catalogs) keepDatabaseCertificate(ctx context.Context, c *aihubv1alpha1.Catalog) error {
	if !resources.EncryptsDatabase(c) || !resources.OwnsDatabase(c, r.snapshot(c).Inputs) {
		r.databaseCertificates.Leave(c)
		return nil
	}
	err := r.databaseCertificates.Keep(ctx, c, servingcert.Wanted{
		Namespace: c.Namespace, Name: resources.DatabaseCertificate, Authority: databaseAuthority, Service: resources.DatabaseName,
		Labels: resources.Labels(resources.DatabaseName),
	})
	if err != nil {
		return r.notApplied(c, err)
	}
	return nil
}

// awaitRenewal brings the Catalog back when one of its certificates is due.
func (r *catalogs) awaitRenewal(_ context.Context, c *aihubv1alpha1.Catalog) error {
	return errors.Join(r.certificates.AwaitRenewal(c.UID), r.databaseCertificates.AwaitRenewal(c.UID))
}

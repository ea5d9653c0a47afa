package modelcatalog

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/util/flowcontrol"
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
	pkgresources "github.com/odh-platform/odh-platform-operator/pkg/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/routestatus"
	"github.com/odh-platform/odh-platform-operator/pkg/servers"
	"github.com/odh-platform/odh-platform-operator/pkg/servingcert"
	"github.com/odh-platform/odh-platform-operator/pkg/singleton"
	"github.com/odh-platform/odh-platform-operator/pkg/status/conditions"
	"github.com/odh-platform/odh-platform-operator/pkg/status/serving"
	webhook "github.com/odh-platform/odh-platform-operator/webhooks/modelregistry"
)

const (
	// maxSourceAdditions is the burst limit for replacements of the pod that mount new sources.
	maxSourceAdditions = 6
	// sourceAdditionsPerSecond is the rate at which the limit is refilled: one replacement per minute.
	sourceAdditionsPerSecond = 1.0 / 60
)

// catalogReconciler reconciles Catalogs. Its phases run in the order of the method phases.
type catalogReconciler struct {
	*servers.Reconciler

	settings Settings
	// aihub watches the AIHub; nil if the component platform is disabled.
	aihub  *aihub.Watcher
	served func() capability.Set
	// domain is the default domain of the routers of OpenShift.
	domain      servers.Domain
	extraCaches *extraCaches
	admins      *singleton.Value[[]string]
	proxy       *singleton.Value[resources.EgressProxy]
	apiKeys     *huggingface.Watcher
	takeOver    TakeOver
	// states holds the cachedState of each Catalog.
	states reconciler.UIDMap[*cachedState]
}

// cachedState holds data of one Catalog, whose reconciles never overlap. It saves reads of unchanged objects and limits how often pods are
// replaced.
type cachedState struct {
	// platform is the snapshot of platform settings for this reconcile.
	platform servers.Platform
	// validVersions holds the versions of validated objects by name.
	validVersions map[string]string
	// podsListedFor is the version of the database Deployment for which the database pod was last found.
	podsListedFor string
	// foundAt holds the time when an object that pods mount was last found, by kind and name.
	foundAt map[string]time.Time
	// additionLimiter limits the replacements of the pod that mount new sources.
	additionLimiter flowcontrol.PassiveRateLimiter
	// mountedSources are the ConfigMaps that the last reconcile selected. The cached Deployment may not mount them yet. postponed is true if
	// the limiter delays the mount of others.
	mountedSources []string
	postponed      bool
}

func (r *catalogReconciler) stateOf(uid types.UID) *cachedState {
	state, ok := r.states.Get(uid)
	if !ok {
		state = &cachedState{
			validVersions: map[string]string{}, foundAt: map[string]time.Time{},
			additionLimiter: flowcontrol.NewTokenBucketPassiveRateLimiterWithClock(sourceAdditionsPerSecond, maxSourceAdditions, r.Clock),
		}
		r.states.Set(uid, state)
	}
	return state
}

// objectVersion identifies a version of an object by UID and resourceVersion.
func objectVersion(o metav1.Object) string { return string(o.GetUID()) + "/" + o.GetResourceVersion() }

// forget removes the state of a deleted Catalog.
func (r *catalogReconciler) forget(uid types.UID) {
	r.Forget(uid)
	r.states.Delete(uid)
}

func (r *catalogReconciler) phases() []reconciler.Phase[*aihubv1alpha1.Catalog] {
	return []reconciler.Phase[*aihubv1alpha1.Catalog]{
		{Name: "checking whether the Catalog is active", Run: r.validateActive},
		{Name: "checking the spec", Run: r.validateSpec},
		{Name: "ensuring the user sources", Run: r.ensureUserSources},
		{Name: "ensuring the Secret of the database", Run: r.ensureDatabaseSecret},
		{Name: "issuing certificates", Run: r.ensureCertificates},
		{Name: "applying objects", Run: r.applyObjects},
		{Name: "deleting objects that are no longer desired", Run: r.deleteUndesired},
		{Name: "observing the rollout", Run: r.observeServer},
		{Name: "scheduling the next reconcile", Run: func(_ context.Context, c *aihubv1alpha1.Catalog) error { return r.AwaitDeadlines(c.UID) }},
	}
}

// waitForPlatform waits for the AIHub and stores a snapshot of the platform settings for this reconcile.
func (r *catalogReconciler) waitForPlatform(c *aihubv1alpha1.Catalog) (err error) {
	r.stateOf(c.UID).platform, err = servers.DetectPlatform(r.settings.ModelRegistry, r.aihub, r.served(), r.domain)
	return err
}

// inputsOf returns the platform settings that the objects depend on.
func (r *catalogReconciler) inputsOf(c *aihubv1alpha1.Catalog) resources.Inputs {
	return buildInputs(&r.stateOf(c.UID).platform)
}

func buildInputs(p *servers.Platform) resources.Inputs {
	return resources.Inputs{
		Publishing: p.Publishing(), Domain: clusterdomain.Prefer(p.DefaultDomain, p.RouterDomain),
		Images: p.Images, SkipDatabase: p.SkipCatalogDatabase,
	}
}

// validateActive waits for the AIHub, and stops the reconcile of each Catalog except the active one, because their cluster-scoped objects
// have the same names.
func (r *catalogReconciler) validateActive(ctx context.Context, c *aihubv1alpha1.Catalog) error {
	if err := r.waitForPlatform(c); err != nil {
		return err
	}
	list := &aihubv1alpha1.CatalogList{}
	if err := r.Cached.List(ctx, list); err != nil {
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
	reference.SetCondition(&c.Status.Conditions, c.Generation, c.Namespace, nil)
	return &reconciler.Wait{For: "this Catalog to be deleted or to become active", Stalled: true}
}

// validateSpec stops the reconcile on an invalid image version or a forbidden reference. Admission rejects both, but the object may have
// been stored earlier.
func (r *catalogReconciler) validateSpec(_ context.Context, c *aihubv1alpha1.Catalog) error {
	reason, err := ReasonConfiguration, resources.CheckImages(c)
	if err == nil {
		reason, err = ReasonForbidden, r.settings.AdmissionRules.Forbidden(webhook.CatalogReferences(c))
	}
	if err == nil {
		return nil
	}
	setAvailable(c, serving.State{Status: metav1.ConditionFalse, Reason: reason, Message: err.Error()})
	return &reconciler.Wait{For: "a valid spec", Stalled: true}
}

// collectInputs returns the inputs, including the state of other objects: admin groups, cluster proxy, API keys, source ConfigMaps and routes.
// It reports the sources, the routes and invalid API keys in the status.
func (r *catalogReconciler) collectInputs(ctx context.Context, c *aihubv1alpha1.Catalog) (resources.Inputs, error) {
	state, in := r.stateOf(c.UID), r.inputsOf(c)
	if err := state.platform.WaitForDomain(); err != nil {
		return in, err
	}
	groups, known := r.admins.Current()
	if !known {
		return in, &reconciler.Wait{For: "the groups of administrators", Retry: reconciler.RequeueSoon}
	}
	in.AdminGroups, in.Authority = groups, r.Certificates.CABundle(c.UID, resources.CertificateSecret)
	if !resources.HasEgressProxy(c) {
		if in.EgressProxy, known = r.proxy.Current(); !known {
			return in, &reconciler.Wait{For: "the proxy of the cluster", Retry: reconciler.RequeueSoon}
		}
	}
	if err := r.addHuggingFaceAPIKeys(c, &in); err != nil {
		return in, err
	}
	candidates, err := r.extraCaches.listCandidates(ctx, c.Namespace)
	if err != nil {
		return in, err
	}
	d, err := r.Deployment(ctx, c.Namespace, resources.Name)
	if err != nil {
		return in, err
	}
	mounted := append(mountedSources(d.Spec.Template.Spec.Volumes), state.mountedSources...)
	selection := selectSources(candidates, mounted, state.additionLimiter.TryAccept)
	state.mountedSources, state.postponed = selection.mounted, selection.postponed
	c.Status.Sources, c.Status.SourcesOmitted = selection.statuses, selection.omitted
	in.SourceConfigMaps = selection.mounted
	return in, r.ReadRoutes(ctx, c, &in.Publishing, resources.ExposureObjects(c, in))
}

// addHuggingFaceAPIKeys adds the API keys for Hugging Face and reports invalid Secrets.
func (r *catalogReconciler) addHuggingFaceAPIKeys(c *aihubv1alpha1.Catalog, in *resources.Inputs) error {
	selected, known := r.apiKeys.KeysIn(c.Namespace)
	if !known {
		return &reconciler.Wait{For: "the keys for Hugging Face", Retry: reconciler.RequeueSoon}
	}
	in.HuggingFaceAPIKeys, in.HuggingFaceAPIKeysHash = selected.APIKeys, selected.Hash
	if len(selected.Problems) == 0 {
		conditions.Remove(&c.Status.Conditions, ConditionHuggingFaceKeys)
		return nil
	}
	conditions.Set(&c.Status.Conditions, ConditionHuggingFaceKeys, metav1.ConditionFalse, ReasonKeysRejected,
		"In namespace "+c.Namespace+": "+strings.Join(selected.Problems, "; "), c.Generation)
	return nil
}

// applyObjects applies the desired objects and prunes others. It deletes outdated Deployments first.
func (r *catalogReconciler) applyObjects(ctx context.Context, c *aihubv1alpha1.Catalog) error {
	in, err := r.collectInputs(ctx, c)
	if err != nil {
		return err
	}
	desired := resources.Build(c, in)
	r.takeOver.Adopt(c, desired)
	if err := r.deleteOutdated(ctx, c, desired); err != nil {
		return err
	}
	if err := errors.Join(r.applyRolloutHashes(ctx, c, desired), r.restartForNewDatabase(ctx, c, desired)); err != nil {
		return err
	}
	if err := r.Applier.Apply(ctx, c, desired); err != nil {
		return r.reportApplyError(c, err)
	}
	if err := r.Applier.Prune(ctx, c, withRetained(c, in, desired), in.Prunable(servers.RoleBinding), nil); err != nil {
		return fmt.Errorf("deleting objects that are no longer desired: %w", err)
	}
	return nil
}

// withRetained adds the objects of a database that SkipDatabase disables: they are neither applied nor pruned. Secrets are not among the pruned
// kinds, and the user-editable ConfigMaps have no owner.
func withRetained(c *aihubv1alpha1.Catalog, in resources.Inputs, desired apply.Desired) apply.Desired {
	if !in.SkipDatabase || resources.HasExternalDatabase(c) {
		return desired
	}
	return append(slices.Clone(desired), resources.BuildDatabase(c, in)...)
}

// reportApplyError sets condition Available to False for foreign objects, for deletions that timed out, and for requests that the API
// server or a webhook rejects. Other errors do not change the condition. For terminating objects alone it returns a Wait.
func (r *catalogReconciler) reportApplyError(c *aihubv1alpha1.Catalog, err error) error {
	_, foreign := errors.AsType[*apply.ForeignError](err)
	_, terminating := errors.AsType[*apply.TerminatingError](err)
	return servers.ReportError(err, func() {
		switch {
		case apply.IsBlocked(err):
			setAvailable(c, serving.Unavailable(err.Error()))
		case foreign, terminating, apierrors.IsForbidden(err), apierrors.IsInvalid(err), apierrors.IsInternalError(err): // InternalError: a webhook fails
			setAvailable(c, serving.Unavailable("unexpected reconcile error: "+err.Error()))
		}
	})
}

// observeServer sets condition Available and the scale in the status from the state of the server.
func (r *catalogReconciler) observeServer(ctx context.Context, c *aihubv1alpha1.Catalog) error {
	d, err := r.Deployment(ctx, c.Namespace, resources.Name)
	if err != nil {
		return err
	}
	c.Status.Scale = pkgresources.ScaleStatus(d, resources.Selector(resources.Name))
	service := client.ObjectKey{Namespace: c.Namespace, Name: resources.Name}
	state, err := r.Evaluate(ctx, d, service, conditions.IsTrue(c.Status.Conditions, ConditionAvailable))
	if err != nil {
		return err
	}
	if state.CheckPods {
		pods, err := r.ListPods(ctx, c.Namespace, resources.Selector(resources.Name))
		if err != nil {
			return err
		}
		if state, err = r.addDatabaseCause(ctx, c, addPodCause(state, d, pods)); err != nil {
			return err
		}
	}
	setAvailable(c, state)
	switch {
	case state.Retry > 0:
		return &reconciler.Wait{For: "the catalog to stay available", Retry: state.Retry}
	case state.Status != metav1.ConditionTrue:
		return &reconciler.Wait{For: "the catalog to become available", Retry: reconciler.RequeueUnavailable, Stalled: conditions.ProgressDeadlineExceeded(d)}
	case state.CheckPods:
		return &reconciler.Wait{For: "the rollout to end", Retry: reconciler.RequeueUnavailable, Unready: true, Stalled: conditions.ProgressDeadlineExceeded(d)}
	case r.stateOf(c.UID).postponed:
		return &reconciler.Wait{For: "sources that were postponed", Retry: reconciler.RequeueUnavailable}
	case meta.IsStatusConditionFalse(c.Status.Conditions, reference.Condition):
		return &reconciler.Wait{For: "the missing objects that the pods refer to", Retry: reconciler.RequeueUnavailable}
	}
	return nil
}

// addDatabaseCause adds the problem of the managed database to the message of a state that is not True.
func (r *catalogReconciler) addDatabaseCause(ctx context.Context, c *aihubv1alpha1.Catalog, state serving.State) (serving.State, error) {
	if state.Status == metav1.ConditionTrue || !resources.OwnsDatabase(c, r.inputsOf(c)) {
		return state, nil
	}
	pods, err := r.ListPods(ctx, c.Namespace, resources.Selector(resources.DatabaseName))
	if err != nil {
		return state, err
	}
	cause, err := r.DatabaseCause(ctx, c.Namespace, resources.DatabaseName, pods, resourceFields)
	state.Message += cause
	return state, err
}

// The common names of the CAs of server and database.
const (
	serverCAName   = "odh-platform-operator-model-catalog-ca"
	databaseCAName = "odh-platform-operator-model-catalog-database-ca"
)

// issuesCertificate reports whether the operator, and not the platform or the user, provides the serving certificate.
func issuesCertificate(c *aihubv1alpha1.Catalog, in resources.Inputs) bool {
	return resources.HasAuthProxy(c) && !in.IsOpenShift() && resources.ServingSecret(c) == resources.CertificateSecret
}

// ensureCertificates issues the serving certificate, unless platform or user provides it, and that of a managed database with TLS.
func (r *catalogReconciler) ensureCertificates(ctx context.Context, c *aihubv1alpha1.Catalog) error {
	var specs []servingcert.Spec
	if issuesCertificate(c, r.inputsOf(c)) {
		secret := apply.Desired{{Config: corev1ac.Secret(resources.CertificateSecret, c.Namespace)}}
		r.takeOver.Adopt(c, secret)
		specs = append(specs, servingcert.Spec{
			Namespace: c.Namespace, Name: resources.CertificateSecret, CACommonName: serverCAName, Service: resources.Name,
			Labels: resources.Labels(resources.Name), DropOwnerReferences: secret[0].DropOwnerReferences,
		})
	}
	if resources.EncryptsDatabase(c) && resources.OwnsDatabase(c, r.inputsOf(c)) {
		specs = append(specs, servingcert.Spec{
			Namespace: c.Namespace, Name: resources.DatabaseCertificate, CACommonName: databaseCAName, Service: resources.DatabaseName,
			Labels: resources.Labels(resources.DatabaseName), Condition: servingcert.DatabaseCondition,
		})
	}
	return r.reportApplyError(c, r.Certificates.Ensure(ctx, c, specs...))
}

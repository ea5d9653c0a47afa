package openshift

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1ac "sigs.k8s.io/gateway-api/applyconfiguration/apis/v1"

	"github.com/odh-platform/odh-platform-operator/apis/serving/v1beta1"
	"github.com/odh-platform/odh-platform-operator/controllers/modelmesh"
	"github.com/odh-platform/odh-platform-operator/controllers/modelmesh/authproxy"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	mm "github.com/odh-platform/odh-platform-operator/pkg/modelmesh"
	meshsettings "github.com/odh-platform/odh-platform-operator/pkg/modelmesh/settings"
	"github.com/odh-platform/odh-platform-operator/pkg/routestatus"
	"github.com/odh-platform/odh-platform-operator/pkg/status/conditions"
)

// publications makes what publishes InferenceServices, and lets those go that the former companion holds.
type inferenceServiceReconciler struct {
	baseReconciler
	fullObjects client.Reader // objects of which cached holds the metadata only
	clock       clock.PassiveClock
	states      modelmesh.Store[types.NamespacedName, routeState]
	// trust has what the mesh of a namespace is known by.
	meshCAs *modelmesh.Contents[string]
}

// published is what is remembered of one InferenceService.
type routeState struct {
	uid types.UID
	// problem is the text of the last Event.
	lastProblem string
}

func newInferenceServiceReconciler(base baseReconciler, whole client.Reader, now clock.PassiveClock) *inferenceServiceReconciler {
	return &inferenceServiceReconciler{baseReconciler: base, fullObjects: whole, clock: now, meshCAs: modelmesh.NewContents(base.cached, base.live, caOf)}
}

// authorityOf is the CA in a TLS Secret, else the certificate itself.
func caOf(secret *corev1.Secret) string {
	if authority := secret.Data[corev1.ServiceAccountRootCAKey]; len(authority) > 0 {
		return string(authority)
	}
	return string(secret.Data[corev1.TLSCertKey])
}

// Reconcile implements reconcile.Reconciler. Requests name an InferenceService.
func (r *inferenceServiceReconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	s := &v1beta1.InferenceService{}
	err := r.cached.Get(ctx, request.NamespacedName, s)
	if apierrors.IsNotFound(err) {
		if gone, found := r.states.Delete(request.NamespacedName); found {
			r.applier.Forget(gone.uid)
		}
		return ctrl.Result{}, nil
	}
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("reading the InferenceService: %w", err)
	}
	if s.DeletionTimestamp != nil {
		err := r.removeLegacyFinalizer(ctx, s)
		if apierrors.IsConflict(err) { // the cache is behind a status, which is no event here
			return ctrl.Result{RequeueAfter: pollInterval}, nil
		}
		return ctrl.Result{}, err
	}
	retry, err := r.reconcile(ctx, s)
	return ctrl.Result{RequeueAfter: retry}, err
}

// held tells whether nothing but the former companion keeps an InferenceService of the mesh from ending.
func hasOnlyLegacyFinalizer(s *v1beta1.InferenceService) bool {
	return isModelMesh(s) && len(s.Finalizers) == 1 && s.Finalizers[0] == Finalizer
}

// onMesh tells whether an InferenceService is for the mesh.
func isModelMesh(s *v1beta1.InferenceService) bool {
	return s.Annotations[v1beta1.AnnotationDeploymentMode] == v1beta1.DeploymentModeModelMesh
}

// release removes the finalizer of the former companion where no other controller does. All that was made for the InferenceService goes with
// it, or with the last of its namespace.
func (r *inferenceServiceReconciler) removeLegacyFinalizer(ctx context.Context, s *v1beta1.InferenceService) error {
	if !hasOnlyLegacyFinalizer(s) {
		return nil
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"resourceVersion": s.ResourceVersion, "finalizers": nil}})
	if err != nil {
		return fmt.Errorf("encoding the finalizers: %w", err)
	}
	target := &v1beta1.InferenceService{ObjectMeta: s.ObjectMeta}
	err = r.cached.Patch(ctx, target.DeepCopy(), client.RawPatch(types.MergePatchType, patch), client.FieldOwner(r.applier.FieldOwner))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("removing finalizer %s: %w", Finalizer, err)
	}
	return nil
}

// reconcile makes what is wanted, and removes what is not.
func (r *inferenceServiceReconciler) reconcile(ctx context.Context, s *v1beta1.InferenceService) (time.Duration, error) {
	desired, problem, err := r.desiredRoutes(ctx, s)
	if err != nil {
		return 0, err
	}
	blocked, retry, err := r.apply(ctx, s, desired)
	if err != nil {
		return 0, err
	}
	publishing := slices.Clone(desired)
	if len(desired) > 0 && r.Served().Has(capability.BackendTLSPolicy) { // which is made for the whole namespace
		publishing.Add(gatewayv1ac.BackendTLSPolicy(CAObjectName, s.Namespace))
	}
	said, err := routestatus.Read(ctx, r.fullObjects, r.exposure.gateway, publishing, r.clock.Now())
	if err != nil {
		return 0, err
	}
	r.recordProblem(s, cmp.Or(problem, blocked), said)
	if said.Due > 0 && (retry == 0 || said.Due < retry) {
		retry = said.Due
	}
	return retry, r.pruneRoutes(ctx, s, desired)
}

// prune removes what publishes an InferenceService that shall not, or no more in this way.
func (r *inferenceServiceReconciler) pruneRoutes(ctx context.Context, s *v1beta1.InferenceService, desired apply.Desired) error {
	served := r.Served()
	if !served.Has(capability.Route) {
		kinds := []schema.GroupVersionKind{ingressKind}
		if served.Has(capability.HTTPRoute) {
			kinds = append(kinds, capability.HTTPRoute)
		}
		return r.applier.Prune(ctx, s, desired, kinds, nil)
	}
	var former client.ListOption // the Routes of the former companion lack our labels
	if isModelMesh(s) {
		former = client.MatchingLabels{LabelInferenceService: s.Name}
	}
	return r.applier.Prune(ctx, s, desired, []schema.GroupVersionKind{capability.Route}, former)
}

// recordProblem says why a model is not published, once for each change of that.
func (r *inferenceServiceReconciler) recordProblem(s *v1beta1.InferenceService, problem string, said routestatus.Report) {
	action := eventAction
	if problem == "" && said.First() != nil {
		problem, action = said.Message(), said.Action()
	}
	now := routeState{uid: s.UID, lastProblem: problem}
	if before := r.states.Set(client.ObjectKeyFromObject(s), now); problem != "" && before != now {
		r.recorder.Eventf(s, nil, corev1.EventTypeWarning, ReasonNoRoute, action, "%s", conditions.Clip(problem, modelmesh.MaxNote))
	}
}

// decide returns what publishes an InferenceService, and why nothing does where that was requested.
func (r *inferenceServiceReconciler) desiredRoutes(ctx context.Context, s *v1beta1.InferenceService) (apply.Desired, string, error) {
	if !isModelMesh(s) || r.exposure.routeKind(r.Served()).Empty() {
		return nil, "", nil
	}
	if enabled, err := r.enabled(ctx, s.Namespace); err != nil || !enabled {
		return nil, "", err
	}
	settings, err := r.Settings(ctx, s.Namespace)
	if err != nil {
		return nil, "", err
	}
	p := routeOptions{served: r.Served(), exposure: r.exposure, settings: settings, proxy: authproxy.Decide(settings, s.Namespace, r.Served())}
	if p.runtimeAnnotations, err = r.runtimeAnnotations(ctx, s, settings); err != nil {
		return nil, "", err
	}
	if settings.TLS.Enabled() && p.isRouteRequested() && !p.isAuthRequired() {
		if p.meshCA, _, err = r.meshCAs.Get(ctx, types.NamespacedName{Namespace: s.Namespace, Name: settings.TLS.SecretName}); err != nil {
			return nil, "", err
		}
	}
	if p.isRouteRequested() && isReservedName(s.Name) {
		kind := r.exposure.routeKind(r.Served())
		present, err := capability.GetMetadata(ctx, r.live, kind, client.ObjectKeyFromObject(s))
		if err != nil || present == nil || present.Labels[LabelInferenceService] != s.Name {
			return nil, fmt.Sprintf("there is no %s, because registries and Ray clusters have names such as %s for theirs: rename the InferenceService", kind.Kind, s.Name), err
		}
	}
	desired, problem := buildRoute(s, p)
	return desired, problem, nil
}

// reserved reports whether a name is that of a Route, HTTPRoute or Ingress of a registry or of a Ray cluster, whose users would find the model
// instead. A model that was published under such a name before stays.
func isReservedName(name string) bool {
	return strings.HasPrefix(name, "ray-dashboard-") || strings.HasPrefix(name, "rayclient-") || strings.HasSuffix(name, "-https") || strings.HasSuffix(name, "-http")
}

// runtime returns the annotations of the runtime that serves an InferenceService; nil when none does, or when that is not known.
func (r *inferenceServiceReconciler) runtimeAnnotations(ctx context.Context, s *v1beta1.InferenceService, settings meshsettings.Settings) (map[string]string, error) {
	model, ok, err := mm.FromInferenceService(s)
	if err != nil || !ok {
		return nil, nil // its status says what is wrong with it
	}
	runtimes, err := r.Runtimes(ctx, s.Namespace)
	if err != nil {
		return nil, err
	}
	return servingRuntimeAnnotations(model, runtimes, settings.RESTProxy.Enabled), nil
}

// serving returns the annotations of the runtime that serves a model: the one that it names, else the newest that supports it, those
// of the namespace before those of the cluster; nil when there is none.
func servingRuntimeAnnotations(model mm.Model, runtimes map[string]modelmesh.Runtime, restProxy bool) map[string]string {
	candidates := maps.Clone(runtimes)
	maps.DeleteFunc(candidates, func(name string, r modelmesh.Runtime) bool {
		return !mm.Serves(r.Spec) || !mm.Supports(mm.Labels(name, r.Spec, restProxy), model.Label())
	})
	if len(candidates) == 0 {
		return nil
	}
	if annotations := slices.MaxFunc(slices.Collect(maps.Values(candidates)), comparePrecedence).Object.GetAnnotations(); annotations != nil {
		return annotations
	}
	return map[string]string{}
}

// byPrecedence puts the runtime that serves later: one of the namespace, the newer one; of equal age the one whose name comes first.
func comparePrecedence(a, b modelmesh.Runtime) int {
	if a, b := a.Object.GetNamespace(), b.Object.GetNamespace(); (a == "") != (b == "") {
		return strings.Compare(a, b)
	}
	if c := a.Object.GetCreationTimestamp().Compare(b.Object.GetCreationTimestamp().Time); c != 0 {
		return c
	}
	return strings.Compare(b.Object.GetName(), a.Object.GetName())
}

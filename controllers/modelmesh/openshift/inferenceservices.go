package openshift

import (
	"cmp"
	"context"
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
	pkgmodelmesh "github.com/odh-platform/odh-platform-operator/pkg/modelmesh"
	meshsettings "github.com/odh-platform/odh-platform-operator/pkg/modelmesh/settings"
	"github.com/odh-platform/odh-platform-operator/pkg/objectmeta"
	"github.com/odh-platform/odh-platform-operator/pkg/reconciler"
	"github.com/odh-platform/odh-platform-operator/pkg/reference"
	"github.com/odh-platform/odh-platform-operator/pkg/routestatus"
)

// inferenceServiceReconciler publishes InferenceServices.
type inferenceServiceReconciler struct {
	baseReconciler
	fullObjects client.Reader // reads full Routes, HTTPRoutes and BackendTLSPolicies; cached reads only their metadata
	clock       clock.PassiveClock
	states      reconciler.SyncMap[types.NamespacedName, routeState]
	// meshCAs caches the CA of the mesh of each namespace.
	meshCAs *reference.ContentCache[string]
}

// routeState is the state of one InferenceService between reconciles.
type routeState struct {
	uid types.UID
	// lastProblem is the problem that the last reconcile found; empty for none.
	lastProblem string
}

func newInferenceServiceReconciler(base baseReconciler, fullObjects client.Reader, clock clock.PassiveClock) *inferenceServiceReconciler {
	return &inferenceServiceReconciler{baseReconciler: base, fullObjects: fullObjects, clock: clock, meshCAs: reference.NewContentCache(base.cached, base.live, caOf)}
}

// caOf returns the CA in a TLS Secret, or the certificate if the Secret has no CA.
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
		if state, found := r.states.Delete(request.NamespacedName); found {
			r.applier.Forget(state.uid)
		}
		return ctrl.Result{}, nil
	}
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("reading the InferenceService: %w", err)
	}
	if s.DeletionTimestamp != nil {
		err := r.takeOver.Finalize(ctx, s)
		if apierrors.IsConflict(err) { // the cached object is stale, and a status update triggers no reconcile
			return ctrl.Result{RequeueAfter: reconciler.RequeueSoon}, nil
		}
		return ctrl.Result{}, err
	}
	retry, err := r.reconcile(ctx, s)
	return ctrl.Result{RequeueAfter: retry}, err
}

// reconcile applies the desired objects and deletes the obsolete ones.
func (r *inferenceServiceReconciler) reconcile(ctx context.Context, s *v1beta1.InferenceService) (time.Duration, error) {
	desired, problem, err := r.desiredRoutes(ctx, s)
	if err != nil {
		return 0, err
	}
	blocked, retry, err := classify(r.applier.Apply(ctx, s, desired))
	if err != nil {
		if reconciler.IsTerminal(err) { // it is not retried
			r.recordProblem(s, err.Error(), routestatus.Report{})
		}
		return 0, err
	}
	published := slices.Clone(desired)
	if len(desired) > 0 && r.Served().Has(capability.BackendTLSPolicy) { // shared by all models of the namespace
		published.Add(gatewayv1ac.BackendTLSPolicy(CAObjectName, s.Namespace))
	}
	report, err := routestatus.Read(ctx, r.fullObjects, r.exposure.gateway, published, r.clock.Now())
	if err != nil {
		return 0, err
	}
	r.recordProblem(s, cmp.Or(problem, blocked), report)
	return reconciler.Sooner(retry, report.Retry), r.pruneRoutes(ctx, s, desired)
}

// pruneRoutes deletes the obsolete objects that publish an InferenceService.
func (r *inferenceServiceReconciler) pruneRoutes(ctx context.Context, s *v1beta1.InferenceService, desired apply.Desired) error {
	served := r.Served()
	if !served.Has(capability.Route) {
		kinds := []schema.GroupVersionKind{ingressKind}
		if served.Has(capability.HTTPRoute) {
			kinds = append(kinds, capability.HTTPRoute)
		}
		return r.applier.Prune(ctx, s, desired, kinds, nil)
	}
	return r.applier.Prune(ctx, s, desired, []schema.GroupVersionKind{capability.Route}, r.takeOver.LegacyRoutes(s))
}

// recordProblem records an Event with the reason why a model is not published, if that reason has changed.
func (r *inferenceServiceReconciler) recordProblem(s *v1beta1.InferenceService, problem string, report routestatus.Report) {
	action := eventAction
	if first := report.FirstProblem(); problem == "" && first != nil {
		problem, action = first.Message, first.Action()
	}
	state := routeState{uid: s.UID, lastProblem: problem}
	if previous := r.states.Set(client.ObjectKeyFromObject(s), state); problem != "" && previous != state {
		r.recorder.Eventf(s, nil, corev1.EventTypeWarning, ReasonNoRoute, action, "%s", problem)
	}
}

// desiredRoutes returns the objects that publish an InferenceService, or the problem that prevents it.
func (r *inferenceServiceReconciler) desiredRoutes(ctx context.Context, s *v1beta1.InferenceService) (apply.Desired, string, error) {
	if !pkgmodelmesh.IsModelMesh(s) || r.exposure.routeKind(r.Served()).Empty() {
		return nil, "", nil
	}
	if enabled, err := r.enabled(ctx, s.Namespace); err != nil || !enabled {
		return nil, "", err
	}
	settings, err := r.Settings(ctx, s.Namespace)
	if err != nil {
		return nil, "", err
	}
	options := routeOptions{served: r.Served(), exposure: r.exposure, settings: settings, proxy: authproxy.Decide(settings, s.Namespace, r.Served())}
	if options.runtimeAnnotations, err = r.runtimeAnnotations(ctx, s, settings); err != nil {
		return nil, "", err
	}
	if settings.TLS.Enabled() && options.isRouteRequested() && !options.isAuthRequired() {
		if options.meshCA, _, err = r.meshCAs.Get(ctx, types.NamespacedName{Namespace: s.Namespace, Name: settings.TLS.SecretName}); err != nil {
			return nil, "", err
		}
	}
	if options.isRouteRequested() && isReservedName(s.Name) {
		kind := r.exposure.routeKind(r.Served())
		existing, err := objectmeta.Get(ctx, r.live, kind, client.ObjectKeyFromObject(s))
		if err != nil || existing == nil || existing.Labels[LabelInferenceService] != s.Name {
			return nil, fmt.Sprintf("there is no %s, because registries and Ray clusters use names such as %s: recreate the InferenceService under another name", kind.Kind, s.Name), err
		}
	}
	desired, problem := buildRoute(s, options)
	return desired, problem, nil
}

// isReservedName reports whether registries or Ray clusters can use a name for a Route, HTTPRoute or Ingress: users of the registry or
// cluster would reach the model. A model that is already published under such a name remains published.
func isReservedName(name string) bool {
	return strings.HasPrefix(name, "ray-dashboard-") || strings.HasPrefix(name, "rayclient-") || strings.HasSuffix(name, "-https") || strings.HasSuffix(name, "-http")
}

// runtimeAnnotations returns the annotations of the runtime that serves an InferenceService; nil if the runtime is unknown.
func (r *inferenceServiceReconciler) runtimeAnnotations(ctx context.Context, s *v1beta1.InferenceService, settings meshsettings.Settings) (map[string]string, error) {
	model, ok, err := pkgmodelmesh.FromInferenceService(s)
	if err != nil || !ok {
		return nil, nil // the status of the InferenceService contains the reason
	}
	runtimes, err := r.Runtimes(ctx, s.Namespace)
	if err != nil {
		return nil, err
	}
	return servingRuntimeAnnotations(model, runtimes, settings.RESTProxy.Enabled), nil
}

// servingRuntimeAnnotations returns the annotations of the runtime that serves a model; nil without a runtime. The spec of the model names
// the runtime; otherwise it is the newest one that supports the model. ServingRuntimes take precedence over ClusterServingRuntimes.
func servingRuntimeAnnotations(model pkgmodelmesh.Model, runtimes map[string]modelmesh.Runtime, restProxy bool) map[string]string {
	candidates := maps.Clone(runtimes)
	maps.DeleteFunc(candidates, func(name string, r modelmesh.Runtime) bool {
		return !pkgmodelmesh.IsEnabled(r.Spec) || !pkgmodelmesh.HasLabels(pkgmodelmesh.Labels(name, r.Spec, restProxy), model.Label())
	})
	if len(candidates) == 0 {
		return nil
	}
	if annotations := slices.MaxFunc(slices.Collect(maps.Values(candidates)), comparePrecedence).Object.GetAnnotations(); annotations != nil {
		return annotations
	}
	return map[string]string{}
}

// comparePrecedence orders runtimes by increasing precedence: ClusterServingRuntimes first, then by age (newest last) and by descending
// name.
func comparePrecedence(a, b modelmesh.Runtime) int {
	if a, b := a.Object.GetNamespace(), b.Object.GetNamespace(); (a == "") != (b == "") {
		return strings.Compare(a, b)
	}
	if c := a.Object.GetCreationTimestamp().Compare(b.Object.GetCreationTimestamp().Time); c != 0 {
		return c
	}
	return strings.Compare(b.Object.GetName(), a.Object.GetName())
}

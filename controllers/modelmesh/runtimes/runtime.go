package runtimes

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/controllers/modelmesh"
	"github.com/odh-platform/odh-platform-operator/controllers/modelmesh/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	mm "github.com/odh-platform/odh-platform-operator/pkg/modelmesh"
	meshsettings "github.com/odh-platform/odh-platform-operator/pkg/modelmesh/settings"
	webhook "github.com/odh-platform/odh-platform-operator/webhooks/modelmesh"
)

// annotationProduct names a ConfigMap that has to be there before the pods are.
const productConfigMapAnnotation = "productConfig"

// noProduct begins as it always did.
const productMissingPrefix = "Unable to access ConfigMap"

// runtime brings about the Deployment of a runtime and its autoscaler. again is when a grace period ends; 0 is never.
func (r *runtimeReconciler) reconcileRuntime(ctx context.Context, state *namespaceState, name string, rt modelmesh.Runtime) (again time.Duration, err error) {
	problem, err := r.validate(ctx, state, rt)
	if err != nil {
		return 0, err
	}
	if problem != nil {
		r.reporter.reportInvalid(state.Namespace, rt.Object, problem)
		return 0, nil // its Deployment stays as it is; what mends it wakes us
	}
	scale, notes := mm.ParseAutoscaling(rt.Object.GetAnnotations())
	live, err := r.getDeployment(ctx, state, name)
	if err != nil {
		return 0, err
	}
	in := resources.RuntimeInputs{
		NamespaceInputs: state.namespaceInputs(state.tls), Name: name, Annotations: rt.Object.GetAnnotations(), Spec: rt.Spec, Restricted: state.restricted,
	}
	replicas := r.decideReplicas(state, name, rt, scale, live)
	in.Replicas = &replicas.Count
	config, notices, err := r.buildDeployment(ctx, state, in, live)
	if errors.Is(err, errInvalidSpec) {
		r.reporter.reportInvalid(state.Namespace, rt.Object, err)
		return replicas.RequeueAfter, nil
	}
	if err != nil {
		return replicas.RequeueAfter, err
	}
	r.reporter.reportInvalid(state.Namespace, rt.Object, nil)
	r.reporter.warn(state.Namespace, rt.Object, actionRender, ReasonNotice, strings.Join(append(append(notes, notices...), state.authProxyWarnings()...), "; "))
	if !replicas.Autoscaled {
		scale = mm.Autoscale{}
	}
	version := "" // the autoscaler may have written since
	if replicas.Autoscaled && live != nil {
		version = live.ResourceVersion
	}
	opened := r.proxyReplacedMessage(in, live)
	if opened != "" {
		if lacks, err := r.isCookieKeyMissing(ctx, state, in.Proxy); err != nil || lacks {
			return replicas.RequeueAfter, err // its event wakes us
		}
	}
	if err := r.applyRuntime(ctx, state, rt, in, apply.Object{Config: config, Version: version}, scale); err != nil || state.errPrerequisites != nil {
		return replicas.RequeueAfter, err
	}
	r.reporter.warn(state.Namespace, rt.Object, actionTakeOver, ReasonReplaced, opened)
	return replicas.RequeueAfter, nil
}

// write applies the objects of a runtime once its guards stand; a scale that is not enabled takes the autoscaler away.
func (r *runtimeReconciler) applyRuntime(ctx context.Context, state *namespaceState, rt modelmesh.Runtime, in resources.RuntimeInputs, deployment apply.Object, scale mm.Autoscale) error {
	if state.errPrerequisites != nil {
		return nil
	}
	disowns := func(ref metav1.OwnerReference) bool { // a runtime of the namespace hides one of the cluster by its name
		return strings.HasPrefix(ref.APIVersion, "serving.kserve.io/") && ref.Name == in.Name && ref.UID != rt.Object.GetUID()
	}
	deployment.AdoptIf, deployment.DropOwnerReferences = adoptIfLegacy, disowns
	desired := apply.Desired{deployment}
	name := resources.DeploymentName(state.Settings.ServiceName, in.Name)
	var err error
	if scale.Enabled {
		desired = append(desired, apply.Object{Config: resources.BuildAutoscaler(in, rt.Object.GetLabels(), scale), AdoptIf: adoptIfLegacy, DropOwnerReferences: disowns})
	} else {
		err = r.deleteManaged(ctx, state.Namespace, autoscalerKind, func(o metav1.Object) bool { return o.GetName() == name })
	}
	return errors.Join(err, r.applier.Apply(ctx, rt.Object, desired))
}

// invalid says why a runtime cannot be served, as far as that is for its author or for the administrator of the namespace to mend.
func (r *runtimeReconciler) validate(ctx context.Context, state *namespaceState, rt modelmesh.Runtime) (problem, err error) {
	if problem := state.validateSpec(rt); problem != nil {
		return problem, nil
	}
	if problem := r.authors.Forbidden(webhook.Uses(r.authors, rt.Spec, state.Namespace)); problem != nil {
		return problem, nil
	}
	if state.errTLSSecretMissing != nil {
		return state.errTLSSecretMissing, nil
	}
	product := rt.Object.GetAnnotations()[productConfigMapAnnotation]
	if product == "" {
		return nil, nil
	}
	head, err := capability.GetMetadata(ctx, r.Cached, configMapKind, namespacedName(state.Namespace, product))
	if err == nil && head == nil {
		problem = fmt.Errorf("%s '%s', which annotation %s names; create it", productMissingPrefix, product, productConfigMapAnnotation)
	}
	return problem, err
}

// deployment returns the Deployment of a runtime as it is: from memory, or what the original left, which memory does not show. Nor
// does it at once when that was taken over, and taking it for new then would roll its pods. Nil is none. It must not be changed.
func (r *runtimeReconciler) getDeployment(ctx context.Context, state *namespaceState, name string) (*appsv1.Deployment, error) {
	key := namespacedName(state.Namespace, resources.DeploymentName(state.Settings.ServiceName, name))
	d := &appsv1.Deployment{}
	err := r.Cached.Get(ctx, key, d, &client.GetOptions{UnsafeDisableDeepCopy: new(true)})
	if apierrors.IsNotFound(err) {
		err = r.live.Get(ctx, key, d)
	}
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading Deployment %s: %w", key, err)
	}
	return d, nil
}

// replicas decides how many pods a runtime has.
func (r *runtimeReconciler) decideReplicas(state *namespaceState, name string, rt modelmesh.Runtime, scale mm.Autoscale, live *appsv1.Deployment) resources.Replicas {
	runtime := namespacedName(state.Namespace, name)
	in := state.replicaInputs(rt, scale, hasModelFor(state.models, mm.Labels(name, rt.Spec, state.Settings.RESTProxy.Enabled)))
	in.IdleSince, _ = r.idleRuntimes.Get(runtime)
	in.Now = r.clock.Now()
	if live != nil {
		in.CurrentReplicas = live.Spec.Replicas
	}
	decided := resources.DecideReplicas(in)
	r.idleRuntimes.Set(runtime, decided.IdleSince)
	return decided
}

// render builds the Deployment in the form that its pods shall have, see AnnotationOriginal.
func (r *runtimeReconciler) buildDeployment(ctx context.Context, state *namespaceState, in resources.RuntimeInputs, live *appsv1.Deployment) (*appsv1ac.DeploymentApplyConfiguration, []string, error) {
	if live != nil {
		original, err := r.buildLegacyDeployment(ctx, state, in, live)
		if err != nil || original != nil {
			return original, nil, err
		}
	}
	claims, missing, err := r.resolveClaims(ctx, state, in)
	if err != nil {
		return nil, nil, err
	}
	in.Claims = claims
	in.Settings.ServiceAccountName = state.serviceAccountName()
	built, err := resources.BuildDeployment(in)
	if err != nil {
		return nil, nil, fmt.Errorf("%w: %w", errInvalidSpec, err)
	}
	notices := append(append([]string{}, state.storage.notices...), built.Notices...)
	for _, claim := range missing {
		notices = append(notices, fmt.Sprintf("PersistentVolumeClaim %s does not exist and is not mounted; create it", claim))
	}
	return built.Config, notices, nil
}

// original renders the form of the original where the live Deployment has to keep it; nil where it has not.
func (r *runtimeReconciler) buildLegacyDeployment(ctx context.Context, state *namespaceState, in resources.RuntimeInputs, live *appsv1.Deployment) (*appsv1ac.DeploymentApplyConfiguration, error) {
	if !r.hasLegacyForm(live) || hasLegacyProxy(&live.Spec.Template, in.Spec) {
		return nil, nil
	}
	in.Form, in.Proxy = resources.Legacy, nil
	if in.Settings.ServiceAccountName == "" {
		in.Settings.ServiceAccountName = live.Spec.Template.Spec.ServiceAccountName
	}
	claims, _, err := r.resolveClaims(ctx, state, in)
	if err != nil {
		return nil, err
	}
	in.Claims = claims
	built, err := resources.BuildDeployment(in)
	if err != nil {
		return nil, nil // it never was rendered, so the form of ours decides
	}
	hash, err := resources.TemplateHash(built.Config)
	if err != nil {
		return nil, err
	}
	same := hash == live.Annotations[AnnotationLegacyTemplate]
	if !r.applier.IsManaged(live) {
		same, err = templateContains(built.Config.Spec.Template, &live.Spec.Template)
	}
	if err != nil || !same {
		return nil, err
	}
	return built.Config.WithAnnotations(map[string]string{AnnotationLegacyTemplate: hash}), nil
}

// claimsFor returns the claims that the pods of a runtime mount, and those that they would if they existed.
func (r *runtimeReconciler) resolveClaims(ctx context.Context, state *namespaceState, in resources.RuntimeInputs) (claims, missing []string, err error) {
	claims, missing = resources.Claims(resources.ClaimInputs{
		Form: in.Form, FromSecret: state.storage.claims, AllowAny: state.Settings.AllowAnyPVC, Models: state.models,
		Labels: mm.Labels(in.Name, in.Spec, state.Settings.RESTProxy.Enabled),
		Exists: func(claim string) bool {
			head, e := capability.GetMetadata(ctx, r.claims, pvcKind, namespacedName(state.Namespace, claim))
			err = errors.Join(err, e)
			return head != nil
		},
	})
	return claims, missing, err
}

// unguarded says that a sidecar was asked for which cannot be; nothing else.
func (in RenderInputs) authProxyWarnings() []string {
	if in.Settings.AuthProxy.Mode != meshsettings.AuthProxyAlways || !in.SingleNamespace {
		return nil
	}
	return []string{"setting authProxy.mode always has no effect where the manager serves its own namespace only, and REST is not guarded: " +
		"serve all namespaces, or close the port by a NetworkPolicy"}
}

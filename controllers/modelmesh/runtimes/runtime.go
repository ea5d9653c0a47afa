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
func (r *runtimeReconciler) reconcileRuntime(ctx context.Context, f *namespaceState, name string, t modelmesh.Runtime) (again time.Duration, err error) {
	problem, err := r.validate(ctx, f, t)
	if err != nil {
		return 0, err
	}
	if problem != nil {
		r.reporter.reportInvalid(f.Namespace, t.Object, problem)
		return 0, nil // its Deployment stays as it is; what mends it wakes us
	}
	scale, notes := mm.ParseAutoscaling(t.Object.GetAnnotations())
	live, err := r.getDeployment(ctx, f, name)
	if err != nil {
		return 0, err
	}
	in := resources.RuntimeInputs{
		NamespaceInputs: f.namespaceInputs(f.tls), Name: name, Annotations: t.Object.GetAnnotations(), Spec: t.Spec, Restricted: f.restricted,
	}
	replicas := r.decideReplicas(f, name, t, scale, live)
	in.Replicas = &replicas.Count
	config, notices, err := r.buildDeployment(ctx, f, in, live)
	if errors.Is(err, errInvalidSpec) {
		r.reporter.reportInvalid(f.Namespace, t.Object, err)
		return replicas.RequeueAfter, nil
	}
	if err != nil {
		return replicas.RequeueAfter, err
	}
	r.reporter.reportInvalid(f.Namespace, t.Object, nil)
	r.reporter.warn(f.Namespace, t.Object, actionRender, ReasonNotice, strings.Join(append(append(notes, notices...), f.authProxyWarnings()...), "; "))
	if !replicas.Autoscaled {
		scale = mm.Autoscale{}
	}
	version := "" // the autoscaler may have written since
	if replicas.Autoscaled && live != nil {
		version = live.ResourceVersion
	}
	opened := r.proxyReplacedMessage(in, live)
	if opened != "" {
		if lacks, err := r.isCookieKeyMissing(ctx, f, in.Proxy); err != nil || lacks {
			return replicas.RequeueAfter, err // its event wakes us
		}
	}
	if err := r.applyRuntime(ctx, f, t, in, apply.Object{Config: config, Version: version}, scale); err != nil || f.errPrerequisites != nil {
		return replicas.RequeueAfter, err
	}
	r.reporter.warn(f.Namespace, t.Object, actionTakeOver, ReasonReplaced, opened)
	return replicas.RequeueAfter, nil
}

// write applies the objects of a runtime once its guards stand; a scale that is not enabled takes the autoscaler away.
func (r *runtimeReconciler) applyRuntime(ctx context.Context, f *namespaceState, t modelmesh.Runtime, in resources.RuntimeInputs, deployment apply.Object, scale mm.Autoscale) error {
	if f.errPrerequisites != nil {
		return nil
	}
	disowns := func(ref metav1.OwnerReference) bool { // a runtime of the namespace hides one of the cluster by its name
		return strings.HasPrefix(ref.APIVersion, "serving.kserve.io/") && ref.Name == in.Name && ref.UID != t.Object.GetUID()
	}
	deployment.AdoptIf, deployment.DropOwnerReferences = adoptIfLegacy, disowns
	desired := apply.Desired{deployment}
	name := resources.DeploymentName(f.Settings.ServiceName, in.Name)
	var err error
	if scale.Enabled {
		desired = append(desired, apply.Object{Config: resources.BuildAutoscaler(in, t.Object.GetLabels(), scale), AdoptIf: adoptIfLegacy, DropOwnerReferences: disowns})
	} else {
		err = r.deleteManaged(ctx, f.Namespace, autoscalerKind, func(o metav1.Object) bool { return o.GetName() == name })
	}
	return errors.Join(err, r.applier.Apply(ctx, t.Object, desired))
}

// invalid says why a runtime cannot be served, as far as that is for its author or for the administrator of the namespace to mend.
func (r *runtimeReconciler) validate(ctx context.Context, f *namespaceState, t modelmesh.Runtime) (problem, err error) {
	if problem := f.validateSpec(t); problem != nil {
		return problem, nil
	}
	if problem := r.authors.Forbidden(webhook.Uses(r.authors, t.Spec, f.Namespace)); problem != nil {
		return problem, nil
	}
	if f.errTLSSecretMissing != nil {
		return f.errTLSSecretMissing, nil
	}
	product := t.Object.GetAnnotations()[productConfigMapAnnotation]
	if product == "" {
		return nil, nil
	}
	head, err := capability.GetMetadata(ctx, r.Cached, configMapKind, namespacedName(f.Namespace, product))
	if err == nil && head == nil {
		problem = fmt.Errorf("%s '%s', which annotation %s names; create it", productMissingPrefix, product, productConfigMapAnnotation)
	}
	return problem, err
}

// deployment returns the Deployment of a runtime as it is: from memory, or what the original left, which memory does not show. Nor
// does it at once when that was taken over, and taking it for new then would roll its pods. Nil is none. It must not be changed.
func (r *runtimeReconciler) getDeployment(ctx context.Context, f *namespaceState, name string) (*appsv1.Deployment, error) {
	key := namespacedName(f.Namespace, resources.DeploymentName(f.Settings.ServiceName, name))
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
func (r *runtimeReconciler) decideReplicas(f *namespaceState, name string, t modelmesh.Runtime, scale mm.Autoscale, live *appsv1.Deployment) resources.Replicas {
	runtime := namespacedName(f.Namespace, name)
	in := f.replicaInputs(t, scale, hasModelFor(f.models, mm.Labels(name, t.Spec, f.Settings.RESTProxy.Enabled)))
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
func (r *runtimeReconciler) buildDeployment(ctx context.Context, f *namespaceState, in resources.RuntimeInputs, live *appsv1.Deployment) (*appsv1ac.DeploymentApplyConfiguration, []string, error) {
	if live != nil {
		original, err := r.buildLegacyDeployment(ctx, f, in, live)
		if err != nil || original != nil {
			return original, nil, err
		}
	}
	claims, missing, err := r.resolveClaims(ctx, f, in)
	if err != nil {
		return nil, nil, err
	}
	in.Claims = claims
	in.Settings.ServiceAccountName = f.serviceAccountName()
	built, err := resources.BuildDeployment(in)
	if err != nil {
		return nil, nil, fmt.Errorf("%w: %w", errInvalidSpec, err)
	}
	notices := append(append([]string{}, f.storage.notices...), built.Notices...)
	for _, claim := range missing {
		notices = append(notices, fmt.Sprintf("PersistentVolumeClaim %s does not exist and is not mounted; create it", claim))
	}
	return built.Config, notices, nil
}

// original renders the form of the original where the live Deployment has to keep it; nil where it has not.
func (r *runtimeReconciler) buildLegacyDeployment(ctx context.Context, f *namespaceState, in resources.RuntimeInputs, live *appsv1.Deployment) (*appsv1ac.DeploymentApplyConfiguration, error) {
	if !r.hasLegacyForm(live) || hasLegacyProxy(&live.Spec.Template, in.Spec) {
		return nil, nil
	}
	in.Form, in.Proxy = resources.Legacy, nil
	if in.Settings.ServiceAccountName == "" {
		in.Settings.ServiceAccountName = live.Spec.Template.Spec.ServiceAccountName
	}
	claims, _, err := r.resolveClaims(ctx, f, in)
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
func (r *runtimeReconciler) resolveClaims(ctx context.Context, f *namespaceState, in resources.RuntimeInputs) (claims, missing []string, err error) {
	claims, missing = resources.Claims(resources.ClaimInputs{
		Form: in.Form, FromSecret: f.storage.claims, AllowAny: f.Settings.AllowAnyPVC, Models: f.models,
		Labels: mm.Labels(in.Name, in.Spec, f.Settings.RESTProxy.Enabled),
		Exists: func(claim string) bool {
			head, e := capability.GetMetadata(ctx, r.claims, pvcKind, namespacedName(f.Namespace, claim))
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

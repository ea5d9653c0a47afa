package runtimes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/controllers/modelmesh"
	"github.com/odh-platform/odh-platform-operator/controllers/modelmesh/authproxy"
	"github.com/odh-platform/odh-platform-operator/controllers/modelmesh/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	pkgmodelmesh "github.com/odh-platform/odh-platform-operator/pkg/modelmesh"
	meshsettings "github.com/odh-platform/odh-platform-operator/pkg/modelmesh/settings"
	"github.com/odh-platform/odh-platform-operator/pkg/objectmeta"
	webhook "github.com/odh-platform/odh-platform-operator/webhooks/modelmesh"
)

// productConfigMapAnnotation names a ConfigMap that must exist before pods are created.
const productConfigMapAnnotation = "productConfig"

// productMissingPrefix is the prefix of the message about a missing ConfigMap, as in the legacy controller.
const productMissingPrefix = "Unable to access ConfigMap"

// reconcileRuntime applies the Deployment of a runtime and its autoscaler. requeueAfter is the remaining grace period before the runtime
// is scaled to zero, or 0.
func (r *runtimeReconciler) reconcileRuntime(ctx context.Context, state *namespaceState, name string, rt modelmesh.Runtime) (requeueAfter time.Duration, err error) {
	problem, err := r.validate(ctx, state, rt)
	if err != nil {
		return 0, err
	}
	if problem != nil {
		state.reportInvalid(rt.Object, problem)
		return 0, nil // the Deployment is not changed; a correction triggers a reconcile
	}
	scale, notes := pkgmodelmesh.ParseAutoscaling(rt.Object.GetAnnotations())
	live, err := r.getDeployment(ctx, state, name)
	if err != nil {
		return 0, err
	}
	in := resources.RuntimeInputs{
		NamespaceInputs: state.namespaceInputs(state.tls), Name: name, Annotations: rt.Object.GetAnnotations(), Spec: rt.Spec, Restricted: state.restricted,
	}
	replicas := r.decideReplicas(state, name, rt, scale, live)
	in.Replicas = &replicas.Count
	resolve := r.claimResolver(ctx, state)
	built, replacedMessage, err := r.takeOver.BuildDeployment(in, live, resolve)
	if built == nil && err == nil {
		built, err = state.buildDeployment(in, resolve)
	}
	if errors.Is(err, errInvalidSpec) {
		state.reportInvalid(rt.Object, err)
		return replicas.RequeueAfter, nil
	}
	if err != nil {
		return replicas.RequeueAfter, err
	}
	state.reportInvalid(rt.Object, nil)
	state.warn(rt.Object, actionRender, ReasonNotice, strings.Join(append(append(notes, built.Notices...), state.authProxyWarnings()...), "; "))
	if !replicas.Autoscaled {
		scale = pkgmodelmesh.Autoscale{}
	}
	version := "" // for optimistic locking: the autoscaler may change the replica count
	if replicas.Autoscaled && live != nil {
		version = live.ResourceVersion
	}
	if missing, err := r.isCookieKeyMissing(ctx, state, in.Proxy, replacedMessage); err != nil || missing {
		return replicas.RequeueAfter, err // the creation of the Secret triggers a reconcile
	}
	if err := r.applyRuntime(ctx, state, rt, in, apply.Object{Config: built.Config, ResourceVersion: version}, scale); err != nil || state.errPrerequisites != nil {
		return replicas.RequeueAfter, err
	}
	state.warn(rt.Object, actionTakeOver, ReasonReplaced, replacedMessage)
	return replicas.RequeueAfter, nil
}

// applyRuntime applies the objects of a runtime if its prerequisites were applied. It deletes the autoscaler unless scale is enabled.
func (r *runtimeReconciler) applyRuntime(ctx context.Context, state *namespaceState, rt modelmesh.Runtime, in resources.RuntimeInputs, deployment apply.Object, scale pkgmodelmesh.Autoscale) error {
	if state.errPrerequisites != nil {
		return nil
	}
	isReplacedRuntime := func(ref metav1.OwnerReference) bool { // a ServingRuntime replaces a ClusterServingRuntime of its name
		return strings.HasPrefix(ref.APIVersion, "serving.kserve.io/") && ref.Name == in.Name && ref.UID != rt.Object.GetUID()
	}
	deployment.DropOwnerReferences = isReplacedRuntime
	desired := apply.Desired{deployment}
	name := resources.DeploymentName(state.Settings.ServiceName, in.Name)
	var err error
	if scale.Enabled {
		desired = append(desired, apply.Object{Config: resources.BuildAutoscaler(in, rt.Object.GetLabels(), scale), DropOwnerReferences: isReplacedRuntime})
	} else {
		err = r.deleteManaged(ctx, state.Namespace, autoscalerKind, func(o metav1.Object) bool { return o.GetName() == name })
	}
	return errors.Join(err, r.apply(ctx, rt.Object, desired))
}

// validate returns the first problem that the author of the runtime or the administrator of the namespace must fix.
func (r *runtimeReconciler) validate(ctx context.Context, state *namespaceState, rt modelmesh.Runtime) (problem, err error) {
	if problem := state.validateSpec(rt); problem != nil {
		return problem, nil
	}
	if problem := r.admissionRules.Forbidden(webhook.References(r.admissionRules, rt.Spec, state.Namespace)); problem != nil {
		return problem, nil
	}
	if problem := cmp.Or(state.errTLSSecretMissing, state.errForeignEtcdSecret); problem != nil {
		return problem, nil
	}
	configMap := rt.Object.GetAnnotations()[productConfigMapAnnotation]
	if configMap == "" {
		return nil, nil
	}
	metadata, err := objectmeta.Get(ctx, r.Cached, configMapKind, namespacedName(state.Namespace, configMap))
	if err == nil && metadata == nil {
		problem = fmt.Errorf("%s '%s', which annotation %s names; create it", productMissingPrefix, configMap, productConfigMapAnnotation)
	}
	return problem, err
}

// getDeployment returns the live Deployment of a runtime, or nil. It reads from the API server if the cache has none: the cache does not
// contain Deployments of the legacy controller, and a wrong nil would restart their pods. The result must not be changed.
func (r *runtimeReconciler) getDeployment(ctx context.Context, state *namespaceState, name string) (*appsv1.Deployment, error) {
	key := namespacedName(state.Namespace, resources.DeploymentName(state.Settings.ServiceName, name))
	deployment := &appsv1.Deployment{}
	err := r.Cached.Get(ctx, key, deployment, &client.GetOptions{UnsafeDisableDeepCopy: new(true)})
	if apierrors.IsNotFound(err) {
		err = r.live.Get(ctx, key, deployment)
	}
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading Deployment %s: %w", key, err)
	}
	return deployment, nil
}

// decideReplicas returns the replica count of a runtime and stores the time since which the runtime is idle.
func (r *runtimeReconciler) decideReplicas(state *namespaceState, name string, rt modelmesh.Runtime, scale pkgmodelmesh.Autoscale, live *appsv1.Deployment) resources.Replicas {
	in := state.replicaInputs(rt, scale, hasModelFor(state.models, pkgmodelmesh.Labels(name, rt.Spec, state.Settings.RESTProxy.Enabled)))
	in.IdleSince, in.Now = state.idleSince[name], r.clock.Now()
	if live != nil {
		in.CurrentReplicas = live.Spec.Replicas
	}
	decided := resources.DecideReplicas(in)
	state.idleSince[name] = decided.IdleSince
	return decided
}

// buildDeployment builds the Deployment of a runtime.
func (state *namespaceState) buildDeployment(in resources.RuntimeInputs, resolve modelmesh.ClaimResolver) (*resources.Deployment, error) {
	claims, missingClaims, err := resolve(in)
	if err != nil {
		return nil, err
	}
	in.Claims = claims
	in.Settings.ServiceAccountName = state.serviceAccountName()
	built, err := resources.BuildDeployment(in)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errInvalidSpec, err)
	}
	built.Notices = slices.Concat(state.storage.notices, built.Notices)
	for _, claim := range missingClaims {
		built.Notices = append(built.Notices, fmt.Sprintf("PersistentVolumeClaim %s does not exist and is not mounted; create it", claim))
	}
	return &built, nil
}

// isCookieKeyMissing reports whether a Deployment whose pods the take-over replaces must wait for the cookie Secret of the proxy. Without
// models it must not: the Secret is then created only when a managed Deployment has pods.
func (r *runtimeReconciler) isCookieKeyMissing(ctx context.Context, state *namespaceState, proxy *authproxy.Proxy, replacedMessage string) (bool, error) {
	if replacedMessage == "" || proxy == nil || !proxy.NeedsCookieSecret() || len(state.models) == 0 {
		return false, nil
	}
	metadata, err := objectmeta.Get(ctx, r.Cached, secretKind, namespacedName(state.Namespace, authproxy.CookieSecret))
	return err == nil && metadata == nil, err
}

// claimResolver returns the ClaimResolver of a namespace.
func (r *runtimeReconciler) claimResolver(ctx context.Context, state *namespaceState) modelmesh.ClaimResolver {
	return func(in resources.RuntimeInputs) (claims, missing []string, err error) {
		claims, missing = resources.Claims(resources.ClaimInputs{
			Form: in.Form, FromSecret: state.storage.claims, AllowAny: state.Settings.AllowAnyPVC, Models: state.models,
			Labels: pkgmodelmesh.Labels(in.Name, in.Spec, state.Settings.RESTProxy.Enabled),
			Exists: func(claim string) bool {
				metadata, getErr := objectmeta.Get(ctx, r.claims, pvcKind, namespacedName(state.Namespace, claim))
				err = errors.Join(err, getErr)
				return metadata != nil
			},
		})
		return claims, missing, err
	}
}

// authProxyWarnings returns a warning if the settings require a sidecar in a single-namespace installation.
func (in RenderInputs) authProxyWarnings() []string {
	if in.Settings.AuthProxy.Mode != meshsettings.AuthProxyAlways || !in.SingleNamespace {
		return nil
	}
	return []string{"setting authProxy.mode=always has no effect if the manager serves only its own namespace, and REST has no authentication: " +
		"serve all namespaces, or close the port with a NetworkPolicy"}
}

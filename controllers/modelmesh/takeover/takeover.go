// Package takeover adopts and deletes the objects of the legacy controllers, modelmesh-controller and odh-model-controller. The manager
// works without this package: it can be deleted in version 1.0, unless that version supports direct upgrades from the legacy controllers.
package takeover

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/apis/serving/v1beta1"
	"github.com/odh-platform/odh-platform-operator/controllers/modelmesh"
	"github.com/odh-platform/odh-platform-operator/controllers/modelmesh/authproxy"
	"github.com/odh-platform/odh-platform-operator/controllers/modelmesh/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	pkgmodelmesh "github.com/odh-platform/odh-platform-operator/pkg/modelmesh"
	"github.com/odh-platform/odh-platform-operator/pkg/resources/oauthproxy"
	"github.com/odh-platform/odh-platform-operator/pkg/servers"
	"github.com/odh-platform/odh-platform-operator/pkg/takeover"
)

const (
	// AnnotationLegacyTemplate on an adopted Deployment holds the hash of the pod template as the legacy controller would build it. As long
	// as that template is unchanged, the pods keep their legacy form, and the adoption restarts no pod. The pods get the current form when the
	// template changes, when a user removes the annotation, or if they have an OAuth proxy of the legacy controller.
	AnnotationLegacyTemplate = "modelmesh.opendatahub.io/original-template"
	// LegacyFinalizer is the finalizer of odh-model-controller on InferenceServices.
	LegacyFinalizer = "odh.inferenceservice.finalizers"
	// LegacyManager is the field manager of the legacy controllers, which updated whole objects.
	LegacyManager = "manager"
)

// takeOver implements modelmesh.TakeOver. As a Runnable of the manager, it deletes the objects that no reconcile adopts.
type takeOver struct {
	takeover.None[client.Object]
	*modelmesh.Dependencies
	live client.Reader
	log  logr.Logger
}

// Setup registers the take-over. It is a modelmesh.Subcontroller, and must be called before the others.
func Setup(_ context.Context, mgr ctrl.Manager, shared *modelmesh.Dependencies) error {
	t := &takeOver{Dependencies: shared, live: mgr.GetAPIReader(), log: mgr.GetLogger().WithName(modelmesh.ComponentName)}
	shared.TakeOver = t
	shared.Applier.StripAnnotations = []string{corev1.LastAppliedConfigAnnotation, "manifestival"}
	// Routes keep the fields of odh-model-controller: they include the host, which the platform generated and on which clients depend.
	shared.RouteApplier = apply.New(shared.Applier.Options)
	shared.Applier.LegacyManagers = []string{LegacyManager}
	return mgr.Add(t)
}

// Adopt implements takeover.Interface.
func (*takeOver) Adopt(_ client.Object, desired apply.Desired) {
	for i := range desired {
		o, key := &desired[i], desired[i].Key()
		switch kind := key.Kind; {
		case o.AdoptIf != nil: // the storage Secret, which users can label
		case kind == "Deployment", kind == "HorizontalPodAutoscaler", kind == "Service", kind == "ServiceMonitor",
			kind == "ConfigMap" && key.Name == resources.ConstraintsName, kind == "Secret" && key.Name != authproxy.CookieSecret:
			o.AdoptIf = func(live *unstructured.Unstructured) bool { return resources.HasManagedByLabel(live) }
		case kind == "NetworkPolicy":
			o.AdoptIf = selectsLegacyPods
		case kind == "ServiceAccount", kind == "RoleBinding", kind == "ClusterRoleBinding":
			o.AdoptIf = isWrittenByLegacyController
		}
	}
}

// selectsLegacyPods reports whether a NetworkPolicy selects the pods of the legacy controller, as the NetworkPolicy that was installed with
// the legacy controller does.
func selectsLegacyPods(live *unstructured.Unstructured) bool {
	labels, _, err := unstructured.NestedStringMap(live.Object, "spec", "podSelector", "matchLabels")
	return err == nil && labels[resources.LabelManagedBy] == resources.ControllerName
}

// isWrittenByLegacyController reports whether a legacy controller is a field manager of the object, not only of its status.
func isWrittenByLegacyController(live *unstructured.Unstructured) bool {
	return slices.ContainsFunc(live.GetManagedFields(), func(e metav1.ManagedFieldsEntry) bool {
		return e.Manager == LegacyManager && e.Subresource == ""
	})
}

// Finalize implements takeover.Interface. It removes the finalizer of odh-model-controller from an InferenceService if it is the only one.
// It deletes no objects first: objects of the InferenceService have owner references, and the controller of the namespace deletes
// shared objects when the namespace is no longer in use.
func (t *takeOver) Finalize(ctx context.Context, owner client.Object) error {
	s, ok := owner.(*v1beta1.InferenceService)
	if !ok || !pkgmodelmesh.IsModelMesh(s) || !slices.Equal(s.Finalizers, []string{LegacyFinalizer}) {
		return nil
	}
	target := s.DeepCopy()
	target.Finalizers = nil
	err := t.Applier.Client.Patch(ctx, target, client.MergeFromWithOptions(s, client.MergeFromWithOptimisticLock{}), client.FieldOwner(t.Applier.FieldOwner))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("removing finalizer %s: %w", LegacyFinalizer, err)
	}
	return nil
}

// LegacyRoutes implements modelmesh.TakeOver. The Routes of odh-model-controller have a label with the name of the InferenceService, and
// lack the labels of this operator.
func (*takeOver) LegacyRoutes(s *v1beta1.InferenceService) client.ListOption {
	if !pkgmodelmesh.IsModelMesh(s) || len(s.Name) > validation.LabelValueMaxLength {
		return nil
	}
	return client.MatchingLabels{"inferenceservice-name": s.Name}
}

// Start implements manager.Runnable. It deletes, once per process, the objects of modelmesh-controller that no reconcile adopts: those of
// runtimes and namespaces that were disabled while no operator ran. The cache does not hold them, because they lack the labels of this
// operator. Start retries after an error, and always returns nil.
func (t *takeOver) Start(ctx context.Context) error {
	servers.Retry(ctx, t.Clock, time.Minute, time.Minute, t.deleteLegacyObjects, func(err error, after time.Duration) {
		t.log.Error(err, "Removing objects of the legacy operator failed; retrying", "after", after)
	})
	return nil
}

// deleteLegacyObjects deletes the legacy Deployments, autoscalers, Services, ConfigMaps and Secrets that are not desired.
func (t *takeOver) deleteLegacyObjects(ctx context.Context) error {
	var options []client.ListOption
	if t.Namespaces.SingleNamespace() {
		options = append(options, client.InNamespace(t.Namespaces.OperatorNamespace))
	}
	const labelled = resources.LabelManagedBy + "=" + resources.ControllerName
	var errs []error
	for kind, selector := range map[schema.GroupVersionKind]string{
		appsv1.SchemeGroupVersion.WithKind("Deployment"): labelled, corev1.SchemeGroupVersion.WithKind("Service"): labelled,
		corev1.SchemeGroupVersion.WithKind("ConfigMap"): labelled, corev1.SchemeGroupVersion.WithKind("Secret"): labelled,
		autoscalingv2.SchemeGroupVersion.WithKind("HorizontalPodAutoscaler"): resources.LabelInferenceService,
	} {
		objects, err := takeover.List(ctx, t.live, []schema.GroupVersionKind{kind}, selector, options...)
		errs = append(errs, err)
		for i := range objects {
			errs = append(errs, t.deleteUnlessDesired(ctx, &objects[i]))
		}
	}
	return errors.Join(errs...)
}

// deleteUnlessDesired deletes an object that the legacy controller created and that is not desired.
func (t *takeOver) deleteUnlessDesired(ctx context.Context, o *metav1.PartialObjectMetadata) error {
	owner := ptr.Deref(metav1.GetControllerOfNoCopy(o), metav1.OwnerReference{})
	if !t.isLegacyObject(o, owner.Kind) {
		return nil
	}
	if desired, err := t.isDesired(ctx, o); err != nil || desired {
		return err
	}
	t.log.Info("Deleting an object of the legacy operator that is no longer desired", "kind", o.Kind, "namespace", o.Namespace, "name", o.Name)
	return t.Applier.DeleteOwned(ctx, owner.UID, o)
}

// isLegacyObject reports whether the legacy controller created an object for a runtime or a namespace: a runtime or Namespace is its
// controller, or it has the name that the legacy controller gave it. The label is not sufficient, because the Deployment of the legacy
// controller itself has the label too.
func (t *takeOver) isLegacyObject(o *metav1.PartialObjectMetadata, ownerKind string) bool {
	isOfRuntime := ownerKind == capability.ServingRuntime.Kind || ownerKind == capability.ClusterServingRuntime.Kind
	hasServiceLabel := o.Labels[resources.LabelService] != ""
	switch o.Kind {
	case "HorizontalPodAutoscaler":
		return isOfRuntime
	case "Deployment":
		return isOfRuntime && hasServiceLabel
	case "Service":
		return ownerKind == "Namespace" && hasServiceLabel
	case "ConfigMap":
		return o.Name == resources.ConstraintsName
	default:
		return o.Name == t.Lister.Config.EtcdSecretName && o.Namespace != t.Namespaces.OperatorNamespace
	}
}

// isDesired reports whether the object must be kept, because a reconcile of the namespace adopts or needs it, or because a legacy
// controller runs in the namespace.
func (t *takeOver) isDesired(ctx context.Context, o *metav1.PartialObjectMetadata) (bool, error) {
	enabled, err := t.Namespaces.Enabled(ctx, o.Namespace)
	if err == nil && !enabled {
		return t.hasLegacyController(ctx, o.Namespace)
	}
	settings, settingsErr := t.Lister.Settings(ctx, o.Namespace)
	runtimes, runtimesErr := t.Lister.Runtimes(ctx, o.Namespace)
	if err := errors.Join(err, settingsErr, runtimesErr); err != nil {
		return false, err
	}
	switch o.Kind {
	case "Service":
		return o.Name == settings.ServiceName, nil
	case "ConfigMap", "Secret":
		return len(runtimes) > 0, nil
	}
	for name, rt := range runtimes {
		if rt.NeedsDeployment() && resources.DeploymentName(settings.ServiceName, name) == o.Name {
			scale, _ := pkgmodelmesh.ParseAutoscaling(rt.Object.GetAnnotations())
			return o.Kind == "Deployment" || scale.Enabled, nil
		}
	}
	return false, nil
}

// hasLegacyController reports whether a legacy controller runs in a namespace. With NAMESPACE_SCOPE=true the legacy controller serves its
// namespace without modelmesh.LabelEnabled, and would recreate deleted objects.
func (t *takeOver) hasLegacyController(ctx context.Context, namespace string) (bool, error) {
	var list appsv1.DeploymentList
	if err := t.live.List(ctx, &list, client.InNamespace(namespace), client.MatchingLabels{"control-plane": resources.ControllerName}); err != nil {
		return false, fmt.Errorf("looking for a legacy controller: %w", err)
	}
	return slices.ContainsFunc(list.Items, func(d appsv1.Deployment) bool { return ptr.Deref(d.Spec.Replicas, 1) > 0 }), nil
}

// BuildDeployment implements modelmesh.TakeOver. The live Deployment has the legacy form if it belongs to the legacy controller, or was
// adopted and has kept that form.
func (t *takeOver) BuildDeployment(in resources.RuntimeInputs, live *appsv1.Deployment, resolve modelmesh.ClaimResolver) (_ *resources.Deployment, replaced string, err error) {
	isManaged := live != nil && t.Applier.IsManaged(live)
	if live == nil || isManaged && live.Annotations[AnnotationLegacyTemplate] == "" || !isManaged && !resources.HasManagedByLabel(live) {
		return nil, "", nil
	}
	isProxy := func(c corev1.Container) bool { return c.Name == oauthproxy.ContainerName } // a runtime can have a container of that name too
	if slices.ContainsFunc(live.Spec.Template.Spec.Containers, isProxy) && !slices.ContainsFunc(in.Spec.Containers, isProxy) {
		return nil, proxyReplacedMessage(in.Proxy, live.Name), nil
	}
	in.Form, in.Proxy = resources.Legacy, nil
	if in.Settings.ServiceAccountName == "" {
		in.Settings.ServiceAccountName = live.Spec.Template.Spec.ServiceAccountName
	}
	if in.Claims, _, err = resolve(in); err != nil {
		return nil, "", err
	}
	built, err := resources.BuildDeployment(in)
	if err != nil {
		return nil, "", nil // the legacy controller could not build it either; the current form is used
	}
	hash := resources.TemplateHash(built.Config)
	isUnchanged := hash == live.Annotations[AnnotationLegacyTemplate]
	if !isManaged {
		isUnchanged, err = templateContains(built.Config.Spec.Template, &live.Spec.Template)
	}
	if err != nil || !isUnchanged {
		return nil, "", err
	}
	return &resources.Deployment{Config: built.Config.WithAnnotations(map[string]string{AnnotationLegacyTemplate: hash})}, "", nil
}

// proxyReplacedMessage returns the message of the Event about pods with an OAuth proxy of the legacy controller. The cookie key of that
// proxy is public, so an adoption restarts these pods.
func proxyReplacedMessage(proxy *authproxy.Proxy, deployment string) string {
	message := fmt.Sprintf("Deployment %s replaces its pods once: the legacy controller gave its OAuth proxy a public cookie key; ", deployment)
	switch {
	case proxy == nil:
		return message + "the proxy was removed, and REST has no authentication"
	case proxy.NeedsCookieSecret():
		return message + "the new key is in Secret " + authproxy.CookieSecret
	default:
		return message + "the new proxy has no cookies"
	}
}

// templateContains reports whether the live pod template has all fields of the desired one: applying it restarts no pod. Additional
// fields, such as defaults, are ignored.
func templateContains(desired any, live *corev1.PodTemplateSpec) (bool, error) {
	desiredJSON, desiredErr := json.Marshal(desired)
	liveJSON, liveErr := json.Marshal(live)
	if err := errors.Join(desiredErr, liveErr); err != nil {
		return false, fmt.Errorf("encoding the pod templates: %w", err)
	}
	merged := &corev1.PodTemplateSpec{}
	patched, err := strategicpatch.StrategicMergePatch(liveJSON, desiredJSON, merged)
	if err == nil {
		err = json.Unmarshal(patched, merged)
	}
	if err != nil {
		return false, fmt.Errorf("merging the pod templates: %w", err)
	}
	return equality.Semantic.DeepEqual(live, merged), nil
}

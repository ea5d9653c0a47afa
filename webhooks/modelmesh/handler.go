package modelmesh

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/odh-platform/odh-platform-operator/apis/serving/v1alpha1"
	author "github.com/odh-platform/odh-platform-operator/pkg/admission"
	mm "github.com/odh-platform/odh-platform-operator/pkg/modelmesh"
)

// off is the handler while the component is disabled.
const off = author.DisabledComponent("the component modelmesh is switched off: the runtime is stored unchanged, but the operator does not reconcile it")

// ServerTypes returns the server types with an adapter in a namespace, according to the current settings. The namespace is empty for a
// ClusterServingRuntime.
type ServerTypes func(ctx context.Context, namespace string) []string

// validator validates runtimes of both scopes, which have the same type of spec.
type validator struct{ serverTypes ServerTypes }

// Handle implements admission.Handler.
func (v *validator) Handle(ctx context.Context, request admission.Request) admission.Response {
	if !author.Changes(request) {
		return admission.Allowed("")
	}
	now, err := decode(request.Object.Raw)
	if err != nil {
		return admission.Errored(http.StatusBadRequest, err)
	}
	before := &v1alpha1.ServingRuntime{}
	if request.Operation == admissionv1.Update {
		if before, err = decode(request.OldObject.Raw); err != nil {
			return admission.Errored(http.StatusBadRequest, err)
		}
	}
	if before.DeletionTimestamp != nil {
		return admission.Allowed("") // its end must not depend on us
	}
	return v.answer(ctx, request.Namespace, now, before)
}

// answer validates a runtime. It denies only errors that the stored runtime does not have.
func (v *validator) answer(ctx context.Context, namespace string, now, before *v1alpha1.ServingRuntime) admission.Response {
	var known []string
	if found := unreadable(now.Malformed, &now.Spec); found != nil {
		if was := unreadable(before.Malformed, &before.Spec); was == nil || *was != *found {
			return refusal(http.StatusBadRequest, metav1.StatusReasonBadRequest, found)
		}
		known = append(known, found.message)
	}
	if !mm.MultiModel(&now.Spec) {
		return allowed(known)
	}
	if found := contradiction(now.Annotations, &now.Spec); found != nil {
		if !mm.MultiModel(&before.Spec) || !same(found, contradiction(before.Annotations, &before.Spec)) {
			return refusal(http.StatusForbidden, metav1.StatusReasonForbidden, found)
		}
		known = append(known, found.field+": "+found.message)
	}
	return allowed(append(known, v.news(ctx, namespace, now, before)...))
}

func allowed(warnings []string) admission.Response {
	return author.Warned(admission.Allowed(""), warnings)
}

// news returns the warnings that do not apply to the stored runtime.
func (v *validator) news(ctx context.Context, namespace string, now, before *v1alpha1.ServingRuntime) []string {
	types := v.serverTypes(ctx, namespace)
	texts := mm.Warnings(&now.Spec, types)
	if !mm.MultiModel(&before.Spec) {
		return texts
	}
	given := mm.Warnings(&before.Spec, types)
	return slices.DeleteFunc(texts, func(text string) bool { return slices.Contains(given, text) })
}

func same(a, b *violation) bool { return a != nil && b != nil && *a == *b }

// decode decodes a runtime of either scope.
func decode(raw []byte) (*v1alpha1.ServingRuntime, error) {
	r := &v1alpha1.ServingRuntime{}
	if err := json.Unmarshal(raw, r); err != nil {
		return nil, fmt.Errorf("reading the object of the request: %w", err)
	}
	return r, nil
}

// refusal returns a denial with the message of the violation, and its field in the details.
func refusal(code int32, reason metav1.StatusReason, found *violation) admission.Response {
	response := admission.Denied(found.message)
	response.Result.Code, response.Result.Reason = code, reason
	response.Result.Details = &metav1.StatusDetails{
		Group:  v1alpha1.GroupVersion.Group,
		Causes: []metav1.StatusCause{{Type: metav1.CauseTypeFieldValueInvalid, Field: found.field, Message: found.message}},
	}
	return response
}

// ValidatePath is the path of the webhook in the ValidatingWebhookConfiguration.
const ValidatePath = "/validate-serving-modelmesh-io-v1alpha1-servingruntime"

// ValidatingConfiguration is the name of the ValidatingWebhookConfiguration, the same as in the legacy operator.
const ValidatingConfiguration = "modelmesh-servingruntime.serving.kserve.io"

// Register adds the webhook to the server of the manager. While the component is disabled, it only checks the rights of the author and
// warns.
func Register(mgr ctrl.Manager, enabled bool, guards author.Guards, serverTypes ServerTypes) {
	var next admission.Handler = off
	if enabled {
		next = &validator{serverTypes}
	}
	handler := guards.Before(next, v1alpha1.GroupVersion.WithKind("ServingRuntime").GroupKind(), usesOf)
	mgr.GetWebhookServer().Register(ValidatePath, &admission.Webhook{Handler: handler})
}

func usesOf(rules author.Rules, raw []byte, namespace string) (author.References, error) {
	r, err := decode(raw)
	if err != nil || !mm.MultiModel(&r.Spec) { // for all other runtimes the manager makes no pods
		return author.References{}, err
	}
	u := Uses(rules, &r.Spec, namespace)
	if at := field.NewPath("metadata", "annotations"); r.Annotations[mm.AnnotationRoute] == mm.Yes {
		u.Add(author.Publication, mm.AnnotationRoute, at.Key(mm.AnnotationRoute))
		if r.Annotations[mm.AnnotationAuth] != mm.Yes { // models that are published without a login
			u.Add(author.Publication, mm.AnnotationRoute+" without "+mm.AnnotationAuth, at.Key(mm.AnnotationAuth))
		}
	}
	return u, nil
}

// Uses returns the references in the spec of a runtime for ModelMesh. The namespace is empty for a ClusterServingRuntime, which runs in all
// served namespaces.
func Uses(rules author.Rules, spec *v1alpha1.ServingRuntimeSpec, namespace string) author.References {
	path := field.NewPath("spec")
	pod := &corev1.PodSpec{Containers: spec.Containers, Volumes: spec.Volumes, ImagePullSecrets: spec.ImagePullSecrets, ResourceClaims: spec.ResourceClaims}
	u := author.References{Namespace: namespace}
	u.AddPod(pod, path)
	u.AddMetadata(author.Label, spec.Labels, path.Child("labels"))
	u.AddMetadata(author.Annotation, spec.Annotations, path.Child("annotations"))
	if adapter := spec.BuiltInAdapter; adapter != nil && len(adapter.Env) > 0 {
		at := path.Child("builtInAdapter", "env")
		u.AddReferences(adapter.Env, at)
		u.AddContent(author.Container, "adapter", adapter.Env, at)
	}
	u.AddPrivileges(rules.Level, &metav1.ObjectMeta{Labels: spec.Labels, Annotations: spec.Annotations}, pod, path)
	return u
}

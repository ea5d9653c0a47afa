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

// off is what users get while the component does not run.
const off = author.DisabledComponent("the component modelmesh is switched off: the runtime is stored unchanged, but the operator does not reconcile it")

// ServerTypes returns the types of servers for which there are adapters in a namespace, by the settings of the moment; the
// namespace is empty for a ClusterServingRuntime. It is called with every request.
type ServerTypes func(ctx context.Context, namespace string) []string

// validator answers for runtimes of both scopes, which look the same.
type validator struct{ serverTypes ServerTypes }

// Handle implements admission.Handler.
func (v *validator) Handle(ctx context.Context, request admission.Request) admission.Response {
	if !author.IsWrite(request) {
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

// answer judges a runtime against the rules, and against what it was.
func (v *validator) answer(ctx context.Context, namespace string, now, before *v1alpha1.ServingRuntime) admission.Response {
	var known []string
	if found := unreadable(now.Malformed, &now.Spec); found != nil {
		if was := unreadable(before.Malformed, &before.Spec); was == nil || *was != *found {
			return refusal(http.StatusBadRequest, metav1.StatusReasonBadRequest, found)
		}
		known = append(known, found.message)
	}
	if !mm.IsMultiModel(&now.Spec) {
		return allowed(known)
	}
	if found := contradiction(now.Annotations, &now.Spec); found != nil {
		if !mm.IsMultiModel(&before.Spec) || !same(found, contradiction(before.Annotations, &before.Spec)) {
			return refusal(http.StatusForbidden, metav1.StatusReasonForbidden, found)
		}
		known = append(known, found.field+": "+found.message)
	}
	return allowed(append(known, v.news(ctx, namespace, now, before)...))
}

// allowed lets a runtime pass.
func allowed(warnings []string) admission.Response {
	return author.AddWarnings(admission.Allowed(""), warnings)
}

// news returns the warnings that the user was not given with the runtime before.
func (v *validator) news(ctx context.Context, namespace string, now, before *v1alpha1.ServingRuntime) []string {
	types := v.serverTypes(ctx, namespace)
	texts := mm.Warnings(&now.Spec, types)
	if !mm.IsMultiModel(&before.Spec) {
		return texts
	}
	given := mm.Warnings(&before.Spec, types)
	return slices.DeleteFunc(texts, func(text string) bool { return slices.Contains(given, text) })
}

func same(a, b *violation) bool { return a != nil && b != nil && *a == *b }

// decode reads a runtime of either scope.
func decode(raw []byte) (*v1alpha1.ServingRuntime, error) {
	r := &v1alpha1.ServingRuntime{}
	if err := json.Unmarshal(raw, r); err != nil {
		return nil, fmt.Errorf("reading the object of the request: %w", err)
	}
	return r, nil
}

// refusal carries the exact words in the message, and where the fault is beside it.
func refusal(code int32, reason metav1.StatusReason, found *violation) admission.Response {
	response := admission.Denied(found.message)
	response.Result.Code, response.Result.Reason = code, reason
	response.Result.Details = &metav1.StatusDetails{
		Group:  v1alpha1.GroupVersion.Group,
		Causes: []metav1.StatusCause{{Type: metav1.CauseTypeFieldValueInvalid, Field: found.field, Message: found.message}},
	}
	return response
}

// ValidatePath is the path of the webhook. Configurations in clusters call it.
const ValidatePath = "/validate-serving-modelmesh-io-v1alpha1-servingruntime"

// ValidatingConfiguration is the object that leads to the webhook. It has the name of the one that it replaces.
const ValidatingConfiguration = "modelmesh-servingruntime.serving.kserve.io"

// Register adds the webhook to the server of the manager. While the component is switched off only the author is judged, with a
// warning.
func Register(mgr ctrl.Manager, enabled bool, guards author.Guards, serverTypes ServerTypes) {
	var next admission.Handler = off
	if enabled {
		next = &validator{serverTypes}
	}
	handler := guards.Wrap(next, v1alpha1.GroupVersion.WithKind("ServingRuntime").GroupKind(), usesOf)
	mgr.GetWebhookServer().Register(ValidatePath, &admission.Webhook{Handler: handler})
}

func usesOf(rules author.Rules, raw []byte, namespace string) (author.References, error) {
	r, err := decode(raw)
	if err != nil || !mm.IsMultiModel(&r.Spec) { // for all other runtimes the manager makes no pods
		return author.References{}, err
	}
	u := Uses(rules, &r.Spec, namespace)
	if at := field.NewPath("metadata", "annotations"); r.Annotations[mm.AnnotationRoute] == mm.Enabled {
		u.Add(author.RuntimeAnnotation, mm.AnnotationRoute, at.Key(mm.AnnotationRoute))
		if r.Annotations[mm.AnnotationAuth] != mm.Enabled { // models that are published without a login
			u.Add(author.RuntimeAnnotation, mm.AnnotationRoute+" without "+mm.AnnotationAuth, at.Key(mm.AnnotationAuth))
		}
	}
	return u, nil
}

// Uses lists what the pods of a runtime for ModelMesh use by the word of its author. The namespace is empty for those of a
// ClusterServingRuntime, which run in all that are served.
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

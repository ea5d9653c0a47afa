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
	pkgadmission "github.com/odh-platform/odh-platform-operator/pkg/admission"
	pkgmodelmesh "github.com/odh-platform/odh-platform-operator/pkg/modelmesh"
)

// disabledHandler is the handler while the component is disabled.
const disabledHandler = pkgadmission.DisabledComponent("the component modelmesh is disabled: the runtime is stored unchanged, but the operator does not reconcile it: set ENABLE_MODELMESH=true to change this")

// ServerTypes returns the server types that have an adapter. The namespace is empty for a ClusterServingRuntime.
type ServerTypes func(ctx context.Context, namespace string) []string

// validator validates runtimes of both scopes, which have the same type of spec.
type validator struct{ serverTypes ServerTypes }

// Handle implements admission.Handler.
func (v *validator) Handle(ctx context.Context, request admission.Request) admission.Response {
	if !pkgadmission.IsWrite(request) {
		return admission.Allowed("")
	}
	current, err := decodeRuntime(request.Object.Raw)
	if err != nil {
		return admission.Errored(http.StatusBadRequest, err)
	}
	old := &v1alpha1.ServingRuntime{}
	if request.Operation == admissionv1.Update {
		if old, err = decodeRuntime(request.OldObject.Raw); err != nil {
			return admission.Errored(http.StatusBadRequest, err)
		}
	}
	if old.DeletionTimestamp != nil {
		return admission.Allowed("") // deletion must not depend on this webhook
	}
	return v.validate(ctx, request.Namespace, current, old)
}

// validate validates a runtime. It denies only errors that the stored runtime does not have.
func (v *validator) validate(ctx context.Context, namespace string, current, old *v1alpha1.ServingRuntime) admission.Response {
	var knownErrors []string
	if found := validateEncoding(current.Malformed, &current.Spec); found != nil {
		if previous := validateEncoding(old.Malformed, &old.Spec); previous == nil || *previous != *found {
			return denied(http.StatusBadRequest, metav1.StatusReasonBadRequest, found)
		}
		knownErrors = append(knownErrors, found.message)
	}
	if !pkgmodelmesh.IsMultiModel(&current.Spec) {
		return allowed(knownErrors)
	}
	if found := validateAutoscaling(current.Annotations, &current.Spec); found != nil {
		if previous := validateAutoscaling(old.Annotations, &old.Spec); !pkgmodelmesh.IsMultiModel(&old.Spec) || previous == nil || *previous != *found {
			return denied(http.StatusForbidden, metav1.StatusReasonForbidden, found)
		}
		knownErrors = append(knownErrors, found.field+": "+found.message)
	}
	return allowed(append(knownErrors, v.newWarnings(ctx, namespace, current, old)...))
}

func allowed(warnings []string) admission.Response {
	return pkgadmission.AddWarnings(admission.Allowed(""), warnings)
}

// newWarnings returns the warnings that do not also apply to the stored runtime.
func (v *validator) newWarnings(ctx context.Context, namespace string, current, old *v1alpha1.ServingRuntime) []string {
	types := v.serverTypes(ctx, namespace)
	warnings := pkgmodelmesh.Warnings(&current.Spec, types)
	if !pkgmodelmesh.IsMultiModel(&old.Spec) {
		return warnings
	}
	oldWarnings := pkgmodelmesh.Warnings(&old.Spec, types)
	return slices.DeleteFunc(warnings, func(warning string) bool { return slices.Contains(oldWarnings, warning) })
}

// decodeRuntime decodes a runtime of either scope.
func decodeRuntime(raw []byte) (*v1alpha1.ServingRuntime, error) {
	r := &v1alpha1.ServingRuntime{}
	if err := json.Unmarshal(raw, r); err != nil {
		return nil, fmt.Errorf("reading the object of the request: %w", err)
	}
	return r, nil
}

// denied returns a denial with the message of the violation, and its field in the details.
func denied(code int32, reason metav1.StatusReason, found *violation) admission.Response {
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

// Register adds the webhook to the server of the manager. While the component is disabled, the webhook only checks the permissions of the
// author and returns a warning.
func Register(mgr ctrl.Manager, enabled bool, guards pkgadmission.Guards, serverTypes ServerTypes) {
	handler := guards.Wrap(disabledHandler.Unless(enabled, &validator{serverTypes}), v1alpha1.GroupVersion.WithKind("ServingRuntime").GroupKind(), referencesOfObject)
	mgr.GetWebhookServer().Register(ValidatePath, &admission.Webhook{Handler: handler})
}

func referencesOfObject(rules pkgadmission.Rules, raw []byte, namespace string) (pkgadmission.References, error) {
	r, err := decodeRuntime(raw)
	if err != nil || !pkgmodelmesh.IsMultiModel(&r.Spec) { // the operator creates pods only for multi-model runtimes
		return pkgadmission.References{}, err
	}
	references := References(rules, &r.Spec, namespace)
	if path := field.NewPath("metadata", "annotations"); r.Annotations[pkgmodelmesh.AnnotationRoute] == pkgmodelmesh.Enabled {
		references.Add(pkgadmission.RuntimeAnnotation, pkgmodelmesh.AnnotationRoute, path.Key(pkgmodelmesh.AnnotationRoute))
		if r.Annotations[pkgmodelmesh.AnnotationAuth] != pkgmodelmesh.Enabled { // models are published without authentication
			references.Add(pkgadmission.RuntimeAnnotation, pkgmodelmesh.AnnotationRoute+" without "+pkgmodelmesh.AnnotationAuth, path.Key(pkgmodelmesh.AnnotationAuth))
		}
	}
	return references, nil
}

// References returns the references in the spec of a runtime for ModelMesh. The namespace is empty for a ClusterServingRuntime, which runs
// in all enabled namespaces.
func References(rules pkgadmission.Rules, spec *v1alpha1.ServingRuntimeSpec, namespace string) pkgadmission.References {
	path := field.NewPath("spec")
	pod := &corev1.PodSpec{Containers: spec.Containers, Volumes: spec.Volumes, ImagePullSecrets: spec.ImagePullSecrets, ResourceClaims: spec.ResourceClaims}
	references := pkgadmission.References{Namespace: namespace}
	references.AddPod(pod, path)
	references.AddMetadata(pkgadmission.Label, spec.Labels, path.Child("labels"))
	references.AddMetadata(pkgadmission.Annotation, spec.Annotations, path.Child("annotations"))
	if adapter := spec.BuiltInAdapter; adapter != nil && len(adapter.Env) > 0 {
		envPath := path.Child("builtInAdapter", "env")
		references.AddReferences(adapter.Env, envPath)
		references.AddContent(pkgadmission.Container, "adapter", adapter.Env, envPath)
	}
	references.AddPodSecurityViolations(rules.Level, &metav1.ObjectMeta{Labels: spec.Labels, Annotations: spec.Annotations}, pod, path)
	return references
}

package certs

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"

	"gomodules.xyz/jsonpatch/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/pkg/nested"
)

// Kinds of targets.
var (
	Validating = schema.GroupVersionKind{Group: "admissionregistration.k8s.io", Version: "v1", Kind: "ValidatingWebhookConfiguration"}
	Mutating   = schema.GroupVersionKind{Group: "admissionregistration.k8s.io", Version: "v1", Kind: "MutatingWebhookConfiguration"}
	Conversion = schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}
)

// Target is an object whose client configurations need the CA bundle.
type Target struct {
	// Kind is Validating, Mutating or Conversion.
	Kind schema.GroupVersionKind
	// Name is the name of the cluster-scoped object.
	Name string
	// Optional reports whether the object may be absent because its component is disabled and its manifests were removed.
	Optional bool
	// Service restricts the injection to webhooks that call a Service of this name, since another operator may own the other webhooks.
	// "" means all Services. It has no effect for Conversion.
	Service string
}

// injectCA writes the bundle into all targets and joins their errors. injected is true if every target has the bundle, apart from missing
// targets, which have no callers, and optional targets for which the manager has no permission, because their component is disabled.
func (a *Authority) injectCA(ctx context.Context, bundle []byte) (injected bool, err error) {
	var errs []error
	injected = true
	for _, target := range a.Targets {
		err := a.injectTarget(ctx, target, base64.StdEncoding.EncodeToString(bundle))
		recordInjection(target, err == nil)
		if err != nil {
			injected = injected && (apierrors.IsNotFound(err) || target.Optional && apierrors.IsForbidden(err))
			errs = append(errs, fmt.Errorf("writing the CA into %s %s: %w", target.Kind.Kind, target.Name, err))
		}
	}
	return injected, errors.Join(errs...)
}

func (a *Authority) injectTarget(ctx context.Context, target Target, bundle string) error {
	obj := &unstructured.Unstructured{}
	obj.SetGroupVersionKind(target.Kind)
	err := a.Client.Get(ctx, types.NamespacedName{Name: target.Name}, obj)
	if target.Optional && apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	patch := buildCABundlePatch(obj, bundle, target.Service)
	if len(patch) == 0 {
		return nil
	}
	// The test operation fails the patch after a concurrent change of the object; the next sync retries it.
	patch = append([]jsonpatch.Operation{jsonpatch.NewOperation("test", "/metadata/resourceVersion", obj.GetResourceVersion())}, patch...)
	body, _ := json.Marshal(patch) // encoding strings cannot fail
	return a.Client.Patch(ctx, obj, client.RawPatch(types.JSONPatchType, body))
}

// buildCABundlePatch returns a patch of the caBundle fields only, which preserves unknown fields.
func buildCABundlePatch(obj *unstructured.Unstructured, bundle, service string) []jsonpatch.Operation {
	if obj.GroupVersionKind() == Conversion {
		config := nested.Map(obj.Object, "spec", "conversion", "webhook", "clientConfig")
		if config == nil || config["caBundle"] == bundle {
			return nil
		}
		return []jsonpatch.Operation{jsonpatch.NewOperation("add", "/spec/conversion/webhook/clientConfig/caBundle", bundle)}
	}
	var patch []jsonpatch.Operation
	for i, webhook := range nested.List(obj.Object, "webhooks") {
		config := nested.Map(webhook, "clientConfig")
		if config != nil && config["caBundle"] != bundle && (service == "" || nested.String(config, "service", "name") == service) {
			patch = append(patch, jsonpatch.NewOperation("add", fmt.Sprintf("/webhooks/%d/clientConfig/caBundle", i), bundle))
		}
	}
	return patch
}

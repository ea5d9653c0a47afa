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
)

// The kinds that can learn a CA.
var (
	Validating = schema.GroupVersionKind{Group: "admissionregistration.k8s.io", Version: "v1", Kind: "ValidatingWebhookConfiguration"}
	Mutating   = schema.GroupVersionKind{Group: "admissionregistration.k8s.io", Version: "v1", Kind: "MutatingWebhookConfiguration"}
	Conversion = schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}
)

// Target is an object whose client configurations get our CA.
type Target struct {
	// Kind is Validating, Mutating or Conversion.
	Kind schema.GroupVersionKind
	// Name of the cluster-scoped object.
	Name string
	// Optional says that its absence is no error: what serves it may be switched off and its manifests removed.
	Optional bool
	// Service is the only one whose entries get the CA, in any namespace; the object may hold entries of another operator.
	// Empty for all entries.
	Service string
}

// inject writes the bundle into every target that holds another one. It continues after an error and joins them. Known says that no
// call will fail for want of the CA: a target that is absent leads nowhere, nor does one of a component whose role is not granted
// because it is off.
func (a *Authority) injectCA(ctx context.Context, bundle []byte) (known bool, err error) {
	var errs []error
	known = true
	for _, target := range a.Targets {
		err := a.injectTarget(ctx, target, base64.StdEncoding.EncodeToString(bundle))
		recordInjection(target, err == nil)
		if err != nil {
			known = known && (apierrors.IsNotFound(err) || target.Optional && apierrors.IsForbidden(err))
			errs = append(errs, fmt.Errorf("writing the CA into %s %s: %w", target.Kind.Kind, target.Name, err))
		}
	}
	return known, errors.Join(errs...)
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
	// The test makes the patch fail when the list of webhooks moved in between; the next sync sees the new one.
	patch = append([]jsonpatch.Operation{jsonpatch.NewOperation("test", "/metadata/resourceVersion", obj.GetResourceVersion())}, patch...)
	body, err := json.Marshal(patch)
	if err != nil {
		return err
	}
	return a.Client.Patch(ctx, obj, client.RawPatch(types.JSONPatchType, body))
}

// patchFor touches nothing but caBundle, so that fields unknown to this program survive.
func buildCABundlePatch(obj *unstructured.Unstructured, bundle, service string) []jsonpatch.Operation {
	if obj.GroupVersionKind() == Conversion {
		config, found, _ := unstructured.NestedMap(obj.Object, "spec", "conversion", "webhook", "clientConfig")
		if !found || config["caBundle"] == bundle {
			return nil
		}
		return []jsonpatch.Operation{jsonpatch.NewOperation("add", "/spec/conversion/webhook/clientConfig/caBundle", bundle)}
	}
	var patch []jsonpatch.Operation
	hooks, _, _ := unstructured.NestedSlice(obj.Object, "webhooks")
	for i, hook := range hooks {
		fields, _ := hook.(map[string]any)
		config, found, _ := unstructured.NestedMap(fields, "clientConfig")
		called, _, _ := unstructured.NestedString(config, "service", "name")
		if found && config["caBundle"] != bundle && (service == "" || called == service) {
			patch = append(patch, jsonpatch.NewOperation("add", fmt.Sprintf("/webhooks/%d/clientConfig/caBundle", i), bundle))
		}
	}
	return patch
}

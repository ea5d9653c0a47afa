package modelmesh

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/apis/serving/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/apis/serving/v1beta1"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/config"
	pkgmodelmesh "github.com/odh-platform/odh-platform-operator/pkg/modelmesh"
	meshsettings "github.com/odh-platform/odh-platform-operator/pkg/modelmesh/settings"
	"github.com/odh-platform/odh-platform-operator/pkg/reference"
)

// Lister lists the runtimes and models of namespaces from the cache.
type Lister struct {
	Config     config.ModelMesh
	Cached     client.Reader
	Namespaces *Namespaces
	Served     func() capability.Set
	Settings   func(ctx context.Context, namespace string) (meshsettings.Settings, error)
	// MissingReferences holds the references of Predictors to storage entries and PersistentVolumeClaims that do not exist.
	MissingReferences Problems[[]reference.Missing]
	// NotServingCauses holds the reasons why runtimes may have no serving pods.
	NotServingCauses Problems[Cause]
}

// Runtime is a ServingRuntime or ClusterServingRuntime.
type Runtime struct {
	// Object is shared with the cache and must not be changed.
	Object client.Object
	Spec   *v1alpha1.ServingRuntimeSpec
	// DecodeError describes the first field of the spec that could not be decoded; empty if there is none.
	DecodeError string
}

// NeedsDeployment reports whether the runtime is multi-model, enabled and not terminating. Single-model runtimes belong to KServe.
func (r Runtime) NeedsDeployment() bool {
	return pkgmodelmesh.IsEnabled(r.Spec) && r.Object.GetDeletionTimestamp().IsZero()
}

// UsesClusterRuntimes reports whether ClusterServingRuntimes are used.
func (l *Lister) UsesClusterRuntimes() bool {
	return !l.Config.IgnoreClusterServingRuntimes && !l.Namespaces.SingleNamespace()
}

// Runtimes returns the runtimes of a namespace by name: its ServingRuntimes and, if UsesClusterRuntimes, the multi-model
// ClusterServingRuntimes. A ServingRuntime takes precedence over a ClusterServingRuntime of the same name.
func (l *Lister) Runtimes(ctx context.Context, namespace string) (map[string]Runtime, error) {
	runtimes := map[string]Runtime{}
	apis := l.Served()
	if apis.Has(capability.ClusterServingRuntime) && l.UsesClusterRuntimes() {
		list := &v1alpha1.ClusterServingRuntimeList{}
		if err := l.Cached.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
			return nil, fmt.Errorf("listing ClusterServingRuntimes: %w", err)
		}
		for i := range list.Items {
			if r := &list.Items[i]; pkgmodelmesh.IsMultiModel(&r.Spec) {
				runtimes[r.Name] = Runtime{Object: r, Spec: &r.Spec, DecodeError: r.Malformed}
			}
		}
	}
	if apis.Has(capability.ServingRuntime) {
		list := &v1alpha1.ServingRuntimeList{}
		if err := l.Cached.List(ctx, list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
			return nil, fmt.Errorf("listing ServingRuntimes: %w", err)
		}
		for i := range list.Items {
			r := &list.Items[i]
			runtimes[r.Name] = Runtime{Object: r, Spec: &r.Spec, DecodeError: r.Malformed}
		}
	}
	return runtimes, nil
}

// HasSupportingRuntime reports whether ModelMesh is enabled in the namespace and an enabled runtime supports models with the given
// ModelMesh label (such as mt:onnx). The pods may not have loaded the type constraint of the label yet.
func (l *Lister) HasSupportingRuntime(ctx context.Context, namespace, modelLabel string) (bool, error) {
	names, err := l.supportingRuntimes(ctx, namespace, modelLabel)
	return len(names) > 0, err
}

// supportingRuntimes returns the unsorted names of the runtimes that HasSupportingRuntime looks for.
func (l *Lister) supportingRuntimes(ctx context.Context, namespace, modelLabel string) (names []string, err error) {
	enabled, err := l.Namespaces.Enabled(ctx, namespace)
	if err != nil || !enabled {
		return nil, err
	}
	settings, err := l.Settings(ctx, namespace)
	if err != nil {
		return nil, err
	}
	runtimes, err := l.Runtimes(ctx, namespace)
	if err != nil {
		return nil, err
	}
	for name, r := range runtimes {
		if r.NeedsDeployment() && pkgmodelmesh.HasLabels(pkgmodelmesh.Labels(name, r.Spec, settings.RESTProxy.Enabled), modelLabel) {
			names = append(names, name)
		}
	}
	return names, nil
}

// Models returns the models of a namespace: its Predictors and, unless Config ignores them, the InferenceServices of ModelMesh. Models
// skips an InferenceService that cannot be converted, because it needs no runtime.
func (l *Lister) Models(ctx context.Context, namespace string) ([]pkgmodelmesh.Model, error) {
	var models []pkgmodelmesh.Model
	predictors := &v1alpha1.PredictorList{}
	if err := l.Cached.List(ctx, predictors, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing Predictors: %w", err)
	}
	for i := range predictors.Items {
		models = append(models, pkgmodelmesh.FromPredictor(&predictors.Items[i]))
	}
	if l.Config.IgnoreInferenceServices || !l.Served().Has(capability.InferenceService) {
		return models, nil
	}
	inferenceServices := &v1beta1.InferenceServiceList{}
	if err := l.Cached.List(ctx, inferenceServices, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing InferenceServices: %w", err)
	}
	for i := range inferenceServices.Items {
		model, isModelMesh, err := pkgmodelmesh.FromInferenceService(&inferenceServices.Items[i])
		if isModelMesh && err == nil {
			models = append(models, model)
		}
	}
	return models, nil
}

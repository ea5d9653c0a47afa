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

// Catalog reads the runtimes and models of namespaces from the cache.
type Catalog struct {
	Config     config.ModelMesh
	Cached     client.Reader
	Namespaces *Namespaces
	Served     func() capability.Set
	Settings   func(ctx context.Context, namespace string) (meshsettings.Settings, error)
	// MissingReferences holds the references of Predictors to storage entries and PersistentVolumeClaims that do not exist.
	MissingReferences Findings[[]reference.Missing]
	// Causes holds the reasons why runtimes have no serving pods.
	Causes Findings[Cause]
}

// Runtime is a ServingRuntime or ClusterServingRuntime that is available in a namespace.
type Runtime struct {
	// Object is shared with the cache and must not be changed.
	Object client.Object
	Spec   *v1alpha1.ServingRuntimeSpec
	// Malformed describes the field of the spec that could not be decoded, if any.
	Malformed string
}

// NeedsDeployment reports whether ModelMesh runs the runtime. Single-model runtimes belong to KServe.
func (r Runtime) NeedsDeployment() bool {
	return pkgmodelmesh.IsEnabled(r.Spec) && r.Object.GetDeletionTimestamp().IsZero()
}

// UsesClusterRuntimes reports whether ClusterServingRuntimes are used.
func (c *Catalog) UsesClusterRuntimes() bool {
	return !c.Config.IgnoreClusterServingRuntimes && !c.Namespaces.SingleNamespace()
}

// Runtimes returns the runtimes of a namespace by name: its ServingRuntimes and all multi-model ClusterServingRuntimes. A
// ServingRuntime takes precedence over a ClusterServingRuntime of the same name.
func (c *Catalog) Runtimes(ctx context.Context, namespace string) (map[string]Runtime, error) {
	runtimes := map[string]Runtime{}
	apis := c.Served()
	if apis.Has(capability.ClusterServingRuntime) && c.UsesClusterRuntimes() {
		list := &v1alpha1.ClusterServingRuntimeList{}
		if err := c.Cached.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
			return nil, fmt.Errorf("listing ClusterServingRuntimes: %w", err)
		}
		for i := range list.Items {
			if r := &list.Items[i]; pkgmodelmesh.IsMultiModel(&r.Spec) {
				runtimes[r.Name] = Runtime{Object: r, Spec: &r.Spec, Malformed: r.Malformed}
			}
		}
	}
	if apis.Has(capability.ServingRuntime) {
		list := &v1alpha1.ServingRuntimeList{}
		if err := c.Cached.List(ctx, list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
			return nil, fmt.Errorf("listing ServingRuntimes: %w", err)
		}
		for i := range list.Items {
			r := &list.Items[i]
			runtimes[r.Name] = Runtime{Object: r, Spec: &r.Spec, Malformed: r.Malformed}
		}
	}
	return runtimes, nil
}

// HasSupportingRuntime reports whether an enabled runtime of the namespace supports models with the given label. Its pods may not have
// that label yet.
func (c *Catalog) HasSupportingRuntime(ctx context.Context, namespace, label string) (bool, error) {
	names, err := c.supportingRuntimes(ctx, namespace, label)
	return len(names) > 0, err
}

// supportingRuntimes returns the names, unsorted, of the enabled runtimes of a namespace that support models with the given label.
func (c *Catalog) supportingRuntimes(ctx context.Context, namespace, label string) (names []string, err error) {
	enabled, err := c.Namespaces.Enabled(ctx, namespace)
	if err != nil || !enabled {
		return nil, err
	}
	settings, err := c.Settings(ctx, namespace)
	if err != nil {
		return nil, err
	}
	runtimes, err := c.Runtimes(ctx, namespace)
	if err != nil {
		return nil, err
	}
	for name, r := range runtimes {
		if r.NeedsDeployment() && pkgmodelmesh.HasLabels(pkgmodelmesh.Labels(name, r.Spec, settings.RESTProxy.Enabled), label) {
			names = append(names, name)
		}
	}
	return names, nil
}

// Models returns the models of a namespace: its Predictors and the InferenceServices of ModelMesh. Models skips an InferenceService that
// cannot be converted, because it needs no runtime.
func (c *Catalog) Models(ctx context.Context, namespace string) ([]pkgmodelmesh.Model, error) {
	var models []pkgmodelmesh.Model
	predictors := &v1alpha1.PredictorList{}
	if err := c.Cached.List(ctx, predictors, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing Predictors: %w", err)
	}
	for i := range predictors.Items {
		models = append(models, pkgmodelmesh.FromPredictor(&predictors.Items[i]))
	}
	if c.Config.IgnoreInferenceServices || !c.Served().Has(capability.InferenceService) {
		return models, nil
	}
	services := &v1beta1.InferenceServiceList{}
	if err := c.Cached.List(ctx, services, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing InferenceServices: %w", err)
	}
	for i := range services.Items {
		model, isModelMesh, err := pkgmodelmesh.FromInferenceService(&services.Items[i])
		if isModelMesh && err == nil {
			models = append(models, model)
		}
	}
	return models, nil
}

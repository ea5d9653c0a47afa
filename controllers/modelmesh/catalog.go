package modelmesh

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/apis/serving/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/apis/serving/v1beta1"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/config"
	mm "github.com/odh-platform/odh-platform-operator/pkg/modelmesh"
	meshsettings "github.com/odh-platform/odh-platform-operator/pkg/modelmesh/settings"
)

// Catalog reads from memory which runtimes and models namespaces have.
type Catalog struct {
	Config     config.ModelMesh
	Cached     client.Reader
	Namespaces *Namespaces
	Served     func() capability.Set
	Settings   func(ctx context.Context, namespace string) (meshsettings.Settings, error)
	// References that lead nowhere.
	MissingReferences MissingReferences
	// Causes why runtimes have no pods.
	Causes Causes
}

// Runtime is a runtime as one namespace sees it.
type Runtime struct {
	// Object is the ServingRuntime or ClusterServingRuntime; it is part of the cache and must not be changed.
	Object client.Object
	Spec   *v1alpha1.ServingRuntimeSpec
	// Malformed says what of the spec could not be read; empty for nothing.
	Malformed string
}

// Wanted tells whether the runtime has pods of ModelMesh: those for one model each are KServe's.
func (r Runtime) NeedsDeployment() bool {
	return mm.IsEnabled(r.Spec) && r.Object.GetDeletionTimestamp().IsZero()
}

// UsesClusterRuntimes tells whether runtimes of cluster scope count.
func (c *Catalog) UsesClusterRuntimes() bool {
	return !c.Config.IgnoreClusterServingRuntimes && !c.Namespaces.SingleNamespace()
}

// Runtimes returns the runtimes of a namespace by name: those of cluster scope that are for several models, and all of the namespace,
// which hide those.
func (c *Catalog) Runtimes(ctx context.Context, namespace string) (map[string]Runtime, error) {
	out := map[string]Runtime{}
	served := c.Served()
	if served.Has(capability.ClusterServingRuntime) && c.UsesClusterRuntimes() {
		list := &v1alpha1.ClusterServingRuntimeList{}
		if err := c.Cached.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
			return nil, fmt.Errorf("listing ClusterServingRuntimes: %w", err)
		}
		for i := range list.Items {
			if r := &list.Items[i]; mm.IsMultiModel(&r.Spec) {
				out[r.Name] = Runtime{Object: r, Spec: &r.Spec, Malformed: r.Malformed}
			}
		}
	}
	if served.Has(capability.ServingRuntime) {
		list := &v1alpha1.ServingRuntimeList{}
		if err := c.Cached.List(ctx, list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
			return nil, fmt.Errorf("listing ServingRuntimes: %w", err)
		}
		for i := range list.Items {
			r := &list.Items[i]
			out[r.Name] = Runtime{Object: r, Spec: &r.Spec, Malformed: r.Malformed}
		}
	}
	return out, nil
}

// Supported tells whether a runtime that is served in the namespace supports models with a label, whether its pods know that yet or
// not.
func (c *Catalog) HasSupportingRuntime(ctx context.Context, namespace, label string) (bool, error) {
	names, err := c.supportingRuntimes(ctx, namespace, label)
	return len(names) > 0, err
}

// supporting returns the names of the runtimes that are served in a namespace and support models with a label, in any order.
func (c *Catalog) supportingRuntimes(ctx context.Context, namespace, label string) (names []string, err error) {
	on, err := c.Namespaces.Enabled(ctx, namespace)
	if err != nil || !on {
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
		if r.NeedsDeployment() && mm.HasLabels(mm.Labels(name, r.Spec, settings.RESTProxy.Enabled), label) {
			names = append(names, name)
		}
	}
	return names, nil
}

// Models returns what runtimes of a namespace are needed for: its Predictors and the InferenceServices that are for ModelMesh. One
// that cannot be understood is left out: it needs no runtime, and it must not hide the others.
func (c *Catalog) Models(ctx context.Context, namespace string) ([]mm.Model, error) {
	var out []mm.Model
	predictors := &v1alpha1.PredictorList{}
	if err := c.Cached.List(ctx, predictors, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing Predictors: %w", err)
	}
	for i := range predictors.Items {
		out = append(out, mm.FromPredictor(&predictors.Items[i]))
	}
	if c.Config.IgnoreInferenceServices || !c.Served().Has(capability.InferenceService) {
		return out, nil
	}
	services := &v1beta1.InferenceServiceList{}
	if err := c.Cached.List(ctx, services, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing InferenceServices: %w", err)
	}
	for i := range services.Items {
		model, ours, err := mm.FromInferenceService(&services.Items[i])
		if ours && err == nil {
			out = append(out, model)
		}
	}
	return out, nil
}

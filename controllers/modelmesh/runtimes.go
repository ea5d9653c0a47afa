package modelmesh

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/apis/serving/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	mm "github.com/odh-platform/odh-platform-operator/pkg/modelmesh"
)

// invalidSpec begins what is said about runtimes that cannot be served.
const invalidSpec = "Invalid runtime Spec"

// template is a runtime as one namespace sees it.
type template struct {
	// object is the ServingRuntime or ClusterServingRuntime; it is part of the cache and must not be changed.
	object client.Object
	spec   *v1alpha1.ServingRuntimeSpec
	// malformed says what of the spec could not be read; empty for nothing.
	malformed string
}

// wanted tells whether the runtime has pods of ModelMesh: those for one model each are KServe's.
func (t template) wanted() bool {
	return isTrue(t.spec.MultiModel) && !isTrue(t.spec.Disabled) && t.object.GetDeletionTimestamp().IsZero()
}

// broken is what could not be read, as an error.
func (t template) broken() error {
	if t.malformed == "" {
		return nil
	}
	return fmt.Errorf("%s: %s", invalidSpec, t.malformed)
}

// templates returns the runtimes of a namespace by name: those of cluster scope that are for several models, and all of the
// namespace, which hide those.
func (s *server) templates(ctx context.Context, namespace string) (map[string]template, error) {
	out := map[string]template{}
	served := s.served()
	if served.Has(capability.ClusterServingRuntime) && s.clusterRuntimes() {
		list := &v1alpha1.ClusterServingRuntimeList{}
		if err := s.cached.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
			return nil, fmt.Errorf("listing ClusterServingRuntimes: %w", err)
		}
		for i := range list.Items {
			r := &list.Items[i]
			if isTrue(r.Spec.MultiModel) {
				out[r.Name] = template{object: r, spec: &r.Spec, malformed: r.Malformed}
			}
		}
	}
	if served.Has(capability.ServingRuntime) {
		list := &v1alpha1.ServingRuntimeList{}
		if err := s.cached.List(ctx, list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
			return nil, fmt.Errorf("listing ServingRuntimes: %w", err)
		}
		for i := range list.Items {
			r := &list.Items[i]
			out[r.Name] = template{object: r, spec: &r.Spec, malformed: r.Malformed}
		}
	}
	return out, nil
}

// supported tells whether a runtime that is served in the namespace supports models with a label.
func (s *server) supported(ctx context.Context, namespace, label string) (bool, error) {
	on, err := s.namespaces.Enabled(ctx, namespace)
	if err != nil || !on {
		return false, err
	}
	settings, err := s.settings(ctx, namespace)
	if err != nil {
		return false, err
	}
	templates, err := s.templates(ctx, namespace)
	if err != nil {
		return false, err
	}
	for name, t := range templates {
		if t.wanted() && mm.Supports(mm.Labels(name, t.spec, settings.RESTProxy.Enabled), label) {
			return true, nil
		}
	}
	return false, nil
}

// specs are the specs of runtimes by name.
func specs(templates map[string]template) map[string]*v1alpha1.ServingRuntimeSpec {
	out := make(map[string]*v1alpha1.ServingRuntimeSpec, len(templates))
	for name, t := range templates {
		if t.object.GetDeletionTimestamp().IsZero() {
			out[name] = t.spec
		}
	}
	return out
}

func sortedNames[T any](m map[string]T) []string { return slices.Sorted(maps.Keys(m)) }

func isTrue(b *bool) bool { return b != nil && *b }

// Package render renders the objects that the manager would create for custom resources, without writing anything. The manager and the kubectl
// plugin use it with the render functions of package kinds, and with the settings and served APIs of a real or assumed cluster.
package render

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/config"
	meshsettings "github.com/odh-platform/odh-platform-operator/pkg/modelmesh/settings"
)

// Env describes the cluster to render for.
type Env struct {
	Config       config.Config
	Capabilities capability.Set
	// Domain is the ingress domain of the cluster, or "".
	Domain string
	// Version is the version of the manager.
	Version string
	// Namespace is the namespace of objects without a namespace; "" for the namespace "default".
	Namespace string
	// ConfigMaps returns a ConfigMap with settings of components; nil for a cluster without any.
	ConfigMaps func(namespace, name string) *corev1.ConfigMap
	// KubeRay are the namespaces of KubeRay.
	KubeRay []string
	// Review returns the warnings of admission, and its rejection as an error; nil for no review.
	Review func(Env, *unstructured.Unstructured) (warnings []string, err error)
}

// configMap returns a ConfigMap, or nil if it does not exist.
func (e Env) configMap(namespace, name string) *corev1.ConfigMap {
	if e.ConfigMaps == nil {
		return nil
	}
	return e.ConfigMaps(namespace, name)
}

// LegacyConfig returns the settings in a ConfigMap in the namespace of the manager, or nil if it does not exist.
func (e Env) LegacyConfig(name string, embedded bool) *config.LegacyConfig {
	stored := e.configMap(e.Config.OperatorNamespace, name)
	if stored == nil {
		return nil
	}
	return &config.LegacyConfig{Source: "ConfigMap " + e.Config.OperatorNamespace + "/" + name, Data: stored.Data, Embedded: embedded}
}

// ModelMesh returns the settings of ModelMesh in a namespace, and notes about the settings.
func (e Env) ModelMesh(namespace string) (meshsettings.Settings, []string, error) {
	adminNamespace := e.Config.ModelMesh.Namespace
	documents := meshsettings.Documents{
		Defaults: e.configMap(adminNamespace, meshsettings.DefaultsName), Admin: e.configMap(adminNamespace, meshsettings.ConfigMapName),
	}
	if namespace != adminNamespace {
		documents.Namespace = e.configMap(namespace, meshsettings.ConfigMapName)
	}
	return meshsettings.Resolve(e.Config.ModelMesh, documents)
}

// EnsureNamespace sets the namespace of an object without a namespace, as kubectl does, and returns the namespace.
func (e Env) EnsureNamespace(obj metav1.Object) string {
	if obj.GetNamespace() == "" {
		obj.SetNamespace(cmp.Or(e.Namespace, corev1.NamespaceDefault))
	}
	return obj.GetNamespace()
}

// Result is the output for a custom resource.
type Result struct {
	Objects []*unstructured.Unstructured
	// Notes are warnings of admission and about settings, and descriptions of omitted objects and of effects other than objects.
	Notes []string
}

// Func renders an object of one kind. It may modify the object.
type Func func(obj *unstructured.Unstructured, env Env) (Result, error)

// Kinds are the render functions by kind.
type Kinds map[schema.GroupVersionKind]Func

// Documents decodes custom resources from YAML or JSON documents, separated by "---". A stream without custom resources is an error.
func Documents(in io.Reader) ([]*unstructured.Unstructured, error) {
	documents := utilyaml.NewYAMLReader(bufio.NewReader(in))
	var out []*unstructured.Unstructured
	for number := 1; ; number++ {
		doc, err := documents.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("reading the custom resource: %w", err)
		}
		raw, err := yaml.YAMLToJSONStrict(doc)
		if err != nil {
			return nil, fmt.Errorf("document %d is not valid YAML: %w", number, err)
		}
		obj := &unstructured.Unstructured{}
		if err := utiljson.Unmarshal(raw, &obj.Object); err != nil { // keeps integers
			return nil, fmt.Errorf("document %d is not an object: %w", number, err)
		}
		if len(obj.Object) > 0 {
			out = append(out, obj)
		}
	}
	if len(out) == 0 {
		return nil, errors.New("there is no custom resource in the input")
	}
	return out, nil
}

// Render renders one object.
func (k Kinds) Render(obj *unstructured.Unstructured, env Env) (Result, error) {
	kind := obj.GroupVersionKind()
	render, ok := k[kind]
	if !ok {
		return Result{}, fmt.Errorf("%s/%s cannot be rendered; known kinds: %s",
			kind.GroupVersion(), kind.Kind, strings.Join(k.Names(), ", "))
	}
	var warnings []string
	if env.Review != nil {
		var err error
		if warnings, err = env.Review(env, obj); err != nil {
			return Result{}, fmt.Errorf("%s %s would be refused: %w", kind.Kind, obj.GetName(), err)
		}
	}
	result, err := render(obj.DeepCopy(), env)
	if err != nil {
		return Result{}, fmt.Errorf("rendering %s %s: %w", kind.Kind, obj.GetName(), err)
	}
	for _, warning := range warnings {
		if !slices.Contains(result.Notes, warning) { // rendering of some kinds includes admission
			result.Notes = append(result.Notes, warning)
		}
	}
	return result, nil
}

// RenderAll renders all documents of a stream.
func (k Kinds) RenderAll(in io.Reader, out io.Writer, env Env) error {
	documents, err := Documents(in)
	if err != nil {
		return err
	}
	for _, obj := range documents {
		result, err := k.Render(obj, env)
		if err != nil {
			return err
		}
		if err := result.Write(out); err != nil {
			return fmt.Errorf("writing the objects of %s %s: %w", obj.GetKind(), obj.GetName(), err)
		}
	}
	return nil
}

// Write writes the notes as comments, then a YAML document for each object.
func (r Result) Write(out io.Writer) error {
	var text bytes.Buffer
	if len(r.Notes) > 0 {
		text.WriteString("---\n")
	}
	for _, note := range r.Notes {
		fmt.Fprintf(&text, "# %s\n", strings.ReplaceAll(note, "\n", "\n# "))
	}
	for _, o := range r.Objects {
		object, err := yaml.Marshal(o.Object)
		if err != nil {
			return fmt.Errorf("%s %s: %w", o.GetKind(), o.GetName(), err)
		}
		fmt.Fprintf(&text, "---\n%s", object)
	}
	_, err := text.WriteTo(out)
	return err
}

// Names returns the kinds as group/version/Kind in alphabetical order.
func (k Kinds) Names() []string {
	var known []string
	for kind := range maps.Keys(k) {
		known = append(known, kind.GroupVersion().String()+"/"+kind.Kind)
	}
	slices.Sort(known)
	return known
}

// DefaultPlatform is the default of the flag --platform.
const DefaultPlatform = "plain"

// Platforms returns the assumed clusters: bare serves only the APIs of Kubernetes, plain also those of projects such as KServe, and openshift
// also those of OpenShift.
func Platforms() []string { return []string{"bare", "plain", "openshift"} }

// Platform returns the kinds that one of the Platforms serves.
func Platform(name string) (capability.Set, error) {
	plain := []schema.GroupVersionKind{
		capability.HTTPRoute, capability.ReferenceGrant, capability.ServiceMonitor, capability.PrometheusRule, capability.RayCluster,
		capability.InferenceService, capability.ServingRuntime, capability.ClusterServingRuntime,
	}
	openshift := append(slices.Clone(plain),
		capability.Route, capability.OpenShiftIngress, capability.OpenShiftProxy, capability.UserGroup, capability.ConsoleLink)
	served, known := map[string][]schema.GroupVersionKind{"bare": nil, "plain": plain, "openshift": openshift}[name]
	if !known {
		return capability.Set{}, fmt.Errorf("unknown platform %q; known platforms: %s", name, strings.Join(Platforms(), ", "))
	}
	return capability.NewSet(served...), nil
}

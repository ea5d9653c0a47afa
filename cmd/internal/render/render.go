package render

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/config"
)

// Env is the cluster that is rendered for.
type Env struct {
	Config       config.Config
	Capabilities capability.Set
	// Domain is what the cluster's routers publish under, "" where it says none.
	Domain string
	// Version of the manager.
	Version string
	// Namespace is where objects go whose document names none; "" is default.
	Namespace string
	// ConfigMaps are those with settings of the components, by namespace and name; nil for a cluster without any.
	ConfigMaps func(namespace, name string) *corev1.ConfigMap
	// KubeRay are the namespaces in which KubeRay was found.
	KubeRay []string
	// Review returns the warnings that the author of an object would get, and as an error why admission would refuse it; nil for no review.
	Review func(Env, *unstructured.Unstructured) (warnings []string, err error)
}

// configMap is one of the ConfigMaps, nil when there is none.
func (e Env) configMap(namespace, name string) *corev1.ConfigMap {
	if e.ConfigMaps == nil {
		return nil
	}
	return e.ConfigMaps(namespace, name)
}

// Result is what a custom resource brings about.
type Result struct {
	Objects []*unstructured.Unstructured
	// Notes tell what is not among the objects, and why.
	Notes []string
}

// Func renders objects of one kind. The object is its own and may be changed.
type Func func(obj *unstructured.Unstructured, env Env) (Result, error)

// Kinds are those that can be rendered.
type Kinds map[schema.GroupVersionKind]Func

// Documents reads custom resources from a stream of YAML or JSON documents.
func Documents(in io.Reader) ([]*unstructured.Unstructured, error) {
	documents := utilyaml.NewYAMLReader(bufio.NewReader(in))
	var out []*unstructured.Unstructured
	for {
		doc, err := documents.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("reading the custom resource: %w", err)
		}
		raw, err := yaml.YAMLToJSONStrict(doc)
		if err != nil {
			return nil, fmt.Errorf("document %d is not valid YAML: %w", len(out)+1, err)
		}
		obj := &unstructured.Unstructured{}
		if err := utiljson.Unmarshal(raw, &obj.Object); err != nil { // whole numbers stay such
			return nil, fmt.Errorf("document %d is no object: %w", len(out)+1, err)
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
		return Result{}, k.unknown(kind)
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
		if !slices.Contains(result.Notes, warning) { // some kinds are rendered as the webhooks change them
			result.Notes = append(result.Notes, warning)
		}
	}
	return result, nil
}

// All renders every document of a stream, one YAML document per object. Notes stand before the objects as comments.
func (k Kinds) All(in io.Reader, out io.Writer, env Env) error {
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
			return fmt.Errorf("writing what %s %s brings about: %w", obj.GetKind(), obj.GetName(), err)
		}
	}
	return nil
}

// Write writes YAML documents. Notes stand before them as comments.
func (r Result) Write(out io.Writer) error {
	for i, note := range r.Notes {
		if i == 0 {
			if _, err := io.WriteString(out, "---\n"); err != nil {
				return err
			}
		}
		if _, err := fmt.Fprintf(out, "# %s\n", strings.ReplaceAll(note, "\n", "\n# ")); err != nil {
			return err
		}
	}
	for _, o := range r.Objects {
		text, err := yaml.Marshal(o.Object)
		if err != nil {
			return fmt.Errorf("%s %s: %w", o.GetKind(), o.GetName(), err)
		}
		if _, err := fmt.Fprintf(out, "---\n%s", text); err != nil {
			return err
		}
	}
	return nil
}

// Names are the kinds in alphabetical order, as group/version/Kind.
func (k Kinds) Names() []string {
	var known []string
	for kind := range maps.Keys(k) {
		known = append(known, kind.GroupVersion().String()+"/"+kind.Kind)
	}
	slices.Sort(known)
	return known
}

func (k Kinds) unknown(kind schema.GroupVersionKind) error {
	if len(k) == 0 {
		return fmt.Errorf("%s of %s cannot be rendered: this build renders no kind", kind.Kind, kind.GroupVersion())
	}
	return fmt.Errorf("%s/%s cannot be rendered; known kinds: %s", kind.GroupVersion(), kind.Kind, strings.Join(k.Names(), ", "))
}

package olm

import (
	"fmt"
	"io/fs"
	"path"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	shipped "github.com/odh-platform/odh-platform-operator/config"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
)

var (
	deploymentKind = appsv1.SchemeGroupVersion.WithKind("Deployment")
	crdKind        = apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition")
)

// group holds the objects of an owner.
type group struct {
	owner schema.GroupVersionKind
	// requires lists the kinds without which the objects are not created.
	requires []schema.GroupVersionKind
	objects  []*unstructured.Unstructured
}

// newGroups returns all objects by the name of their owner: the Deployment of the manager for monitors, and the CRD of their kind for samples,
// because a namespaced object cannot own a cluster-scoped one.
func newGroups(namespace string) (map[types.NamespacedName]group, error) {
	monitors, err := newMonitors(namespace)
	if err != nil {
		return nil, err
	}
	all := map[types.NamespacedName]group{{Namespace: namespace, Name: deploymentName}: {owner: deploymentKind, objects: monitors}}
	files, err := fs.Glob(shipped.Examples, "samples/*.yaml")
	if err != nil {
		return nil, fmt.Errorf("listing the examples: %w", err)
	}
	for _, file := range files {
		text, err := shipped.Examples.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("reading an example: %w", err)
		}
		sample, err := decode(text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		kind := sample.GroupVersionKind()
		plural, _ := meta.UnsafeGuessKindToResource(kind)
		crd := types.NamespacedName{Name: plural.GroupResource().String()}
		g := all[crd]
		g.owner, g.requires = crdKind, []schema.GroupVersionKind{kind}
		g.objects = append(g.objects, newSample(strings.TrimSuffix(path.Base(file), ".yaml"), string(text), kind))
		all[crd] = g
	}
	return all, nil
}

// newSample returns the ConsoleYAMLSample for a kind.
func newSample(name, text string, kind schema.GroupVersionKind) *unstructured.Unstructured {
	apiVersion, kindName := kind.ToAPIVersionAndKind()
	_, variant, _ := strings.Cut(name, "_")
	object := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"targetResource": map[string]any{"apiVersion": apiVersion, "kind": kindName},
		"title":          kindName + ": " + strings.ReplaceAll(variant, "_", " "),
		"description":    headerComment(text), "yaml": text, "snippet": false,
	}}}
	object.SetGroupVersionKind(capability.ConsoleYAMLSample)
	object.SetName("odh-platform-operator-" + strings.ReplaceAll(name, "_", "-"))
	return object
}

// headerComment returns the comment at the top of a sample as one line.
func headerComment(text string) string {
	var words []string
	for line := range strings.Lines(text) {
		content, found := strings.CutPrefix(line, "#")
		if !found {
			break
		}
		words = append(words, strings.Fields(content)...)
	}
	return strings.Join(words, " ")
}

// newMonitors returns the ServiceMonitor and the PrometheusRule. The ServiceMonitor trusts the certificate of the webhook Service itself,
// because the key of the CA in the Secret differs between OLM v0, cert-manager and OpenShift.
func newMonitors(namespace string) ([]*unstructured.Unstructured, error) {
	const service = deploymentName + "-service"
	var objects []*unstructured.Unstructured
	for _, text := range []string{shipped.ServiceMonitor, shipped.PrometheusRule} {
		object, err := decode([]byte(text))
		if err != nil {
			return nil, err
		}
		object.SetNamespace(namespace)
		objects = append(objects, object)
	}
	endpoints, _, err := unstructured.NestedSlice(objects[0].Object, "spec", "endpoints")
	if err != nil || len(endpoints) != 1 {
		return nil, fmt.Errorf("the ServiceMonitor has %d endpoints: %w", len(endpoints), err)
	}
	endpoint, _ := endpoints[0].(map[string]any)
	endpoint["tlsConfig"] = map[string]any{
		"ca":         map[string]any{"secret": map[string]any{"name": service + "-cert", "key": "tls.crt"}},
		"serverName": service + "." + namespace + ".svc",
	}
	return objects, unstructured.SetNestedSlice(objects[0].Object, endpoints, "spec", "endpoints")
}

func decode(text []byte) (*unstructured.Unstructured, error) {
	object := &unstructured.Unstructured{}
	data, err := yaml.YAMLToJSON(text)
	if err == nil {
		err = object.UnmarshalJSON(data)
	}
	if err != nil {
		return nil, fmt.Errorf("decoding: %w", err)
	}
	return object, nil
}

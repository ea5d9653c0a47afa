package all_components_test

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/test/framework"
)

// component is a kind of custom resource that is not a singleton.
type component struct {
	kind   string
	object func(namespace, name string) *unstructured.Unstructured
	// labels of the namespaces that the component requires.
	labels map[string]string
	// guards are resources that must exist before a pod starts.
	guards []string
}

func fromSample(file string) func(string, string) *unstructured.Unstructured {
	return func(namespace, name string) *unstructured.Unstructured {
		object := framework.Sample(file)
		object.SetNamespace(namespace)
		object.SetName(name)
		return object
	}
}

var components = []component{
	{kind: "ModelRegistry", object: fromSample("modelregistry_proxy.yaml"),
		guards: []string{"serviceaccounts", "roles", "rolebindings", "networkpolicies", "configmaps", "secrets", "persistentvolumeclaims"}},
	{kind: "RayCluster", object: fromSample("raycluster.yaml")}, // KubeRay creates its pods
	{kind: "ServingRuntime", object: fromSample("modelmesh_runtime_custom.yaml"), labels: map[string]string{"modelmesh-enabled": "true"},
		guards: []string{"networkpolicies", "configmaps", "secrets"}},
	{kind: "AppWrapper", object: func(namespace, name string) *unstructured.Unstructured {
		object := fromSample("appwrapper_job.yaml")(namespace, name)
		object.SetLabels(nil) // without a queue it starts immediately
		return object
	}},
}

// namespace creates a namespace for a component.
func (c component) namespace(ctx context.Context, prefix string) string {
	GinkgoHelper()
	namespace := env.Namespace(ctx, prefix)
	c.setNamespaceLabels(ctx, namespace)
	return namespace
}

// setNamespaceLabels sets the labels of a namespace that the component requires.
func (c component) setNamespaceLabels(ctx context.Context, namespace string) {
	GinkgoHelper()
	if c.labels != nil {
		env.Patch(ctx, framework.NamespaceNamed(namespace), map[string]any{"metadata": map[string]any{"labels": c.labels}})
	}
}

// refuseWrites sets the resources whose writes the policy denies in a namespace.
func refuseWrites(ctx context.Context, namespace string, refused ...string) {
	GinkgoHelper()
	env.Patch(ctx, framework.NamespaceNamed(namespace),
		map[string]any{"metadata": map[string]any{"annotations": map[string]any{refuseAnnotation: strings.Join(refused, ",")}}})
}

// child is an object that the manager writes for a custom resource. A custom resource has the name of its namespace, because names of
// registries are unique in the cluster. In the names of children, {} replaces that name.
type child struct{ group, resource, name string }

func (c child) String() string { return c.resource + "/" + c.name }

// hashedName matches names with a hash, which differ for each custom resource.
var hashedName = regexp.MustCompile(`-[0-9a-f]{8}(-|$)`)

// nameIn returns the name of a child in a namespace.
func (c child) nameIn(namespace string) string { return strings.ReplaceAll(c.name, "{}", namespace) }

func (c child) kind() schema.GroupVersionKind {
	GinkgoHelper()
	kind, err := env.Admin.RESTMapper().KindFor(schema.GroupVersionResource{Group: c.group, Resource: c.resource})
	Expect(err).NotTo(HaveOccurred())
	return kind
}

// children returns the objects that the manager created in a namespace.
func children(entries framework.Entries, namespace string) []child {
	var found []child
	for _, e := range entries.ObjectWrites(manager.User) {
		c := child{e.Group, e.Resource, strings.ReplaceAll(e.Name, namespace, "{}")}
		created := e.Code == 201
		if e.Namespace == namespace && created && e.Subresource == "" && !slices.Contains(found, c) {
			found = append(found, c)
		}
	}
	return found
}

// conditionsAndEvents returns the status, with its conditions, and the Events of a custom resource as text.
func conditionsAndEvents(ctx context.Context, object *unstructured.Unstructured) string {
	GinkgoHelper()
	live := object.DeepCopy()
	if err := env.Admin.Get(ctx, client.ObjectKeyFromObject(object), live); err != nil {
		return err.Error()
	}
	status, _, _ := unstructured.NestedMap(live.Object, "status")
	text := []string{fmt.Sprint(status)}
	events := &corev1.EventList{}
	Expect(env.Admin.List(ctx, events, client.InNamespace(live.GetNamespace()))).To(Succeed())
	for _, e := range events.Items {
		if e.InvolvedObject.UID == live.GetUID() {
			text = append(text, e.Reason+": "+e.Message)
		}
	}
	return strings.Join(text, "\n")
}

// deploymentNames returns the names of the Deployments in a namespace.
func deploymentNames(ctx context.Context, namespace string) []string {
	GinkgoHelper()
	list := &appsv1.DeploymentList{}
	Expect(env.Admin.List(ctx, list, client.InNamespace(namespace))).To(Succeed())
	var names []string
	for _, d := range list.Items {
		names = append(names, d.Name)
	}
	return names
}

// foreignObject returns an object of another client with the name of a child; nil if the name has a hash, or if the resource is not one of
// those below.
func foreignObject(namespace string, c child) *unstructured.Unstructured {
	GinkgoHelper()
	object := &unstructured.Unstructured{Object: map[string]any{}}
	switch c.resource {
	case "serviceaccounts", "configmaps":
	case "roles":
		object.Object["rules"] = []any{}
	case "networkpolicies":
		object.Object["spec"] = map[string]any{"podSelector": map[string]any{"matchLabels": map[string]any{"of": "another-client"}}}
	case "services":
		object.Object["spec"] = map[string]any{"ports": []any{map[string]any{"port": int64(80)}}}
	default:
		return nil
	}
	if hashedName.MatchString(c.name) {
		return nil
	}
	object.SetGroupVersionKind(c.kind())
	object.SetNamespace(namespace)
	object.SetName(c.nameIn(namespace))
	return object
}

// touch adds an annotation to a custom resource, which triggers a reconcile.
func touch(ctx context.Context, object *unstructured.Unstructured) {
	GinkgoHelper()
	patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"all-components.test/touched":"yes"}}}`))
	Expect(env.Admin.Patch(ctx, object.DeepCopy(), patch)).To(Succeed())
}

// countManaged counts the objects of a kind in a namespace with the label of this operator or an owner with the name of the namespace.
func countManaged(ctx context.Context, namespace string, kind schema.GroupVersionKind) (int, error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(kind)
	if err := env.Admin.List(ctx, list, client.InNamespace(namespace)); err != nil {
		return 0, err
	}
	count := 0
	for _, object := range list.Items {
		owned := slices.ContainsFunc(object.OwnerReferences, func(ref metav1.OwnerReference) bool { return ref.Name == namespace })
		if owned || object.Labels["platform.opendatahub.io/operator"] == "odh-platform-operator" {
			count++
		}
	}
	return count, nil
}

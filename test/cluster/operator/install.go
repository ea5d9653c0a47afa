package operator

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/odh-platform/odh-platform-operator/cmd/generate/kustomization"
	"github.com/odh-platform/odh-platform-operator/test/cluster"
)

const (
	yamlBuffer = 4096
	// managerContainer is the name of the container of the manager.
	managerContainer = "manager"
)

// Installed is the result of [Install].
type Installed struct {
	// ServiceAccount of the manager's pods.
	ServiceAccount types.NamespacedName
	// Deployment of the manager, which is not created.
	Deployment *appsv1.Deployment
	// WebhookPort is the loopback port of the webhooks, reserved for the manager.
	WebhookPort int
	// Objects are the created objects, in order.
	Objects []*unstructured.Unstructured
}

// Install builds a kustomization below the root of the checkout and creates its objects: CRDs, which it waits for, then namespaces, then
// the others in the order of the manifests. It changes existing objects only to route the conversion webhooks of CRDs.
func Install(ctx context.Context, instance *cluster.Instance, kustomizeDir string) (*Installed, error) {
	objects, err := Kustomize(kustomizeDir)
	if err != nil {
		return nil, err
	}
	installed, err := InstallObjects(ctx, instance, objects)
	if err != nil {
		return nil, fmt.Errorf("installing %s: %w", kustomizeDir, err)
	}
	return installed, nil
}

// InstallObjects is like [Install], for given objects.
func InstallObjects(ctx context.Context, instance *cluster.Instance, objects []*unstructured.Unstructured) (*Installed, error) {
	installed, err := split(objects)
	if err != nil {
		return nil, err
	}
	ports, err := instance.ReservePorts(ctx, 1)
	if err != nil {
		return nil, err
	}
	installed.WebhookPort = ports[0]
	if err := RouteWebhooks(installed.Objects, int64(installed.WebhookPort)); err != nil {
		return nil, err
	}
	config, err := instance.Config()
	if err != nil {
		return nil, err
	}
	return installed, installed.create(ctx, config)
}

// Kustomize builds a kustomization, in an absolute folder or one below the root of the checkout, and returns its objects.
func Kustomize(dir string) ([]*unstructured.Unstructured, error) {
	if !filepath.IsAbs(dir) {
		root, err := cluster.RepositoryRoot()
		if err != nil {
			return nil, err
		}
		dir = filepath.Join(root, dir)
	}
	output, err := kustomization.Manifest(dir)
	if err != nil {
		return nil, err
	}
	objects, err := decode(output)
	if err != nil {
		return nil, fmt.Errorf("reading kustomization %s: %w", dir, err)
	}
	return objects, nil
}

// decode reads a stream of YAML documents.
func decode(manifests []byte) ([]*unstructured.Unstructured, error) {
	decoder := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(manifests), yamlBuffer)
	var objects []*unstructured.Unstructured
	for {
		object := &unstructured.Unstructured{}
		if err := decoder.Decode(&object.Object); errors.Is(err, io.EOF) {
			return objects, nil
		} else if err != nil {
			return nil, fmt.Errorf("decoding manifests: %w", err)
		}
		if len(object.Object) > 0 {
			objects = append(objects, object)
		}
	}
}

// Encode returns objects as a stream of YAML documents.
func Encode(objects []*unstructured.Unstructured) (string, error) {
	var text strings.Builder
	for _, object := range objects {
		document, err := yaml.Marshal(object.Object)
		if err != nil {
			return "", fmt.Errorf("encoding %s %s: %w", object.GetKind(), object.GetName(), err)
		}
		fmt.Fprintf(&text, "---\n%s", document)
	}
	return text.String(), nil
}

// creationOrder returns the position of an object in the order of creation: CRDs, then namespaces, then the others.
func creationOrder(object *unstructured.Unstructured) int {
	switch object.GetKind() {
	case "CustomResourceDefinition":
		return 0
	case "Namespace":
		return 1
	default:
		return 2
	}
}

// managerDeployment returns the Deployment of the manager: the only one, or, among several, the only one with a container named manager.
func managerDeployment(objects []*unstructured.Unstructured) (*unstructured.Unstructured, error) {
	deployments := slices.DeleteFunc(slices.Clone(objects), func(o *unstructured.Unstructured) bool { return o.GetKind() != "Deployment" })
	if len(deployments) > 1 {
		deployments = slices.DeleteFunc(deployments, func(o *unstructured.Unstructured) bool { return !runsManager(o) })
	}
	switch len(deployments) {
	case 0:
		return nil, errors.New("no Deployment of the manager")
	case 1:
		return deployments[0], nil
	default:
		return nil, fmt.Errorf("two Deployments of the manager, %s and %s, want one", deployments[0].GetName(), deployments[1].GetName())
	}
}

func runsManager(deployment *unstructured.Unstructured) bool {
	containers, _, err := unstructured.NestedSlice(deployment.Object, "spec", "template", "spec", "containers")
	return err == nil && slices.ContainsFunc(containers, func(entry any) bool {
		container, ok := entry.(map[string]any)
		return ok && container["name"] == managerContainer
	})
}

// split separates the manager's Deployment from the objects and sorts the others by creationOrder.
func split(objects []*unstructured.Unstructured) (*Installed, error) {
	manager, err := managerDeployment(objects)
	if err != nil {
		return nil, err
	}
	installed := &Installed{Deployment: &appsv1.Deployment{}}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(manager.Object, installed.Deployment); err != nil {
		return nil, fmt.Errorf("decoding Deployment %s: %w", manager.GetName(), err)
	}
	for _, object := range objects {
		if object != manager {
			installed.Objects = append(installed.Objects, object)
		}
	}
	installed.ServiceAccount = types.NamespacedName{
		Namespace: installed.Deployment.Namespace, Name: installed.Deployment.Spec.Template.Spec.ServiceAccountName,
	}
	slices.SortStableFunc(installed.Objects, func(a, b *unstructured.Unstructured) int { return creationOrder(a) - creationOrder(b) })
	return installed, nil
}

// CRDs returns the CRDs among the objects of a kustomization.
func CRDs(objects []*unstructured.Unstructured) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	var crds []*apiextensionsv1.CustomResourceDefinition
	for _, object := range objects {
		if creationOrder(object) > 0 {
			continue
		}
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, crd); err != nil {
			return nil, fmt.Errorf("decoding CustomResourceDefinition %s: %w", object.GetName(), err)
		}
		crds = append(crds, crd)
	}
	return crds, nil
}

// routeConversions routes the conversion webhooks of existing CRDs to the port of the manager.
func routeConversions(ctx context.Context, writer client.Client, crds []*apiextensionsv1.CustomResourceDefinition) error {
	for _, crd := range crds {
		if crd.Spec.Conversion == nil || crd.Spec.Conversion.Webhook == nil {
			continue
		}
		patch := fmt.Appendf(nil, `{"spec":{"conversion":{"webhook":{"clientConfig":{"service":{"port":%d}}}}}}`, *crd.Spec.Conversion.Webhook.ClientConfig.Service.Port)
		if err := writer.Patch(ctx, crd.DeepCopy(), client.RawPatch(types.MergePatchType, patch)); err != nil {
			return fmt.Errorf("routing the conversion of CustomResourceDefinition %s: %w", crd.Name, err)
		}
	}
	return nil
}

func (i *Installed) create(ctx context.Context, config *rest.Config) error {
	crds, err := CRDs(i.Objects)
	if err != nil {
		return err
	}
	if err := cluster.InstallCRDs(ctx, config, crds...); err != nil {
		return err
	}
	scheme := runtime.NewScheme()
	if err := apiextensionsv1.AddToScheme(scheme); err != nil {
		return fmt.Errorf("registering the type CustomResourceDefinition: %w", err)
	}
	writer, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return fmt.Errorf("creating a client: %w", err)
	}
	if err := routeConversions(ctx, writer, crds); err != nil {
		return err
	}
	for _, object := range i.Objects[len(crds):] {
		if err := writer.Create(ctx, object.DeepCopy()); err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("creating %s %s: %w", object.GetKind(), object.GetName(), err)
		}
	}
	return nil
}

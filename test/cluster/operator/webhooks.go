package operator

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// webhookHost is the host of the manager's webhook server, as the externalName of a Service.
const webhookHost = "localhost"

// RouteWebhooks routes the admission and conversion webhooks of the objects to a port of this machine. The API server uses the host of a
// Service of type ExternalName and the port of the reference, and still checks the certificate against the name of the Service.
func RouteWebhooks(objects []*unstructured.Unstructured, port int64) error {
	var services []types.NamespacedName
	for _, object := range objects {
		references, err := webhookReferences(object)
		if err != nil {
			return fmt.Errorf("reading the webhooks of %s %s: %w", object.GetKind(), object.GetName(), err)
		}
		for _, reference := range references {
			reference["port"] = port
			namespace, _, _ := unstructured.NestedString(reference, "namespace")
			name, _, _ := unstructured.NestedString(reference, "name")
			services = append(services, types.NamespacedName{Namespace: namespace, Name: name})
		}
	}
	for _, object := range objects {
		key := types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetName()}
		if object.GetKind() == "Service" && slices.Contains(services, key) {
			object.Object["spec"] = map[string]any{"type": "ExternalName", "externalName": webhookHost}
		}
	}
	return nil
}

// webhookReferences returns the service references of an object. They are not copies, so changing them changes the object.
func webhookReferences(object *unstructured.Unstructured) ([]map[string]any, error) {
	var clientConfigs []map[string]any
	switch object.GetKind() {
	case "ValidatingWebhookConfiguration", "MutatingWebhookConfiguration":
		webhooks, _, err := unstructured.NestedFieldNoCopy(object.Object, "webhooks")
		if err != nil {
			return nil, fmt.Errorf("reading webhooks: %w", err)
		}
		list, _ := webhooks.([]any)
		for _, webhook := range list {
			if fields, ok := webhook.(map[string]any); ok {
				clientConfigs = append(clientConfigs, child(fields, "clientConfig"))
			}
		}
	case "CustomResourceDefinition":
		config, _, err := unstructured.NestedFieldNoCopy(object.Object, "spec", "conversion", "webhook", "clientConfig")
		if err != nil {
			return nil, fmt.Errorf("reading the conversion: %w", err)
		}
		fields, _ := config.(map[string]any)
		clientConfigs = append(clientConfigs, fields)
	default:
		return nil, nil
	}
	var references []map[string]any
	for _, fields := range clientConfigs {
		if reference := child(fields, "service"); reference != nil {
			references = append(references, reference)
		}
	}
	return references, nil
}

func child(fields map[string]any, name string) map[string]any {
	value, _ := fields[name].(map[string]any)
	return value
}

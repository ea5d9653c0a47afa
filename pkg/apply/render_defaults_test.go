package apply

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Defaults that decide where a Service routes, what a policy denies and how pods are replaced are always applied.
func TestRenderSetsDefaults(t *testing.T) {
	for name, test := range map[string]struct {
		kind       schema.GroupVersionKind
		spec, want string
	}{
		"Service": {schema.GroupVersionKind{Version: "v1", Kind: "Service"}, `{ports: [{port: 1}, {port: 2, protocol: UDP, targetPort: https}]}`,
			`{type: ClusterIP, ports: [{port: 1, protocol: TCP, targetPort: 1}, {port: 2, protocol: UDP, targetPort: https}]}`},
		"Service of a type": {schema.GroupVersionKind{Version: "v1", Kind: "Service"}, `{type: NodePort}`, `{type: NodePort}`},
		"policy that denies": {schema.GroupVersionKind{Group: "networking.k8s.io", Version: "v1", Kind: "NetworkPolicy"},
			`{policyTypes: [Ingress, Egress]}`, `{policyTypes: [Ingress, Egress], ingress: [], egress: []}`},
		"policy with rules": {schema.GroupVersionKind{Group: "networking.k8s.io", Version: "v1", Kind: "NetworkPolicy"},
			`{policyTypes: [Ingress], ingress: [{}]}`, `{policyTypes: [Ingress], ingress: [{}]}`},
		"Deployment":                        {schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}, `{replicas: 1}`, `{replicas: 1, strategy: {type: RollingUpdate}}`},
		"Service of another client's group": {schema.GroupVersionKind{Group: "serving.knative.dev", Version: "v1", Kind: "Service"}, `{a: 1}`, `{a: 1}`},
	} {
		t.Run(name, func(t *testing.T) {
			u := &unstructured.Unstructured{Object: map[string]any{"spec": tree(t, "{spec: "+test.spec+"}")["spec"]}}
			u.SetGroupVersionKind(test.kind)
			u.SetNamespace("ns")
			u.SetName("a")
			objects, err := Render(Desired{{Config: client.ApplyConfigurationFromUnstructured(u), Ownership: Unowned}}, "test", newOwnerObject("owner", "u"))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tree(t, "{spec: "+test.want+"}")["spec"], objects[0].Object["spec"]); diff != "" {
				t.Errorf("spec (-want +got):\n%s", diff)
			}
		})
	}
}

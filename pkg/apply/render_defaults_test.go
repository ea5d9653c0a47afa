package apply

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// An empty list of rules is applied for each direction in policyTypes, so that rules of other clients are detected.
func TestRenderSetsEmptyRules(t *testing.T) {
	for name, test := range map[string]struct {
		kind       schema.GroupVersionKind
		spec, want string
	}{
		"policy without rules": {schema.GroupVersionKind{Group: "networking.k8s.io", Version: "v1", Kind: "NetworkPolicy"},
			`{policyTypes: [Ingress, Egress]}`, `{policyTypes: [Ingress, Egress], ingress: [], egress: []}`},
		"policy with rules": {schema.GroupVersionKind{Group: "networking.k8s.io", Version: "v1", Kind: "NetworkPolicy"},
			`{policyTypes: [Ingress], ingress: [{}]}`, `{policyTypes: [Ingress], ingress: [{}]}`},
		"policy of another group": {schema.GroupVersionKind{Group: "policy.networking.k8s.io", Version: "v1", Kind: "NetworkPolicy"},
			`{policyTypes: [Ingress]}`, `{policyTypes: [Ingress]}`},
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

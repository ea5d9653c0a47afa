package apply

import (
	"encoding/json"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
	"sigs.k8s.io/yaml"
)

// docs/security.md lists the foreign additions that are removed and those that are kept. test/integration/mlflow tests a NetworkPolicy without
// rules with a real API server, because the fake server drops empty lists.
func TestApplyRemovesForeignAdditionsToAtomicFieldsOnly(t *testing.T) {
	const (
		policy     = "{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {name: a, namespace: ns}, spec: {podSelector: {matchLabels: {a: b}}, policyTypes: [Ingress], ingress: [{from: [{podSelector: {}}]}]}}"
		role       = "{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: a, namespace: ns}, rules: [{apiGroups: [''], resources: [services], verbs: [get]}]}"
		binding    = "{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: a, namespace: ns}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: a}, subjects: [{kind: ServiceAccount, name: a, namespace: ns}]}"
		service    = "{apiVersion: v1, kind: Service, metadata: {name: a, namespace: ns}, spec: {selector: {a: b}, ports: [{name: https, port: 443}]}}"
		deployment = "{apiVersion: apps/v1, kind: Deployment, metadata: {name: a, namespace: ns}, spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: server, image: i, args: [serve]}]}}}}"
	)
	for name, c := range map[string]struct {
		managed, path, value string
		kept                 bool
	}{
		"NetworkPolicy rule":                   {policy, "/spec/ingress/-", "{}", false},
		"peer in a NetworkPolicy rule":         {policy, "/spec/ingress/0/from/-", "{namespaceSelector: {}}", false},
		"label in a NetworkPolicy podSelector": {policy, "/spec/podSelector/matchLabels/c", "d", false},
		"Role rule":                            {role, "/rules/-", "{apiGroups: ['*'], resources: ['*'], verbs: ['*']}", false},
		"RoleBinding subject":                  {binding, "/subjects/-", "{kind: User, apiGroup: rbac.authorization.k8s.io, name: eve}", false},
		"label in a Service selector":          {service, "/spec/selector/c", "d", false},
		"container argument":                   {deployment, "/spec/template/spec/containers/0/args/-", "--insecure", false},
		"Service port":                         {service, "/spec/ports/-", "{name: more, port: 80}", true},
		"container":                            {deployment, "/spec/template/spec/containers/-", "{name: more, image: j}", true},
		"environment variable":                 {deployment, "/spec/template/spec/containers/0/env", "[{name: LD_PRELOAD, value: x}]", true},
		"hostNetwork":                          {deployment, "/spec/template/spec/hostNetwork", "true", true},
		"label":                                {deployment, "/metadata/labels/c", "d", true},
	} {
		t.Run(name, func(t *testing.T) {
			a, managed := newTestApplier(t), &unstructured.Unstructured{}
			a.must(yaml.Unmarshal([]byte(c.managed), &managed.Object))
			desired := Desired{{Config: client.ApplyConfigurationFromUnstructured(managed)}}
			a.must(a.Apply(t.Context(), a.owner, desired))
			before := a.getUnstructured(managed)
			var value any
			a.must(yaml.Unmarshal([]byte(c.value), &value))
			patch, err := json.Marshal([]map[string]any{{"op": "add", "path": c.path, "value": value}})
			a.must(err)
			a.must(a.server.Patch(t.Context(), before.DeepCopy(), client.RawPatch(types.JSONPatchType, patch), client.FieldOwner("them")))
			added := hashContent(a.getUnstructured(managed))
			a.must(a.Apply(t.Context(), a.owner, desired))
			after := a.getUnstructured(managed)
			if c.path == "/metadata/labels/c" {
				if _, found := after.GetLabels()["c"]; !found {
					t.Error("the label of another client was removed")
				}
				return
			}
			if added == hashContent(before) || (hashContent(after) == added) != c.kept || !c.kept && hashContent(after) != hashContent(before) {
				t.Errorf("want the addition kept: %t; got the object before the addition\n%v\nand after the apply\n%v", c.kept, before.Object, after.Object)
			}
		})
	}
}

// mapper returns a RESTMapper with kinds of the tests and their scopes. The default RESTMapper of the fake client is empty.
func mapper() meta.RESTMapper {
	m := meta.NewDefaultRESTMapper(nil)
	m.Add(configMapKind, meta.RESTScopeNamespace)
	m.Add(deploymentKind, meta.RESTScopeNamespace)
	for _, kind := range []schema.GroupVersionKind{
		corev1.SchemeGroupVersion.WithKind("Service"), networkingv1.SchemeGroupVersion.WithKind("NetworkPolicy"), networkingv1.SchemeGroupVersion.WithKind("Ingress"),
		rbacv1.SchemeGroupVersion.WithKind("Role"), rbacv1.SchemeGroupVersion.WithKind("RoleBinding"),
	} {
		m.Add(kind, meta.RESTScopeNamespace)
	}
	for _, kind := range []string{"Namespace", "Node"} {
		m.Add(corev1.SchemeGroupVersion.WithKind(kind), meta.RESTScopeRoot)
	}
	return m
}

// schemas are the schemas of Kubernetes. The fake client adds a status to every object, which a NetworkPolicy does not have.
type schemas struct{ managedfields.TypeConverter }

func (s schemas) ObjectToTyped(o runtime.Object, options ...typed.ValidationOptions) (*typed.TypedValue, error) {
	if u, ok := o.(*unstructured.Unstructured); ok && u.GetKind() == "NetworkPolicy" {
		u = u.DeepCopy()
		delete(u.Object, "status")
		o = u
	}
	return s.TypeConverter.ObjectToTyped(o, options...)
}

// getUnstructured reads an object from the server.
func (a *testApplier) getUnstructured(like *unstructured.Unstructured) *unstructured.Unstructured {
	a.Helper()
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(like.GroupVersionKind())
	a.must(a.server.Get(a.Context(), client.ObjectKeyFromObject(like), live))
	return live
}

package caches

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

// Objects with a route are read from the routed reader, and others from the client.
func TestDelegatingClient(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	clientWith := func(name, data string) client.Client {
		return fake.NewClientBuilder().WithScheme(scheme).WithObjects(&corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}, Data: map[string]string{"from": data},
		}).Build()
	}
	routed := clientWith("routed", "routed")
	r := &DelegatingClient{Client: clientWith("other", "manager"), Route: func(key client.ObjectKey, object client.Object) client.Reader {
		if _, ok := object.(*corev1.ConfigMap); ok && key.Name == "routed" {
			return routed
		}
		return nil
	}}
	for name, want := range map[string]string{"routed": "routed", "other": "manager"} {
		got := &corev1.ConfigMap{}
		if err := r.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: name}, got); err != nil || got.Data["from"] != want {
			t.Errorf("%s was read from %q, error %v, want %q", name, got.Data["from"], err, want)
		}
	}
	if err := r.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "routed"}, &corev1.Secret{}); client.IgnoreNotFound(err) != nil || err == nil {
		t.Errorf("got error %v for another kind, want NotFound", err)
	}
}

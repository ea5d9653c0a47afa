package runtimes

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/odh-platform/odh-platform-operator/controllers/modelmesh"
)

// fakeCache reads from a client.
type fakeCache struct {
	cache.Cache
	reader client.Reader
}

func (f fakeCache) Get(ctx context.Context, key client.ObjectKey, object client.Object, opts ...client.GetOption) error {
	return f.reader.Get(ctx, key, object, opts...)
}

func (f fakeCache) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	return f.reader.List(ctx, list, opts...)
}

// namespaceNamed has the given value of the label; "" is no label.
func namespaceNamed(name, value string) *corev1.Namespace {
	n := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-of-" + name)}}
	if value != "" {
		n.Labels = map[string]string{modelmesh.LabelEnabled: value}
	}
	return n
}

// labelledOnly is what the selection of the cache leaves.
func labelledOnly(objects ...client.Object) client.Client {
	b := fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme)
	for _, o := range objects {
		if _, has := o.GetLabels()[modelmesh.LabelEnabled]; has {
			b = b.WithObjects(o)
		}
	}
	return b.Build()
}

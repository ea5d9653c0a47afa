// Package meshtest has helpers for the tests of the ModelMesh packages.
package meshtest

import (
	"context"
	"crypto/tls"
	"net"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// labelEnabled is the label with which users enable ModelMesh in a namespace.
const labelEnabled = "modelmesh-enabled"

// Cache is a cache that reads from a client.
type Cache struct {
	cache.Cache
	Reader client.Reader
}

// Get implements client.Reader.
func (f Cache) Get(ctx context.Context, key client.ObjectKey, object client.Object, opts ...client.GetOption) error {
	return f.Reader.Get(ctx, key, object, opts...)
}

// List implements client.Reader.
func (f Cache) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	return f.Reader.List(ctx, list, opts...)
}

// Namespace returns a namespace whose label modelmesh-enabled has the value; "" omits the label.
func Namespace(name, value string) *corev1.Namespace {
	n := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-of-" + name)}}
	if value != "" {
		n.Labels = map[string]string{labelEnabled: value}
	}
	return n
}

// LabelledOnly returns a client with those objects that match the label selector of the cache.
func LabelledOnly(objects ...client.Object) client.Client {
	b := fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme)
	for _, o := range objects {
		if _, has := o.GetLabels()[labelEnabled]; has {
			b = b.WithObjects(o)
		}
	}
	return b.Build()
}

// Requests returns the requests that a handler enqueues for an event of the object.
func Requests(t *testing.T, h handler.EventHandler, o client.Object) []reconcile.Request {
	t.Helper()
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	defer queue.ShutDown()
	h.Generic(t.Context(), event.GenericEvent{Object: o}, queue)
	var requests []reconcile.Request
	for range queue.Len() {
		request, _ := queue.Get()
		requests = append(requests, request)
	}
	return requests
}

// Serve starts a gRPC server that listens on an address, and returns the address with its port. The server stops when the test
// ends or stop is called.
func Serve(t *testing.T, listenOn string, config *tls.Config, register func(*grpc.Server)) (address *net.TCPAddr, stop func()) {
	t.Helper()
	listener, err := net.Listen("tcp", listenOn)
	if err != nil {
		t.Fatal(err)
	}
	creds := insecure.NewCredentials()
	if config != nil {
		creds = credentials.NewTLS(config)
	}
	server := grpc.NewServer(grpc.Creds(creds))
	register(server)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(listener)
	}()
	stop = sync.OnceFunc(func() { server.Stop(); <-done })
	t.Cleanup(stop)
	return listener.Addr().(*net.TCPAddr), stop
}

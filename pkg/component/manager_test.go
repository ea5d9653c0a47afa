package component

import (
	"context"
	"errors"
	"testing"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// realIndexer indexes informers of client-go, as the cache does.
type realIndexer struct {
	informers map[string]toolscache.SharedIndexInformer
	broken    error
}

func (r *realIndexer) IndexField(_ context.Context, obj client.Object, field string, extract client.IndexerFunc) error {
	if r.broken != nil {
		return r.broken
	}
	name := obj.GetObjectKind().GroupVersionKind().Kind
	if _, ok := obj.(*appsv1.Deployment); ok {
		name = "Deployment"
	}
	if r.informers[name] == nil {
		r.informers[name] = toolscache.NewSharedIndexInformer(&toolscache.ListWatch{}, obj, 0, toolscache.Indexers{})
	}
	return r.informers[name].AddIndexers(toolscache.Indexers{field: func(any) ([]string, error) { return extract(obj), nil }})
}

func TestIndexingAgain(t *testing.T) {
	mgr := newManager(t)
	real := &realIndexer{informers: map[string]toolscache.SharedIndexInformer{}}
	mgr.indexer = real
	known := newIndexes()
	extract := func(client.Object) []string { return nil }
	run := func(obj client.Object, field string) error {
		m := &managerOf{Manager: mgr, indexes: known}
		return m.GetFieldIndexer().IndexField(t.Context(), obj, field, extract)
	}
	if err := run(&appsv1.Deployment{}, "spec.a"); err != nil {
		t.Fatal(err)
	}
	if err := run(&appsv1.Deployment{}, "spec.a"); err != nil {
		t.Errorf("the informer lives on and has the index: %v", err)
	}
	delete(real.informers, "Deployment")
	if err := run(&appsv1.Deployment{}, "spec.a"); err != nil || real.informers["Deployment"].GetIndexer().GetIndexers()["spec.a"] == nil {
		t.Errorf("a new informer needs the index again: %v", err)
	}

	// Somebody else's index of that name is a conflict, the first time.
	if err := real.IndexField(t.Context(), &appsv1.Deployment{}, "spec.b", extract); err != nil {
		t.Fatal(err)
	}
	if err := run(&appsv1.Deployment{}, "spec.b"); err == nil {
		t.Error("a true conflict was hidden")
	}

	real.broken = errors.New("no matches for kind")
	if err := run(&appsv1.Deployment{}, "spec.a"); !errors.Is(err, real.broken) {
		t.Errorf("error %v", err)
	}
	if err := run(&unregistered{}, "spec.a"); err == nil {
		t.Error("a type without a kind cannot be indexed")
	}
}

type unregistered struct{ corev1.Pod }

// The same controller can be built in each run, and the other options stay.
func TestControllerNamesMayReturn(t *testing.T) {
	m := &managerOf{Manager: newManager(t)}
	options := m.GetControllerOptions()
	if options.SkipNameValidation == nil || !*options.SkipNameValidation || options.GroupKindConcurrency["kept"] != 3 {
		t.Errorf("options %+v", options)
	}
	for range 2 {
		_, err := controller.NewUnmanaged("again", controller.Options{
			SkipNameValidation: options.SkipNameValidation,
			Logger:             logr.Discard(),
			Reconciler: reconcile.Func(func(context.Context, reconcile.Request) (reconcile.Result, error) {
				return reconcile.Result{}, nil
			}),
		})
		if err != nil {
			t.Error(err)
		}
	}
	var _ metav1.Object = &unregistered{}
}

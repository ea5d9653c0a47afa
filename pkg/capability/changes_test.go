package capability

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// A controller hears of changes, also of those before it started, and nobody waits for it.
func TestChangesWakeAController(t *testing.T) {
	w := &Watcher{}
	changes := w.Changes(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "awake"}}, &handler.EnqueueRequestForObject{})
	for range 3 {
		w.subscribers[0](Set{})
	}
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	defer queue.ShutDown()
	if err := changes.Start(t.Context(), queue); err != nil {
		t.Fatal(err)
	}
	for _, when := range []string{"before the start", "after it"} {
		request, _ := queue.Get()
		if request.Name != "awake" {
			t.Errorf("%s: got %v", when, request)
		}
		queue.Done(request)
		w.subscribers[0](Set{})
	}
}

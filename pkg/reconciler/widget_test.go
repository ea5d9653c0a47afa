package reconciler

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"go.uber.org/goleak"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/odh-platform/odh-platform-operator/pkg/status/conditions"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// widget is a custom resource with standard conditions.
type widget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              widgetSpec   `json:"spec,omitempty"`
	Status            widgetStatus `json:"status,omitempty"`
}

type widgetSpec struct {
	Size int `json:"size,omitempty"`
}

type widgetStatus struct {
	ObservedGeneration int64              `json:"observedGeneration,omitempty"`
	URL                string             `json:"url,omitempty"`
	Conditions         []metav1.Condition `json:"conditions,omitempty"`
}

func (w *widget) ConditionsRef() *[]metav1.Condition { return &w.Status.Conditions }
func (w *widget) ObserveGeneration()                 { w.Status.ObservedGeneration = w.Generation }

func (w *widget) DeepCopyObject() runtime.Object {
	out := *w
	w.DeepCopyInto(&out.ObjectMeta)
	out.Status.Conditions = slices.Clone(w.Status.Conditions)
	return &out
}

type widgetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []widget `json:"items"`
}

func (l *widgetList) DeepCopyObject() runtime.Object {
	out := *l
	out.Items = slices.Clone(l.Items)
	return &out
}

var widgets = schema.GroupVersion{Group: "test.opendatahub.io", Version: "v1"}

// fixture runs a reconciler with a fake client that records its writes.
type fixture struct {
	t          *testing.T
	client     client.WithWatch
	reconciler reconcile.Reconciler
	recorder   *events.FakeRecorder
	deleted    []types.UID

	mu        sync.Mutex
	writes    []string                     // "patch" or "patch status" with the body
	failWrite func(operation string) error // if set, returns the errors of writes
	stale     *widget                      // if set, the cached object
	oldCRD    bool                         // the CRD has no status.url
}

const (
	finalizer = "test.opendatahub.io/cleanup"
	available = "Available"
)

var key = types.NamespacedName{Namespace: "ns", Name: "w"}

func newWidget(changes ...func(*widget)) *widget {
	w := &widget{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name, UID: "uid-1", Generation: 1}}
	for _, change := range changes {
		change(w)
	}
	return w
}

// newFixture returns a fixture with the given objects. It sets Logic.OnDeleted.
func newFixture(t *testing.T, logic Logic[*widget], objects ...client.Object) *fixture {
	t.Helper()
	scheme := runtime.NewScheme()
	scheme.AddKnownTypeWithName(widgets.WithKind("widget"), &widget{})
	scheme.AddKnownTypeWithName(widgets.WithKind("widgetList"), &widgetList{})
	metav1.AddToGroupVersion(scheme, widgets)
	f := &fixture{t: t, recorder: events.NewFakeRecorder(100)}
	f.client = fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithStatusSubresource(&widget{}).
		WithInterceptorFuncs(interceptor.Funcs{
			Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
				if f.stale != nil {
					*obj.(*widget) = *f.stale.DeepCopyObject().(*widget)
					return nil
				}
				return c.Get(ctx, key, obj, opts...)
			},
			Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, p client.Patch, opts ...client.PatchOption) error {
				if err := f.recordWrite("patch", obj, p); err != nil {
					return err
				}
				return c.Patch(ctx, obj, p, opts...)
			},
			SubResourcePatch: func(ctx context.Context, c client.Client, subresource string, obj client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
				if err := f.recordWrite("patch "+subresource, obj, p); err != nil {
					return err
				}
				if f.oldCRD {
					return storeWithoutURL(ctx, c, obj, p)
				}
				return c.SubResource(subresource).Patch(ctx, obj, p, opts...)
			},
		}).Build()
	logic.OnDeleted = func(uid types.UID) { f.deleted = append(f.deleted, uid) }
	f.reconciler = New(Options{Client: f.client, Recorder: f.recorder, Component: t.Name()}, logic)
	return f
}

// storeWithoutURL patches the status like an API server whose CRD lacks the field url.
func storeWithoutURL(ctx context.Context, c client.Client, obj client.Object, p client.Patch) error {
	body, err := p.Data(obj)
	if err != nil {
		return err
	}
	var patch map[string]map[string]any
	if err := json.Unmarshal(body, &patch); err != nil {
		return err
	}
	delete(patch["status"], "url")
	if len(patch["status"]) == 0 {
		return c.Get(ctx, client.ObjectKeyFromObject(obj), obj)
	}
	if body, err = json.Marshal(patch); err != nil {
		return err
	}
	obj.(*widget).Status.URL = ""
	return c.Status().Patch(ctx, obj, client.RawPatch(p.Type(), body))
}

func (f *fixture) recordWrite(operation string, obj client.Object, p client.Patch) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.failWrite != nil {
		if err := f.failWrite(operation); err != nil {
			return err
		}
	}
	body, err := p.Data(obj)
	f.writes = append(f.writes, operation+" "+string(body))
	return err
}

func (f *fixture) reconcile() (ctrl.Result, error) {
	f.t.Helper()
	return f.reconciler.Reconcile(f.t.Context(), ctrl.Request{NamespacedName: key})
}

// mustReconcile returns the number of writes of one reconcile. The test fails if the reconcile returns an error or requeues.
func (f *fixture) mustReconcile() int {
	f.t.Helper()
	before := len(f.writes)
	if result, err := f.reconcile(); err != nil || !result.IsZero() {
		f.t.Fatalf("got result %+v, error %v, want neither", result, err)
	}
	return len(f.writes) - before
}

func (f *fixture) get() *widget {
	f.t.Helper()
	w := &widget{}
	if err := f.client.Get(f.t.Context(), key, w); err != nil {
		f.t.Fatal(err)
	}
	return w
}

// change updates the object as another client.
func (f *fixture) change(change func(*widget)) {
	f.t.Helper()
	w := f.get()
	change(w)
	if err := f.client.Update(f.t.Context(), w); err != nil {
		f.t.Fatal(err)
	}
}

func (f *fixture) delete() {
	f.t.Helper()
	if err := f.client.Delete(f.t.Context(), newWidget()); err != nil {
		f.t.Fatal(err)
	}
}

// events returns the events recorded since the last call.
func (f *fixture) events() []string {
	var out []string
	for {
		select {
		case e := <-f.recorder.Events:
			out = append(out, e)
		default:
			return out
		}
	}
}

// phase returns a Phase that runs a function.
func phase(name string, run func(*widget) error) Phase[*widget] {
	return Phase[*widget]{Name: name, Run: func(_ context.Context, w *widget) error { return run(w) }}
}

func set(w *widget, conditionType string, status metav1.ConditionStatus, reason string) {
	conditions.Set(w.ConditionsRef(), conditionType, status, reason, "because "+reason, w.Generation)
}

// measuringLogic returns a Logic that sets Measured and Available to True if the size is not negative, and to False otherwise.
func measuringLogic() Logic[*widget] {
	return Logic[*widget]{
		Phases: []Phase[*widget]{phase("measuring", func(w *widget) error {
			if w.Spec.Size < 0 {
				set(w, "Measured", metav1.ConditionFalse, "SizeInvalid")
			} else {
				set(w, "Measured", metav1.ConditionTrue, "Measured")
			}
			return nil
		})},
		Summary: func(w *widget) {
			if conditions.IsTrue(w.Status.Conditions, "Measured") {
				set(w, available, metav1.ConditionTrue, "Up")
			} else {
				set(w, available, metav1.ConditionFalse, "Down")
			}
		},
	}
}

// gaugeValue reads a gauge.
func gaugeValue(t interface{ Fatal(...any) }, gauge prometheus.Gauge) float64 {
	var m dto.Metric
	if err := gauge.Write(&m); err != nil {
		t.Fatal(err)
	}
	return m.GetGauge().GetValue()
}

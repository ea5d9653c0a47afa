package platform

import (
	"context"
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
	platformv1alpha1 "github.com/odh-platform/odh-platform-operator/apis/platform/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/reconciler"
)

var (
	startTime = time.Date(2026, 8, 18, 9, 0, 0, 0, time.UTC)
	served    = capability.NewSet(mlflowOperatorKind, mlflowKind)
	key       = client.ObjectKey{Name: platformv1alpha1.MLflowOperatorName}
)

// operatorFixture is the MLflowOperator controller with a fake API server. It counts live reads and writes.
type operatorFixture struct {
	*testing.T
	client     client.WithWatch
	clock      *clocktesting.FakeClock
	logic      *mlflowOperator
	reconciler reconcile.Reconciler

	reads, writes int
	conflicts     int // number of status writes that fail with a conflict
	served        capability.Set
	requestError  func(client.Object) error // returns the error of a live read, if set
}

func newOperatorFixture(t *testing.T, objects ...client.Object) *operatorFixture {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(mlflowv1.AddToScheme(scheme), platformv1alpha1.AddToScheme(scheme), corev1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	f := &operatorFixture{T: t, clock: clocktesting.NewFakeClock(startTime), served: served}
	inner := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithStatusSubresource(&platformv1alpha1.MLflowOperator{}).Build()
	f.client = inner
	cached := interceptor.NewClient(inner, interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			f.writes++
			return c.Patch(ctx, o, p, opts...)
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
			f.writes++
			if f.conflicts > 0 {
				f.conflicts--
				return apierrors.NewConflict(schema.GroupResource{Resource: "mlflowoperators"}, o.GetName(), errors.New("changed"))
			}
			return c.SubResource(sub).Patch(ctx, o, p, opts...)
		},
	})
	live := interceptor.NewClient(inner, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			f.reads++
			if f.requestError != nil {
				if err := f.requestError(o); err != nil {
					return err
				}
			}
			return c.Get(ctx, key, o, opts...)
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			f.reads++
			if f.requestError != nil {
				if err := f.requestError(nil); err != nil {
					return err
				}
			}
			return c.List(ctx, list, opts...)
		},
	})
	f.logic = &mlflowOperator{
		cached: cached, apiReader: live, clock: f.clock, served: func() capability.Set { return f.served }, release: "3.14.0", platformType: "Open Data Hub",
		versions: cached, versionConfigMap: client.ObjectKey{Namespace: "apps", Name: configMapName},
	}
	f.reconciler = reconciler.NewWith(reconciler.Options{Client: cached, Component: t.Name()}, f.logic.logic(), f.logic.conditionAccess())
	return f
}

// expectReconcile reconciles once, which must succeed without a requeue and with the given number of writes.
func (f *operatorFixture) expectReconcile(writes int) {
	f.Helper()
	f.writes = 0
	if result, err := f.reconciler.Reconcile(f.Context(), ctrl.Request{NamespacedName: key}); err != nil || !result.IsZero() {
		f.Fatalf("got result %+v, error %v", result, err)
	}
	if f.writes != writes {
		f.Errorf("%d writes, want %d", f.writes, writes)
	}
}

func (f *operatorFixture) get() *platformv1alpha1.MLflowOperator {
	f.Helper()
	m := &platformv1alpha1.MLflowOperator{}
	if err := f.client.Get(f.Context(), key, m); err != nil {
		f.Fatal(err)
	}
	return m
}

// update changes the object and the status as another client would.
func (f *operatorFixture) update(change func(*platformv1alpha1.MLflowOperator)) {
	f.Helper()
	m := f.get()
	change(m)
	status := m.Status
	if err := f.client.Update(f.Context(), m); err != nil {
		f.Fatal(err)
	}
	m.Status = status
	if err := f.client.Status().Update(f.Context(), m); err != nil {
		f.Fatal(err)
	}
}

func mlflowOperatorWith(changes ...func(*platformv1alpha1.MLflowOperator)) *platformv1alpha1.MLflowOperator {
	m := &platformv1alpha1.MLflowOperator{ObjectMeta: metav1.ObjectMeta{Name: key.Name, UID: "uid", Generation: 1}}
	m.Spec.GatewayName, m.Spec.SectionTitle = "gateway", "Section"
	for _, change := range changes {
		change(m)
	}
	return m
}

func configMap(version string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "apps", Name: configMapName, UID: "config"},
		Data:       map[string]string{versionKey: version},
	}
}

func instance() *mlflowv1.MLflow {
	return &mlflowv1.MLflow{ObjectMeta: metav1.ObjectMeta{Name: "mlflow"}}
}

func conditionOf(m *platformv1alpha1.MLflowOperator, conditionType string) platformv1alpha1.Condition {
	for _, c := range m.Status.Conditions {
		if c.Type == conditionType {
			return c
		}
	}
	return platformv1alpha1.Condition{}
}

package mlflow

import (
	"context"
	"errors"
	"slices"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/source"

	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
	platformv1alpha1 "github.com/odh-platform/odh-platform-operator/apis/platform/v1alpha1"
)

// [D32] If the component `platform` is disabled, its finalizer is removed from a terminating MLflowOperator; nothing else changes.
func TestFinalizerRemover(t *testing.T) {
	withFinalizers := func(finalizers ...string) func(*platformv1alpha1.MLflowOperator) {
		return func(m *platformv1alpha1.MLflowOperator) { m.Finalizers = finalizers }
	}
	const managed, foreign = platformv1alpha1.MLflowOperatorFinalizer, "example.com/hold"
	for name, c := range map[string]struct {
		operator *platformv1alpha1.MLflowOperator
		want     []string // the remaining finalizers
		writes   int
	}{
		"not found":                             {nil, nil, 0},
		"not terminating":                       {operatorWith(withFinalizers(managed)), []string{managed}, 0},
		"terminating, foreign finalizer too":    {operatorWith(terminatingOperator, withFinalizers(managed, foreign)), []string{foreign}, 1},
		"terminating":                           {operatorWith(terminatingOperator), nil, 1},
		"terminating, only a foreign finalizer": {operatorWith(terminatingOperator, withFinalizers(foreign)), []string{foreign}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			var objects []client.Object
			if c.operator != nil {
				objects = append(objects, c.operator)
			}
			writes := 0
			inner := newGate(t, servedCapabilities, objects...).cached.(client.WithWatch)
			r := &finalizerRemover{client: interceptor.NewClient(inner, interceptor.Funcs{
				Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
					writes++
					return c.Patch(ctx, o, p, opts...)
				},
			})}
			request := ctrl.Request{NamespacedName: client.ObjectKey{Name: "default-mlflowoperator"}}
			if result, err := r.Reconcile(t.Context(), request); err != nil || !result.IsZero() {
				t.Fatalf("got result %+v, error %v", result, err)
			}
			remaining := &platformv1alpha1.MLflowOperator{}
			err := inner.Get(t.Context(), request.NamespacedName, remaining)
			if client.IgnoreNotFound(err) != nil || writes != c.writes || !slices.Equal(remaining.Finalizers, c.want) {
				t.Errorf("error %v, %d writes, finalizers %v, want %d and %v", err, writes, remaining.Finalizers, c.writes, c.want)
			}
		})
	}
}

// A conflict or another error is returned for a retry, and a deleted object is not an error.
func TestFinalizerRemoverErrors(t *testing.T) {
	for name, c := range map[string]struct {
		err     error
		ignored bool
	}{
		"deleted":     {apierrors.NewNotFound(schema.GroupResource{Resource: "mlflowoperators"}, "x"), true},
		"conflict":    {apierrors.NewConflict(schema.GroupResource{Resource: "mlflowoperators"}, "x", errors.New("changed")), false},
		"other error": {errors.New("connection refused"), false},
	} {
		t.Run(name, func(t *testing.T) {
			inner := newGate(t, servedCapabilities, operatorWith(terminatingOperator)).cached.(client.WithWatch)
			r := &finalizerRemover{client: interceptor.NewClient(inner, interceptor.Funcs{
				Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
					return c.err
				},
			})}
			_, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Name: "default-mlflowoperator"}})
			if (err == nil) != c.ignored {
				t.Errorf("got error %v", err)
			}
		})
	}
}

// fixedFeedback is a Feedback with a constant state.
type fixedFeedback struct {
	status          metav1.ConditionStatus
	reason, message string
}

func (f fixedFeedback) State() (metav1.ConditionStatus, string, string) {
	return f.status, f.reason, f.message
}
func (fixedFeedback) Source(h handler.EventHandler) source.Source {
	return source.Channel(make(chan event.GenericEvent), h)
}

// The status of MLflow includes the condition of the controller of namespace RBAC while that controller runs. The condition does not change
// before the first result.
func TestStatusIncludesConditionOfNamespaceRBAC(t *testing.T) {
	old := "NamespaceRBACReady=True Old: old"
	for name, c := range map[string]struct {
		feedback Feedback
		want     []string
	}{
		"controller not running": {nil, nil},
		"no result yet":          {fixedFeedback{}, []string{old}},
		"result":                 {fixedFeedback{metav1.ConditionFalse, "AuthMissing", "none"}, []string{"NamespaceRBACReady=False AuthMissing: none"}},
	} {
		t.Run(name, func(t *testing.T) {
			m := &mlflowv1.MLflow{ObjectMeta: metav1.ObjectMeta{Generation: 2}}
			setCondition(m, ConditionNamespaceRBAC, metav1.ConditionTrue, "Old", "old")
			if err := reportFeedback(c.feedback)(t.Context(), m); err != nil {
				t.Fatal(err)
			}
			if got := stateOf(m); !slices.Equal(got, c.want) {
				t.Errorf("conditions %v, want %v", got, c.want)
			}
		})
	}
}

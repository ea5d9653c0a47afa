package apply

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/odh-platform/odh-platform-operator/pkg/names"
)

func TestOwnershipByLabelsAndFieldManagers(t *testing.T) {
	type responses struct{ labelled, managed, another bool }
	entry := func(operation metav1.ManagedFieldsOperationType, subresource string) []metav1.ManagedFieldsEntry {
		return []metav1.ManagedFieldsEntry{{Manager: us, Operation: operation, Subresource: subresource}}
	}
	writes := entry(metav1.ManagedFieldsOperationApply, "")
	for name, test := range map[string]struct {
		labels map[string]string
		fields []metav1.ManagedFieldsEntry
		want   responses
	}{
		"applied and labelled":               {names.Labels("mlflow"), writes, responses{true, true, false}},
		"only labelled":                      {names.Labels("mlflow"), nil, responses{true, true, false}},
		"foreign":                            {nil, nil, responses{}},
		"labels lost":                        {nil, writes, responses{false, true, false}},
		"one label lost":                     {map[string]string{names.OperatorLabel: names.OperatorName}, writes, responses{false, true, false}},
		"label overwritten with nonsense":    {map[string]string{names.ComponentLabel: "nonsense"}, writes, responses{false, true, false}},
		"written, but another component's":   {names.Labels("modelcatalog"), writes, responses{false, false, true}},
		"updated under our name":             {nil, entry(metav1.ManagedFieldsOperationUpdate, ""), responses{}},
		"status applied under our name only": {nil, entry(metav1.ManagedFieldsOperationApply, "status"), responses{}},
		"of another operator":                {map[string]string{names.OperatorLabel: "other", names.ComponentLabel: "mlflow"}, nil, responses{}},
	} {
		t.Run(name, func(t *testing.T) {
			o := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Labels: test.labels, ManagedFields: test.fields}}
			a := New(Options{Component: "mlflow", FieldOwner: us})
			got := responses{HasComponentLabels(o, "mlflow"), a.IsManaged(o), ManagedByOther(o, "mlflow")}
			if got != test.want {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
		})
	}
}

func TestManagedByPredicate(t *testing.T) {
	managed := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Labels: names.Labels("mlflow")}}
	lost, others := &corev1.Service{}, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Labels: names.Labels("platform")}}
	admits := ManagedByPredicate("mlflow")
	for name, test := range map[string]struct{ got, want bool }{
		"created":                             {admits.Create(event.CreateEvent{Object: managed}), true},
		"create of another component":         {admits.Create(event.CreateEvent{Object: others}), false},
		"changed":                             {admits.Update(event.UpdateEvent{ObjectOld: managed, ObjectNew: managed}), true},
		"label lost":                          {admits.Update(event.UpdateEvent{ObjectOld: managed, ObjectNew: lost}), true},
		"label back":                          {admits.Update(event.UpdateEvent{ObjectOld: lost, ObjectNew: managed}), true},
		"labels changed to another component": {admits.Update(event.UpdateEvent{ObjectOld: managed, ObjectNew: others}), true},
		"update of another component":         {admits.Update(event.UpdateEvent{ObjectOld: others, ObjectNew: others}), false},
		"delete":                              {admits.Delete(event.DeleteEvent{Object: managed}), true},
		"delete without labels":               {admits.Delete(event.DeleteEvent{Object: lost}), true},
	} {
		if test.got != test.want {
			t.Errorf("%s: admitted %t", name, test.got)
		}
	}
}

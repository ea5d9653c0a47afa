package apply

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/odh-platform/odh-platform-operator/pkg/names"
)

func TestOwnershipByLabelsAndFieldManagers(t *testing.T) {
	type responses struct{ labelled, managed, another bool }
	entry := func(operation metav1.ManagedFieldsOperationType, subresource string) []metav1.ManagedFieldsEntry {
		return []metav1.ManagedFieldsEntry{{Manager: us, Operation: operation, Subresource: subresource}}
	}
	applied := entry(metav1.ManagedFieldsOperationApply, "")
	for name, test := range map[string]struct {
		labels map[string]string
		fields []metav1.ManagedFieldsEntry
		want   responses
	}{
		"applied and labelled":                     {names.Labels("mlflow"), applied, responses{true, true, false}},
		"only labelled":                            {names.Labels("mlflow"), nil, responses{true, true, false}},
		"foreign":                                  {nil, nil, responses{}},
		"labels removed":                           {nil, applied, responses{false, true, false}},
		"one label removed":                        {map[string]string{names.OperatorLabel: names.OperatorName}, applied, responses{false, true, false}},
		"invalid component label":                  {map[string]string{names.ComponentLabel: "nonsense"}, applied, responses{false, true, false}},
		"applied, labels of another component":     {names.Labels("modelcatalog"), applied, responses{false, false, true}},
		"updated by our field manager":             {nil, entry(metav1.ManagedFieldsOperationUpdate, ""), responses{}},
		"only status applied by our field manager": {nil, entry(metav1.ManagedFieldsOperationApply, "status"), responses{}},
		"labels of another operator":               {map[string]string{names.OperatorLabel: "other", names.ComponentLabel: "mlflow"}, nil, responses{}},
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

package apply

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/odh-platform/odh-platform-operator/pkg/names"
)

func TestOwnershipByLabelsAndFieldManagers(t *testing.T) {
	type results struct{ hasLabels, managed, managedByOther bool }
	entry := func(operation metav1.ManagedFieldsOperationType, subresource string) []metav1.ManagedFieldsEntry {
		return []metav1.ManagedFieldsEntry{{Manager: us, Operation: operation, Subresource: subresource}}
	}
	applied := entry(metav1.ManagedFieldsOperationApply, "")
	for name, test := range map[string]struct {
		labels map[string]string
		fields []metav1.ManagedFieldsEntry
		want   results
	}{
		"applied and labelled":                     {names.Labels("mlflow"), applied, results{true, true, false}},
		"only labelled":                            {names.Labels("mlflow"), nil, results{true, true, false}},
		"foreign":                                  {nil, nil, results{}},
		"labels removed":                           {nil, applied, results{false, true, false}},
		"one label removed":                        {map[string]string{names.OperatorLabel: names.OperatorName}, applied, results{false, true, false}},
		"unknown component label":                  {map[string]string{names.ComponentLabel: "nonsense"}, applied, results{false, true, false}},
		"applied, labels of another component":     {names.Labels("modelcatalog"), applied, results{false, false, true}},
		"updated by our field manager":             {nil, entry(metav1.ManagedFieldsOperationUpdate, ""), results{}},
		"only status applied by our field manager": {nil, entry(metav1.ManagedFieldsOperationApply, "status"), results{}},
		"labels of another operator":               {map[string]string{names.OperatorLabel: "other", names.ComponentLabel: "mlflow"}, nil, results{}},
	} {
		t.Run(name, func(t *testing.T) {
			o := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Labels: test.labels, ManagedFields: test.fields}}
			a := New(Options{Component: "mlflow", FieldOwner: us})
			got := results{HasComponentLabels(o, "mlflow"), a.IsManaged(o), ManagedByOther(o, "mlflow")}
			if got != test.want {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
		})
	}
}

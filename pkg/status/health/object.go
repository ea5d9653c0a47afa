package health

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/odh-platform/odh-platform-operator/pkg/status/conditions"
)

// object reads fields that may be absent or of another type.
type object struct {
	*unstructured.Unstructured
}

// text returns a text; empty when there is none.
func (o object) text(path ...string) string {
	value, _, _ := unstructured.NestedString(o.Object, path...)
	return value
}

// flag returns a truth value; false when there is none.
func (o object) flag(path ...string) bool {
	value, _, _ := unstructured.NestedBool(o.Object, path...)
	return value
}

// number returns a whole number; zero when there is none.
func (o object) number(path ...string) int64 { return o.numberOr(0, path...) }

// numberOr returns a whole number; the given one when there is none.
func (o object) numberOr(otherwise int64, path ...string) int64 {
	if value, found, err := unstructured.NestedInt64(o.Object, path...); found && err == nil {
		return value
	}
	return otherwise
}

// list returns the elements of a list that are objects.
func (o object) list(path ...string) []object {
	value, _, _ := unstructured.NestedFieldNoCopy(o.Object, path...)
	elements, _ := value.([]any)
	var out []object
	for _, element := range elements {
		if fields, ok := element.(map[string]any); ok {
			out = append(out, object{&unstructured.Unstructured{Object: fields}})
		}
	}
	return out
}

// part returns an object within an object; one without fields when there is none.
func (o object) part(path ...string) object {
	fields := o.Object
	for _, name := range path {
		fields, _ = fields[name].(map[string]any)
	}
	return object{&unstructured.Unstructured{Object: fields}}
}

// decode reads the object as a typed one. It returns false for an object that does not fit.
func (o object) decode(into any) bool {
	return runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, into) == nil
}

// verdictOf turns a condition into a verdict of a given state.
func verdictOf(c metav1.Condition, state State) Verdict {
	return Verdict{State: state, Reason: c.Reason, Message: c.Message, Since: c.LastTransitionTime.Time}
}

// conditions returns those of the status, or below another path, in any of the shapes that are in use.
func (o object) conditions(path ...string) []metav1.Condition {
	if len(path) == 0 {
		path = []string{"status", "conditions"}
	}
	var out []metav1.Condition
	for _, c := range o.list(path...) {
		since, _ := time.Parse(time.RFC3339, c.text("lastTransitionTime"))
		if c.text("severity") == "Info" { // Knative's word for those that make nothing worse
			continue
		}
		out = append(out, metav1.Condition{
			Type: c.text("type"), Status: metav1.ConditionStatus(c.text("status")), Reason: c.text("reason"), Message: c.text("message"),
			LastTransitionTime: metav1.NewTime(since), ObservedGeneration: c.number("observedGeneration"),
		})
	}
	return out
}

// condition returns the one of a type; one without a type when there is none.
func (o object) condition(kind string) metav1.Condition {
	c, _ := conditions.Get(o.conditions(), kind)
	return c
}

// stale reports whether a condition, or the whole status, is about an older generation than the present one.
func (o object) stale(c metav1.Condition) bool {
	whole := o.number("status", "observedGeneration")
	return c.ObservedGeneration != 0 && c.ObservedGeneration < o.GetGeneration() || whole != 0 && whole < o.GetGeneration()
}

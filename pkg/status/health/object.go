package health

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
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

// number returns a whole number, and whether there is one.
func (o object) number(path ...string) (int64, bool) {
	value, found, err := unstructured.NestedInt64(o.Object, path...)
	return value, found && err == nil
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

// condition is one entry of status.conditions, in any of the shapes that are in use.
type condition struct {
	kind, status, reason, message, severity string
	since                                   time.Time
	observed                                int64
}

func (c condition) is(status metav1.ConditionStatus) bool { return c.status == string(status) }

// verdict turns a condition into one of a given state.
func (c condition) verdict(state State) Verdict {
	return Verdict{State: state, Reason: c.reason, Message: c.message, Since: c.since}
}

// conditions returns those of the status, or below another path.
func (o object) conditions(path ...string) []condition {
	if len(path) == 0 {
		path = []string{"status", "conditions"}
	}
	var out []condition
	for _, c := range o.list(path...) {
		observed, _ := c.number("observedGeneration")
		since, _ := time.Parse(time.RFC3339, c.text("lastTransitionTime"))
		out = append(out, condition{
			kind: c.text("type"), status: c.text("status"), reason: c.text("reason"), message: c.text("message"),
			severity: c.text("severity"), since: since, observed: observed,
		})
	}
	return out
}

// condition returns the one of a type; one without a type when there is none.
func (o object) condition(kind string) (condition, bool) {
	all := o.conditions()
	i := slices.IndexFunc(all, func(c condition) bool { return c.kind == kind })
	if i < 0 {
		return condition{}, false
	}
	return all[i], true
}

// stale reports whether a condition, or the whole status, is about an older generation than the present one.
func (o object) stale(c condition) bool {
	whole, _ := o.number("status", "observedGeneration")
	return c.observed != 0 && c.observed < o.GetGeneration() || whole != 0 && whole < o.GetGeneration()
}

package singleton

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// parseText returns the value of the key k, or "" without an object.
func parseText(u *unstructured.Unstructured) string {
	if u == nil {
		return ""
	}
	text, _, _ := unstructured.NestedString(u.Object, "data", "k")
	return text
}

// While the API is served, a value is unknown until the object is read. Listeners are notified only of changes. The value is reset when the
// API is removed.
func TestValue(t *testing.T) {
	v := NewValue(Options{Name: "settings"}, Unknown, parseText)
	notified := 0
	v.Subscribe(t.Context(), func(string) { notified++ })
	expect := func(step, want string, known bool, calls int) {
		t.Helper()
		if got, ok := v.Current(); got != want || ok != known || notified != calls {
			t.Errorf("%s: got %q, known %t, %d calls; want %q, %t, %d", step, got, ok, notified, want, known, calls)
		}
		notified = 0
	}
	expect("not served", "", true, 0)
	v.OnUpdate(object("settings", "early"))
	expect("update before the API is served", "", true, 0)
	v.SetServed(true)
	expect("served", "", false, 0)
	v.OnUpdate(nil)
	expect("object does not exist", "", true, 1)
	v.OnUpdate(object("settings", "1"))
	v.OnUpdate(object("settings", "1"))
	expect("object created", "1", true, 1)
	v.SetServed(true)
	expect("served again without a change", "1", true, 0)
	v.SetServed(false)
	v.OnUpdate(object("settings", "late"))
	expect("API removed", "", true, 1)
	v.SetServed(true)
	expect("API served again", "", false, 0)
}

func TestUnreadableValue(t *testing.T) {
	for unreadable, want := range map[Unreadable]struct {
		known bool
		later string
	}{Unknown: {false, "1"}, Absent: {true, ""}, AbsentUnlessKnown: {true, "1"}} {
		v := NewValue(Options{Name: "settings"}, unreadable, parseText)
		v.SetServed(true)
		v.OnUnavailable()
		if got, known := v.Current(); got != "" || known != want.known {
			t.Errorf("%d, not read before: %q, known %v", unreadable, got, known)
		}
		v.OnUpdate(object("settings", "1"))
		v.OnUnavailable()
		if got, known := v.Current(); got != want.later || !known {
			t.Errorf("%d, read before: %q, known %v", unreadable, got, known)
		}
	}
}

package nested

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var object = map[string]any{
	"text": "t", "number": int64(5), "null": nil,
	"list": []any{map[string]any{"name": "a", "value": "1"}, "text", map[string]any{"name": "b"}, map[string]any{"name": "a", "value": "2"}},
}

func TestAt(t *testing.T) {
	for _, test := range []struct {
		path []string
		want any
	}{
		{nil, object}, {[]string{"text"}, "t"}, {[]string{"null"}, nil}, {[]string{"absent", "x"}, nil}, {[]string{"text", "x"}, nil},
		{[]string{"list", "0", "name"}, "a"}, {[]string{"list", "4"}, nil}, {[]string{"list", "-1"}, nil}, {[]string{"list", "x"}, nil},
	} {
		if diff := cmp.Diff(test.want, At(object, test.path...)); diff != "" {
			t.Errorf("At(%q) differs (-want +got):\n%s", test.path, diff)
		}
	}
}

// Values of other types count as absent, and a path may contain list indexes.
func TestTypedValues(t *testing.T) {
	for name, test := range map[string]struct{ got, want any }{
		"string":              {String(object, "text"), "t"},
		"string of a number":  {String(object, "number"), ""},
		"list":                {len(List(object, "list")), 4},
		"list of a string":    {List(object, "text"), []any(nil)},
		"map of a list":       {Map(object, "list"), map[string]any(nil)},
		"map by a list index": {Map(object, "list", "2"), map[string]any{"name": "b"}},
	} {
		if diff := cmp.Diff(test.want, test.got); diff != "" {
			t.Errorf("%s differs (-want +got):\n%s", name, diff)
		}
	}
}

func TestListsAndPick(t *testing.T) {
	list := List(object, "list")
	if got := Indexes(list, "a"); !slices.Equal(got, []int{0, 3}) {
		t.Errorf("indexes %v, want %v", got, []int{0, 3})
	}
	if ByName(list, "a")["value"] != "1" || ByName(list, "c") != nil {
		t.Errorf("ByName returned %v and %v", ByName(list, "a"), ByName(list, "c"))
	}
	if diff := cmp.Diff(map[string]any{"text": "t", "null": nil}, Pick(object, "text", "null", "absent")); diff != "" {
		t.Errorf("Pick differs (-want +got):\n%s", diff)
	}
}

// A field of an unexpected type or name does not affect other fields.
func TestDecode(t *testing.T) {
	type known struct {
		A string          `json:"a"`
		B *bool           `json:"b"`
		C struct{ D int } `json:"c"`
		E string          `json:"e"`
	}
	got := Decode[known](map[string]any{"a": int64(1), "b": "x", "c": []any{}, "e": "text", "f": true})
	if got.A != "" || got.B != nil && *got.B || got.E != "text" {
		t.Errorf("got %+v, want only the values of the declared types", got)
	}
}

package raycluster

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	author "github.com/odh-platform/odh-platform-operator/pkg/admission"
)

func TestEdits(t *testing.T) {
	for name, test := range map[string]struct {
		before string
		edit   func(*edit)
		after  string
		patch  []author.Operation
	}{
		"a field": {
			"{a: {}}", func(e *edit) { e.set(place{"a", "b"}, "x") },
			"{a: {b: x}}", []author.Operation{{Operation: "add", Path: "/a/b", Value: "x"}},
		},
		"a field that is there": {
			"{a: {b: y}}", func(e *edit) { e.set(place{"a", "b"}, "x") },
			"{a: {b: x}}", []author.Operation{{Operation: "add", Path: "/a/b", Value: "x"}},
		},
		"a field and what leads to it": {
			"{}", func(e *edit) { e.set(place{"a", "b", "c"}, "x") },
			"{a: {b: {c: x}}}", []author.Operation{{Operation: "add", Path: "/a", Value: map[string]any{"b": map[string]any{"c": "x"}}}},
		},
		"a field below null": {
			"{a: {b: null}}", func(e *edit) { e.set(place{"a", "b", "c"}, "x") },
			"{a: {b: {c: x}}}", []author.Operation{{Operation: "add", Path: "/a/b", Value: map[string]any{"c": "x"}}},
		},
		"a field in an element": {
			"{a: [{}, {}]}", func(e *edit) { e.set(place{"a", "1", "b"}, "x") },
			"{a: [{}, {b: x}]}", []author.Operation{{Operation: "add", Path: "/a/1/b", Value: "x"}},
		},
		"a field of something that has none": {"{a: text}", func(e *edit) { e.set(place{"a", "b"}, "x") }, "{a: text}", nil},
		"a field of an element that is not there": {
			"{a: [{}]}", func(e *edit) { e.set(place{"a", "7", "b"}, "x") }, "{a: [{}]}", nil,
		},
		"a key with signs of its own": {
			"{a: {}}", func(e *edit) { e.set(place{"a", "b/c~d"}, "x") },
			"{a: {b/c~d: x}}", []author.Operation{{Operation: "add", Path: "/a/b~1c~0d", Value: "x"}},
		},
		"the first element": {
			"{}", func(e *edit) { e.add(place{"a"}, element{"name": "x"}) },
			"{a: [{name: x}]}", []author.Operation{{Operation: "add", Path: "/a", Value: []any{element{"name": "x"}}}},
		},
		"the first element of an empty list": {
			"{a: []}", func(e *edit) { e.add(place{"a"}, element{"name": "x"}) },
			"{a: [{name: x}]}", []author.Operation{{Operation: "add", Path: "/a", Value: []any{element{"name": "x"}}}},
		},
		"a further element": {
			"{a: [1]}", func(e *edit) { e.add(place{"a"}, element{"name": "x"}) },
			"{a: [1, {name: x}]}", []author.Operation{{Operation: "add", Path: "/a/-", Value: element{"name": "x"}}},
		},
		"an element less": {
			"{a: [{name: x}, {name: y}]}", func(e *edit) { e.drop(place{"a"}, 0) },
			"{a: [{name: y}]}", []author.Operation{{Operation: "remove", Path: "/a/0", Value: nil}},
		},
		"the last element": {
			"{a: [{name: x}]}", func(e *edit) { e.drop(place{"a"}, 0) }, "{}", []author.Operation{{Operation: "remove", Path: "/a", Value: nil}},
		},
		"a field less":                   {"{a: {b: x, c: y}}", func(e *edit) { e.remove(place{"a", "b"}) }, "{a: {c: y}}", []author.Operation{{Operation: "remove", Path: "/a/b", Value: nil}}},
		"a field less that is not there": {"{a: {}}", func(e *edit) { e.remove(place{"a", "b"}) }, "{a: {}}", nil},
		"an element of a name": {
			"{a: [{name: x}]}", func(e *edit) { e.upsert(place{"a"}, element{"name": "x", "value": "1"}) },
			"{a: [{name: x, value: '1'}]}", []author.Operation{{Operation: "replace", Path: "/a/0", Value: element{"name": "x", "value": "1"}}},
		},
		"an element that is there": {
			"{a: [{name: x, readOnly: false}]}", func(e *edit) { e.upsert(place{"a"}, element{"name": "x"}) }, "{a: [{name: x, readOnly: false}]}", nil,
		},
		"several of a name": {
			"{a: [{name: x}, {name: y}, {name: x, value: '2'}, {name: x}]}", func(e *edit) { e.upsert(place{"a"}, element{"name": "x"}) },
			"{a: [{name: x}, {name: y}]}", []author.Operation{{Operation: "remove", Path: "/a/3", Value: nil}, {Operation: "remove", Path: "/a/2", Value: nil}},
		},
		"a container with resources of its user": {
			"{a: [{name: x, image: old, resources: {limits: {cpu: 1}}, imagePullPolicy: Always, command: [sh]}]}",
			func(e *edit) {
				e.upsertContainer(place{"a"}, element{"name": "x", "image": "new", "resources": element{"limits": element{"cpu": "2"}}})
			},
			"{a: [{name: x, image: new, resources: {limits: {cpu: 1}}, imagePullPolicy: Always}]}",
			[]author.Operation{{Operation: "replace", Path: "/a/0", Value: element{"name": "x", "image": "new", "imagePullPolicy": "Always", "resources": element{"limits": element{"cpu": int64(1)}}}}},
		},
		"a container without resources": {
			"{a: [{name: x, resources: {}}]}", func(e *edit) {
				e.upsertContainer(place{"a"}, element{"name": "x", "resources": element{"limits": element{}, "requests": element{"cpu": "1"}}})
			},
			"{a: [{name: x, resources: {limits: {}, requests: {cpu: '1'}}}]}",
			[]author.Operation{{Operation: "replace", Path: "/a/0", Value: element{"name": "x", "resources": element{"limits": element{}, "requests": element{"cpu": "1"}}}}},
		},
		"those that are ours": {
			"{a: [{name: x}, text, {name: y}, {name: x}]}", func(e *edit) { e.dropWhere(place{"a"}, func(f element) bool { return f["name"] == "x" }) },
			"{a: [text, {name: y}]}", []author.Operation{{Operation: "remove", Path: "/a/3", Value: nil}, {Operation: "remove", Path: "/a/0", Value: nil}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			before := parse(t, test.before)
			e := editOf(before)
			test.edit(e)
			if diff := cmp.Diff(parse(t, test.after), e.object); diff != "" {
				t.Errorf("object (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.patch, e.patch); diff != "" {
				t.Errorf("patch (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(parse(t, test.before), before); diff != "" {
				t.Errorf("what was given changed:\n%s", diff)
			}
		})
	}
}

// Later edits do not reach into what a patch has said already.
func TestPatchesKeepWhatTheySaid(t *testing.T) {
	e := editOf(nil)
	e.set(place{"a"}, map[string]any{"b": "first"})
	e.set(place{"a", "b"}, "second")
	want := []author.Operation{{Operation: "add", Path: "/a", Value: map[string]any{"b": "first"}}, {Operation: "add", Path: "/a/b", Value: "second"}}
	if diff := cmp.Diff(want, e.patch); diff != "" {
		t.Error(diff)
	}
}

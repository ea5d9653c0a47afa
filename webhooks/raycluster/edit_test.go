package raycluster

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestEdits(t *testing.T) {
	for name, test := range map[string]struct {
		before string
		edit   func(*edit)
		after  string
	}{
		"a field": {
			"{a: {}}", func(e *edit) { e.set(place{"a", "b"}, "x") },
			"{a: {b: x}}",
		},
		"a field that is there": {
			"{a: {b: y}}", func(e *edit) { e.set(place{"a", "b"}, "x") },
			"{a: {b: x}}",
		},
		"a field and what leads to it": {
			"{}", func(e *edit) { e.set(place{"a", "b", "c"}, "x") },
			"{a: {b: {c: x}}}",
		},
		"a field below null": {
			"{a: {b: null}}", func(e *edit) { e.set(place{"a", "b", "c"}, "x") },
			"{a: {b: {c: x}}}",
		},
		"a field in an element": {
			"{a: [{}, {}]}", func(e *edit) { e.set(place{"a", "1", "b"}, "x") },
			"{a: [{}, {b: x}]}",
		},
		"a field of something that has none": {"{a: text}", func(e *edit) { e.set(place{"a", "b"}, "x") }, "{a: text}"},
		"a field of an element that is not there": {
			"{a: [{}]}", func(e *edit) { e.set(place{"a", "7", "b"}, "x") }, "{a: [{}]}",
		},
		"a key with signs of its own": {
			"{a: {}}", func(e *edit) { e.set(place{"a", "b/c~d"}, "x") },
			"{a: {b/c~d: x}}",
		},
		"the first element": {
			"{}", func(e *edit) { e.add(place{"a"}, element{"name": "x"}) },
			"{a: [{name: x}]}",
		},
		"the first element of an empty list": {
			"{a: []}", func(e *edit) { e.add(place{"a"}, element{"name": "x"}) },
			"{a: [{name: x}]}",
		},
		"a further element": {
			"{a: [1]}", func(e *edit) { e.add(place{"a"}, element{"name": "x"}) },
			"{a: [1, {name: x}]}",
		},
		"an element less": {
			"{a: [{name: x}, {name: y}]}", func(e *edit) { e.drop(place{"a"}, 0) },
			"{a: [{name: y}]}",
		},
		"the last element": {
			"{a: [{name: x}]}", func(e *edit) { e.drop(place{"a"}, 0) }, "{}",
		},
		"a field less":                   {"{a: {b: x, c: y}}", func(e *edit) { e.remove(place{"a", "b"}) }, "{a: {c: y}}"},
		"a field less that is not there": {"{a: {}}", func(e *edit) { e.remove(place{"a", "b"}) }, "{a: {}}"},
		"an element of a name": {
			"{a: [{name: x}]}", func(e *edit) { e.upsert(place{"a"}, element{"name": "x", "value": "1"}) },
			"{a: [{name: x, value: '1'}]}",
		},
		"an element that is there": {
			"{a: [{name: x, readOnly: false}]}", func(e *edit) { e.upsert(place{"a"}, element{"name": "x"}) }, "{a: [{name: x, readOnly: false}]}",
		},
		"several of a name": {
			"{a: [{name: x}, {name: y}, {name: x, value: '2'}, {name: x}]}", func(e *edit) { e.upsert(place{"a"}, element{"name": "x"}) },
			"{a: [{name: x}, {name: y}]}",
		},
		"a container with resources of its user": {
			"{a: [{name: x, image: old, resources: {limits: {cpu: 1}}, imagePullPolicy: Always, command: [sh]}]}",
			func(e *edit) {
				e.upsertContainer(place{"a"}, element{"name": "x", "image": "new", "resources": element{"limits": element{"cpu": "2"}}})
			},
			"{a: [{name: x, image: new, resources: {limits: {cpu: 1}}, imagePullPolicy: Always}]}",
		},
		"a container without resources": {
			"{a: [{name: x, resources: {}}]}", func(e *edit) {
				e.upsertContainer(place{"a"}, element{"name": "x", "resources": element{"limits": element{}, "requests": element{"cpu": "1"}}})
			},
			"{a: [{name: x, resources: {limits: {}, requests: {cpu: '1'}}}]}",
		},
		"those that are ours": {
			"{a: [{name: x}, text, {name: y}, {name: x}]}", func(e *edit) { e.dropWhere(place{"a"}, func(f element) bool { return f["name"] == "x" }) },
			"{a: [text, {name: y}]}",
		},
	} {
		t.Run(name, func(t *testing.T) {
			before := parse(t, test.before)
			e := editOf(before)
			test.edit(e)
			if diff := cmp.Diff(parse(t, test.after), e.object); diff != "" {
				t.Errorf("object (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(parse(t, test.before), before); diff != "" {
				t.Errorf("what was given changed:\n%s", diff)
			}
		})
	}
}

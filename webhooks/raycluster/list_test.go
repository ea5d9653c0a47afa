package raycluster

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestEditKeepsOtherListElements(t *testing.T) {
	for name, test := range map[string]struct {
		before string
		edit   func(map[string]any)
		after  string
	}{
		"upsert adds the list": {
			"{}", func(o map[string]any) { upsert(o, "a", element{"name": "x"}) },
			"{a: [{name: x}]}",
		},
		"upsert adds to an empty list": {
			"{a: []}", func(o map[string]any) { upsert(o, "a", element{"name": "x"}) },
			"{a: [{name: x}]}",
		},
		"upsert appends": {
			"{a: [1]}", func(o map[string]any) { upsert(o, "a", element{"name": "x"}) },
			"{a: [1, {name: x}]}",
		},
		"dropElements removes an element": {
			"{a: [{name: x}, {name: y}]}", func(o map[string]any) { dropElements(o, "a", func(f element) bool { return f["name"] == "x" }) },
			"{a: [{name: y}]}",
		},
		"dropElements removes a list that becomes empty": {
			"{a: [{name: x}]}", func(o map[string]any) { dropElements(o, "a", func(f element) bool { return f["name"] == "x" }) }, "{}",
		},
		"upsert replaces an element of the same name": {
			"{a: [{name: x}]}", func(o map[string]any) { upsert(o, "a", element{"name": "x", "value": "1"}) },
			"{a: [{name: x, value: '1'}]}",
		},
		"upsert keeps an equal element with a default value": {
			"{a: [{name: x, readOnly: false}]}", func(o map[string]any) { upsert(o, "a", element{"name": "x"}) }, "{a: [{name: x, readOnly: false}]}",
		},
		"upsert removes duplicates": {
			"{a: [{name: x}, {name: y}, {name: x, value: '2'}, {name: x}]}", func(o map[string]any) { upsert(o, "a", element{"name": "x"}) },
			"{a: [{name: x}, {name: y}]}",
		},
		"upsertContainer keeps resources of the user": {
			"{a: [{name: x, image: old, resources: {limits: {cpu: 1}}, imagePullPolicy: Always, command: [sh]}]}",
			func(o map[string]any) {
				upsertContainer(o, "a", element{"name": "x", "image": "new", "resources": element{"limits": element{"cpu": "2"}}})
			},
			"{a: [{name: x, image: new, resources: {limits: {cpu: 1}}, imagePullPolicy: Always}]}",
		},
		"upsertContainer sets missing resources": {
			"{a: [{name: x, resources: {}}]}", func(o map[string]any) {
				upsertContainer(o, "a", element{"name": "x", "resources": element{"limits": element{}, "requests": element{"cpu": "1"}}})
			},
			"{a: [{name: x, resources: {limits: {}, requests: {cpu: '1'}}}]}",
		},
		"dropElements keeps malformed elements": {
			"{a: [{name: x}, text, {name: y}, {name: x}]}", func(o map[string]any) { dropElements(o, "a", func(f element) bool { return f["name"] == "x" }) },
			"{a: [text, {name: y}]}",
		},
	} {
		t.Run(name, func(t *testing.T) {
			object := parse(t, test.before)
			test.edit(object)
			if diff := cmp.Diff(parse(t, test.after), object); diff != "" {
				t.Errorf("object (-want +got):\n%s", diff)
			}
		})
	}
}

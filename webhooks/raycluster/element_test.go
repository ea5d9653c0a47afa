package raycluster

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestEqualElements(t *testing.T) {
	for name, test := range map[string]struct {
		a, b string
		want bool
	}{
		"empty objects":              {"{}", "{}", true},
		"null and absent":            {"{a: null}", "{}", true},
		"empty and absent":           {"{a: {}, b: [], c: ''}", "{}", true},
		"nested empty values":        {"{a: {b: {c: []}}}", "{}", true},
		"false and absent":           {"{allowPrivilegeEscalation: false}", "{}", false},
		"zero and absent":            {"{runAsUser: 0}", "{}", false},
		"false as default":           {"{readOnly: false, optional: false}", "{}", true},
		"true instead of default":    {"{readOnly: true}", "{}", false},
		"default protocol":           {"{ports: [{containerPort: 1, protocol: TCP}]}", "{ports: [{containerPort: 1}]}", true},
		"other protocol":             {"{ports: [{containerPort: 1, protocol: UDP}]}", "{ports: [{containerPort: 1}]}", false},
		"default mode":               {"{secret: {secretName: s, defaultMode: 420}}", "{secret: {secretName: s}}", true},
		"other mode":                 {"{secret: {secretName: s, defaultMode: 511}}", "{secret: {secretName: s}}", false},
		"default apiVersion":         {"{fieldRef: {apiVersion: v1, fieldPath: p}}", "{fieldRef: {fieldPath: p}}", true},
		"defaults of the API server": {"{terminationMessagePath: /dev/termination-log, terminationMessagePolicy: File}", "{}", true},
		"other path":                 {"{terminationMessagePath: /etc/passwd}", "{}", false},
		"more elements":              {"{args: [a, b]}", "{args: [a]}", false},
		"empty list element":         {"{args: [a, '']}", "{args: [a]}", false},
		"other order":                {"{args: [a, b]}", "{args: [b, a]}", false},
		"value of another type for a field with a default": {"{protocol: {a: b}}", "{}", false},
	} {
		if got := equalElements(parse(t, test.a), parse(t, test.b)); got != test.want {
			t.Errorf("%s: got %t, want %t", name, got, test.want)
		}
		if got := equalElements(parse(t, test.b), parse(t, test.a)); got != test.want {
			t.Errorf("%s, arguments swapped: got %t, want %t", name, got, test.want)
		}
	}
}

func TestEqualContainers(t *testing.T) {
	container := parse(t, "{name: a, image: i, args: [x]}")
	for text, want := range map[string]bool{
		"{name: a, image: i, args: [x]}": true,
		"{name: a, image: i, args: [x], resources: {limits: {cpu: 1}}, imagePullPolicy: Never}": true,
		"{name: a, image: j, args: [x]}":                                    false,
		"{name: a, image: i, args: [x], tty: true}":                         false,
		"{name: a, image: i, args: [x], envFrom: [{secretRef: {name: s}}]}": false,
		"{name: a, image: i, args: [x], unknownTomorrow: 1}":                false,
	} {
		if got := equalContainers(container, parse(t, text)); got != want {
			t.Errorf("%s: got %t, want %t", text, got, want)
		}
	}
	if !equalContainers(container, parse(t, "{name: a, image: j, args: [x]}"), "image") || equalContainers(container, parse(t, "{name: a, image: j}"), "image") {
		t.Error("want equalContainers to ignore only the image")
	}
	if diff := cmp.Diff(parse(t, "{name: a, image: i, args: [x]}"), container); diff != "" {
		t.Error("the comparison modified the container")
	}
}

// Large integers keep their precision.
func TestElementOf(t *testing.T) {
	type configuration struct {
		Number int64  `json:"number"`
		Text   string `json:"text,omitempty"`
	}
	if diff := cmp.Diff(element{"number": int64(math.MaxInt64)}, elementOf(&configuration{Number: math.MaxInt64})); diff != "" {
		t.Error(diff)
	}
}

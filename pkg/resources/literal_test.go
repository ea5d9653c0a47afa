package resources

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestLiteral(t *testing.T) {
	for name, c := range map[string]struct {
		namespace string
		fields    map[string]any
		want      string
	}{
		"namespaced": {"ns", map[string]any{"spec": map[string]any{"port": int64(8443)}},
			`{"apiVersion":"example.com/v1","kind":"Thing","metadata":{"labels":{"app":"a"},"name":"a","namespace":"ns"},"spec":{"port":8443}}`},
		"of the cluster, without a spec": {"", nil,
			`{"apiVersion":"example.com/v1","kind":"Thing","metadata":{"labels":{"app":"a"},"name":"a"}}`},
	} {
		t.Run(name, func(t *testing.T) {
			text, err := json.Marshal(Literal("example.com/v1", "Thing", "a", c.namespace, map[string]string{"app": "a"}, c.fields))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, string(text)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestLiteralKeepsItsInput(t *testing.T) {
	fields := map[string]any{"spec": map[string]any{}}
	Literal("v1", "Thing", "a", "ns", nil, fields)
	if diff := cmp.Diff(map[string]any{"spec": map[string]any{}}, fields); diff != "" {
		t.Errorf("the fields were changed:\n%s", diff)
	}
}

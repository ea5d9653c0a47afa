package settings

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func entries(pairs ...string) map[string][]byte {
	data := map[string][]byte{}
	for i := 0; i < len(pairs); i += 2 {
		data[pairs[i]] = []byte(pairs[i+1])
	}
	return data
}

// [modelmesh-93] Claims of storage entries are returned; entries of other types are ignored [M39].
func TestStorageClaims(t *testing.T) {
	for name, tc := range map[string]struct {
		data    map[string][]byte
		claims  []string
		notices []string // a substring of each
	}{
		"no Secret":                    {nil, nil, nil},
		"no claims":                    {entries("localMinIO", `{"type":"s3","bucket":"b"}`), nil, nil},
		"claims are sorted":            {entries("a", `{"type":"pvc","name":"z"}`, "b", `{"type":"pvc","name":"m.n"}`), []string{"m.n", "z"}, nil},
		"duplicate claim":              {entries("a", `{"type":"pvc","name":"z"}`, "b", `{"name":"z","type":"pvc"}`), []string{"z"}, nil},
		"entries do not share values":  {entries("a", `{"type":"pvc","name":"first"}`, "b", `{"name":"second"}`, "c", `{"type":"pvc"}`), []string{"first"}, []string{"c is ignored"}},
		"fields that are not strings":  {entries("web", `{"type":"http","url":"u","headers":{"a":"b"}}`, "vol", `{"type":"pvc","name":"v","n":1,"l":[null]}`), []string{"v"}, nil},
		"type or name is not a string": {entries("x", `{"type":["pvc"],"name":"v"}`, "y", `{"type":"pvc","name":7}`), nil, []string{"y is ignored: it is of type pvc and names no claim"}},
		"invalid JSON":                 {entries("x", `secret-value`, "vol", `{"type":"pvc","name":"v"}`), []string{"v"}, []string{"x is ignored: it must be a JSON object"}},
		"JSON that is not an object":   {entries("a", `null`, "b", `[]`, "c", `"s"`, "d", ""), nil, []string{"a is", "b is", "c is", "d is"}},
		"invalid name of a claim":      {entries("x", `{"type":"pvc","name":"../etc"}`, "y", `{"type":"pvc","name":"A"}`), nil, []string{"x is ignored: its name must be that", "y is"}},
		"type or key in another case":  {entries("x", `{"type":"PVC","name":"v"}`, "y", `{"Type":"pvc","name":"v"}`), nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			claims, notices := StorageClaims(tc.data)
			if !slices.Equal(claims, tc.claims) || len(notices) != len(tc.notices) {
				t.Fatalf("got claims %q and notices %q, want %q and %q", claims, notices, tc.claims, tc.notices)
			}
			for i, part := range tc.notices {
				if !strings.Contains(notices[i], part) {
					t.Errorf("got notice %q, want it to contain %q", notices[i], part)
				}
			}
		})
	}
}

// Notices contain no values of the Secret, and entries do not affect each other.
func TestStorageEntriesAreIndependent(t *testing.T) {
	const secret = "pa55word"
	rapid.Check(t, func(t *rapid.T) {
		invalid := rapid.SampledFrom([]string{secret, `{"a":` + secret, `["` + secret + `"]`, `{"type":"pvc","name":"` + strings.ToUpper(secret) + `_"}`,
			`{"type":"pvc","secret":"` + secret + `"}`, `"` + secret + `"`}).Draw(t, "invalid entry")
		data := entries("valid", `{"type":"pvc","name":"v"}`, rapid.StringMatching(`[a-z]{1,8}\.x`).Draw(t, "key"), invalid)
		claims, notices := StorageClaims(data)
		if !slices.Equal(claims, []string{"v"}) || len(notices) != 1 || strings.Contains(strings.ToLower(notices[0]), secret) {
			t.Fatalf("got claims %q and notices %q, want claim v and one notice without the value", claims, notices)
		}
	})
}

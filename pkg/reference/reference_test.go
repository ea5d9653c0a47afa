package reference

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestMerge(t *testing.T) {
	cases := map[string]struct{ in, want []Reference }{
		"no references": {in: nil, want: []Reference{}},
		"merges keys of the same object, sorted and without duplicates": {
			in:   []Reference{{Kind: Secret, Name: "db", Keys: []string{"uri", "a"}}, {Kind: Secret, Name: "db", Keys: []string{"uri"}}},
			want: []Reference{{Kind: Secret, Name: "db", Keys: []string{"a", "uri"}}},
		},
		"keeps a reference to all keys": {
			in:   []Reference{{Kind: Secret, Name: "db", Keys: []string{"uri"}}, {Kind: Secret, Name: "db"}},
			want: []Reference{{Kind: Secret, Name: "db"}},
		},
		"is optional only if all references are optional": {
			in:   []Reference{{Kind: ConfigMap, Name: "c", Optional: true}, {Kind: ConfigMap, Name: "c"}},
			want: []Reference{{Kind: ConfigMap, Name: "c"}},
		},
		"keeps a Secret and a ConfigMap of the same name, sorted by kind and name": {
			in:   []Reference{{Kind: Secret, Name: "x"}, {Kind: ConfigMap, Name: "x"}, {Kind: ConfigMap, Name: "a"}},
			want: []Reference{{Kind: ConfigMap, Name: "a"}, {Kind: ConfigMap, Name: "x"}, {Kind: Secret, Name: "x"}},
		},
		"drops references without a name": {in: []Reference{{Kind: Secret}}, want: []Reference{}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, Merge(c.in)); diff != "" {
				t.Errorf("Merge() differs (-want +got):\n%s", diff)
			}
		})
	}
}

func TestMergeDoesNotModifyInput(t *testing.T) {
	in := []Reference{{Kind: Secret, Name: "db", Keys: []string{"z", "a"}}, {Kind: Secret, Name: "db", Keys: []string{"b"}}}
	Merge(in)
	if diff := cmp.Diff([]string{"z", "a"}, in[0].Keys); diff != "" {
		t.Errorf("Merge() changed its input (-want +got):\n%s", diff)
	}
}

func TestMissingStringNamesObjectKeyAndFix(t *testing.T) {
	for want, m := range map[string]Missing{
		"Secret db does not exist; create it":    {Reference: Reference{Kind: Secret, Name: "db"}},
		"ConfigMap ca has no key ca.crt; add it": {Reference: Reference{Kind: ConfigMap, Name: "ca"}, Key: "ca.crt"},
	} {
		if got := m.String(); got != want {
			t.Errorf("String() = %q, want %q", got, want)
		}
	}
}

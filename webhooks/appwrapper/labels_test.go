package appwrapper

import (
	"encoding/json"
	"maps"
	"strings"
	"testing"

	jsonpatchv5 "github.com/evanphx/json-patch/v5"
	"github.com/google/go-cmp/cmp"
	"gomodules.xyz/jsonpatch/v2"
	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// [D32] Names and UIDs of users are converted to label values.
func TestSanitize(t *testing.T) {
	for given, want := range map[string]string{
		"":                                "",
		"alice":                           "alice",
		"system:serviceaccount:ns:sa":     "system_serviceaccount_ns_sa",
		"alice@example.org":               "alice_example.org",
		"-alice-":                         "alice",
		"...":                             "",
		"é":                               "",
		"aéb":                             "a_b",
		"a b\tc":                          "a_b_c",
		"A-b_c.9":                         "A-b_c.9",
		strings.Repeat("a", 70):           strings.Repeat("a", 63),
		strings.Repeat("a", 62) + ":b":    strings.Repeat("a", 62),
		strings.Repeat("a", 62) + "éb":    strings.Repeat("a", 62), // truncated within the two bytes of é
		"\xff\xfe" + "a":                  "a",
		"8f7f1b3c-1111-2222-3333-4444":    "8f7f1b3c-1111-2222-3333-4444",
		"cn=alice,ou=people,dc=example":   "cn_alice_ou_people_dc_example",
		"https://issuer.example.org#1234": "https___issuer.example.org_1234",
	} {
		if got := Sanitize(given); got != want {
			t.Errorf("%q: got %q, want %q", given, got, want)
		}
	}
}

func FuzzSanitize(f *testing.F) {
	f.Add("system:serviceaccount:ns:sa")
	f.Add(strings.Repeat("é", 40))
	f.Fuzz(func(t *testing.T, name string) {
		got := Sanitize(name)
		if problems := validation.IsValidLabelValue(got); len(problems) > 0 {
			t.Errorf("%q: got %q, want a valid label value: %v", name, got, problems)
		}
		if Sanitize(got) != got {
			t.Errorf("%q: got %q, want it unchanged by another Sanitize", name, got)
		}
	})
}

// applyPatch returns the object after a patch.
func applyPatch(t *testing.T, raw []byte, operations []jsonpatch.Operation) map[string]any {
	t.Helper()
	encoded, err := json.Marshal(operations)
	if err != nil {
		t.Fatal(err)
	}
	patch, err := jsonpatchv5.DecodePatch(encoded)
	if err != nil {
		t.Fatal(err)
	}
	result, err := patch.Apply(raw)
	if err != nil {
		t.Fatal(err)
	}
	var object map[string]any
	if err := json.Unmarshal(result, &object); err != nil {
		t.Fatal(err)
	}
	return object
}

// [appwrapper-26] [appwrapper-27] The patch sets the creator labels, and the default queue if there is no queue label.
func TestQueueAndUserLabelsAreSet(t *testing.T) {
	const user, id, queue = "workload.codeflare.dev/user", "workload.codeflare.dev/userid", "kueue.x-k8s.io/queue-name"
	userLabels := map[string]any{user: "alice_example.org", id: "u_1"}
	withUserLabels := func(more map[string]any) map[string]any {
		all := maps.Clone(userLabels)
		maps.Copy(all, more)
		return all
	}
	for name, tc := range map[string]struct {
		raw, queue string
		want       map[string]any
		operations int
	}{
		"no labels, no default queue":         {`{"metadata":{"name":"a"}}`, "", userLabels, 1},
		"no labels":                           {`{"metadata":{"name":"a"}}`, "system-default-queue", withUserLabels(map[string]any{queue: "system-default-queue"}), 1},
		"null labels":                         {`{"metadata":{"labels":null}}`, "q", withUserLabels(map[string]any{queue: "q"}), 1},
		"empty labels":                        {`{"metadata":{"labels":{}}}`, "q", withUserLabels(map[string]any{queue: "q"}), 1},
		"queue label":                         {`{"metadata":{"labels":{"kueue.x-k8s.io/queue-name":"own","x":"y"}}}`, "q", withUserLabels(map[string]any{queue: "own", "x": "y"}), 1},
		"empty queue label":                   {`{"metadata":{"labels":{"kueue.x-k8s.io/queue-name":""}}}`, "q", withUserLabels(map[string]any{queue: ""}), 1},
		"other creator labels":                {`{"metadata":{"labels":{"workload.codeflare.dev/user":"bad","workload.codeflare.dev/userid":"bad"}}}`, "", userLabels, 1},
		"correct creator labels":              {`{"metadata":{"labels":{"workload.codeflare.dev/user":"alice_example.org","workload.codeflare.dev/userid":"u_1"}}}`, "", userLabels, 0},
		"unknown fields":                      {`{"future":1,"metadata":{"labels":{"a":"b"},"future":2},"spec":{"future":3}}`, "", withUserLabels(map[string]any{"a": "b"}), 1},
		"label key with an escaped character": {`{"metadata":{"labels":{"a~b":"c"}}}`, "", withUserLabels(map[string]any{"a~b": "c"}), 1},
	} {
		t.Run(name, func(t *testing.T) {
			operations, err := labelsPatch([]byte(tc.raw), alice, tc.queue)
			if err != nil {
				t.Fatal(err)
			}
			object := applyPatch(t, []byte(tc.raw), operations)
			metadata := object["metadata"].(map[string]any)
			if diff := cmp.Diff(tc.want, metadata["labels"]); diff != "" {
				t.Error(diff)
			}
			if len(operations) != tc.operations {
				t.Errorf("got %d operations, want %d: %s", len(operations), tc.operations, operations)
			}
			if name == "unknown fields" && (object["future"] != 1.0 || metadata["future"] != 2.0) {
				t.Errorf("got object %v, want the unknown fields unchanged", object)
			}
		})
	}
	if _, err := labelsPatch([]byte(`{"metadata":{"labels":5}}`), alice, ""); err == nil {
		t.Error("labels of another type: got no error")
	}
	// A user without a UID, as with a client certificate, gets an empty label.
	operations, err := labelsPatch([]byte(`{"metadata":{"labels":{"workload.codeflare.dev/userid":"bad"}}}`), authenticationv1.UserInfo{Username: "cert"}, "")
	if err != nil || !strings.Contains(operations[0].Json(), `userid":""`) {
		t.Errorf("got patch %s, error %v, want an empty user ID", operations, err)
	}
}

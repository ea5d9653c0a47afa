package quantity

import (
	"strings"
	"testing"
)

// Parse rejects quantities that resource.ParseQuantity would parse for minutes.
func TestParse(t *testing.T) {
	for text, want := range map[string]string{"1": "1", "1.5Gi": "1536Mi", "1e3": "1e3", "2E": "2E", "1e-2": "10e-3", "5Ei": "5Ei"} {
		if got, err := Parse(text); err != nil || got.String() != want {
			t.Errorf("%q: got %s, error %v, want %s", text, got.String(), err, want)
		}
	}
	for _, text := range []string{"", "x", "1e-2000000000", "1E2000000000", "1e-101", "1e-99999999999999999999", "0." + strings.Repeat("0", 70) + "1"} {
		if got, err := Parse(text); err == nil {
			t.Errorf("%q: got %s, want an error", text, got.String())
		}
	}
}

// CheckJSON checks only fields that hold quantities, and names each invalid one.
func TestCheckJSON(t *testing.T) {
	for raw, want := range map[string]string{
		`{"spec": {"rest": {"resources": {"limits": {"cpu": "1e-2000000000"}}}}}`:         `spec.rest.resources.limits.cpu: quantity "1e-2000000000": write an exponent between -100 and 100`,
		`{"spec": {"postgres": {"storage": {"size": "1e2000000000"}}}}`:                   `spec.postgres.storage.size: quantity "1e2000000000": write an exponent between -100 and 100`,
		`{"containers": [{"name": "a"}, {"resources": {"requests": {"cpu": "1e-999"}}}]}`: `containers[1].resources.requests.cpu: quantity "1e-999": write an exponent between -100 and 100`,
		`{"spec": {"resources": {"limits": {"cpu": "1", "memory": "many"}}}}`:             "",
		`{"metadata": {"annotations": {"commit": "1e-2000000000"}}}`:                      "",
		`{`: "",
	} {
		message := ""
		if err := CheckJSON([]byte(raw)); err != nil {
			message = err.Error()
		}
		if message != want {
			t.Errorf("%s: got error %q, want %q", raw, message, want)
		}
	}
}

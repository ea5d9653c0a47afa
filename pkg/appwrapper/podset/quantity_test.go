package podset

import (
	"strings"
	"testing"
)

// ParseQuantity rejects quantities that resource.ParseQuantity would parse for minutes.
func TestParseQuantity(t *testing.T) {
	for text, want := range map[string]string{"1": "1", "1.5Gi": "1536Mi", "1e3": "1e3", "2E": "2E", "1e-2": "10e-3", "5Ei": "5Ei"} {
		if got, err := ParseQuantity(text); err != nil || got.String() != want {
			t.Errorf("%q: got %s, error %v, want %s", text, got.String(), err, want)
		}
	}
	for _, text := range []string{"", "x", "1e-2000000000", "1E2000000000", "1e-101", "1e-99999999999999999999", "0." + strings.Repeat("0", 70) + "1"} {
		if got, err := ParseQuantity(text); err == nil {
			t.Errorf("%q: got %s, want an error", text, got.String())
		}
	}
}

func TestCheckTemplateLimitsQuantities(t *testing.T) {
	for path, spec := range map[string]string{
		"template.spec.containers[0].resources.requests.cpu":                                     `{containers: [{resources: {requests: {cpu: "1e-2000000000"}}}]}`,
		"template.spec.initContainers[0].resources.limits.memory":                                `{initContainers: [{resources: {limits: {memory: "1e-2000000000"}}}]}`,
		"template.spec.overhead.cpu":                                                             `{overhead: {cpu: "1e-2000000000"}}`,
		"template.spec.volumes[0].emptyDir.sizeLimit":                                            `{volumes: [{emptyDir: {sizeLimit: "1e-2000000000"}}]}`,
		"template.spec.volumes[0].ephemeral.volumeClaimTemplate.spec.resources.requests.storage": `{volumes: [{ephemeral: {volumeClaimTemplate: {spec: {resources: {requests: {storage: "1e-2000000000"}}}}}}]}`,
		"template.spec.containers[0].env[0].valueFrom.resourceFieldRef.divisor":                  `{containers: [{env: [{valueFrom: {resourceFieldRef: {divisor: "1e-2000000000"}}}]}]}`,
	} {
		err := CheckTemplate(parseObject(t, `{apiVersion: v1, kind: Pod, spec: `+spec+`}`).Object, "template")
		if err == nil || !strings.Contains(err.Error(), path+": quantity") {
			t.Errorf("%s: got error %v, want one that names the path", path, err)
		}
	}
	// Other fields may contain such a string.
	if err := CheckTemplate(parseObject(t, `{apiVersion: v1, kind: Pod, spec: {containers: [{name: a, env: [{name: A, value: "1e-2000000000"}]}]}}`).Object, "template"); err != nil {
		t.Error(err)
	}
}

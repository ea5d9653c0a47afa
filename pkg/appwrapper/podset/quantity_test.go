package podset

import (
	"strings"
	"testing"
)

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

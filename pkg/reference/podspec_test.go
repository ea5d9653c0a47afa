package reference

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/odh-platform/odh-platform-operator/apis/server"
)

// All references that pods need to start are found, and no optional ones.
func TestOfPods(t *testing.T) {
	p := &server.Pods{}
	if err := yaml.UnmarshalStrict([]byte(`{imagePullSecrets: [{name: pull}], volumes: [
		{name: a, secret: {secretName: files}}, {name: b, secret: {secretName: perhaps, optional: true}}, {name: c, configMap: {name: settings}},
		{name: d, csi: {driver: c, nodePublishSecretRef: {name: store}}}, {name: e, emptyDir: {}}, {name: f, persistentVolumeClaim: {claimName: claim}},
		{name: g, projected: {sources: [{secret: {name: part}}, {configMap: {name: perhaps, optional: true}}, {serviceAccountToken: {path: t}}, {downwardAPI: {}}]}},
		{name: h, csi: {driver: z}}]}`), p); err != nil {
		t.Fatal(err)
	}
	want := []Reference{
		{Kind: ConfigMap, Name: "perhaps", Optional: true}, {Kind: ConfigMap, Name: "settings"}, {Kind: Secret, Name: "files"}, {Kind: Secret, Name: "part"},
		{Kind: Secret, Name: "perhaps", Optional: true}, {Kind: Secret, Name: "pull"}, {Kind: Secret, Name: "store"},
	}
	if diff := cmp.Diff(want, OfPods(p)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestFindMissing(t *testing.T) {
	refs := []Reference{{Kind: Secret, Name: "here"}, {Kind: Secret, Name: "gone"}, {Kind: ConfigMap, Name: "gone", Optional: true}}
	absent, err := (&Tracker{}).FindMissing(t.Context(), "", refs, func(r Reference) (bool, error) { return r.Name == "here", nil })
	if diff := cmp.Diff([]Missing{{Reference: refs[1]}}, absent); diff != "" || err != nil {
		t.Errorf("error %v\n%s", err, diff)
	}
	if _, err := (&Tracker{}).FindMissing(t.Context(), "", refs, func(Reference) (bool, error) { return false, errors.New("not now") }); err == nil || !strings.Contains(err.Error(), "Secret here: not now") {
		t.Errorf("an error is not taken for absence: %v", err)
	}
}

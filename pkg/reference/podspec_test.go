package reference

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/odh-platform/odh-platform-operator/apis/server"
)

// OfPods returns the references to all Secrets and ConfigMaps, with optional ones marked.
func TestOfPods(t *testing.T) {
	p := &server.Pods{}
	if err := yaml.UnmarshalStrict([]byte(`{imagePullSecrets: [{name: pull}], volumes: [
		{name: a, secret: {secretName: files}}, {name: b, secret: {secretName: maybe, optional: true}}, {name: c, configMap: {name: settings}},
		{name: d, csi: {driver: c, nodePublishSecretRef: {name: store}}}, {name: e, emptyDir: {}}, {name: f, persistentVolumeClaim: {claimName: claim}},
		{name: g, projected: {sources: [{secret: {name: part}}, {configMap: {name: maybe, optional: true}}, {serviceAccountToken: {path: t}}, {downwardAPI: {}}]}},
		{name: h, csi: {driver: z}}]}`), p); err != nil {
		t.Fatal(err)
	}
	want := []Reference{
		{Kind: ConfigMap, Name: "maybe", Optional: true}, {Kind: ConfigMap, Name: "settings"}, {Kind: Secret, Name: "files"}, {Kind: Secret, Name: "maybe", Optional: true},
		{Kind: Secret, Name: "part"}, {Kind: Secret, Name: "pull"}, {Kind: Secret, Name: "store"},
	}
	if diff := cmp.Diff(want, OfPods(p)); diff != "" {
		t.Errorf("OfPods() differs (-want +got):\n%s", diff)
	}
}

func TestFindMissing(t *testing.T) {
	refs := []Reference{{Kind: Secret, Name: "existing"}, {Kind: Secret, Name: "absent"}, {Kind: ConfigMap, Name: "absent", Optional: true}}
	missing, err := (&Tracker{}).FindMissing(t.Context(), "", refs, func(r Reference) (bool, error) { return r.Name == "existing", nil })
	if diff := cmp.Diff([]Missing{{Reference: refs[1]}}, missing); diff != "" || err != nil {
		t.Errorf("FindMissing() returns error %v, differs (-want +got):\n%s", err, diff)
	}
	if _, err := (&Tracker{}).FindMissing(t.Context(), "", refs, func(Reference) (bool, error) { return false, errors.New("timeout") }); err == nil || !strings.Contains(err.Error(), "Secret existing: timeout") {
		t.Errorf("got error %v, want that of the lookup", err)
	}
}

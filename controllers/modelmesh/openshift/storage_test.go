package openshift

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// newConnection returns a data connection as the dashboard stores it.
func newConnection(name, kind string, data map[string]string) corev1.Secret {
	s := corev1.Secret{ObjectMeta: metav1.ObjectMeta{
		Namespace: "team", Name: name, Labels: map[string]string{LabelManaged: "true", LabelDashboard: "true"}, Annotations: map[string]string{},
	}, Data: map[string][]byte{}}
	if kind != "" {
		s.Annotations[AnnotationConnection] = kind
	}
	for k, v := range data {
		s.Data[k] = []byte(v)
	}
	return s
}

func s3Data(endpoint string) map[string]string {
	return map[string]string{
		"AWS_ACCESS_KEY_ID": "id", "AWS_SECRET_ACCESS_KEY": "se\"cret", "AWS_S3_ENDPOINT": endpoint, "AWS_S3_BUCKET": "models", "AWS_DEFAULT_REGION": "here",
	}
}

// The keys and the type of a data connection, and the CAs of the platform, determine the fields of its storage entry.
func TestBuildStorageData(t *testing.T) {
	allKeys := map[string]string{
		"type": "s3", "access_key_id": "id", "secret_access_key": "se\"cret", "endpoint_url": "http://minio:9000",
		"bucket": "models", "default_bucket": "models", "region": "here",
	}
	with := func(more map[string]string) map[string]string {
		entry := map[string]string{}
		for _, m := range []map[string]string{allKeys, more} {
			for k, v := range m {
				entry[k] = v
			}
		}
		return entry
	}
	withCA := map[string]string{"endpoint_url": "https://s3", "certificate": "PEM", "cabundle_configmap": "odh-kserve-custom-ca-bundle"}
	for name, c := range map[string]struct {
		connection corev1.Secret
		bundle     string
		want       map[string]string // nil for no entry
	}{
		"http":                         {newConnection("c", "s3", s3Data("http://minio:9000")), "PEM", allKeys},
		"https":                        {newConnection("c", "s3", s3Data("https://s3")), "PEM", with(withCA)},
		"HTTPS":                        {newConnection("c", "s3", s3Data("HTTPS://s3")), "PEM", with(map[string]string{"endpoint_url": "HTTPS://s3", "certificate": "PEM", "cabundle_configmap": "odh-kserve-custom-ca-bundle"})},
		"https without CAs":            {newConnection("c", "s3", s3Data("https://s3")), "", with(map[string]string{"endpoint_url": "https://s3"})},
		"no type":                      {newConnection("c", "", s3Data("http://minio:9000")), "", allKeys},
		"some fields":                  {newConnection("c", "s3", map[string]string{"AWS_S3_BUCKET": "b", "OTHER": "x"}), "", map[string]string{"type": "s3", "bucket": "b", "default_bucket": "b"}},
		"no fields":                    {newConnection("c", "s3", nil), "", map[string]string{"type": "s3"}},
		"another type":                 {newConnection("c", "minio", map[string]string{"AWS_S3_BUCKET": "b"}), "", map[string]string{"type": "minio", "bucket": "b", "default_bucket": "b"}},
		"connection without S3 fields": {newConnection("c", "uri", map[string]string{"URI": "aHR0cA=="}), "PEM", nil},
		"Secret without data":          {newConnection("c", "", nil), "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			data := buildStorageData([]corev1.Secret{c.connection}, c.bundle)
			if c.want == nil {
				if data != nil {
					t.Errorf("entries %q, want none", data)
				}
				return
			}
			var got map[string]string
			if err := json.Unmarshal(data["c"], &got); err != nil || len(data) != 1 {
				t.Fatalf("entries %q, error %v", data, err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// A connection without an entry does not affect the entries of others.
func TestBuildStorageDataSkipsOtherConnections(t *testing.T) {
	data := buildStorageData([]corev1.Secret{
		newConnection("a", "s3", s3Data("https://s3")), newConnection("b", "uri", nil), newConnection("c", "s3", map[string]string{"AWS_S3_BUCKET": "b"}),
	}, "PEM")
	if len(data) != 2 || string(data["c"]) != `{"bucket":"b","default_bucket":"b","type":"s3"}` {
		t.Errorf("entries %q", data)
	}
	if data := buildStorageData(nil, "PEM"); data != nil {
		t.Errorf("data %q without connections, want none", data)
	}
}

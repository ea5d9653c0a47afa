package overlays

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// secretsKubectl is a kubectl that reads Secrets from files named <secret>.<key>, and records applied objects. Calls that contain the
// value of $FAIL fail.
const secretsKubectl = `#!/usr/bin/env bash
call=$*
if [ -n "${FAIL:-}" ] && [[ $call == *"$FAIL"* ]]; then echo "connection refused" >&2; exit 1; fi
case $call in
  *"get secret"*)
    secret=${call#*get secret } key=${call#*index . \"}
    cat "$SECRETS/${secret%% *}.${key%%\"*}" 2>/dev/null || : ;;
  create*) echo "$call"; cat ;;
  *apply*) cat >>"$SECRETS/applied" ;;
esac
`

// createCredentials runs the script of the quickstart, and returns the applied objects and whether the script failed.
func createCredentials(t *testing.T, secrets map[string]string, env ...string) (applied string, failed bool) {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "kubectl"), []byte(secretsKubectl), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, value := range secrets {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(value), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	command := exec.CommandContext(t.Context(), "/bin/sh", "../../config/quickstart/scripts/create-credentials.sh")
	command.Env = append([]string{"PATH=" + dir + ":" + os.Getenv("PATH"), "SECRETS=" + dir, "NAMESPACE=n", "ENDPOINT=http://minio.n.svc:9000"}, env...)
	output, err := command.CombinedOutput()
	t.Logf("%s", output)
	return content(t, filepath.Join(dir, "applied")), err != nil
}

// Existing Secrets are never changed, even if they cannot be read.
func TestQuickstartKeepsExistingSecrets(t *testing.T) {
	minio := map[string]string{"minio-credentials.user": "u", "minio-credentials.password": "p"}
	both := map[string]string{"minio-credentials.user": "u", "minio-credentials.password": "p", "storage-config.localMinIO": "{}"}
	const entry = `{"type":"s3","access_key_id":"u","secret_access_key":"p","endpoint_url":"http://minio.n.svc:9000",`
	for name, tc := range map[string]struct {
		secrets map[string]string
		env     []string
		want    []string // parts of the applied text; empty if nothing is applied
		failed  bool
	}{
		"both Secrets exist":            {secrets: both},
		"storage-config is missing":     {secrets: minio, want: []string{"secret generic storage-config ", entry}},
		"credentials cannot be read":    {secrets: minio, env: []string{"FAIL=get secret minio-credentials"}, failed: true},
		"storage-config cannot be read": {secrets: both, env: []string{"FAIL=get secret storage-config"}, failed: true},
		"user cannot be read":           {secrets: minio, env: []string{`FAIL=index . "user"`}, failed: true},
		"password without user":         {secrets: map[string]string{"minio-credentials.password": "p"}, failed: true},
		"kubectl create fails":          {env: []string{"FAIL=create secret generic minio-credentials"}, failed: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			applied, failed := createCredentials(t, tc.secrets, tc.env...)
			if failed != tc.failed || (applied != "") != (len(tc.want) > 0) {
				t.Errorf("failed %t, want %t; applied %q, want %q", failed, tc.failed, applied, tc.want)
			}
			for _, want := range tc.want {
				if !strings.Contains(applied, want) {
					t.Errorf("applied %q, want %q", applied, want)
				}
			}
		})
	}
}

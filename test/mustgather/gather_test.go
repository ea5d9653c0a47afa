// Package mustgather proves what config/must-gather/gather does without a cluster: what it masks, and how it bears trouble. What it
// collects is proven in test/integration/plain.
package mustgather

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const script = "../../config/must-gather/gather"

func bash(t *testing.T, input string, env []string, args ...string) (output string, err error) {
	t.Helper()
	command := exec.CommandContext(t.Context(), "bash", args...)
	command.Stdin = strings.NewReader(input)
	command.Env = append([]string{"PATH=" + os.Getenv("PATH"), "TMPDIR=" + t.TempDir(), "HOME=" + t.TempDir()}, env...)
	text, err := command.CombinedOutput()
	return string(text), err
}

func TestSyntax(t *testing.T) {
	if output, err := bash(t, "", nil, "-n", script); err != nil || output != "" {
		t.Errorf("%v: %s", err, output)
	}
	info, err := os.Stat(script)
	if err != nil || info.Mode().Perm()&0o111 == 0 {
		t.Errorf("it cannot be run: %v, %v", info, err)
	}
}

// Whatever is secret goes, and what explains things stays.
func TestMask(t *testing.T) {
	for input, want := range map[string]string{
		"uri: postgresql://mlflow:hunter2@db:5432/x?sslmode=require&sslpassword=hunter2":                     "uri: postgresql://mlflow:***@db:5432/x?sslmode=require&sslpassword=***",
		"two: mongodb://u:hunter2@a,u:hunter2@b/x":                                                           "two: mongodb://u:***@b/x",
		"odd: mysql+pymysql://u:hun/ter2:hunter2@h/db":                                                       "odd: mysql+pymysql://u:***@h/db",
		"url: https://host:8443/path":                                                                        "url: https://host:8443/path",
		"user: postgresql://mlflow@db:5432/x":                                                                "user: postgresql://mlflow@db:5432/x",
		"dsn: root:hunter2@tcp(db:3306)/registry":                                                            "dsn: ***:***@tcp(db:3306)/registry",
		"- name: DB_PASSWORD\n  value: hunter2\n- name: LEVEL\n  value: DEBUG":                               "- name: DB_PASSWORD\n  value: \"***\"\n- name: LEVEL\n  value: DEBUG",
		"- name: A_KEY\n- name: B_TOKEN\n  value: hunter2":                                                   "- name: A_KEY\n- name: B_TOKEN\n  value: \"***\"",
		"- name: A_SECRET\n  uri: s3://u:hunter2@h":                                                          "- name: A_SECRET\n  uri: s3://u:***@h",
		`{"env":[{"name":"MY_SECRET","value":"hunter2"}],"image":"x"}`:                                       `{"env":[{"name":"MY_SECRET","value":"***"}],"image":"x"}`,
		`{"password":"hunter2","port":5432}`:                                                                 `{"password":"***","port":5432}`,
		"password: hunter2":                                                                                  `password: "***"`,
		"passwordSecret:\n  key: database-password\n  name: x":                                               "passwordSecret:\n  key: database-password\n  name: x",
		"Authorization: Bearer hunter2hunter2":                                                               "Authorization: Bearer ***",
		"jwt eyJhbGciOiJSUzI1NiJ9.hunter2.hunter2 end":                                                       "jwt *** end",
		"-----BEGIN EC PRIVATE KEY-----\nhunter2\n-----END EC PRIVATE KEY-----\nafter":                       "***\n***\n***\nafter",
		`"-----BEGIN PRIVATE KEY-----\nhunter2\n-----END PRIVATE KEY-----\n" after`:                          `"***\n" after`,
		"-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----":                                       "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----",
		"- name: DB_PASSWORD\n  value: |\n    hunter2\n\n    hunter2\n- name: LEVEL\n  value: |-\n    DEBUG": "- name: DB_PASSWORD\n  value: \"***\"\n- name: LEVEL\n  value: |-\n    DEBUG",
		"a:\n  password: |-\n    hunter2\n  text: >\n    long":                                               "a:\n  password: \"***\"\n  text: >\n    long",
		"secretName: mlflow-tls\nreason: SecretMissing":                                                      "secretName: mlflow-tls\nreason: SecretMissing",
	} {
		output, err := bash(t, input+"\n", nil, "-c", `source <(sed -n '/^mask()/,/^}/p' `+script+`); mask`)
		if err != nil || strings.TrimSuffix(output, "\n") != want {
			t.Errorf("%q became\n%q, want\n%q, error %v", input, strings.TrimSuffix(output, "\n"), want, err)
		}
		if strings.Contains(output, "hunter2") {
			t.Errorf("%q is not masked", input)
		}
	}
}

// An AppWrapper may hold a Secret, whose values have names of all kinds.
func TestWrappedSecrets(t *testing.T) {
	const input = `metadata:
  annotations:
    kubectl.kubernetes.io/last-applied-configuration: |
      {"kind":"AppWrapper","spec":{"components":[{"template":{"kind":"Secret","stringData":{"x":"{\"y\":\"hunter2\"}"}}}]}}
  name: train
spec:
  components:
  - template:
      apiVersion: v1
      data:
        tls.crt: hunter2
        config.json: |
          a: hunter2

          b: hunter2
        z: hunter2
      kind: Secret
      metadata:
        name: login
  - template:
      kind: Secret
      stringData:
        any: hunter2
  suspend: false
`
	const want = `metadata:
  annotations:
    kubectl.kubernetes.io/last-applied-configuration: "***"
  name: train
spec:
  components:
  - template:
      apiVersion: v1
      data:
        tls.crt: "***"
        config.json: "***"
        z: "***"
      kind: Secret
      metadata:
        name: login
  - template:
      kind: Secret
      stringData:
        any: "***"
  suspend: false
`
	output, err := bash(t, input, nil, "-c", `source <(sed -n '/^mask()/,/^}/p; /^wrapped()/,/^}/p' `+script+`); wrapped`)
	if err != nil || output != want {
		t.Errorf("%v: got\n%s\nwant\n%s", err, output, want)
	}
}

// AppWrappers, and nothing else, go through it.
func TestAppWrappersAreWritten(t *testing.T) {
	folder := t.TempDir()
	client := filepath.Join(folder, "client")
	answers := `#!/bin/sh
case "$*" in
*api-resources*--verbs=list*) echo appwrappers.workload.codeflare.dev; echo mlflows.mlflow.opendatahub.io ;;
*"get appwrappers."*|*"get mlflows."*) printf 'data:\n  any: hunter2\n' ;;
esac
`
	if err := os.WriteFile(client, []byte(answers), 0o755); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(folder, "out")
	if output, err := bash(t, "", []string{"KUBECTL=" + client}, script, out); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	for file, want := range map[string]string{
		"appwrappers.workload.codeflare.dev": "data:\n  any: \"***\"\n", "mlflows.mlflow.opendatahub.io": "data:\n  any: hunter2\n",
	} {
		if text, err := os.ReadFile(filepath.Join(out, "resources", file+".yaml")); err != nil || string(text) != want {
			t.Errorf("%s: %q, %v", file, text, err)
		}
	}
}

// A client that fails at everything, and talks about a password while it does.
func TestNothingCanBeRead(t *testing.T) {
	folder := t.TempDir()
	client := filepath.Join(folder, "client")
	if err := os.WriteFile(client, []byte("#!/bin/sh\necho 'cannot reach https://admin:hunter2@api' >&2\nexit 1\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(folder, "out")
	if output, err := bash(t, "", []string{"KUBECTL=" + client}, script, out); err != nil || !strings.Contains(output, "1 files") {
		t.Fatalf("%v: %s", err, output)
	}
	gaps, err := os.ReadFile(filepath.Join(out, "gaps.txt"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"cluster/version.yaml: cannot reach https://admin:***@api", "no Deployment of the manager was found", "children/secrets.txt: "} {
		if !strings.Contains(string(gaps), want) {
			t.Errorf("no %q in\n%s", want, gaps)
		}
	}
	if strings.Contains(string(gaps), "hunter2") {
		t.Error("messages of the client are not masked")
	}
}

func TestNoClient(t *testing.T) {
	tools := t.TempDir()
	for _, tool := range []string{"mkdir"} {
		path, err := exec.LookPath(tool)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(path, filepath.Join(tools, tool)); err != nil {
			t.Fatal(err)
		}
	}
	if output, err := bash(t, "", []string{"PATH=" + tools}, script, filepath.Join(tools, "out")); err == nil || !strings.Contains(output, "neither kubectl nor oc is there") {
		t.Errorf("%v: %s", err, output)
	}
}

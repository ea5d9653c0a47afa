package conformance

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// podFiles are patterns of the golden files and manifests with pod templates: those of all builders, of the kinds that `manager render`
// prints, and of the installed manifests.
var podFiles = []string{
	"controllers/*/testdata/golden/*.yaml", "controllers/*/*/testdata/golden/*.yaml", "cmd/internal/kinds/testdata/*.yaml",
	"config/*/*.yaml", "config/*/*/*.yaml",
}

var (
	// sensitive matches names of environment variables that hold a secret. Other values of a Secret, such as user names, are not sensitive.
	sensitive = regexp.MustCompile(`(?i)(pass|token|cookie|uri|dsn|secret|key)`)
	// literal matches flags whose value is a secret, unless it is a path.
	literal = regexp.MustCompile(`(?i)^--?[a-z0-9-]*(password|passwd|passphrase|token|cookie-secret|client-secret|secret-key|access-key)[a-z0-9-]*=[^/]`)
	// login matches a URL with a password.
	login    = regexp.MustCompile(`://[^/\s:@]*:[^/\s@]+@`)
	expanded = regexp.MustCompile(`\$\(([-._a-zA-Z0-9]+)\)`)
	shell    = regexp.MustCompile(`\$\{?([_a-zA-Z][_a-zA-Z0-9]*)`)
)

// exposedSecrets returns the words that contain a secret in the command lines of a container. Other processes on the node can read these
// lines.
func exposedSecrets(c *corev1.Container) []string {
	secrets := map[string]bool{}
	refersToSecret := func(text string) bool {
		return slices.ContainsFunc(expanded.FindAllStringSubmatch(text, -1), func(found []string) bool { return secrets[found[1]] })
	}
	for _, e := range c.Env {
		if e.ValueFrom != nil && e.ValueFrom.SecretKeyRef != nil || refersToSecret(e.Value) {
			secrets[e.Name] = true
		}
	}
	words := slices.Concat(c.Command, c.Args)
	for _, probe := range []*corev1.Probe{c.LivenessProbe, c.ReadinessProbe, c.StartupProbe} {
		if probe != nil && probe.Exec != nil {
			words = append(words, probe.Exec.Command...)
		}
	}
	if hooks := c.Lifecycle; hooks != nil {
		for _, hook := range []*corev1.LifecycleHandler{hooks.PostStart, hooks.PreStop} {
			if hook != nil && hook.Exec != nil {
				words = append(words, hook.Exec.Command...)
			}
		}
	}
	return slices.DeleteFunc(words, func(word string) bool {
		inShell := slices.ContainsFunc(shell.FindAllStringSubmatch(word, -1), func(found []string) bool { return secrets[found[1]] && sensitive.MatchString(found[1]) })
		// All keys of a Secret become variables, whose names are unknown.
		unknown := slices.ContainsFunc(c.EnvFrom, func(s corev1.EnvFromSource) bool { return s.SecretRef != nil }) && expanded.MatchString(word)
		return !refersToSecret(word) && !inShell && !unknown && !literal.MatchString(word) && !login.MatchString(word)
	})
}

// visitContainers calls visit for the containers in a decoded document.
func visitContainers(node any, visit func(fields any)) {
	switch node := node.(type) {
	case map[string]any:
		for key, child := range node {
			if list, isList := child.([]any); isList && (key == "containers" || key == "initContainers") {
				for _, c := range list {
					visit(c)
				}
			}
			visitContainers(child, visit)
		}
	case []any:
		for _, child := range node {
			visitContainers(child, visit)
		}
	}
}

// containersOf returns the containers in all documents of a file.
func containersOf(path string) ([]corev1.Container, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading containers: %w", err)
	}
	var all []corev1.Container
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(content), 4096)
	for {
		var document any
		if err := decoder.Decode(&document); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		var failed error
		visitContainers(document, func(fields any) {
			text, err := json.Marshal(fields)
			c := corev1.Container{}
			failed = errors.Join(failed, err, json.Unmarshal(text, &c))
			all = append(all, c)
		})
		if failed != nil {
			return nil, fmt.Errorf("%s: %w", path, failed)
		}
	}
}

// No password and no cookie secret is in the command line of any container that the operator creates.
func TestCommandLinesContainNoSecrets(t *testing.T) {
	checked := 0
	for _, pattern := range podFiles {
		paths, err := filepath.Glob(filepath.Join("..", "..", pattern))
		if err != nil || len(paths) == 0 {
			t.Fatalf("no file matches %s: %v", pattern, err)
		}
		for _, path := range paths {
			containers, err := containersOf(path)
			if err != nil {
				t.Fatal(err)
			}
			checked += len(containers)
			for i := range containers {
				for _, word := range exposedSecrets(&containers[i]) {
					t.Errorf("%s: container %s has a secret in its command line: %s", strings.TrimPrefix(path, "../../"), containers[i].Name, word)
				}
			}
		}
	}
	if checked < 100 {
		t.Errorf("got %d containers, want at least 100", checked)
	}
}

func TestExposedSecrets(t *testing.T) {
	from := func(name string) corev1.EnvVar {
		return corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{Key: "k"}}}
	}
	hook := &corev1.ExecAction{Command: []string{"sh", "-c", "curl --user admin:$PASSWORD localhost"}}
	for name, c := range map[string]struct {
		container corev1.Container
		want      int
	}{
		"argument":        {corev1.Container{Env: []corev1.EnvVar{from("COOKIE_SECRET")}, Args: []string{"--a", "--cookie-secret=$(COOKIE_SECRET)"}}, 1},
		"nested variable": {corev1.Container{Env: []corev1.EnvVar{from("P"), {Name: "DSN", Value: "u:$(P)@h"}}, Command: []string{"server", "--dsn=$(DSN)"}}, 1},
		"script":          {corev1.Container{Env: []corev1.EnvVar{from("DB_PASSWORD")}, Args: []string{`psql "password=${DB_PASSWORD}"`}}, 1},
		"probe and hook": {corev1.Container{
			Env:           []corev1.EnvVar{from("PASSWORD")},
			LivenessProbe: &corev1.Probe{ProbeHandler: corev1.ProbeHandler{Exec: hook}}, Lifecycle: &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{Exec: hook}},
		}, 2},
		"variables from a Secret": {corev1.Container{
			EnvFrom: []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{}}}, Args: []string{"--x=$(ANY)"},
		}, 1},
		"literal": {corev1.Container{Args: []string{"--db-password=hunter2", "--uri=postgresql://u:hunter2@h/d", "-token=abc"}}, 3},
		"no secret": {corev1.Container{
			Env: []corev1.EnvVar{from("PGPASSWORD"), from("POSTGRESQL_USER"), {Name: "PORT", Value: "1"}},
			Args: []string{
				"--port=$(PORT)", "--tls-key=/etc/tls.key", "--token-file=/run/token", "psql -U $POSTGRESQL_USER", "https://host:8443/x@y",
			},
		}, 0},
	} {
		if got := exposedSecrets(&c.container); len(got) != c.want {
			t.Errorf("%s: got %q, want %d", name, got, c.want)
		}
	}
}

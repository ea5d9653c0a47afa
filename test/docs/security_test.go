package docs

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// secretRows returns the rows of the table in SECURITY.md: the rules for Secrets in the roles of the manager.
func secretRows(t *testing.T) []string {
	t.Helper()
	var rows []string
	err := filepath.WalkDir(filepath.Join(root, "config/rbac"), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".yaml" || entry.Name() == "user_roles.yaml" {
			return err
		}
		decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewBufferString(read(t, strings.TrimPrefix(path, root+"/"))), 4096)
		for {
			var role rbacv1.ClusterRole
			if err := decoder.Decode(&role); errors.Is(err, io.EOF) {
				return nil
			} else if err != nil {
				return err
			}
			where := map[string]string{"ClusterRole": "all namespaces", "Role": "the namespace of the operator"}[role.Kind]
			for _, rule := range role.Rules {
				if where != "" && slices.Contains(rule.Resources, "secrets") {
					rows = append(rows, fmt.Sprintf("| `%s` | %s | %s | %s |", role.Name, namesOf(rule), where, strings.Join(rule.Verbs, ", ")))
				}
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(rows)
	return rows
}

func namesOf(rule rbacv1.PolicyRule) string {
	if len(rule.ResourceNames) == 0 {
		return "all"
	}
	return "`" + strings.Join(rule.ResourceNames, "`, `") + "`"
}

// The table in SECURITY.md has the permissions on Secrets that config/rbac grants.
func TestSecretsInSecurity(t *testing.T) {
	rows := secretRows(t)
	if len(rows) < 10 {
		t.Fatalf("got %d rules, want at least 10: the test does not parse the roles correctly", len(rows))
	}
	if want := "| Role | Secrets | In | Verbs |\n|---|---|---|---|\n" + strings.Join(rows, "\n") + "\n\n"; !strings.Contains(read(t, "SECURITY.md"), want) {
		t.Errorf("SECURITY.md does not contain this table:\n%s", want)
	}
}

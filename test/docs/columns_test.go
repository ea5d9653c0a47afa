package docs

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// kubectl get prints all kinds alike: Ready, Reason, columns of the kind, Age. With -o wide it adds further columns of the kind, where to
// reach it, and the message.
func TestPrinterColumns(t *testing.T) {
	paths, err := filepath.Glob(filepath.Join(root, "config/crd/bases/*.yaml"))
	if err != nil || len(paths) < 8 {
		t.Fatal(paths, err)
	}
	for _, path := range paths {
		var crd apiextensionsv1.CustomResourceDefinition
		if err := yaml.UnmarshalStrict([]byte(read(t, strings.TrimPrefix(path, root+"/"))), &crd); err != nil {
			t.Fatal(err)
		}
		for _, version := range crd.Spec.Versions {
			if problem := brokenColumnRule(version.AdditionalPrinterColumns); problem != "" {
				t.Errorf("printer columns of CRD %s %s: %s", crd.Name, version.Name, problem)
			}
		}
	}
}

// brokenColumnRule returns the rule that the columns of a version break, or nothing.
func brokenColumnRule(columns []apiextensionsv1.CustomResourceColumnDefinition) string {
	var names, wide []string
	for _, column := range columns {
		switch {
		case column.Priority > 0:
			wide = append(wide, column.Name)
		case len(wide) > 0:
			return column.Name + " follows a column that only -o wide prints"
		default:
			names = append(names, column.Name)
		}
	}
	condition := func(name, field string) bool {
		at := slices.IndexFunc(columns, func(c apiextensionsv1.CustomResourceColumnDefinition) bool { return c.Name == name })
		return at >= 0 && columns[at].JSONPath == `.status.conditions[?(@.type=="Ready")].`+field
	}
	address := func(name string) bool { return name == "URL" || name == "Hosts" }
	switch {
	case len(names) < 3 || names[0] != "Ready" || names[1] != "Reason" || names[len(names)-1] != "Age":
		return "kubectl get prints " + strings.Join(names, ", ") + ", and not Ready, Reason, the columns of the kind, Age"
	case len(wide) == 0 || wide[len(wide)-1] != "Message":
		return "the last column with -o wide is not Message"
	case slices.ContainsFunc(wide, address) && !address(wide[len(wide)-2]):
		return "URL or Hosts is not directly before Message"
	case !condition("Ready", "status") || !condition("Reason", "reason") || !condition("Message", "message"):
		return "Ready, Reason or Message is not that of the condition Ready"
	}
	return ""
}

// The rule finds each kind of mistake.
func TestMisplacedColumns(t *testing.T) {
	column := func(name string, priority int32) apiextensionsv1.CustomResourceColumnDefinition {
		path := map[string]string{"Ready": "status", "Reason": "reason", "Message": "message"}[name]
		return apiextensionsv1.CustomResourceColumnDefinition{Name: name, Priority: priority, JSONPath: `.status.conditions[?(@.type=="Ready")].` + path}
	}
	foreign := column("Message", 1)
	foreign.JSONPath = `.status.conditions[?(@.type=="Available")].message`
	ready, reason, age, url, message := column("Ready", 0), column("Reason", 0), column("Age", 0), column("URL", 1), column("Message", 1)
	type columns = []apiextensionsv1.CustomResourceColumnDefinition
	for name, test := range map[string]struct {
		columns columns
		want    string
	}{
		"the shortest list":           {columns{ready, reason, age, message}, ""},
		"a column of the kind":        {columns{ready, reason, column("Version", 0), age, url, message}, ""},
		"a column before Ready":       {columns{column("Version", 0), ready, reason, age, message}, "kubectl get prints Version, Ready, Reason, Age"},
		"a column after Age":          {columns{ready, reason, age, column("Version", 0), message}, "kubectl get prints"},
		"no Age":                      {columns{ready, reason, message}, "kubectl get prints"},
		"no message":                  {columns{ready, reason, age, url}, "is not Message"},
		"the address after":           {columns{ready, reason, age, message, url}, "is not Message"},
		"a column between":            {columns{ready, reason, age, url, column("Runtime", 1), message}, "not directly before Message"},
		"a wide column before Age":    {columns{ready, reason, url, age, message}, "Age follows"},
		"the message of another type": {columns{ready, reason, age, foreign}, "not that of the condition Ready"},
	} {
		if got := brokenColumnRule(test.columns); (test.want == "") != (got == "") || !strings.Contains(got, test.want) {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
}

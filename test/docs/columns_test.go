package docs

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// kubectl get prints the columns of every kind in the same order: Ready, Reason, columns of the kind, Age. With -o wide, it adds more
// columns of the kind, the address if the kind has one, and Message.
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

// brokenColumnRule returns the rule that the columns of a version break, or "".
func brokenColumnRule(columns []apiextensionsv1.CustomResourceColumnDefinition) string {
	var names, wide []string
	for _, column := range columns {
		switch {
		case column.Priority > 0:
			wide = append(wide, column.Name)
		case len(wide) > 0:
			return column.Name + " is after a column that only -o wide prints"
		default:
			names = append(names, column.Name)
		}
	}
	shows := func(name, field string) bool { // a field of the condition Ready
		at := slices.IndexFunc(columns, func(c apiextensionsv1.CustomResourceColumnDefinition) bool { return c.Name == name })
		return at >= 0 && columns[at].JSONPath == `.status.conditions[?(@.type=="Ready")].`+field
	}
	address := func(name string) bool { return name == "URL" || name == "Hosts" }
	switch {
	case len(names) < 3 || names[0] != "Ready" || names[1] != "Reason" || names[len(names)-1] != "Age":
		return "kubectl get prints " + strings.Join(names, ", ") + ", want Ready, Reason, the columns of the kind, Age"
	case len(wide) == 0 || wide[len(wide)-1] != "Message":
		return "the last column with -o wide must be Message"
	case slices.ContainsFunc(wide, address) && !address(wide[len(wide)-2]):
		return "URL or Hosts must be directly before Message"
	case !shows("Ready", "status") || !shows("Reason", "reason") || !shows("Message", "message"):
		return "Ready, Reason and Message must be those of the condition Ready"
	}
	return ""
}

// brokenColumnRule reports each kind of mistake.
func TestBrokenColumnRule(t *testing.T) {
	column := func(name string, priority int32) apiextensionsv1.CustomResourceColumnDefinition {
		path := map[string]string{"Ready": "status", "Reason": "reason", "Message": "message"}[name]
		return apiextensionsv1.CustomResourceColumnDefinition{Name: name, Priority: priority, JSONPath: `.status.conditions[?(@.type=="Ready")].` + path}
	}
	otherMessage := column("Message", 1)
	otherMessage.JSONPath = `.status.conditions[?(@.type=="Available")].message`
	ready, reason, age, url, message := column("Ready", 0), column("Reason", 0), column("Age", 0), column("URL", 1), column("Message", 1)
	type columns = []apiextensionsv1.CustomResourceColumnDefinition
	for name, test := range map[string]struct {
		columns columns
		want    string
	}{
		"fewest columns":             {columns{ready, reason, age, message}, ""},
		"column of the kind":         {columns{ready, reason, column("Version", 0), age, url, message}, ""},
		"column before Ready":        {columns{column("Version", 0), ready, reason, age, message}, "kubectl get prints Version, Ready, Reason, Age"},
		"column after Age":           {columns{ready, reason, age, column("Version", 0), message}, "kubectl get prints"},
		"Age missing":                {columns{ready, reason, message}, "kubectl get prints"},
		"Message missing":            {columns{ready, reason, age, url}, "must be Message"},
		"URL after Message":          {columns{ready, reason, age, message, url}, "must be Message"},
		"column after URL":           {columns{ready, reason, age, url, column("Runtime", 1), message}, "must be directly before Message"},
		"wide column before Age":     {columns{ready, reason, url, age, message}, "Age is after"},
		"message of other condition": {columns{ready, reason, age, otherMessage}, "must be those of the condition Ready"},
	} {
		if got := brokenColumnRule(test.columns); (test.want == "") != (got == "") || !strings.Contains(got, test.want) {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
}

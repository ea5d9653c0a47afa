package main

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/odh-platform/odh-platform-operator/pkg/config"
)

const head = `<!-- Written by cmd/generate/configuration; change pkg/config and run make generate. -->
# Configure the manager

This page is a reference of all settings of the manager, for cluster administrators. ` + "`manager --help`" + ` prints them too.

You can set a value by a flag, an environment variable, or a key in the configuration file that ` + "`--config`" + ` names. The precedence is: flags,
environment, ` + "`--config`" + ` file, defaults. An empty variable counts as unset. If a setting has several variables, the first one that is set takes
effect. If a value is invalid, the manager exits at startup with a message that names the setting, the value and the fix.

The configuration file contains a ` + "`PlatformOperatorConfiguration`" + `. The tables give each key as a path in it. Unknown keys are errors.

` + "```yaml" + `
apiVersion: config.platform.opendatahub.io/v1alpha1
kind: PlatformOperatorConfiguration
components: ["*", "-appwrapper"]
namespace: opendatahub
logging:
  level: info
` + "```" + `

The settings of ModelMesh itself are in ConfigMaps, and changes take effect without a restart: see
[modelmesh-settings.md](modelmesh-settings.md).
`

const between = `
## Other variables

- ` + "`KUBECONFIG`" + ` is used if ` + "`--kubeconfig`" + ` is not set and the manager runs outside a cluster.
- ` + "`APPLICATIONS_NAMESPACE`" + ` replaces ` + "`--namespace`" + ` if the component ` + "`platform`" + ` is enabled.
- ` + "`POD_NAME`" + ` is the holder of the Lease. The manager also uses it to find its own Deployment.
- ` + "`POD_SERVICE_ACCOUNT`" + ` is the ServiceAccount of the manager, which no custom resource may name.
- ` + "`GOMEMLIMIT`" + ` is the memory limit of the container, in bytes or with a unit such as ` + "`MiB`" + `. The heap stays below nine tenths of it.

## Flag names of the replaced operators

Deployments of the replaced operators can continue to use their names for these flags.

| Old name | Flag |
|---|---|
`

func page(rows []config.SettingDoc) string {
	var out strings.Builder
	out.WriteString(head)
	for _, table := range tables {
		fmt.Fprintf(&out, "\n## %s\n\n| Flag | Environment | File | Default | Meaning |\n|---|---|---|---|---|\n", table.title)
		for _, row := range rows {
			if titleOf(row) == table.title {
				fmt.Fprintln(&out, line(row))
			}
		}
	}
	out.WriteString(between)
	older := config.LegacyFlags()
	for _, name := range slices.Sorted(maps.Keys(older)) {
		fmt.Fprintf(&out, "| `--%s` | `--%s` |\n", name, older[name])
	}
	return out.String()
}

// tables are selected by the first part of keys and flags; the one without sections holds the rest.
var tables = []struct {
	title    string
	sections []string
}{
	{"Components", []string{"components", "enable"}},
	{"Process", nil},
	{"Listeners", []string{"metrics", "health", "webhook"}},
	{"Authors of custom resources", []string{"admission"}},
	{"Publication", []string{"exposure"}},
	{"Logging", []string{"logging"}},
	{"MLflow", []string{"mlflow"}},
	{"Model Registry", []string{"modelregistry"}},
	{"Model Catalog", []string{"modelcatalog"}},
	{"ModelMesh", []string{"modelmesh"}},
	{"RayCluster", []string{"raycluster"}},
	{"AppWrapper", []string{"appwrapper"}},
}

// titleOf returns the title of the table of a row.
func titleOf(row config.SettingDoc) string {
	flag, _, _ := strings.Cut(row.Flag, "-")
	section, _, _ := strings.Cut(row.Key, ".")
	for _, table := range tables {
		if slices.Contains(table.sections, cmp.Or(section, flag)) {
			return table.title
		}
	}
	return "Process"
}

func line(row config.SettingDoc) string {
	return fmt.Sprintf("| %s | %s | %s | %s | %s |", code(dashed(row.Flag)), code(row.Env...), code(row.Key), code(normalizeTempDir(row.Default)), cell(row.Help))
}

func dashed(flag string) string {
	if flag == "" {
		return ""
	}
	return "--" + flag
}

// normalizeTempDir replaces the temporary directory in a default, so that the page does not depend on the machine.
func normalizeTempDir(text string) string {
	if rest, ok := strings.CutPrefix(text, strings.TrimSuffix(os.TempDir(), "/")); ok && strings.HasPrefix(rest, "/") {
		return "/tmp" + rest
	}
	return text
}

// code formats non-empty texts as code.
func code(texts ...string) string {
	var all []string
	for _, text := range texts {
		if text != "" {
			all = append(all, "`"+text+"`")
		}
	}
	return strings.Join(all, ", ")
}

// cell escapes a text for a table.
func cell(text string) string { return strings.ReplaceAll(text, "|", `\|`) }

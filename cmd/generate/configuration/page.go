package main

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/odh-platform/odh-platform-operator/pkg/config"
)

// inFile are the sections whose keys are in the file only, with their types.
var inFile = []field{{name: "appwrapper", typ: "AppWrapper"}, {name: "raycluster", typ: "RayCluster"}}

const head = `<!-- Written by cmd/generate/configuration; change pkg/config or apis/config/v1alpha1 and run make generate. -->
# Configure the manager

This page is a reference of all settings of the manager, for cluster administrators. ` + "`manager --help`" + ` prints them too, except
the [sections of the configuration file](#sections-of-the-configuration-file).

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

## Sections of the configuration file

You can set these values only in the configuration file, unless their description names a variable.
`

const olderHead = `
## Flag names of the replaced operators

Deployments of the replaced operators can continue to use their names for these flags.

| Old name | Flag |
|---|---|
`

// writePage writes the whole page.
func writePage(out *bytes.Buffer, rows []config.Row, types map[string][]field) error {
	out.WriteString(head)
	for _, group := range groups(rows) {
		fmt.Fprintf(out, "\n## %s\n\n| Flag | Environment | File | Default | Meaning |\n|---|---|---|---|---|\n", group.title)
		for _, row := range group.rows {
			fmt.Fprintln(out, line(row))
		}
	}
	out.WriteString(between)
	for _, section := range inFile {
		if len(types[section.typ]) == 0 {
			return fmt.Errorf("the configuration file has no type %s for its section %s", section.typ, section.name)
		}
		fmt.Fprintf(out, "\n### %s\n\n| Key | Meaning |\n|---|---|\n", section.name)
		writeFields(out, section.name, section.typ, types)
	}
	out.WriteString(olderHead)
	older := config.OlderFlags()
	for _, name := range slices.Sorted(maps.Keys(older)) {
		fmt.Fprintf(out, "| `--%s` | `--%s` |\n", name, older[name])
	}
	return nil
}

// writeFields writes the keys of a type, and of the types below it, with their paths.
func writeFields(out *bytes.Buffer, path, typ string, types map[string][]field) {
	for _, f := range types[typ] {
		fmt.Fprintf(out, "| `%s.%s` | %s |\n", path, f.name, cell(f.doc))
		writeFields(out, path+"."+f.name, f.typ, types)
	}
}

// group is one table of the page.
type group struct {
	title string
	rows  []config.Row
}

// groups sorts rows into tables, by the first part of their key in the file.
func groups(rows []config.Row) []group {
	order := []string{"Components", "Process", "Listeners", "Authors of custom resources", "Publication", "Logging", "MLflow", "Model Registry", "Model Catalog", "ModelMesh", "Ray clusters"}
	byTitle := map[string][]config.Row{}
	for _, row := range rows {
		title := titleOf(row)
		byTitle[title] = append(byTitle[title], row)
	}
	var all []group
	for _, title := range order {
		if len(byTitle[title]) > 0 {
			all = append(all, group{title, byTitle[title]})
		}
	}
	return all
}

// titleOf names the table of a row. Only the images of Ray have neither flag nor key.
func titleOf(row config.Row) string {
	section, _, _ := strings.Cut(row.Key, ".")
	switch {
	case strings.HasPrefix(row.Flag, "enable-"):
		return "Components"
	case titles[section] != "":
		return titles[section]
	case strings.HasPrefix(row.Flag, "zap-"):
		return "Logging"
	case row.Flag != "":
		return "Process"
	default:
		return "Ray clusters"
	}
}

// titles of the tables, by the sections of the file.
var titles = map[string]string{
	"components": "Components", "mlflow": "MLflow", "modelregistry": "Model Registry", "modelcatalog": "Model Catalog", "modelmesh": "ModelMesh",
	"admission": "Authors of custom resources", "exposure": "Publication", "metrics": "Listeners", "health": "Listeners", "webhook": "Listeners",
}

func line(row config.Row) string {
	return fmt.Sprintf("| %s | %s | %s | %s | %s |", code(dashed(row.Flag)), code(row.Env...), code(row.Key), code(steady(row.Default)), cell(row.Help))
}

func dashed(flag string) string {
	if flag == "" {
		return ""
	}
	return "--" + flag
}

// steady makes a default the same wherever the page is written: one begins with the folder for temporary files.
func steady(text string) string {
	if rest, ok := strings.CutPrefix(text, strings.TrimSuffix(os.TempDir(), "/")); ok && strings.HasPrefix(rest, "/") {
		return "/tmp" + rest
	}
	return text
}

// code shows texts as code, without those that are empty.
func code(texts ...string) string {
	var all []string
	for _, text := range texts {
		if text != "" {
			all = append(all, "`"+text+"`")
		}
	}
	return strings.Join(all, ", ")
}

// cell makes a text fit for a table.
func cell(text string) string { return strings.ReplaceAll(text, "|", `\|`) }

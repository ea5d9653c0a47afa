// Command configuration writes docs/configuration.md, the page of all settings, from the table in pkg/config.
//
//	configuration PAGE
package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/odh-platform/odh-platform-operator/controllers/appwrapper"
	"github.com/odh-platform/odh-platform-operator/controllers/mlflow"
	"github.com/odh-platform/odh-platform-operator/controllers/modelcatalog"
	"github.com/odh-platform/odh-platform-operator/controllers/modelmesh"
	"github.com/odh-platform/odh-platform-operator/controllers/modelregistry"
	"github.com/odh-platform/odh-platform-operator/controllers/olm"
	"github.com/odh-platform/odh-platform-operator/controllers/platform"
	"github.com/odh-platform/odh-platform-operator/controllers/raycluster"
	"github.com/odh-platform/odh-platform-operator/pkg/config"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "configuration:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 1 {
		return errors.New("usage: configuration PAGE")
	}
	return os.WriteFile(args[0], []byte(page(config.SettingDocs(program()))), 0o644)
}

// program returns the components in the order of the page.
func program() config.Program {
	return config.Program{Components: []string{
		mlflow.ComponentName, modelregistry.ComponentName, modelcatalog.ComponentName, modelmesh.ComponentName,
		raycluster.ComponentName, appwrapper.ComponentName, platform.ComponentName, olm.ComponentName,
	}}
}

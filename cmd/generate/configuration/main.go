// Command configuration writes docs/configuration.md, the page of all settings, from the table in pkg/config and from the types of
// the configuration file in apis/config/v1alpha1.
//
//	configuration PAGE
package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"

	"github.com/odh-platform/odh-platform-operator/controllers/appwrapper"
	"github.com/odh-platform/odh-platform-operator/controllers/mlflow"
	"github.com/odh-platform/odh-platform-operator/controllers/modelcatalog"
	"github.com/odh-platform/odh-platform-operator/controllers/modelmesh"
	"github.com/odh-platform/odh-platform-operator/controllers/modelregistry"
	"github.com/odh-platform/odh-platform-operator/controllers/platform"
	"github.com/odh-platform/odh-platform-operator/controllers/raycluster"
	"github.com/odh-platform/odh-platform-operator/pkg/config"
)

// types is the folder with the types of the configuration file, below the root of the checkout.
const types = "apis/config/v1alpha1"

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
	fields, err := readTypes(types)
	if err != nil {
		return err
	}
	var text bytes.Buffer
	if err := writePage(&text, config.Rows(program()), fields); err != nil {
		return err
	}
	return os.WriteFile(args[0], text.Bytes(), 0o644)
}

// program names the components in the order of the page.
func program() config.Program {
	return config.Program{Components: []string{
		mlflow.ComponentName, modelregistry.ComponentName, modelcatalog.ComponentName, modelmesh.ComponentName,
		raycluster.ComponentName, appwrapper.ComponentName, platform.ComponentName,
	}}
}

// Command validators runs every validator of operator-framework/api on a bundle and prints the findings as JSON. It is a separate
// module, so the dependencies of the validators do not become those of the operator.
package main

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/operator-framework/api/pkg/manifests"
	"github.com/operator-framework/api/pkg/validation"
	"github.com/sirupsen/logrus"
)

// finding is one result.
type finding struct {
	Validator string `json:"validator"`
	Level     string `json:"level"`
	Detail    string `json:"detail"`
}

// report is the output of the program.
type report struct {
	// Validators that examined at least one object.
	Validators []string  `json:"validators"`
	Findings   []finding `json:"findings"`
}

// names are the names of validation.AllValidators, in the same order.
var names = []string{
	"package manifest", "ClusterServiceVersion", "CustomResourceDefinition", "bundle", "operatorhub", "categories", "capabilities", "objects",
	"operator group", "community", "removed APIs", "good practices", "architectures",
}

func main() {
	logrus.SetOutput(os.Stderr)
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "validating a bundle:", err)
		os.Exit(1)
	}
}

// run validates a bundle. The arguments are its folder and a version of Kubernetes.
func run(args []string) error {
	if len(args) != 2 {
		return fmt.Errorf("%d arguments: give the folder of a bundle and a version of Kubernetes", len(args))
	}
	bundle, err := manifests.GetBundleFromDir(args[0])
	if err != nil {
		return fmt.Errorf("loading the bundle in %s: %w", args[0], err)
	}
	if len(names) != len(validation.AllValidators) {
		return fmt.Errorf("there are %d validators and %d names", len(validation.AllValidators), len(names))
	}
	// Without the key container-tools, the validator of architectures runs docker from the PATH.
	objects := []any{bundle, bundle.CSV, map[string]string{"k8s-version": args[1]}}
	for _, crd := range bundle.V1CRDs {
		objects = append(objects, crd)
	}
	for _, object := range bundle.Objects {
		objects = append(objects, object)
	}
	var r report
	for i, v := range validation.AllValidators {
		name, results := names[i], v.Validate(objects...)
		if len(results) > 0 {
			r.Validators = append(r.Validators, name)
		}
		for _, result := range results {
			for _, e := range result.Errors {
				r.Findings = append(r.Findings, finding{name, "error", e.Error()})
			}
			for _, w := range result.Warnings {
				r.Findings = append(r.Findings, finding{name, "warning", w.Error()})
			}
		}
	}
	return json.NewEncoder(os.Stdout).Encode(r)
}

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// notes writes the instructions to install this version, and its section of the changelog.
func (r *release) notes(context.Context) error {
	changelog, err := os.ReadFile(filepath.Join(r.root, "CHANGELOG.md"))
	if err != nil {
		return err
	}
	changes, err := section(string(changelog), r.version)
	if err != nil {
		return err
	}
	text := fmt.Sprintf(`# odh-platform-operator %[1]s

    helm install odh-platform-operator oci://%[2]s/charts/odh-platform-operator --version %[1]s -n opendatahub --create-namespace --wait

or

    kubectl apply --server-side -f %[3]s

Image: %[4]s. For OpenShift, Open Data Hub and OLM, see docs/install.md and docs/olm.md. The files' checksums are in checksums.txt.

%[5]s
`, r.version, r.registry, r.download("install-kubernetes.yaml"), "`"+r.reference(operatorName)+"`", changes)
	return r.write("RELEASE_NOTES.md", []byte(text))
}

// section returns what the changelog says about a version; for one that it does not name yet, what is unreleased.
func section(changelog, version string) (string, error) {
	sections := strings.Split("\n"+changelog, "\n## ")[1:]
	for _, name := range []string{version, "Unreleased"} {
		for _, text := range sections {
			title, text, _ := strings.Cut(text, "\n")
			if heading, _, _ := strings.Cut(title, " "); heading == name {
				return strings.TrimSpace(text), nil
			}
		}
	}
	return "", errors.New("CHANGELOG.md has neither a section of the version nor one of what is unreleased")
}

// Command reference writes the reference of the custom resources, one page for each API group, from their definitions.
//
//	reference CRD-FOLDER SAMPLE-FOLDER PAGE-FOLDER
package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "reference:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 3 {
		return errors.New("usage: reference CRD-FOLDER SAMPLE-FOLDER PAGE-FOLDER")
	}
	crds, err := readCRDs(args[0])
	if err != nil {
		return err
	}
	examples, err := readExamples(args[1])
	if err != nil {
		return err
	}
	pages := pages(crds, examples)
	for _, name := range slices.Sorted(maps.Keys(pages)) {
		if err := os.WriteFile(filepath.Join(args[2], name), pages[name], 0o644); err != nil {
			return err
		}
	}
	return nil
}

// readCRDs returns the CRDs of a folder, sorted by group and kind.
func readCRDs(dir string) ([]apiextensionsv1.CustomResourceDefinition, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil || len(paths) == 0 {
		return nil, errors.Join(fmt.Errorf("there are no CRDs in %s: run make generate from the root of the checkout", dir), err)
	}
	var crds []apiextensionsv1.CustomResourceDefinition
	for _, path := range paths {
		raw, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		var crd apiextensionsv1.CustomResourceDefinition
		if err := yaml.UnmarshalStrict(raw, &crd); err != nil {
			return nil, fmt.Errorf("%s contains no CRD: %w", path, err)
		}
		crds = append(crds, crd)
	}
	slices.SortFunc(crds, func(a, b apiextensionsv1.CustomResourceDefinition) int {
		return cmp.Or(cmp.Compare(a.Spec.Group, b.Spec.Group), cmp.Compare(a.Spec.Names.Kind, b.Spec.Names.Kind))
	})
	return crds, nil
}

// readExamples returns the shortest sample of each kind in a folder, by "apiVersion kind".
func readExamples(dir string) (map[string]string, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	examples := map[string]string{}
	for _, path := range paths {
		raw, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		for document := range strings.SplitSeq(string(raw), "\n---\n") {
			var kind metav1.TypeMeta
			if err := yaml.Unmarshal([]byte(document), &kind); err != nil {
				return nil, fmt.Errorf("%s: %w", path, err)
			}
			name, text := kind.APIVersion+" "+kind.Kind, strings.TrimSpace(document)
			if best, found := examples[name]; !found || len(text) < len(best) {
				examples[name] = text
			}
		}
	}
	return examples, err
}

// pages returns the text of each page by file name.
func pages(crds []apiextensionsv1.CustomResourceDefinition, examples map[string]string) map[string][]byte {
	pages := map[string][]byte{}
	index := bytes.NewBufferString(indexHead)
	for _, crd := range crds {
		name := crd.Spec.Group + ".md"
		page := bytes.NewBuffer(pages[name])
		if page.Len() == 0 {
			fmt.Fprintf(page, groupHead, crd.Spec.Group)
		}
		writeKind(page, crd, examples)
		pages[name] = page.Bytes()
		fmt.Fprintln(index, indexLine(crd))
	}
	pages["README.md"] = index.Bytes()
	return pages
}

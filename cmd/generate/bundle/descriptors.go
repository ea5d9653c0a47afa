package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// describeOwned completes the descriptions of CRDs from their schemas. Exactly the versions that are served and not deprecated must be
// described, because the console shows all descriptions.
func describeOwned(described []v1alpha1.CRDDescription, crds []definition) ([]v1alpha1.CRDDescription, error) {
	remaining := map[string]v1alpha1.CRDDescription{}
	for _, d := range described {
		remaining[d.Name+" "+d.Version] = d
	}
	var out []v1alpha1.CRDDescription
	for _, d := range crds {
		for _, version := range d.crd.Spec.Versions {
			key := d.crd.Name + " " + version.Name
			description, found := remaining[key]
			delete(remaining, key)
			switch required := version.Served && !version.Deprecated; {
			case required && !found:
				return nil, fmt.Errorf("CRD %s is not described: add it to the base of the CSV", key)
			case found && !required:
				return nil, fmt.Errorf("CRD %s is described, but deprecated or not served: remove it from the base of the CSV", key)
			case !required:
				continue
			}
			completed, err := complete(description, d.crd.Spec.Names.Kind, version.Schema)
			if err != nil {
				return nil, fmt.Errorf("describing CRD %s: %w", key, err)
			}
			out = append(out, completed)
		}
	}
	if len(remaining) > 0 {
		return nil, fmt.Errorf("the base of the CSV describes CRDs that do not exist: %s", strings.Join(slices.Sorted(maps.Keys(remaining)), ", "))
	}
	return out, nil
}

func complete(d v1alpha1.CRDDescription, kind string, validation *apiextensionsv1.CustomResourceValidation) (v1alpha1.CRDDescription, error) {
	if validation == nil || validation.OpenAPIV3Schema == nil {
		return d, fmt.Errorf("it has no schema")
	}
	if d.Kind != kind {
		return d, fmt.Errorf("its kind is %s and not %s", kind, d.Kind)
	}
	schema := validation.OpenAPIV3Schema
	d.Description = oneLine(schema.Description)
	var err error
	if d.SpecDescriptors, err = fields(d.SpecDescriptors, schema.Properties["spec"]); err != nil {
		return d, fmt.Errorf("spec: %w", err)
	}
	if d.StatusDescriptors, err = fields(d.StatusDescriptors, schema.Properties["status"]); err != nil {
		return d, fmt.Errorf("status: %w", err)
	}
	return d, nil
}

// fields returns a descriptor of every field of the first level, and completes the given descriptors. It fails for an unknown path.
func fields[D v1alpha1.SpecDescriptor | v1alpha1.StatusDescriptor](given []D, schema apiextensionsv1.JSONSchemaProps) ([]D, error) {
	known := map[string]v1alpha1.SpecDescriptor{}
	for _, descriptor := range given {
		f := v1alpha1.SpecDescriptor(descriptor)
		if _, found := lookUpSchema(schema, strings.Split(f.Path, ".")); !found {
			return nil, fmt.Errorf("the base of the CSV describes the field %s, which does not exist", f.Path)
		}
		known[f.Path] = f
	}
	for path := range schema.Properties {
		if _, found := known[path]; !found {
			known[path] = v1alpha1.SpecDescriptor{Path: path}
		}
	}
	var out []D
	for _, path := range slices.Sorted(maps.Keys(known)) {
		f := known[path]
		property, _ := lookUpSchema(schema, strings.Split(path, "."))
		f.Description = oneLine(property.Description)
		if f.DisplayName == "" {
			f.DisplayName = title(path[strings.LastIndex(path, ".")+1:])
		}
		out = append(out, D(f))
	}
	return out, nil
}

func lookUpSchema(schema apiextensionsv1.JSONSchemaProps, path []string) (apiextensionsv1.JSONSchemaProps, bool) {
	for _, name := range path {
		next, found := schema.Properties[name]
		if !found {
			return schema, false
		}
		schema = next
	}
	return schema, true
}

// title splits the name of a field into words: backendStoreUri becomes Backend Store Uri.
func title(name string) string {
	var b strings.Builder
	last := '_'
	for _, r := range strings.ReplaceAll(name, "_", " ") {
		switch {
		case last == '_' || last == ' ':
			r = unicode.ToUpper(r)
		case unicode.IsUpper(r) && !unicode.IsUpper(last):
			b.WriteByte(' ')
		}
		b.WriteRune(r)
		last = r
	}
	return b.String()
}

// oneLine joins the lines of a description, which the console shows as one paragraph.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

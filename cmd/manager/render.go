package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/odh-platform/odh-platform-operator/pkg/capability"
)

// platforms are the clusters that render can pretend to be on.
func platforms() map[string]capability.Set {
	plain := []schema.GroupVersionKind{
		capability.HTTPRoute, capability.ReferenceGrant, capability.ServiceMonitor, capability.PrometheusRule, capability.RayCluster,
	}
	openshift := append(slices.Clone(plain), capability.Route, capability.OpenShiftIngress, capability.UserGroup, capability.ConsoleLink)
	return map[string]capability.Set{
		"bare":      capability.NewSet(),
		"plain":     capability.NewSet(plain...),
		"openshift": capability.NewSet(openshift...),
	}
}

// runRender prints what the custom resources in a file would produce, one YAML document per object.
func runRender(_ context.Context, p process) error {
	file, platform, rest, err := renderArgs(p.args)
	if err != nil {
		return err
	}
	cfg, err := p.load(program(p), rest)
	if err != nil {
		return err
	}
	in := p.stdin
	if file != "-" {
		text, err := os.ReadFile(file)
		if err != nil {
			return fmt.Errorf("reading the custom resource: %w", err)
		}
		in = bytes.NewReader(text)
	}
	renders := map[schema.GroupVersionKind]renderFunc{}
	for _, r := range p.table(&Env{Config: cfg}) {
		for kind, render := range r.Renders {
			renders[kind] = render
		}
	}
	return renderAll(in, p.stdout, renders, RenderEnv{Config: cfg, Capabilities: platforms()[platform]})
}

// renderArgs takes out what only render knows; the rest are the flags of run.
func renderArgs(args []string) (file, platform string, rest []string, err error) {
	platform = "plain"
	for i := 0; i < len(args); i++ {
		name, value, hasValue := strings.Cut(strings.TrimLeft(args[i], "-"), "=")
		isOurs := strings.HasPrefix(args[i], "-") && slices.Contains([]string{"f", "file", "platform"}, name)
		if !isOurs {
			rest = append(rest, args[i])
			continue
		}
		if !hasValue {
			if i++; i == len(args) {
				return "", "", nil, fmt.Errorf("flag %s needs a value", args[i-1])
			}
			value = args[i]
		}
		if name == "platform" {
			platform = value
			continue
		}
		file = value
	}
	switch {
	case slices.Contains(rest, "--help") || slices.Contains(rest, "-h"):
		return "-", platform, rest, nil
	case file == "":
		return "", "", nil, errors.New(`name the file with the custom resource: render -f FILE ("-" reads the standard input)`)
	case !slices.Contains([]string{"bare", "plain", "openshift"}, platform):
		return "", "", nil, fmt.Errorf("unknown platform %q; known platforms: bare, plain, openshift", platform)
	}
	return file, platform, rest, nil
}

// renderAll renders every document of a stream.
func renderAll(in io.Reader, out io.Writer, renders map[schema.GroupVersionKind]renderFunc, env RenderEnv) error {
	documents := utilyaml.NewYAMLReader(bufio.NewReader(in))
	rendered := 0
	for {
		doc, err := documents.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("reading the custom resource: %w", err)
		}
		obj := &unstructured.Unstructured{}
		if err := yaml.UnmarshalStrict(doc, &obj.Object); err != nil {
			return fmt.Errorf("document %d is not valid YAML: %w", rendered+1, err)
		}
		if len(obj.Object) == 0 {
			continue
		}
		rendered++
		if err := renderOne(obj, out, renders, env); err != nil {
			return err
		}
	}
	if rendered == 0 {
		return errors.New("there is no custom resource in the input")
	}
	return nil
}

func renderOne(obj *unstructured.Unstructured, out io.Writer, renders map[schema.GroupVersionKind]renderFunc, env RenderEnv) error {
	kind := obj.GroupVersionKind()
	render, ok := renders[kind]
	if !ok {
		return unknownKind(kind, renders)
	}
	objects, err := render(obj, env)
	if err != nil {
		return fmt.Errorf("rendering %s %s: %w", kind.Kind, obj.GetName(), err)
	}
	for _, o := range objects {
		text, err := yaml.Marshal(o.Object)
		if err != nil {
			return fmt.Errorf("writing %s %s: %w", o.GetKind(), o.GetName(), err)
		}
		if _, err := fmt.Fprintf(out, "---\n%s", text); err != nil {
			return fmt.Errorf("writing %s %s: %w", o.GetKind(), o.GetName(), err)
		}
	}
	return nil
}

func unknownKind(kind schema.GroupVersionKind, renders map[schema.GroupVersionKind]renderFunc) error {
	if len(renders) == 0 {
		return fmt.Errorf("%s of %s cannot be rendered: this build renders no kind", kind.Kind, kind.GroupVersion())
	}
	var known []string
	for k := range renders {
		known = append(known, k.GroupVersion().String()+"/"+k.Kind)
	}
	slices.Sort(known)
	return fmt.Errorf("%s/%s cannot be rendered; known kinds: %s", kind.GroupVersion(), kind.Kind, strings.Join(known, ", "))
}

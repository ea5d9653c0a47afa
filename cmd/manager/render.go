package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/odh-platform/odh-platform-operator/cmd/internal/render"
	"github.com/odh-platform/odh-platform-operator/cmd/internal/review"
)

// runRender prints the objects that the custom resources in a file would produce, one YAML document each.
func runRender(ctx context.Context, p process) error {
	file, platform, runArgs, err := renderArgs(p.args)
	if err != nil {
		return err
	}
	served, err := render.Platform(platform)
	if err != nil {
		return err
	}
	cfg, err := p.load(program(p), runArgs)
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
	return p.kinds.RenderAll(in, p.stdout, render.Env{Config: cfg, Capabilities: served, Version: programVersion(), Review: review.Func(ctx)})
}

// renderArgs returns the arguments of render and the remaining arguments, which are flags of run.
func renderArgs(args []string) (file, platform string, runArgs []string, err error) {
	platform = render.DefaultPlatform
	for i := 0; i < len(args); i++ {
		name, value, hasValue := strings.Cut(strings.TrimLeft(args[i], "-"), "=")
		isRenderFlag := strings.HasPrefix(args[i], "-") && slices.Contains([]string{"f", "file", "platform"}, name)
		if !isRenderFlag {
			runArgs = append(runArgs, args[i])
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
	case slices.Contains(runArgs, "--help") || slices.Contains(runArgs, "-h"):
		return "-", platform, runArgs, nil
	case file == "":
		return "", "", nil, errors.New(`name the file with the custom resource: render -f FILE ("-" reads the standard input)`)
	}
	return file, platform, runArgs, nil
}

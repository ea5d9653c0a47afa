// Command release builds all files and images of a version of the operator, and pushes the images to a registry. It needs no container
// engine: it builds the images from programs that the Go tool chain compiles for each platform. Its output is reproducible: two runs on the
// same commit write the same bytes.
//
// It is a separate module, so that its libraries do not change the dependencies of the operator. It runs the generators below cmd/generate
// for everything that requires the code of the operator.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/blang/semver/v4"
)

const usage = "usage: release build --version VERSION [flags] | release push [flags]"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return errors.New(usage)
	}
	switch args[0] {
	case "build":
		return build(ctx, args[1:])
	case "push":
		flags := flag.NewFlagSet("push", flag.ContinueOnError)
		dist := flags.String("dist", "dist", "folder of the release")
		registry := flags.String("registry", "", "registry to push to; it must be the one in the manifests, which is the default")
		if err := flags.Parse(args[1:]); err != nil {
			return err
		}
		return push(ctx, *dist, *registry, os.Stdout)
	default:
		return fmt.Errorf("unknown command %q; %s", args[0], usage)
	}
}

func build(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("build", flag.ContinueOnError)
	r := &release{out: os.Stdout}
	flags.StringVar(&r.version, "version", "", "version to release, such as 1.2.3")
	flags.StringVar(&r.registry, "registry", "ghcr.io/odh-platform", "registry, with a path, that the manifests name; push sends the images there")
	flags.StringVar(&r.root, "root", ".", "root of the checkout")
	flags.StringVar(&r.dist, "dist", "dist", "folder to write; its content is deleted")
	flags.StringVar(&r.builder, "builder", "https://github.com/odh-platform/odh-platform-operator/blob/main/docs/release.md", "URI of the builder, for the provenance")
	platforms := flags.String("platforms", "linux/amd64,linux/arm64,linux/ppc64le,linux/s390x", "platforms of the images")
	systems := flags.String("systems", "linux/amd64,linux/arm64,darwin/amd64,darwin/arm64,windows/amd64", "systems of kubectl-odh")
	allowDirty := flags.Bool("allow-dirty", false, "include changes that are not committed, for tests")
	if err := flags.Parse(args); err != nil {
		return err
	}
	var err error
	if r.imagePlatforms, err = parsePlatforms(*platforms); err != nil {
		return err
	}
	if r.pluginPlatforms, err = parsePlatforms(*systems); err != nil {
		return err
	}
	if _, err := semver.Parse(r.version); err != nil {
		return fmt.Errorf("VERSION is %q: %w: set a semantic version such as 1.2.3", r.version, err)
	}
	for _, folder := range []*string{&r.root, &r.dist} {
		absolute, err := filepath.Abs(*folder)
		if err != nil {
			return fmt.Errorf("finding folder %s: %w", *folder, err)
		}
		*folder = absolute
	}
	if r.source, err = readSource(ctx, r.root, os.Getenv("SOURCE_DATE_EPOCH"), *allowDirty); err != nil {
		return err
	}
	return r.make(ctx)
}

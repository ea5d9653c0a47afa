package main

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
)

// Set at link time with -ldflags "-X main.version=... -X main.mlflowVersion=... -X main.modelRegistryVersion=... -X main.commit=...".
var (
	// version is the version of the program; by default that of the module.
	version string
	// mlflowVersion is the oldest MLflow release that this build supports.
	mlflowVersion = "3.14.0"
	// modelRegistryVersion is the release of Model Registry that this build supports.
	modelRegistryVersion = "v0.3.14"
	// commit is set for releases, which are built with -buildvcs=false.
	commit string
)

// programVersion returns the version set at link time, or else that of the module, or "dev".
func programVersion() string {
	module := ""
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "(devel)" {
		module = info.Main.Version
	}
	return cmp.Or(version, module, "dev")
}

// revision returns the commit of the build, or "unknown". The suffix "-modified" means that files differed from the commit.
func revision() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	commitID, modified := cmp.Or(commit, "unknown"), ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			commitID = s.Value
		case s.Key == "vcs.modified" && s.Value == "true":
			modified = "-modified"
		}
	}
	return commitID + modified
}

func runVersion(_ context.Context, p process) error {
	if len(p.args) > 0 {
		return fmt.Errorf("version takes no arguments, got %q", p.args[0])
	}
	_, err := fmt.Fprintf(p.stdout, "version:  %s\nrevision: %s\ngo:       %s\nplatform: %s/%s\nmlflow:   %s\n",
		programVersion(), revision(), runtime.Version(), runtime.GOOS, runtime.GOARCH, mlflowVersion)
	return err
}

package bundle

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// parse parses a Dockerfile in the root of the checkout.
func parse(t *testing.T, name string) *dockerfile {
	t.Helper()
	d, err := readDockerfile(string(read(t, filepath.Join(root, name))))
	if err != nil || len(d.stages) == 0 {
		t.Fatalf("%s: readDockerfile returned %+v, error %v, want at least one stage", name, d, err)
	}
	return d
}

// exists reports whether a file or folder exists at a path below the root of the checkout.
func exists(path string) bool {
	_, err := os.Stat(filepath.Join(root, path))
	return err == nil
}

func TestReadDockerfile(t *testing.T) {
	d, err := readDockerfile("# comment\nARG BASE=scratch PLAIN\n\nFROM --platform=$BUILDPLATFORM golang:1 AS build\nrun a \\\n  && b\nFROM ${BASE}\nLABEL a=b c=\"d\"\nCOPY --from=build /x /y\n")
	if err != nil {
		t.Fatal(err)
	}
	if !maps.Equal(d.arguments, map[string]string{"BASE": "scratch", "PLAIN": ""}) || len(d.stages) != 2 {
		t.Errorf("got %+v, want the global arguments and 2 stages", d)
	}
	first, last := d.stages[0], d.stages[1]
	if first.image != "golang:1" || first.name != "build" || first.platform != "$BUILDPLATFORM" || !slices.Equal(first.instructions[0].arguments, []string{"a", "&&", "b"}) {
		t.Errorf("got stage %+v, want the builder with its platform and command", first)
	}
	if last.image != "${BASE}" || last.name != "" || !maps.Equal(d.labels(), map[string]string{"a": "b", "c": "d"}) {
		t.Errorf("got stage %+v, want the base image with two labels", last)
	}
	for text, want := range map[string]string{
		"RUN a": "before the first FROM", "FROM": "must be FROM image", "FROM a b": "must be FROM image", "FROM a AS": "must be FROM image", "FROM a\nRUN": "no arguments",
	} {
		if _, err := readDockerfile(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q", text, err, want)
		}
	}
}

// The build stage runs on the build platform, compiles for the target platform without cgo, and uses the requested cryptographic module.
// The image runs as an unprivileged user; a build argument sets its base image.
func TestDockerfileBuildsManager(t *testing.T) {
	d := parse(t, "Dockerfile")
	if len(d.stages) != 2 {
		t.Fatalf("got %d stages, want 2", len(d.stages))
	}
	build, final := d.stages[0], d.stages[1]
	if build.platform != "$BUILDPLATFORM" || build.image != "${GO_IMAGE}" || final.image != "${BASE_IMAGE}" || final.platform != "" {
		t.Errorf("got FROM %s on %s, then FROM %s on %q", build.image, build.platform, final.image, final.platform)
	}
	if !strings.Contains(d.arguments["GO_IMAGE"], "golang:1.26") || !strings.HasSuffix(d.arguments["BASE_IMAGE"], ":nonroot") {
		t.Errorf("got arguments %v, want Go 1.26 and a nonroot base image", d.arguments)
	}
	compile := ""
	for _, i := range build.instructions {
		if text := strings.Join(i.arguments, " "); i.name == "RUN" && strings.Contains(text, "make") {
			compile = text
		}
	}
	for _, part := range []string{"CGO_ENABLED=0", "GOOS=${TARGETOS}", "GOARCH=${TARGETARCH}", "GOFIPS140=${GOFIPS140}", "make manager BINARY=/manager VERSION=${VERSION}"} {
		if !strings.Contains(compile, part) {
			t.Errorf("%q does not contain %s", compile, part)
		}
	}
	for _, argument := range []string{"TARGETARCH", "VERSION=0.1.0", "GOFIPS140=off"} {
		if !build.hasInstruction("ARG", argument) {
			t.Errorf("the build stage has no argument %s", argument)
		}
	}
	for _, line := range []string{"USER 65532:65532", `ENTRYPOINT ["/manager"]`, "COPY --from=build /manager /manager"} {
		name, argument, _ := strings.Cut(line, " ")
		if !final.hasInstruction(name, argument) {
			t.Errorf("the last stage does not contain %q", line)
		}
	}
}

// hasInstruction reports whether the stage has an instruction with exactly these arguments.
func (s stage) hasInstruction(name, arguments string) bool {
	return slices.ContainsFunc(s.instructions, func(i instruction) bool { return i.name == name && strings.Join(i.arguments, " ") == arguments })
}

// Every copied path exists and is part of the build context, and the paths include all packages of the manager.
func TestBuildContextHasSources(t *testing.T) {
	context := strings.Fields(string(read(t, root+"/.dockerignore")))
	var copied []string
	for _, file := range []string{"Dockerfile", "bundle.Dockerfile"} {
		for _, s := range parse(t, file).stages {
			for _, i := range s.instructions {
				if i.name != "COPY" || strings.HasPrefix(i.arguments[0], "--from") {
					continue
				}
				for _, path := range i.arguments[:len(i.arguments)-1] {
					top, _, _ := strings.Cut(path, "/")
					if !exists(path) || !slices.Contains(context, "!"+top) {
						t.Errorf("%s copies %s, which does not exist or is not in the build context", file, path)
					}
					copied = append(copied, strings.TrimSuffix(path, "/"))
				}
			}
		}
	}
	list := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f", "{{if .Module}}{{if .Module.Main}}{{.ImportPath}}{{end}}{{end}}", "./cmd/manager")
	list.Dir = root
	packages, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	required := []string{"go.mod", "go.sum", "Makefile"}
	for _, path := range strings.Fields(string(packages)) {
		folder, _, _ := strings.Cut(strings.TrimPrefix(path, "github.com/odh-platform/odh-platform-operator/"), "/")
		required = append(required, folder)
	}
	for _, path := range required {
		if !slices.Contains(copied, path) {
			t.Errorf("%s is not copied", path)
		}
	}
}

// The Makefile builds the image for the platforms in the labels of the CSV and in the node affinity of the manager.
func TestPlatforms(t *testing.T) {
	platforms := ""
	for line := range strings.Lines(string(read(t, root+"/Makefile"))) {
		if value, found := strings.CutPrefix(line, "PLATFORMS ?= "); found {
			platforms = strings.TrimSpace(value)
		}
	}
	var built []string
	for platform := range strings.SplitSeq(platforms, ",") {
		built = append(built, strings.TrimPrefix(platform, "linux/"))
	}
	var labelled []string
	for label := range csv(t).Labels {
		if name, found := strings.CutPrefix(label, "operatorframework.io/arch."); found {
			labelled = append(labelled, name)
		}
	}
	slices.Sort(labelled)
	affinity := csv(t).Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0].Spec.Template.Spec.Affinity
	accepted := affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms[0].MatchExpressions[0].Values
	if !slices.Equal(built, labelled) || !slices.Equal(built, accepted) {
		t.Errorf("got platforms %q in the Makefile, %q in labels and %q in the node affinity, want the same", built, labelled, accepted)
	}
}

package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"sigs.k8s.io/yaml"
)

// workflow holds the checked fields of a GitHub workflow.
type workflow struct {
	Permissions map[string]string
	Jobs        map[string]struct {
		Strategy struct {
			Matrix struct{ Targets []string }
		}
		Steps []struct {
			Uses string
			Run  string
			With map[string]any
		}
	}
}

var (
	pinned       = regexp.MustCompile(`(?m)uses: \S+@[0-9a-f]{40} # v[0-9.]+$`)
	makeCommands = regexp.MustCompile(`(?m)^(?:\s*-? ?run: )?make ([a-z-]+(?: [a-z-]+)*)`)
)

// Actions are pinned to a commit, checkouts do not persist credentials, workflows have only read permissions by default, and their make
// targets exist.
func TestWorkflowsArePinnedAndRestricted(t *testing.T) {
	paths, err := filepath.Glob("../../.github/workflows/*.yml")
	if err != nil || len(paths) != 7 {
		t.Fatalf("unexpected paths %v, error %v", paths, err)
	}
	makefile, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	targetCount := 0
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var w workflow
		if err := yaml.Unmarshal(text, &w); err != nil {
			t.Fatalf("%s: unexpected error: %v", path, err)
		}
		if len(w.Permissions) != 1 || w.Permissions["contents"] != "read" {
			t.Errorf("%s: got permissions %v, want contents: read", path, w.Permissions)
		}
		if all, good := strings.Count(string(text), "uses: "), len(pinned.FindAllString(string(text), -1)); all != good || all == 0 {
			t.Errorf("%s: %d of %d actions are pinned", path, good, all)
		}
		for name, job := range w.Jobs {
			targets := job.Strategy.Matrix.Targets
			for _, step := range job.Steps {
				if strings.HasPrefix(step.Uses, "actions/checkout@") && step.With["persist-credentials"] != false {
					t.Errorf("%s: job %s persists credentials", path, name)
				}
				for _, match := range makeCommands.FindAllStringSubmatch(step.Run, -1) {
					targets = append(targets, match[1])
				}
			}
			for _, list := range targets {
				for _, target := range strings.Fields(list) {
					targetCount++
					if !strings.Contains(string(makefile), "\n"+target+":") {
						t.Errorf("%s: the Makefile has no target %s", path, target)
					}
				}
			}
		}
	}
	if targetCount < 10 {
		t.Errorf("got %d targets, want at least 10", targetCount)
	}
}

// Dependabot checks every Go module.
func TestDependabotChecksAllModules(t *testing.T) {
	text, err := os.ReadFile("../../.github/dependabot.yml")
	if err != nil {
		t.Fatal(err)
	}
	var config struct {
		Updates []struct{ Directories []string }
	}
	if err := yaml.Unmarshal(text, &config); err != nil {
		t.Fatal(err)
	}
	var modules []string
	err = filepath.WalkDir("../..", func(path string, entry os.DirEntry, err error) error {
		if err == nil && entry.IsDir() && slices.Contains([]string{"bin", ".git"}, entry.Name()) {
			return filepath.SkipDir
		}
		if err == nil && entry.Name() == "go.mod" {
			modules = append(modules, filepath.Join("/", strings.TrimPrefix(filepath.Dir(path), "../..")))
		}
		return err
	})
	var checked []string
	for _, update := range config.Updates {
		checked = append(checked, update.Directories...)
	}
	if diff := cmp.Diff(modules, checked, cmpopts.SortSlices(strings.Compare)); err != nil || diff != "" {
		t.Errorf("got error %v, want a directory of Dependabot for each Go module (-modules +directories):\n%s", err, diff)
	}
}

package main

import (
	"archive/zip"
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

func TestSource(t *testing.T) {
	dir := t.TempDir()
	git := func(args ...string) {
		t.Helper()
		command := exec.CommandContext(t.Context(), "git", append([]string{"-c", "user.name=a", "-c", "user.email=a@example.org"}, args...)...)
		command.Dir, command.Env = dir, append(os.Environ(), "GIT_COMMITTER_DATE=2026-11-23T12:00:00Z")
		if text, err := command.CombinedOutput(); err != nil {
			t.Fatalf("%v: git failed: %s", err, text)
		}
	}
	if _, err := readSource(t.Context(), dir, "", false); err == nil || !strings.Contains(err.Error(), "finding the commit") {
		t.Errorf("got error %v without a repository", err)
	}
	git("init", "-q")
	git("commit", "-q", "--allow-empty", "-m", "first")
	clean, err := readSource(t.Context(), dir, "", false)
	if want := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC); err != nil || !clean.time.Equal(want) || len(clean.commit) != 40 {
		t.Errorf("unexpected source %+v, error %v", clean, err)
	}
	if s, err := readSource(t.Context(), dir, "1700000000", false); err != nil || s.time.Unix() != 1_700_000_000 {
		t.Errorf("readSource returned %+v, error %v, want the time of SOURCE_DATE_EPOCH", s, err)
	}
	if _, err := readSource(t.Context(), dir, "yesterday", false); err == nil || !strings.Contains(err.Error(), `SOURCE_DATE_EPOCH is "yesterday"`) {
		t.Errorf("unexpected error: %v", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "new"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := readSource(t.Context(), dir, "", false); err == nil || !strings.Contains(err.Error(), "?? new") {
		t.Errorf("got error %v with an uncommitted file, want one that names it", err)
	}
	if s, err := readSource(t.Context(), dir, "", true); err != nil || s.commit != clean.commit+"-dirty" {
		t.Errorf("readSource returned %+v, error %v, want a commit that ends in -dirty", s, err)
	}
}

func TestSection(t *testing.T) {
	const changelog = "# Changelog\n\n## Unreleased\n\n- new\n\n## 0.10.0 (2026-01-01)\n\n### Added\n\n- ten\n\n## 0.1\n\n- one\n"
	for version, want := range map[string]string{"0.10.0": "### Added\n\n- ten", "0.1": "- one", "0.2.0": "- new"} {
		if got, err := section(changelog, version); err != nil || got != want {
			t.Errorf("section(%s) = %q, error %v, want %q", version, got, err, want)
		}
	}
	if _, err := section("# Changelog\n", "1.0.0"); err == nil {
		t.Error("want an error for a changelog without sections")
	}
}

func TestZipArchiveIsReproducible(t *testing.T) {
	files := []file{{"b.exe", 0o755, 0, []byte("b")}, {"a", 0o644, 0, []byte("a")}}
	modTime := time.Unix(1_700_000_000, 0).UTC()
	first, err := zipArchive(files, modTime)
	if err != nil {
		t.Fatal(err)
	}
	second, err := zipArchive([]file{files[1], files[0]}, modTime)
	if err != nil || !bytes.Equal(first, second) {
		t.Errorf("want the same archive for another order of files, error %v", err)
	}
	in, err := zip.NewReader(bytes.NewReader(first), int64(len(first)))
	if err != nil || len(in.File) != 2 || in.File[1].Name != "b.exe" || in.File[1].Mode().Perm() != 0o755 || !in.File[1].Modified.Equal(modTime) {
		t.Fatalf("got archive %+v, error %v, want a and an executable b.exe with the given time", in, err)
	}
	content, err := in.File[1].Open()
	if err != nil {
		t.Fatal(err)
	}
	if text, err := io.ReadAll(content); err != nil || string(text) != "b" {
		t.Errorf("got content %q, error %v, want b", text, err)
	}
}

func TestInvalidCommands(t *testing.T) {
	for args, want := range map[string]string{
		"":                   "usage: release build",
		"publish":            `unknown command "publish"`,
		"build":              `VERSION is ""`,
		"build --version v1": `VERSION is "v1"`,
		"build --version 1.2.3 --platforms linux": `platform "linux"`,
		"build --version 1.2.3 --systems /amd64":  `platform "/amd64"`,
		"push --dist nowhere":                     "make release first",
	} {
		if err := run(t.Context(), strings.Fields(args)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got error %v, want %q", args, err, want)
		}
	}
}

// The error about a folder that cannot be resolved names it.
func TestUnresolvableFolder(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "deleted")
	if err := os.Mkdir(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Chdir(folder)
	if err := os.Remove(folder); err != nil {
		t.Fatal(err)
	}
	err := run(t.Context(), []string{"build", "--version", "1.2.3", "--root", "sources"})
	if err == nil || !strings.HasPrefix(err.Error(), "finding folder sources: ") {
		t.Errorf("got error %v, want one that names the folder", err)
	}
}

func TestUpgradeSection(t *testing.T) {
	const page = "# Upgrade\n\n## From version to version\n\n### From 0.2.0 to 0.3.0\n\nRead [a](../a.md#b).\n\n### From 0.1.0 to 0.2.0\n\nNothing.\n\n## End\n"
	for version, want := range map[string]string{
		"0.3.0": "## Before you upgrade from 0.2.0 to 0.3.0\n\nRead [a](../a.md#b).\n\n", "0.2.0": "## Before you upgrade from 0.1.0 to 0.2.0\n\nNothing.\n\n", "0.1.0": "",
	} {
		if got := upgradeSection(page, version); got != want {
			t.Errorf("%s: got %q, want %q", version, got, want)
		}
	}
	const text = "[a](../a.md#b) [c](https://d/e) [f](#g) `h](i)`"
	want := "[a](" + repository + "/blob/v1.0.0/docs/a.md#b) [c](https://d/e) [f](#g) `h](" + repository + "/blob/v1.0.0/docs/upgrade/i)`"
	if got := absoluteLinks(text, "1.0.0", "docs/upgrade"); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// The page about upgrades has a section for the version that README.md installs.
func TestUpgradePageHasNextVersion(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	page, pageErr := os.ReadFile("../../" + upgradePage)
	if err != nil || pageErr != nil {
		t.Fatal(err, pageErr)
	}
	version := regexp.MustCompile(`make release VERSION=(\S+)`).FindSubmatch(readme)
	if version == nil || upgradeSection(string(page), string(version[1])) == "" {
		t.Errorf("%s has no section for %s", upgradePage, version)
	}
}

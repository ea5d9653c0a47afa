package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
)

// upgradePage is the page with a section for the upgrade to each version, below the root of the checkout.
const upgradePage = "docs/upgrade/README.md"

// notesLayout is the format of the notes.
//
//go:embed notes.txt
var notesLayout string

// notes writes the release notes: preparations of the upgrade, installation, verification, and the section of the changelog.
func (r *release) notes(context.Context) error {
	changelog, err := os.ReadFile(filepath.Join(r.root, "CHANGELOG.md"))
	if err != nil {
		return err
	}
	changes, err := section(string(changelog), r.version)
	if err != nil {
		return err
	}
	page, err := os.ReadFile(filepath.Join(r.root, upgradePage))
	if err != nil {
		return err
	}
	text := fmt.Sprintf(notesLayout, r.version, r.registry, r.downloadURL("install-kubernetes.yaml"), "`"+r.reference(operatorName)+"`", changes,
		absoluteLinks(upgradeSection(string(page), r.version), r.version, path.Dir(upgradePage)))
	return r.write("RELEASE_NOTES.md", []byte(absoluteLinks(text, r.version, ".")))
}

// upgradeSection returns the section of a version on the page about upgrades, with a title, or "".
func upgradeSection(page, version string) string {
	for _, text := range strings.Split(page, "\n### From ")[1:] {
		title, text, _ := strings.Cut(text, "\n")
		if text, _, _ = strings.Cut(text, "\n## "); strings.HasSuffix(title, " to "+version) {
			return "## Before you upgrade from " + title + "\n\n" + strings.TrimSpace(text) + "\n\n"
		}
	}
	return ""
}

var relativeLink = regexp.MustCompile(`\]\(([^():#]+)([^():]*)\)`)

// absoluteLinks replaces links relative to a folder of the checkout with links to the repository at a version, because the notes are
// published outside of the repository.
func absoluteLinks(text, version, folder string) string {
	return relativeLink.ReplaceAllStringFunc(text, func(link string) string {
		parts := relativeLink.FindStringSubmatch(link)
		return "](" + repository + "/blob/v" + version + "/" + path.Join(folder, parts[1]) + parts[2] + ")"
	})
}

// section returns the section of a version in the changelog, or the section of unreleased changes if the version has none.
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
	return "", errors.New("CHANGELOG.md has neither a section of the version nor a section Unreleased: add one")
}

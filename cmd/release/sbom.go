package main

import (
	"bytes"
	"debug/buildinfo"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	cdx "github.com/CycloneDX/cyclonedx-go"
	spdxjson "github.com/spdx/tools-golang/json"
	"github.com/spdx/tools-golang/spdx/v2/common"
	spdx "github.com/spdx/tools-golang/spdx/v2/v2_3"
)

// module is a Go module of a program.
type module struct{ path, version string }

// url returns the package URL, see https://github.com/package-url/purl-spec.
func (m module) url() string { return "pkg:golang/" + m.path + "@" + m.version }

// modules returns the modules of a program on all platforms, from the build information of its binaries.
func modules(binaries []string) ([]module, error) {
	found := map[string]module{}
	for _, path := range binaries {
		info, err := buildinfo.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("reading the build information of %s: %w", path, err)
		}
		found["stdlib"] = module{"stdlib", strings.TrimPrefix(info.GoVersion, "go")}
		for _, dependency := range info.Deps {
			if dependency.Replace != nil {
				dependency = dependency.Replace
			}
			found[dependency.Path] = module{dependency.Path, dependency.Version}
		}
	}
	return slices.SortedFunc(maps.Values(found), func(a, b module) int { return strings.Compare(a.path, b.path) }), nil
}

// writeSBOM writes the SBOM of a program, as CycloneDX and as SPDX.
func (r *release) writeSBOM(program string, binaries []string) error {
	all, err := modules(binaries)
	if err != nil {
		return err
	}
	var text bytes.Buffer
	if err := cdx.NewBOMEncoder(&text, cdx.BOMFileFormatJSON).SetPretty(true).EncodeVersion(r.cyclonedx(program, all), cdx.SpecVersion1_6); err != nil {
		return fmt.Errorf("encoding the SBOM of %s: %w", program, err)
	}
	if err := r.write("sbom/"+program+".cdx.json", text.Bytes()); err != nil {
		return err
	}
	text.Reset()
	if err := spdxjson.Write(r.spdx(program, all), &text, spdxjson.Indent("  ")); err != nil {
		return fmt.Errorf("encoding the SBOM of %s: %w", program, err)
	}
	return r.write("sbom/"+program+".spdx.json", text.Bytes())
}

func (r *release) cyclonedx(program string, all []module) *cdx.BOM {
	application := cdx.Component{
		BOMRef: r.purl(program), Type: cdx.ComponentTypeApplication, Name: program, Version: r.version, PackageURL: r.purl(program),
		Licenses: &cdx.Licenses{{License: &cdx.License{ID: "Apache-2.0"}}},
	}
	var components []cdx.Component
	var references []string
	for _, m := range all {
		components = append(components, cdx.Component{BOMRef: m.url(), Type: cdx.ComponentTypeLibrary, Name: m.path, Version: m.version, PackageURL: m.url()})
		references = append(references, m.url())
	}
	bom := cdx.NewBOM()
	bom.Metadata = &cdx.Metadata{Timestamp: r.source.time.Format(time.RFC3339), Component: &application}
	bom.Components = &components
	bom.Dependencies = &[]cdx.Dependency{{Ref: application.BOMRef, Dependencies: &references}}
	return bom
}

func (r *release) spdx(program string, all []module) *spdx.Document {
	application := spdxPackage("Application", program, "v"+r.version, r.purl(program))
	application.PackageLicenseDeclared, application.PackageLicenseConcluded = "Apache-2.0", "Apache-2.0"
	document := &spdx.Document{
		SPDXVersion: spdx.Version, DataLicense: spdx.DataLicense, SPDXIdentifier: "DOCUMENT", DocumentName: program + "-" + r.version,
		DocumentNamespace: repository + "/sbom/" + program + "-" + r.version + "-" + r.source.commit,
		CreationInfo:      &spdx.CreationInfo{Created: r.source.time.Format(time.RFC3339), Creators: []common.Creator{{CreatorType: "Tool", Creator: operatorName + "-release"}}},
		Packages:          []*spdx.Package{application},
		Relationships:     []*spdx.Relationship{relation("DOCUMENT", "DESCRIBES", application.PackageSPDXIdentifier)},
	}
	for index, m := range all {
		p := spdxPackage(fmt.Sprintf("Module-%d", index+1), m.path, m.version, m.url())
		document.Packages = append(document.Packages, p)
		document.Relationships = append(document.Relationships, relation(application.PackageSPDXIdentifier, "DEPENDS_ON", p.PackageSPDXIdentifier))
	}
	return document
}

func (r *release) purl(program string) string {
	return "pkg:golang/" + strings.TrimPrefix(repository, "https://") + "@v" + r.version + "#cmd/" + program
}

func spdxPackage(id, name, version, url string) *spdx.Package {
	const unknown = "NOASSERTION"
	return &spdx.Package{
		PackageName: name, PackageSPDXIdentifier: common.ElementID(id), PackageVersion: version, PackageDownloadLocation: unknown,
		PackageLicenseConcluded: unknown, PackageLicenseDeclared: unknown, PackageCopyrightText: unknown,
		PackageExternalReferences: []*spdx.PackageExternalReference{{Category: "PACKAGE-MANAGER", RefType: "purl", Locator: url}},
	}
}

func relation(from common.ElementID, kind string, to common.ElementID) *spdx.Relationship {
	return &spdx.Relationship{RefA: common.DocElementID{ElementRefID: from}, Relationship: kind, RefB: common.DocElementID{ElementRefID: to}}
}

package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"log"
	"maps"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	cdx "github.com/CycloneDX/cyclonedx-go"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/validate"
	spdxjson "github.com/spdx/tools-golang/json"
	"github.com/spdx/tools-golang/spdxlib"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	helm "helm.sh/helm/v4/pkg/registry"
	"sigs.k8s.io/yaml"
)

const checkout = "../.."

// sources are the inputs of a release.
var sources = []string{"CHANGELOG.md", "LICENSE", "Makefile", "apis", "bundle", "cmd", "config", "controllers", "docs/upgrade", "go.mod", "go.sum", "pkg", "webhooks"}

// testRelease builds a release for the architecture of this machine only, to save time.
func testRelease(t *testing.T, root, registry string) *release {
	t.Helper()
	absolute, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	host := platform{"linux", runtime.GOARCH}
	r := &release{
		version: "1.2.3", registry: registry, root: absolute, dist: filepath.Join(t.TempDir(), "dist"), builder: "https://example.org/builder", out: io.Discard,
		source:         source{commit: strings.Repeat("0f", 20), time: time.Unix(1_700_000_000, 0).UTC()},
		imagePlatforms: []platform{host}, pluginPlatforms: []platform{host},
	}
	if err := r.make(t.Context()); err != nil {
		t.Fatal(err)
	}
	return r
}

func serveRegistry(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://") + "/team"
}

func readFile(t *testing.T, r *release, name string) []byte {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(r.dist, name))
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// A release is reproducible, its files and images are valid, and its images can be pushed.
func TestRelease(t *testing.T) {
	target := serveRegistry(t)
	r := testRelease(t, checkout, target)
	t.Run("is reproducible in another folder", func(t *testing.T) { checkReproducibility(t, r) })
	t.Run("image", func(t *testing.T) { checkImage(t, r) })
	t.Run("manifests", func(t *testing.T) { checkManifests(t, r) })
	t.Run("bundle and catalog", func(t *testing.T) { checkCatalog(t, r) })
	t.Run("plugin", func(t *testing.T) { checkPlugin(t, r) })
	t.Run("SBOMs", func(t *testing.T) { checkSBOMs(t, r) })
	t.Run("checksums", func(t *testing.T) { checkChecksums(t, r) })
	t.Run("push", func(t *testing.T) { checkPush(t, r, target) })
}

func checkReproducibility(t *testing.T, r *release) {
	folder := t.TempDir()
	for _, name := range sources {
		from := filepath.Join(checkout, name)
		info, err := os.Stat(from)
		if err != nil {
			t.Fatal(err)
		}
		if info.IsDir() {
			err = os.CopyFS(filepath.Join(folder, name), os.DirFS(from))
		} else {
			var content []byte
			if content, err = os.ReadFile(from); err == nil {
				err = os.WriteFile(filepath.Join(folder, name), content, 0o600)
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("GOFLAGS", "-tags=other") // the environment must not affect the build
	again := testRelease(t, folder, r.registry)
	first, second := string(readFile(t, r, checksumsFile)), string(readFile(t, again, checksumsFile))
	if first != second {
		t.Errorf("the checksums differ:\n%s\nand\n%s", first, second)
	}
	if lines := strings.Count(first, "\n"); lines < 70 {
		t.Errorf("got %d files, want at least 70", lines)
	}
}

// image returns the index of images/<name> and its only image.
func image(t *testing.T, r *release, name string) (v1.ImageIndex, v1.Image) {
	t.Helper()
	root, err := layout.ImageIndexFromPath(filepath.Join(r.dist, "images", name))
	if err != nil {
		t.Fatal(err)
	}
	list, err := root.IndexManifest()
	if err != nil || len(list.Manifests) != 1 {
		t.Fatalf("unexpected list %+v, error %v", list, err)
	}
	index, err := root.ImageIndex(list.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Index(index); err != nil {
		t.Error(err)
	}
	platforms, err := index.IndexManifest()
	if err != nil || len(platforms.Manifests) != 1 || platforms.Manifests[0].Platform.String() != r.imagePlatforms[0].String() {
		t.Fatalf("unexpected platforms %+v, error %v", platforms, err)
	}
	found, err := index.Image(platforms.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	return index, found
}

// fileHeaders returns the file headers of an image by path.
func fileHeaders(t *testing.T, i v1.Image) map[string]*tar.Header {
	t.Helper()
	layers, err := i.Layers()
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]*tar.Header{}
	for _, layer := range layers {
		in, err := layer.Uncompressed()
		if err != nil {
			t.Fatal(err)
		}
		walk(t, in, func(h *tar.Header, _ []byte) { found[h.Name] = h })
		if err := in.Close(); err != nil {
			t.Error(err)
		}
	}
	return found
}

func walk(t *testing.T, in io.Reader, visit func(*tar.Header, []byte)) {
	t.Helper()
	for files := tar.NewReader(in); ; {
		header, err := files.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(files)
		if err != nil {
			t.Fatal(err)
		}
		visit(header, text)
	}
}

// checkImage checks that the image matches the last stage of the Dockerfile, and checks some of its files.
func checkImage(t *testing.T, r *release) {
	_, found := image(t, r, operatorName)
	config, err := found.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	dockerfile, err := os.ReadFile(filepath.Join(checkout, "Dockerfile"))
	if err != nil {
		t.Fatal(err)
	}
	_, stage, _ := strings.Cut(string(dockerfile), "\nFROM ${BASE_IMAGE}\n")
	files := fileHeaders(t, found)
	instructions := 0
	for line := range strings.Lines(stage) {
		fields := strings.Fields(line)
		if len(fields) == 0 || fields[0] == "#" || fields[0] == "ARG" {
			continue
		}
		instructions++
		ok := false
		switch fields[0] {
		case "LABEL":
			key, value, _ := strings.Cut(fields[1], "=")
			ok = config.Config.Labels[key] == strings.ReplaceAll(value, "${VERSION}", r.version)
		case "COPY":
			ok = files[strings.TrimPrefix(fields[len(fields)-1], "/")] != nil
		case "USER":
			ok = config.Config.User == fields[1]
		case "ENTRYPOINT":
			var entrypoint []string
			ok = json.Unmarshal([]byte(strings.Join(fields[1:], " ")), &entrypoint) == nil && slices.Equal(entrypoint, config.Config.Entrypoint)
		}
		if !ok {
			t.Errorf("the image does not match %q of the Dockerfile", line)
		}
	}
	if instructions < 8 {
		t.Errorf("got %d instructions, want at least 8", instructions)
	}
	for name, mode := range map[string]int64{
		"manager": 0o755, "tmp/": 0o1777, "home/nonroot/": 0o700, "etc/passwd": 0o644, "etc/ssl/certs/ca-certificates.crt": 0o644, "usr/share/zoneinfo/Europe/Berlin": 0o644,
	} {
		if h := files[name]; h == nil || h.Mode != mode || !h.ModTime.Equal(r.source.time) {
			t.Errorf("%s: got header %+v, want the file with its mode and the time of the source", name, h)
		}
	}
	checkProgramAndCAs(t, r, found)
}

// checkProgramAndCAs checks that the image contains a manager of this version and CA certificates.
func checkProgramAndCAs(t *testing.T, r *release, found v1.Image) {
	t.Helper()
	layers, err := found.Layers()
	if err != nil {
		t.Fatal(err)
	}
	program, roots := filepath.Join(t.TempDir(), "manager"), x509.NewCertPool()
	for _, layer := range layers {
		in, err := layer.Uncompressed()
		if err != nil {
			t.Fatal(err)
		}
		walk(t, in, func(h *tar.Header, text []byte) {
			switch h.Name {
			case "manager":
				err = os.WriteFile(program, text, 0o700)
			case "etc/ssl/certs/ca-certificates.crt":
				if !roots.AppendCertsFromPEM(text) || bytes.Count(text, []byte("BEGIN")) < 100 {
					t.Error("the image has fewer than 100 CA certificates")
				}
			}
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	text, err := exec.CommandContext(t.Context(), program, "version").CombinedOutput()
	for _, want := range []string{"version:  1.2.3\n", "revision: " + r.source.commit + "\n"} {
		if err != nil || !strings.Contains(string(text), want) {
			t.Errorf("want %q in the output, got error %v and:\n%s", want, err, text)
		}
	}
}

// checkManifests checks that the manifests, the chart and the release notes contain the digest of the image.
func checkManifests(t *testing.T, r *release) {
	index, _ := image(t, r, operatorName)
	digest, err := index.Digest()
	if err != nil {
		t.Fatal(err)
	}
	want := r.registry + "/odh-platform-operator:v1.2.3@" + digest.String()
	for _, overlay := range []string{"kubernetes", "openshift", "odh", "rhoai"} {
		if !bytes.Contains(readFile(t, r, "install-"+overlay+".yaml"), []byte("image: "+want+"\n")) {
			t.Errorf("install-%s.yaml does not name %s", overlay, want)
		}
	}
	chart, err := loader.LoadArchive(bytes.NewReader(readFile(t, r, "odh-platform-operator-1.2.3.tgz")))
	if err != nil || chart.Values["image"] != want || chart.Metadata.Version != "1.2.3" || chart.Validate() != nil {
		t.Errorf("unexpected chart %+v, error %v", chart, err)
	}
	notes := string(readFile(t, r, "RELEASE_NOTES.md"))
	for _, part := range []string{want, "oci://" + r.registry + "/charts/odh-platform-operator --version 1.2.3", "### "} {
		if !strings.Contains(notes, part) {
			t.Errorf("the notes do not contain %q", part)
		}
	}
}

// checkCatalog checks that the catalog lists the bundle with the operator image, and checks the images of bundle and catalog.
func checkCatalog(t *testing.T, r *release) {
	index, found := image(t, r, bundleName)
	digest, err := index.Digest()
	if err != nil {
		t.Fatal(err)
	}
	config, err := found.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if config.Config.Labels["operators.operatorframework.io.bundle.package.v1"] != operatorName || fileHeaders(t, found)["metadata/annotations.yaml"] == nil {
		t.Errorf("unexpected labels or content of the bundle: %+v", config.Config)
	}
	var documents []map[string]any
	for text := range strings.SplitSeq(strings.TrimPrefix(string(readFile(t, r, "catalog/odh-platform-operator/catalog.yaml")), "---\n"), "\n---\n") {
		var d map[string]any
		if err := yaml.UnmarshalStrict([]byte(text), &d); err != nil {
			t.Fatal(err)
		}
		documents = append(documents, d)
	}
	if len(documents) != 3 {
		t.Fatalf("got %d documents, want 3", len(documents))
	}
	pkg, channel, bundle := documents[0], documents[1], documents[2]
	if pkg["schema"] != "olm.package" || pkg["defaultChannel"] != channel["name"] || pkg["icon"].(map[string]any)["mediatype"] != "image/svg+xml" {
		t.Errorf("unexpected olm.package: %v", pkg["schema"])
	}
	if entry := channel["entries"].([]any)[0].(map[string]any); entry["name"] != bundle["name"] || entry["skipRange"] != "<1.2.3" || bundle["name"] != "odh-platform-operator.v1.2.3" {
		t.Errorf("unexpected channel %v or bundle %v", channel, bundle["name"])
	}
	if want := r.registry + "/" + bundleName + "@" + digest.String(); bundle["image"] != want {
		t.Errorf("image %v, want %s", bundle["image"], want)
	}
	kinds := map[string]int{}
	for _, p := range bundle["properties"].([]any) {
		kinds[p.(map[string]any)["type"].(string)]++
	}
	if want := map[string]int{"olm.gvk": 8, "olm.package": 1, "olm.csv.metadata": 1}; !maps.Equal(kinds, want) {
		t.Errorf("properties %v, want %v", kinds, want)
	}
	if related := bundle["relatedImages"].([]any); len(related) < 10 || related[1].(map[string]any)["image"] != r.reference(operatorName) {
		t.Errorf("unexpected related images %v", related)
	}
	if _, c := image(t, r, catalogName); fileHeaders(t, c)["configs/odh-platform-operator/catalog.yaml"] == nil {
		t.Error("the catalog image has no catalog.yaml")
	}
}

// checkPlugin checks that the archive contains a working program, and that the krew manifest has the URI and checksum of the archive.
func checkPlugin(t *testing.T, r *release) {
	name := "kubectl-odh_1.2.3_linux_" + runtime.GOARCH + ".tar.gz"
	packed := readFile(t, r, name)
	in, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	program, found := filepath.Join(t.TempDir(), "kubectl-odh"), map[string]int{}
	walk(t, in, func(h *tar.Header, text []byte) {
		found[h.Name] = len(text)
		if h.Name == "kubectl-odh" {
			if err := os.WriteFile(program, text, os.FileMode(h.Mode)); err != nil {
				t.Fatal(err)
			}
		}
	})
	for _, want := range []string{"LICENSE", "kubectl_complete-odh", "completions/kubectl-odh.bash", "completions/kubectl-odh.zsh", "completions/kubectl-odh.fish", "completions/kubectl-odh.powershell"} {
		if found[want] == 0 {
			t.Errorf("%s is missing among %v", want, found)
		}
	}
	text, err := exec.CommandContext(t.Context(), program, "--version").CombinedOutput()
	if err != nil || !strings.Contains(string(text), " version 1.2.3\n") {
		t.Errorf("--version failed with %v, or printed another version: %s", err, text)
	}
	var manifest struct {
		Spec struct {
			Version   string
			Platforms []struct{ URI, SHA256, Bin string }
		}
	}
	if err := yaml.Unmarshal(readFile(t, r, "odh.yaml"), &manifest); err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(packed)
	if p := manifest.Spec.Platforms; len(p) != 1 || p[0].SHA256 != hex.EncodeToString(sum[:]) || p[0].Bin != "kubectl-odh" || !strings.HasSuffix(p[0].URI, "/v1.2.3/"+name) {
		t.Errorf("unexpected manifest: %+v", manifest)
	}
}

// checkSBOMs checks that the two SBOMs of each program list its modules, and are valid CycloneDX and SPDX.
func checkSBOMs(t *testing.T, r *release) {
	for _, program := range []string{"manager", "kubectl-odh"} {
		bom := cdx.NewBOM()
		if err := cdx.NewBOMDecoder(bytes.NewReader(readFile(t, r, "sbom/"+program+".cdx.json")), cdx.BOMFileFormatJSON).Decode(bom); err != nil {
			t.Fatal(err)
		}
		var urls []string
		for _, c := range *bom.Components {
			urls = append(urls, c.PackageURL)
		}
		document, err := spdxjson.Read(bytes.NewReader(readFile(t, r, "sbom/"+program+".spdx.json")))
		if err != nil {
			t.Fatal(err)
		}
		if err := spdxlib.ValidateDocument(document); err != nil {
			t.Error(err)
		}
		if len(document.Packages) != len(urls)+1 || len(urls) < 40 || bom.Metadata.Component.Version != "1.2.3" {
			t.Errorf("%s: got %d components and %d packages, want at least 40 components, and one package more than components", program, len(urls), len(document.Packages))
		}
		for _, want := range []string{"pkg:golang/k8s.io/client-go@v0.", "pkg:golang/stdlib@1."} {
			if !slices.ContainsFunc(urls, func(url string) bool { return strings.HasPrefix(url, want) }) {
				t.Errorf("%s: the SBOM does not contain %s", program, want)
			}
		}
	}
}

// checkChecksums checks that every file has a checksum, and that the provenance contains the digests of the images and the chart.
func checkChecksums(t *testing.T, r *release) {
	found, err := checksums(r.dist)
	if err != nil {
		t.Fatal(err)
	}
	delete(found, checksumsFile)
	for line := range strings.Lines(string(readFile(t, r, checksumsFile))) {
		sum, name, _ := strings.Cut(strings.TrimSpace(line), "  ")
		if found[name] != sum {
			t.Errorf("%s: got checksum %s, want %s", name, sum, found[name])
		}
		delete(found, name)
	}
	if len(found) > 0 {
		t.Errorf("files without a checksum: %v", found)
	}
	var s struct {
		Subject   []subject
		Predicate struct {
			BuildDefinition struct{ ResolvedDependencies []subject }
		}
	}
	if err := json.Unmarshal(readFile(t, r, provenanceFile), &s); err != nil {
		t.Fatal(err)
	}
	digests := map[string]string{}
	for _, subject := range s.Subject {
		digests[subject.Name] = "sha256:" + subject.Digest["sha256"]
	}
	for name, digest := range r.subjects {
		if digests[name] != digest {
			t.Errorf("%s: got %s in the provenance, want %s", name, digests[name], digest)
		}
	}
	if len(r.subjects) != 4 || len(digests) < 60 || s.Predicate.BuildDefinition.ResolvedDependencies[0].Digest["gitCommit"] != r.source.commit {
		t.Errorf("unexpected provenance: %d images and charts, %d subjects, %+v", len(r.subjects), len(digests), s.Predicate)
	}
}

// checkPush checks that a release can be pushed again, that Helm can pull its chart, and that push rejects another registry and other
// content of a published version.
func checkPush(t *testing.T, r *release, target string) {
	for range 2 {
		if err := push(t.Context(), r.dist, target, io.Discard); err != nil {
			t.Fatal(err)
		}
	}
	client, err := helm.NewClient(helm.ClientOptPlainHTTP(), helm.ClientOptWriter(io.Discard))
	if err != nil {
		t.Fatal(err)
	}
	got, err := client.Pull(target+"/charts/odh-platform-operator:1.2.3", helm.PullOptWithChart(true))
	if err != nil || !bytes.Equal(got.Chart.Data, readFile(t, r, "odh-platform-operator-1.2.3.tgz")) || got.Chart.Meta.Name != operatorName {
		t.Errorf("Helm pulled %+v, error %v, want the chart of the release", got, err)
	}
	if err := push(t.Context(), r.dist, "example.org/other", io.Discard); err == nil || !strings.Contains(err.Error(), "make release REGISTRY=example.org/other") {
		t.Errorf("got error %v for another registry, want advice to run make release", err)
	}
	other := *r
	other.dist = t.TempDir()
	layer, err := newLayer([]file{{"manager", 0o755, 0, []byte("another")}}, r.source.time)
	if err != nil {
		t.Fatal(err)
	}
	i, err := appendImage(newIndex(), r.imagePlatforms[0], r.managerConfig(), r.source.time, layer)
	if err != nil {
		t.Fatal(err)
	}
	other.subjects = map[string]string{}
	if err := other.save(operatorName, i); err != nil {
		t.Fatal(err)
	}
	if err := push(t.Context(), other.dist, "", io.Discard); err == nil || !strings.Contains(err.Error(), "is already published with digest") {
		t.Errorf("got error %v, want that version 1.2.3 is already published with other content", err)
	}
}

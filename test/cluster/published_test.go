package cluster

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	testclock "k8s.io/utils/clock/testing"
)

// compileProgram builds a program that prints a word.
func compileProgram(t *testing.T, word string) []byte {
	t.Helper()
	dir := filepath.Join(writeSmallModule(t, fmt.Sprintf("package main\n\nfunc main() { print(%q) }\n", word)), "small")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", "program")
	build.Dir = dir
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("unexpected error: %v\n%s", err, output)
	}
	content, err := os.ReadFile(filepath.Join(dir, "program"))
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// packArchive returns a tar.gz of programs and an unrelated file, in any order.
func packArchive(t *testing.T, programs map[string][]byte) []byte {
	t.Helper()
	var all bytes.Buffer
	zipped := gzip.NewWriter(&all)
	archive := tar.NewWriter(zipped)
	programs["folder/README"] = []byte("read me")
	for name, content := range programs {
		header := &tar.Header{Name: "./" + name, Mode: 0o644, Size: int64(len(content)), Typeflag: tar.TypeReg}
		if err := archive.WriteHeader(header); err != nil {
			t.Fatal(err)
		}
		if _, err := archive.Write(content); err != nil {
			t.Fatal(err)
		}
	}
	if err := archive.Close(); err != nil {
		t.Fatal(err)
	}
	if err := zipped.Close(); err != nil {
		t.Fatal(err)
	}
	return all.Bytes()
}

func sum(content []byte) string {
	digest := sha256.Sum256(content)
	return hex.EncodeToString(digest[:])
}

// lines collects the lines of a log.
type lines struct {
	mutex sync.Mutex
	all   []string
}

func (l *lines) logf(format string, args ...any) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.all = append(l.all, fmt.Sprintf(format, args...))
}

// serveFiles serves files. It never responds for paths that begin with /silent, and stops after the first byte for /stuck
// and, without a Content-Length, for /unsized.
func serveFiles(t *testing.T, files map[string][]byte) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		content, found := files[path.Base(r.URL.Path)]
		if !found {
			http.NotFound(w, r)
			return
		}
		if path.Dir(r.URL.Path) != "/unsized" {
			w.Header().Set("Content-Length", fmt.Sprint(len(content)))
		}
		switch path.Dir(r.URL.Path) {
		case "/silent":
			<-r.Context().Done()
			return
		case "/stuck", "/unsized":
			_, _ = w.Write(content[:1])
			w.(http.Flusher).Flush()
			<-r.Context().Done()
			return
		}
		_, _ = w.Write(content)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

func TestDownload(t *testing.T) {
	first, second, single := compileProgram(t, "first"), compileProgram(t, "second"), compileProgram(t, "single")
	tarball := packArchive(t, map[string][]byte{"folder/bin/first": first, "folder/bin/second": second})
	extra := packArchive(t, map[string][]byte{"folder/bin/first": first, "folder/bin/extra": second})
	url := serveFiles(t, map[string][]byte{"both.tar.gz": tarball, "extra.tar.gz": extra, "single-amd64": single})
	both := []string{"folder/bin/first", "folder/bin/second"}
	for name, c := range map[string]struct {
		archives []archive
		want     string
		message  string
	}{
		"program that is not requested": {[]archive{{url + "/extra.tar.gz", sum(extra), []string{"folder/bin/first", "folder/bin/extra"}}}, "first", ""},
		"valid archives":                {[]archive{{url + "/both.tar.gz", sum(tarball), both}, {url + "/single-amd64", sum(single), []string{"single"}}}, "first second single", ""},
		"wrong checksum": {[]archive{{url + "/both.tar.gz", sum(nil), both}, {url + "/single-amd64", sum(single), []string{"single"}}}, "single",
			"both.tar.gz: got checksum " + sum(tarball) + ", want " + sum(nil) + "; the file is deleted"},
		"wrong checksum of a program":    {[]archive{{url + "/single-amd64", sum(tarball), []string{"single"}}}, "", "the file is deleted"},
		"server does not respond":        {[]archive{{url + "/silent/both.tar.gz", sum(tarball), both}}, "", "compiling the programs that cannot be downloaded: no response from 127.0.0.1:"},
		"download stops":                 {[]archive{{url + "/stuck/both.tar.gz", sum(tarball), both}}, "", "both.tar.gz: received only 0 MB in 300ms"},
		"download of unknown size stops": {[]archive{{url + "/unsized/both.tar.gz", sum(tarball), both}}, "", "both.tar.gz: received only 0 MB in 300ms"},
		"missing archive":                {[]archive{{url + "/other.tar.gz", sum(tarball), both}}, "", "other.tar.gz: 404 Not Found"},
		"unreachable server":             {[]archive{{"http://127.0.0.1:1/both.tar.gz", sum(tarball), both}}, "", "compiling the programs that cannot be downloaded: "},
		"program missing in archive":     {[]archive{{url + "/both.tar.gz", sum(tarball), []string{"folder/bin/first", "folder/bin/third"}}}, "", "searching the archive for folder/bin/third"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			progress := &lines{}
			s := &store{cache: t.TempDir(), archives: c.archives, client: &http.Client{}, responseTimeout: 300 * time.Millisecond, progressPeriod: 300 * time.Millisecond, minBytes: 1}
			got := newSupply()
			s.download(t.Context(), []string{"first", "second", "single"}, got, progress.logf)
			var names []string
			for program, path := range got.paths {
				output, err := exec.CommandContext(t.Context(), path).CombinedOutput()
				if err != nil || string(output) != program {
					t.Errorf("%s printed %q: %v", program, output, err)
				}
				if found, ok := s.program(program); !ok || found != path {
					t.Errorf("got path %q of %s from the store, want %q", found, program, path)
				}
				names = append(names, program)
			}
			slices.Sort(names)
			if strings.Join(names, " ") != c.want {
				t.Errorf("got programs %q, want %q", names, c.want)
			}
			if text := strings.Join(progress.all, "\n"); !strings.Contains(text, c.message) || strings.Count(text, "compiling") > 1 {
				t.Errorf("got output %q, want %q in one line", text, c.message)
			}
			entries, err := os.ReadDir(s.cache)
			if err != nil {
				t.Fatal(err)
			}
			for _, entry := range entries {
				if strings.HasSuffix(entry.Name(), ".partial") {
					t.Errorf("%s was not removed", entry.Name())
				}
			}
		})
	}
}

// Available programs are downloaded, others are compiled, and a second call reuses both. Programs of the user have precedence. A module
// whose programs have another version is always compiled.
func TestDownloadOrCompile(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	prebuilt := compileProgram(t, "prebuilt")
	url := serveFiles(t, map[string][]byte{"small-amd64": prebuilt})
	source := writeSmallModule(t, "package main\n\nfunc main() { print(\"compiled here\") }\n")
	assets := t.TempDir()
	for _, c := range []struct {
		name, assets, sum, want string
		compiled                bool
	}{
		{"wrong checksum", "", sum(nil), "compiled here", false},
		{"downloaded", "", sum(prebuilt), "prebuilt", false},
		{"program of the user", assets, sum(prebuilt), "own", false},
		{"another version", assets, sum(prebuilt), "compiled here", true},
	} {
		if err := os.WriteFile(filepath.Join(assets, "small"), []byte("#!/bin/sh\nprintf own\n"), 0o700); err != nil {
			t.Fatal(err)
		}
		cache := t.TempDir()
		for _, again := range []bool{false, true} {
			var out bytes.Buffer
			b := builder{source: source, cache: cache, out: &out, clock: testclock.NewFakeClock(time.Unix(0, 0)), supply: newSupply(), published: &store{
				assets: c.assets, cache: cache, archives: []archive{{url + "/small-amd64", c.sum, []string{"small"}}},
				client: &http.Client{}, responseTimeout: time.Minute, progressPeriod: time.Minute,
			}}
			if err := b.buildModules(t.Context(), module{dir: "small", compiled: c.compiled, packages: []string{"example.com/small"}}); err != nil {
				t.Fatal(err)
			}
			output, err := exec.CommandContext(t.Context(), b.supply.paths["small"]).CombinedOutput()
			if err != nil || string(output) != c.want {
				t.Errorf("%s: got output %q, error %v, want %q", c.name, output, err, c.want)
			}
			if again && out.Len() > 0 {
				t.Errorf("%s: got progress %q of a second call, want none", c.name, out.String())
			}
		}
	}
}

func TestPublished(t *testing.T) {
	for platform, archives := range published {
		for _, a := range archives {
			if len(a.sum) != sha256.Size*2 || !strings.HasPrefix(a.url, "https://") || !strings.Contains(a.url, strings.ReplaceAll(platform, "/", "-")) {
				t.Errorf("%s: got %+v, want a SHA-256 and an https URL of the platform", platform, a)
			}
			for _, program := range a.programs {
				if !slices.Contains(programNames(binaryModules()[0].packages), path.Base(program)) {
					t.Errorf("%s: got program %s, which no instance needs", platform, program)
				}
			}
		}
	}
}

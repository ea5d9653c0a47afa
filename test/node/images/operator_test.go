package images

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestOperatorImageMatchesDockerfile(t *testing.T) {
	checkout := filepath.Join("..", "..", "..")
	dockerfile, err := os.ReadFile(filepath.Join(checkout, "Dockerfile"))
	if err != nil {
		t.Fatal(err)
	}
	image, err := lastStage(string(dockerfile), checkout, "built")
	if err != nil {
		t.Fatal(err)
	}
	if image.User != "65532:65532" || !slices.Equal(image.Entrypoint, []string{"/manager"}) {
		t.Errorf("process %+v, want /manager with user 65532:65532", image.Process)
	}
	var files []string
	for _, file := range image.Files {
		files = append(files, file.Target+"="+file.Source)
	}
	want := []string{"/tmp/=", "/manager=built", "/licenses/LICENSE=" + filepath.Join(checkout, "LICENSE")}
	if !slices.Equal(files, want) {
		t.Errorf("files %q, want %q", files, want)
	}
	for _, file := range image.Files[2:] {
		if _, err := os.Stat(file.Source); err != nil {
			t.Error(err)
		}
	}
}

func TestField(t *testing.T) {
	const release = "NAME=Debian\nID=debian\nVERSION_CODENAME=\"bookworm\"\n"
	for name, want := range map[string]string{"ID": "debian", "VERSION_CODENAME": "bookworm", "CODENAME": ""} {
		if got := field(release, name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
}

package images

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestImageOfTheOperatorFollowsTheDockerfile(t *testing.T) {
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
		t.Errorf("process %+v", image.Process)
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

func TestCodename(t *testing.T) {
	for release, want := range map[string]string{
		"ID=debian\nVERSION_CODENAME=bookworm\n": "bookworm", "VERSION_CODENAME=\"noble\"\n": "noble", "ID=other\n": "",
	} {
		if got := codename(release); got != want {
			t.Errorf("codename of %q is %q, want %q", release, got, want)
		}
	}
}

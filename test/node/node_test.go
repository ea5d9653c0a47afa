package node

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/odh-platform/odh-platform-operator/test/node/images"
)

func TestReadReturnsWrittenSettings(t *testing.T) {
	written := Settings{
		Name: "node-0", Dir: t.TempDir(), Programs: map[string]string{"kubelet": "/bin/kubelet"}, Ports: []int{1, 2},
		Images: images.Store{Content: "/a", Names: "/b"},
	}
	if err := written.Write(); err != nil {
		t.Fatal(err)
	}
	read, err := Read(written.Dir)
	if err != nil || read.Name != "node-0" || read.Programs["kubelet"] != "/bin/kubelet" || len(read.Ports) != 2 || read.Images != written.Images {
		t.Errorf("read %+v, error %v, want %+v", read, err, written)
	}
}

func TestTemplatesUseKnownVariables(t *testing.T) {
	settings := Settings{Name: "node-0", Dir: "/cluster", Programs: map[string]string{"runc": "/bin/runc", "bridge": "/cni/bridge"}}
	files, err := configFiles.ReadDir("config")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		content, err := settings.expand(file.Name())
		if err != nil {
			t.Fatal(err)
		}
		template, err := configFiles.ReadFile(filepath.Join("config", file.Name()))
		if err != nil {
			t.Fatal(err)
		}
		for part := range strings.SplitSeq(string(template), "${") {
			name, _, found := strings.Cut(part, "}")
			if found && !strings.ContainsAny(name, " \n{") && settings.values()[name] == "" {
				t.Errorf("%s: unknown variable %q", file.Name(), name)
			}
		}
		if strings.Contains(string(content), "${") {
			t.Errorf("%s: variables were not replaced: %s", file.Name(), content)
		}
	}
}

func TestCheckReturnsOnlyErrUnsupported(t *testing.T) {
	if err := Check(); err != nil && !errors.Is(err, ErrUnsupported) {
		t.Error(err)
	}
}

func TestHasCapability(t *testing.T) {
	for status, want := range map[string]bool{
		"CapEff:\t000001ffffffffff\n": true, "CapInh:\t000001ffffffffff\nCapEff:\t00000000a80425fb\n": false, "": false,
	} {
		if got := hasCapability(status, sysAdmin); got != want {
			t.Errorf("%q: got %t, want %t", status, got, want)
		}
	}
}

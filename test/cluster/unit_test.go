package cluster

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestFreePorts(t *testing.T) {
	all := func(int) bool { return true }
	cases := map[string]struct {
		count, start int
		reserved     []int
		free         func(int) bool
		want         []int
		fails        bool
	}{
		"consecutive":                   {count: 3, start: 5, free: all, want: []int{20005, 20006, 20007}},
		"reserved skipped":              {count: 2, start: 0, reserved: []int{20000, 20002}, free: all, want: []int{20001, 20003}},
		"used skipped":                  {count: 2, start: 0, free: func(p int) bool { return p%2 == 1 }, want: []int{20001, 20003}},
		"continues at first port":       {count: 2, start: lastPort - firstPort, free: all, want: []int{31999, 20000}},
		"last port before the start":    {count: 1, start: 1, free: func(p int) bool { return p == firstPort }, want: []int{firstPort}},
		"no ports":                      {count: 0, free: all},
		"no free port":                  {count: 1, free: func(int) bool { return false }, fails: true},
		"more ports than the range has": {count: lastPort - firstPort + 2, free: all, fails: true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := freePorts(c.count, c.start, c.reserved, c.free)
			if errors.Is(err, errNoPort) != c.fails {
				t.Fatalf("got error %v, want errNoPort: %t", err, c.fails)
			}
			if !c.fails && !slices.Equal(got, c.want) {
				t.Errorf("got ports %v, want %v", got, c.want)
			}
		})
	}
}

func TestPortsOmitsControlPlane(t *testing.T) {
	i := &Instance{}
	for port := range portCount + 2 {
		i.state.Ports = append(i.state.Ports, port)
	}
	if got := i.Ports(); !slices.Equal(got, []int{portCount, portCount + 1}) {
		t.Errorf("got ports %v, want %v", got, []int{portCount, portCount + 1})
	}
}

func TestIsFree(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := listener.Addr().(*net.TCPAddr).Port
	if isFree(port) {
		t.Error("isFree returned true for a used port")
	}
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	if !isFree(port) {
		t.Error("isFree returned false for a free port")
	}
}

func TestParseStat(t *testing.T) {
	tail := " S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 98765 20 21"
	cases := map[string]struct {
		stat, want string
		fails      bool
	}{
		"plain":                       {stat: "42 (etcd)" + tail, want: "98765"},
		"spaces, parentheses":         {stat: "42 (a b) c)" + tail, want: "98765"},
		"zombie":                      {stat: strings.Replace("42 (etcd)"+tail, " S ", " Z ", 1), fails: true},
		"dead":                        {stat: strings.Replace("42 (etcd)"+tail, " S ", " X ", 1), fails: true},
		"cut off":                     {stat: "42 (etcd) S 1 2", fails: true},
		"no command":                  {stat: "42" + tail, fails: true},
		"empty":                       {stat: "", fails: true},
		"no fields after the command": {stat: "42 (etcd)", fails: true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := parseStat(c.stat)
			if (err != nil) != c.fails || got != c.want {
				t.Errorf("got %q, error %v, want %q", got, err, c.want)
			}
		})
	}
}

func FuzzParseStat(f *testing.F) {
	f.Add("42 (etcd) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 98765 20")
	f.Add("(")
	f.Fuzz(func(t *testing.T, stat string) {
		if start, err := parseStat(stat); err == nil && start == "" {
			t.Error("parseStat returned neither a start time nor an error")
		}
	})
}

func TestTail(t *testing.T) {
	for name, c := range map[string]struct {
		text  string
		lines int
		want  string
	}{
		"short":      {"a\nb\n", 5, "a\nb"},
		"cut":        {"a\nb\nc\n", 2, "b\nc"},
		"empty text": {"", 2, ""},
	} {
		if got := tail(c.text, c.lines); got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}

func TestRootAbove(t *testing.T) {
	root := t.TempDir()
	inner := filepath.Join(root, "test", "binaries")
	if err := os.MkdirAll(inner, 0o755); err != nil {
		t.Fatal(err)
	}
	write := func(dir, content string) {
		if err := os.WriteFile(filepath.Join(dir, "go.mod"), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(root, "// a comment\nmodule "+modulePath+"\n\ngo 1.26.0\n")
	write(inner, "module "+modulePath+"/test/binaries\n")
	if got, err := rootAbove(inner); err != nil || got != root {
		t.Errorf("got root %q, error %v, want %q", got, err, root)
	}
	if _, err := rootAbove(t.TempDir()); err == nil || !strings.Contains(err.Error(), modulePath) {
		t.Errorf("got error %v outside a checkout, want the module path in it", err)
	}
}

func TestInstanceNames(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	for name, ok := range map[string]bool{
		"a": true, "dev-1": true, strings.Repeat("a", 40): true,
		"": false, "A": false, "-a": false, "a-": false, "../x": false, "a/b": false, strings.Repeat("a", 41): false,
	} {
		if _, err := instanceDir(name); (err == nil) != ok {
			t.Errorf("name %q: got error %v, want valid: %t", name, err, ok)
		}
	}
}

func TestParseDownloads(t *testing.T) {
	response := `{"Path":"example.com/a","Version":"v1.0.0","Dir":"/a","Sum":"h1:aa"}
{"Path":"example.com/b","Version":"v2.0.0","Dir":"/b","Sum":"h1:bb"}`
	dirs, err := parseDownloads([]byte(response), map[string]string{"example.com/a": "h1:aa", "example.com/b": ""})
	if difference := cmp.Diff(map[string]string{"example.com/a": "/a", "example.com/b": "/b"}, dirs); err != nil || difference != "" {
		t.Errorf("unexpected error %v or result (-want +got):\n%s", err, difference)
	}
	for name, c := range map[string]struct{ reply, sum, want string }{
		"wrong checksum": {response, "h1:other", "checksum h1:aa, want h1:other"},
		"failed":         {`{"Path":"example.com/a","Error":"not found"}`, "", "not found"},
		"invalid JSON":   {`{"Path":`, "", "decoding"},
	} {
		_, err := parseDownloads([]byte(c.reply), map[string]string{"example.com/a": c.sum})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
}

func TestSets(t *testing.T) {
	for platform, want := range map[Platform][]Set{
		Bare: nil, Plain: {GatewayAPI, Monitoring, KubeRay}, OpenShift: {GatewayAPI, Monitoring, KubeRay, OpenShiftAPI},
	} {
		if err := platform.validate(); err != nil {
			t.Error(err)
		}
		if got := Sets(platform); !slices.Equal(got, want) {
			t.Errorf("%s has %v, want %v", platform, got, want)
		}
	}
	if err := Platform("vanilla").validate(); err == nil || !strings.Contains(err.Error(), "known are bare, plain and openshift") {
		t.Errorf("got error %v for an unknown platform, want the known ones", err)
	}
	if _, err := setOf("foos.example.com"); err == nil || !strings.Contains(err.Error(), "routes.route.openshift.io") {
		t.Errorf("got error %v for an unknown CRD, want the known ones", err)
	}
}

func TestEveryCRDIsReadable(t *testing.T) {
	sets := []Set{GatewayAPI, Monitoring, KubeRay, OpenShiftAPI, KServe, PlatformServices}
	dirs, err := setDirs(t.Context(), sets)
	if err != nil {
		t.Fatal(err)
	}
	for _, set := range sets {
		for name := range sources[set].crds {
			crd, err := readCRD(dirs, set, name)
			if err != nil {
				t.Error(err)
				continue
			}
			if found, err := setOf(name); err != nil || found != set {
				t.Errorf("%s: got set %q, error %v, want %q", name, found, err, set)
			}
			if crd.Spec.Conversion != nil || len(crd.Spec.Versions) == 0 {
				t.Errorf("%s: got conversion %v, %d versions, want no conversion and at least one version", name, crd.Spec.Conversion, len(crd.Spec.Versions))
			}
		}
	}
	if _, err := setDirs(t.Context(), []Set{"unknown"}); err == nil {
		t.Error("want an error for an unknown set")
	}
	if _, err := readCRD(map[string]string{}, KServe, "inferenceservices.serving.kserve.io"); err == nil {
		t.Error("want an error for a missing file")
	}
}

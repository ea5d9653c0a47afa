package modelmesh

import (
	"path"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/odh-platform/odh-platform-operator/apis/serving/v1alpha1"
)

func TestParseEndpoint(t *testing.T) {
	for text, want := range map[string]Endpoint{
		"port:1234":               {Port: "1234"},            // [modelmesh-15]
		"unix:/var/file.sock":     {Path: "/var/file.sock"},  // [modelmesh-15]
		"unix:///var/file.sock":   {Path: "/var/file.sock"},  // [modelmesh-15]
		"unix:///var/mount/path":  {Path: "/var/mount/path"}, // [modelmesh-17]
		"port:65535":              {Port: "65535"},
		"unix://unix:/tmp/a/b":    {Path: "/tmp/a/b"}, // one of each prefix is removed
		"unix:/tmp/with space/ok": {Path: "/tmp/with space/ok"},
	} {
		got, err := ParseEndpoint(text)
		want.Raw = text
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%s: %v (-want +got):\n%s", text, err, diff)
		}
		if want.Path != "" && got.Dir() != path.Dir(want.Path) || want.Path == "" && got.Dir() != "" {
			t.Errorf("%s: unexpected directory %q", text, got.Dir())
		}
	}
}

// An invalid address is not treated as the path of a socket. [M43]
func TestParseEndpointErrors(t *testing.T) {
	for text, want := range map[string]string{
		"8085":                 `"8085" is neither port:<number> nor unix:<absolute path>`,
		"":                     "is neither",
		"http://localhost:80":  "is neither",
		"/tmp/a/b":             "is neither",
		"port:":                "has no port between 1 and 65535",
		"port:0":               "has no port",
		"port:65536":           "has no port",
		"port:+1":              "has no port",
		"port:8085 ":           "has no port",
		"port:http":            "has no port",
		"unix:":                "must name a file",
		"unix:relative.sock":   "must name a file",
		"unix:/file.sock":      "must name a file in a separate directory",
		"unix:/a/../b":         "must name a file",
		"unix:/a/b/":           "must name a file",
		"unix:/a:b/c":          "must name a file",
		"unix://host/a/b.sock": "must name a file",
	} {
		if got, err := ParseEndpoint(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %+v, got error %v, want %q", text, got, err, want)
		}
	}
}

func specWithEndpoints(management, data string, adapter bool) *v1alpha1.ServingRuntimeSpec {
	spec := &v1alpha1.ServingRuntimeSpec{}
	if management != "" {
		spec.GRPCEndpoint = &management
	}
	if data != "" {
		spec.GRPCDataEndpoint = &data
	}
	if adapter {
		spec.BuiltInAdapter = &v1alpha1.BuiltInAdapter{ServerType: "triton"}
	}
	return spec
}

func TestEndpointsOf(t *testing.T) {
	for name, c := range map[string]struct {
		spec      *v1alpha1.ServingRuntimeSpec
		port      string
		socketDir string
		err       string
	}{
		"[modelmesh-16] ports only":       {specWithEndpoints("port:8085", "port:8001", true), "8085", "", ""},
		"[modelmesh-16] data socket":      {specWithEndpoints("port:8085", "unix:///var/mount/path", true), "8085", "/var/mount", ""},
		"sockets in one directory":        {specWithEndpoints("unix:/tmp/own/a", "unix:///tmp/own/b", false), "", "/tmp/own", ""},
		"no data endpoint":                {specWithEndpoints("unix:/tmp/own/a", "", false), "", "/tmp/own", ""},
		"[M1] default with an adapter":    {specWithEndpoints("", "", true), "8085", "", ""},
		"[M1] no endpoint":                {specWithEndpoints("", "", false), "", "", "spec.grpcEndpoint is missing"},
		"sockets in two directories":      {specWithEndpoints("unix:/tmp/a/a", "unix:/tmp/b/b", false), "", "", "Only one unix domain socket path is allowed: spec.grpcEndpoint is in /tmp/a and spec.grpcDataEndpoint in /tmp/b: use one directory"},
		"socket with an adapter":          {specWithEndpoints("unix:/tmp/a/a", "", true), "", "", `Built-in adapter grpcEndpoint must be of the form "port:N": unix:/tmp/a/a`},
		"invalid address with an adapter": {specWithEndpoints("8085", "", true), "", "", `Built-in adapter grpcEndpoint must be of the form "port:N": 8085`},
		"[M43] invalid address":           {specWithEndpoints("8085", "", false), "", "", `spec.grpcEndpoint "8085" is neither`},
		"[M43] invalid data address":      {specWithEndpoints("port:1", "8001", false), "", "", `spec.grpcDataEndpoint "8001" is neither`},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := EndpointsOf(c.spec)
			if c.err != "" {
				if err == nil || !strings.Contains(err.Error(), c.err) {
					t.Errorf("got error %v, want %q", err, c.err)
				}
				return
			}
			if err != nil || got.Management.Port != c.port || got.SocketDir() != c.socketDir {
				t.Errorf("unexpected endpoints %+v in %q, error %v", got, got.SocketDir(), err)
			}
		})
	}
}

// FuzzParseEndpoint checks that an accepted endpoint is either a port or a socket whose directory can be mounted.
func FuzzParseEndpoint(f *testing.F) {
	for _, seed := range []string{"port:1", "unix:/a/b", "unix:///a/b", "8085", "", "port:0x10", "unix://unix:unix:/a", "port:١", "unix:/\x00/a"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		e, err := ParseEndpoint(text)
		switch {
		case err != nil:
			if e != (Endpoint{}) {
				t.Errorf("ParseEndpoint(%q) returned %+v with error %v", text, e, err)
			}
		case e.Raw != text || (e.Port == "") == (e.Path == ""):
			t.Errorf("ParseEndpoint(%q) returned %+v", text, e)
		case e.Path != "" && (!strings.HasPrefix(e.Dir(), "/") || e.Dir() == "/" || strings.Contains(e.Dir(), ":")):
			t.Errorf("ParseEndpoint(%q) returned a socket in %q, which cannot be mounted", text, e.Dir())
		}
	})
}

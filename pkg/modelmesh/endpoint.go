package modelmesh

import (
	"errors"
	"fmt"
	"path"
	"strconv"
	"strings"

	"github.com/odh-platform/odh-platform-operator/apis/serving/v1alpha1"
)

const (
	portScheme = "port:"
	unixScheme = "unix:"
	// DefaultEndpoint is where built-in adapters listen unless the runtime says otherwise.
	DefaultEndpoint = "port:8085"
)

// Endpoint is an address inside a pod: either a port of loopback or the path of a socket.
type Endpoint struct {
	// Text is the endpoint as the runtime gives it.
	Raw string
	// Port as a number in words; empty for a socket.
	Port string
	// Path of the socket; empty for a port.
	Path string
}

// Dir is the folder of the socket; empty for a port.
func (e Endpoint) Dir() string {
	if e.Path == "" {
		return ""
	}
	return path.Dir(e.Path)
}

// ParseEndpoint reads port:<number> or unix:<absolute path>, also written unix://<absolute path>. The error says what is wrong
// and how it has to look.
func ParseEndpoint(text string) (Endpoint, error) {
	if number, ok := strings.CutPrefix(text, portScheme); ok {
		if n, err := strconv.ParseUint(number, 10, 16); err != nil || n == 0 {
			return Endpoint{}, fmt.Errorf("%q has no port between 1 and 65535: write port:<number>", text)
		}
		return Endpoint{Raw: text, Port: number}, nil
	}
	if !strings.HasPrefix(text, unixScheme) {
		return Endpoint{}, fmt.Errorf("%q is neither port:<number> nor unix:<absolute path>: write one of them", text)
	}
	file := strings.TrimPrefix(strings.TrimPrefix(text, unixScheme+"//"), unixScheme)
	if !path.IsAbs(file) || path.Clean(file) != file || path.Dir(file) == "/" || strings.Contains(file, ":") {
		return Endpoint{}, fmt.Errorf("%q names no file in a folder of its own: write unix:/<folder>/<file>", text)
	}
	return Endpoint{Raw: text, Path: file}, nil
}

// Endpoints are those of one runtime.
type Endpoints struct {
	// Management is where models are loaded and unloaded.
	Management Endpoint
	// Data is where requests are answered; nil is the same place.
	Data *Endpoint
}

// SocketDir is the one folder of all sockets; empty when there is none.
func (e Endpoints) SocketDir() string {
	if dir := e.Management.Dir(); dir != "" || e.Data == nil {
		return dir
	}
	return e.Data.Dir()
}

// EndpointsOf reads the endpoints of a runtime. The error names the field.
func EndpointsOf(spec *v1alpha1.ServingRuntimeSpec) (Endpoints, error) {
	management, err := managementEndpoint(spec)
	if err != nil {
		return Endpoints{}, err
	}
	text := stringValue(spec.GRPCDataEndpoint)
	if text == "" {
		return Endpoints{Management: management}, nil
	}
	data, err := ParseEndpoint(text)
	if err != nil {
		return Endpoints{}, fmt.Errorf("spec.grpcDataEndpoint %w", err)
	}
	if a, b := management.Dir(), data.Dir(); a != "" && b != "" && a != b {
		return Endpoints{}, userError(fmt.Sprintf(multipleSocketDirsFormat, a, b))
	}
	return Endpoints{Management: management, Data: &data}, nil
}

// refusal is an error whose text users of ModelMesh know. It begins with a capital letter, as it always did.
type userError string

func (r userError) Error() string { return string(r) }

const (
	multipleSocketDirsFormat = "Only one unix domain socket path is allowed: spec.grpcEndpoint lies in %s and spec.grpcDataEndpoint in %s"
	adapterPortFormat        = `Built-in adapter grpcEndpoint must be of the form "port:N": %s`
)

func managementEndpoint(spec *v1alpha1.ServingRuntimeSpec) (Endpoint, error) {
	text := stringValue(spec.GRPCEndpoint)
	if text == "" {
		if spec.BuiltInAdapter == nil {
			return Endpoint{}, errors.New("spec.grpcEndpoint is missing: say where the server loads models, as port:<number> or unix:<absolute path>")
		}
		text = DefaultEndpoint
	}
	e, err := ParseEndpoint(text)
	if spec.BuiltInAdapter != nil && e.Port == "" {
		return Endpoint{}, userError(fmt.Sprintf(adapterPortFormat, text))
	}
	if err != nil {
		return Endpoint{}, fmt.Errorf("spec.grpcEndpoint %w", err)
	}
	return e, nil
}

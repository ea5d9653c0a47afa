package modelmesh

import (
	"errors"
	"fmt"
	"path"
	"strconv"
	"strings"

	"k8s.io/utils/ptr"

	"github.com/odh-platform/odh-platform-operator/apis/serving/v1alpha1"
)

const (
	portScheme = "port:"
	unixScheme = "unix:"
	// DefaultEndpoint is the management endpoint of built-in adapters unless the runtime sets another.
	DefaultEndpoint = "port:8085"
)

// Endpoint is an address inside a pod: a port on loopback or the path of a Unix socket.
type Endpoint struct {
	// Raw is the endpoint as in the spec, or DefaultEndpoint.
	Raw string
	// Port is the decimal port; empty for a socket.
	Port string
	// Path is the path of the socket; empty for a port.
	Path string
}

// Dir returns the directory of the socket; empty for a port.
func (e Endpoint) Dir() string {
	if e.Path == "" {
		return ""
	}
	return path.Dir(e.Path)
}

// ParseEndpoint parses port:<number>, unix:<absolute path> or unix://<absolute path>.
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
		return Endpoint{}, fmt.Errorf("%q must name a file in a separate directory: write unix:/<folder>/<file>", text)
	}
	return Endpoint{Raw: text, Path: file}, nil
}

// Endpoints are the endpoints of a runtime.
type Endpoints struct {
	// Management is the endpoint for loading and unloading models.
	Management Endpoint
	// Data is the endpoint for inference; nil if the spec sets none: Management then serves inference too.
	Data *Endpoint
}

// SocketDir returns the directory of all sockets, or "".
func (e Endpoints) SocketDir() string {
	if dir := e.Management.Dir(); dir != "" || e.Data == nil {
		return dir
	}
	return e.Data.Dir()
}

// EndpointsOf parses the endpoints of a runtime. Its errors name the field.
func EndpointsOf(spec *v1alpha1.ServingRuntimeSpec) (Endpoints, error) {
	management, err := managementEndpoint(spec)
	if err != nil {
		return Endpoints{}, err
	}
	text := ptr.Deref(spec.GRPCDataEndpoint, "")
	if text == "" {
		return Endpoints{Management: management}, nil
	}
	data, err := ParseEndpoint(text)
	if err != nil {
		return Endpoints{}, fmt.Errorf("spec.grpcDataEndpoint %w", err)
	}
	if managementDir, dataDir := management.Dir(), data.Dir(); managementDir != "" && dataDir != "" && managementDir != dataDir {
		return Endpoints{}, legacyError(fmt.Sprintf(multipleSocketDirsFormat, managementDir, dataDir))
	}
	return Endpoints{Management: management, Data: &data}, nil
}

// legacyError is a message that begins as in the legacy controller, with a capital letter.
type legacyError string

func (e legacyError) Error() string { return string(e) }

const (
	multipleSocketDirsFormat = "Only one unix domain socket path is allowed: spec.grpcEndpoint is in %s and spec.grpcDataEndpoint in %s: use one directory"
	adapterPortFormat        = `Built-in adapter grpcEndpoint must be of the form "port:N": %s`
)

func managementEndpoint(spec *v1alpha1.ServingRuntimeSpec) (Endpoint, error) {
	text := ptr.Deref(spec.GRPCEndpoint, "")
	if text == "" {
		if spec.BuiltInAdapter == nil {
			return Endpoint{}, errors.New("spec.grpcEndpoint is missing: set the address at which the server loads models, as port:<number> or unix:<absolute path>")
		}
		text = DefaultEndpoint
	}
	endpoint, err := ParseEndpoint(text)
	if spec.BuiltInAdapter != nil && endpoint.Port == "" {
		return Endpoint{}, legacyError(fmt.Sprintf(adapterPortFormat, text))
	}
	if err != nil {
		return Endpoint{}, fmt.Errorf("spec.grpcEndpoint %w", err)
	}
	return endpoint, nil
}

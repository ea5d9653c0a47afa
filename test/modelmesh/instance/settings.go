package instance

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	meshetcd "github.com/odh-platform/odh-platform-operator/controllers/modelmesh/etcd"
	"github.com/odh-platform/odh-platform-operator/test/modelmesh"
)

// Ports of a pod, in addition to that of the Service.
const (
	peerPort    = 8080
	probePort   = 8089
	preStopPort = 8090
)

// settings are those of the instance from the environment of its container.
type settings struct {
	id, service, address string
	port                 int
	labels               []string
	// runtime is the gRPC target of the adapter, data that of the model server.
	runtime, data string
	// etcd is the data of the Secret; constraints and dataPlane are paths of files.
	etcd                   map[string][]byte
	constraints, dataPlane string
	maxMessage             int
}

func readSettings() (settings, error) {
	s := settings{
		id: modelmesh.InstanceID(os.Getenv("WKUBE_POD_NAME")), service: os.Getenv("MM_SERVICE_NAME"), address: os.Getenv("WKUBE_POD_IPADDR"),
		labels:      strings.FieldsFunc(os.Getenv("MM_LABELS"), func(r rune) bool { return r == ',' }),
		constraints: os.Getenv("MM_TYPE_CONSTRAINTS_PATH"), dataPlane: os.Getenv("MM_DATAPLANE_CONFIG_PATH"),
	}
	s.runtime = target("INTERNAL_GRPC_PORT", "INTERNAL_GRPC_SOCKET_PATH")
	s.data = target("INTERNAL_SERVING_GRPC_PORT", "INTERNAL_SERVING_GRPC_SOCKET_PATH")
	if s.data == "" {
		s.data = s.runtime
	}
	if os.Getenv("MM_TLS_KEY_CERT_PATH") != "" {
		return s, errors.New("MM_TLS_KEY_CERT_PATH: the fake does not support TLS")
	}
	var err error
	if s.port, err = strconv.Atoi(os.Getenv("MM_SVC_GRPC_PORT")); err != nil {
		return s, fmt.Errorf("MM_SVC_GRPC_PORT: %w", err)
	}
	if s.maxMessage, err = strconv.Atoi(os.Getenv("MM_SVC_GRPC_MAX_MSG_SIZE")); err != nil {
		return s, fmt.Errorf("MM_SVC_GRPC_MAX_MSG_SIZE: %w", err)
	}
	file, isEtcd := strings.CutPrefix(os.Getenv("KV_STORE"), "etcd:")
	if !isEtcd || filepath.Base(file) != meshetcd.ConnectionKey || os.Getenv("MM_KVSTORE_PREFIX") != "mm" {
		return s, fmt.Errorf("KV_STORE %q below %q is not the etcd of the manager", os.Getenv("KV_STORE"), os.Getenv("MM_KVSTORE_PREFIX"))
	}
	connection, err := os.ReadFile(file)
	if err != nil {
		return s, fmt.Errorf("reading the connection to etcd: %w", err)
	}
	s.etcd = map[string][]byte{meshetcd.ConnectionKey: connection}
	return s, nil
}

// target returns the gRPC target of another container of the pod; "" if neither variable is set.
func target(port, socket string) string {
	if number := os.Getenv(port); number != "" {
		return "passthrough:///127.0.0.1:" + number
	}
	if path := os.Getenv(socket); path != "" {
		return "unix:" + path
	}
	return ""
}

func (s settings) peerAddress() string { return fmt.Sprintf("%s:%d", s.address, peerPort) }

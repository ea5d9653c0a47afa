package node

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/odh-platform/odh-platform-operator/test/node/images"
)

// Addresses of a cluster. All clusters have the same addresses, each in its own network namespace.
const (
	// Address of the node and of the API server.
	Address = "192.168.77.2"
	// ServiceNetwork, DNSAddress and PodNetwork are those of a kind cluster with one node.
	ServiceNetwork = "10.96.0.0/16"
	DNSAddress     = "10.96.0.10"
	PodNetwork     = "10.244.0.0/24"

	clusterDomain   = "cluster.local"
	gateway         = "192.168.77.1" // unreachable: the cluster has no route to other networks
	registryAddress = "127.0.0.1:5000"
)

// Images of the cluster itself.
const (
	// PauseImage is the image of the first process of every pod.
	PauseImage = "registry.k8s.io/pause:3.10"
	// DNSImage is the image in the Deployment of CoreDNS.
	DNSImage = "registry.k8s.io/coredns/coredns:v1.14.6"
)

// Settings are the settings of a node, stored in its directory.
type Settings struct {
	// Name of the node.
	Name string `json:"name"`
	// Dir is the directory of the cluster and has its name. Its directory `certificates` has the CA, the serving certificate of the
	// kubelet, and a kubeconfig each for `kubelet`, `kube-proxy` and `node`.
	Dir string `json:"dir"`
	// Programs are the paths of containerd, its shim, runc, the CNI plugins, kubelet and kube-proxy by name.
	Programs map[string]string `json:"programs"`
	// Ports on 127.0.0.1 of the machine that are forwarded to the same ports of the cluster.
	Ports []int `json:"ports"`
	// Images are the images that pods can use.
	Images images.Store `json:"images"`
}

const settingsFile = "node.json"

// Write writes the settings to the file that [Read] reads.
func (s Settings) Write() error {
	content, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return fmt.Errorf("encoding the settings of node %s: %w", s.Name, err)
	}
	if err := os.WriteFile(s.file(settingsFile), content, 0o600); err != nil {
		return fmt.Errorf("writing the settings of node %s: %w", s.Name, err)
	}
	return nil
}

// Read returns the settings of the node in a directory.
func Read(dir string) (Settings, error) {
	content, err := os.ReadFile(filepath.Join(dir, settingsFile))
	if err != nil {
		return Settings{}, fmt.Errorf("reading the settings of the node: %w", err)
	}
	var s Settings
	if err := json.Unmarshal(content, &s); err != nil {
		return Settings{}, fmt.Errorf("decoding the settings of the node: %w", err)
	}
	return s, nil
}

func (s Settings) file(parts ...string) string {
	return filepath.Join(append([]string{s.Dir}, parts...)...)
}

func (s Settings) secret(name string) string { return s.file("certificates", name) }

// networkFile exists once the network of the node exists.
const networkFile = "network"

// NetworkReady reports whether the network of the node in a directory exists, so other processes can join it.
func NetworkReady(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, networkFile))
	return err == nil
}

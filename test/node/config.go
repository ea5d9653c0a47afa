package node

import (
	"embed"
	"fmt"
	"os"
	"path/filepath"
)

//go:embed config
var configFiles embed.FS

// Provisioner of the volumes, and the name of its StorageClass, which is the default of the cluster.
const (
	Provisioner  = "testcluster/local"
	StorageClass = "local"
)

// Addons returns the initial objects of a cluster with a real node: CoreDNS and the StorageClass.
func Addons() ([]byte, error) { return Settings{}.expand("addons.yaml") }

func (s Settings) expand(name string) ([]byte, error) {
	content, err := configFiles.ReadFile("config/" + name)
	if err != nil {
		return nil, fmt.Errorf("reading a template: %w", err)
	}
	values := s.values()
	return []byte(os.Expand(string(content), func(key string) string { return values[key] })), nil
}

// values returns the variables of the templates.
func (s Settings) values() map[string]string {
	return map[string]string{
		"name": s.Name, "dir": s.Dir, "certificates": s.file("certificates"), "registry": registryAddress, "pause": PauseImage,
		"runc": s.Programs["runc"], "plugins": filepath.Dir(s.Programs["bridge"]),
		"pods": PodNetwork, "dns": DNSAddress, "domain": clusterDomain,
		"dnsImage": DNSImage, "provisioner": Provisioner, "storageClass": StorageClass,
	}
}

// writeConfig writes the configuration of containerd, its plugins, kubelet and kube-proxy.
func (s Settings) writeConfig() error {
	for template, target := range map[string]string{
		"containerd.toml":  s.file("containerd.toml"),
		"registries.toml":  s.file("registries", "_default", "hosts.toml"),
		"network.conflist": s.file("cni", "10-pods.conflist"),
		"kubelet.yaml":     s.file("kubelet.yaml"),
		"kube-proxy.yaml":  s.file("kube-proxy.yaml"),
	} {
		content, err := s.expand(template)
		if err != nil {
			return err
		}
		if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
			return fmt.Errorf("writing %s: %w", target, err)
		}
		if err := os.WriteFile(target, content, 0o600); err != nil {
			return fmt.Errorf("writing %s: %w", target, err)
		}
	}
	return nil
}

//go:build e2e

package e2e_test

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/odh-platform/odh-platform-operator/test/cluster"
)

// listTraces returns the mounts, processes, cgroups and network interfaces of an instance in the folder.
func listTraces(dir string) []string {
	GinkgoHelper()
	var found []string
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	Expect(err).NotTo(HaveOccurred())
	if bytes.Contains(mounts, []byte(dir)) {
		found = append(found, "a mount")
	}
	commands, err := filepath.Glob("/proc/[0-9]*/cmdline")
	Expect(err).NotTo(HaveOccurred())
	for _, file := range commands {
		if command, err := os.ReadFile(file); err == nil && bytes.Contains(command, []byte(dir)) {
			found = append(found, "process "+strings.ReplaceAll(string(command), "\x00", " "))
		}
	}
	err = filepath.WalkDir("/sys/fs/cgroup", func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() && entry.Name() == "testcluster-"+filepath.Base(dir) {
			found = append(found, "cgroup "+path)
		}
		return nil // unrelated cgroups may be deleted concurrently
	})
	Expect(err).NotTo(HaveOccurred())
	interfaces, err := net.Interfaces()
	Expect(err).NotTo(HaveOccurred())
	for _, networkInterface := range interfaces {
		if networkInterface.Name == "node0" || networkInterface.Name == "pods0" {
			found = append(found, "interface "+networkInterface.Name)
		}
	}
	return found
}

var _ = Describe("A real node", func() {
	It("runs next to another node, and leaves no traces after it stops", func(ctx SpecContext) {
		second, err := cluster.Start(ctx, cluster.Options{
			Name: fmt.Sprintf("e2e-second-%d", os.Getpid()), Platform: cluster.Bare, Real: true, Ephemeral: true, Progress: GinkgoWriter,
		})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func(ctx context.Context) { Expect(second.Stop(ctx)).To(Succeed()) })
		Expect(listTraces(second.Dir())).To(ContainElement(HavePrefix("cgroup ")), "the folder is not that of the instance")

		for _, kubeconfig := range []string{second.Kubeconfig(), env.KubeconfigPath} {
			nodes, err := tryKubectl(ctx, "", "--kubeconfig="+kubeconfig, "get", "nodes", "-o", `jsonpath={.items[*].status.conditions[?(@.type=="Ready")].status}`)
			Expect(err).NotTo(HaveOccurred())
			Expect(nodes).To(Equal("True"))
		}

		Expect(second.Stop(ctx)).To(Succeed())
		Expect(listTraces(second.Dir())).To(BeEmpty())
		Expect(second.Dir()).NotTo(BeADirectory())
	}, SpecTimeout(specTimeout))
})

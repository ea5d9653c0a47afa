//go:build clients

package clients_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"text/tabwriter"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/odh-platform/odh-platform-operator/test/operands/machine"
)

// client is a release of a Python package.
type client struct{ name, version string }

func (c client) String() string { return c.name + " " + c.version }

// install makes the environment of the client, unless an earlier run did.
func (c client) install(ctx context.Context) *machine.Python {
	GinkgoHelper()
	name := c.name + "-" + c.version
	requirements, err := os.ReadFile(filepath.Join("requirements", name+".txt"))
	Expect(err).NotTo(HaveOccurred())
	python, err := machine.InstallPython(ctx, "clients", name, requirements)
	Expect(err).NotTo(HaveOccurred())
	return python
}

// releases are the newest release of a client and, if CLIENTS is all, the oldest supported one.
func releases(name, newest, oldest string) []client {
	all := []client{{name, newest}}
	if os.Getenv("CLIENTS") == "all" && oldest != newest {
		all = append(all, client{name, oldest})
	}
	return all
}

// each makes a spec for each release.
func each(text string, of []client, body func(SpecContext, client)) {
	for _, c := range of {
		It(fmt.Sprintf("%s: %s", c, text), func(ctx SpecContext) { body(ctx, c) }, SpecTimeout(specTimeout))
	}
}

// run runs a script of testdata as a user whose home has nothing but a kubeconfig, and notes the steps that it took.
func (c client) run(ctx context.Context, python *machine.Python, script, namespace, kubeconfig string, more ...string) {
	GinkgoHelper()
	home := GinkgoT().TempDir()
	config, err := os.ReadFile(kubeconfig)
	Expect(err).NotTo(HaveOccurred())
	Expect(os.Mkdir(filepath.Join(home, ".kube"), 0o755)).To(Succeed())
	own := filepath.Join(home, ".kube", "config")
	Expect(os.WriteFile(own, config, 0o600)).To(Succeed())
	path, err := filepath.Abs(filepath.Join("testdata", script))
	Expect(err).NotTo(HaveOccurred())
	command := exec.CommandContext(ctx, python.Path("python"), path)
	command.Dir = home
	command.Env = append([]string{"PATH=" + python.Bin + ":/usr/bin:/bin", "HOME=" + home, "KUBECONFIG=" + own, "NAMESPACE=" + namespace, "LC_ALL=C.UTF-8"}, more...)
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	command.Cancel = func() error { return syscall.Kill(-command.Process.Pid, syscall.SIGKILL) }
	var output bytes.Buffer
	command.Stdout, command.Stderr = &output, &output
	if err := command.Run(); err != nil {
		Fail(fmt.Sprintf("%s of %s: %v\n%s", script, c, err, &output))
	}
	fmt.Fprintf(GinkgoWriter, "%s of %s:\n%s", script, c, &output)
	taken.note(c.String(), output.String())
}

// steps are what the clients did.
type steps struct {
	lock  sync.Mutex
	lines []string
}

var taken steps

func (s *steps) note(who, output string) {
	GinkgoHelper()
	s.lock.Lock()
	defer s.lock.Unlock()
	before := len(s.lines)
	for line := range strings.Lines(output) {
		if step, found := strings.CutPrefix(line, "did: "); found {
			s.lines = append(s.lines, who+"\t"+strings.TrimSpace(step))
		}
	}
	Expect(len(s.lines)).To(BeNumerically(">", before), "%s took no step", who)
}

var _ = AfterSuite(func() {
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table)
	for _, line := range taken.lines {
		fmt.Fprintln(table, line)
	}
	Expect(table.Flush()).To(Succeed())
})

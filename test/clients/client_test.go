//go:build clients

package clients_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"text/tabwriter"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/odh-platform/odh-platform-operator/test/operands/machine"
)

// client is a release of a Python package.
type client struct{ name, version string }

func (c client) String() string { return c.name + " " + c.version }

// install creates the Python environment of the client unless it exists.
func (c client) install(ctx context.Context) *machine.Python {
	GinkgoHelper()
	name := c.name + "-" + c.version
	requirements, err := os.ReadFile(filepath.Join("requirements", name+".txt"))
	Expect(err).NotTo(HaveOccurred())
	python, err := machine.InstallPython(ctx, "clients", name, requirements)
	Expect(err).NotTo(HaveOccurred())
	return python
}

// ranges are the beginnings of the expected rows of docs/versions.md for the clients.
var ranges []string

// releases returns the newest release of a client and, if CLIENTS is all, the oldest supported one. It adds their range to ranges.
func releases(name, newest, oldest string) []client {
	ranges = append(ranges, fmt.Sprintf("\n| `%s` %s to %s |", name, oldest, newest))
	all := []client{{name, newest}}
	if os.Getenv("CLIENTS") == "all" && oldest != newest {
		all = append(all, client{name, oldest})
	}
	return all
}

// eachRelease defines a spec for each release.
func eachRelease(text string, clients []client, body func(SpecContext, client)) {
	for _, c := range clients {
		It(fmt.Sprintf("%s: %s", c, text), func(ctx SpecContext) { body(ctx, c) }, SpecTimeout(specTimeout))
	}
}

var _ = It("tests the releases in docs/versions.md", func() {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "versions.md"))
	Expect(err).NotTo(HaveOccurred())
	Expect(ranges).NotTo(BeEmpty())
	for _, row := range ranges {
		Expect(string(page)).To(ContainSubstring(row))
	}
})

// task is a script that a client runs.
type task struct {
	script     string
	namespace  string
	kubeconfig string
	// files are written to the working directory of the script.
	files map[string]string
	// services maps the addresses of Services, in the form HOST:PORT, to the ports of processes.
	services map[string]int
	env      []string
}

// run runs a script of testdata as a user with only a kubeconfig, and records its steps.
func (c client) run(ctx context.Context, python *machine.Python, t task) {
	GinkgoHelper()
	home := GinkgoT().TempDir()
	config, err := os.ReadFile(t.kubeconfig)
	Expect(err).NotTo(HaveOccurred())
	kubeconfig := filepath.Join(".kube", "config")
	files := map[string]string{kubeconfig: string(config), "token": token(t.kubeconfig)}
	maps.Copy(files, t.files)
	Expect(os.Mkdir(filepath.Join(home, ".kube"), 0o755)).To(Succeed())
	for name, text := range files {
		Expect(os.WriteFile(filepath.Join(home, name), []byte(text), 0o600)).To(Succeed())
	}
	testdata, err := filepath.Abs("testdata")
	Expect(err).NotTo(HaveOccurred())
	services, err := json.Marshal(t.services)
	Expect(err).NotTo(HaveOccurred())
	command := exec.CommandContext(ctx, python.Path("python"), filepath.Join(testdata, t.script))
	command.Dir = home
	command.Env = append([]string{
		"PATH=" + python.Bin + ":/usr/bin:/bin", "HOME=" + home, "LC_ALL=C.UTF-8", "PYTHONDONTWRITEBYTECODE=1", "PYTHONPATH=" + filepath.Join(testdata, "network"),
		"KUBECONFIG=" + filepath.Join(home, kubeconfig), "NAMESPACE=" + t.namespace, "CLIENT=" + c.String(), "SERVICES=" + string(services),
	}, t.env...)
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	command.Cancel = func() error { return syscall.Kill(-command.Process.Pid, syscall.SIGKILL) }
	var output bytes.Buffer
	command.Stdout, command.Stderr = &output, &output
	if err := command.Run(); err != nil {
		Fail(fmt.Sprintf("%s of %s: %v\n%s", t.script, c, err, &output))
	}
	fmt.Fprintf(GinkgoWriter, "%s of %s:\n%s", t.script, c, &output)
	recorded.add(c.String(), output.String())
}

// token returns the token of a kubeconfig.
func token(kubeconfig string) string {
	GinkgoHelper()
	config, err := clientcmd.LoadFromFile(kubeconfig)
	Expect(err).NotTo(HaveOccurred())
	return config.AuthInfos[config.Contexts[config.CurrentContext].AuthInfo].Token
}

// snippet returns the Python code in the section "Use it from Python" of a page.
func snippet(page string) string {
	GinkgoHelper()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "components", page))
	Expect(err).NotTo(HaveOccurred())
	_, section, found := strings.Cut(string(text), "\n### Use it from Python\n")
	Expect(found).To(BeTrue(), "%s has no section \"Use it from Python\"", page)
	_, block, found := strings.Cut(section, "\n```python\n")
	Expect(found).To(BeTrue(), "%s has no Python code in this section", page)
	block, _, _ = strings.Cut(block, "\n```")
	return block + "\n"
}

// steps holds the completed steps of all scripts.
type steps struct {
	lock  sync.Mutex
	lines []string
}

var recorded steps

func (s *steps) add(client, output string) {
	GinkgoHelper()
	s.lock.Lock()
	defer s.lock.Unlock()
	before := len(s.lines)
	for line := range strings.Lines(output) {
		if step, found := strings.CutPrefix(line, "step: "); found {
			s.lines = append(s.lines, client+"\t"+strings.TrimSpace(step))
		}
	}
	Expect(len(s.lines)).To(BeNumerically(">", before), "%s completed no step", client)
}

var _ = AfterSuite(func() {
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table)
	slices.SortStableFunc(recorded.lines, func(a, b string) int {
		return strings.Compare(strings.Split(a, "\t")[0], strings.Split(b, "\t")[0])
	})
	for _, line := range recorded.lines {
		fmt.Fprintln(table, line)
	}
	Expect(table.Flush()).To(Succeed())
})

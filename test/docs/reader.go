package docs

import (
	"cmp"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
)

// commandTimeout bounds one command of a page. Waits in pages that end by themselves have shorter ones; those that a page gives
// more time must come about in this.
const commandTimeout = 150 * time.Second

// commandEnd is how long the end of a command that was stopped may take: what it left in the background may hold its output.
const commandEnd = 5 * time.Second

// Reader is a user who types what a page says, in a shell in the checkout, as administrator of a cluster. Its methods fail the spec.
type Reader struct {
	// Page below Root, which is the checkout.
	Page, Root string
	// Kubectl is the path of the program, and Kubeconfig that of the file that it works with.
	Kubectl, Kubeconfig string
	// Folder is where he saves files. It has to outlive Undo.
	Folder string
	// After has functions to call after commands with a prefix, to simulate actions that the cluster of the test lacks.
	After map[string]func(context.Context)
	// Replace replaces example values of the page, such as a registry, with those of the reader; nil changes nothing.
	Replace *strings.Replacer
	// Env has further variables of his shell.
	Env []string
	// Timeout of one command; 0 means 150 s.
	Timeout time.Duration
	// Meets are needs of blocks that the cluster meets, of those in [Needs].
	Meets []string

	// Saved are the files that the page had him save or write, by the names that it gives them.
	Saved map[string]string
	// Typed are the commands, with the names of those files replaced.
	Typed []string
}

// Environment is that of a shell which a user opened: nothing of a make that runs the test reaches a make that the test runs.
func Environment() []string {
	return slices.DeleteFunc(os.Environ(), func(variable string) bool {
		name, _, _ := strings.Cut(variable, "=")
		return slices.Contains([]string{"MAKEFLAGS", "MFLAGS", "MAKELEVEL", "OVERLAY", "IMG", "FORCE", "PLATFORM", "KUBECTL"}, name)
	})
}

// Read runs and applies all blocks of the page in order.
func (r *Reader) Read(ctx context.Context) {
	ginkgo.GinkgoHelper()
	r.Saved, r.Typed = map[string]string{}, nil
	text, err := os.ReadFile(filepath.Join(r.Root, r.Page))
	gomega.Expect(err).NotTo(gomega.HaveOccurred())
	for _, block := range Blocks(string(text)) {
		switch {
		case block.Language == "yaml" && block.Value("file") != "":
			gomega.Expect(os.WriteFile(r.file(block.Value("file")), []byte(r.replaced(block.Text)), 0o600)).To(gomega.Succeed())
		case block.Language == "sh" && (block.Value("needs") == "" || slices.Contains(r.Meets, block.Value("needs"))):
			for _, command := range block.Commands() {
				r.run(ctx, command, block.Line)
			}
		}
	}
}

// Type types a command that is not on the page.
func (r *Reader) Type(ctx context.Context, command string) {
	ginkgo.GinkgoHelper()
	r.run(ctx, command, 0)
}

// file returns where a file of the page is, from now on.
func (r *Reader) file(name string) string {
	r.Saved[name] = filepath.Join(r.Folder, name)
	return r.Saved[name]
}

func (r *Reader) replaced(text string) string {
	if r.Replace == nil {
		return text
	}
	return r.Replace.Replace(text)
}

// written is a file that a command writes into the folder where its reader is.
var written = regexp.MustCompile(` > ([^\s/]+)(?:\s|$)`)

// run types one command. Names of files are replaced by where they are.
func (r *Reader) run(ctx context.Context, command string, line int) {
	ginkgo.GinkgoHelper()
	for _, found := range written.FindAllStringSubmatch(command, -1) {
		r.file(found[1])
	}
	script := r.replaced(command)
	for name, path := range r.Saved {
		script = regexp.MustCompile(`([\s=])`+regexp.QuoteMeta(name)+`(\s|$)`).ReplaceAllString(script, "${1}"+path+"${2}")
	}
	limited, cancel := context.WithTimeout(ctx, cmp.Or(r.Timeout, commandTimeout))
	defer cancel()
	shell := exec.CommandContext(limited, "bash", "-euo", "pipefail", "-c", script)
	shell.Dir = r.Root
	shell.Env = append(Environment(), "PATH="+filepath.Dir(r.Kubectl)+":"+os.Getenv("PATH"), "KUBECONFIG="+r.Kubeconfig)
	shell.Env = append(shell.Env, r.Env...)
	shell.WaitDelay = commandEnd
	ginkgo.By(command)
	output, err := shell.CombinedOutput()
	gomega.Expect(err).NotTo(gomega.HaveOccurred(), "%s:%d: %s\n%s", r.Page, line, command, output)
	r.Typed = append(r.Typed, script)
	for begin, do := range r.After {
		if strings.HasPrefix(command, begin) {
			do(ctx)
		}
	}
}

var (
	created = regexp.MustCompile(`^kubectl( -n \S+)? create (namespace|configmap|secret generic) (\S+)`)
	applied = regexp.MustCompile(`^kubectl( -n \S+)? apply (-[fk] \S+)$`)
)

// Undo removes what a page left, so that another attempt and other pages find nothing of it.
func (r *Reader) Undo(ctx context.Context) {
	ginkgo.GinkgoHelper()
	for _, script := range slices.Backward(r.Typed) {
		if made := created.FindStringSubmatch(script); made != nil {
			kind, _, _ := strings.Cut(made[2], " ")
			r.run(ctx, "kubectl"+made[1]+" delete "+kind+" "+made[3]+" --ignore-not-found --timeout=120s", 0)
		}
		if made := applied.FindStringSubmatch(script); made != nil {
			r.run(ctx, "kubectl"+made[1]+" delete "+made[2]+" --ignore-not-found --timeout=120s", 0)
		}
	}
}

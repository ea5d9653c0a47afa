package docs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
)

const (
	// commandTimeout limits one command of a page, including its waits.
	commandTimeout = 150 * time.Second
	// stopDelay limits the wait for the output of a stopped command, which its background processes may keep open.
	stopDelay = 5 * time.Second
	// backgroundTimeout limits the time until a command in the background has printed the output of the page.
	backgroundTimeout = 30 * time.Second
)

// Reader runs the commands of a page in a shell, as an administrator of a cluster. Its methods fail the spec after an error.
type Reader struct {
	// Page is the path of the page below Root, the root of the checkout.
	Page, Root string
	// Kubectl is the path of kubectl. Kubeconfig is the path of its kubeconfig.
	Kubectl, Kubeconfig string
	// Folder is the folder of saved files. It has to exist until Undo returns.
	Folder string
	// OutsideCheckout runs the commands in Folder, in which files have the names on the page, instead of in Root.
	OutsideCheckout bool
	// After maps prefixes of commands to functions to call after them, which simulate actions that the test cluster lacks.
	After map[string]func(context.Context)
	// Replace, if set, replaces example values of the page, such as a registry.
	Replace *strings.Replacer
	// Env are additional environment variables of the shell.
	Env []string
	// Timeout of one command; 0 means 150 s.
	Timeout time.Duration
	// Satisfied are the requirements of [Needs] that the cluster meets.
	Satisfied []string

	// state is the file with the exported variables of the previous commands.
	state string
	// running are the process groups of the commands in the background.
	running []int

	// Saved maps the names of files that the page saves or writes to their paths.
	Saved map[string]string
	// Typed are the commands in the foreground, with the paths of saved files.
	Typed []string
}

// Environment returns the environment of a user's shell, without the variables of a make that runs the test.
func Environment() []string {
	return slices.DeleteFunc(os.Environ(), func(variable string) bool {
		name, _, _ := strings.Cut(variable, "=")
		return slices.Contains([]string{"MAKEFLAGS", "MFLAGS", "MAKELEVEL", "OVERLAY", "IMG", "FORCE", "PLATFORM", "KUBECTL"}, name)
	})
}

// Read runs the commands with satisfied requirements and saves all files, in order. It fails at the end if outputs differ from the page.
func (r *Reader) Read(ctx context.Context) {
	ginkgo.GinkgoHelper()
	r.Saved, r.Typed = map[string]string{}, nil
	text, err := os.ReadFile(filepath.Join(r.Root, r.Page))
	gomega.Expect(err).NotTo(gomega.HaveOccurred())
	blocks := Blocks(string(text))
	var differences error
	for i, block := range blocks {
		switch {
		case block.Language != "sh" && block.Value("file") != "":
			gomega.Expect(os.WriteFile(r.file(block.Value("file")), []byte(r.replaced(block.Text)), 0o600)).To(gomega.Succeed())
		case block.Language == "sh" && (block.Value("needs") == "" || slices.Contains(r.Satisfied, block.Value("needs"))):
			var want *Block
			if i+1 < len(blocks) && blocks[i+1].IsOutput() {
				want = &blocks[i+1]
			}
			if output := r.block(ctx, block, want); want != nil {
				differences = errors.Join(differences, r.compare(want, output))
			}
		}
	}
	gomega.Expect(differences).NotTo(gomega.HaveOccurred())
}

// compare returns an error if an output differs from that on the page.
func (r *Reader) compare(want *Block, output string) error {
	if err := Similar(r.replaced(want.Text), output); err != nil {
		return fmt.Errorf("%s:%d: %w", r.Page, want.Line, err)
	}
	return nil
}

// block runs the commands of a block and returns their output. After a command in the background, it waits until the output is that on the
// page, unless want is nil.
func (r *Reader) block(ctx context.Context, block Block, want *Block) string {
	ginkgo.GinkgoHelper()
	var output strings.Builder
	for _, command := range block.Commands() {
		if !strings.HasSuffix(command, " &") {
			output.WriteString(r.run(ctx, command, block.Line))
			continue
		}
		before, background := output.String(), r.start(command, block.Line)
		gomega.Eventually(ctx, func() error {
			text, err := os.ReadFile(background)
			output.Reset()
			output.WriteString(before + string(text))
			if err != nil || want == nil {
				return err
			}
			return r.compare(want, output.String())
		}, backgroundTimeout).Should(gomega.Succeed(), "%s:%d: %s", r.Page, block.Line, command)
	}
	return output.String()
}

// Type runs a command that Read does not run.
func (r *Reader) Type(ctx context.Context, command string) {
	ginkgo.GinkgoHelper()
	r.run(ctx, command, 0)
}

// file returns the path of a file of the page and records it in Saved.
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

// written matches a file that a command writes into the working directory.
var written = regexp.MustCompile(` > ([^\s/]+)(?:\s|$)`)

// run runs one command, with the paths of saved files, and returns its output.
func (r *Reader) run(ctx context.Context, command string, line int) string {
	ginkgo.GinkgoHelper()
	timeoutCtx, cancel := context.WithTimeout(ctx, cmp.Or(r.Timeout, commandTimeout))
	defer cancel()
	script := r.script(command)
	shell := r.shell(timeoutCtx, script)
	ginkgo.By(command)
	output, err := shell.CombinedOutput()
	gomega.Expect(err).NotTo(gomega.HaveOccurred(), "%s:%d: %s\n%s", r.Page, line, command, output)
	r.Typed = append(r.Typed, script)
	for begin, do := range r.After {
		if strings.HasPrefix(command, begin) {
			do(ctx)
		}
	}
	return string(output)
}

// start starts a command that ends in `&`, and returns the file with its output. Undo stops the command.
func (r *Reader) start(command string, line int) (output string) {
	ginkgo.GinkgoHelper()
	file, err := os.CreateTemp(r.Folder, "output")
	gomega.Expect(err).NotTo(gomega.HaveOccurred())
	defer func() { _ = file.Close() }()
	shell := r.shell(context.Background(), strings.TrimSuffix(r.script(command), "&"))
	shell.Stdout, shell.Stderr = file, file
	shell.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	ginkgo.By(command)
	gomega.Expect(shell.Start()).To(gomega.Succeed(), "%s:%d: %s", r.Page, line, command)
	go func() { _ = shell.Wait() }() // it is killed
	r.running = append(r.running, shell.Process.Pid)
	return file.Name()
}

// script returns a command with the paths of saved files in place of their names, unless the command runs in their folder.
func (r *Reader) script(command string) string {
	for _, found := range written.FindAllStringSubmatch(command, -1) {
		r.file(found[1])
	}
	script := r.replaced(command)
	if r.OutsideCheckout {
		return script
	}
	for name, path := range r.Saved {
		script = regexp.MustCompile(`([\s=])`+regexp.QuoteMeta(name)+`(\s|$)`).ReplaceAllString(script, "${1}"+path+"${2}")
	}
	return script
}

// shell returns a shell for a script, with the exported variables of the previous scripts.
func (r *Reader) shell(ctx context.Context, script string) *exec.Cmd {
	ginkgo.GinkgoHelper()
	if r.state == "" {
		r.state = filepath.Join(r.Folder, ".exported")
		gomega.Expect(os.WriteFile(r.state, nil, 0o600)).To(gomega.Succeed())
	}
	const keepExported = `. "$0"; trap 'export -p > "$0"' EXIT` + "\n"
	shell := exec.CommandContext(ctx, "bash", "-euo", "pipefail", "-c", keepExported+script, r.state)
	shell.Dir = r.Root
	if r.OutsideCheckout {
		shell.Dir = r.Folder
	}
	shell.Env = append(Environment(), "PATH="+filepath.Dir(r.Kubectl)+":"+os.Getenv("PATH"), "KUBECONFIG="+r.Kubeconfig)
	shell.Env = append(shell.Env, r.Env...)
	shell.WaitDelay = stopDelay
	return shell
}

var (
	created = regexp.MustCompile(`^kubectl( -n \S+)? create (namespace|configmap|secret generic) (\S+)`)
	applied = regexp.MustCompile(`^kubectl( -n \S+)? apply(?: --server-side)? (-[fk] \S+)$`)
)

// Undo stops commands in the background, and deletes the created namespaces, ConfigMaps and Secrets, and the objects of applied files.
func (r *Reader) Undo(ctx context.Context) {
	ginkgo.GinkgoHelper()
	for _, group := range r.running {
		_ = syscall.Kill(-group, syscall.SIGKILL) // it may have exited
	}
	r.running = nil
	for _, script := range slices.Backward(r.Typed) {
		if match := created.FindStringSubmatch(script); match != nil {
			kind, _, _ := strings.Cut(match[2], " ")
			r.run(ctx, "kubectl"+match[1]+" delete "+kind+" "+match[3]+" --ignore-not-found --timeout=120s", 0)
		}
		if match := applied.FindStringSubmatch(script); match != nil {
			r.run(ctx, "kubectl"+match[1]+" delete "+match[2]+" --ignore-not-found --timeout=120s", 0)
		}
	}
}

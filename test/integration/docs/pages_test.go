package docs_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/odh-platform/odh-platform-operator/test/docs"
)

// commandTimeout bounds one command of a page; waits in pages have their own, shorter ones.
const commandTimeout = 150 * time.Second

// reader is somebody who types what a page says.
type reader struct {
	page string
	// folder is where he saves files.
	folder string
	// saved are the files that the page had him save, by the names that it gives them.
	saved map[string]string
	// typed are the commands, with the names of saved files replaced.
	typed []string
}

func (r *reader) save(block docs.Block) {
	GinkgoHelper()
	path := filepath.Join(r.folder, block.Value("file"))
	Expect(os.WriteFile(path, []byte(block.Text), 0o600)).To(Succeed())
	r.saved[block.Value("file")] = path
}

// run types one command. Names of saved files are replaced by where they were saved.
func (r *reader) run(ctx context.Context, command string, line int) {
	GinkgoHelper()
	script := command
	for name, path := range r.saved {
		script = regexp.MustCompile(`(-f )`+regexp.QuoteMeta(name)+`\b`).ReplaceAllString(script, "${1}"+path)
	}
	ctx, cancel := context.WithTimeout(ctx, commandTimeout)
	defer cancel()
	shell := exec.CommandContext(ctx, "bash", "-euo", "pipefail", "-c", script)
	shell.Dir = root
	shell.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"), "KUBECONFIG="+env.KubeconfigPath)
	By(command)
	output, err := shell.CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), "%s:%d: %s\n%s", r.page, line, command, output)
	r.typed = append(r.typed, script)
}

var (
	created = regexp.MustCompile(`^kubectl( -n \S+)? create (namespace|configmap|secret generic) (\S+)`)
	applied = regexp.MustCompile(`^kubectl( -n \S+)? apply (-[fk] \S+)$`)
)

// undo removes what a page left, so that another attempt and other pages find nothing of it.
func (r *reader) undo(ctx context.Context) {
	GinkgoHelper()
	for _, script := range slices.Backward(r.typed) {
		if made := created.FindStringSubmatch(script); made != nil {
			kind, _, _ := strings.Cut(made[2], " ")
			r.run(ctx, "kubectl"+made[1]+" delete "+kind+" "+made[3]+" --ignore-not-found --timeout=120s", 0)
		}
		if made := applied.FindStringSubmatch(script); made != nil {
			r.run(ctx, "kubectl"+made[1]+" delete "+made[2]+" --ignore-not-found --timeout=120s", 0)
		}
	}
}

// read does what the page says, from its beginning to its end.
func (r *reader) read(ctx context.Context) {
	GinkgoHelper()
	text, err := os.ReadFile(filepath.Join(root, r.page))
	Expect(err).NotTo(HaveOccurred())
	for _, block := range docs.Blocks(string(text)) {
		switch {
		case block.Language == "yaml" && block.Value("file") != "":
			r.save(block)
		case block.Language == "sh" && block.Value("needs") == "":
			for _, command := range block.Commands() {
				r.run(ctx, command, block.Line)
			}
		}
	}
}

var _ = Describe("The page of", func() {
	pages, err := filepath.Glob("../../../docs/components/*.md")
	if err != nil || len(pages) < 7 {
		panic("there must be a page for each component")
	}
	for _, path := range pages {
		name := strings.TrimSuffix(filepath.Base(path), ".md")
		It(name+" says what works", func(ctx SpecContext) {
			r := open("docs/components/" + name + ".md")
			r.read(ctx)
			Expect(r.saved).NotTo(BeEmpty(), "a page has a sample")
			Expect(len(r.typed)).To(BeNumerically(">=", 4), "a page says how to apply the sample and how to look at it")
		}, NodeTimeout(pageTimeout))
	}

	It("the first steps says what works", func(ctx SpecContext) {
		r := open("README.md")
		r.read(ctx)
		Expect(len(r.typed)).To(BeNumerically(">=", 12))
	}, NodeTimeout(pageTimeout))

	It("the way from an operator before says what works", func(ctx SpecContext) {
		r := open("docs/upgrade/README.md")
		r.read(ctx)
		Expect(len(r.typed)).To(BeNumerically(">=", 3))
	}, NodeTimeout(pageTimeout))
})

// open begins to read a page, and has what it leaves removed at the end of the spec.
func open(page string) *reader {
	GinkgoHelper()
	r := &reader{page: page, folder: GinkgoT().TempDir(), saved: map[string]string{}}
	DeferCleanup(func(ctx SpecContext) { r.undo(ctx) }, NodeTimeout(pageTimeout))
	return r
}

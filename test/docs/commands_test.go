package docs

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/odh-platform/odh-platform-operator/pkg/config"
)

// allowedPrograms are the programs that pages can use, each with the requirement that its block has to declare; empty for none.
var allowedPrograms = map[string]string{
	"kubectl": "", "make": "", "go": "", "manager": "", "bin/manager": "", "bin/kubectl-odh": "", "config/manage": "",
	"git": "", "export": "", "cd": "", "diff": "", "rm": "", "base64": "", "eval": "", "true": "", "jq": "", "curl": "", "kill": "",
	"head": "", "tail": "", "wc": "", "tar": "", "sort": "", "cp": "", "cat": "", "install": "", "openssl": "", "grep": "", "mkdir": "", "ln": "",
	"cut": "", "sed": "", "xargs": "", "uniq": "", "echo": "", "python": "", "mlflow": "", "ray": "", "pip": "pypi",
	"helm": "registry", "oc": "openshift", "docker": "container-engine", "podman": "container-engine", "kind": "kind",
	"operator-sdk": "olm", "opm": "olm", "promtool": "prometheus", "amtool": "prometheus", "cosign": "registry", "grpcurl": "server",
}

// otherSuites maps pages to the suites that run them.
var otherSuites = map[string]string{
	"docs/kind.md": "test/integration/dependencies", "docs/migrate/mlflow-operator.md": "test/integration/install",
	"docs/migrate/model-registry-operator.md": "test/integration/install", "docs/migrate/codeflare-operator.md": "test/integration/install",
	"docs/migrate/appwrapper.md": "test/integration/install", "docs/migrate/modelmesh.md": "test/integration/install",
	"docs/tutorials/mlflow.md": "test/e2e", "docs/tutorials/modelregistry.md": "test/e2e", "docs/tutorials/appwrapper.md": "test/e2e",
	"docs/tutorials/modelmesh.md": "test/e2e", "docs/tutorials/journey.md": "test/e2e", "docs/tutorials/raycluster.md": "test/e2e",
	"docs/tutorials/modelcatalog.md": "test/e2e",
}

// runsInDocsSuite reports whether test/integration/docs runs a page.
func runsInDocsSuite(page string) bool {
	return strings.HasPrefix(page, "docs/components/") || slices.Contains([]string{"README.md", "docs/getting-started.md", "docs/migrate/README.md", "docs/upgrade/README.md"}, page)
}

func isShell(b Block) bool {
	return slices.Contains([]string{"sh", "bash", "shell", "console"}, b.Language)
}

// looksLikeShell reports whether a block without a language contains commands.
func looksLikeShell(b Block) bool {
	if b.Language != "" {
		return false
	}
	for _, line := range b.Commands() {
		all := commandsOf(line)
		if len(all) == 0 {
			continue
		}
		// Lines of output also begin with mlflow, the name of a component.
		if _, known := allowedPrograms[all[0][0]]; known && len(all[0]) > 1 && all[0][0] != "mlflow" {
			return true
		}
	}
	return false
}

// checker checks commands without running them.
type checker struct {
	t        *testing.T
	where    string
	makefile string
	targets  []string        // targets of make
	kinds    map[string]bool // kinds that kubectl accepts
	flags    []string        // flags of the manager
	plugin   func(string) string
	saved    map[string]bool // files that the reader saves or that commands write
	overlays map[string]bool // folders to build with kustomize
}

func (c *checker) errorf(format string, args ...any) {
	c.t.Errorf("%s: %s", c.where, fmt.Sprintf(format, args...))
}

func (c *checker) checkPath(path string) {
	// make release writes the files in dist.
	if strings.ContainsAny(path, "<>$*{") || strings.HasPrefix(path, "dist/") || path == "-" || strings.Contains(path, "://") || c.saved[path] || path == "" || filepath.IsAbs(path) {
		return
	}
	if _, err := os.Stat(filepath.Join(root, strings.TrimSuffix(path, "/..."))); err != nil {
		c.errorf("%s does not exist", path)
	}
}

func (c *checker) checkCommand(words []string) {
	for len(words) > 1 && regexp.MustCompile(`^[A-Z_]+=`).MatchString(words[0]) {
		words = words[1:]
	}
	for i, word := range words {
		if word == ">" && i+1 < len(words) {
			c.saved[words[i+1]] = true
			words = words[:i]
			break
		}
	}
	if len(words) == 0 {
		return
	}
	switch words[0] {
	case "make":
		for _, word := range words[1:] {
			name, _, isVariable := strings.Cut(word, "=")
			switch {
			case isVariable && !regexp.MustCompile(`\b`+regexp.QuoteMeta(name)+`\b`).MatchString(c.makefile):
				c.errorf("the Makefile has no variable %s", name)
			case !isVariable && !strings.HasPrefix(word, "-") && !slices.Contains(c.targets, word):
				c.errorf("make has no target %s", word)
			}
		}
	case "kubectl":
		c.checkKubectl(words[1:])
	case "bin/kubectl-odh":
		c.checkODH(words[1:])
	case "manager", "bin/manager":
		c.checkManager(words[1:])
	case "go":
		for _, word := range words[1:] {
			if strings.HasPrefix(word, "./") {
				c.checkPath(word)
			}
		}
	case "helm":
		for _, word := range words[1:] {
			if strings.HasPrefix(word, "charts/") {
				c.checkPath(word)
			}
		}
	default:
		if strings.Contains(words[0], "/") {
			c.checkPath(words[0])
		}
	}
}

func (c *checker) checkManager(words []string) {
	for i, word := range words {
		flag, _, _ := strings.Cut(strings.TrimLeft(word, "-"), "=")
		switch {
		case i == 0 && !strings.HasPrefix(word, "-"):
			if !slices.Contains([]string{"run", "render", "version", "modelregistry", "catalog", "aihub", "help"}, word) {
				c.errorf("the manager has no command %s", word)
			}
		case strings.HasPrefix(word, "-") && !slices.Contains(c.flags, flag):
			c.errorf("the manager has no flag %s", word)
		}
	}
}

// checkODH checks a command of kubectl odh and its flags against the help of the plugin.
func (c *checker) checkODH(words []string) {
	if len(words) == 0 {
		return
	}
	help := c.plugin(words[0])
	if help == "" {
		c.errorf("kubectl odh has no command %s", words[0])
		return
	}
	for _, word := range words[1:] {
		flag, _, _ := strings.Cut(word, "=")
		if strings.HasPrefix(flag, "-") && !regexp.MustCompile(`(^|[\s,(])`+regexp.QuoteMeta(flag)+`($|[\s,=)])`).MatchString(help) {
			c.errorf("kubectl odh %s has no flag %s", words[0], flag)
		}
	}
}

// verbs are the commands of kubectl with a kind as argument.
var verbs = []string{"get", "delete", "wait", "describe", "annotate", "label", "patch", "scale", "edit", "explain"}

// flagsWithValue are the flags of kubectl whose value is the next word.
var flagsWithValue = []string{"-n", "--namespace", "-o", "--output", "--selector", "-l", "--field-selector", "--type", "--patch", "-p", "--timeout", "-c", "--as", "--sort-by", "--context"}

func (c *checker) checkKubectl(words []string) {
	var plain []string
	for i := 0; i < len(words); i++ {
		word := words[i]
		switch {
		case word == "-f" || word == "-k":
			if i++; i < len(words) {
				c.checkPath(words[i])
				if word == "-k" && !strings.ContainsAny(words[i], "<$") {
					c.overlays[words[i]] = true
				}
			}
		case slices.Contains(flagsWithValue, word):
			i++
		case word == "odh" && len(plain) == 0:
			c.checkODH(words[i+1:])
			return
		case !strings.HasPrefix(word, "-"):
			plain = append(plain, word)
		}
	}
	if len(plain) < 2 || !slices.Contains(verbs, plain[0]) || slices.Contains(words, "--raw") {
		return
	}
	for kind := range strings.SplitSeq(plain[1], ",") {
		kind, _, _ = strings.Cut(kind, "/")
		kind = strings.ToLower(kind)
		short, _, _ := strings.Cut(kind, ".")
		if strings.ContainsAny(kind, "<$") {
			continue
		}
		if !c.kinds[kind] && (short == kind || !c.kinds[short]) {
			c.errorf("unknown kind %s", kind)
		}
	}
}

// kinds returns the names of kinds in kubectl: those of Kubernetes, of other projects on pages, and of this operator.
func kinds(t *testing.T) map[string]bool {
	t.Helper()
	all := map[string]bool{"all": true}
	for name := range strings.FieldsSeq(`pod po deployment deploy service svc secret configmap cm namespace ns node persistentvolumeclaim pvc
		event job cronjob role rolebinding clusterrole clusterrolebinding serviceaccount sa customresourcedefinition crd lease
		httproute gateway route servicemonitor prometheusrule consolelink consoleplugin validatingwebhookconfiguration mutatingwebhookconfiguration
		clusterservingruntime servingruntime inferenceservice isvc raycluster rayjob workload localqueue clusterqueue resourceflavor auth poddisruptionbudget pdb
		statefulset replicaset subscription clusterserviceversion csv catalogsource installplan operatorgroup clusterextension certificate issuer horizontalpodautoscaler hpa
		group template persistentvolume resourceflavor endpointslice dashboard apiservice flowschema prioritylevelconfiguration`) {
		all[name], all[name+"s"] = true, true
	}
	for _, name := range []string{"networkpolicy", "networkpolicies", "ingress", "ingresses"} {
		all[name] = true
	}
	paths, err := filepath.Glob(filepath.Join(root, "config/crd/bases/*.yaml"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("got %d CRDs, error %v", len(paths), err)
	}
	for _, path := range paths {
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var crd apiextensionsv1.CustomResourceDefinition
		if err := yaml.Unmarshal(raw, &crd); err != nil {
			t.Fatal(err)
		}
		for _, name := range slices.Concat([]string{crd.Spec.Names.Plural, crd.Spec.Names.Singular}, crd.Spec.Names.ShortNames, crd.Spec.Names.Categories) {
			all[name], all[name+"."+crd.Spec.Group] = true, true
		}
	}
	return all
}

func makeTargets(t *testing.T) []string {
	t.Helper()
	var all []string
	for _, found := range regexp.MustCompile(`(?m)^([a-z][a-z0-9-]*)( [a-z -]+)?:`).FindAllStringSubmatch(read(t, "Makefile"), -1) {
		all = append(all, found[1])
		all = append(all, strings.Fields(found[2])...)
	}
	return all
}

func managerFlags() []string {
	flags := []string{"f", "platform", "help"}
	for _, row := range config.SettingDocs(config.Program{Components: []string{
		"mlflow", "appwrapper", "raycluster", "modelregistry", "modelcatalog", "modelmesh", "platform",
	}}) {
		if row.Flag != "" {
			flags = append(flags, row.Flag)
		}
	}
	return append(flags, slices.Collect(maps.Keys(config.LegacyFlags()))...)
}

// plugin returns a function that returns the help of a command of `kubectl odh`, or "" for an unknown command.
func plugin(t *testing.T) func(string) string {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "kubectl-odh")
	helpTexts := map[string]string{}
	return func(command string) string {
		if _, err := os.Stat(binary); err != nil {
			build := exec.Command("go", "build", "-o", binary, "./cmd/kubectl-odh")
			build.Dir = root
			if text, err := build.CombinedOutput(); err != nil {
				t.Fatalf("building kubectl-odh: %v\n%s", err, text)
			}
		}
		if _, called := helpTexts[command]; !called {
			text, err := exec.Command(binary, command, "--help").CombinedOutput()
			if err != nil {
				text = nil
			}
			helpTexts[command] = string(text)
		}
		return helpTexts[command]
	}
}

// Commands on pages use existing targets, paths, kinds and flags. A block that not every test can run declares its requirement.
func TestCommandsUseExistingTargets(t *testing.T) {
	base := checker{
		t: t, makefile: read(t, "Makefile"), targets: makeTargets(t), kinds: kinds(t), flags: managerFlags(), plugin: plugin(t), overlays: map[string]bool{},
	}
	all := pages(t)
	notRun := map[string][]string{}
	total := 0
	for _, name := range slices.Sorted(maps.Keys(all)) {
		saved := map[string]bool{}
		for _, b := range Blocks(all[name]) {
			c := base
			c.where, c.saved = fmt.Sprintf("%s:%d", name, b.Line), saved
			if file := b.Value("file"); file != "" {
				saved[file] = true
			}
			if looksLikeShell(b) {
				c.errorf("the block contains commands: mark it sh, and add needs=<requirement> if not every test can run it")
			}
			if isShell(b) {
				total += c.checkBlock(name, b, notRun)
			}
		}
	}
	if total < 100 {
		t.Errorf("got %d commands, want at least 100: the test does not parse the pages correctly", total)
	}
	for folder := range base.overlays {
		build := exec.Command("go", "tool", "kustomize", "build", folder)
		build.Dir = root
		if text, err := build.CombinedOutput(); err != nil {
			t.Errorf("kustomize build %s: %v\n%s", folder, err, text)
		}
	}
	for _, need := range slices.Sorted(maps.Keys(notRun)) {
		t.Logf("not run (%s):\n  %s", Needs[need], strings.Join(notRun[need], "\n  "))
	}
}

// assignment matches a variable set to the output of a command.
var assignment = regexp.MustCompile(`^[A-Z_]+=\$\((.*)\)$`)

// checkBlock checks the commands of a block and returns their number. It adds a block with a requirement to notRun.
func (c *checker) checkBlock(page string, b Block, notRun map[string][]string) int {
	need := b.Value("needs")
	switch {
	case need != "" && Needs[need] == "":
		c.errorf("unknown requirement %q: use one of Needs in test/docs/blocks.go", need)
	case need != "":
		notRun[need] = append(notRun[need], c.where)
	case !runsInDocsSuite(page) && otherSuites[page] == "":
		c.errorf("no test runs this block: add needs=<requirement>, or add the page to runsInDocsSuite or otherSuites")
	}
	lines := b.Commands()
	for _, line := range lines {
		for _, words := range commandsOf(assignment.ReplaceAllString(line, "$1")) {
			program := words[0]
			if i := strings.IndexByte(program, '='); i > 0 && len(words) > 1 {
				program = words[1]
			}
			requirement, known := allowedPrograms[program]
			if !known && !strings.Contains(program, "=") {
				c.errorf("unknown program %s: add it to allowedPrograms, or use another one", program)
			}
			if requirement != "" && need == "" {
				c.errorf("not every test can run %s: add needs=%s to the block", program, requirement)
			}
			c.checkCommand(words)
		}
	}
	return len(lines)
}

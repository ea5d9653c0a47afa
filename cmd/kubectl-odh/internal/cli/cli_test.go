package cli

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/odh-platform/odh-platform-operator/cmd/kubectl-odh/internal/screen"
)

// outcome is what a call of the program leaves behind.
type outcome struct {
	code           int
	stdout, stderr string
}

// world is a process without a terminal, with these variables.
func world(environment map[string]string, args ...string) (Process, *strings.Builder, *strings.Builder) {
	out, told := new(strings.Builder), new(strings.Builder)
	return Process{
		Args: args, Stdin: strings.NewReader(""), Stdout: out, Stderr: told, Version: "1.2.3",
		Lookup: func(name string) (string, bool) {
			value, ok := environment[name]
			return value, ok
		},
		Terminal: func() (int, bool) { return 0, false },
	}, out, told
}

func call(t *testing.T, action Action, args ...string) outcome {
	t.Helper()
	p, out, told := world(nil, args...)
	commands := []Command{Version(), {
		Name: "look", Args: "NAME", Short: "look at something", Long: "It looks long.", Examples: []string{"look here"},
		Setup: func(flags *pflag.FlagSet) Action {
			flags.Bool("deep", false, "look deeper")
			return action
		},
	}}
	code := Run(t.Context(), p, commands)
	return outcome{code, out.String(), told.String()}
}

func TestRun(t *testing.T) {
	nothing := func(context.Context, *Call, []string) error { return nil }
	returns := func(err error) Action { return func(context.Context, *Call, []string) error { return err } }
	for name, c := range map[string]struct {
		action Action
		args   string
		code   int
		stdout []string // parts
		stderr string   // part
	}{
		"well":                 {nothing, "look", 0, nil, ""},
		"wrong":                {returns(ErrWrong), "look", 1, nil, ""},
		"wrong, wrapped":       {returns(errors.Join(ErrWrong)), "look", 1, nil, ""},
		"failed":               {returns(errors.New("no\nanswer")), "look", 2, nil, "kubectl-odh: no; answer\n"},
		"called wrongly":       {returns(Usage("-x %d: too much", 3)), "look", 2, nil, "kubectl-odh: -x 3: too much\nSee kubectl odh help look.\n"},
		"nothing":              {nothing, "", 0, []string{"Usage: kubectl odh COMMAND", "  look      look at something\n", "version", "Exit code: 0"}, ""},
		"help":                 {nothing, "help", 0, []string{"Usage: kubectl odh COMMAND"}, ""},
		"-h":                   {nothing, "-h", 0, []string{"Usage: kubectl odh COMMAND"}, ""},
		"help of a command":    {nothing, "help look", 0, []string{"Look at something.\n\nUsage: kubectl odh look NAME [flags]\n\nIt looks long.\n\nExamples:\n  kubectl odh look here\n\nFlags:\n      --deep", "Common flags:\n", "-n, --namespace"}, ""},
		"flag for help":        {nothing, "look x --help", 0, []string{"Usage: kubectl odh look NAME"}, ""},
		"unknown command":      {nothing, "sing", 2, nil, "unknown command \"sing\"; known are version, look and help\nSee kubectl odh help.\n"},
		"version as a flag":    {nothing, "--version", 0, []string{"version:  1.2.3\n"}, ""},
		"misspelt":             {nothing, "loko", 2, nil, `unknown command "loko"; did you mean "look"?`},
		"help of nothing":      {nothing, "help sing", 2, nil, `unknown command "sing"`},
		"flag in front":        {nothing, "-A look", 2, nil, "-A: name a command first, such as: kubectl odh status -A look"},
		"unknown flag":         {nothing, "look --wide", 2, nil, "look: unknown flag: --wide"},
		"unknown format":       {nothing, "look -o xml", 2, nil, "-o xml: unknown format; use text, json, yaml"},
		"contradiction":        {nothing, "look -n a -A", 2, nil, "-n a and -A contradict each other"},
		"negative time":        {nothing, "look --request-timeout=-1s", 2, nil, "--request-timeout -1s: a time cannot be negative"},
		"group without user":   {nothing, "look --as-group=a", 2, nil, "--as-group a: name a user with --as too"},
		"version":              {nothing, "version", 0, []string{"version:  1.2.3\ngo:       go1"}, ""},
		"version as JSON":      {nothing, "version -o json", 0, []string{"{\n  \"version\": \"1.2.3\","}, ""},
		"version as YAML":      {nothing, "version -o yaml", 0, []string{"version: 1.2.3\n"}, ""},
		"version with a word":  {nothing, "version x", 2, nil, `version takes no arguments, got "x"`},
		"flags after the name": {nothing, "look name -A", 0, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := call(t, c.action, strings.Fields(c.args)...)
			if got.code != c.code || (c.stderr == "") != (got.stderr == "") || !strings.Contains(got.stderr, c.stderr) {
				t.Errorf("exit code %d, want %d; stderr %q, want %q", got.code, c.code, got.stderr, c.stderr)
			}
			for _, part := range c.stdout {
				if !strings.Contains(got.stdout, part) {
					t.Errorf("%q is missing in\n%s", part, got.stdout)
				}
			}
			if c.code == 2 && got.stdout != "" {
				t.Errorf("an error printed %q", got.stdout)
			}
		})
	}
}

func TestCallGetsWhatFlagsSay(t *testing.T) {
	var got *Call
	var rest []string
	look := func(_ context.Context, c *Call, args []string) error {
		got, rest = c, args
		return nil
	}
	line := "look one -n space two --context=c --kubeconfig k --as me --as-group a,b --as-group c --request-timeout 3s --manager-namespace m --ascii --no-color -o json"
	if result := call(t, look, strings.Fields(line)...); result.code != 0 {
		t.Fatal(result.stderr)
	}
	want := Options{
		Kubeconfig: "k", Context: "c", Namespace: "space", As: "me", AsGroups: []string{"a", "b", "c"}, Output: JSON, NoColor: true, ASCII: true,
		ManagerNamespace: "m", RequestTimeout: 3 * time.Second,
	}
	if !equal(got.Options, want) || strings.Join(rest, " ") != "one two" {
		t.Errorf("got %+v and %q", got.Options, rest)
	}
}

func equal(a, b Options) bool {
	groups := strings.Join(a.AsGroups, " ") == strings.Join(b.AsGroups, " ")
	return groups && a.Kubeconfig == b.Kubeconfig && a.Context == b.Context && a.Namespace == b.Namespace && a.As == b.As && a.Output == b.Output &&
		a.NoColor == b.NoColor && a.ASCII == b.ASCII && a.ManagerNamespace == b.ManagerNamespace && a.RequestTimeout == b.RequestTimeout && a.AllNamespaces == b.AllNamespaces
}

func TestStyle(t *testing.T) {
	for name, c := range map[string]struct {
		columns     int
		is          bool
		environment map[string]string
		options     Options
		want        screen.Style
	}{
		"a pipe":                  {want: screen.Style{}},
		"a pipe, locale C":        {environment: map[string]string{"LANG": "C"}, want: screen.Style{}},
		"a terminal":              {100, true, nil, Options{}, screen.Style{Color: true, Width: 100}},
		"UTF-8":                   {100, true, map[string]string{"LANG": "de_DE.UTF-8"}, Options{}, screen.Style{Color: true, Width: 100}},
		"utf8":                    {100, true, map[string]string{"LC_CTYPE": "C.utf8", "LANG": "C"}, Options{}, screen.Style{Color: true, Width: 100}},
		"locale C":                {100, true, map[string]string{"LC_ALL": "C", "LANG": "de_DE.UTF-8"}, Options{}, screen.Style{Color: true, Width: 100, ASCII: true}},
		"NO_COLOR":                {100, true, map[string]string{"NO_COLOR": "1"}, Options{}, screen.Style{Width: 100}},
		"empty NO_COLOR":          {100, true, map[string]string{"NO_COLOR": ""}, Options{}, screen.Style{Color: true, Width: 100}},
		"--no-color":              {100, true, nil, Options{NoColor: true}, screen.Style{Width: 100}},
		"a dumb terminal":         {100, true, map[string]string{"TERM": "dumb"}, Options{}, screen.Style{Width: 100}},
		"--ascii":                 {0, false, nil, Options{ASCII: true}, screen.Style{ASCII: true}},
		"COLUMNS":                 {100, true, map[string]string{"COLUMNS": "60"}, Options{}, screen.Style{Color: true, Width: 60}},
		"COLUMNS of a pipe":       {0, false, map[string]string{"COLUMNS": "60"}, Options{}, screen.Style{Width: 60}},
		"COLUMNS is no number":    {100, true, map[string]string{"COLUMNS": "many"}, Options{}, screen.Style{Color: true, Width: 100}},
		"COLUMNS is not positive": {100, true, map[string]string{"COLUMNS": "0"}, Options{}, screen.Style{Color: true, Width: 100}},
	} {
		p, _, _ := world(c.environment)
		p.Terminal = func() (int, bool) { return c.columns, c.is }
		if got := p.style(c.options); got != c.want {
			t.Errorf("%s: got %+v, want %+v", name, got, c.want)
		}
	}
}

const kubeconfig = `
apiVersion: v1
kind: Config
current-context: first
clusters:
- {name: one, cluster: {server: "https://one.invalid"}}
- {name: two, cluster: {server: "https://two.invalid"}}
contexts:
- {name: first, context: {cluster: one, user: u, namespace: own}}
- {name: second, context: {cluster: two, user: u}}
users:
- {name: u, user: {token: t}}
`

func TestConnect(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(path, []byte(kubeconfig), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		options         Options
		host, namespace string
	}{
		"the current context": {Options{}, "https://one.invalid", "own"},
		"another context":     {Options{Context: "second"}, "https://two.invalid", "default"},
		"a namespace":         {Options{Namespace: "mine"}, "https://one.invalid", "mine"},
	} {
		c.options.Kubeconfig, c.options.RequestTimeout = path, 7*time.Second
		c.options.As, c.options.AsGroups = "me", []string{"us"}
		got, err := Connect(c.options, "1.2.3")
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if got.Config.Host != c.host || got.Namespace != c.namespace {
			t.Errorf("%s: %s, %s", name, got.Config.Host, got.Namespace)
		}
		if got.Config.Timeout != 7*time.Second || got.Config.Impersonate.UserName != "me" || got.Config.UserAgent != "kubectl-odh/1.2.3" {
			t.Errorf("%s: %+v", name, got.Config)
		}
		if got.Discovery == nil || got.Dynamic == nil || got.Metadata == nil {
			t.Errorf("%s: a client is missing", name)
		}
	}
}

func TestConnectInVain(t *testing.T) {
	for name, c := range map[string]struct {
		content string
		options Options
		want    string
	}{
		"no such file":    {"", Options{}, "finding the cluster"},
		"no such context": {kubeconfig, Options{Context: "third"}, `context "third" does not exist; choose one of first, second with --context`},
		"none is current": {strings.Replace(kubeconfig, "current-context: first", "", 1), Options{}, "the kubeconfig has no current context; choose one of first, second with --context"},
		"not a config":    {"{", Options{}, "set KUBECONFIG, or use --kubeconfig or --context"},
	} {
		c.options.Kubeconfig = filepath.Join(t.TempDir(), "config")
		if c.content != "" {
			if err := os.WriteFile(c.options.Kubeconfig, []byte(c.content), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := Connect(c.options, ""); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

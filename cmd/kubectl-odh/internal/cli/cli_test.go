package cli

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/odh-platform/odh-platform-operator/cmd/kubectl-odh/internal/screen"
)

// outcome is what a call of the program leaves behind.
type outcome struct {
	code           int
	stdout, stderr string
}

// call runs a program without a terminal, with a command that does what action says.
func call(t *testing.T, action func(*Options, []string) error, args ...string) outcome {
	t.Helper()
	var out, errs strings.Builder
	o := NewOptions("1.2.3")
	o.IOStreams = genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &errs}
	o.Lookup = func(string) (string, bool) { return "", false }
	o.Terminal = func() (int, bool) { return 0, false }
	look := func(o *Options) *cobra.Command {
		c := &cobra.Command{
			Use: "look NAME", Short: "Look at something", Long: "It looks long.", Example: "  kubectl odh look here",
			RunE: func(_ *cobra.Command, args []string) error { return action(o, args) },
		}
		c.Flags().Bool("deep", false, "Look deeper.")
		o.AddOutput(c)
		return c
	}
	code := Run(t.Context(), o, args, []Command{look})
	return outcome{code, out.String(), errs.String()}
}

func TestRun(t *testing.T) {
	nothing := func(*Options, []string) error { return nil }
	returns := func(err error) func(*Options, []string) error {
		return func(*Options, []string) error { return err }
	}
	for name, c := range map[string]struct {
		action func(*Options, []string) error
		args   string
		code   int
		stdout []string // parts
		stderr string   // part
	}{
		"well":                {nothing, "look", 0, nil, ""},
		"wrong":               {returns(ErrWrong), "look", 1, nil, ""},
		"wrong, wrapped":      {returns(errors.Join(ErrWrong)), "look", 1, nil, ""},
		"not known":           {returns(ErrUnknown), "look", 3, nil, ""},
		"failed":              {returns(errors.New("no\nanswer")), "look", 2, nil, "kubectl-odh: no; answer\n"},
		"nothing":             {nothing, "", 0, []string{"kubectl odh [command]", "look        Look at something\n", "completion", "version", "Exit codes: 0"}, ""},
		"help":                {nothing, "help", 0, []string{"kubectl odh [command]"}, ""},
		"-h":                  {nothing, "-h", 0, []string{"kubectl odh [command]"}, ""},
		"help of a command":   {nothing, "help look", 0, []string{"It looks long.\n", "kubectl odh look NAME [flags]\n", "Examples:\n  kubectl odh look here\n", "--deep", "Global Flags:\n", "-n, --namespace"}, ""},
		"flag for help":       {nothing, "look x --help", 0, []string{"kubectl odh look NAME"}, ""},
		"unknown command":     {nothing, "sing", 2, nil, "unknown command \"sing\" for \"kubectl odh\"\n"},
		"version as a flag":   {nothing, "--version", 0, []string{"version 1.2.3\n"}, ""},
		"misspelt":            {nothing, "loko", 2, nil, `unknown command "loko" for "kubectl odh"; `},
		"help of nothing":     {nothing, "sing --help", 2, nil, `unknown command "sing"`},
		"flag in front":       {nothing, "-A look", 0, nil, ""},
		"unknown flag":        {nothing, "look --wide", 2, nil, "look: unknown flag: --wide; see kubectl odh look --help"},
		"unknown format":      {nothing, "look -o xml", 2, nil, `the output format "xml", allowed formats are: `},
		"the usual format":    {nothing, "look -o text", 0, nil, ""},
		"contradiction":       {nothing, "look -n a -A", 2, nil, "-n a and -A contradict each other"},
		"version":             {nothing, "version", 0, []string{"version:  1.2.3\ngo:       go1"}, ""},
		"version as JSON":     {nothing, "version -o json", 0, []string{`"version": "1.2.3"`, `"kind": "Version"`}, ""},
		"version as YAML":     {nothing, "version -o yaml", 0, []string{"version: 1.2.3\n"}, ""},
		"version with a word": {nothing, "version x", 2, nil, `unknown command "x" for "kubectl odh version"`},
		"completed":           {nothing, "__complete lo", 0, []string{"look\tLook at something\n"}, "Completion ended"},
		"a completed format":  {nothing, "__complete look -o w", 0, []string{"wide\n"}, "Completion ended"},
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

// With -w an error ends the command, and so does the user, which is none.
func TestWatchEnds(t *testing.T) {
	o := NewOptions("")
	o.Out, o.Interval, o.watch = new(strings.Builder), time.Millisecond, true
	times := 0
	ctx, stop := context.WithCancel(t.Context())
	look := func(err error, end bool) func(context.Context) (View, error) {
		times = 0
		return func(context.Context) (View, error) {
			if times++; times < 3 {
				return View{Text: func(screen.Style) string { return "" }, Changing: times}, nil
			}
			if end {
				stop()
			}
			return View{}, err
		}
	}
	lost := errors.New("lost")
	if err := o.Show(ctx, look(lost, false)); !errors.Is(err, lost) || times != 3 {
		t.Errorf("%v after %d looks", err, times)
	}
	if err := o.Show(ctx, look(lost, true)); err != nil {
		t.Errorf("the user ended it: %v", err)
	}
}

// What is not shown may change without anything being printed again.
func TestWatchPrintsWhatHasChanged(t *testing.T) {
	var out strings.Builder
	o := NewOptions("")
	o.Out, o.Interval, o.watch = &out, time.Millisecond, true
	type seen struct {
		Shown  int
		hidden int
	}
	times := 0
	ctx, stop := context.WithCancel(t.Context())
	if err := o.Show(ctx, func(context.Context) (View, error) {
		if times++; times == 6 {
			stop()
		}
		return View{Text: func(screen.Style) string { return "x" }, Changing: seen{Shown: times / 3, hidden: times}}, nil
	}); err != nil || out.String() != "xxx" {
		t.Errorf("%v, %q after %d looks", err, out.String(), times)
	}
}

func TestStyle(t *testing.T) {
	for name, c := range map[string]struct {
		columns     int
		is          bool
		environment map[string]string
		flags       string
		want        screen.Style
	}{
		"a pipe":                  {want: screen.Style{}},
		"a pipe, locale C":        {environment: map[string]string{"LANG": "C"}, want: screen.Style{}},
		"a terminal":              {100, true, nil, "", screen.Style{Color: true, Width: 100}},
		"UTF-8":                   {100, true, map[string]string{"LANG": "de_DE.UTF-8"}, "", screen.Style{Color: true, Width: 100}},
		"utf8":                    {100, true, map[string]string{"LC_CTYPE": "C.utf8", "LANG": "C"}, "", screen.Style{Color: true, Width: 100}},
		"locale C":                {100, true, map[string]string{"LC_ALL": "C", "LANG": "de_DE.UTF-8"}, "", screen.Style{Color: true, Width: 100, ASCII: true}},
		"NO_COLOR":                {100, true, map[string]string{"NO_COLOR": "1"}, "", screen.Style{Width: 100}},
		"empty NO_COLOR":          {100, true, map[string]string{"NO_COLOR": ""}, "", screen.Style{Color: true, Width: 100}},
		"--no-color":              {100, true, nil, "--no-color", screen.Style{Width: 100}},
		"a dumb terminal":         {100, true, map[string]string{"TERM": "dumb"}, "", screen.Style{Width: 100}},
		"--ascii":                 {0, false, nil, "--ascii", screen.Style{ASCII: true}},
		"COLUMNS":                 {100, true, map[string]string{"COLUMNS": "60"}, "", screen.Style{Color: true, Width: 60}},
		"COLUMNS of a pipe":       {0, false, map[string]string{"COLUMNS": "60"}, "", screen.Style{Width: 60}},
		"COLUMNS is no number":    {100, true, map[string]string{"COLUMNS": "many"}, "", screen.Style{Color: true, Width: 100}},
		"COLUMNS is not positive": {100, true, map[string]string{"COLUMNS": "0"}, "", screen.Style{Color: true, Width: 100}},
	} {
		var got screen.Style
		call(t, func(o *Options, _ []string) error {
			o.Lookup = func(name string) (string, bool) {
				value, ok := c.environment[name]
				return value, ok
			}
			o.Terminal = func() (int, bool) { return c.columns, c.is }
			got = o.Style()
			return nil
		}, append([]string{"look"}, strings.Fields(c.flags)...)...)
		if got != c.want {
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
	for name, c := range map[string]struct{ flags, host, namespace string }{
		"the current context": {"", "https://one.invalid", "own"},
		"another context":     {"--context=second", "https://two.invalid", "default"},
		"a namespace":         {"-n mine", "https://one.invalid", "mine"},
	} {
		flags := "look --kubeconfig=" + path + " --request-timeout=7s --as=me --as-group=us " + c.flags
		got := call(t, func(o *Options, _ []string) error {
			cluster, err := o.Connect()
			if err != nil {
				return err
			}
			config, err := o.Config.ToRESTConfig()
			if err != nil {
				return err
			}
			if config.Host != c.host || cluster.Namespace != c.namespace {
				t.Errorf("%s: %s, %s", name, config.Host, cluster.Namespace)
			}
			if config.Timeout != 7*time.Second || config.Impersonate.UserName != "me" || config.UserAgent != "kubectl-odh/1.2.3" || config.QPS != requestsPerSecond {
				t.Errorf("%s: %+v", name, config)
			}
			if cluster.Discovery == nil || cluster.Dynamic == nil || cluster.Metadata == nil {
				t.Errorf("%s: a client is missing", name)
			}
			return nil
		}, strings.Fields(flags)...)
		if got.code != 0 {
			t.Errorf("%s: %s", name, got.stderr)
		}
	}
}

// connect asks a command for the cluster of some flags.
func connect(t *testing.T, flags ...string) outcome {
	t.Helper()
	return call(t, func(o *Options, _ []string) error {
		_, err := o.Connect()
		return err
	}, append([]string{"look"}, flags...)...)
}

func TestConnectInVain(t *testing.T) {
	for name, c := range map[string]struct{ content, flag, want string }{
		"no such file":       {"", "", "finding the cluster"},
		"no such context":    {kubeconfig, "--context=third", `context "third" does not exist; choose one of first, second with --context`},
		"none is current":    {strings.Replace(kubeconfig, "current-context: first", "", 1), "", "the kubeconfig has no current context; choose one of first, second with --context"},
		"not a config":       {"{", "", "set KUBECONFIG, or use --kubeconfig or --context"},
		"group without user": {kubeconfig, "--as-group=a", "without impersonating a user"},
		"a time":             {kubeconfig, "--request-timeout=soon", "timeout"},
	} {
		path := filepath.Join(t.TempDir(), "config")
		if c.content != "" {
			if err := os.WriteFile(path, []byte(c.content), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		flags := []string{"--kubeconfig", path}
		if c.flag != "" {
			flags = append(flags, c.flag)
		}
		if got := connect(t, flags...); got.code != ExitFailed || !strings.Contains(got.stderr, c.want) {
			t.Errorf("%s: %+v, want %q", name, got, c.want)
		}
	}
}

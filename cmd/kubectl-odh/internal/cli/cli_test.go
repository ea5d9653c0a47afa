package cli

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
)

// outcome is the result of a run.
type outcome struct {
	code           int
	stdout, stderr string
}

// call runs the program with a command that calls action.
func call(t *testing.T, action func(*Options, []string) error, args ...string) outcome {
	t.Helper()
	var out, errs strings.Builder
	o := NewOptions("1.2.3")
	o.IOStreams = genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &errs}
	o.Lookup = func(string) (string, bool) { return "", false }
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
		"healthy":                    {nothing, "look", 0, nil, ""},
		"unhealthy":                  {returns(ErrWrong), "look", 1, nil, ""},
		"wrapped ErrWrong":           {returns(errors.Join(ErrWrong)), "look", 1, nil, ""},
		"unknown result":             {returns(ErrUnknown), "look", 3, nil, ""},
		"failed":                     {returns(errors.New("no\nanswer")), "look", 2, nil, "kubectl-odh: no; answer\n"},
		"no arguments":               {nothing, "", 0, []string{"kubectl odh [command]", "look        Look at something\n", "completion", "Exit codes: 0"}, ""},
		"help":                       {nothing, "help", 0, []string{"kubectl odh [command]"}, ""},
		"-h":                         {nothing, "-h", 0, []string{"kubectl odh [command]"}, ""},
		"help of a command":          {nothing, "help look", 0, []string{"It looks long.\n", "kubectl odh look NAME [flags]\n", "Examples:\n  kubectl odh look here\n", "--deep", "Global Flags:\n", "-n, --namespace"}, ""},
		"flag for help":              {nothing, "look x --help", 0, []string{"kubectl odh look NAME"}, ""},
		"unknown command":            {nothing, "sing", 2, nil, "unknown command \"sing\" for \"kubectl odh\"\n"},
		"version as a flag":          {nothing, "--version", 0, []string{"version 1.2.3\n"}, ""},
		"misspelt command":           {nothing, "loko", 2, nil, `unknown command "loko" for "kubectl odh"; `},
		"help of an unknown command": {nothing, "sing --help", 2, nil, `unknown command "sing"`},
		"flag before the command":    {nothing, "-A look", 0, nil, ""},
		"unknown flag":               {nothing, "look --wide", 2, nil, "look: unknown flag: --wide; see kubectl odh look --help"},
		"unknown format":             {nothing, "look -o xml", 2, nil, `the output format "xml", allowed formats are: `},
		"contradicting flags":        {nothing, "look -n a -A", 2, nil, "-n a and -A contradict each other"},
		"completion of a command":    {nothing, "__complete lo", 0, []string{"look\tLook at something\n"}, "Completion ended"},
		"completion of a format":     {nothing, "__complete look -o y", 0, []string{"yaml\n"}, "Completion ended"},
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
				t.Errorf("%s: got host %s and namespace %s, want %s and %s", name, config.Host, cluster.Namespace, c.host, c.namespace)
			}
			if config.Timeout != 7*time.Second || config.Impersonate.UserName != "me" || config.UserAgent != "kubectl-odh/1.2.3" || config.QPS != requestsPerSecond {
				t.Errorf("%s: unexpected config: %+v", name, config)
			}
			if cluster.Discovery == nil || cluster.Dynamic == nil || cluster.Metadata == nil {
				t.Errorf("%s: a client is missing", name)
			}
			return nil
		}, strings.Fields(flags)...)
		if got.code != 0 {
			t.Errorf("%s: connect failed: %s", name, got.stderr)
		}
	}
}

// connect runs a command that only connects to the cluster of the flags.
func connect(t *testing.T, flags ...string) outcome {
	t.Helper()
	return call(t, func(o *Options, _ []string) error {
		_, err := o.Connect()
		return err
	}, append([]string{"look"}, flags...)...)
}

func TestConnectFails(t *testing.T) {
	for name, c := range map[string]struct{ content, flag, want string }{
		"no such file":       {"", "", "finding the cluster"},
		"no such context":    {kubeconfig, "--context=third", `context "third" does not exist`},
		"no current context": {strings.Replace(kubeconfig, "current-context: first", "", 1), "", "set KUBECONFIG, or use --kubeconfig or --context"},
		"not a config":       {"{", "", "set KUBECONFIG, or use --kubeconfig or --context"},
		"group without user": {kubeconfig, "--as-group=a", "without impersonating a user"},
		"invalid timeout":    {kubeconfig, "--request-timeout=soon", "timeout"},
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
			t.Errorf("%s: got %+v, want %q", name, got, c.want)
		}
	}
}

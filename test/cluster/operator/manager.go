package operator

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"

	"github.com/odh-platform/odh-platform-operator/test/cluster"
)

const (
	tokenSeconds      = 24 * 60 * 60
	readyTimeout      = time.Minute
	readyPollInterval = 100 * time.Millisecond
	stopTimeout       = time.Minute
	managerPorts      = 3
)

// Options of [Start].
type Options struct {
	// Name of the process and of its log; empty means `manager`. Two managers of one instance need two names.
	Name string
	// Binary is the path of the manager; empty means the result of [Build].
	Binary string
	// ServiceAccount whose permissions the manager has.
	ServiceAccount types.NamespacedName
	// Namespace of the manager, its POD_NAMESPACE; empty means the namespace of the ServiceAccount.
	Namespace string
	// Args are the arguments after `run`. Start adds listeners on reserved loopback ports and --leader-elect=false, unless a flag sets
	// them: without leader election, a manager that replaces a killed one works immediately.
	Args []string
	// Env are additional environment variables, NAME=value.
	Env []string
	// WebhookPort of the manager; 0 reserves one.
	WebhookPort int
	// Progress of the build; nil means none.
	Progress io.Writer
}

// Manager is a running manager. Its methods are not safe for concurrent use.
type Manager struct {
	// Process of the manager, replaced by Restart.
	Process *cluster.Process
	// User is the user name of the manager in the audit log.
	User string
	// HealthURL and MetricsURL are the addresses of its listeners, without a path.
	HealthURL, MetricsURL string
	// Kubeconfig of the manager.
	Kubeconfig string

	instance  *cluster.Instance
	name      string
	binary    string
	args, env []string
}

// Start runs the manager with the permissions of a ServiceAccount and returns when its /readyz returns 200. An error contains the end of
// its log.
func Start(ctx context.Context, instance *cluster.Instance, options Options) (*Manager, error) {
	if options.Name == "" {
		options.Name = "manager"
	}
	if options.Namespace == "" {
		options.Namespace = options.ServiceAccount.Namespace
	}
	if options.Progress == nil {
		options.Progress = io.Discard
	}
	if options.Binary == "" {
		binary, err := Build(ctx, options.Progress)
		if err != nil {
			return nil, err
		}
		options.Binary = binary
	}
	m := &Manager{instance: instance, name: options.Name, binary: options.Binary}
	m.User = User(options.ServiceAccount)
	kubeconfig, err := Kubeconfig(ctx, instance, options.ServiceAccount, options.Name, options.Namespace)
	if err != nil {
		return nil, err
	}
	m.Kubeconfig = kubeconfig
	ports, err := instance.ReservePorts(ctx, managerPorts)
	if err != nil {
		return nil, err
	}
	if options.WebhookPort == 0 {
		options.WebhookPort = ports[2]
	}
	health, metrics := fmt.Sprintf("127.0.0.1:%d", ports[0]), fmt.Sprintf("127.0.0.1:%d", ports[1])
	m.HealthURL, m.MetricsURL = "http://"+health, "https://"+metrics
	m.args = append([]string{"run"}, withDefaults(options.Args,
		"--health-probe-bind-address="+health, "--metrics-bind-address="+metrics,
		fmt.Sprintf("--webhook-port=%d", options.WebhookPort), "--leader-elect=false")...)
	m.env = append([]string{"KUBECONFIG=" + m.Kubeconfig, "POD_NAMESPACE=" + options.Namespace}, options.Env...)
	return m, m.launch(ctx)
}

// User returns the user name of a ServiceAccount in the audit log.
func User(account types.NamespacedName) string {
	return fmt.Sprintf("system:serviceaccount:%s:%s", account.Namespace, account.Name)
}

// withDefaults returns args with those default flags, of the form --name=value, that args does not set.
func withDefaults(args []string, defaults ...string) []string {
	result := slices.Clone(args)
	for _, flag := range defaults {
		name, _, _ := strings.Cut(flag, "=")
		isSet := slices.ContainsFunc(args, func(arg string) bool { return arg == name || strings.HasPrefix(arg, name+"=") })
		if !isSet {
			result = append(result, flag)
		}
	}
	return result
}

// Kubeconfig writes a kubeconfig with a token of a ServiceAccount and the namespace of its context. The file is named after the process.
// Kubeconfig returns its path.
func Kubeconfig(ctx context.Context, instance *cluster.Instance, account types.NamespacedName, process, namespace string) (string, error) {
	config, err := instance.Config()
	if err != nil {
		return "", err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return "", fmt.Errorf("creating a client: %w", err)
	}
	request := &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: new(int64(tokenSeconds))},
	}
	token, err := client.CoreV1().ServiceAccounts(account.Namespace).CreateToken(ctx, account.Name, request, metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("requesting a token of ServiceAccount %s: %w", account, err)
	}
	path := instance.Dir() + "/" + process + ".kubeconfig"
	return path, instance.WriteTokenKubeconfig(path, token.Status.Token, namespace)
}

// Args returns the arguments of the manager, including its listeners.
func (m *Manager) Args() []string { return slices.Clone(m.args) }

func (m *Manager) launch(ctx context.Context) error {
	process, err := m.instance.StartProcess(m.name, m.binary, m.args, m.env)
	if err != nil {
		return err
	}
	m.Process = process
	return m.WaitReady(ctx)
}

// WaitReady waits until /readyz of the manager returns 200. It returns an error when the manager has exited.
func (m *Manager) WaitReady(ctx context.Context) error {
	err := wait.PollUntilContextTimeout(ctx, readyPollInterval, readyTimeout, true, func(ctx context.Context) (bool, error) {
		if m.ready(ctx) {
			return true, nil
		}
		if code, exited := m.Process.ExitCode(); exited {
			return false, fmt.Errorf("the manager exited with code %d", code)
		}
		return false, nil
	})
	if err != nil {
		return fmt.Errorf("waiting for the manager to be ready: %w\n%s", err, m.Process.LogTail())
	}
	return nil
}

func (m *Manager) ready(ctx context.Context) bool {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, m.HealthURL+"/readyz", http.NoBody)
	if err != nil {
		return false
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return false
	}
	return errors.Join(response.Body.Close()) == nil && response.StatusCode == http.StatusOK
}

// Stop terminates the manager, as a kubelet does, and returns an error unless its exit code is 0.
func (m *Manager) Stop(ctx context.Context) error {
	if code, exited := m.Process.ExitCode(); exited {
		return fmt.Errorf("stopping the manager: it has already exited with code %d\n%s", code, m.Process.LogTail())
	}
	if err := m.Process.Terminate(); err != nil {
		return err
	}
	if err := m.Process.Wait(ctx, stopTimeout); err != nil {
		return errors.Join(err, m.Kill(ctx))
	}
	if code, _ := m.Process.ExitCode(); code != 0 {
		return fmt.Errorf("stopping the manager: it exited with code %d, want 0\n%s", code, m.Process.LogTail())
	}
	return nil
}

// Kill kills the manager, as a crash would.
func (m *Manager) Kill(ctx context.Context) error { return m.Process.Kill(ctx) }

// Restart stops the manager unless it has exited, starts it with the same arguments and waits until it is ready.
func (m *Manager) Restart(ctx context.Context) error {
	if m.Process.Running() {
		if err := m.Stop(ctx); err != nil {
			return err
		}
	}
	return m.launch(ctx)
}

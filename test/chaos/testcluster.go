package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/test/cluster"
	"github.com/odh-platform/odh-platform-operator/test/cluster/operator"
	"github.com/odh-platform/odh-platform-operator/test/cluster/peers"
	"github.com/odh-platform/odh-platform-operator/test/framework"
	"github.com/odh-platform/odh-platform-operator/test/modelmesh"
)

const (
	// operatorNamespace is the namespace of the manager and of the children of the MLflow.
	operatorNamespace = "opendatahub"
	// waitTimeout limits each wait that has no timeout of its own.
	waitTimeout = 2 * time.Minute
	// idlePeriod is the time without reads and writes after which the manager counts as idle.
	idlePeriod = 1500 * time.Millisecond
	pollEvery  = 100 * time.Millisecond
	// driftPoll is the interval for measuring short times.
	driftPoll = 20 * time.Millisecond
)

var errTimeout = errors.New("timed out")

// testCluster is a control plane with the operator installed and the manager behind a proxy.
type testCluster struct {
	instance  *cluster.Instance
	config    *rest.Config
	admin     client.Client
	audit     *framework.Audit
	proxy     *proxy
	manager   *operator.Manager
	installed *operator.Installed
	network   *modelmesh.Network
	clock     clock.Clock
	progress  io.Writer
	startTime time.Time
	kinds     []kind
	env       []string
	// proxiedKubeconfig is the path of the kubeconfig that uses the proxy.
	proxiedKubeconfig string
}

func (c *testCluster) logf(format string, args ...any) {
	fmt.Fprintf(c.progress, "[%6s] %s\n", c.clock.Since(c.startTime).Round(100*time.Millisecond), fmt.Sprintf(format, args...))
}

// newTestCluster starts the control plane and all programs.
func newTestCluster(ctx context.Context, seed uint64, progress io.Writer) (*testCluster, error) {
	c := &testCluster{clock: clock.RealClock{}, progress: progress}
	c.startTime = c.clock.Now()
	var err error
	c.instance, err = cluster.Start(ctx, cluster.Options{
		Name: fmt.Sprintf("chaos-%d", os.Getpid()), Platform: cluster.Plain, Sets: []cluster.Set{cluster.KServe}, Ephemeral: true, Progress: progress,
	})
	if err != nil {
		return nil, err
	}
	if err := c.startPrograms(ctx, seed); err != nil {
		return nil, errors.Join(err, c.close(context.WithoutCancel(ctx)))
	}
	return c, nil
}

// close stops everything that newTestCluster has started.
func (c *testCluster) close(ctx context.Context) error {
	var errs []error
	if c.network != nil {
		errs = append(errs, c.network.Stop(ctx))
	}
	if c.proxy != nil {
		c.proxy.close()
	}
	return errors.Join(append(errs, c.instance.Stop(ctx))...)
}

func (c *testCluster) startPrograms(ctx context.Context, seed uint64) error {
	var err error
	if c.config, err = c.instance.Config(); err != nil {
		return err
	}
	c.config.QPS, c.config.WarningHandler = -1, rest.NoWarnings{}
	if c.admin, err = client.New(c.config, client.Options{}); err != nil {
		return fmt.Errorf("creating a client: %w", err)
	}
	c.audit = (&framework.Env{Instance: c.instance}).Audit()
	if c.installed, err = operator.Install(ctx, c.instance, "config/default"); err != nil {
		return err
	}
	if err := c.startMesh(ctx); err != nil {
		return err
	}
	direct, err := operator.Kubeconfig(ctx, c.instance, c.installed.ServiceAccount, "direct", operatorNamespace)
	if err != nil {
		return err
	}
	c.proxiedKubeconfig = filepath.Join(c.instance.Dir(), "proxied.kubeconfig")
	if c.proxy, err = startProxy(direct, c.proxiedKubeconfig, c.clock, seed); err != nil {
		return err
	}
	c.manager, err = c.startManager(ctx, "manager", "--kubeconfig="+c.proxiedKubeconfig)
	if err != nil {
		return err
	}
	c.logf("manager ready, pid %d", c.manager.Process.PID)
	if _, err := peers.StartKubeRay(ctx, c.instance, c.progress); err != nil {
		return err
	}
	c.kinds, err = kindsOf(c.config)
	return err
}

// startManager runs the manager as shipped, with additional arguments.
func (c *testCluster) startManager(ctx context.Context, name string, args ...string) (*operator.Manager, error) {
	options := operator.Options{
		Name: name, ServiceAccount: c.installed.ServiceAccount, Args: args, Progress: c.progress,
		Env: append([]string{"POD_NAME=" + name}, c.env...),
	}
	if name == "manager" {
		options.WebhookPort = c.installed.WebhookPort
	}
	for _, container := range c.installed.Deployment.Spec.Template.Spec.Containers {
		for _, variable := range container.Env {
			if variable.ValueFrom == nil {
				options.Env = append(options.Env, variable.Name+"="+variable.Value)
			}
		}
	}
	return operator.Start(ctx, c.instance, options)
}

// startMesh starts the dependencies of models, since no pods run here: an etcd, and fake routing layers.
func (c *testCluster) startMesh(ctx context.Context) error {
	etcd, err := modelmesh.StartEtcd(ctx, c.instance)
	if err != nil {
		return err
	}
	data, err := modelmesh.SecretData(etcd.URL, "modelmesh-serving")
	if err != nil {
		return err
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: operatorNamespace, Name: "model-serving-etcd"}, Data: data}
	if err := c.admin.Create(ctx, secret); err != nil {
		return fmt.Errorf("creating the Secret of etcd: %w", err)
	}
	if c.network, err = modelmesh.Start(ctx, modelmesh.Options{Config: c.config}); err != nil {
		return err
	}
	c.env = c.network.Env()
	return nil
}

func (c *testCluster) pause(ctx context.Context, d time.Duration) error {
	select {
	case <-c.clock.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// waitUntil calls check until it returns neither a problem nor an error, for at most a duration. The error contains the last problem
// and the last error.
func (c *testCluster) waitUntil(ctx context.Context, atMost time.Duration, check func() (string, error)) error {
	return c.waitUntilEvery(ctx, pollEvery, atMost, check)
}

func (c *testCluster) waitUntilEvery(ctx context.Context, every, atMost time.Duration, check func() (string, error)) error {
	start := c.clock.Now()
	for {
		problem, err := check()
		if err == nil && problem == "" {
			return nil
		}
		if c.clock.Since(start) > atMost {
			return errors.Join(fmt.Errorf("%w (%s): %s", errTimeout, atMost, problem), err)
		}
		if err := c.pause(ctx, every); err != nil {
			return err
		}
	}
}

// waitIdle waits until the manager has sent neither reads nor writes for idlePeriod.
func (c *testCluster) waitIdle(ctx context.Context) error {
	start, err := c.audit.Position()
	if err != nil {
		return err
	}
	since := c.clock.Now()
	return c.waitUntil(ctx, waitTimeout, func() (string, error) {
		all, err := c.audit.Since(start)
		if err != nil {
			return "", err
		}
		busy := framework.UnexpectedWhenIdle(all, c.manager.User)
		if len(busy) > 0 {
			since = c.clock.Now()
			if start, err = c.audit.Position(); err != nil {
				return "", err
			}
		}
		if c.clock.Since(since) < idlePeriod {
			return "the manager is not idle: " + lastLine(busy.String()), nil
		}
		return "", nil
	})
}

// writesSince returns the writes of the manager to objects of components since a position in the log.
func (c *testCluster) writesSince(since framework.AuditPosition) (framework.Entries, error) {
	all, err := c.audit.Since(since)
	return all.ByUser(c.manager.User).WithoutLeases().WithoutReviews().WithoutEvents().Writes(), err
}

// restart starts the manager if it has exited, as the kubelet does.
func (c *testCluster) restart(ctx context.Context) error {
	if c.manager.Process.Running() {
		return nil
	}
	return c.manager.Restart(ctx)
}

// deleteAndWait deletes an object and its dependents, and waits until the object no longer exists. By default, the API server would orphan the
// pods of a Job, which keep a claim terminating.
func (c *testCluster) deleteAndWait(ctx context.Context, key id) error {
	if err := c.admin.Delete(ctx, key.object(), client.PropagationPolicy(metav1.DeletePropagationBackground)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting %s: %w", key, err)
	}
	return c.waitUntil(ctx, waitTimeout, func() (string, error) {
		err := c.admin.Get(ctx, client.ObjectKeyFromObject(key.object()), key.object())
		if apierrors.IsNotFound(err) {
			return "", nil
		}
		return key.String() + " still exists", err
	})
}

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
	// operatorNamespace is the namespace of the manager and of the MLflow.
	operatorNamespace = "opendatahub"
	// waitTimeout limits every wait.
	waitTimeout = 2 * time.Minute
	// quiet is the time without requests after which the manager is idle.
	quiet     = 1500 * time.Millisecond
	pollEvery = 100 * time.Millisecond
	// driftPoll is the interval for measuring short times.
	driftPoll = 20 * time.Millisecond
)

var errTimeout = errors.New("it took too long")

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
	began     time.Time
	kinds     []kind
	env       []string
	// through is the path of the kubeconfig that uses the proxy.
	through string
}

func (w *testCluster) say(format string, args ...any) {
	fmt.Fprintf(w.progress, "[%6s] %s\n", w.clock.Since(w.began).Round(100*time.Millisecond), fmt.Sprintf(format, args...))
}

// newTestCluster starts the control plane and all programs.
func newTestCluster(ctx context.Context, seed uint64, progress io.Writer) (*testCluster, error) {
	w := &testCluster{clock: clock.RealClock{}, progress: progress}
	w.began = w.clock.Now()
	var err error
	w.instance, err = cluster.Start(ctx, cluster.Options{
		Name: fmt.Sprintf("chaos-%d", os.Getpid()), Platform: cluster.Plain, Sets: []cluster.Set{cluster.KServe}, Ephemeral: true, Progress: progress,
	})
	if err != nil {
		return nil, err
	}
	if err := w.fill(ctx, seed); err != nil {
		return nil, errors.Join(err, w.close(context.WithoutCancel(ctx)))
	}
	return w, nil
}

// close stops everything that newWorld has started.
func (w *testCluster) close(ctx context.Context) error {
	var errs []error
	if w.network != nil {
		errs = append(errs, w.network.Stop(ctx))
	}
	if w.proxy != nil {
		w.proxy.close()
	}
	return errors.Join(append(errs, w.instance.Stop(ctx))...)
}

func (w *testCluster) fill(ctx context.Context, seed uint64) error {
	var err error
	if w.config, err = w.instance.Config(); err != nil {
		return err
	}
	w.config.QPS, w.config.WarningHandler = -1, rest.NoWarnings{}
	if w.admin, err = client.New(w.config, client.Options{}); err != nil {
		return fmt.Errorf("creating a client: %w", err)
	}
	w.audit = (&framework.Env{Instance: w.instance}).Audit()
	if w.installed, err = operator.Install(ctx, w.instance, "config/default"); err != nil {
		return err
	}
	if err := w.startMesh(ctx); err != nil {
		return err
	}
	direct, err := operator.Kubeconfig(ctx, w.instance, w.installed.ServiceAccount, "direct", operatorNamespace)
	if err != nil {
		return err
	}
	w.through = filepath.Join(w.instance.Dir(), "proxied.kubeconfig")
	if w.proxy, err = interpose(direct, w.through, w.clock, seed); err != nil {
		return err
	}
	w.manager, err = w.startManager(ctx, "manager", "--kubeconfig="+w.through)
	if err != nil {
		return err
	}
	w.say("manager ready, pid %d", w.manager.Process.PID)
	if _, err := peers.StartKubeRay(ctx, w.instance, w.progress); err != nil {
		return err
	}
	w.kinds, err = kindsOf(w.config)
	return err
}

// startManager runs the manager as shipped, with additional arguments.
func (w *testCluster) startManager(ctx context.Context, name string, args ...string) (*operator.Manager, error) {
	options := operator.Options{
		Name: name, ServiceAccount: w.installed.ServiceAccount, Args: args, Progress: w.progress,
		Env: append([]string{"POD_NAME=" + name}, w.env...),
	}
	if name == "manager" {
		options.WebhookPort = w.installed.WebhookPort
	}
	for _, container := range w.installed.Deployment.Spec.Template.Spec.Containers {
		for _, variable := range container.Env {
			if variable.ValueFrom == nil {
				options.Env = append(options.Env, variable.Name+"="+variable.Value)
			}
		}
	}
	return operator.Start(ctx, w.instance, options)
}

// startMesh starts the dependencies of models, since no pods run here: an etcd, and fake routing layers.
func (w *testCluster) startMesh(ctx context.Context) error {
	etcd, err := modelmesh.StartEtcd(ctx, w.instance)
	if err != nil {
		return err
	}
	data, err := modelmesh.SecretData(etcd.URL, "modelmesh-serving")
	if err != nil {
		return err
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: operatorNamespace, Name: "model-serving-etcd"}, Data: data}
	if err := w.admin.Create(ctx, secret); err != nil {
		return fmt.Errorf("creating the Secret of etcd: %w", err)
	}
	if w.network, err = modelmesh.Start(ctx, modelmesh.Options{Config: w.config}); err != nil {
		return err
	}
	w.env = w.network.Env()
	return nil
}

func (w *testCluster) pause(ctx context.Context, d time.Duration) error {
	select {
	case <-w.clock.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// until polls until wrong returns "", for at most a duration. The error contains the last result of wrong.
func (w *testCluster) until(ctx context.Context, atMost time.Duration, wrong func() (string, error)) error {
	return w.untilEvery(ctx, pollEvery, atMost, wrong)
}

func (w *testCluster) untilEvery(ctx context.Context, every, atMost time.Duration, wrong func() (string, error)) error {
	began := w.clock.Now()
	for {
		problem, err := wrong()
		if err == nil && problem == "" {
			return nil
		}
		if w.clock.Since(began) > atMost {
			return errors.Join(fmt.Errorf("%w (%s): %s", errTimeout, atMost, problem), err)
		}
		if err := w.pause(ctx, every); err != nil {
			return err
		}
	}
}

// The manager is idle when it has sent neither reads nor writes for the time quiet.
func (w *testCluster) settle(ctx context.Context) error {
	mark, err := w.audit.Mark()
	if err != nil {
		return err
	}
	since := w.clock.Now()
	return w.until(ctx, waitTimeout, func() (string, error) {
		all, err := w.audit.Since(mark)
		if err != nil {
			return "", err
		}
		busy := framework.AtRest(all, w.manager.User)
		if len(busy) > 0 {
			since = w.clock.Now()
			if mark, err = w.audit.Mark(); err != nil {
				return "", err
			}
		}
		if w.clock.Since(since) < quiet {
			return "still busy: " + last(busy.String()), nil
		}
		return "", nil
	})
}

// sent returns the writes of the manager to objects of components since a mark.
func (w *testCluster) sent(since framework.Mark) (framework.Entries, error) {
	all, err := w.audit.Since(since)
	return all.ByUser(w.manager.User).WithoutLeases().WithoutReviews().WithoutEvents().Writes(), err
}

// restart starts the manager if it has exited, as the kubelet does.
func (w *testCluster) restart(ctx context.Context) error {
	if w.manager.Process.Running() {
		return nil
	}
	return w.manager.Restart(ctx)
}

// discard deletes an object and waits until it is gone.
func (w *testCluster) discard(ctx context.Context, key id) error {
	if err := w.admin.Delete(ctx, key.object()); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting %s: %w", key, err)
	}
	return w.until(ctx, waitTimeout, func() (string, error) {
		err := w.admin.Get(ctx, client.ObjectKeyFromObject(key.object()), key.object())
		if apierrors.IsNotFound(err) {
			return "", nil
		}
		return key.String() + " is still there", err
	})
}

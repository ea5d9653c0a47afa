package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/odh-platform/odh-platform-operator/test/cluster"
	"github.com/odh-platform/odh-platform-operator/test/cluster/operator"
	"github.com/odh-platform/odh-platform-operator/test/cluster/peers"
	"github.com/odh-platform/odh-platform-operator/test/node"
)

// environment is a running demo.
type environment struct {
	instance  *cluster.Instance
	kubectl   string
	plugins   string // folder with kubectl-odh
	namespace string // of the manager and of what it runs
	client    client.Client
	manager   *cluster.Process   // nil where it is a pod
	fake      *appsv1.Deployment // nil before the manager runs, and where it is a pod
	samples   []*unstructured.Unstructured
}

// up starts the demo and returns when every sample is ready. What failed after the control plane has started stays for
// inspection, and the error says how to look at it and how to end it.
func (d *demo) up(ctx context.Context) error {
	if d.real {
		if err := node.Check(); err != nil {
			return err
		}
	}
	if previous, err := cluster.Open(d.name); err == nil && previous.Running() && !d.force {
		return d.alreadyRunning(ctx, previous)
	}
	log.SetLogger(logr.Discard())      // else the client complains after half a minute
	d.step(1, "reading %s", d.samples) // the first time this builds kustomize
	samples, err := d.wantedSamples()
	if err != nil {
		return err
	}
	if err := checkKinds(samples); err != nil {
		return err
	}
	if err := d.endPrevious(ctx); err != nil {
		return err
	}
	d.step(2, "starting a control plane")
	options := cluster.Options{Name: d.name, Platform: cluster.Plain, Ephemeral: d.ephemeral, Progress: d.progress}
	if d.real {
		options.Platform, options.Real, options.Ports = cluster.Bare, true, pages
	}
	instance, err := cluster.Start(ctx, options)
	if err != nil {
		return err
	}
	w := &environment{instance: instance, samples: samples}
	if err := d.fill(ctx, w); err != nil {
		return fmt.Errorf("%w\n\nThe demo is left running for inspection; `make demo-down` ends it.\n%s", err, access(instance.Kubeconfig(), w.kubectl, w.plugins))
	}
	return nil
}

// alreadyRunning reports how to reach a demo that may still be in use, and changes nothing.
func (d *demo) alreadyRunning(ctx context.Context, running *cluster.Instance) error {
	binaries, err := cluster.Build(ctx, d.progress)
	if err != nil {
		return err
	}
	fmt.Fprintf(d.out, "A demo is running already; nothing was changed.\n\n%s\n`make demo FORCE=1` replaces it with a new one from this checkout; `make demo-down` ends it.\n",
		access(running.Kubeconfig(), binaries["kubectl"], pluginsDir(running)))
	return nil
}

// endPrevious makes room: CRDs, roles and manager of an older demo may be those of an older checkout, and starting again
// takes no longer than bringing them up to date.
func (d *demo) endPrevious(ctx context.Context) error {
	previous, err := cluster.Open(d.name)
	if errors.Is(err, cluster.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	if previous.Running() {
		d.say("ending the demo that is running")
	} else {
		d.say("removing what an earlier demo left behind")
	}
	return previous.Stop(ctx)
}

// fill brings operator and samples into a fresh control plane, and reports.
func (d *demo) fill(ctx context.Context, w *environment) error {
	binaries, err := cluster.Build(ctx, d.progress)
	if err != nil {
		return err
	}
	w.kubectl = binaries["kubectl"]
	d.step(3, "building kubectl-odh")
	if w.plugins, err = installPlugin(ctx, w.instance, d.progress); err != nil {
		return err
	}
	config, err := w.instance.Config()
	if err != nil {
		return err
	}
	install := d.install
	if d.real {
		install = d.installPods
	}
	if err := install(ctx, w); err != nil {
		return err
	}
	if w.client, err = client.New(config, client.Options{}); err != nil {
		return fmt.Errorf("creating a client: %w", err)
	}
	d.step(stepCount, "applying the samples")
	if err := d.apply(ctx, w); err != nil {
		return err
	}
	if err := d.await(ctx, w); err != nil {
		return err
	}
	made, err := countMade(ctx, config)
	if err != nil {
		return err
	}
	if len(made) == 0 {
		return errors.New("every sample is ready, yet the manager has made no object")
	}
	d.say("the manager made %s", describeCounts(made))
	return d.report(ctx, w)
}

// fakePods says what a demo without a real node cannot show, and how to see failures in it.
const fakePods = "The pods are fake: nothing is pulled, mounted or run, and they become ready whatever they contain. To see how failures are reported, use\n" +
	"an image of testcluster.invalid, for example testcluster.invalid/image-pull:1, /crash-loop:1, /not-ready:1 or /exit-3:1.\n"

// report shows what there is, and what to do with it.
func (d *demo) report(ctx context.Context, w *environment) error {
	var more string
	var err error
	switch {
	case d.real:
		if more, err = d.openPages(ctx, w); err != nil {
			return err
		}
	case node.Check() == nil:
		more = "`make demo REAL=1` runs the pods for real, with pages of MLflow and Ray to open in a browser.\n"
	}
	rows, err := w.rows(ctx, d.clock.Now())
	if err != nil {
		return err
	}
	if !d.real {
		more = fakePods + more
	}
	fmt.Fprintf(d.out, "\n%s\n%s\n%s\nTry next:\n%s\n%s`make demo-down` ends the demo.\n", table(rows), w.whereManagerIs(),
		access(w.instance.Kubeconfig(), w.kubectl, w.plugins), indent(strings.Join(nextCommands(w.namespace, d.real), "\n")), more)
	return nil
}

// install applies the shipped manifests and runs the manager as they say.
func (d *demo) install(ctx context.Context, w *environment) error {
	const manifests = "config/default"
	d.step(4, "installing %s", manifests)
	objects, err := operator.Kustomize(manifests)
	if err != nil {
		return err
	}
	ports, err := w.instance.ReservePorts(ctx, 1)
	if err != nil {
		return err
	}
	metrics := ports[0]
	routeMetrics(objects, int64(metrics))
	installed, err := operator.InstallObjects(ctx, w.instance, objects)
	if err != nil {
		return fmt.Errorf("installing %s: %w", manifests, err)
	}
	w.namespace = installed.Deployment.Namespace
	d.say("%s installed: %d objects, namespace %s", manifests, len(installed.Objects), w.namespace)
	d.step(5, "building the manager")
	binary, err := operator.Build(ctx, d.progress)
	if err != nil {
		return err
	}
	args, env := settings(installed.Deployment)
	mesh, err := d.startMesh(ctx, w)
	if err != nil {
		return err
	}
	env = append(env, mesh...)
	manager, err := operator.Start(ctx, w.instance, operator.Options{
		Binary: binary, ServiceAccount: installed.ServiceAccount, Env: env, WebhookPort: installed.WebhookPort,
		Args: append(args, fmt.Sprintf("--metrics-bind-address=127.0.0.1:%d", metrics)),
	})
	if err != nil {
		return err
	}
	w.manager = manager.Process
	d.say("manager ready, pid %d, with the rights of ServiceAccount %s", manager.Process.PID, installed.ServiceAccount)
	if err := d.createFake(ctx, w, fake(installed.Deployment, manager.Args(), env)); err != nil {
		return err
	}
	return d.startPeers(ctx, w)
}

// startPeers runs the operators of other projects that samples wait for.
func (d *demo) startPeers(ctx context.Context, w *environment) error {
	if !needsKubeRay(w.samples) {
		return nil
	}
	d.step(7, "building and starting the operator of KubeRay")
	process, err := peers.StartKubeRay(ctx, w.instance, d.progress)
	if err != nil {
		return err
	}
	d.say("KubeRay ready, pid %d", process.PID)
	return nil
}

// listeners are the flags whose shipped values are for a pod with an address of its own; beside a control plane on
// loopback the ports are chosen for us.
var listeners = []string{"--health-probe-bind-address", "--metrics-bind-address", "--webhook-port"}

// settings returns the arguments and the variables of the manager's container, but for its listeners and for variables
// that a kubelet would fill in.
func settings(deployment *appsv1.Deployment) (args, env []string) {
	index := managerIndex(deployment)
	if index < 0 {
		return nil, nil
	}
	container := deployment.Spec.Template.Spec.Containers[index]
	args = slices.DeleteFunc(slices.Clone(container.Args), func(arg string) bool {
		flag, _, _ := strings.Cut(arg, "=")
		return slices.Contains(listeners, flag)
	})
	for _, variable := range container.Env {
		if variable.ValueFrom == nil {
			env = append(env, variable.Name+"="+variable.Value)
		}
	}
	return args, env
}

// installPlugin puts kubectl-odh into a folder of the instance, under the name by which kubectl finds it.
func installPlugin(ctx context.Context, instance *cluster.Instance, progress io.Writer) (dir string, err error) {
	program, err := cluster.BuildProgram(ctx, "./cmd/kubectl-odh", []string{"grpcnotrace"}, progress)
	if err != nil {
		return "", err
	}
	dir = pluginsDir(instance)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("installing the plugin: %w", err)
	}
	if err := os.Symlink(program, filepath.Join(dir, "kubectl-odh")); err != nil {
		return "", fmt.Errorf("installing the plugin: %w", err)
	}
	return dir, nil
}

func pluginsDir(instance *cluster.Instance) string { return filepath.Join(instance.Dir(), "plugins") }

// access reports how to reach the demo from a shell. What has not been built yet is left out.
func access(kubeconfig, kubectl, plugins string) string {
	var path string
	if kubectl != "" {
		path += filepath.Dir(kubectl) + ":"
	}
	if plugins != "" {
		path += plugins + ":"
	}
	text := "Reach it with:\n"
	if path != "" {
		text += fmt.Sprintf("  export PATH=\"%s$PATH\"\n", path)
	}
	return text + fmt.Sprintf("  export KUBECONFIG=%q\n", kubeconfig)
}

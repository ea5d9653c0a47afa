package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

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

// environment holds the control plane and the objects of a running demo.
type environment struct {
	instance    *cluster.Instance
	namespace   string // namespace of the manager and its operands
	client      client.Client
	manager     *cluster.Process   // nil if it runs in a pod
	placeholder *appsv1.Deployment // nil until the manager is running, and if it runs in a pod
	samples     []*unstructured.Unstructured
	reported    map[string]bool // objects that were logged as ready
	// background tracks concurrent builds and starts.
	background sync.WaitGroup
}

// up starts the demo and waits until all samples are ready. After a failure, a control plane that has started keeps running for inspection,
// and the error contains the commands to connect to it and to stop it.
func (d *demo) up(ctx context.Context) error {
	if d.real {
		if err := node.Check(); err != nil {
			return err
		}
	}
	if previous, err := cluster.Open(d.name); err == nil && previous.Running() && !d.force {
		d.alreadyRunning(previous)
		return nil
	}
	log.SetLogger(logr.Discard()) // otherwise controller-runtime logs a warning after 30 seconds
	d.step(1, "reading %s", d.samples)
	samples, err := d.selectSamples()
	if err != nil {
		return err
	}
	if err := checkKinds(samples); err != nil {
		return err
	}
	if err := d.stopPrevious(ctx); err != nil {
		return err
	}
	d.step(2, "starting a control plane")
	env := &environment{reported: map[string]bool{}}
	defer env.background.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // stops running builds
	options := cluster.Options{Name: d.name, Platform: cluster.Plain, Ephemeral: d.ephemeral, Published: true, Progress: d.progress}
	if d.real {
		options.Platform, options.Real, options.Ports = cluster.Bare, true, pageCount
	}
	if !d.real {
		env.background.Go(func() { d.buildAhead(ctx, samples) })
	}
	instance, err := cluster.StartAPI(ctx, options)
	if err != nil {
		return err
	}
	env.instance = instance
	if err := d.installSamples(ctx, env, samples); err != nil {
		return fmt.Errorf("%w\n\nThe demo keeps running for inspection; `make demo-down` stops it.\n%s", err, access(instance.Kubeconfig(), tools(instance)))
	}
	return nil
}

// alreadyRunning prints how to connect to a running demo, which may still be in use.
func (d *demo) alreadyRunning(running *cluster.Instance) {
	fmt.Fprintf(d.out, "A demo is already running; nothing was changed.\n\n%s\n`make demo FORCE=1` replaces it with a new one from this checkout; `make demo-down` stops it.\n",
		access(running.Kubeconfig(), tools(running)))
}

// stopPrevious stops an earlier demo, because its CRDs, roles and manager may be from another checkout. An update would take as long as a
// new start.
func (d *demo) stopPrevious(ctx context.Context) error {
	previous, err := cluster.Open(d.name)
	if errors.Is(err, cluster.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	if previous.Running() {
		d.logf("stopping the running demo")
	} else {
		d.logf("removing the leftovers of an earlier demo")
	}
	return previous.Stop(ctx)
}

// installSamples installs the operator and the samples in a new control plane, and prints the report.
func (d *demo) installSamples(ctx context.Context, env *environment, samples []*unstructured.Unstructured) error {
	config, err := env.instance.Config()
	if err != nil {
		return err
	}
	if env.client, err = client.New(config, client.Options{}); err != nil {
		return fmt.Errorf("creating a client: %w", err)
	}
	run := d.runProcesses
	if d.real {
		run = d.runPods
	}
	if err := run(ctx, env, samples); err != nil {
		return err
	}
	counts, err := countManaged(ctx, config)
	if err != nil {
		return err
	}
	if len(counts) == 0 {
		return errors.New("every sample is ready, but the manager has created no objects")
	}
	d.logf("the manager created %s", describeCounts(counts))
	return d.report(ctx, env)
}

// runPods runs the operator, KubeRay and all operands in pods.
func (d *demo) runPods(ctx context.Context, env *environment, samples []*unstructured.Unstructured) error {
	if err := env.instance.Finish(ctx); err != nil {
		return err
	}
	d.step(3, "building kubectl-odh")
	if err := d.installTools(ctx, env.instance); err != nil {
		return err
	}
	if err := d.installPods(ctx, env); err != nil {
		return err
	}
	d.step(stepCount, "applying the samples")
	return d.applyAndWait(ctx, env, samples)
}

// runProcesses installs the manager while kube-controller-manager, kube-scheduler and KWOK are being built. It builds kubectl-odh
// and KubeRay last, because the first samples do not require them.
func (d *demo) runProcesses(ctx context.Context, env *environment, samples []*unstructured.Unstructured) error {
	clusterReady, built := make(chan error, 1), make(chan error, 1)
	env.background.Go(func() { clusterReady <- env.instance.Finish(ctx) })
	if err := errors.Join(d.install(ctx, env, needsMesh(samples)), <-clusterReady); err != nil {
		return err
	}
	first := slices.DeleteFunc(slices.Clone(samples), isRay)
	last := slices.DeleteFunc(slices.Clone(samples), func(sample *unstructured.Unstructured) bool { return !isRay(sample) })
	d.step(6, "applying the samples")
	env.background.Go(func() { built <- d.buildRemaining(ctx, env, len(last) > 0) })
	if err := d.applyAndWait(ctx, env, first); err != nil {
		return err
	}
	d.step(7, "building kubectl-odh, and KubeRay if a sample needs it")
	if err := <-built; err != nil || len(last) == 0 {
		return err
	}
	d.step(8, "applying the samples that need KubeRay")
	return d.applyAndWait(ctx, env, last)
}

// buildRemaining installs kubectl-odh and, if ray is true, starts KubeRay. The first samples do not require them.
func (d *demo) buildRemaining(ctx context.Context, env *environment, ray bool) error {
	if err := d.installTools(ctx, env.instance); err != nil || !ray {
		return err
	}
	process, err := peers.StartKubeRay(ctx, env.instance, d.progress)
	if err != nil {
		return err
	}
	d.logf("KubeRay ready, pid %d", process.PID)
	return nil
}

// buildAhead builds programs that require no control plane, or downloads their modules, while the control plane is built. It
// ignores errors, which the later build returns again.
func (d *demo) buildAhead(ctx context.Context, samples []*unstructured.Unstructured) {
	_, _ = operator.Build(ctx, d.progress)
	if needsMesh(samples) {
		_, _ = buildRoutingLayer(ctx, d.progress)
	}
	if slices.ContainsFunc(samples, isRay) {
		_ = cluster.DownloadPeer(ctx, cluster.KubeRayOperator)
	}
}

// applyAndWait applies additional samples and waits until they are ready.
func (d *demo) applyAndWait(ctx context.Context, env *environment, samples []*unstructured.Unstructured) error {
	env.samples = append(env.samples, samples...)
	if err := d.apply(ctx, env, samples); err != nil {
		return err
	}
	return d.waitReady(ctx, env)
}

// fakePods describes the limits of a demo without a real node, and how to simulate failures.
const fakePods = "The pods are simulated: no image is pulled, no container runs, and every pod becomes ready. To simulate a failure, use\n" +
	"an image of testcluster.invalid, for example testcluster.invalid/image-pull:1, /crash-loop:1, /not-ready:1 or /exit-3:1.\n"

// report prints the state of the samples and the next commands.
func (d *demo) report(ctx context.Context, env *environment) error {
	var more string
	var err error
	switch {
	case d.real:
		if more, err = d.openPages(ctx, env); err != nil {
			return err
		}
	case node.Check() == nil:
		more = "`make demo REAL=1` runs real pods, with pages of MLflow and Ray that you can open in a browser.\n"
	}
	rows, err := env.rows(ctx, d.clock.Now())
	if err != nil {
		return err
	}
	if !d.real {
		more = fakePods + more
	}
	fmt.Fprintf(d.out, "\n%s\n%s\n%s\nNext commands to try:\n%s\n%s`make demo-down` stops the demo.\n", table(rows), env.managerLocation(),
		access(env.instance.Kubeconfig(), tools(env.instance)), indent(strings.Join(nextCommands(env.namespace, d.real), "\n")), more)
	return nil
}

// install installs the shipped manifests and runs the manager with the settings of its Deployment.
func (d *demo) install(ctx context.Context, env *environment, mesh bool) error {
	const manifests = "config/default"
	d.step(3, "installing %s", manifests)
	objects, err := operator.Kustomize(manifests)
	if err != nil {
		return err
	}
	ports, err := env.instance.ReservePorts(ctx, 1)
	if err != nil {
		return err
	}
	metrics := ports[0]
	routeMetrics(objects, int64(metrics))
	installed, err := operator.InstallObjects(ctx, env.instance, objects)
	if err != nil {
		return fmt.Errorf("installing %s: %w", manifests, err)
	}
	env.namespace = installed.Deployment.Namespace
	d.logf("%s installed: %d objects, namespace %s", manifests, len(installed.Objects), env.namespace)
	d.step(4, "building and starting the manager")
	binary, err := operator.Build(ctx, d.progress)
	if err != nil {
		return err
	}
	args, variables := settings(installed.Deployment)
	if mesh {
		more, err := d.startMesh(ctx, env)
		if err != nil {
			return err
		}
		variables = append(variables, more...)
	}
	manager, err := operator.Start(ctx, env.instance, operator.Options{
		Binary: binary, ServiceAccount: installed.ServiceAccount, Env: variables, WebhookPort: installed.WebhookPort,
		Args: append(args, fmt.Sprintf("--metrics-bind-address=127.0.0.1:%d", metrics)),
	})
	if err != nil {
		return err
	}
	env.manager = manager.Process
	d.logf("manager ready, pid %d, with the permissions of ServiceAccount %s", manager.Process.PID, installed.ServiceAccount)
	return d.createPlaceholder(ctx, env, placeholder(installed.Deployment, manager.Args(), variables))
}

// listeners are the flags of listen addresses. They are removed from the shipped arguments, because the demo uses free ports on loopback.
var listeners = []string{"--health-probe-bind-address", "--metrics-bind-address", "--webhook-port"}

// settings returns the arguments and variables of the manager's container, without listeners and without variables that a kubelet
// resolves.
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

// installTools links kubectl and its plugin kubectl-odh into a folder of the instance.
func (d *demo) installTools(ctx context.Context, instance *cluster.Instance) error {
	kubectl, err := instance.Program(ctx, "kubectl")
	if err != nil {
		return err
	}
	plugin, err := cluster.BuildProgram(ctx, "./cmd/kubectl-odh", []string{"grpcnotrace"}, d.progress)
	if err != nil {
		return err
	}
	dir := toolsDir(instance)
	err = errors.Join(os.MkdirAll(dir, 0o755), os.Symlink(kubectl, filepath.Join(dir, "kubectl")), os.Symlink(plugin, filepath.Join(dir, "kubectl-odh")))
	if err != nil {
		return fmt.Errorf("installing kubectl: %w", err)
	}
	return nil
}

func toolsDir(instance *cluster.Instance) string { return filepath.Join(instance.Dir(), "tools") }

// tools returns the folder with kubectl and its plugin, "" until they are built.
func tools(instance *cluster.Instance) string {
	dir := toolsDir(instance)
	if _, err := os.Stat(filepath.Join(dir, "kubectl-odh")); err != nil {
		return ""
	}
	return dir
}

// access returns shell commands to connect to the demo. The one that adds the tools to PATH is omitted until they are built.
func access(kubeconfig, tools string) string {
	text := "Connect to the cluster with:\n"
	if tools != "" {
		text += fmt.Sprintf("  export PATH=\"%s:$PATH\"\n", tools)
	}
	return text + fmt.Sprintf("  export KUBECONFIG=%q\n", kubeconfig)
}

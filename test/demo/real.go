package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/odh-platform/odh-platform-operator/test/cluster"
	"github.com/odh-platform/odh-platform-operator/test/cluster/operator"
	"github.com/odh-platform/odh-platform-operator/test/cluster/peers"
	"github.com/odh-platform/odh-platform-operator/test/node/images"
)

const (
	// realFlag runs the pods on a real node.
	realFlag = "--real"
	// realSamplesTimeout limits the wait for samples, including the time to unpack images.
	realSamplesTimeout = 10 * time.Minute

	kubeRayNamespace, kubeRayDeployment = "default", "kuberay-operator"
)

// wantedSamples returns the samples; for a real node without models and catalogs, because the routing layer of ModelMesh and the
// server of the catalog are available only as images.
func (d *demo) wantedSamples() ([]*unstructured.Unstructured, error) {
	samples, err := readSamples(d.samples)
	if err != nil || !d.real {
		return samples, err
	}
	return slices.DeleteFunc(samples, func(sample *unstructured.Unstructured) bool {
		return isMesh(sample) || sample.GroupVersionKind().GroupKind() == catalog
	}), nil
}

// installPods runs the operator and KubeRay as pods from their own manifests.
func (d *demo) installPods(ctx context.Context, w *environment) error {
	store, err := w.instance.Images()
	if err != nil {
		return err
	}
	root, err := cluster.RepositoryRoot()
	if err != nil {
		return err
	}
	d.step(4, "making the images of the operator, Model Registry and PostgreSQL, which takes minutes the first time")
	manifests, err := operator.Pods(ctx, store)
	if err != nil {
		return err
	}
	d.step(5, "making the image of KubeRay")
	kubeRay, err := peers.Pods(ctx, cluster.KubeRayOperator, store, d.progress)
	if err != nil {
		return err
	}
	d.step(6, "making the image of Ray")
	if err := images.Ray(ctx, store); err != nil {
		return err
	}
	d.step(7, "making the image of MLflow")
	if err := images.MLflow(ctx, store, root, images.MLflowImage); err != nil {
		return err
	}
	for _, text := range []string{manifests, kubeRay} {
		if _, err := w.instance.Kubectl(ctx, text, "apply", "--server-side", "-f", "-"); err != nil {
			return err
		}
	}
	w.namespace = operator.PodNamespace
	for _, deployment := range []struct{ namespace, name string }{
		{operator.PodNamespace, operator.PodDeployment}, {kubeRayNamespace, kubeRayDeployment},
	} {
		_, err := w.instance.Kubectl(ctx, "", "-n", deployment.namespace, "rollout", "status", "deployment/"+deployment.name, "--timeout="+d.timeout.String())
		if err != nil {
			return err
		}
		d.say("Deployment %s/%s is rolled out", deployment.namespace, deployment.name)
	}
	return nil
}

// managerRuns reports whether the manager's process is running; true for a pod.
func (env *environment) managerRuns() bool { return env.manager == nil || env.manager.Running() }

// describeManager returns the state of the manager, and the name and the end of its log.
func (env *environment) describeManager(ctx context.Context) (state, log, end string) {
	if env.manager == nil {
		const deployment = "deployment/" + operator.PodDeployment
		end, err := env.instance.Kubectl(ctx, "", "-n", env.namespace, "logs", deployment, "--tail=40")
		if err != nil {
			end = err.Error()
		}
		return "runs as a pod", "the log of " + deployment, end
	}
	state = fmt.Sprintf("runs, pid %d", env.manager.PID)
	if !env.manager.Running() {
		state = "has ended"
	}
	if code, ended := env.manager.ExitCode(); ended {
		state = fmt.Sprintf("has ended with exit code %d", code)
	}
	return state, env.manager.Log, env.manager.LogTail()
}

// whereManagerIs returns a sentence about the manager of a ready demo.
func (env *environment) whereManagerIs() string {
	if env.manager == nil {
		return fmt.Sprintf("The manager is the pod of Deployment %s. All pods run, on a node of their own.", operator.PodDeployment)
	}
	return fmt.Sprintf("The manager is the process with pid %d; the pod of Deployment %s is only a placeholder for it.", env.manager.PID, env.placeholder.Name)
}

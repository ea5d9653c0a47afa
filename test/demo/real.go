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
	// realSamplesTimeout limits the wait for the samples, which includes unpacking images.
	realSamplesTimeout = 10 * time.Minute

	kubeRayNamespace  = "default"
	kubeRayDeployment = "kuberay-operator"
)

// selectSamples returns the samples. For a real node, it omits those of ModelMesh and catalogs, because the ModelMesh routing layer and the
// server of the catalog are available only as images.
func (d *demo) selectSamples() ([]*unstructured.Unstructured, error) {
	samples, err := readSamples(d.samples)
	if err != nil || !d.real {
		return samples, err
	}
	return slices.DeleteFunc(samples, func(sample *unstructured.Unstructured) bool {
		return isMesh(sample) || sample.GroupVersionKind().GroupKind() == catalog
	}), nil
}

// installPods installs the operator and KubeRay from their own manifests, in pods.
func (d *demo) installPods(ctx context.Context, env *environment) error {
	store, err := env.instance.Images()
	if err != nil {
		return err
	}
	root, err := cluster.RepositoryRoot()
	if err != nil {
		return err
	}
	d.step(4, "building the images of the operator, Model Registry and PostgreSQL, which takes minutes the first time")
	manifests, err := operator.PackImages(ctx, store)
	if err != nil {
		return err
	}
	d.step(5, "building the image of KubeRay")
	kubeRay, err := peers.PackPeerImage(ctx, cluster.KubeRayOperator, store, d.progress)
	if err != nil {
		return err
	}
	d.step(6, "building the image of Ray")
	if err := images.Ray(ctx, store); err != nil {
		return err
	}
	d.step(7, "building the image of MLflow")
	if err := images.MLflow(ctx, store, root, images.MLflowImage); err != nil {
		return err
	}
	for _, text := range []string{manifests, kubeRay} {
		if _, err := env.instance.Kubectl(ctx, text, "apply", "--server-side", "-f", "-"); err != nil {
			return err
		}
	}
	env.namespace = operator.PodNamespace
	for _, deployment := range []struct{ namespace, name string }{
		{operator.PodNamespace, operator.PodDeployment}, {kubeRayNamespace, kubeRayDeployment},
	} {
		_, err := env.instance.Kubectl(ctx, "", "-n", deployment.namespace, "rollout", "status", "deployment/"+deployment.name, "--timeout="+d.timeout.String())
		if err != nil {
			return err
		}
		d.logf("Deployment %s/%s is rolled out", deployment.namespace, deployment.name)
	}
	return nil
}

// managerRunning reports whether the manager's process is running. It returns true for a manager in a pod.
func (env *environment) managerRunning() bool { return env.manager == nil || env.manager.Running() }

// describeManager returns the state of the manager, and the name and the last lines of its log.
func (env *environment) describeManager(ctx context.Context) (state, log, end string) {
	if env.manager == nil {
		const deployment = "deployment/" + operator.PodDeployment
		end, err := env.instance.Kubectl(ctx, "", "-n", env.namespace, "logs", deployment, "--tail=40")
		if err != nil {
			end = err.Error()
		}
		return "runs in a pod", "the log of " + deployment, end
	}
	state = fmt.Sprintf("is running, pid %d", env.manager.PID)
	if !env.manager.Running() {
		state = "has exited"
	}
	if code, exited := env.manager.ExitCode(); exited {
		state = fmt.Sprintf("has exited with code %d", code)
	}
	return state, env.manager.Log, env.manager.LogTail()
}

// managerLocation returns a sentence that describes where the manager of a ready demo runs.
func (env *environment) managerLocation() string {
	if env.manager == nil {
		return fmt.Sprintf("The manager is the pod of Deployment %s. All pods run on a real node.", operator.PodDeployment)
	}
	return fmt.Sprintf("The manager is the process with pid %d; the pod of Deployment %s is only a placeholder.", env.manager.PID, env.placeholder.Name)
}

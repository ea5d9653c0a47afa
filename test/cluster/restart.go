package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/odh-platform/odh-platform-operator/test/node"
)

// RestartNode kills all processes of an instance with a real node, as in a power failure, and starts them again with the stored state:
// pods, volumes, images, and the data of etcd. It returns when the control plane is ready and the kubelet has reported the status of the
// node; pods may take longer.
func (i *Instance) RestartNode(ctx context.Context) error {
	if !i.state.Real {
		return fmt.Errorf("restarting instance %s: it has no real node", i.Name)
	}
	processes := i.Processes()
	for _, p := range slices.Backward(processes) {
		if err := p.Kill(ctx); err != nil {
			return err
		}
	}
	if err := node.Remove(ctx, i.dir); err != nil {
		return fmt.Errorf("removing the leftovers of the node of instance %s: %w", i.Name, err)
	}
	begin := i.clock.Now()
	ready := map[string]func(context.Context) error{RealNode: i.networkReady, Etcd: i.etcdHealthy, APIServer: i.apiServerReady}
	for _, p := range processes {
		i.mutex.Lock()
		err := i.relaunch(p)
		i.mutex.Unlock()
		if err != nil {
			return err
		}
		if check := ready[p.Name]; check != nil {
			if err := i.waitFor(ctx, p.Name, check); err != nil {
				return err
			}
		}
	}
	if err := i.waitFor(ctx, RealNode, func(ctx context.Context) error { return i.nodeReported(ctx, begin) }); err != nil {
		return err
	}
	return i.waitReady(ctx)
}

// nodeReported checks that the kubelet has reported the status of the node since a time.
func (i *Instance) nodeReported(ctx context.Context, since time.Time) error {
	client, err := i.clientset()
	if err != nil {
		return err
	}
	found, err := client.CoreV1().Nodes().Get(ctx, realNodeName, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("reading Node %s: %w", realNodeName, err)
	}
	for _, condition := range found.Status.Conditions {
		if condition.LastHeartbeatTime.Before(&metav1.Time{Time: since.Truncate(time.Second)}) {
			return errors.New("the kubelet has not reported yet")
		}
	}
	return nil
}

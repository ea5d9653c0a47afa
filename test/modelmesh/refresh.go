package modelmesh

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// refresh updates the routing layer of a namespace from its pods. The layer is created once a pod is ready, and recreated when the settings
// of the pods change.
func (n *Network) refresh(ctx context.Context, namespace string) error {
	pods, err := n.readyPods(ctx, namespace)
	if err != nil {
		return err
	}
	m := n.memberFor(namespace)
	if len(pods) == 0 && m == nil {
		return nil
	}
	if len(pods) > 0 {
		if m, err = n.ensureMember(ctx, &pods[0], m); err != nil {
			return err
		}
	}
	ready := map[string]bool{}
	var running []Instance
	for i := range pods {
		ready[pods[i].Name] = true
		running = append(running, instanceOf(&pods[i]))
	}
	err = m.closeConnectionsExcept(ready)
	if errs := errors.Join(err, n.updateConstraints(ctx, namespace, m)); errs != nil {
		return errs
	}
	return m.layer.SetInstances(ctx, running)
}

func (n *Network) readyPods(ctx context.Context, namespace string) ([]corev1.Pod, error) {
	var list corev1.PodList
	if err := n.cache.List(ctx, &list, client.InNamespace(namespace), client.HasLabels{serviceLabel}); err != nil {
		return nil, fmt.Errorf("listing the runtime pods of namespace %s: %w", namespace, err)
	}
	var out []corev1.Pod
	for i := range list.Items {
		if isReady(&list.Items[i]) {
			out = append(out, list.Items[i])
		}
	}
	return out, nil
}

// ensureMember returns the existing member if it has the settings of the pod. Otherwise it returns a new one and closes the existing one.
func (n *Network) ensureMember(ctx context.Context, pod *corev1.Pod, existing *member) (*member, error) {
	var secret corev1.Secret
	if err := n.api.Get(ctx, client.ObjectKey{Namespace: pod.Namespace, Name: secretOf(pod, etcdVolume)}, &secret); err != nil {
		return nil, fmt.Errorf("reading the etcd Secret of pod %s: %w", pod.Name, err)
	}
	service := variable(container(pod), "MM_SERVICE_NAME")
	if existing != nil && existing.uses(service, secret.Data) {
		return existing, nil
	}
	next, err := newMember(LayerOptions{
		Namespace: pod.Namespace, Etcd: secret.Data, Service: service, Loader: n.options.Loader, Log: n.options.Log,
	})
	if err != nil {
		return nil, err
	}
	n.mu.Lock()
	n.members[pod.Namespace] = next
	n.mu.Unlock()
	if existing == nil {
		return next, nil
	}
	n.addCalls(pod.Namespace, existing.layer.Calls())
	return next, existing.close()
}

func (n *Network) addCalls(namespace string, calls map[string]int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.calls[namespace] == nil {
		n.calls[namespace] = map[string]int{}
	}
	for method, count := range calls {
		n.calls[namespace][method] += count
	}
}

// updateConstraints sets the constraints of the layer from the ConfigMap tc-config.
func (n *Network) updateConstraints(ctx context.Context, namespace string, m *member) error {
	var config corev1.ConfigMap
	err := n.cache.Get(ctx, client.ObjectKey{Namespace: namespace, Name: constraintsName}, &config)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading the constraints of namespace %s: %w", namespace, err)
	}
	if apierrors.IsNotFound(err) {
		return m.layer.SetConstraints(nil)
	}
	return m.layer.SetConstraints(config.BinaryData[constraintsKey])
}

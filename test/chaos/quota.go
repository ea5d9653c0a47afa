package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/odh-platform/odh-platform-operator/test/cluster/peers"
)

const (
	// quotaCPUs suffices for one of the queued AppWrappers, which request two CPUs each.
	quotaCPUs = 3
	// wrapperCount is the maximum number of AppWrappers in a queue.
	wrapperCount = 4
)

const flavor = `{apiVersion: kueue.x-k8s.io/v1beta2, kind: ResourceFlavor, metadata: {name: chaos}}`

const queues = `{apiVersion: kueue.x-k8s.io/v1beta2, kind: ClusterQueue, metadata: {name: NAME}, spec: {namespaceSelector: {}, resourceGroups:
  [{coveredResources: [cpu], flavors: [{name: chaos, resources: [{name: cpu, nominalQuota: 3}]}]}]}}
---
{apiVersion: kueue.x-k8s.io/v1beta2, kind: LocalQueue, metadata: {name: queue, namespace: NAME}, spec: {clusterQueue: NAME}}`

const queuedWrapper = `{apiVersion: workload.codeflare.dev/v1beta2, kind: AppWrapper, metadata: {namespace: NAME, name: qNUMBER, labels: {kueue.x-k8s.io/queue-name: queue}},
  spec: {components: [{template: {apiVersion: apps/v1, kind: Deployment, metadata: {name: qNUMBER}, spec: {replicas: 2, selector: {matchLabels: {app: qNUMBER}},
  template: {metadata: {labels: {app: qNUMBER}}, spec: {terminationGracePeriodSeconds: 0, containers: [{name: main, image: registry.example.com/a, resources: {requests: {cpu: 1}}}]}}}}}]}}`

// startKueue starts Kueue unless it is running.
func (c *campaign) startKueue(ctx context.Context) error {
	if c.instance.Process("kueue") != nil {
		return nil
	}
	if _, err := peers.StartKueue(ctx, c.instance, c.progress); err != nil {
		return err
	}
	var err error
	if c.kinds, err = kindsOf(c.config); err != nil {
		return err
	}
	return c.createYAML(ctx, flavor)
}

func (c *testCluster) createYAML(ctx context.Context, text string) error {
	for document := range strings.SplitSeq(text, "\n---\n") {
		o := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(document), &o.Object); err != nil {
			return fmt.Errorf("decoding an object: %w", err)
		}
		if err := c.create(ctx, o); err != nil {
			return err
		}
	}
	return nil
}

// queue is a namespace with a LocalQueue, its ClusterQueue, and the AppWrappers that share its quota.
type queue struct {
	testCluster *testCluster
	name        string
}

func (c *campaign) newQueue(ctx context.Context, title string) (*queue, error) {
	q := &queue{c.testCluster, title + "-queue"}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: q.name}}
	if err := client.IgnoreAlreadyExists(c.admin.Create(ctx, namespace)); err != nil {
		return nil, fmt.Errorf("creating a namespace: %w", err)
	}
	return q, c.createYAML(ctx, strings.ReplaceAll(queues, "NAME", q.name))
}

func (q *queue) wrapper(number int) (*unstructured.Unstructured, error) {
	o := &unstructured.Unstructured{}
	text := strings.NewReplacer("NAME", q.name, "NUMBER", fmt.Sprint(number)).Replace(queuedWrapper)
	return o, yaml.Unmarshal([]byte(text), &o.Object)
}

// changeWrapper creates or deletes one of the AppWrappers, and ignores errors.
func (q *queue) changeWrapper(ctx context.Context, random *rand.Rand) {
	o, err := q.wrapper(random.IntN(wrapperCount))
	if err != nil {
		return
	}
	if random.IntN(3) == 0 {
		_ = q.testCluster.admin.Delete(ctx, o)
		return
	}
	_ = q.testCluster.admin.Create(ctx, o)
}

func (q *queue) remove(ctx context.Context) {
	for number := range wrapperCount {
		if o, err := q.wrapper(number); err == nil {
			_ = q.testCluster.admin.Delete(ctx, o) // clear reports objects that remain
		}
	}
}

// clear waits until the AppWrappers are deleted, and deletes the namespace and the ClusterQueue.
func (q *queue) clear(ctx context.Context) error {
	for number := range wrapperCount {
		o, err := q.wrapper(number)
		if err != nil {
			return err
		}
		if err := q.testCluster.waitUntil(ctx, waitTimeout, func() (string, error) {
			err := q.testCluster.admin.Get(ctx, client.ObjectKeyFromObject(o), o)
			if err == nil {
				return o.GetName() + " still exists", nil
			}
			return "", client.IgnoreNotFound(err)
		}); err != nil {
			return err
		}
	}
	cq := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "ClusterQueue"}}
	cq.SetName(q.name)
	return errors.Join(q.testCluster.deleteNamespacesAndWait(ctx, q.name), client.IgnoreNotFound(q.testCluster.admin.Delete(ctx, cq)))
}

// checkQuota adds a violation if pods that are neither terminating nor ended request more CPUs than the quota.
func (g *randomRound) checkQuota(ctx context.Context) error {
	pods := &corev1.PodList{}
	if err := g.admin.List(ctx, pods, client.InNamespace(g.queue.name)); err != nil {
		return fmt.Errorf("listing pods: %w", err)
	}
	used := int64(0)
	for i := range pods.Items {
		p := &pods.Items[i]
		if p.DeletionTimestamp != nil || p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed {
			continue
		}
		for _, container := range p.Spec.Containers {
			used += container.Resources.Requests.Cpu().Value()
		}
	}
	if used > quotaCPUs {
		g.violations = append(g.violations, fmt.Sprintf("pods in %s use %d CPUs, the quota is %d", g.queue.name, used, quotaCPUs))
	}
	return nil
}

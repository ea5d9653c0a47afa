package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/odh-platform/odh-platform-operator/pkg/raycluster"
	"github.com/odh-platform/odh-platform-operator/test/cluster/peers"
)

// rays is the namespace of many RayClusters.
const rays = "rays"

// rayClusters creates many clusters with the real KubeRay, updates their statuses, restarts the manager, and deletes them.
func (b *bench) rayClusters(ctx context.Context) error {
	if b.clusters == 0 {
		return nil
	}
	if _, err := peers.StartKubeRay(ctx, b.instance, os.Stderr); err != nil {
		return err
	}
	if err := b.newNamespace(ctx, rays); err != nil {
		return err
	}
	begin, err := b.audit.Position()
	if err != nil {
		return err
	}
	start := b.clock.Now()
	for i := range b.clusters {
		cluster, err := headAlone(i)
		if err == nil {
			err = b.admin.Create(ctx, cluster)
		}
		if err != nil {
			return fmt.Errorf("creating a RayCluster: %w", err)
		}
	}
	if err := b.untilRays(ctx, func(state string) bool { return state == "ready" }); err != nil {
		return err
	}
	took := b.clock.Since(start)
	if err := b.waitIdle(ctx); err != nil {
		return err
	}
	description := fmt.Sprintf("%d RayClusters of one pod until ready, in %s", b.clusters, took.Round(time.Second))
	if err := b.noteRequests(description, b.clusters, begin, ""); err != nil {
		return err
	}
	rss, err := b.residentMemory()
	if err != nil {
		return err
	}
	b.note(fmt.Sprintf("resident memory with %d RayClusters", b.clusters), mebibytes(rss), "", "")
	if err := b.touchRays(ctx); err != nil {
		return err
	}
	return b.endRays(ctx)
}

// headAlone returns a RayCluster without workers.
func headAlone(number int) (*unstructured.Unstructured, error) {
	u := &unstructured.Unstructured{}
	text := fmt.Sprintf(`{apiVersion: ray.io/v1, kind: RayCluster, metadata: {name: c%d, namespace: %s}, spec: {headGroupSpec: {rayStartParams: {}, template: {spec:
		{containers: [{name: ray-head, image: 'registry.example.com/ray:1', resources: {requests: {cpu: 10m}}}]}}}}}`, number, rays)
	return u, yaml.Unmarshal([]byte(text), &u.Object)
}

// untilRays waits until wanted returns true for the state of every cluster.
func (b *bench) untilRays(ctx context.Context, wanted func(state string) bool) error {
	return b.until(ctx, 50*poll, func() (bool, error) {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(raycluster.GVK.GroupVersion().WithKind(raycluster.GVK.Kind + "List"))
		if err := b.admin.List(ctx, list, client.InNamespace(rays)); err != nil {
			return false, fmt.Errorf("listing RayClusters: %w", err)
		}
		for _, cluster := range list.Items {
			if state, _, _ := unstructured.NestedString(cluster.Object, "status", "state"); !wanted(state) {
				return false, nil
			}
		}
		return true, nil
	})
}

// touchRays updates every status, as KubeRay does continuously, and then restarts the manager.
func (b *bench) touchRays(ctx context.Context) error {
	start, err := b.audit.Position()
	if err != nil {
		return err
	}
	for i := range b.clusters {
		cluster, err := headAlone(i)
		if err == nil {
			err = b.admin.Status().Patch(ctx, cluster, client.RawPatch("application/merge-patch+json", []byte(`{"status":{"reason":"touched"}}`)))
		}
		if err != nil {
			return fmt.Errorf("writing the status of a RayCluster: %w", err)
		}
	}
	if err := b.waitIdle(ctx); err != nil {
		return err
	}
	reads, writes, _, err := b.requests(start)
	if err != nil {
		return err
	}
	b.note("after every status was written", fmt.Sprintf("%d reads, %d writes", reads, writes), "0", "9 applies and a list of all pods each")
	if start, err = b.audit.Position(); err != nil {
		return err
	}
	if err := b.manager.Restart(ctx); err != nil {
		return err
	}
	if err := b.waitIdle(ctx); err != nil {
		return err
	}
	if err := b.noteRequests("restart with them", b.clusters, start, "0 writes"); err != nil {
		return err
	}
	entries, err := b.audit.Since(0)
	if err != nil {
		return err
	}
	everywhere := 0
	for _, e := range entries.ByUser(b.manager.User).Of("pods") {
		if (e.Verb == "list" || e.Verb == "watch") && !strings.Contains(e.URI, "labelSelector=") {
			everywhere++
		}
	}
	b.note("lists and watches of all pods", fmt.Sprint(everywhere), "0", "one list for each reconcile")
	return nil
}

func (b *bench) endRays(ctx context.Context) error {
	start, err := b.audit.Position()
	if err != nil {
		return err
	}
	all := &unstructured.Unstructured{}
	all.SetGroupVersionKind(raycluster.GVK)
	if err := b.admin.DeleteAllOf(ctx, all, client.InNamespace(rays)); err != nil {
		return fmt.Errorf("deleting the RayClusters: %w", err)
	}
	if err := b.untilRays(ctx, func(string) bool { return false }); err != nil {
		return err
	}
	return b.noteRequests("deleting them", b.clusters, start, "")
}

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

// rayNamespace is the namespace of the RayClusters.
const rayNamespace = "many-rayclusters"

// measureRayClusters creates many RayClusters with the real KubeRay, updates their statuses, restarts the manager, and deletes them.
func (b *bench) measureRayClusters(ctx context.Context) error {
	if b.rayClusters == 0 {
		return nil
	}
	if _, err := peers.StartKubeRay(ctx, b.instance, os.Stderr); err != nil {
		return err
	}
	if err := b.newNamespace(ctx, rayNamespace); err != nil {
		return err
	}
	begin, err := b.audit.Position()
	if err != nil {
		return err
	}
	start := b.clock.Now()
	for i := range b.rayClusters {
		rayCluster, err := newRayCluster(i)
		if err == nil {
			err = b.admin.Create(ctx, rayCluster)
		}
		if err != nil {
			return fmt.Errorf("creating a RayCluster: %w", err)
		}
	}
	if err := b.waitRayClusters(ctx, func(state string) bool { return state == "ready" }); err != nil {
		return err
	}
	took := b.clock.Since(start)
	if err := b.waitIdle(ctx); err != nil {
		return err
	}
	description := fmt.Sprintf("%d RayClusters of one pod until ready, in %s", b.rayClusters, took.Round(time.Second))
	if err := b.addRequestsSince(description, b.rayClusters, begin, ""); err != nil {
		return err
	}
	rss, err := b.residentMemory()
	if err != nil {
		return err
	}
	b.addFigure(fmt.Sprintf("resident memory with %d RayClusters", b.rayClusters), mebibytes(rss), "", "")
	if err := b.updateRayStatuses(ctx); err != nil {
		return err
	}
	return b.deleteRayClusters(ctx)
}

// newRayCluster returns a RayCluster without workers.
func newRayCluster(number int) (*unstructured.Unstructured, error) {
	u := &unstructured.Unstructured{}
	text := fmt.Sprintf(`{apiVersion: ray.io/v1, kind: RayCluster, metadata: {name: c%d, namespace: %s}, spec: {headGroupSpec: {rayStartParams: {}, template: {spec:
		{containers: [{name: ray-head, image: 'registry.example.com/ray:1', resources: {requests: {cpu: 10m}}}]}}}}}`, number, rayNamespace)
	return u, yaml.Unmarshal([]byte(text), &u.Object)
}

// waitRayClusters waits until done returns true for the state of every RayCluster.
func (b *bench) waitRayClusters(ctx context.Context, done func(state string) bool) error {
	return b.waitUntil(ctx, 50*pollInterval, func() (bool, error) {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(raycluster.GVK.GroupVersion().WithKind(raycluster.GVK.Kind + "List"))
		if err := b.admin.List(ctx, list, client.InNamespace(rayNamespace)); err != nil {
			return false, fmt.Errorf("listing RayClusters: %w", err)
		}
		for _, rayCluster := range list.Items {
			if state, _, _ := unstructured.NestedString(rayCluster.Object, "status", "state"); !done(state) {
				return false, nil
			}
		}
		return true, nil
	})
}

// updateRayStatuses updates every status, as KubeRay does continuously, and then restarts the manager.
func (b *bench) updateRayStatuses(ctx context.Context) error {
	start, err := b.audit.Position()
	if err != nil {
		return err
	}
	for i := range b.rayClusters {
		rayCluster, err := newRayCluster(i)
		if err == nil {
			err = b.admin.Status().Patch(ctx, rayCluster, client.RawPatch("application/merge-patch+json", []byte(`{"status":{"reason":"touched"}}`)))
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
	b.addFigure("after an update of every status", fmt.Sprintf("%d reads, %d writes", reads, writes), "0", "9 applies and a list of all pods each")
	if start, err = b.audit.Position(); err != nil {
		return err
	}
	if err := b.manager.Restart(ctx); err != nil {
		return err
	}
	if err := b.waitIdle(ctx); err != nil {
		return err
	}
	if err := b.addRequestsSince("restart with them", b.rayClusters, start, "0 writes"); err != nil {
		return err
	}
	entries, err := b.audit.Since(0)
	if err != nil {
		return err
	}
	unselective := 0
	for _, e := range entries.ByUser(b.manager.User).ForResource("pods") {
		if (e.Verb == "list" || e.Verb == "watch") && !strings.Contains(e.URI, "labelSelector=") {
			unselective++
		}
	}
	b.addFigure("lists and watches of all pods", fmt.Sprint(unselective), "0", "one list for each reconcile")
	return nil
}

func (b *bench) deleteRayClusters(ctx context.Context) error {
	start, err := b.audit.Position()
	if err != nil {
		return err
	}
	all := &unstructured.Unstructured{}
	all.SetGroupVersionKind(raycluster.GVK)
	if err := b.admin.DeleteAllOf(ctx, all, client.InNamespace(rayNamespace)); err != nil {
		return fmt.Errorf("deleting the RayClusters: %w", err)
	}
	if err := b.waitRayClusters(ctx, func(string) bool { return false }); err != nil {
		return err
	}
	return b.addRequestsSince("deleting them", b.rayClusters, start, "")
}

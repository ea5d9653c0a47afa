package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/test/framework"
)

// secretSize is the size of a certificate with its key, in bytes.
const secretSize = 2 << 10

// isCreation reports whether a request created an object.
func isCreation(e framework.Entry) bool { return e.Code == http.StatusCreated && e.Subresource == "" }

// compareAll compares a burst of each selected kind with the bare client, measures AppWrappers of one Pod if AppWrapper is selected, and
// then restarts the manager.
func (b *bench) compareAll(ctx context.Context) error {
	kinds, count := strings.Split(b.kinds, ","), 0
	for _, p := range b.populations() {
		if !slices.Contains(kinds, p.name) {
			continue
		}
		if err := p.prepare(ctx); err != nil {
			return err
		}
		if err := b.waitIdle(ctx); err != nil {
			return err
		}
		if err := b.compare(ctx, p); err != nil {
			return err
		}
		count++
	}
	if slices.Contains(kinds, "AppWrapper") {
		if err := b.measureWrappedPods(ctx); err != nil {
			return err
		}
	}
	return b.countRestartRequests(ctx, fmt.Sprintf("restart with %d of %d kinds", b.burst, count), "lists only, 0 writes", "")
}

// measureWrappedPods counts the requests for AppWrappers of one Pod.
func (b *bench) measureWrappedPods(ctx context.Context) error {
	p := b.wrappedPods()
	if err := p.prepare(ctx); err != nil {
		return err
	}
	entries, took, err := b.create(ctx, p, b.burst)
	if err != nil {
		return err
	}
	b.addRequests(fmt.Sprintf("%d of AppWrapper with a Pod in %.2f s: requests for each", b.burst, took.Seconds()), b.burst, entries, p.target)
	return nil
}

// compare creates a burst of a population, and then stops the manager and creates the same children in another namespace with a bare
// client, in addition to ConfigMaps of the size of the custom resources.
func (b *bench) compare(ctx context.Context, p *population) error {
	before, err := b.processorTime()
	if err != nil {
		return err
	}
	entries, managed, err := b.create(ctx, p, b.burst)
	if err != nil {
		return err
	}
	after, err := b.processorTime()
	if err != nil {
		return err
	}
	created := entries.ByUser(b.manager.User).WithoutLeases().WithoutReviews().WithoutEvents().Where(isCreation)
	objects := make([]*unstructured.Unstructured, 0, len(created))
	bareNamespace := p.namespace + "-bare"
	for _, e := range created {
		object := &unstructured.Unstructured{}
		if e.Resource == "secrets" { // the audit log omits their content
			object.SetAPIVersion("v1")
			object.SetKind("Secret")
			object.SetNamespace(bareNamespace)
			object.SetName(e.Name)
			object.Object["stringData"] = map[string]any{"key": strings.Repeat("x", secretSize)}
		} else if err := object.UnmarshalJSON(e.Request); err != nil {
			return fmt.Errorf("decoding a request of the manager: %w", err)
		}
		objects = append(objects, copyTo(object, bareNamespace))
	}
	if err := b.manager.Stop(ctx); err != nil {
		return err
	}
	bareBefore, err := b.processorTime()
	if err != nil {
		return err
	}
	bare, err := b.createBare(ctx, p, bareNamespace, objects)
	waitErr := b.waitIdle(ctx) // Kubernetes starts the pods of the children
	bareAfter, timeErr := b.processorTime()
	if err := errors.Join(err, waitErr, timeErr, b.manager.Restart(ctx)); err != nil {
		return err
	}
	if err := b.waitIdle(ctx); err != nil {
		return err
	}
	b.addFigure(fmt.Sprintf("%d of %s with %d children: until the last child", b.burst, p.name, len(objects)),
		fmt.Sprintf("%.2f s; bare client %.2f s: %.2f times", managed.Seconds(), bare.Seconds(), managed.Seconds()/bare.Seconds()), "<= 1.5 times", "")
	b.addFigure("processor time until idle", after.since(before)+"; bare client "+bareAfter.since(bareBefore), "", "")
	b.addRatio(fmt.Sprintf("%d of %s", b.burst, p.name), managed.Seconds()/bare.Seconds())
	b.addRequests("requests for each", b.burst, entries, p.target)
	return nil
}

// copyTo returns a copy without owner references, finalizers and fields that the API server sets, in another namespace or, if
// cluster-scoped, with another name.
func copyTo(object *unstructured.Unstructured, namespace string) *unstructured.Unstructured {
	out := object.DeepCopy()
	for _, field := range []string{"ownerReferences", "uid", "resourceVersion", "managedFields", "creationTimestamp", "finalizers"} {
		unstructured.RemoveNestedField(out.Object, "metadata", field)
	}
	if out.GetNamespace() == "" {
		out.SetName(out.GetName() + "-bare")
	} else {
		out.SetNamespace(namespace)
	}
	return out
}

// createBare creates objects as fast as the API server accepts them.
func (b *bench) createBare(ctx context.Context, p *population, bareNamespace string, objects []*unstructured.Unstructured) (time.Duration, error) {
	if err := b.newNamespace(ctx, bareNamespace); err != nil {
		return 0, err
	}
	all := make([]client.Object, 0, b.burst+len(objects))
	for i := range b.burst {
		all = append(all, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: bareNamespace, Name: fmt.Sprintf("resource-%d", i)}, Data: map[string]string{"manifest": p.manifest(i)}})
	}
	for _, object := range objects {
		all = append(all, object)
	}
	start := b.clock.Now()
	if err := runConcurrently(ctx, len(all), func(i int) error { return b.admin.Create(ctx, all[i]) }); err != nil {
		return 0, fmt.Errorf("creating the same objects without the manager: %w", err)
	}
	return b.clock.Since(start), nil
}

package main

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// keptKinds lists kinds of children that remain by design when their custom resource is deleted: they hold data, or the credentials
// for it.
var keptKinds = []string{"PersistentVolumeClaim", "Secret"}

// orphans returns the children in a namespace with an owner that does not exist, or has another UID.
func (c *testCluster) orphans(ctx context.Context, namespace string) ([]string, error) {
	objects, err := c.list(ctx, c.kinds, func(o *unstructured.Unstructured) bool {
		return o.GetNamespace() == namespace || o.GetNamespace() == ""
	})
	if err != nil {
		return nil, err
	}
	existing := map[types.UID]bool{}
	for _, o := range objects {
		existing[o.GetUID()] = true
	}
	var all []string
	for key, o := range objects {
		if o.GetNamespace() != namespace || !managed(o) {
			continue
		}
		for _, owner := range o.GetOwnerReferences() {
			if !existing[owner.UID] && !slices.Contains(uncomparedOwners, owner.Kind) {
				all = append(all, fmt.Sprintf("%s belongs to %s %s, which does not exist", key, owner.Kind, owner.Name))
			}
		}
	}
	slices.Sort(all)
	return all, nil
}

// uncomparedOwners lists kinds of owners that snapshots omit.
var uncomparedOwners = []string{"Namespace", "Pod", "ReplicaSet"}

// leftovers returns the children of a deleted custom resource that should have been deleted with it.
func (c *testCluster) leftovers(ctx context.Context, f *fixture) ([]string, error) {
	all, err := c.takeSnapshot(ctx, c.kinds, f.namespace)
	if err != nil {
		return nil, err
	}
	live, err := c.list(ctx, all.kinds(), managed)
	if err != nil {
		return nil, err
	}
	var left []string
	for key := range all.ofFixture(f) {
		o := live[key]
		if o == nil || slices.Contains(keptKinds, key.Kind) || slices.Contains(sharedChildren, key.name) || c.isInstalled(key) {
			continue
		}
		left = append(left, key.String()+" is left behind")
	}
	slices.Sort(left)
	return left, nil
}

// isInstalled reports whether an object is part of the manifests.
func (c *testCluster) isInstalled(key id) bool {
	return slices.ContainsFunc(c.installed.Objects, func(o *unstructured.Unstructured) bool {
		return o.GetKind() == key.Kind && o.GetName() == key.name && o.GetNamespace() == key.namespace
	})
}

// sharedChildren belong to the namespace rather than to one custom resource, or belong to users after their creation, such as catalog
// sources.
var sharedChildren = []string{
	"modelmesh-serving", "modelmesh-runtimes", "modelmesh-metrics-monitor",
	"model-catalog-sources", "mcp-catalog-sources", "agent-catalog-sources", "serving-runtime-catalog-sources",
}

// foreignObject is an object of another client in a namespace of custom resources, with its original resourceVersion.
type foreignObject struct {
	object          *unstructured.Unstructured
	resourceVersion string
}

// createForeignObjects creates foreign objects in a namespace.
func (c *testCluster) createForeignObjects(ctx context.Context, namespace string) ([]foreignObject, error) {
	meta := metav1.ObjectMeta{Namespace: namespace, Name: "of-another-client", Labels: map[string]string{"app": "elsewhere"}}
	policy := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "spec": map[string]any{"podSelector": map[string]any{"matchLabels": map[string]any{"app": "elsewhere"}}}}}
	policy.SetNamespace(namespace)
	policy.SetName(meta.Name)
	for _, o := range []client.Object{
		&corev1.ConfigMap{ObjectMeta: meta, Data: map[string]string{"a": "b"}}, &corev1.Secret{ObjectMeta: meta}, &corev1.ServiceAccount{ObjectMeta: meta},
		&corev1.Service{ObjectMeta: meta, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}}, policy,
	} {
		if err := client.IgnoreAlreadyExists(c.admin.Create(ctx, o)); err != nil {
			return nil, fmt.Errorf("creating a foreign object: %w", err)
		}
	}
	var all []foreignObject
	for _, k := range []string{"ConfigMap", "Secret", "ServiceAccount", "Service", "NetworkPolicy"} {
		o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": k}}
		if k == policy.GetKind() {
			o.SetAPIVersion(policy.GetAPIVersion())
		}
		if err := c.admin.Get(ctx, client.ObjectKey{Namespace: namespace, Name: meta.Name}, o); err != nil {
			return nil, fmt.Errorf("reading a foreign object: %w", err)
		}
		all = append(all, foreignObject{o, o.GetResourceVersion()})
	}
	return all, nil
}

// changedObjects returns the foreign objects that were changed or deleted.
func (c *testCluster) changedObjects(ctx context.Context, all []foreignObject) ([]string, error) {
	var changed []string
	for _, f := range all {
		now := f.object.DeepCopy()
		if err := c.admin.Get(ctx, client.ObjectKeyFromObject(now), now); client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("reading a foreign object: %w", err)
		} else if err != nil || now.GetResourceVersion() != f.resourceVersion || now.GetUID() != f.object.GetUID() {
			changed = append(changed, fmt.Sprintf("foreign %s %s/%s has changed", now.GetKind(), now.GetNamespace(), now.GetName()))
		}
	}
	return changed, nil
}

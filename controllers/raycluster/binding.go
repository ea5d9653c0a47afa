package raycluster

import (
	"context"
	"fmt"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/odh-platform/odh-platform-operator/controllers/raycluster/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/raycluster"
	"github.com/odh-platform/odh-platform-operator/pkg/reconciler"
)

var bindingKind = rbacv1.SchemeGroupVersion.WithKind("ClusterRoleBinding")

// bind makes the ClusterRoleBinding, and before it the finalizer that stands for it. Nothing is done without a binding.
func (r *clusters) bind(ctx context.Context, cluster *unstructured.Unstructured, c raycluster.Cluster, b *apply.Object) error {
	if b == nil {
		return nil
	}
	name := c.Names().ClusterRoleBinding
	head, err := bindingHead(ctx, r.cached, name)
	switch {
	case err != nil:
		return err
	case head != nil && !belongs(head, c):
		r.warn(cluster, topicBinding, ReasonBindingTaken, fmt.Sprintf(
			"ClusterRoleBinding %s belongs to another RayCluster of a similar name: name this one otherwise, or its sidecar refuses every request", name))
		return &reconciler.Wait{For: "the other ClusterRoleBinding to go", Retry: strangerRetry}
	}
	if !controllerutil.ContainsFinalizer(cluster, raycluster.Finalizer) {
		add := func(head *metav1.PartialObjectMetadata) { controllerutil.AddFinalizer(head, raycluster.Finalizer) }
		if err := r.patch(ctx, cluster, "finalizers", add); err != nil {
			return client.IgnoreNotFound(err) // the cache lags behind the end of the cluster
		}
	}
	if err := r.apply(ctx, cluster, "the sidecar cannot authenticate callers", apply.Desired{*b}); err != nil {
		return err
	}
	r.memory.of(cluster).resolve(topicBinding)
	return r.removeBindings(ctx, r.cached, cluster.GetUID(), c, name)
}

// bindingFor is the binding of a plan, or nil if it is only to be kept and is not there. One of the CodeFlare operator is not in
// the cache; a cluster that has one has the finalizer.
func (r *clusters) bindingFor(ctx context.Context, cluster *unstructured.Unstructured, c raycluster.Cluster, p resources.Plan) (*apply.Object, error) {
	if p.Binding == nil || !p.KeepsBinding {
		return p.Binding, nil
	}
	head, err := bindingHead(ctx, r.cached, c.Names().ClusterRoleBinding)
	if err == nil && head == nil && controllerutil.ContainsFinalizer(cluster, raycluster.Finalizer) {
		head, err = bindingHead(ctx, r.live, c.Names().ClusterRoleBinding)
	}
	if err != nil || head == nil || !belongs(head, c) {
		return nil, err
	}
	return p.Binding, nil
}

// unbind removes the binding and the finalizer of a cluster that needs none.
func (r *clusters) unbind(ctx context.Context, cluster *unstructured.Unstructured, c raycluster.Cluster) error {
	if !controllerutil.ContainsFinalizer(cluster, raycluster.Finalizer) {
		return r.removeBindings(ctx, r.cached, cluster.GetUID(), c, "")
	}
	return r.releaseFinalizer(ctx, cluster, c)
}

// releaseFinalizer removes the bindings of both naming schemes, which the cache may not know, and then the finalizer, whatever is
// switched on and whatever the platform is. Without the finalizer there is nothing to do: others are ending the cluster.
func (r *clusters) releaseFinalizer(ctx context.Context, cluster *unstructured.Unstructured, c raycluster.Cluster) error {
	if !controllerutil.ContainsFinalizer(cluster, raycluster.Finalizer) {
		return nil
	}
	if err := r.removeBindings(ctx, r.live, cluster.GetUID(), c, ""); err != nil {
		return err
	}
	remove := func(head *metav1.PartialObjectMetadata) { controllerutil.RemoveFinalizer(head, raycluster.Finalizer) }
	return client.IgnoreNotFound(r.patch(ctx, cluster, "finalizers", remove))
}

// sweep removes the binding of a cluster that is gone: it may have lost its finalizer by force.
func (r *clusters) sweep(ctx context.Context, name types.NamespacedName) error {
	named := raycluster.View(map[string]any{"metadata": map[string]any{"name": name.Name, "namespace": name.Namespace}})
	return r.removeBindings(ctx, r.cached, "", named, "")
}

// removeBindings removes the bindings that a reader knows under the names of the cluster, but for the one that stays.
func (r *clusters) removeBindings(ctx context.Context, reader client.Reader, uid types.UID, c raycluster.Cluster, stays string) error {
	for _, name := range []string{c.HashedNames().ClusterRoleBinding, c.LegacyNames().ClusterRoleBinding} {
		if name == stays {
			continue
		}
		head, err := bindingHead(ctx, reader, name)
		if err != nil {
			return err
		}
		if head == nil || !belongs(head, c) {
			continue
		}
		if err := r.applier.DeleteOwned(ctx, uid, head); err != nil {
			return fmt.Errorf("removing the binding: %w", err)
		}
	}
	return nil
}

// bindingHead reads the metadata of a binding; nil when there is none.
func bindingHead(ctx context.Context, reader client.Reader, name string) (*metav1.PartialObjectMetadata, error) {
	return capability.GetMetadata(ctx, reader, bindingKind, client.ObjectKey{Name: name})
}

// belongs tells whether a binding was made for the cluster. Names alone do not: those of cluster a-b in c and of cluster a
// in b-c are the same.
func belongs(head metav1.Object, c raycluster.Cluster) bool {
	labels := head.GetLabels()
	return labels[raycluster.LabelClusterName] == c.Name() && labels[raycluster.LabelClusterNamespace] == c.Namespace()
}

// patch sends a change of the metadata of a cluster, bound to the version that was read, and leaves in it what the server answers.
func (r *clusters) patch(ctx context.Context, cluster *unstructured.Unstructured, what string, change func(*metav1.PartialObjectMetadata)) error {
	head := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Namespace: cluster.GetNamespace(), Name: cluster.GetName(), ResourceVersion: cluster.GetResourceVersion(), Finalizers: cluster.GetFinalizers(),
	}}
	head.SetGroupVersionKind(raycluster.GVK)
	before := head.DeepCopy()
	change(head)
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := r.cached.Patch(ctx, head, patch, client.FieldOwner(raycluster.FieldOwner)); err != nil {
		return fmt.Errorf("patching %s of the RayCluster: %w", what, err)
	}
	cluster.SetResourceVersion(head.ResourceVersion)
	cluster.SetFinalizers(head.Finalizers)
	return nil
}

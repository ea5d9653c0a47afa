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
	"github.com/odh-platform/odh-platform-operator/pkg/objectmeta"
	"github.com/odh-platform/odh-platform-operator/pkg/raycluster"
	"github.com/odh-platform/odh-platform-operator/pkg/reconciler"
)

var bindingKind = rbacv1.SchemeGroupVersion.WithKind("ClusterRoleBinding")

// ensureBinding adds the finalizer, applies the ClusterRoleBinding, and deletes the binding with the other name. It ignores a nil binding.
func (r *clusterReconciler) ensureBinding(ctx context.Context, cluster *unstructured.Unstructured, c raycluster.Cluster, binding *apply.Object) error {
	if binding == nil {
		return nil
	}
	name := c.Names().ClusterRoleBinding
	metadata, err := getBindingMetadata(ctx, r.client, name)
	switch {
	case err != nil:
		return err
	case metadata != nil && !hasClusterLabels(metadata, c):
		r.recordWarning(cluster, topicBinding, ReasonBindingTaken, fmt.Sprintf(
			"ClusterRoleBinding %s belongs to another RayCluster of a similar name: recreate this RayCluster under another name, because its sidecar rejects every request", name))
		return &reconciler.Wait{For: "the other ClusterRoleBinding to be deleted", Retry: reconciler.RequeueBlocked}
	}
	if !controllerutil.ContainsFinalizer(cluster, raycluster.Finalizer) {
		add := func(metadata *metav1.PartialObjectMetadata) {
			controllerutil.AddFinalizer(metadata, raycluster.Finalizer)
		}
		if err := r.patchMetadata(ctx, cluster, "finalizers", add); err != nil {
			return client.IgnoreNotFound(err) // the cluster was deleted, and the cache is stale
		}
	}
	if err := r.apply(ctx, cluster, "the sidecar cannot authenticate callers", apply.Desired{*binding}); err != nil {
		return err
	}
	r.stateOf(cluster).messages.Replace(topicBinding, "")
	return r.deleteBindings(ctx, r.client, cluster.GetUID(), c, name)
}

// desiredBinding returns the binding of the plan, or nil if the cluster has no binding to retain. The cache does not hold bindings of the
// CodeFlare operator, so the binding of a cluster with the finalizer is also read from the API server.
func (r *clusterReconciler) desiredBinding(ctx context.Context, cluster *unstructured.Unstructured, c raycluster.Cluster, plan resources.Plan) (*apply.Object, error) {
	if plan.Binding == nil || !plan.RetainsBinding {
		return plan.Binding, nil
	}
	metadata, err := getBindingMetadata(ctx, r.client, c.Names().ClusterRoleBinding)
	if err == nil && metadata == nil && controllerutil.ContainsFinalizer(cluster, raycluster.Finalizer) {
		metadata, err = getBindingMetadata(ctx, r.apiReader, c.Names().ClusterRoleBinding)
	}
	if err != nil || metadata == nil || !hasClusterLabels(metadata, c) {
		return nil, err
	}
	return plan.Binding, nil
}

// removeBindingAndFinalizer deletes the bindings and the finalizer of a cluster that needs no binding.
func (r *clusterReconciler) removeBindingAndFinalizer(ctx context.Context, cluster *unstructured.Unstructured, c raycluster.Cluster) error {
	if !controllerutil.ContainsFinalizer(cluster, raycluster.Finalizer) {
		return r.deleteBindings(ctx, r.client, cluster.GetUID(), c, "")
	}
	return r.removeFinalizer(ctx, cluster, c)
}

// removeFinalizer deletes the bindings of both naming schemes, read from the API server, and then removes the finalizer, regardless of
// settings and platform.
func (r *clusterReconciler) removeFinalizer(ctx context.Context, cluster *unstructured.Unstructured, c raycluster.Cluster) error {
	if !controllerutil.ContainsFinalizer(cluster, raycluster.Finalizer) {
		return nil
	}
	if err := r.deleteBindings(ctx, r.apiReader, cluster.GetUID(), c, ""); err != nil {
		return err
	}
	remove := func(metadata *metav1.PartialObjectMetadata) {
		controllerutil.RemoveFinalizer(metadata, raycluster.Finalizer)
	}
	return client.IgnoreNotFound(r.patchMetadata(ctx, cluster, "finalizers", remove))
}

// deleteBindings deletes the bindings of the cluster under both names, as read from reader, except the one named except.
func (r *clusterReconciler) deleteBindings(ctx context.Context, reader client.Reader, uid types.UID, c raycluster.Cluster, except string) error {
	for _, name := range []string{c.HashedNames().ClusterRoleBinding, c.LegacyNames().ClusterRoleBinding} {
		if name == except {
			continue
		}
		metadata, err := getBindingMetadata(ctx, reader, name)
		if err != nil {
			return err
		}
		if metadata == nil || !hasClusterLabels(metadata, c) {
			continue
		}
		if err := r.applier.DeleteOwned(ctx, uid, metadata); err != nil {
			return fmt.Errorf("removing the binding: %w", err)
		}
	}
	return nil
}

// getBindingMetadata returns the metadata of a binding, or nil if it does not exist.
func getBindingMetadata(ctx context.Context, reader client.Reader, name string) (*metav1.PartialObjectMetadata, error) {
	return objectmeta.Get(ctx, reader, bindingKind, client.ObjectKey{Name: name})
}

// hasClusterLabels reports whether an object has the labels of the cluster. Names of bindings are ambiguous: cluster a-b in namespace c and
// cluster a in namespace b-c have the same name.
func hasClusterLabels(metadata metav1.Object, c raycluster.Cluster) bool {
	labels := metadata.GetLabels()
	return labels[raycluster.LabelClusterName] == c.Name() && labels[raycluster.LabelClusterNamespace] == c.Namespace()
}

// patchMetadata patches the metadata of a cluster with optimistic locking, and stores the returned version and finalizers in cluster.
func (r *clusterReconciler) patchMetadata(ctx context.Context, cluster *unstructured.Unstructured, part string, change func(*metav1.PartialObjectMetadata)) error {
	metadata := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Namespace: cluster.GetNamespace(), Name: cluster.GetName(), ResourceVersion: cluster.GetResourceVersion(), Finalizers: cluster.GetFinalizers(),
	}}
	metadata.SetGroupVersionKind(raycluster.GVK)
	original := metadata.DeepCopy()
	change(metadata)
	patch := client.MergeFromWithOptions(original, client.MergeFromWithOptimisticLock{})
	if err := r.client.Patch(ctx, metadata, patch, client.FieldOwner(raycluster.FieldOwner)); err != nil {
		return fmt.Errorf("patching %s of the RayCluster: %w", part, err)
	}
	cluster.SetResourceVersion(metadata.ResourceVersion)
	cluster.SetFinalizers(metadata.Finalizers)
	return nil
}

package modelcatalog

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	aihubv1alpha1 "github.com/odh-platform/odh-platform-operator/apis/aihub/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/controllers/modelcatalog/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
)

// annotationDatabasePod is the uid of the pod of the database: on the Deployment of the server that which was seen last, on its pods
// that for which they were replaced.
const annotationDatabasePod = "catalog.opendatahub.io/database-pod"

// followDatabase replaces the pods of the server when that of its database was replaced: the new one starts empty, and a server fills
// its database when it starts, and only then. Server pods that are younger than the database need not be.
func (r *catalogs) followDatabase(ctx context.Context, c *aihubv1alpha1.Catalog, deployments apply.Desired) error {
	want := deployments.Deployment(resources.Name)
	if want == nil || !resources.OwnsDatabase(c, r.snapshot(c).Inputs) {
		return nil
	}
	live, err := r.findDeployment(ctx, c, resources.Name)
	if err != nil || live == nil {
		return err
	}
	known, replaced := live.Annotations[annotationDatabasePod], live.Spec.Template.Annotations[annotationDatabasePod]
	pods, err := r.changedPods(ctx, c, known != "")
	if err != nil {
		return err
	}
	if present := databasePod(pods); present != nil {
		if known != "" && known != string(present.UID) && olderServer(pods, present) {
			replaced = string(present.UID)
		}
		known = string(present.UID)
	}
	mark(want, known, replaced)
	return nil
}

// changedPods lists the pods of server and database when the Deployment of an available database has changed, or when the Deployment of
// the server, which another client may have deleted, has no mark; else there are none.
func (r *catalogs) changedPods(ctx context.Context, c *aihubv1alpha1.Catalog, marked bool) ([]corev1.Pod, error) {
	database, err := r.findDeployment(ctx, c, resources.DatabaseName)
	if err != nil || database == nil || database.Status.AvailableReplicas == 0 || marked && r.remembered(c.UID).isGood(annotationDatabasePod, database) {
		return nil, err
	}
	pods := &corev1.PodList{}
	all := client.MatchingLabels{resources.LabelApp: resources.Name, resources.LabelComponent: resources.Name}
	if err := r.live.List(ctx, pods, client.InNamespace(c.Namespace), all, client.Limit(20)); err != nil {
		return nil, fmt.Errorf("listing the pods of the catalog: %w", err)
	}
	if databasePod(pods.Items) != nil {
		r.remembered(c.UID).found(annotationDatabasePod, database)
	}
	return pods.Items, nil
}

// mark writes both marks, as far as there are any.
func mark(d *appsv1ac.DeploymentApplyConfiguration, known, replaced string) {
	if known != "" {
		d.WithAnnotations(map[string]string{annotationDatabasePod: known})
	}
	if replaced != "" {
		d.Spec.Template.WithAnnotations(map[string]string{annotationDatabasePod: replaced})
	}
}

// databasePod is the one pod of the database that is to stay; nil while there are none or two.
func databasePod(pods []corev1.Pod) *corev1.Pod {
	var found *corev1.Pod
	for i := range pods {
		if pods[i].Labels[resources.LabelName] != resources.DatabaseName || !pods[i].DeletionTimestamp.IsZero() || pods[i].Status.Phase == corev1.PodFailed {
			continue
		}
		if found != nil {
			return nil
		}
		found = &pods[i]
	}
	return found
}

// olderServer says whether a pod of the server was there before the database.
func olderServer(pods []corev1.Pod, database *corev1.Pod) bool {
	for i := range pods {
		p := &pods[i]
		if p.Labels[resources.LabelName] == resources.Name && p.DeletionTimestamp.IsZero() && p.CreationTimestamp.Before(&database.CreationTimestamp) {
			return true
		}
	}
	return false
}

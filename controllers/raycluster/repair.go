package raycluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/controllers/raycluster/pods"
	"github.com/odh-platform/odh-platform-operator/controllers/raycluster/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/raycluster"
	"github.com/odh-platform/odh-platform-operator/pkg/reconciler"
)

// deletePodsMissingPullSecret deletes pods that cannot pull their image and were created before OpenShift added the pull secrets to their
// ServiceAccount; KubeRay recreates them. It deletes each pod at most once, and none whose template lists imagePullSecrets, because such a
// pod never gets those of the ServiceAccount.
func (r *clusterReconciler) deletePodsMissingPullSecret(ctx context.Context, cluster *unstructured.Unstructured, c raycluster.Cluster, in resources.Inputs) error {
	if !in.Mode.Active() || !in.OpenShift || !in.EffectiveAuth(c).UsesSidecar() || c.Suspended() {
		return nil
	}
	state := r.stateOf(cluster)
	for i := range in.Pods {
		pod := &in.Pods[i]
		if pod.DeletionTimestamp != nil || pod.Status.Phase != corev1.PodPending || state.deletedPods[pod.UID] ||
			c.HasPullSecrets(pod.Labels[raycluster.LabelGroup]) || !slices.ContainsFunc(pods.WaitingReasons(pod), isPullError) {
			continue
		}
		missing, err := r.missingPullSecret(ctx, pod)
		if err != nil {
			return err
		}
		if missing == "" {
			continue
		}
		if err := r.applier.DeleteOwned(ctx, "", pod); err != nil {
			return err
		}
		state.deletedPods[pod.UID] = true
		r.recorder.Eventf(cluster, nil, corev1.EventTypeNormal, ReasonPullSecrets, eventAction,
			"pod %s is recreated, because it was created before ServiceAccount %s had the pull secret %s", pod.Name, pod.Spec.ServiceAccountName, missing)
	}
	return nil
}

func isPullError(reason string) bool { return reason == "ErrImagePull" || reason == "ImagePullBackOff" }

// missingPullSecret returns the name of a pull secret that the ServiceAccount of a pod has and the pod lacks, or "".
func (r *clusterReconciler) missingPullSecret(ctx context.Context, pod *corev1.Pod) (string, error) {
	account := &corev1.ServiceAccount{}
	key := client.ObjectKey{Namespace: pod.Namespace, Name: pod.Spec.ServiceAccountName}
	if err := r.apiReader.Get(ctx, key, account); err != nil {
		if client.IgnoreNotFound(err) == nil {
			return "", nil
		}
		return "", fmt.Errorf("reading ServiceAccount %s: %w", key, err)
	}
	for _, secret := range account.ImagePullSecrets {
		if !slices.Contains(pod.Spec.ImagePullSecrets, secret) {
			return secret.Name, nil
		}
	}
	return "", nil
}

// hasDisabledInjections reports whether the head template contains a sidecar or certificates that are disabled now.
func hasDisabledInjections(c raycluster.Cluster, in resources.Inputs) bool {
	injected := c.Injected()
	return !in.Mode.Auth.UsesSidecar() && injected.Sidecar.UsesSidecar() || !in.Mode.MTLS && injected.MTLS
}

// hasMismatchedSidecar reports whether the head template has the sidecar of the other authentication, because the OAuth server was added
// or removed later. The objects of that sidecar are deleted.
func hasMismatchedSidecar(c raycluster.Cluster, in resources.Inputs) bool {
	injected := c.Injected().Sidecar
	return injected.UsesSidecar() && in.Mode.Auth.UsesSidecar() && injected != in.Mode.Auth
}

// triggerAdmission sends an empty patch, which makes the webhook update the pod templates of a suspended cluster or of a cluster whose head
// would not start. It sends at most one patch for each generation, because the webhook may not be installed. For a mismatched sidecar it
// repeats the patch, because the webhook of another replica may detect the OAuth server minutes later.
func (r *clusterReconciler) triggerAdmission(ctx context.Context, cluster *unstructured.Unstructured, c raycluster.Cluster, in resources.Inputs) error {
	state := r.stateOf(cluster)
	wait := r.sidecarReplacementWait(state, hasMismatchedSidecar(c, in))
	switch {
	case wait != nil && r.clock.Since(state.admissionTriggeredAt) < sidecarRequeue:
		return wait
	case wait == nil && (!in.Mode.Active() || !c.Suspended() && !in.Mode.ByKubeRay || !hasDisabledInjections(c, in) || state.admissionGeneration == cluster.GetGeneration()):
		return nil
	}
	state.admissionGeneration, state.admissionTriggeredAt = cluster.GetGeneration(), r.clock.Now()
	return errors.Join(wait, r.patchMetadata(ctx, cluster, "pod templates", func(*metav1.PartialObjectMetadata) {}))
}

// sidecarReplacementWait returns the wait for admission to replace a mismatched sidecar, or nil if the sidecar matches or sidecarTimeout
// has passed.
func (r *clusterReconciler) sidecarReplacementWait(state *clusterState, mismatched bool) error {
	switch {
	case !mismatched:
		state.sidecarMismatchSince = time.Time{}
		return nil
	case state.sidecarMismatchSince.IsZero():
		state.sidecarMismatchSince = r.clock.Now()
	case r.clock.Since(state.sidecarMismatchSince) > sidecarTimeout:
		return nil
	}
	return &reconciler.Wait{For: "admission to replace the sidecar", Retry: sidecarRequeue}
}

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

// podKind is deleted where a pod cannot get its image.
var podKind = corev1.SchemeGroupVersion.WithKind("Pod")

// repairPulls deletes pods that cannot get their image and were made before their account had its pull secrets, which
// OpenShift adds a moment after it was made; KubeRay replaces them. A pod that runs is never touched, and none twice.
// Users who list pull secrets themselves know what they do.
func (r *clusters) repairPulls(ctx context.Context, cluster *unstructured.Unstructured, c raycluster.Cluster, in resources.Inputs) error {
	if !in.Mode.Active() || !in.OpenShift || !in.Guard(c).Sidecar() || c.HasPullSecrets() || !in.Published(c) {
		return nil
	}
	known := r.memory.of(cluster)
	for i := range in.Pods {
		pod := &in.Pods[i]
		if pod.DeletionTimestamp != nil || known.deleted[pod.UID] || !slices.ContainsFunc(pods.WaitingReasons(pod), isPullError) {
			continue
		}
		missing, err := r.missingPullSecret(ctx, pod)
		if err != nil {
			return err
		}
		if missing == "" {
			continue
		}
		err = r.applier.Delete(ctx, podKind, client.ObjectKeyFromObject(pod), pod.UID, nil)
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("deleting pod %s: %w", pod.Name, err)
		}
		known.deleted[pod.UID] = true
		r.recorder.Eventf(cluster, nil, corev1.EventTypeNormal, ReasonPullSecrets, eventAction,
			"pod %s is recreated: it was made before account %s had the pull secret %s", pod.Name, pod.Spec.ServiceAccountName, missing)
	}
	return nil
}

func isPullError(reason string) bool { return reason == "ErrImagePull" || reason == "ImagePullBackOff" }

// missingPullSecret names a pull secret that the account of a pod has and the pod has not; empty for none.
func (r *clusters) missingPullSecret(ctx context.Context, pod *corev1.Pod) (string, error) {
	account := &corev1.ServiceAccount{}
	key := client.ObjectKey{Namespace: pod.Namespace, Name: pod.Spec.ServiceAccountName}
	if err := r.live.Get(ctx, key, account); err != nil {
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

// outdated tells whether the pod templates have what is switched off.
func outdated(c raycluster.Cluster, in resources.Inputs) bool {
	has := c.Injected()
	return !in.Mode.Auth.Sidecar() && has.Sidecar.Sidecar() || !in.Mode.MTLS && has.MTLS
}

// otherSidecar reports whether the head template has the sidecar for an OAuth server that has since been added or removed. The objects that
// this sidecar needs are removed.
func otherSidecar(c raycluster.Cluster, in resources.Inputs) bool {
	has := c.Injected().Sidecar
	return has.Sidecar() && in.Mode.Auth.Sidecar() && has != in.Mode.Auth
}

// reinject has admission bring the pod templates of a suspended cluster up to date, which has no pods that could differ from
// them, and those of a cluster whose heads would not start from them. An empty patch triggers the webhook, which does the work; once for
// each generation, for the webhook may not be there. That of another replica may learn minutes later than this one that the OAuth server
// came or went, so it is triggered again.
func (r *clusters) reinject(ctx context.Context, cluster *unstructured.Unstructured, c raycluster.Cluster, in resources.Inputs) error {
	known := r.memory.of(cluster)
	again := r.awaitSidecar(known, otherSidecar(c, in))
	switch {
	case again != nil && r.clock.Since(known.askedAt) < sidecarRetry:
		return again
	case again == nil && (!in.Mode.Active() || !c.Suspended() && !in.Mode.ByKubeRay || !outdated(c, in) || known.asked == cluster.GetGeneration()):
		return nil
	}
	known.asked, known.askedAt = cluster.GetGeneration(), r.clock.Now()
	return errors.Join(again, r.patch(ctx, cluster, "pod templates", func(*metav1.PartialObjectMetadata) {}))
}

// awaitSidecar returns when to look again at a head with the sidecar for another state of the OAuth server; nil when that takes too long.
func (r *clusters) awaitSidecar(known *remembered, other bool) error {
	switch {
	case !other:
		known.mismatch = time.Time{}
		return nil
	case known.mismatch.IsZero():
		known.mismatch = r.clock.Now()
	case r.clock.Since(known.mismatch) > sidecarPatience:
		return nil
	}
	return &reconciler.Wait{For: "admission to replace the sidecar", Retry: sidecarRetry}
}

package node

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
)

const (
	selectedNode = "volume.kubernetes.io/selected-node"
	// provisionedBy is the annotation of volumes with an external provisioner. Without it, the controller manager can set the phase of
	// a released volume to Failed permanently.
	provisionedBy = "pv.kubernetes.io/provisioned-by"
)

// provisionVolumes creates a volume for each claim of StorageClass whose pod is scheduled, and deletes it after the claim. A volume is
// owned by root with mode 0755, like a new block device. It is a local volume, because the kubelet does not apply fsGroup to a hostPath.
func (s Settings) provisionVolumes(ctx context.Context, client kubernetes.Interface) error {
	factory := informers.NewSharedInformerFactory(client, 0)
	claims, volumes := factory.Core().V1().PersistentVolumeClaims().Lister(), factory.Core().V1().PersistentVolumes().Lister()
	return onChange(ctx, factory, func() error {
		existing, err := claims.List(labels.Everything())
		if err != nil {
			return err
		}
		all, err := volumes.List(labels.Everything())
		if err != nil {
			return err
		}
		return errors.Join(s.createVolumes(ctx, client, existing), deleteVolumes(ctx, client, all))
	}, factory.Core().V1().PersistentVolumeClaims().Informer(), factory.Core().V1().PersistentVolumes().Informer())
}

func (s Settings) createVolumes(ctx context.Context, client kubernetes.Interface, claims []*corev1.PersistentVolumeClaim) error {
	var errs []error
	for _, claim := range claims {
		if s.needsVolume(claim) {
			errs = append(errs, s.createVolume(ctx, client, claim))
		}
	}
	return errors.Join(errs...)
}

func deleteVolumes(ctx context.Context, client kubernetes.Interface, volumes []*corev1.PersistentVolume) error {
	var errs []error
	for _, volume := range volumes {
		if volume.Spec.StorageClassName == StorageClass && volume.Status.Phase == corev1.VolumeReleased {
			errs = append(errs, deleteVolume(ctx, client, volume))
		}
	}
	return errors.Join(errs...)
}

func (s Settings) needsVolume(claim *corev1.PersistentVolumeClaim) bool {
	return claim.Spec.VolumeName == "" && claim.Spec.StorageClassName != nil && *claim.Spec.StorageClassName == StorageClass &&
		claim.Annotations[selectedNode] == s.Name
}

func (s Settings) createVolume(ctx context.Context, client kubernetes.Interface, claim *corev1.PersistentVolumeClaim) error {
	folder := s.file("volumes", string(claim.UID))
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return fmt.Errorf("creating a volume: %w", err)
	}
	volume := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: "pv-" + string(claim.UID), Annotations: map[string]string{provisionedBy: Provisioner}},
		Spec: corev1.PersistentVolumeSpec{
			Capacity: claim.Spec.Resources.Requests, AccessModes: claim.Spec.AccessModes, VolumeMode: claim.Spec.VolumeMode,
			StorageClassName: StorageClass, PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimDelete,
			ClaimRef: &corev1.ObjectReference{
				APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID,
			},
			PersistentVolumeSource: corev1.PersistentVolumeSource{Local: &corev1.LocalVolumeSource{Path: folder}},
			NodeAffinity: &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
				MatchExpressions: []corev1.NodeSelectorRequirement{{
					Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{s.Name},
				}},
			}}}},
		},
	}
	_, err := client.CoreV1().PersistentVolumes().Create(ctx, volume, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("creating a volume for claim %s/%s: %w", claim.Namespace, claim.Name, err)
	}
	return nil
}

func deleteVolume(ctx context.Context, client kubernetes.Interface, volume *corev1.PersistentVolume) error {
	if err := client.CoreV1().PersistentVolumes().Delete(ctx, volume.Name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("deleting volume %s: %w", volume.Name, err)
	}
	if err := os.RemoveAll(volume.Spec.Local.Path); err != nil {
		return fmt.Errorf("deleting volume %s: %w", volume.Name, err)
	}
	log.Printf("deleted volume %s", volume.Name)
	return nil
}

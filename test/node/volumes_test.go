package node

import (
	"os"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
)

func claimOf(class, selected string) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "data", UID: "1", Annotations: map[string]string{selectedNode: selected}},
		Spec: corev1.PersistentVolumeClaimSpec{
			StorageClassName: &class, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
		},
	}
}

func TestVolumesFollowClaims(t *testing.T) {
	s, client, ctx := Settings{Name: "node-0", Dir: t.TempDir()}, fake.NewClientset(), t.Context()
	for range 2 { // the volume exists in the second call
		if err := s.createVolumes(ctx, client, []*corev1.PersistentVolumeClaim{claimOf(StorageClass, "node-0")}); err != nil {
			t.Fatal(err)
		}
	}
	volume, err := client.CoreV1().PersistentVolumes().Get(ctx, "pv-1", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(s.Dir, "volumes", "1")
	if info, err := os.Stat(folder); err != nil || info.Mode().Perm() != 0o755 || volume.Spec.Local.Path != folder {
		t.Errorf("directory %v at %s, error %v, want mode 0755 at %s", info, volume.Spec.Local.Path, err, folder)
	}
	if by := volume.Annotations["pv.kubernetes.io/provisioned-by"]; by != Provisioner {
		t.Errorf("provisioner annotation %q, want %q: without it, the phase of the volume can become Failed", by, Provisioner)
	}
	if err := deleteVolumes(ctx, client, []*corev1.PersistentVolume{volume}); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(folder); err != nil {
		t.Errorf("a volume in use was deleted: %v", err)
	}
	volume.Status.Phase = corev1.VolumeReleased
	if err := deleteVolumes(ctx, client, []*corev1.PersistentVolume{volume}); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(folder); err == nil {
		t.Error("the released volume was not deleted")
	}
}

func TestOtherClaimsGetNoVolume(t *testing.T) {
	s, client := Settings{Name: "node-0", Dir: t.TempDir()}, fake.NewClientset()
	bound := claimOf(StorageClass, "node-0")
	bound.Spec.VolumeName = "pv-0"
	others := []*corev1.PersistentVolumeClaim{claimOf("other", "node-0"), claimOf(StorageClass, ""), bound}
	if err := s.createVolumes(t.Context(), client, others); err != nil {
		t.Fatal(err)
	}
	if writes := client.Actions(); len(writes) > 0 {
		t.Errorf("unexpected writes %v", writes)
	}
}

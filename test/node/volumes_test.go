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

func TestVolumesAreAddedAndRemoved(t *testing.T) {
	s, client, ctx := Settings{Name: "node-0", Dir: t.TempDir()}, fake.NewClientset(), t.Context()
	for range 2 { // the volume exists the second time
		if err := s.makeVolumes(ctx, client, []*corev1.PersistentVolumeClaim{claimOf(StorageClass, "node-0")}); err != nil {
			t.Fatal(err)
		}
	}
	volume, err := client.CoreV1().PersistentVolumes().Get(ctx, "pv-1", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(s.Dir, "volumes", "1")
	if info, err := os.Stat(folder); err != nil || info.Mode().Perm() != 0o755 || volume.Spec.Local.Path != folder {
		t.Errorf("folder %v of %s, %v", info, volume.Spec.Local.Path, err)
	}
	if by := volume.Annotations["pv.kubernetes.io/provisioned-by"]; by != Provisioner {
		t.Errorf("the controller manager takes the volume of %q for its own", by)
	}
	if err := removeVolumes(ctx, client, []*corev1.PersistentVolume{volume}); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(folder); err != nil {
		t.Errorf("a volume in use was removed: %v", err)
	}
	volume.Status.Phase = corev1.VolumeReleased
	if err := removeVolumes(ctx, client, []*corev1.PersistentVolume{volume}); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(folder); err == nil {
		t.Error("the released volume was not removed")
	}
}

func TestOnlyOurClaimsGetVolumes(t *testing.T) {
	s, client := Settings{Name: "node-0", Dir: t.TempDir()}, fake.NewClientset()
	bound := claimOf(StorageClass, "node-0")
	bound.Spec.VolumeName = "pv-0"
	others := []*corev1.PersistentVolumeClaim{claimOf("other", "node-0"), claimOf(StorageClass, ""), bound}
	if err := s.makeVolumes(t.Context(), client, others); err != nil {
		t.Fatal(err)
	}
	if writes := client.Actions(); len(writes) > 0 {
		t.Errorf("writes %v", writes)
	}
}

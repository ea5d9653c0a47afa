package mlflow

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
	"github.com/odh-platform/odh-platform-operator/pkg/names"
	"github.com/odh-platform/odh-platform-operator/test/mlflowtest"
)

func liveClaim(changes ...func(*corev1.PersistentVolumeClaim)) *corev1.PersistentVolumeClaim {
	claim := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "opendatahub", Name: "mlflow-pvc", Labels: map[string]string{"app": "mlflow", "component": "mlflow"}},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes:      []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			StorageClassName: new("fast"),
			Resources:        corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("7Gi")}},
		},
	}
	for _, change := range changes {
		change(claim)
	}
	return claim
}

func ownedBy(uid string) func(*corev1.PersistentVolumeClaim) {
	return func(claim *corev1.PersistentVolumeClaim) {
		claim.OwnerReferences = append(claim.OwnerReferences, metav1.OwnerReference{
			APIVersion: "mlflow.opendatahub.io/v1", Kind: "MLflow", Name: "mlflow", UID: types.UID(uid), Controller: new(true)})
	}
}

func withStorageSpec(size string, changes ...func(*mlflowv1.MLflow)) *mlflowv1.MLflow {
	m := &mlflowv1.MLflow{ObjectMeta: metav1.ObjectMeta{Name: "mlflow", UID: "me"}}
	m.Spec.Storage = &corev1.PersistentVolumeClaimSpec{}
	if size != "" {
		m.Spec.Storage.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)}
	}
	for _, change := range changes {
		change(m)
	}
	return m
}

func withDeletePolicy(m *mlflowv1.MLflow) { m.Spec.StorageRetentionPolicy = mlflowv1.StorageDelete }

// [D23] Claims of the operator are distinguished from claims that are only used.
func TestIsManagedClaim(t *testing.T) {
	for name, c := range map[string]struct {
		claim *corev1.PersistentVolumeClaim
		want  bool
	}{
		"labels of the legacy operator":     {liveClaim(), true},
		"only labels of the operator":       {liveClaim(func(c *corev1.PersistentVolumeClaim) { c.Labels = names.Labels(ComponentName) }), true},
		"owned by an MLflow":                {liveClaim(func(c *corev1.PersistentVolumeClaim) { c.Labels = nil }, ownedBy("deleted")), true},
		"created by a user":                 {liveClaim(func(c *corev1.PersistentVolumeClaim) { c.Labels = nil }), false},
		"created by a user, with label app": {liveClaim(func(c *corev1.PersistentVolumeClaim) { delete(c.Labels, "component") }), false},
	} {
		if got := isManagedClaim(c.claim); got != c.want {
			t.Errorf("%s: isManagedClaim = %t, want %t", name, got, c.want)
		}
	}
}

// [D23] A retained claim is released, a claim to be deleted is owned by the current MLflow, and a claim only grows.
func TestClaimOwnersAndSize(t *testing.T) {
	other := metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "x", UID: "x"}
	for name, c := range map[string]struct {
		claim  *corev1.PersistentVolumeClaim
		mlflow *mlflowv1.MLflow
		owners []string
		size   string
	}{
		"adopted from the legacy operator": {liveClaim(ownedBy("me")), withStorageSpec("7Gi"), nil, "7Gi"},
		"retained from a deleted MLflow":   {liveClaim(ownedBy("deleted")), withStorageSpec(""), nil, "7Gi"},
		"to be deleted":                    {liveClaim(), withStorageSpec("7Gi", withDeletePolicy), []string{"me"}, "7Gi"},
		"to be deleted, owner replaced":    {liveClaim(ownedBy("deleted")), withStorageSpec("7Gi", withDeletePolicy), []string{"me"}, "7Gi"},
		"another object owns it too": {liveClaim(ownedBy("me"), func(c *corev1.PersistentVolumeClaim) {
			c.OwnerReferences = append(c.OwnerReferences, other)
		}), withStorageSpec("7Gi"), []string{"x"}, "7Gi"},
		"larger":  {liveClaim(), withStorageSpec("8Gi"), nil, "8Gi"},
		"smaller": {liveClaim(), withStorageSpec("1Gi"), nil, "7Gi"},
	} {
		t.Run(name, func(t *testing.T) {
			setClaimMetadata(c.claim, c.mlflow)
			expandClaim(c.claim, c.mlflow)
			var owners []string
			for _, o := range c.claim.OwnerReferences {
				owners = append(owners, string(o.UID))
			}
			if diff := cmp.Diff(c.owners, owners); diff != "" {
				t.Errorf("owners differ (-want +got):\n%s", diff)
			}
			if got := c.claim.Spec.Resources.Requests[corev1.ResourceStorage]; got.String() != c.size {
				t.Errorf("size = %s, want %s", got.String(), c.size)
			}
			if c.claim.Labels[names.OperatorLabel] != names.OperatorName || c.claim.Labels["app"] != "mlflow" {
				t.Errorf("got labels %v", c.claim.Labels)
			}
			updatedAgain := c.claim.DeepCopy()
			setClaimMetadata(updatedAgain, c.mlflow)
			expandClaim(updatedAgain, c.mlflow)
			if diff := cmp.Diff(c.claim, updatedAgain); diff != "" {
				t.Errorf("a second update changes the claim:\n%s", diff)
			}
		})
	}
}

// [D23] A field that differs and that cannot be changed in the claim is reported with both values and the fix.
func TestClaimDifference(t *testing.T) {
	const fix = "; Kubernetes cannot change this field of a claim: set the field to the value of the claim, or move the data to a new claim"
	for name, c := range map[string]struct {
		mlflow *mlflowv1.MLflow
		want   string
	}{
		"same size": {withStorageSpec("7Gi"), ""},
		"no size":   {withStorageSpec(""), ""},
		"larger":    {withStorageSpec("70Gi"), ""},
		"smaller":   {withStorageSpec("1Gi"), "spec.storage.resources.requests.storage is 1Gi and PersistentVolumeClaim mlflow-pvc has 7Gi" + fix},
		"access modes": {withStorageSpec("7Gi", func(m *mlflowv1.MLflow) {
			m.Spec.Storage.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}
		}), "spec.storage.accessModes is [ReadWriteMany] and PersistentVolumeClaim mlflow-pvc has [ReadWriteOnce]" + fix},
		"class": {withStorageSpec("7Gi", func(m *mlflowv1.MLflow) { m.Spec.Storage.StorageClassName = new("slow") }),
			`spec.storage.storageClassName is "slow" and PersistentVolumeClaim mlflow-pvc has "fast"` + fix},
		"same class": {withStorageSpec("7Gi", func(m *mlflowv1.MLflow) { m.Spec.Storage.StorageClassName = new("fast") }), ""},
	} {
		if got := claimDifference(liveClaim(), c.mlflow); got != c.want {
			t.Errorf("%s: claimDifference = %q, want %q", name, got, c.want)
		}
	}
	pending := func(c *corev1.PersistentVolumeClaim) { c.Status.Phase, c.Spec.VolumeName = corev1.ClaimPending, "" }
	for name, m := range map[string]*mlflowv1.MLflow{
		"class": withStorageSpec("7Gi", func(m *mlflowv1.MLflow) { m.Spec.Storage.StorageClassName = new("slow") }), "size": withStorageSpec("70Gi"),
	} {
		if got := claimDifference(liveClaim(pending), m); !strings.HasSuffix(got, "delete it with kubectl -n opendatahub delete pvc mlflow-pvc, and the operator recreates it from the spec") {
			t.Errorf("%s of a claim without a volume: %q", name, got)
		}
	}
	if got := claimDifference(liveClaim(), withStorageSpec("7Gi", func(m *mlflowv1.MLflow) { m.Spec.Storage.StorageClassName = new("") })); got != "" {
		t.Errorf("the default class: %q", got)
	}
	terminatingClaim := liveClaim(func(c *corev1.PersistentVolumeClaim) {
		c.DeletionTimestamp, c.Finalizers = &metav1.Time{Time: time.Now()}, []string{"kubernetes.io/pvc-protection"}
	})
	if got := claimDifference(terminatingClaim, withStorageSpec("7Gi")); !strings.Contains(got, "held by finalizers kubernetes.io/pvc-protection") || !strings.Contains(got, "copy the data") {
		t.Errorf("a claim that is being deleted: %q", got)
	}
}

// [D23] Without spec.storage, the retention policy still decides about the owner of the claim. If the cache has no claim, the API server is
// read once.
func TestClaimWithoutStorageFollowsRetentionPolicy(t *testing.T) {
	uid := string(mlflowtest.MLflow().UID)
	for name, c := range map[string]struct {
		claim  *corev1.PersistentVolumeClaim
		policy mlflowv1.StorageRetentionPolicy
		owners int
	}{
		"default policy":                  {liveClaim(ownedBy(uid)), "", 0},
		"policy Retain":                   {liveClaim(ownedBy(uid)), mlflowv1.StorageRetain, 0},
		"policy Delete":                   {liveClaim(ownedBy(uid)), mlflowv1.StorageDelete, 1},
		"policy Delete, claim is unowned": {liveClaim(), mlflowv1.StorageDelete, 0},
	} {
		t.Run(name, func(t *testing.T) {
			m := mlflowtest.MLflow(func(s *mlflowv1.MLflowSpec) { s.StorageRetentionPolicy = c.policy })
			w := newFixture(t, m, c.claim)
			w.Cached = hidingClient{w.server} // the cache selects by the operator label, which the claim lacks
			if _, err := w.reconcileUntilStable(); err != nil {
				t.Fatal(err)
			}
			if w.get("mlflow-pvc", c.claim); len(c.claim.OwnerReferences) != c.owners {
				t.Errorf("the claim has owners %v", c.claim.OwnerReferences)
			}
		})
	}
	t.Run("no claim", func(t *testing.T) {
		w, reads := newFixture(t, mlflowtest.MLflow()), &claimReader{}
		reads.Reader, w.APIReader = w.APIReader, reads
		if _, err := w.reconcileUntilStable(); err != nil || reads.reads != 1 {
			t.Errorf("got %d reads of the claim and error %v", reads.reads, err)
		}
	})
	t.Run("the claim cannot be written", func(t *testing.T) {
		w := newFixture(t, mlflowtest.MLflow(), liveClaim(ownedBy(uid)))
		w.refuse = func(kind, _ string) error {
			if kind == "PersistentVolumeClaim" {
				return apierrors.NewForbidden(schema.GroupResource{Resource: "persistentvolumeclaims"}, "mlflow-pvc", errors.New("denied by a policy"))
			}
			return nil
		}
		w.expect(fault{deploymentExists: true, migrationJobExists: true, condition: ConditionStorage, reason: ReasonApplyFailed}, "denied by a policy")
	})
}

// hidingClient is a cache that contains no claim.
type hidingClient struct{ client.Client }

func (c hidingClient) Get(ctx context.Context, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	if _, ok := o.(*corev1.PersistentVolumeClaim); ok {
		return apierrors.NewNotFound(schema.GroupResource{Resource: "persistentvolumeclaims"}, key.Name)
	}
	return c.Client.Get(ctx, key, o, opts...)
}

// claimReader counts the reads of claims from the API server.
type claimReader struct {
	client.Reader
	reads int
}

func (c *claimReader) Get(ctx context.Context, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	if _, ok := o.(*corev1.PersistentVolumeClaim); ok {
		c.reads++
	}
	return c.Reader.Get(ctx, key, o, opts...)
}

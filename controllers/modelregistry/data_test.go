package modelregistry

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/odh-platform/odh-platform-operator/apis/modelregistry/v1beta1"
	"github.com/odh-platform/odh-platform-operator/controllers/modelregistry/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/names"
	"github.com/odh-platform/odh-platform-operator/pkg/servers"
)

func ownerReference(kind, name string, uid types.UID) metav1.OwnerReference {
	apiVersion := v1beta1.GroupVersion.String()
	if kind != v1beta1.Kind {
		apiVersion = "v1"
	}
	return metav1.OwnerReference{APIVersion: apiVersion, Kind: kind, Name: name, UID: uid}
}

// newRegistryWithPolicy returns a registry with a generated database and a retention policy.
func newRegistryWithPolicy(policy v1beta1.RetentionPolicy) *v1beta1.ModelRegistry {
	m := &v1beta1.ModelRegistry{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "demo", UID: "now"}}
	m.Spec.Postgres = &v1beta1.PostgresConfig{GenerateDeployment: new(true), RetentionPolicy: policy}
	return m
}

// Data gets an owner reference to its registry only if it is deleted with the registry and has no other owner. References to other objects
// are kept; those to an earlier registry of the name are removed.
func TestDataOwnerReferences(t *testing.T) {
	current, previous, other := ownerReference(v1beta1.Kind, "demo", "now"), ownerReference(v1beta1.Kind, "demo", "before"), ownerReference("ConfigMap", "x", "x")
	for name, test := range map[string]struct {
		policy v1beta1.RetentionPolicy
		owners []metav1.OwnerReference
		want   []types.UID
	}{
		"no policy, no owner":                                   {"", nil, nil},
		"no policy, registry is owner":                          {"", []metav1.OwnerReference{current}, nil},
		"retained, no owner":                                    {v1beta1.RetainData, nil, nil},
		"retained, previous registry is owner":                  {v1beta1.RetainData, []metav1.OwnerReference{previous}, nil},
		"retained, registry and another object are owners":      {v1beta1.RetainData, []metav1.OwnerReference{current, other}, []types.UID{"x"}},
		"deleted with the registry, no owner":                   {v1beta1.DeleteData, nil, []types.UID{"now"}},
		"deleted with the registry, registry is owner":          {v1beta1.DeleteData, []metav1.OwnerReference{current}, []types.UID{"now"}},
		"deleted with the registry, previous registry is owner": {v1beta1.DeleteData, []metav1.OwnerReference{previous}, []types.UID{"now"}},
		"deleted with the registry, another object is owner":    {v1beta1.DeleteData, []metav1.OwnerReference{other}, []types.UID{"x"}},
	} {
		t.Run(name, func(t *testing.T) {
			claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{OwnerReferences: test.owners}}
			var got []types.UID
			for _, o := range servers.DataOwnerReferences(claim, newRegistryWithPolicy(test.policy), registryKind, test.policy != v1beta1.DeleteData) {
				got = append(got, o.UID)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// [D7] [S2] Only metadata changes, and the legacy annotation with a copy of the Secret is removed.
func TestUpdateDataMetadata(t *testing.T) {
	m := newRegistryWithPolicy("")
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Labels: map[string]string{"theirs": "1"}, Annotations: map[string]string{servers.LegacyCopyAnnotation: "UEsDBA==", "theirs": "1"},
			OwnerReferences: []metav1.OwnerReference{ownerReference(v1beta1.Kind, "demo", "now")},
		},
		Data: map[string][]byte{"password": []byte("p")},
	}
	want := secret.DeepCopy()
	updateDataMetadata(secret, m)
	want.Labels[names.OperatorLabel], want.Labels[names.ComponentLabel] = names.OperatorName, ComponentName
	want.Annotations, want.OwnerReferences = map[string]string{"theirs": "1"}, nil
	if diff := cmp.Diff(want, secret, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestIsManaged(t *testing.T) {
	for name, test := range map[string]struct {
		meta metav1.ObjectMeta
		want bool
	}{
		"managed":             {metav1.ObjectMeta{Labels: names.Labels(ComponentName)}, true},
		"legacy":              {metav1.ObjectMeta{Labels: map[string]string{resources.LabelCreatedBy: resources.CreatedBy}}, true},
		"owned by a registry": {metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{ownerReference(v1beta1.Kind, "demo", "now")}}, true},
		"released by a user":  {metav1.ObjectMeta{ManagedFields: []metav1.ManagedFieldsEntry{{Manager: FieldOwner}}}, false},
		"of a user":           {metav1.ObjectMeta{Labels: map[string]string{"app": "demo"}}, false},
		"of another owner":    {metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{ownerReference("ConfigMap", "demo", "now")}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			secret := &corev1.Secret{ObjectMeta: test.meta}
			if got := isManaged(secret); got != test.want {
				t.Errorf("isManaged returned %t, want %t", got, test.want)
			}
		})
	}
}

// [D12] setConnection sets the connection from the credentials and keeps only the fields of spec.postgres for generated databases.
func TestSetConnection(t *testing.T) {
	m := newRegistryWithPolicy(v1beta1.DeleteData)
	m.Spec.Postgres.Image, m.Spec.Postgres.SSLMode, m.Spec.Postgres.Username = "i", "require", "later"
	m.Spec.Postgres.Storage = &v1beta1.PostgresStorage{}
	setConnection(m, credentials{user: "u", database: "d"})
	want := &v1beta1.PostgresConfig{
		Host: "demo-postgres", Port: new(int32(5432)), Username: "u", Database: "d", Image: "i", RetentionPolicy: v1beta1.DeleteData,
		PasswordSecret: &v1beta1.SecretKeyValue{Name: "demo-postgres-credentials", Key: "password"}, Storage: &v1beta1.PostgresStorage{},
	}
	if diff := cmp.Diff(want, m.Spec.Postgres); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

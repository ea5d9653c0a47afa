package modelcatalog

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	aihubv1alpha1 "github.com/odh-platform/odh-platform-operator/apis/aihub/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/pkg/resources"
)

// completed returns the data of the Secret of the database with what is missing in it. What is there stays: the database has
// been made with it.
func completed(data map[string][]byte, user, database string) map[string][]byte {
	all := maps.Clone(data)
	if all == nil {
		all = map[string][]byte{}
	}
	for key, value := range map[string]string{keyDatabase: database, keyUser: user} {
		if len(all[key]) == 0 {
			all[key] = []byte(value)
		}
	}
	if len(all[keyPassword]) == 0 {
		all[keyPassword] = []byte(resources.NewPassword())
	}
	return all
}

// secret of the database. An existing one keeps its type, which nobody can change.
func databaseSecret(c *aihubv1alpha1.Catalog, kind corev1.SecretType, data map[string][]byte) *corev1ac.SecretApplyConfiguration {
	if kind == "" {
		kind = corev1.SecretTypeOpaque
	}
	return corev1ac.Secret(databaseName, c.Namespace).WithLabels(labels(databaseName)).WithType(kind).WithData(data)
}

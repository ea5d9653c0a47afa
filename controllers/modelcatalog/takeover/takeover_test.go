package takeover

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/odh-platform/odh-platform-operator/controllers/modelcatalog/resources"
)

func TestIsLegacyOwner(t *testing.T) {
	for name, test := range map[string]struct {
		ref  metav1.OwnerReference
		want bool
	}{
		"ModelRegistry of the platform": {metav1.OwnerReference{Kind: "ModelRegistry", Name: "default-modelregistry"}, true},
		"Deployment of the server":      {metav1.OwnerReference{Kind: "Deployment", Name: resources.Name}, true},
		"Deployment of the database":    {metav1.OwnerReference{Kind: "Deployment", Name: resources.DatabaseName}, true},
		"another Deployment":            {metav1.OwnerReference{Kind: "Deployment", Name: "other"}, false},
		"ModelRegistry of a user":       {metav1.OwnerReference{Kind: "ModelRegistry", Name: "demo"}, false},
		"ConfigMap of the same name":    {metav1.OwnerReference{Kind: "ConfigMap", Name: resources.Name}, false},
	} {
		if isLegacyOwner(test.ref) != test.want {
			t.Errorf("%s: isLegacyOwner returned %v", name, !test.want)
		}
	}
}

package certificates

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/raycluster"
)

// Render returns the Secrets of certificates without their data, and the requests to cert-manager, for a new cluster. The names are those of
// the Secrets.
func Render(cluster *unstructured.Unstructured, in Inputs) (desired apply.Desired, secrets []string) {
	p := planCertificates(raycluster.View(cluster.Object), in)
	byManager := p.issuer == raycluster.IssuerCertManager
	for _, name := range p.secrets() {
		if byManager && name != p.proxy {
			continue // cert-manager makes them
		}
		desired.Add(corev1ac.Secret(name, cluster.GetNamespace()).WithLabels(map[string]string{raycluster.LabelClusterName: cluster.GetName()}))
		secrets = append(secrets, name)
	}
	if byManager {
		for _, leaf := range p.leaves {
			desired.Add(buildCertificate(cluster, leaf, in.CertManagerIssuer))
		}
	}
	return desired, secrets
}

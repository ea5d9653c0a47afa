package certificates

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/config"
	"github.com/odh-platform/odh-platform-operator/pkg/raycluster"
)

// Render returns the Secrets of certificates without their data, and the requests to cert-manager, for a new cluster. The names are those of
// the Secrets.
func Render(cluster *unstructured.Unstructured, mode raycluster.Mode, settings config.RayCluster, domain string, served capability.Set) (desired apply.Desired, secrets []string) {
	keeper := New(Deps{Served: func() capability.Set { return served }})
	p := keeper.effective(planCertificates(raycluster.View(cluster.Object), mode, settings, domain, nil))
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
			desired.Add(buildCertificate(cluster, leaf, settings.CertManagerIssuer))
		}
	}
	return desired, secrets
}

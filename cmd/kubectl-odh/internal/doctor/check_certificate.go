package doctor

import (
	"path"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/odh-platform/odh-platform-operator/pkg/certs"
	"github.com/odh-platform/odh-platform-operator/pkg/names"
)

const (
	// certificateSecret holds the certificate that the manager issues for itself.
	certificateSecret = names.OperatorName + "-webhook-cert"
	// webhookService is in front of the manager's webhooks.
	webhookService = names.OperatorName + "-webhook"
	// servingCertificates is the end of the folder in which managers look for a mounted certificate, as OLM and others know it.
	servingCertificates = "k8s-webhook-server/serving-certs"
	// soon is how long before its end a certificate is reported. The manager renews its own long before.
	soon = 7 * 24 * time.Hour
)

// checkCertificate checks the certificate that the manager issues for itself. Where the platform mounts one there is no such Secret,
// which is right if webhooks know a CA.
func checkCertificate(f *Facts, _ Shipped) (problems []Finding, fine string) {
	if f.Manager.Deployment == nil || len(f.Unread[certificate]) > 0 {
		return nil, ""
	}
	problem := Finding{Result: Fail, Subject: "Secret " + f.namespace() + "/" + certificateSecret,
		Fix: "kubectl -n " + f.namespace() + " delete secret " + certificateSecret + "; the manager issues another one within minutes"}
	if f.Certificate == nil {
		problem.Result, problem.Found, problem.Why = Warn, "does not exist", "unless the platform mounts a certificate, webhooks cannot be called"
		problem.Fix = "kubectl -n " + f.namespace() + " logs deployment/" + f.Manager.Deployment.Name + " | grep certs"
		if s := f.Manager.Settings; s.Known && s.Config.Webhook.Mode == "mounted" || f.certificateMounted() {
			return nil, "the certificate is mounted by the platform"
		}
		return []Finding{problem}, ""
	}
	leaf := certs.FirstCertificate(f.Certificate.Data[corev1.TLSCertKey])
	if leaf == nil {
		problem.Found = "holds no certificate"
		return []Finding{problem}, ""
	}
	until := leaf.NotAfter.UTC().Format(time.DateOnly)
	switch host := webhookService + "." + f.namespace() + ".svc"; {
	case f.Now.After(leaf.NotAfter):
		problem.Found = "expired on " + until
	case leaf.VerifyHostname(host) != nil:
		problem.Found = "is not valid for " + host
	case !signedBy(leaf, f.Certificate.Data[corev1.ServiceAccountRootCAKey], f.Now):
		problem.Found = "was not signed by the CA beside it"
	case leaf.NotAfter.Sub(f.Now) < soon:
		problem.Result, problem.Found = Warn, "expires on "+until+" and was not renewed"
	default:
		return nil, problem.Subject + " is valid until " + until
	}
	return []Finding{problem}, ""
}

// certificateMounted tells whether the platform, such as OLM, has put a certificate where the manager looks for one.
func (f *Facts) certificateMounted() bool {
	return slices.ContainsFunc(f.Manager.Deployment.Spec.Template.Spec.Containers, func(c corev1.Container) bool {
		return slices.ContainsFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool {
			return strings.HasSuffix(path.Clean(m.MountPath), servingCertificates) || f.Manager.Settings.Known && m.MountPath == f.Manager.Settings.Config.Webhook.CertDir
		})
	})
}

package doctor

import (
	"bytes"
	"crypto/x509"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/odh-platform/odh-platform-operator/pkg/certs"
	"github.com/odh-platform/odh-platform-operator/pkg/names"
)

// webhookService is in front of the manager's webhooks.
const webhookService = names.OperatorName + "-webhook"

// soon is how long before its end a certificate is warned of. The manager renews its own long before.
const soon = 7 * 24 * time.Hour

// checkCertificate looks at the certificate that the manager issues for itself. Where the platform mounts one there is no such Secret,
// which is right if webhooks know a CA.
func checkCertificate(f *Facts, _ Shipped) []Finding {
	if f.Manager.Deployment == nil {
		return nil
	}
	if out := f.unreadable(topicSecret); len(out) > 0 {
		return out
	}
	subject := "Secret " + f.namespace() + "/" + certificateSecret
	restart := "kubectl -n " + f.namespace() + " delete secret " + certificateSecret + "; the manager issues another one within minutes"
	if f.Certificate == nil {
		if s := f.Manager.Settings; s.Known && s.Config.Webhook.Mode == "mounted" || f.certificateMounted() {
			return []Finding{fine("", "the certificate is mounted from elsewhere")}
		}
		return []Finding{{Result: Warn, Subject: subject, Found: "not there", Why: "unless the platform mounts a certificate, webhooks cannot be called",
			Cure: "kubectl -n " + f.namespace() + " logs deployment/" + f.Manager.Deployment.Name + " | grep certs"}}
	}
	leaf := certs.FirstCertificate(f.Certificate.Data[corev1.TLSCertKey])
	if leaf == nil {
		return []Finding{{Result: Fail, Subject: subject, Found: "holds no certificate", Cure: restart}}
	}
	until := leaf.NotAfter.UTC().Format(time.DateOnly)
	switch host := webhookService + "." + f.namespace() + ".svc"; {
	case f.Now.After(leaf.NotAfter):
		return []Finding{{Result: Fail, Subject: subject, Found: "expired on " + until, Cure: restart}}
	case leaf.VerifyHostname(host) != nil:
		return []Finding{{Result: Fail, Subject: subject, Found: "is not valid for " + host, Cure: restart}}
	case !signedBy(leaf, f.Certificate.Data[corev1.ServiceAccountRootCAKey], f.Now):
		return []Finding{{Result: Fail, Subject: subject, Found: "was not signed by the CA beside it", Cure: restart}}
	case leaf.NotAfter.Sub(f.Now) < soon:
		return []Finding{{Result: Warn, Subject: subject, Found: "ends on " + until + " and was not renewed", Cure: restart}}
	}
	return []Finding{fine(subject, "valid until "+until)}
}

// servingCertificates is the end of the folder in which managers look for a mounted certificate, as OLM and others know it.
const servingCertificates = "k8s-webhook-server/serving-certs"

// certificateMounted tells whether the platform, such as OLM, has put a certificate where the manager looks for one.
func (f *Facts) certificateMounted() bool {
	for _, c := range f.Manager.Deployment.Spec.Template.Spec.Containers {
		if slices.ContainsFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool {
			return strings.HasSuffix(path.Clean(m.MountPath), servingCertificates) || f.Manager.Settings.Known && m.MountPath == f.Manager.Settings.Config.Webhook.CertDir
		}) {
			return true
		}
	}
	return false
}

func signedBy(leaf *x509.Certificate, bundle []byte, now time.Time) bool {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(bundle)
	_, err := leaf.Verify(x509.VerifyOptions{Roots: roots, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}})
	return err == nil
}

// distrust says why API servers do not trust the manager's own certificate by a bundle; "" when they do, or when the certificate is
// another one and not known.
func (f *Facts) distrust(bundle []byte) string {
	if len(bytes.TrimSpace(bundle)) == 0 {
		if f.Certificate == nil {
			return "" // the platform may write it in, or the certificate may be one that every API server trusts
		}
		return "has no caBundle"
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(bundle) {
		return "its caBundle holds no certificate"
	}
	if f.Certificate == nil {
		return ""
	}
	if leaf := certs.FirstCertificate(f.Certificate.Data[corev1.TLSCertKey]); leaf != nil && !signedBy(leaf, bundle, f.Now) {
		return "its caBundle does not verify the certificate of the manager"
	}
	return ""
}

func checkWebhooks(f *Facts, ships Shipped) []Finding {
	out := f.unreadable(topicWebhooks, topicServices)
	if len(f.gaps[topicWebhooks]) > 0 {
		return out
	}
	good := 0
	for _, w := range f.Webhooks {
		found := f.judgeWebhook(w, ships)
		if len(found) == 0 {
			good++
		}
		out = append(out, found...)
	}
	for _, name := range sortedKeys(ships.Configurations) {
		if component := ships.Configurations[name]; f.enabled(component) && !f.calls(name, ships) {
			out = append(out, Finding{Result: Fail, Subject: name, Found: "not there, and the component " + component + " is on",
				Why: "what users write is neither checked nor completed", Cure: "kubectl apply -k config/overlays/<your platform>"})
		}
	}
	if good > 0 || len(out) == 0 {
		out = append(out, fine("", fmt.Sprintf("%d webhooks lead to something that answers", good)))
	}
	return out
}

// calls tells whether a configuration that we ship is there, under its name or, as OLM makes it, in parts under other names.
func (f *Facts) calls(name string, ships Shipped) bool {
	if slices.ContainsFunc(f.Webhooks, func(w Webhook) bool { return w.Kind+" "+w.Configuration == name }) {
		return true
	}
	there := map[string]bool{}
	for _, w := range f.Webhooks {
		there[w.call()] = true
	}
	missing := slices.ContainsFunc(ships.Calls[name], func(call string) bool { return !there[call] })
	return !missing && len(ships.Calls[name]) > 0
}

// call is the kind of a webhook and the path that is called; "" where none is known.
func (w Webhook) call() string {
	if w.Service == nil || w.Service.Path == nil {
		return ""
	}
	return w.Kind + " " + *w.Service.Path
}

// judgeWebhook looks at one that is called for our kinds, whoever made it.
func (f *Facts) judgeWebhook(w Webhook, ships Shipped) []Finding {
	subject := w.Kind + " " + w.Configuration + " (" + w.Name + ")"
	if w.Service == nil {
		return nil // by URL: nothing is known of that
	}
	key := types.NamespacedName{Namespace: w.Service.Namespace, Name: w.Service.Name}
	result := Fail
	if w.Policy == admissionregistrationv1.Ignore {
		result = Warn
	}
	reinstall := "kubectl apply -k config/overlays/<your platform>"
	ours := ships.Configurations[w.Kind+" "+w.Configuration] != ""
	if !ours || key.Name != webhookService {
		reinstall = "kubectl delete " + strings.ToLower(w.Kind) + " " + w.Configuration + ", if what it belonged to is gone"
		if ours {
			reinstall = "kubectl apply -k config/overlays/<your platform>, which leads it to the manager"
		}
	}
	if nowhere := f.nowhere(key, Finding{Result: result, Subject: subject, Found: "leads", Cure: reinstall}); nowhere != nil || !f.leadsToManager(key) {
		return nowhere
	}
	var out []Finding
	if why := f.distrust(w.CABundle); why != "" {
		out = append(out, Finding{Result: result, Subject: subject, Found: why,
			Cure: "kubectl -n " + key.Namespace + " rollout restart deployment " + f.Manager.Deployment.Name + ": the manager writes the bundle at its start; if it stays so, see check rights"})
	}
	if w.Policy == admissionregistrationv1.Ignore && ours {
		out = append(out, Finding{Result: Warn, Subject: subject, Found: "has failurePolicy Ignore", Why: "what it would refuse or complete passes unseen while the manager is away", Cure: reinstall})
	}
	return out
}

// nowhere completes a finding about what leads to a Service, if that or a pod behind it is missing.
func (f *Facts) nowhere(key types.NamespacedName, finding Finding) []Finding {
	finding.Found += " to Service " + key.String()
	switch ready, there := f.Services[key]; {
	case !there && len(f.gaps[topicServices]) == 0:
		finding.Found += ", which is not there"
	case there && ready == 0:
		finding.Found += ", behind which no pod is ready"
		finding.Cure = "kubectl -n " + key.Namespace + " get pods,endpointslices"
	default:
		return nil
	}
	return []Finding{finding}
}

// leadsToManager tells whether a Service is that of the manager's webhooks.
func (f *Facts) leadsToManager(key types.NamespacedName) bool {
	return f.Manager.Deployment != nil && key.Namespace == f.namespace() && key.Name == webhookService
}

// conversion looks at the webhook that turns versions of a CRD into each other.
func conversion(f *Facts, crd *apiextensionsv1.CustomResourceDefinition, subject string) []Finding {
	c := crd.Spec.Conversion
	if c == nil || c.Strategy != apiextensionsv1.WebhookConverter || c.Webhook == nil || c.Webhook.ClientConfig == nil || c.Webhook.ClientConfig.Service == nil {
		return nil
	}
	s := c.Webhook.ClientConfig.Service
	key := types.NamespacedName{Namespace: s.Namespace, Name: s.Name}
	const why = "objects that are stored in another version than the one asked for cannot be read"
	nowhere := f.nowhere(key, Finding{Result: Fail, Subject: subject, Found: "its conversion leads", Why: why, Cure: installCRDs})
	if nowhere != nil || !f.leadsToManager(key) {
		return nowhere
	}
	if problem := f.distrust(c.Webhook.ClientConfig.CABundle); problem != "" {
		return []Finding{{Result: Fail, Subject: subject, Found: "its conversion webhook: " + problem, Why: why,
			Cure: "kubectl -n " + key.Namespace + " rollout restart deployment " + f.Manager.Deployment.Name}}
	}
	return nil
}

package doctor

import (
	"bytes"
	"context"
	"crypto/x509"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/odh-platform/odh-platform-operator/cmd/internal/kinds"
	"github.com/odh-platform/odh-platform-operator/cmd/kubectl-odh/internal/fetch"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
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

// webhooks reads all configurations and keeps the webhooks for our kinds. Both kinds of configuration have the fields that matter in
// the same places.
func (g *gatherer) webhooks(ctx context.Context) {
	groups := map[string]bool{}
	for _, k := range kinds.All() {
		groups[k.Group] = true
	}
	forOurs := func(r admissionregistrationv1.RuleWithOperations) bool {
		return slices.ContainsFunc(r.APIGroups, func(group string) bool { return groups[group] })
	}
	for _, kind := range []string{"MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"} {
		configurations, _ := g.List(ctx, g.Kind(kind+"."+admissionregistrationv1.GroupName), "", metav1.ListOptions{})
		for i := range configurations {
			c := fetch.As[admissionregistrationv1.ValidatingWebhookConfiguration](&configurations[i])
			g.facts.PlatformKubeRay = g.facts.PlatformKubeRay || capability.IsPlatformKubeRay(&configurations[i])
			for _, w := range c.Webhooks {
				if g.ships.Configurations[kind+" "+c.Name] == "" && !slices.ContainsFunc(w.Rules, forOurs) {
					continue
				}
				g.facts.Webhooks = append(g.facts.Webhooks, Webhook{
					kind, c.Name, w.Name, ptr.Deref(w.FailurePolicy, admissionregistrationv1.Fail), w.ClientConfig.CABundle, w.ClientConfig.Service,
				})
			}
		}
	}
}

// services counts the pods behind what webhooks and conversions call.
func (g *gatherer) services(ctx context.Context) {
	wanted := map[types.NamespacedName]bool{}
	for _, w := range g.facts.Webhooks {
		wanted[w.service()] = true
	}
	for _, crd := range g.facts.CRDs {
		wanted[conversionOf(crd).service()] = true
	}
	delete(wanted, types.NamespacedName{}) // of those that call none
	g.facts.Services = map[types.NamespacedName]int{}
	for key := range wanted {
		u, err := g.Get(ctx, g.Kind("Service"), key.Namespace, key.Name)
		switch {
		case err != nil:
			g.facts.Services[key] = -1
		case u != nil:
			g.facts.Services[key] = g.ready(ctx, fetch.As[corev1.Service](u))
		}
	}
}

// ready counts the addresses behind a Service that take requests; -1 where that is not known.
func (g *gatherer) ready(ctx context.Context, service *corev1.Service) int {
	options := metav1.ListOptions{LabelSelector: discoveryv1.LabelServiceName + "=" + service.Name}
	found, err := g.List(ctx, g.Kind("EndpointSlice."+discoveryv1.GroupName), service.Namespace, options)
	if err != nil || service.Spec.ExternalName != "" {
		return -1
	}
	ready := 0
	for i := range found {
		for _, e := range fetch.As[discoveryv1.EndpointSlice](&found[i]).Endpoints {
			if ptr.Deref(e.Conditions.Ready, true) {
				ready += len(e.Addresses)
			}
		}
	}
	return ready
}

// conversionOf is the webhook that converts between the versions of a CRD; it has no Service when none is called for that.
func conversionOf(crd *apiextensionsv1.CustomResourceDefinition) Webhook {
	if crd == nil || crd.Spec.Conversion == nil || crd.Spec.Conversion.Webhook == nil || crd.Spec.Conversion.Webhook.ClientConfig == nil {
		return Webhook{}
	}
	c := crd.Spec.Conversion.Webhook.ClientConfig
	return Webhook{CABundle: c.CABundle, Service: (*admissionregistrationv1.ServiceReference)(c.Service)}
}

// service is what the webhook calls; empty for none.
func (w Webhook) service() types.NamespacedName {
	service := ptr.Deref(w.Service, admissionregistrationv1.ServiceReference{})
	return types.NamespacedName{Namespace: service.Namespace, Name: service.Name}
}

func checkWebhooks(f *Facts, ships Shipped) (problems []Finding, fine string) {
	called := map[string]bool{}
	for _, w := range f.Webhooks {
		called[w.Kind+" "+w.Configuration] = true
		if w.Service != nil {
			called[w.Kind+" "+ptr.Deref(w.Service.Path, "")] = true
			problems = append(problems, f.judgeWebhook(w, ships)...)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(ships.Configurations)) {
		// OLM makes a configuration of another name for each webhook, which calls the same path.
		missing := slices.ContainsFunc(ships.Calls[name], func(call string) bool { return !called[call] })
		component := ships.Configurations[name]
		if f.enabled(component) && !called[name] && missing && len(f.Unread[webhooks]) == 0 {
			problems = append(problems, Finding{Result: Fail, Subject: name, Found: "does not exist, and the component " + component + " is on",
				Why: "what users write is neither validated nor defaulted", Fix: redeploy(f)})
		}
	}
	return problems, fmt.Sprintf("all %d webhooks are reachable", len(f.Webhooks))
}

// judgeWebhook checks one that is called for our kinds, ours or not.
func (f *Facts) judgeWebhook(w Webhook, ships Shipped) []Finding {
	finding := Finding{Result: Fail, Subject: w.Kind + " " + w.Configuration + " (" + w.Name + ")", Fix: redeploy(f)}
	if w.Policy == admissionregistrationv1.Ignore {
		finding.Result = Warn
	}
	shipped := ships.Configurations[w.Kind+" "+w.Configuration] != ""
	if !shipped {
		finding.Fix = "kubectl delete " + strings.ToLower(w.Kind) + " " + w.Configuration + ", if the program that it belonged to is gone"
	}
	if found := f.judgeClient(w, finding); found != nil {
		return found
	}
	if w.Policy == admissionregistrationv1.Ignore && shipped && f.isManager(w.service()) {
		finding.Found, finding.Why = "has failurePolicy Ignore", "what it would refuse or default is let through while the manager is away"
		return []Finding{finding}
	}
	return nil
}

// judgeConversion checks the webhook that converts between the versions of a CRD.
func judgeConversion(f *Facts, crd *apiextensionsv1.CustomResourceDefinition, subject string) []Finding {
	c := conversionOf(crd)
	if c.Service == nil {
		return nil
	}
	return f.judgeClient(c, Finding{
		Result: Fail, Subject: subject + " (conversion)", Why: "objects that are stored in another version than the requested one cannot be read", Fix: installCRDs,
	})
}

// judgeClient completes a finding about a webhook if its Service or a pod behind that is missing, or if the API server would not trust
// the manager there. It returns nil where nothing is wrong.
func (f *Facts) judgeClient(w Webhook, finding Finding) []Finding {
	service, distrust := w.service(), f.distrust(w.CABundle)
	ready, exists := f.Services[service]
	switch {
	case !exists:
		finding.Found = "calls Service " + service.String() + ", which does not exist"
	case ready == 0:
		finding.Found = "calls Service " + service.String() + ", which has no ready pod"
		finding.Fix = "kubectl -n " + service.Namespace + " get pods,endpointslices"
	case f.isManager(service) && distrust != "":
		finding.Found = distrust
		finding.Fix = "kubectl -n " + service.Namespace + " rollout restart deployment " + f.Manager.Deployment.Name +
			": the manager writes the caBundle when it starts; if this does not help, see check rights"
	default:
		return nil
	}
	return []Finding{finding}
}

// isManager tells whether a Service is that of the manager's webhooks.
func (f *Facts) isManager(key types.NamespacedName) bool {
	return f.Manager.Deployment != nil && key.Namespace == f.namespace() && key.Name == webhookService
}

// distrust says why API servers do not trust the manager's own certificate by a bundle; "" when they do, or when the certificate is
// another one and not known.
func (f *Facts) distrust(bundle []byte) string {
	switch {
	case len(bytes.TrimSpace(bundle)) == 0 && f.Certificate == nil:
		return "" // the platform may inject it, or the certificate may be one that every API server trusts
	case len(bytes.TrimSpace(bundle)) == 0:
		return "has no caBundle"
	case !x509.NewCertPool().AppendCertsFromPEM(bundle):
		return "its caBundle holds no certificate"
	case f.Certificate == nil:
		return ""
	}
	if leaf := certs.FirstCertificate(f.Certificate.Data[corev1.TLSCertKey]); leaf != nil && !signedBy(leaf, bundle, f.Now) {
		return "its caBundle does not verify the certificate of the manager"
	}
	return ""
}

func signedBy(leaf *x509.Certificate, bundle []byte, now time.Time) bool {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(bundle)
	_, err := leaf.Verify(x509.VerifyOptions{Roots: roots, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}})
	return err == nil
}

// checkCertificate checks the certificate that the manager issues for itself. Where the platform mounts one there is no such Secret,
// which is right if webhooks know a CA.
func checkCertificate(f *Facts, _ Shipped) (problems []Finding, fine string) {
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

package doctor

import (
	"bytes"
	"context"
	"crypto/x509"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/odh-platform/odh-platform-operator/cmd/kubectl-odh/internal/fetch"
	"github.com/odh-platform/odh-platform-operator/cmd/kubectl-odh/internal/ours"
	"github.com/odh-platform/odh-platform-operator/pkg/certs"
)

// webhooks reads all configurations and keeps the webhooks for our kinds. Both kinds of configuration have the fields that matter in
// the same places.
func (g *gatherer) webhooks(ctx context.Context) {
	groups := map[string]bool{}
	for _, k := range ours.AllKinds() {
		groups[k.Group] = true
	}
	forOurs := func(r admissionregistrationv1.RuleWithOperations) bool {
		return slices.ContainsFunc(r.APIGroups, func(group string) bool { return groups[group] })
	}
	var all []Webhook
	for _, kind := range []string{"MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"} {
		configurations, _ := g.list(ctx, webhooks, admissionregistrationv1.GroupName, kind, "", metav1.ListOptions{})
		for i := range configurations {
			all = append(all, webhooksOf(&configurations[i])...)
		}
	}
	all = slices.DeleteFunc(all, func(w Webhook) bool {
		return g.ships.Configurations[w.Kind+" "+w.Configuration] == "" && !slices.ContainsFunc(w.Rules, forOurs)
	})
	g.put(func(f *Facts) { f.Webhooks = all })
}

func webhooksOf(u *unstructured.Unstructured) []Webhook {
	c := &admissionregistrationv1.ValidatingWebhookConfiguration{}
	if !decode(u, c) {
		return nil
	}
	var out []Webhook
	for _, w := range c.Webhooks {
		policy := ptr.Deref(w.FailurePolicy, admissionregistrationv1.Fail)
		out = append(out, Webhook{u.GetKind(), c.Name, w.Name, policy, w.Rules, w.ClientConfig.CABundle, w.ClientConfig.Service})
	}
	return out
}

// services counts the pods behind what webhooks and conversions call.
func (g *gatherer) services(ctx context.Context) {
	wanted := map[types.NamespacedName]bool{}
	for _, w := range g.facts.Webhooks {
		if w.Service != nil {
			wanted[types.NamespacedName{Namespace: w.Service.Namespace, Name: w.Service.Name}] = true
		}
	}
	for _, crd := range g.facts.CRDs {
		if c := conversionOf(crd); c != nil {
			wanted[types.NamespacedName{Namespace: c.Service.Namespace, Name: c.Service.Name}] = true
		}
	}
	fetch.Each(slices.Collect(maps.Keys(wanted)), func(key types.NamespacedName) {
		service, known := g.get(ctx, webhooks, "", "Service", key.Namespace, key.Name)
		if known && service == nil {
			return
		}
		ready := -1
		if known {
			if external, _, _ := unstructured.NestedString(service.Object, "spec", "externalName"); external == "" {
				ready = g.ready(ctx, key)
			}
		}
		g.put(func(f *Facts) { f.Services[key] = ready })
	})
}

// ready counts the addresses behind a Service that take requests; -1 where they may not be read.
func (g *gatherer) ready(ctx context.Context, service types.NamespacedName) int {
	found, known := g.list(ctx, webhooks, discoveryv1.GroupName, "EndpointSlice", service.Namespace,
		metav1.ListOptions{LabelSelector: discoveryv1.LabelServiceName + "=" + service.Name})
	if !known {
		return -1
	}
	ready := 0
	for i := range found {
		s := &discoveryv1.EndpointSlice{}
		if !decode(&found[i], s) {
			continue
		}
		for _, e := range s.Endpoints {
			if ptr.Deref(e.Conditions.Ready, true) {
				ready += len(e.Addresses)
			}
		}
	}
	return ready
}

// conversionOf is the webhook that converts between the versions of a CRD; nil when no Service is called for it.
func conversionOf(crd *apiextensionsv1.CustomResourceDefinition) *apiextensionsv1.WebhookClientConfig {
	if crd == nil || crd.Spec.Conversion == nil || crd.Spec.Conversion.Webhook == nil {
		return nil
	}
	c := crd.Spec.Conversion.Webhook.ClientConfig
	if c == nil || c.Service == nil {
		return nil
	}
	return c
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
	key := types.NamespacedName{Namespace: w.Service.Namespace, Name: w.Service.Name}
	finding := Finding{Result: Fail, Subject: w.Kind + " " + w.Configuration + " (" + w.Name + ")", Fix: redeploy(f)}
	if w.Policy == admissionregistrationv1.Ignore {
		finding.Result = Warn
	}
	shipped := ships.Configurations[w.Kind+" "+w.Configuration] != ""
	if !shipped {
		finding.Fix = "kubectl delete " + strings.ToLower(w.Kind) + " " + w.Configuration + ", if the program that it belonged to is gone"
	}
	if found := f.judgeClient(key, w.CABundle, finding); found != nil {
		return found
	}
	if w.Policy == admissionregistrationv1.Ignore && shipped && f.isManager(key) {
		finding.Found, finding.Why = "has failurePolicy Ignore", "what it would refuse or default is let through while the manager is away"
		return []Finding{finding}
	}
	return nil
}

// judgeConversion checks the webhook that converts between the versions of a CRD.
func judgeConversion(f *Facts, crd *apiextensionsv1.CustomResourceDefinition, subject string) []Finding {
	c := conversionOf(crd)
	if c == nil {
		return nil
	}
	return f.judgeClient(types.NamespacedName{Namespace: c.Service.Namespace, Name: c.Service.Name}, c.CABundle, Finding{
		Result: Fail, Subject: subject + " (conversion)", Why: "objects that are stored in another version than the requested one cannot be read", Fix: installCRDs,
	})
}

// judgeClient completes a finding about a webhook if its Service or a pod behind that is missing, or if the API server would not trust
// the manager there. It returns nil where nothing is wrong.
func (f *Facts) judgeClient(service types.NamespacedName, caBundle []byte, finding Finding) []Finding {
	ready, exists := f.Services[service]
	distrust := f.distrust(caBundle)
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

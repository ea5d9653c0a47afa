package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
)

// servicePort is the port of the webhook Service that OLM creates.
const servicePort = 443

// webhooks returns the descriptions of all webhooks and conversions for OLM.
func (s *sources) webhooks() ([]v1alpha1.WebhookDescription, error) {
	port, err := s.webhookPort()
	if err != nil {
		return nil, err
	}
	var out []v1alpha1.WebhookDescription
	var errs []error
	for _, c := range s.configurations {
		for _, w := range c.Webhooks {
			d, err := describe(c, w)
			out, errs = append(out, d), append(errs, err)
		}
	}
	out = append(out, s.conversions()...)
	for i := range out {
		if len(out[i].GenerateName) > validation.LabelValueMaxLength {
			errs = append(errs, fmt.Errorf("the name %s of a webhook has more than %d characters: shorten it, because OLM uses it as the value of a label", out[i].GenerateName, validation.LabelValueMaxLength))
		}
		out[i].DeploymentName, out[i].ContainerPort, out[i].TargetPort = s.deployment.Name, servicePort, new(intstr.FromInt32(port))
	}
	return out, errors.Join(errs...)
}

// describe converts a webhook. It omits matchConditions, which OLM does not support: the manager admits the requests that they would exclude,
// see docs/olm.md. A namespaceSelector is an error, because OLM sets its own.
func describe(c admissionregistrationv1.MutatingWebhookConfiguration, w admissionregistrationv1.MutatingWebhook) (v1alpha1.WebhookDescription, error) {
	if w.ClientConfig.Service == nil || w.ClientConfig.Service.Path == nil {
		return v1alpha1.WebhookDescription{}, fmt.Errorf("webhook %s has no Service with a path in its clientConfig: add it", w.Name)
	}
	if w.NamespaceSelector != nil {
		return v1alpha1.WebhookDescription{}, fmt.Errorf("webhook %s has a namespaceSelector: remove it, because OLM sets its own", w.Name)
	}
	kind := v1alpha1.ValidatingAdmissionWebhook
	if c.Kind == "MutatingWebhookConfiguration" {
		kind = v1alpha1.MutatingAdmissionWebhook
	}
	// The API server calls webhooks in the order of the names of their configurations, which OLM derives from GenerateName. The prefix keeps
	// the order, because some webhooks must precede those of Kueue.
	prefix, _, _ := strings.Cut(c.Name, "-")
	return v1alpha1.WebhookDescription{
		GenerateName: prefix + "." + w.Name, Type: kind, Rules: w.Rules, FailurePolicy: w.FailurePolicy, MatchPolicy: w.MatchPolicy,
		ObjectSelector: w.ObjectSelector, SideEffects: w.SideEffects, TimeoutSeconds: w.TimeoutSeconds, ReinvocationPolicy: w.ReinvocationPolicy,
		AdmissionReviewVersions: w.AdmissionReviewVersions, WebhookPath: w.ClientConfig.Service.Path,
	}, nil
}

// conversions describes one webhook for each CRD whose versions are converted.
func (s *sources) conversions() []v1alpha1.WebhookDescription {
	var out []v1alpha1.WebhookDescription
	for _, d := range s.crds {
		if !slices.Contains(s.convertedCRDs(), d.crd.Name) {
			continue
		}
		webhook := d.crd.Spec.Conversion.Webhook
		out = append(out, v1alpha1.WebhookDescription{
			GenerateName: "convert." + d.crd.Name, Type: v1alpha1.ConversionWebhook, ConversionCRDs: []string{d.crd.Name},
			SideEffects: new(admissionregistrationv1.SideEffectClassNone), AdmissionReviewVersions: webhook.ConversionReviewVersions,
			WebhookPath: webhook.ClientConfig.Service.Path,
		})
	}
	return out
}

// webhookPort returns the port "webhook" of the manager's container.
func (s *sources) webhookPort() (int32, error) {
	for _, c := range s.deployment.Spec.Template.Spec.Containers {
		for _, p := range c.Ports {
			if p.Name == "webhook" {
				return p.ContainerPort, nil
			}
		}
	}
	return 0, fmt.Errorf("the Deployment %s has no port named webhook", s.deployment.Name)
}

// setConversionService makes the conversion of a CRD refer to the Service that OLM creates. Conversions fail until OLM writes its own clientConfig.
// With strategy None, the API server would return objects of one version as another without a conversion.
func setConversionService(crd *unstructured.Unstructured, deployment string) error {
	config, found, err := unstructured.NestedMap(crd.Object, "spec", "conversion", "webhook", "clientConfig", "service")
	if err != nil || !found {
		return err
	}
	config["name"] = strings.ReplaceAll(deployment, ".", "-") + "-service"
	return unstructured.SetNestedMap(crd.Object, config, "spec", "conversion", "webhook", "clientConfig", "service")
}

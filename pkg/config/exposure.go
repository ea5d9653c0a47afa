package config

import (
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// Ways to publish servers where OpenShift has no Routes.
const (
	// ExposeAuto publishes what the operators of before published: MLflow behind a Gateway, Ray dashboards by Ingresses, registries, the
	// catalog and models not at all.
	ExposeAuto = "auto"
	// ExposeGateway publishes all of them by HTTPRoutes, with TLS to the servers behind the Gateway.
	ExposeGateway = "gateway"
	// ExposeIngress publishes all of them by Ingresses.
	ExposeIngress = "ingress"
)

// Exposure says how servers are published where OpenShift has no Routes.
type Exposure struct {
	// Kind is one of the constants above.
	Kind string
	// IngressClass is the class of Ingresses; empty is that of the cluster.
	IngressClass string
	// IngressDomain is the domain below which each server has a host.
	IngressDomain string
	// IngressAnnotations are those of every Ingress.
	IngressAnnotations map[string]string
}

// Gateway reports whether HTTPRoutes publish the servers, and policies let the Gateway trust them.
func (e Exposure) Gateway() bool { return e.Kind == ExposeGateway }

// Ingress reports whether Ingresses publish the servers.
func (e Exposure) Ingress() bool { return e.Kind == ExposeIngress }

func exposureSettings(e *Exposure) []setting {
	return []setting{
		{flag: "exposure", env: []string{"EXPOSURE"}, key: "exposure.kind", fallback: ExposeAuto, set: oneOf(&e.Kind, ExposeAuto, ExposeGateway, ExposeIngress),
			help: "how MLflow, registries, the catalog, models of ModelMesh and Ray dashboards are published, except on OpenShift: auto (MLflow by an HTTPRoute, Ray dashboards by Ingresses below raycluster.ingressDomain, the others not), gateway (all by HTTPRoutes, with a BackendTLSPolicy) or ingress (all by Ingresses)"},
		{flag: "ingress-class", env: []string{"INGRESS_CLASS"}, key: "exposure.ingressClass", set: optional(subdomain, &e.IngressClass),
			help: "class of Ingresses; if empty, the default class of the cluster"},
		{flag: "ingress-domain", env: []string{"INGRESS_DOMAIN"}, key: "exposure.ingressDomain", set: domain(&e.IngressDomain),
			help: "domain of the hosts of Ingresses, for example apps.example.org"},
		{flag: "ingress-annotations", env: []string{"INGRESS_ANNOTATIONS"}, key: "exposure.ingressAnnotations", shape: aList, set: e.setAnnotations,
			help: "annotations of Ingresses, as a list of key=value"},
	}
}

// setAnnotations reads a comma-separated list of key=value. What has no = belongs to the value before it, because a value may have commas.
func (e *Exposure) setAnnotations(raw string) error {
	e.IngressAnnotations = nil
	last := ""
	for part := range strings.SplitSeq(raw, ",") {
		key, value, isPair := strings.Cut(strings.TrimSpace(part), "=")
		switch {
		case isPair && len(validation.IsQualifiedName(key)) == 0:
			if e.IngressAnnotations == nil {
				e.IngressAnnotations = map[string]string{}
			}
			e.IngressAnnotations[key], last = value, key
		case last != "":
			e.IngressAnnotations[last] += "," + part
		case strings.TrimSpace(part) != "":
			return errors.New("must be a list such as cert-manager.io/cluster-issuer=letsencrypt")
		}
	}
	return nil
}

func (e Exposure) validate() error {
	if e.Ingress() && e.IngressDomain == "" {
		return fmt.Errorf("--exposure=%s needs a domain for the hosts of Ingresses: set --ingress-domain, INGRESS_DOMAIN or exposure.ingressDomain", ExposeIngress)
	}
	return nil
}

package config

import (
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// Kinds of exposure on platforms other than OpenShift.
const (
	// ExposeAuto exposes the servers that the legacy operators exposed: MLflow by an HTTPRoute and Ray dashboards by Ingresses, but not
	// registries, the catalog and models.
	ExposeAuto = "auto"
	// ExposeGateway exposes all servers by HTTPRoutes, with TLS between Gateway and servers.
	ExposeGateway = "gateway"
	// ExposeIngress exposes all servers by Ingresses.
	ExposeIngress = "ingress"
)

// Exposure configures how servers are exposed on platforms other than OpenShift.
type Exposure struct {
	// Kind is one of the constants above.
	Kind string
	// IngressClass is the class of Ingresses; empty means the default class of the cluster.
	IngressClass string
	// IngressDomain is the parent domain of the hosts.
	IngressDomain string
	// IngressAnnotations are added to every Ingress.
	IngressAnnotations map[string]string
}

// Gateway reports whether HTTPRoutes with BackendTLSPolicies expose the servers.
func (e Exposure) Gateway() bool { return e.Kind == ExposeGateway }

// Ingress reports whether Ingresses expose the servers.
func (e Exposure) Ingress() bool { return e.Kind == ExposeIngress }

func exposureSettings(e *Exposure) []setting {
	return []setting{
		{flag: "exposure", env: []string{"EXPOSURE"}, key: "exposure.kind", defaultValue: ExposeAuto, set: oneOf(&e.Kind, ExposeAuto, ExposeGateway, ExposeIngress),
			help: "how MLflow, registries, the catalog, models of ModelMesh and Ray dashboards are published, except on OpenShift: auto (MLflow by an HTTPRoute, Ray dashboards by Ingresses below raycluster.ingressDomain, the others not), gateway (all by HTTPRoutes, with a BackendTLSPolicy) or ingress (all by Ingresses)"},
		{flag: "ingress-class", env: []string{"INGRESS_CLASS"}, key: "exposure.ingressClass", set: optional(subdomain, &e.IngressClass),
			help: "class of Ingresses; if empty, the default class of the cluster"},
		{flag: "ingress-domain", env: []string{"INGRESS_DOMAIN"}, key: "exposure.ingressDomain", set: domain(&e.IngressDomain),
			help: "domain of the hosts of Ingresses, for example apps.example.org"},
		{flag: "ingress-annotations", env: []string{"INGRESS_ANNOTATIONS"}, key: "exposure.ingressAnnotations", valueType: typeList, set: e.setAnnotations,
			help: "annotations of Ingresses, as a list of key=value"},
	}
}

// setAnnotations parses a list of key=value. An item without = continues the previous value, because values may contain commas.
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

package config

import (
	"errors"
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
	Kind string `flag:"exposure" env:"EXPOSURE" key:"exposure.kind" default:"auto" oneof:"auto gateway ingress" help:"how MLflow, registries, the catalog, models of ModelMesh and Ray dashboards are published, except on OpenShift: auto (MLflow by an HTTPRoute, Ray dashboards by Ingresses below raycluster.ingressDomain, the others not), gateway (all by HTTPRoutes, with a BackendTLSPolicy) or ingress (all by Ingresses)"`
	// IngressClass is the class of Ingresses; empty means the default class of the cluster.
	IngressClass string `flag:"ingress-class" env:"INGRESS_CLASS" key:"exposure.ingressClass" parse:"subdomain?" help:"class of Ingresses; if empty, the default class of the cluster"`
	// IngressDomain is the parent domain of the hosts.
	IngressDomain string `flag:"ingress-domain" env:"INGRESS_DOMAIN" key:"exposure.ingressDomain" parse:"domain" help:"domain of the hosts of Ingresses, for example apps.example.org"`
	// IngressAnnotations are added to every Ingress.
	IngressAnnotations map[string]string `flag:"ingress-annotations" env:"INGRESS_ANNOTATIONS" key:"exposure.ingressAnnotations" help:"annotations of Ingresses, as a list of key=value"`
}

// UsesGateway reports whether HTTPRoutes with BackendTLSPolicies expose the servers.
func (e Exposure) UsesGateway() bool { return e.Kind == ExposeGateway }

// UsesIngress reports whether Ingresses expose the servers.
func (e Exposure) UsesIngress() bool { return e.Kind == ExposeIngress }

// keyValues parses a list of key=value. An item that does not begin with a key and = continues the previous value, which may have commas.
func keyValues(dst *map[string]string) func(string) error {
	return func(raw string) error {
		*dst = nil
		last := ""
		for part := range strings.SplitSeq(raw, ",") {
			key, value, isPair := strings.Cut(strings.TrimSpace(part), "=")
			switch {
			case isPair && len(validation.IsQualifiedName(key)) == 0:
				if *dst == nil {
					*dst = map[string]string{}
				}
				(*dst)[key], last = value, key
			case last != "":
				(*dst)[last] += "," + part
			case strings.TrimSpace(part) != "":
				return errors.New("must be a list such as cert-manager.io/cluster-issuer=letsencrypt")
			}
		}
		return nil
	}
}

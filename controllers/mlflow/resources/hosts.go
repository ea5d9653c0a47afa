package resources

import (
	"fmt"
	"net/url"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
	"github.com/odh-platform/odh-platform-operator/pkg/servingcert"
)

// anyHost makes the server answer under every name.
const anyHost = "*"

// allowedHosts are the values of the Host header to which the server answers.
// MLflow compares the header as a whole, so each name stands there with and
// without the port. Without a list of the user there is no limit.
func allowedHosts(m *mlflowv1.MLflow, in Inputs, s Server) []string {
	if len(m.Spec.AllowedHosts) == 0 || slices.Contains(m.Spec.AllowedHosts, anyHost) {
		return []string{anyHost}
	}
	var hosts []string
	add := func(host string) {
		if host != "" && !slices.Contains(hosts, host) {
			hosts = append(hosts, host)
		}
	}
	for _, name := range servingcert.DNSNames(s.Name, in.Namespace) {
		add(name)
		add(fmt.Sprintf("%s:%d", name, port))
	}
	if base, err := url.Parse(in.ExternalURL); err == nil {
		add(base.Host)
	}
	for _, host := range m.Spec.AllowedHosts {
		add(string(host))
	}
	return hosts
}

// probe asks an unauthenticated path below the static prefix. Times are in
// seconds. The kubelet calls by the address of the pod, so where names are
// limited it has to claim one that is allowed.
func probe(m *mlflowv1.MLflow, in Inputs, s Server, path string, delay, period int32) *corev1ac.ProbeApplyConfiguration {
	get := corev1ac.HTTPGetAction().
		WithPath(s.prefix + path).
		WithPort(intstr.FromString(portName)).
		WithScheme(corev1.URISchemeHTTPS)
	if hosts := allowedHosts(m, in, s); hosts[0] != anyHost {
		get.WithHTTPHeaders(corev1ac.HTTPHeader().WithName("Host").WithValue(hosts[0]))
	}
	checked := corev1ac.Probe().
		WithHTTPGet(get).
		WithPeriodSeconds(period).
		WithTimeoutSeconds(1).
		WithSuccessThreshold(1).
		WithFailureThreshold(3)
	if delay > 0 {
		checked.WithInitialDelaySeconds(delay)
	}
	return checked
}

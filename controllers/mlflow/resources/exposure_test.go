package resources

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"

	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/config"
	"github.com/odh-platform/odh-platform-operator/test/mlflowtest"
)

// Exposure.Kind selects the API that publishes the server.
func TestExposure(t *testing.T) {
	ingress := config.Exposure{Kind: config.ExposeIngress, IngressDomain: "apps.example.org"}
	issued := map[string][]byte{"mlflow": []byte("PEM")}
	for name, c := range map[string]struct {
		in   Inputs
		want []string
		url  string
	}{
		"auto":            {platformInputs["plain"], []string{"HTTPRoute/mlflow"}, "https://gateway.apps.example.com/mlflow"},
		"no exposure API": {platformInputs["bare"], nil, ""},
		"gateway": {withCommonInputs(Inputs{Served: capability.NewSet(capability.HTTPRoute, capability.BackendTLSPolicy), Authorities: issued, Exposure: config.Exposure{Kind: config.ExposeGateway}}),
			[]string{"HTTPRoute/mlflow", "ConfigMap/mlflow-ca", "BackendTLSPolicy/mlflow-ca"}, "https://gateway.apps.example.com/mlflow"},
		"gateway, certificate of a user": {withCommonInputs(Inputs{Served: capability.NewSet(capability.HTTPRoute, capability.BackendTLSPolicy), Exposure: config.Exposure{Kind: config.ExposeGateway}}),
			[]string{"HTTPRoute/mlflow"}, "https://gateway.apps.example.com/mlflow"},
		"gateway without the BackendTLSPolicy API": {withCommonInputs(Inputs{Served: capability.NewSet(capability.HTTPRoute), Authorities: issued, Exposure: config.Exposure{Kind: config.ExposeGateway}}),
			[]string{"HTTPRoute/mlflow"}, "https://gateway.apps.example.com/mlflow"},
		"ingress": {withCommonInputs(Inputs{Served: capability.NewSet(capability.HTTPRoute, capability.BackendTLSPolicy), Authorities: issued, Exposure: ingress}), []string{"Ingress/mlflow"}, "https://gateway.apps.example.com/mlflow"},
	} {
		t.Run(name, func(t *testing.T) {
			m := mlflowtest.MLflow()
			var got []string
			for _, o := range buildObjects(t, m, c.in) {
				if slices.Contains([]string{"HTTPRoute", "Ingress", "ConfigMap", "BackendTLSPolicy"}, o.GetKind()) {
					got = append(got, o.GetKind()+"/"+o.GetName())
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("objects (-want +got):\n%s", diff)
			}
			if got := ExternalURL(m, c.in); got != c.url {
				t.Errorf("got URL %q, want %q", got, c.url)
			}
		})
	}
}

// Outside of OpenShift, Prometheus verifies only certificates that the operator issued: the Secret of a user may have no ca.crt.
func TestServiceMonitorVerifies(t *testing.T) {
	for name, c := range map[string]struct {
		authorities map[string][]byte
		insecure    bool
	}{
		"certificate of the operator": {map[string][]byte{"mlflow": []byte("PEM")}, false},
		"certificate of a user":       {map[string][]byte{"mlflow": nil}, true},
	} {
		t.Run(name, func(t *testing.T) {
			in := withCommonInputs(Inputs{Served: capability.NewSet(capability.ServiceMonitor), Authorities: c.authorities})
			tls := typed[monitoringv1.ServiceMonitor](t, mlflowtest.MLflow(func(*mlflowv1.MLflowSpec) {}), in, "ServiceMonitor", "mlflow-metrics-monitor").Spec.Endpoints[0].TLSConfig
			if insecure := tls.InsecureSkipVerify != nil && *tls.InsecureSkipVerify; insecure != c.insecure {
				t.Errorf("insecureSkipVerify = %t, want %t", insecure, c.insecure)
			}
			if !c.insecure && (tls.CA.Secret == nil || tls.CA.Secret.Name != "mlflow-tls" || tls.CA.Secret.Key != "ca.crt" || *tls.ServerName != "mlflow.opendatahub.svc") {
				t.Errorf("unexpected tlsConfig: %+v", tls)
			}
		})
	}
}

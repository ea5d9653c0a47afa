package resources

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/yaml"
)

var ingressMeta = metav1.ObjectMeta{Name: "shop", Namespace: "ns", Labels: map[string]string{"a": "b"}}

func asYAML(t *testing.T, object any) string {
	t.Helper()
	text, err := yaml.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestIngress(t *testing.T) {
	for name, c := range map[string]struct {
		published   Published
		class       string
		annotations map[string]string
		want        string
	}{
		"server without TLS": {Published{Service: "shop", Port: intstr.FromInt32(80), Host: "shop.example.org"}, "", nil, `apiVersion: networking.k8s.io/v1
kind: Ingress
metadata:
  labels:
    a: b
    platform.opendatahub.io/host: shop.example.org
  name: shop
  namespace: ns
spec:
  rules:
  - host: shop.example.org
    http:
      paths:
      - backend:
          service:
            name: shop
            port:
              number: 80
        path: /
        pathType: Prefix
  tls:
  - hosts:
    - shop.example.org
`},
		"server with TLS, class and cert-manager": {
			Published{Service: "shop", Port: intstr.FromString("https"), Host: "shop.example.org", ServerName: "shop.ns.svc"},
			"edge", map[string]string{"cert-manager.io/cluster-issuer": "ours"}, `apiVersion: networking.k8s.io/v1
kind: Ingress
metadata:
  annotations:
    cert-manager.io/cluster-issuer: ours
    nginx.ingress.kubernetes.io/backend-protocol: HTTPS
  labels:
    a: b
    platform.opendatahub.io/host: shop.example.org
  name: shop
  namespace: ns
spec:
  ingressClassName: edge
  rules:
  - host: shop.example.org
    http:
      paths:
      - backend:
          service:
            name: shop
            port:
              name: https
        path: /
        pathType: Prefix
  tls:
  - hosts:
    - shop.example.org
    secretName: shop-ingress-tls
`},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, asYAML(t, c.published.Ingress(ingressMeta, c.class, c.annotations))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestBackendTLS(t *testing.T) {
	var got string
	for _, o := range (Published{Service: "shop", ServerName: "shop.ns.svc"}).BackendTLS(ingressMeta, []byte("PEM")) {
		got += asYAML(t, o) + "---\n"
	}
	const want = `apiVersion: v1
data:
  ca.crt: PEM
kind: ConfigMap
metadata:
  labels:
    a: b
  name: shop
  namespace: ns
---
apiVersion: gateway.networking.k8s.io/v1
kind: BackendTLSPolicy
metadata:
  labels:
    a: b
  name: shop
  namespace: ns
spec:
  targetRefs:
  - group: ""
    kind: Service
    name: shop
  validation:
    caCertificateRefs:
    - group: ""
      kind: ConfigMap
      name: shop
    hostname: shop.ns.svc
---
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

package raycluster

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/odh-platform/odh-platform-operator/pkg/config"
)

const (
	podIssuedSpec    = "{headGroupSpec: {template: {spec: {volumes: [{name: ca-vol, secret: {secretName: ca-secret-}}, {name: server-cert, emptyDir: {}}]}}}}"
	secretIssuedSpec = "{headGroupSpec: {template: {spec: {volumes: [{name: ca-vol, secret: {secretName: ca-secret-}}, {name: server-cert, secret: {secretName: s}}]}}}}"
)

func TestDecide(t *testing.T) {
	all := config.RayCluster{OAuth: true, MTLS: true}
	trusting := config.RayCluster{OAuth: true, MTLS: true, KubeRaySecurity: config.KubeRaySecurityTrust}
	openShift, plain, withoutOAuthServer := Platform{OpenShift: true, OAuthServer: true}, Platform{}, Platform{OpenShift: true}
	secured := Platform{OpenShift: true, OAuthServer: true, KubeRaySecures: true}
	for name, test := range map[string]struct {
		settings          config.RayCluster
		platform          Platform
		cluster, previous string
		want              Mode
	}{
		"OpenShift":                                           {all, openShift, "{}", "{}", Mode{Auth: AuthOAuth, MTLS: true, Issuer: IssuerOperator, Policies: true}},
		"plain, R16":                                          {all, plain, "{}", "{}", Mode{Auth: AuthProxy, MTLS: true, Issuer: IssuerOperator, Policies: true}},
		"OpenShift without OAuth":                             {all, withoutOAuthServer, "{}", "{}", Mode{Auth: AuthProxy, MTLS: true, Issuer: IssuerOperator, Policies: true}},
		"all features disabled":                               {config.RayCluster{}, openShift, "{}", "{}", Mode{Policies: true}},
		"terminating, R29":                                    {all, openShift, "{}", "metadata: {deletionTimestamp: '2026-01-01T00:00:00Z'}", Mode{Skip: "it is being deleted"}},
		"deletionTimestamp of the user":                       {all, openShift, "metadata: {deletionTimestamp: '2026-01-01T00:00:00Z'}", "{}", Mode{Auth: AuthOAuth, MTLS: true, Issuer: IssuerOperator, Policies: true}},
		"[R23] managed by MultiKueue":                         {all, openShift, "spec: {managedBy: kueue.x-k8s.io/multikueue}", "{}", Mode{Skip: "spec.managedBy gives it to kueue.x-k8s.io/multikueue"}},
		"Ray token, KubeRay is trusted":                       {trusting, openShift, "spec: {authOptions: {mode: token}}", "{}", Mode{Auth: AuthRay, MTLS: true, Issuer: IssuerOperator, Policies: true}},
		"Ray token":                                           {all, openShift, "spec: {authOptions: {mode: token}}", "{}", Mode{Auth: AuthOAuth, MTLS: true, Issuer: IssuerOperator, Policies: true}},
		"Ray token, OAuth disabled":                           {config.RayCluster{KubeRaySecurity: config.KubeRaySecurityTrust}, openShift, "spec: {authOptions: {mode: token}}", "{}", Mode{Policies: true}},
		"certificates of KubeRay":                             {all, openShift, "spec: {tlsOptions: {enabled: true}}", "{}", Mode{Auth: AuthOAuth, Policies: true}},
		"policies of KubeRay":                                 {all, openShift, "spec: {networkPolicy: {mode: DenyAll}}", "{}", Mode{Auth: AuthOAuth, MTLS: true, Issuer: IssuerOperator, Policies: true}},
		"policies of KubeRay, trusted":                        {trusting, openShift, "spec: {networkPolicy: {mode: DenyAll}}", "{}", Mode{Auth: AuthOAuth, MTLS: true, Issuer: IssuerOperator}},
		"secured by KubeRay":                                  {all, secured, "{}", "{}", Mode{ByKubeRay: true}},
		"secured by KubeRay, with injected certificates":      {all, secured, "{}", "spec: " + secretIssuedSpec, Mode{ByKubeRay: true}},
		"secured by KubeRay with a token, trusted":            {trusting, secured, "spec: {authOptions: {mode: token}}", "{}", Mode{ByKubeRay: true}},
		"secured by KubeRay, publish is open":                 {config.RayCluster{Publish: config.PublishOpen}, secured, "{}", "{}", Mode{ByKubeRay: true}},
		"secured by KubeRay and managed by MultiKueue":        {all, secured, "spec: {managedBy: kueue.x-k8s.io/multikueue}", "{}", Mode{Skip: "spec.managedBy gives it to kueue.x-k8s.io/multikueue"}},
		"annotation and finalizer of KubeRay":                 {all, openShift, "metadata: {annotations: {odh.ray.io/secure-trusted-network: 'true'}, finalizers: [ray.io/authentication-resources]}", "{}", Mode{Auth: AuthOAuth, MTLS: true, Issuer: IssuerOperator, Policies: true}},
		"issuer pod by setting":                               {config.RayCluster{MTLS: true, Certificates: string(IssuerPod)}, openShift, "{}", "{}", Mode{MTLS: true, Issuer: IssuerPod, Policies: true}},
		"annotation overrides setting":                        {config.RayCluster{MTLS: true, Certificates: string(IssuerPod)}, openShift, "metadata: {annotations: {ray.openshift.ai/certificates: cert-manager}}", "{}", Mode{MTLS: true, Issuer: IssuerCertManager, Policies: true}},
		"invalid annotation":                                  {config.RayCluster{MTLS: true, Certificates: string(IssuerPod)}, openShift, "metadata: {annotations: {ray.openshift.ai/certificates: x}}", "{}", Mode{MTLS: true, Issuer: IssuerPod, Policies: true}},
		"invalid setting":                                     {config.RayCluster{MTLS: true, Certificates: "x"}, openShift, "{}", "{}", Mode{MTLS: true, Issuer: IssuerOperator, Policies: true}},
		"stored with pod-issued certificates":                 {config.RayCluster{MTLS: true}, openShift, "metadata: {annotations: {ray.openshift.ai/certificates: operator}}", "spec: " + podIssuedSpec, Mode{MTLS: true, Issuer: IssuerPod, Policies: true}},
		"stored with certificates from Secrets":               {config.RayCluster{MTLS: true, Certificates: string(IssuerPod)}, openShift, "{}", "spec: " + secretIssuedSpec, Mode{MTLS: true, Issuer: IssuerOperator, Policies: true}},
		"stored with certificates from Secrets, other issuer": {config.RayCluster{MTLS: true, Certificates: string(IssuerCertManager)}, openShift, "{}", "spec: " + secretIssuedSpec, Mode{MTLS: true, Issuer: IssuerCertManager, Policies: true}},
		"ServiceAccount is kept, R30": {
			config.RayCluster{OAuth: true}, openShift,
			"metadata: {name: c, annotations: {ray.openshift.ai/keep-service-account: 'true'}}\nspec: {headGroupSpec: {template: {spec: {serviceAccountName: mine}}}}",
			"{}", Mode{Auth: AuthOAuth, KeepsServiceAccount: true, Policies: true},
		},
		"overwritten ServiceAccount is kept": {
			config.RayCluster{OAuth: true}, openShift,
			"metadata: {name: c, annotations: {ray.openshift.ai/keep-service-account: 'true', ray.openshift.ai/service-account: mine}}\n" +
				"spec: {headGroupSpec: {template: {spec: {serviceAccountName: c-oauth-proxy}}}}",
			"{}", Mode{Auth: AuthOAuth, KeepsServiceAccount: true, Policies: true},
		},
		"no ServiceAccount to keep": {
			config.RayCluster{OAuth: true}, openShift,
			"metadata: {name: c, annotations: {ray.openshift.ai/keep-service-account: 'true'}}", "{}", Mode{Auth: AuthOAuth, Policies: true},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := Decide(test.settings, test.platform, clusterOf(t, test.cluster), clusterOf(t, test.previous))
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if got.Active() != (test.want.Skip == "") {
				t.Errorf("Active returned %t for skip %q", got.Active(), test.want.Skip)
			}
		})
	}
}

// Injected elements are recognized by name and content.
func TestInjected(t *testing.T) {
	const authority = "{name: ca-vol, secret: {secretName: ca-secret-c}}"
	head := func(containers, volumes string) string {
		return "containers: [" + containers + "]\nvolumes: [" + volumes + "]"
	}
	rules := "{name: kube-rbac-proxy-config, configMap: {name: c-proxy-config}}"
	proxy := "{name: kube-rbac-proxy, volumeMounts: [{name: proxy-tls-secret}, {name: kube-rbac-proxy-config}]}"
	for name, test := range map[string]struct {
		pod  string
		want Injected
	}{
		"empty object":                   {"{}", Injected{}},
		"issued by the pod":              {head("", authority+", {name: server-cert, emptyDir: {}}"), Injected{MTLS: true, PodIssued: true}},
		"from Secrets":                   {head("", authority+", {name: server-cert, secret: {secretName: s}}"), Injected{MTLS: true}},
		"encrypted":                      {head("{name: ray, env: [{name: RAY_USE_TLS, value: '1'}]}", authority+", {name: server-cert, emptyDir: {}}"), Injected{MTLS: true, PodIssued: true, Encrypted: true}},
		"contradictory variables":        {head("{name: ray, env: [{name: RAY_USE_TLS, value: '1'}, {name: RAY_USE_TLS, value: '0'}]}", authority+", {name: server-cert, emptyDir: {}}"), Injected{MTLS: true, PodIssued: true}},
		"certificates of the user":       {head("{name: ray, env: [{name: RAY_USE_TLS, value: '1'}]}", "{name: server-cert, emptyDir: {}}"), Injected{}},
		"CA of the user":                 {head("", "{name: ca-vol, secret: {secretName: mine}}, {name: server-cert, emptyDir: {}}"), Injected{}},
		"OAuth":                          {head("{name: ray}, {name: oauth-proxy, args: [a, --openshift-service-account=c-oauth-proxy]}", ""), Injected{Sidecar: AuthOAuth}},
		"oauth-proxy of the user":        {head("{name: ray}, {name: oauth-proxy, args: [--openshift-service-account=mine]}", ""), Injected{}},
		"oauth-proxy without arguments":  {head("{name: ray}, {name: oauth-proxy}", ""), Injected{}},
		"kube-rbac-proxy":                {head("1, "+proxy, rules+", {name: oauth-proxy-token, projected: {}}"), Injected{Sidecar: AuthProxy, HasTokenVolume: true}},
		"kube-rbac-proxy of the user":    {head(proxy, "{name: kube-rbac-proxy-config, configMap: {name: mine}}, {name: oauth-proxy-token}"), Injected{}},
		"kube-rbac-proxy without mounts": {head("{name: kube-rbac-proxy}", rules), Injected{}},
		"kube-rbac-proxy of KubeRay":     {head("{name: ray}, {name: kube-rbac-proxy, volumeMounts: [{name: kube-rbac-proxy-config-c}]}", "{name: kube-rbac-proxy-config-c, configMap: {name: kube-rbac-proxy-config-c}}"), Injected{}},
		"collector of KubeRay":           {head("{name: ray, env: [{name: RAY_USE_TLS, value: '1'}]}, {name: ray-history-collector}", authority+", {name: server-cert, secret: {secretName: s}}"), Injected{MTLS: true, Encrypted: true}},
		"token authentication":           {head("{name: ray, env: [{name: RAY_AUTH_MODE, value: token}]}", ""), Injected{RayToken: true}},
		"variable in another container":  {head("{name: ray}, {name: b, env: [{name: RAY_AUTH_MODE, value: token}]}", ""), Injected{}},
		"contradictory auth modes":       {head("{name: ray, env: [{name: RAY_AUTH_MODE, value: token}, {name: RAY_AUTH_MODE, value: disabled}]}", ""), Injected{}},
		"variable from a source":         {head("{name: ray, env: [{name: RAY_AUTH_MODE, valueFrom: {}}]}", ""), Injected{}},
	} {
		t.Run(name, func(t *testing.T) {
			c := clusterOf(t, "metadata: {name: c}")
			pod := clusterOf(t, test.pod).Object()
			if diff := cmp.Diff(test.want, c.InjectedInto(pod)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// If the head pods are not recreated, their injections are kept, and only a sidecar is added.
func TestKeepForRunningPods(t *testing.T) {
	desired := Mode{Auth: AuthOAuth, MTLS: true, Issuer: IssuerCertManager, Policies: true}
	none := clusterOf(t, "metadata: {name: c}")
	const volumes = "[{name: ca-vol, secret: {secretName: ca-secret-c}}, {name: server-cert, %s}]"
	full := func(server string) Cluster {
		return clusterOf(t, "metadata: {name: c}\nspec: {headGroupSpec: {template: {spec: {containers: [{name: ray}, "+
			"{name: oauth-proxy, args: [--openshift-service-account=c-oauth-proxy]}], volumes: "+fmt.Sprintf(volumes, server)+"}}}}")
	}
	for name, test := range map[string]struct {
		mode   Mode
		stored Cluster
		want   Mode
	}{
		"enabled by the settings":              {desired, none, Mode{Auth: AuthOAuth, Policies: true}},
		"disabled by the settings":             {Mode{Policies: true}, full("secret: {}"), Mode{Auth: AuthOAuth, MTLS: true, Issuer: IssuerOperator, Policies: true}},
		"issued by the pod":                    {Mode{}, full("emptyDir: {}"), Mode{Auth: AuthOAuth, MTLS: true, Issuer: IssuerPod}},
		"pods have the desired mode":           {desired, full("secret: {}"), desired},
		"pods have no injection, none desired": {Mode{}, none, Mode{}},
		"Ray token instead of the sidecar":     {Mode{Auth: AuthRay}, full("secret: {}"), Mode{Auth: AuthOAuth, MTLS: true, Issuer: IssuerOperator}},
	} {
		if diff := cmp.Diff(test.want, test.mode.KeepForRunningPods(test.stored, test.stored)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

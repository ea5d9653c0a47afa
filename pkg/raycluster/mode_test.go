package raycluster

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/odh-platform/odh-platform-operator/pkg/config"
)

const (
	podForm    = "{headGroupSpec: {template: {spec: {volumes: [{name: ca-vol, secret: {secretName: ca-secret-}}, {name: server-cert, emptyDir: {}}]}}}}"
	secretForm = "{headGroupSpec: {template: {spec: {volumes: [{name: ca-vol, secret: {secretName: ca-secret-}}, {name: server-cert, secret: {secretName: s}}]}}}}"
)

func TestDecide(t *testing.T) {
	all := config.RayCluster{OAuth: true, MTLS: true}
	trusting := config.RayCluster{OAuth: true, MTLS: true, KubeRaySecurity: config.KubeRaySecurityTrust}
	shift, plain, oidc := Platform{OpenShift: true, OAuthServer: true}, Platform{}, Platform{OpenShift: true}
	secured := Platform{OpenShift: true, OAuthServer: true, KubeRaySecures: true}
	for name, test := range map[string]struct {
		wishes            config.RayCluster
		platform          Platform
		cluster, previous string
		want              Mode
	}{
		"OpenShift":                                      {all, shift, "{}", "{}", Mode{Auth: AuthOAuth, MTLS: true, Issuer: IssuerOperator, Policies: true}},
		"plain, R16":                                     {all, plain, "{}", "{}", Mode{Auth: AuthProxy, MTLS: true, Issuer: IssuerOperator, Policies: true}},
		"OpenShift without OAuth":                        {all, oidc, "{}", "{}", Mode{Auth: AuthProxy, MTLS: true, Issuer: IssuerOperator, Policies: true}},
		"all features disabled":                          {config.RayCluster{}, shift, "{}", "{}", Mode{Policies: true}},
		"deleted, R29":                                   {all, shift, "{}", "metadata: {deletionTimestamp: '2026-01-01T00:00:00Z'}", Mode{Skip: "it is being deleted"}},
		"pretends to be deleted":                         {all, shift, "metadata: {deletionTimestamp: '2026-01-01T00:00:00Z'}", "{}", Mode{Auth: AuthOAuth, MTLS: true, Issuer: IssuerOperator, Policies: true}},
		"[R23] managed by MultiKueue":                    {all, shift, "spec: {managedBy: kueue.x-k8s.io/multikueue}", "{}", Mode{Skip: "spec.managedBy gives it to kueue.x-k8s.io/multikueue"}},
		"token of Ray, trusted":                          {trusting, shift, "spec: {authOptions: {mode: token}}", "{}", Mode{Auth: AuthRay, MTLS: true, Issuer: IssuerOperator, Policies: true}},
		"token of Ray":                                   {all, shift, "spec: {authOptions: {mode: token}}", "{}", Mode{Auth: AuthOAuth, MTLS: true, Issuer: IssuerOperator, Policies: true}},
		"token of Ray, and no wish":                      {config.RayCluster{KubeRaySecurity: config.KubeRaySecurityTrust}, shift, "spec: {authOptions: {mode: token}}", "{}", Mode{Policies: true}},
		"certificates of KubeRay":                        {all, shift, "spec: {tlsOptions: {enabled: true}}", "{}", Mode{Auth: AuthOAuth, Policies: true}},
		"policies of KubeRay":                            {all, shift, "spec: {networkPolicy: {mode: DenyAll}}", "{}", Mode{Auth: AuthOAuth, MTLS: true, Issuer: IssuerOperator, Policies: true}},
		"policies of KubeRay, trusted":                   {trusting, shift, "spec: {networkPolicy: {mode: DenyAll}}", "{}", Mode{Auth: AuthOAuth, MTLS: true, Issuer: IssuerOperator}},
		"KubeRay of the platform":                        {all, secured, "{}", "{}", Mode{ByKubeRay: true}},
		"secured by KubeRay, with injected certificates": {all, secured, "{}", "spec: " + secretForm, Mode{ByKubeRay: true}},
		"secured by KubeRay with a token, trusted":       {trusting, secured, "spec: {authOptions: {mode: token}}", "{}", Mode{ByKubeRay: true}},
		"secured by KubeRay, publish is open":            {config.RayCluster{Publish: config.PublishOpen}, secured, "{}", "{}", Mode{ByKubeRay: true}},
		"secured by KubeRay and managed by MultiKueue":   {all, secured, "spec: {managedBy: kueue.x-k8s.io/multikueue}", "{}", Mode{Skip: "spec.managedBy gives it to kueue.x-k8s.io/multikueue"}},
		"claims to be secured":                           {all, shift, "metadata: {annotations: {odh.ray.io/secure-trusted-network: 'true'}, finalizers: [ray.io/authentication-resources]}", "{}", Mode{Auth: AuthOAuth, MTLS: true, Issuer: IssuerOperator, Policies: true}},
		"setting pod":                                    {config.RayCluster{MTLS: true, Certificates: string(IssuerPod)}, shift, "{}", "{}", Mode{MTLS: true, Issuer: IssuerPod, Policies: true}},
		"annotation over setting":                        {config.RayCluster{MTLS: true, Certificates: string(IssuerPod)}, shift, "metadata: {annotations: {ray.openshift.ai/certificates: cert-manager}}", "{}", Mode{MTLS: true, Issuer: IssuerCertManager, Policies: true}},
		"annotation unknown":                             {config.RayCluster{MTLS: true, Certificates: string(IssuerPod)}, shift, "metadata: {annotations: {ray.openshift.ai/certificates: x}}", "{}", Mode{MTLS: true, Issuer: IssuerPod, Policies: true}},
		"setting unknown":                                {config.RayCluster{MTLS: true, Certificates: "x"}, shift, "{}", "{}", Mode{MTLS: true, Issuer: IssuerOperator, Policies: true}},
		"exists in the legacy form":                      {config.RayCluster{MTLS: true}, shift, "metadata: {annotations: {ray.openshift.ai/certificates: operator}}", "spec: " + podForm, Mode{MTLS: true, Issuer: IssuerPod, Policies: true}},
		"exists with Secrets":                            {config.RayCluster{MTLS: true, Certificates: string(IssuerPod)}, shift, "{}", "spec: " + secretForm, Mode{MTLS: true, Issuer: IssuerOperator, Policies: true}},
		"exists with Secrets, another":                   {config.RayCluster{MTLS: true, Certificates: string(IssuerCertManager)}, shift, "{}", "spec: " + secretForm, Mode{MTLS: true, Issuer: IssuerCertManager, Policies: true}},
		"keeps its account, R30": {
			config.RayCluster{OAuth: true}, shift,
			"metadata: {name: c, annotations: {ray.openshift.ai/keep-service-account: 'true'}}\nspec: {headGroupSpec: {template: {spec: {serviceAccountName: mine}}}}",
			"{}", Mode{Auth: AuthOAuth, KeepsServiceAccount: true, Policies: true},
		},
		"keeps its account that was overwritten": {
			config.RayCluster{OAuth: true}, shift,
			"metadata: {name: c, annotations: {ray.openshift.ai/keep-service-account: 'true', ray.openshift.ai/service-account: mine}}\n" +
				"spec: {headGroupSpec: {template: {spec: {serviceAccountName: c-oauth-proxy}}}}",
			"{}", Mode{Auth: AuthOAuth, KeepsServiceAccount: true, Policies: true},
		},
		"has no account to keep": {
			config.RayCluster{OAuth: true}, shift,
			"metadata: {name: c, annotations: {ray.openshift.ai/keep-service-account: 'true'}}", "{}", Mode{Auth: AuthOAuth, Policies: true},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := Decide(test.wishes, test.platform, clusterOf(t, test.cluster), clusterOf(t, test.previous))
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
			if got.Active() != (test.want.Skip == "") {
				t.Error(got.Active())
			}
		})
	}
}

// Injected elements are recognized by content; the name alone does not count.
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
		"empty object":              {"{}", Injected{}},
		"signs for itself":          {head("", authority+", {name: server-cert, emptyDir: {}}"), Injected{MTLS: true, PodIssued: true}},
		"from Secrets":              {head("", authority+", {name: server-cert, secret: {secretName: s}}"), Injected{MTLS: true}},
		"encrypted":                 {head("{name: ray, env: [{name: RAY_USE_TLS, value: '1'}]}", authority+", {name: server-cert, emptyDir: {}}"), Injected{MTLS: true, PodIssued: true, Encrypted: true}},
		"enabled and disabled":      {head("{name: ray, env: [{name: RAY_USE_TLS, value: '1'}, {name: RAY_USE_TLS, value: '0'}]}", authority+", {name: server-cert, emptyDir: {}}"), Injected{MTLS: true, PodIssued: true}},
		"encrypted by its user":     {head("{name: ray, env: [{name: RAY_USE_TLS, value: '1'}]}", "{name: server-cert, emptyDir: {}}"), Injected{}},
		"foreign authority":         {head("", "{name: ca-vol, secret: {secretName: mine}}, {name: server-cert, emptyDir: {}}"), Injected{}},
		"OAuth":                     {head("{name: ray}, {name: oauth-proxy, args: [a, --openshift-service-account=c-oauth-proxy]}", ""), Injected{Sidecar: AuthOAuth}},
		"OAuth of the user":         {head("{name: ray}, {name: oauth-proxy, args: [--openshift-service-account=mine]}", ""), Injected{}},
		"a name for OAuth":          {head("{name: ray}, {name: oauth-proxy}", ""), Injected{}},
		"kube-rbac-proxy":           {head("1, "+proxy, rules+", {name: oauth-proxy-token, projected: {}}"), Injected{Sidecar: AuthProxy, Token: true}},
		"rules of the user":         {head(proxy, "{name: kube-rbac-proxy-config, configMap: {name: mine}}, {name: oauth-proxy-token}"), Injected{}},
		"a name for the proxy":      {head("{name: kube-rbac-proxy}", rules), Injected{}},
		"proxy of another KubeRay":  {head("{name: ray}, {name: kube-rbac-proxy, volumeMounts: [{name: kube-rbac-proxy-config-c}]}", "{name: kube-rbac-proxy-config-c, configMap: {name: kube-rbac-proxy-config-c}}"), Injected{}},
		"collector of KubeRay":      {head("{name: ray, env: [{name: RAY_USE_TLS, value: '1'}]}, {name: ray-history-collector}", authority+", {name: server-cert, secret: {secretName: s}}"), Injected{MTLS: true, Encrypted: true}},
		"token authentication":      {head("{name: ray, env: [{name: RAY_AUTH_MODE, value: token}]}", ""), Injected{RayToken: true}},
		"set in another container":  {head("{name: ray}, {name: b, env: [{name: RAY_AUTH_MODE, value: token}]}", ""), Injected{}},
		"last variable disables it": {head("{name: ray, env: [{name: RAY_AUTH_MODE, value: token}, {name: RAY_AUTH_MODE, value: disabled}]}", ""), Injected{}},
		"variable from a source":    {head("{name: ray, env: [{name: RAY_AUTH_MODE, valueFrom: {}}]}", ""), Injected{}},
	} {
		t.Run(name, func(t *testing.T) {
			c := clusterOf(t, "metadata: {name: c}")
			pod := clusterOf(t, test.pod).Object()
			if diff := cmp.Diff(test.want, c.InjectedInto(pod)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// While the head pods are not recreated, their injections stay and none is added, except for the sidecar.
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
		"enabled":                              {desired, none, Mode{Auth: AuthOAuth, Policies: true}},
		"disabled":                             {Mode{Policies: true}, full("secret: {}"), Mode{Auth: AuthOAuth, MTLS: true, Issuer: IssuerOperator, Policies: true}},
		"signs for itself":                     {Mode{}, full("emptyDir: {}"), Mode{Auth: AuthOAuth, MTLS: true, Issuer: IssuerPod}},
		"pods have the desired mode":           {desired, full("secret: {}"), desired},
		"pods have no injection, none desired": {Mode{}, none, Mode{}},
		"token for a sidecar":                  {Mode{Auth: AuthRay}, full("secret: {}"), Mode{Auth: AuthOAuth, MTLS: true, Issuer: IssuerOperator}},
	} {
		if diff := cmp.Diff(test.want, test.mode.KeepForRunningPods(test.stored, test.stored)); diff != "" {
			t.Errorf("%s: the kept mode differs (-want +got):\n%s", name, diff)
		}
	}
}

package ray

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

const (
	podForm    = "{headGroupSpec: {template: {spec: {volumes: [{name: server-cert, emptyDir: {}}]}}}}"
	secretForm = "{headGroupSpec: {template: {spec: {volumes: [{name: other}, {name: server-cert, secret: {secretName: s}}]}}}}"
)

func TestDecide(t *testing.T) {
	all := Wishes{OAuth: true, MTLS: true}
	shift := Platform{OpenShift: true}
	for name, test := range map[string]struct {
		wishes            Wishes
		platform          Platform
		cluster, previous string
		want              Mode
	}{
		"OpenShift":                    {all, shift, "{}", "{}", Mode{Auth: AuthOAuth, MTLS: true, Issuer: IssuerOperator, Policies: true}},
		"plain, R16":                   {all, Platform{}, "{}", "{}", Mode{Auth: AuthProxy, MTLS: true, Issuer: IssuerOperator, Policies: true}},
		"nothing wanted":               {Wishes{}, shift, "{}", "{}", Mode{Policies: true}},
		"deleted, R29":                 {all, shift, "{}", "metadata: {deletionTimestamp: '2026-01-01T00:00:00Z'}", Mode{Skip: "it is being deleted"}},
		"pretends to be deleted":       {all, shift, "metadata: {deletionTimestamp: '2026-01-01T00:00:00Z'}", "{}", Mode{Auth: AuthOAuth, MTLS: true, Issuer: IssuerOperator, Policies: true}},
		"runs elsewhere, R23":          {all, shift, "spec: {managedBy: kueue.x-k8s.io/multikueue}", "{}", Mode{Skip: "spec.managedBy gives it to kueue.x-k8s.io/multikueue"}},
		"token of Ray":                 {all, shift, "spec: {authOptions: {mode: token}}", "{}", Mode{Auth: AuthRay, MTLS: true, Issuer: IssuerOperator, Policies: true}},
		"token of Ray, and no wish":    {Wishes{}, shift, "spec: {authOptions: {mode: token}}", "{}", Mode{Auth: AuthRay, Policies: true}},
		"certificates of KubeRay":      {all, shift, "spec: {tlsOptions: {enabled: true}}", "{}", Mode{Auth: AuthOAuth, Policies: true}},
		"policies of KubeRay":          {all, shift, "spec: {networkPolicy: {mode: DenyAll}}", "{}", Mode{Auth: AuthOAuth, MTLS: true, Issuer: IssuerOperator}},
		"setting pod":                  {Wishes{MTLS: true, Issuer: IssuerPod}, shift, "{}", "{}", Mode{MTLS: true, Issuer: IssuerPod, Policies: true}},
		"annotation over setting":      {Wishes{MTLS: true, Issuer: IssuerPod}, shift, "metadata: {annotations: {ray.openshift.ai/certificates: cert-manager}}", "{}", Mode{MTLS: true, Issuer: IssuerCertManager, Policies: true}},
		"annotation unknown":           {Wishes{MTLS: true, Issuer: IssuerPod}, shift, "metadata: {annotations: {ray.openshift.ai/certificates: x}}", "{}", Mode{MTLS: true, Issuer: IssuerPod, Policies: true}},
		"setting unknown":              {Wishes{MTLS: true, Issuer: "x"}, shift, "{}", "{}", Mode{MTLS: true, Issuer: IssuerOperator, Policies: true}},
		"exists in the original form":  {Wishes{MTLS: true}, shift, "metadata: {annotations: {ray.openshift.ai/certificates: operator}}", "spec: " + podForm, Mode{MTLS: true, Issuer: IssuerPod, Policies: true}},
		"exists with Secrets":          {Wishes{MTLS: true, Issuer: IssuerPod}, shift, "{}", "spec: " + secretForm, Mode{MTLS: true, Issuer: IssuerOperator, Policies: true}},
		"exists with Secrets, another": {Wishes{MTLS: true, Issuer: IssuerCertManager}, shift, "{}", "spec: " + secretForm, Mode{MTLS: true, Issuer: IssuerCertManager, Policies: true}},
		"keeps its account, R30": {
			Wishes{OAuth: true}, shift,
			"metadata: {name: c, annotations: {ray.openshift.ai/keep-service-account: 'true'}}\nspec: {headGroupSpec: {template: {spec: {serviceAccountName: mine}}}}",
			"{}", Mode{Auth: AuthOAuth, KeepsAccount: true, Policies: true},
		},
		"keeps its account that was overwritten": {
			Wishes{OAuth: true}, shift,
			"metadata: {name: c, annotations: {ray.openshift.ai/keep-service-account: 'true', ray.openshift.ai/service-account: mine}}\n" +
				"spec: {headGroupSpec: {template: {spec: {serviceAccountName: c-oauth-proxy}}}}",
			"{}", Mode{Auth: AuthOAuth, KeepsAccount: true, Policies: true},
		},
		"has no account to keep": {
			Wishes{OAuth: true}, shift,
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

func TestInjected(t *testing.T) {
	for spec, want := range map[string]Injected{
		"{}":       {},
		podForm:    {MTLS: true, PodIssued: true},
		secretForm: {MTLS: true},
		"{headGroupSpec: {template: {spec: {containers: [{name: ray}, {name: oauth-proxy}]}}}}":                                 {Sidecar: AuthOAuth},
		"{headGroupSpec: {template: {spec: {containers: [1, {name: kube-rbac-proxy}], volumes: [{name: oauth-proxy-token}]}}}}": {Sidecar: AuthProxy, Token: true},
	} {
		if diff := cmp.Diff(want, clusterOf(t, "spec: "+spec).Injected()); diff != "" {
			t.Errorf("%s: %s", spec, diff)
		}
	}
}

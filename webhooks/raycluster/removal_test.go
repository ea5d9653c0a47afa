package raycluster

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/odh-platform/odh-platform-operator/pkg/raycluster"
)

// full is a cluster with elements of the user in all lists with injections.
const full = `
apiVersion: ray.io/v1
kind: RayCluster
metadata: {name: full, namespace: team, annotations: {own: "1"}}
spec:
  enableInTreeAutoscaling: true
  autoscalerOptions: {env: [{name: OWN, value: "1"}], volumeMounts: [{name: data, mountPath: /data}], version: v2}
  headGroupSpec:
    rayStartParams: {}
    template:
      spec:
        serviceAccountName: mine
        containers:
        - {name: ray-head, image: "example.com/ray:1", env: [{name: OWN, value: "1"}], volumeMounts: [{name: data, mountPath: /data}]}
        - {name: own, image: "example.com/own:1", env: [{name: RAY_USE_TLS, value: "1"}]}
        initContainers: [{name: prepare, image: "example.com/own:1"}]
        volumes: [{name: data, emptyDir: {}}]
  workerGroupSpecs:
  - groupName: small
    template:
      spec:
        initContainers: [{name: prepare, image: "example.com/own:1"}]
        containers: [{name: ray-worker, image: "example.com/ray:1", env: [{name: OWN, value: "1"}], volumeMounts: [{name: data, mountPath: /data}]}]
        volumes: [{name: data, emptyDir: {}}]
`

// withVersion sets the version annotation, the only change on a cluster with all features disabled.
func withVersion(object map[string]any) {
	put("0.0.0", "metadata", "annotations", raycluster.AnnotationVersion)(object)
}

// [R28] An update that recreates the head removes the injections of disabled features and keeps the user's elements. An update of labels
// keeps all injections.
func TestDisabledInjectionsAreRemoved(t *testing.T) {
	withoutAll := func(s *Settings) { withoutOAuth(s); withoutMTLS(s) }
	for form, enabled := range map[string]Settings{
		"operator": onOpenShift(), "pod": onOpenShift().with(issuedByPod), "plain": onOpenShift().with(plain), "plain pod": onOpenShift().with(plain).with(issuedByPod),
	} {
		for name, object := range map[string]string{"full": full, "minimal": minimal} {
			t.Run(form+" "+name, func(t *testing.T) {
				stored := applyDefaults(t, enabled, parse(t, object), nil)
				for remaining, disabled := range map[string]Settings{
					"nothing": enabled.with(withoutAll), "mTLS": enabled.with(withoutOAuth), "OAuth": enabled.with(withoutMTLS),
				} {
					submitted := copyOf(stored, changedHead)
					got := applyDefaults(t, disabled, submitted, stored)
					expectAllowed(t, disabled, got, stored)
					// The result equals a cluster that is created with these settings.
					if diff := cmp.Diff(normalize(applyDefaults(t, disabled, parse(t, object, changedHead), nil)), normalize(got)); diff != "" {
						t.Errorf("with %s only (-want +got):\n%s", remaining, diff)
					}
					labeled := copyOf(stored, put("x", "metadata", "labels", "a"))
					got = applyDefaults(t, disabled, labeled, stored)
					expectAllowed(t, disabled, got, stored)
					if diff := cmp.Diff(labeled, got); diff != "" {
						t.Errorf("with %s only: an update of labels changed the injections (-want +got):\n%s", remaining, diff)
					}
				}
				submitted := copyOf(stored, changedHead)
				if diff := cmp.Diff(normalize(parse(t, object, withVersion, changedHead)), normalize(applyDefaults(t, enabled.with(withoutAll), submitted, stored))); diff != "" {
					t.Errorf("with all features disabled (-want +got):\n%s", diff)
				}
			})
		}
	}
}

// While the features are disabled, elements of the user with the name of an injected element are kept.
func TestForeignElementsWithInjectedNamesAreKept(t *testing.T) {
	const own = `
metadata: {name: c, namespace: team}
spec:
  enableInTreeAutoscaling: true
  autoscalerOptions: {env: [{name: RAY_USE_TLS, value: "1"}], volumeMounts: [{name: ca-vol, mountPath: /home/ray/workspace/ca}]}
  headGroupSpec:
    template:
      spec:
        serviceAccountName: c-oauth-proxy
        containers:
        - {name: ray-head, env: [{name: RAY_USE_TLS, value: "1"}, {name: RAY_TLS_CA_CERT, value: /home/ray/workspace/tls/ca.crt}],
           volumeMounts: [{name: server-cert, mountPath: /home/ray/workspace/tls}, {name: ca-vol, mountPath: /home/ray/workspace/ca}]}
        - {name: oauth-proxy, args: ["--openshift-service-account=mine"]}
        - {name: kube-rbac-proxy, args: ["--upstream=http://127.0.0.1:8265/"]}
        initContainers: [{name: create-cert, volumeMounts: [{name: server-cert, mountPath: /x}]}]
        volumes:
        - {name: proxy-tls-secret, secret: {secretName: mine}}
        - {name: kube-rbac-proxy-config, configMap: {name: mine}}
        - {name: oauth-proxy-token, secret: {secretName: mine}}
        - {name: ca-vol, secret: {secretName: mine}}
        - {name: server-cert, emptyDir: {}}
`
	disabled := onOpenShift().with(withoutOAuth).with(withoutMTLS)
	stored := parse(t, own, withVersion)
	if diff := cmp.Diff(stored, applyDefaults(t, disabled, stored, stored)); diff != "" {
		t.Errorf("update (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(stored, applyDefaults(t, disabled, parse(t, own), nil)); diff != "" {
		t.Errorf("create (-want +got):\n%s", diff)
	}
}

// [R16] The sidecar is replaced if the OAuth server is removed or added.
func TestSidecarFollowsOAuthServer(t *testing.T) {
	openShift := onOpenShift()
	stored := applyDefaults(t, openShift, parse(t, full), nil)
	got := applyDefaults(t, openShift.with(plain), stored, stored)
	expectNames(t, got, headPod, "containers", "ray-head", "own", "kube-rbac-proxy")
	expectNames(t, got, headPod, "volumes", "data", "proxy-tls-secret", "oauth-proxy-token", "ca-vol", "server-cert", "kube-rbac-proxy-config")
	expectAllowed(t, openShift.with(plain), got, stored)
	restored := applyDefaults(t, openShift, got, got)
	expectNames(t, restored, headPod, "containers", "ray-head", "own", "oauth-proxy")
	expectAllowed(t, openShift, restored, got)
}

// If an administrator trusts KubeRay, a cluster that KubeRay secures has no corresponding injections, on creation and after an update.
func TestUserSecurityReplacesInjections(t *testing.T) {
	trusting := onOpenShift().with(trustKubeRay)
	for name, test := range map[string]struct {
		change func(map[string]any)
		want   Settings
	}{
		"token": {put("token", "spec", "authOptions", "mode"), trusting.with(withoutOAuth)},
		"mTLS":  {put(true, "spec", "tlsOptions", "enabled"), trusting.with(withoutMTLS)},
	} {
		t.Run(name, func(t *testing.T) {
			want := applyDefaults(t, test.want, parse(t, full, test.change), nil)
			if diff := cmp.Diff(normalize(want), normalize(applyDefaults(t, trusting, parse(t, full, test.change), nil))); diff != "" {
				t.Errorf("create (-want +got):\n%s", diff)
			}
			stored := applyDefaults(t, trusting, parse(t, full), nil)
			got := applyDefaults(t, trusting, copyOf(stored, test.change), stored)
			if diff := cmp.Diff(normalize(want), normalize(got)); diff != "" {
				t.Errorf("update (-want +got):\n%s", diff)
			}
			expectAllowed(t, trusting, got, stored)
		})
	}
}

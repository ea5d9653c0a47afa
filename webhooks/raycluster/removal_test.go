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

// versioned sets the version annotation, the only change on a cluster with all features disabled.
func versioned(object map[string]any) {
	put("0.0.0", "metadata", "annotations", raycluster.AnnotationVersion)(object)
}

// [R28] With a feature disabled, an update that recreates the head removes its injections and keeps the user's elements. Any other update
// keeps all injections.
func TestDisabledInjectionsAreRemoved(t *testing.T) {
	none := func(s *Settings) { noOAuth(s); noMTLS(s) }
	for form, on := range map[string]Settings{
		"operator": onOpenShift(), "pod": onOpenShift().with(original), "plain": onOpenShift().with(plain), "plain pod": onOpenShift().with(plain).with(original),
	} {
		for name, object := range map[string]string{"full": full, "minimal": minimal} {
			t.Run(form+" "+name, func(t *testing.T) {
				stored := applyDefaults(t, on, parse(t, object), nil)
				for from, off := range map[string]Settings{
					"nothing": on.with(none), "mTLS": on.with(noOAuth), "OAuth": on.with(noMTLS),
				} {
					submitted := copyOf(stored, changedHead)
					got := applyDefaults(t, off, submitted, stored)
					expectAllowed(t, off, got, stored)
					// The result equals a cluster that is created with these settings.
					if diff := cmp.Diff(normalize(applyDefaults(t, off, parse(t, object, changedHead), nil)), normalize(got)); diff != "" {
						t.Errorf("with %s only (-new +got):\n%s", from, diff)
					}
					labelled := copyOf(stored, put("x", "metadata", "labels", "a"))
					got = applyDefaults(t, off, labelled, stored)
					expectAllowed(t, off, got, stored)
					if diff := cmp.Diff(labelled, got); diff != "" {
						t.Errorf("with %s only, another label removes something from running pods: %s", from, diff)
					}
				}
				submitted := copyOf(stored, changedHead)
				if diff := cmp.Diff(normalize(parse(t, object, versioned, changedHead)), normalize(applyDefaults(t, on.with(none), submitted, stored))); diff != "" {
					t.Errorf("the withdrawal differs from the object of the user (-user +got):\n%s", diff)
				}
			})
		}
	}
}

// Elements of the user that only have the name of an injected one stay.
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
	off := onOpenShift().with(noOAuth).with(noMTLS)
	stored := parse(t, own, versioned)
	if diff := cmp.Diff(stored, applyDefaults(t, off, stored, stored)); diff != "" {
		t.Errorf("changed (-before +after):\n%s", diff)
	}
	if diff := cmp.Diff(stored, applyDefaults(t, off, parse(t, own), nil)); diff != "" {
		t.Errorf("changed at creation:\n%s", diff)
	}
}

// [R16] A cluster from plain Kubernetes, whose legacy sidecar could never start, gets another sidecar.
func TestSidecarFollowsOAuthServer(t *testing.T) {
	on := onOpenShift()
	stored := applyDefaults(t, on, parse(t, full), nil)
	got := applyDefaults(t, on.with(plain), stored, stored)
	expectNames(t, got, headPod, "containers", "ray-head", "own", "kube-rbac-proxy")
	expectNames(t, got, headPod, "volumes", "data", "proxy-tls-secret", "oauth-proxy-token", "ca-vol", "server-cert", "kube-rbac-proxy-config")
	expectAllowed(t, on.with(plain), got, stored)
	back := applyDefaults(t, on, got, got)
	expectNames(t, back, headPod, "containers", "ray-head", "own", "oauth-proxy")
	expectAllowed(t, on, back, got)
}

// If an administrator trusts KubeRay, a cluster that KubeRay secures has no corresponding injections, also after an update.
func TestUserSecurityReplacesInjections(t *testing.T) {
	on := onOpenShift().with(trusting)
	for name, test := range map[string]struct {
		change func(map[string]any)
		want   Settings
	}{
		"token": {put("token", "spec", "authOptions", "mode"), on.with(noOAuth)},
		"mTLS":  {put(true, "spec", "tlsOptions", "enabled"), on.with(noMTLS)},
	} {
		t.Run(name, func(t *testing.T) {
			want := applyDefaults(t, test.want, parse(t, full, test.change), nil)
			if diff := cmp.Diff(normalize(want), normalize(applyDefaults(t, on, parse(t, full, test.change), nil))); diff != "" {
				t.Errorf("new: %s", diff)
			}
			stored := applyDefaults(t, on, parse(t, full), nil)
			got := applyDefaults(t, on, copyOf(stored, test.change), stored)
			if diff := cmp.Diff(normalize(want), normalize(got)); diff != "" {
				t.Errorf("later: %s", diff)
			}
			expectAllowed(t, on, got, stored)
		})
	}
}

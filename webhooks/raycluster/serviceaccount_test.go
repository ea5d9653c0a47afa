package raycluster

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/odh-platform/odh-platform-operator/pkg/raycluster"
)

// containersWithToken returns the names of the containers that mount the token volume.
func containersWithToken(t *testing.T, object map[string]any, pod []string) []string {
	t.Helper()
	var names []string
	for _, list := range []string{"containers", "initContainers"} {
		for _, container := range listAt(object, in(pod, list)...) {
			fields := container.(map[string]any)
			if find(listAt(fields, "volumeMounts"), raycluster.VolumeToken) != nil {
				names = append(names, fields["name"].(string))
			}
		}
	}
	return names
}

// [R30] In the head template, only the sidecar mounts the token of the ServiceAccount that may review tokens.
func TestOnlySidecarMountsToken(t *testing.T) {
	for name, test := range map[string]struct {
		s    Settings
		want string
	}{"OpenShift": {onOpenShift(), "oauth-proxy"}, "plain": {onOpenShift().with(plain), "kube-rbac-proxy"}} {
		got := applyDefaults(t, test.s, parse(t, full), nil)
		if diff := cmp.Diff([]string{test.want}, containersWithToken(t, got, headPod)); diff != "" {
			t.Errorf("%s: containers with the token differ (-want +got):\n%s", name, diff)
		}
		projected := listAt(find(listAt(got, in(headPod, "volumes")...), raycluster.VolumeToken), "projected", "sources")
		if len(projected) != 3 || at(projected[0].(map[string]any), "serviceAccountToken", "path") != "token" {
			t.Errorf("%s: got sources %v, want 3, the first a token", name, projected)
		}
		if !raycluster.View(got).Injected().HasTokenVolume {
			t.Errorf("%s: Injected does not report the token volume", name)
		}
	}
}

// [R30] The ServiceAccount of the user is overwritten, because OpenShift OAuth identifies clients by ServiceAccount; an annotation stores it.
func TestServiceAccountOfUserIsReplaced(t *testing.T) {
	s := onOpenShift()
	account := func(object map[string]any) [2]any {
		return [2]any{at(object, in(headPod, "serviceAccountName")...), at(object, "metadata", "annotations", raycluster.AnnotationServiceAccount)}
	}
	const managed = "full-oauth-proxy-"
	stored := applyDefaults(t, s, parse(t, full), nil)
	names := raycluster.View(stored).Names()
	if got := account(stored); got != [2]any{names.ServiceAccount, "mine"} || len(names.ServiceAccount) != len(managed)+8 {
		t.Errorf("got ServiceAccount and annotation %v, want that of the sidecar and that of the user", got)
	}
	for name, test := range map[string]struct {
		submitted string
		want      [2]any
	}{
		"manifest applied again": {"mine", [2]any{names.ServiceAccount, "mine"}},
		"another account":        {"other", [2]any{names.ServiceAccount, "other"}},
		"injected account":       {names.ServiceAccount, [2]any{names.ServiceAccount, "mine"}},
		"account removed":        {"", [2]any{names.ServiceAccount, nil}},
	} {
		submitted := copyOf(stored, put(test.submitted, in(headPod, "serviceAccountName")...))
		got := applyDefaults(t, s, submitted, stored)
		if diff := cmp.Diff(test.want, account(got)); diff != "" {
			t.Errorf("%s: the account differs (-want +got):\n%s", name, diff)
		}
		expectAllowed(t, s, got, stored)
	}
}

// [R30] On request the head keeps its ServiceAccount, and the sidecar mounts a token from a Secret.
func TestServiceAccountOfUserIsKeptOnRequest(t *testing.T) {
	keep := put("true", "metadata", "annotations", raycluster.AnnotationKeepServiceAccount)
	for name, s := range map[string]Settings{"OpenShift": onOpenShift(), "plain": onOpenShift().with(plain)} {
		got := applyDefaults(t, s, parse(t, full, keep), nil)
		names := raycluster.View(got).Names()
		if account := at(got, in(headPod, "serviceAccountName")...); account != "mine" {
			t.Errorf("%s: account %v, want %v", name, account, "mine")
		}
		if secret := at(find(listAt(got, in(headPod, "volumes")...), raycluster.VolumeToken), "secret", "secretName"); secret != names.TokenSecret {
			t.Errorf("%s: Secret %v, want %v", name, secret, names.TokenSecret)
		}
		// The autoscaler needs a token of the head's ServiceAccount, to which KubeRay grants the permissions.
		if find(listAt(got, autoscalerMounts...), raycluster.VolumeToken) != nil {
			t.Errorf("%s: the autoscaler mounts the token of the sidecar", name)
		}
		expectAllowed(t, s, got, nil)
		expectAllowed(t, s, got, got)
		// If the annotation is added later, the ServiceAccount of the user is restored.
		stored := applyDefaults(t, s, parse(t, full), nil)
		later := applyDefaults(t, s, copyOf(stored, keep), stored)
		if diff := cmp.Diff(normalize(got), normalize(later)); diff != "" {
			t.Errorf("%s: annotation added by an update (-created with it +updated):\n%s", name, diff)
		}
		expectAllowed(t, s, later, stored)
		if response := validateObject(t, s, copyOf(later, put(names.ServiceAccount, in(headPod, "serviceAccountName")...)), later); response.Allowed {
			t.Errorf("%s: want a rejection, because the head must not use the ServiceAccount of the sidecar", name)
		}
	}
}

// [R14] KubeRay's autoscaler needs certificates to connect to Ray, and the token of the head for Kubernetes.
func TestAutoscaler(t *testing.T) {
	for name, s := range map[string]Settings{"operator": onOpenShift(), "pod": onOpenShift().with(issuedByPod), "plain": onOpenShift().with(plain)} {
		got := applyDefaults(t, s, parse(t, full), nil)
		if diff := cmp.Diff(append([]string{"OWN"}, tlsNames...), namesAt(got, autoscalerEnv...)); diff != "" {
			t.Errorf("%s: variables of the autoscaler differ (-want +got):\n%s", name, diff)
		}
		if diff := cmp.Diff([]string{"data", "ca-vol", "server-cert", "oauth-proxy-token"}, namesAt(got, autoscalerMounts...)); diff != "" {
			t.Errorf("%s: mounts of the autoscaler differ (-want +got):\n%s", name, diff)
		}
		expectAllowed(t, s, got, got)
		broken := copyOf(got, changeOf(autoscalerEnv, "RAY_USE_TLS", set("0", "value")), changeOf(autoscalerMounts, "server-cert", set("/x", "mountPath")))
		expectRejected(t, s, broken, got,
			`spec.autoscalerOptions.env: Invalid value: "RAY_USE_TLS": `+autoscalerImmutable, `spec.autoscalerOptions.volumeMounts: Invalid value: "server-cert": `+autoscalerImmutable)
		if diff := cmp.Diff(got, applyDefaults(t, s, broken, got)); diff != "" {
			t.Errorf("%s: changed values were not restored (-want +got):\n%s", name, diff)
		}
		withoutAutoscaler := applyDefaults(t, s, copyOf(got, put(false, "spec", "enableInTreeAutoscaling")), got)
		if diff := cmp.Diff([]string{"OWN"}, namesAt(withoutAutoscaler, autoscalerEnv...)); diff != "" {
			t.Errorf("%s: variables without the autoscaler differ (-want +got):\n%s", name, diff)
		}
		if diff := cmp.Diff([]string{"data"}, namesAt(withoutAutoscaler, autoscalerMounts...)); diff != "" {
			t.Errorf("%s: mounts without the autoscaler differ (-want +got):\n%s", name, diff)
		}
	}
	// Options are created if the user sets none.
	got := applyDefaults(t, onOpenShift(), parse(t, minimal, put(true, "spec", "enableInTreeAutoscaling")), nil)
	if diff := cmp.Diff(tlsNames, namesAt(got, autoscalerEnv...)); diff != "" {
		t.Error(diff)
	}
}

// [R15] Injected containers have small resources and a restricted security context. Resources that the user sets are not changed.
func TestResourcesAndSecurityContext(t *testing.T) {
	for name, s := range map[string]Settings{"OpenShift": onOpenShift(), "plain": onOpenShift().with(plain), "pod": onOpenShift().with(plain).with(issuedByPod)} {
		stored := applyDefaults(t, s, parse(t, minimal), nil)
		sidecar := listAt(stored, in(headPod, "containers")...)[1].(map[string]any)
		certificate := find(listAt(stored, in(headPod, "initContainers")...), "create-cert")
		for _, container := range []element{sidecar, certificate} {
			nonRoot := any(true)
			if name == "OpenShift" && container["name"] == "create-cert" {
				nonRoot = nil // as in the Ray container
			}
			for _, list := range []string{"requests", "limits"} {
				for _, resource := range []string{"cpu", "memory"} {
					if at(container, "resources", list, resource) == nil {
						t.Errorf("%s: %s has no %s of %s", name, container["name"], list, resource)
					}
				}
			}
			if at(container, "securityContext", "allowPrivilegeEscalation") != false || at(container, "securityContext", "runAsNonRoot") != nonRoot ||
				at(container, "securityContext", "seccompProfile", "type") != "RuntimeDefault" || len(listAt(container, "securityContext", "capabilities", "drop")) != 1 {
				t.Errorf("%s: unexpected securityContext: %v", name, container["securityContext"])
			}
		}
		wantUser := any(int64(1000))
		if name == "OpenShift" {
			wantUser = nil // OpenShift assigns each namespace a range of UIDs
		}
		if user := at(certificate, "securityContext", "runAsUser"); user != wantUser {
			t.Errorf("%s: user %v, want %v", name, user, wantUser)
		}
		own := map[string]any{"limits": map[string]any{"memory": "1Gi"}}
		submitted := copyOf(stored, changeOf(in(headPod, "containers"), sidecar["name"].(string), func(e element) {
			e["resources"], e["imagePullPolicy"], e["args"] = own, "Always", []any{"--wrong"}
		}), changeOf(in(headPod, "initContainers"), "create-cert", set(own, "resources")))
		for _, old := range []map[string]any{nil, stored} {
			got := applyDefaults(t, s, submitted, old)
			expectAllowed(t, s, got, old)
			kept := listAt(got, in(headPod, "containers")...)[1].(map[string]any)
			if diff := cmp.Diff(own, kept["resources"]); diff != "" || kept["imagePullPolicy"] != "Always" || len(listAt(kept, "args")) < 5 {
				t.Errorf("%s: the fields of the user changed (-want +got): %s\n%v", name, diff, kept)
			}
			if diff := cmp.Diff(own, find(listAt(got, in(headPod, "initContainers")...), "create-cert")["resources"]); diff != "" {
				t.Errorf("%s: resources of the init container differ (-want +got):\n%s", name, diff)
			}
		}
	}
}

// [R16] On plain Kubernetes, the init container that creates the key runs with the UID of the Ray container that reads the key.
func TestCertificateContainerRunsAsRayUser(t *testing.T) {
	s := onOpenShift().with(plain)
	for name, test := range map[string]struct {
		change      func(map[string]any)
		want        any
		wantNonRoot bool
	}{
		"default":              {func(map[string]any) {}, int64(1000), true},
		"UID of the pod":       {put(int64(7), in(headPod, "securityContext", "runAsUser")...), int64(7), true},
		"UID of the container": {put(int64(8), in(headPod, "containers", "0", "securityContext", "runAsUser")...), int64(8), true},
		"root":                 {put(int64(0), in(headPod, "containers", "0", "securityContext", "runAsUser")...), int64(0), false},
	} {
		context := at(find(listAt(applyDefaults(t, s, parse(t, minimal, test.change), nil), in(headPod, "initContainers")...), "create-cert"), "securityContext").(map[string]any)
		if _, nonRoot := context["runAsNonRoot"]; context["runAsUser"] != test.want || nonRoot != test.wantNonRoot {
			t.Errorf("%s: unexpected securityContext: %v", name, context)
		}
	}
}

// [R10] A login by browser requires the same permission as a token.
func TestBrowserLoginRequiresPermission(t *testing.T) {
	sidecar := find(listAt(applyDefaults(t, onOpenShift(), parse(t, minimal), nil), in(headPod, "containers")...), "oauth-proxy")
	want := []any{
		"--https-address=:8443", "--provider=openshift", "--openshift-service-account=test-raycluster-oauth-proxy-ecaffa62",
		"--upstream=http://localhost:8265", "--tls-cert=/etc/tls/private/tls.crt", "--tls-key=/etc/tls/private/tls.key",
		`--openshift-delegate-urls={"/":{"resource":"pods","namespace":"test-namespace","verb":"get"}}`,
		`--openshift-sar={"resource":"pods","namespace":"test-namespace","verb":"get"}`,
	}
	if diff := cmp.Diff(want, sidecar["args"]); diff != "" {
		t.Error(diff)
	}
}

// [R20] Certificates contain the name of the head Service that the user sets.
func TestCertificateNamesHeadServiceOfUser(t *testing.T) {
	s := onOpenShift().with(issuedByPod)
	got := applyDefaults(t, s, parse(t, minimal, put("mine", "spec", "headGroupSpec", "headService", "metadata", "name")), nil)
	command := listAt(find(listAt(got, in(headPod, "initContainers")...), "create-cert"), "command")
	want := signCommand(`\nDNS.5 = rayclient-test-raycluster-test-namespace.apps.example.com\nDNS.6 = mine.test-namespace.svc`)
	if diff := cmp.Diff(want, command); diff != "" {
		t.Error(diff)
	}
}

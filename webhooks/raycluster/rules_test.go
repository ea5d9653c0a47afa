package raycluster

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/odh-platform/odh-platform-operator/pkg/raycluster"
)

// expectRejected expects exactly these causes, each "field: message".
func expectRejected(t *testing.T, s Settings, object, old map[string]any, want ...string) {
	t.Helper()
	response := validateObject(t, s, object, old)
	if response.Allowed {
		t.Errorf("allowed, want %q", want)
		return
	}
	var causes []string
	for _, cause := range response.Result.Details.Causes {
		causes = append(causes, cause.Field+": "+cause.Message)
	}
	if diff := cmp.Diff(want, causes); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if response.Result.Code != 422 || response.Result.Reason != metav1.StatusReasonInvalid || !strings.Contains(response.Result.Message, want[0]) {
		t.Errorf("unexpected response.Result: %+v", response.Result)
	}
}

// changeOf returns a function that changes the named element of a list.
func changeOf(list []string, name string, change func(element)) func(map[string]any) {
	return func(object map[string]any) { change(find(listAt(object, list...), name)) }
}

func set(value any, names ...string) func(element) {
	return func(e element) { put(value, names...)(e) }
}

const (
	headTemplate = "spec.headGroupSpec.template.spec."
	workerOne    = "spec.workerGroupSpecs.1.template.spec."
)

// [raycluster-15] [raycluster-16] [raycluster-17] [raycluster-18] on creation and on update; [raycluster-30] R33: all fields are compared.
func TestRulesOfCreationAndUpdate(t *testing.T) {
	container := func(change func(element)) func(map[string]any) {
		return changeOf(in(headPod, "containers"), "oauth-proxy", change)
	}
	const immutable = headTemplate + `containers: Invalid value: "oauth-proxy": OAuth Proxy container is immutable: leave it as the operator sets it`
	for name, test := range map[string]struct {
		change func(map[string]any)
		want   string
	}{
		"enableIngress":   {put(true, "spec", "headGroupSpec", "enableIngress"), "spec.headGroupSpec.enableIngress: Invalid value: true: " + noIngress},
		"no sidecar":      {func(o map[string]any) { dropAt(o, in(headPod, "containers"), 1) }, headTemplate + "containers: Required value: OAuth Proxy container is immutable: leave it as the operator sets it"},
		"other arguments": {container(set([]any{"--other"}, "args")), immutable},
		"more arguments":  {container(func(e element) { e["args"] = append(e["args"].([]any), "--skip-auth-regex=.*") }), immutable},
		"other image":     {container(set("example.com/evil:1", "image")), immutable},
		"command":         {container(set([]any{"sh"}, "command")), immutable},
		"no mounts":       {container(set([]any{}, "volumeMounts")), immutable},
		"more mounts": {container(func(e element) {
			e["volumeMounts"] = append(e["volumeMounts"].([]any), map[string]any{"name": "x", "mountPath": "/etc"})
		}), immutable},
		"more variables": {container(func(e element) {
			e["env"] = append(e["env"].([]any), map[string]any{"name": "OAUTH_PROXY_X", "value": "1"})
		}), immutable},
		"lifecycle hook": {container(set([]any{"sh"}, "lifecycle", "postStart", "exec", "command")), immutable},
		"privileged":     {container(set(true, "securityContext", "privileged")), immutable},
		"other Secret in a volume": {
			changeOf(in(headPod, "volumes"), "proxy-tls-secret", set("other", "secret", "secretName")),
			headTemplate + `volumes: Invalid value: "proxy-tls-secret": OAuth Proxy TLS Secret volume is immutable: leave it as the operator sets it`,
		},
		"no token in a volume": {
			changeOf(in(headPod, "volumes"), "oauth-proxy-token", set(nil, "projected")),
			headTemplate + `volumes: Invalid value: "oauth-proxy-token": OAuth Proxy TLS Secret volume is immutable: leave it as the operator sets it`,
		},
		"duplicate volume": {
			func(o map[string]any) {
				pod := at(o, headPod...).(map[string]any)
				pod["volumes"] = append(pod["volumes"].([]any), map[string]any{"name": "proxy-tls-secret"})
			},
			headTemplate + `volumes: Invalid value: "2 times proxy-tls-secret": OAuth Proxy TLS Secret volume is immutable: leave it as the operator sets it`,
		},
		"other ServiceAccount": {
			put("other", in(headPod, "serviceAccountName")...),
			headTemplate + `serviceAccountName: Invalid value: "other": RayCluster head group service account is immutable: leave it as the operator sets it`,
		},
		"no ServiceAccount": {
			put(nil, in(headPod, "serviceAccountName")...),
			headTemplate + `serviceAccountName: Invalid value: "": RayCluster head group service account is immutable: leave it as the operator sets it`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := onOpenShift()
			stored := applyDefaults(t, s, parse(t, minimal), nil)
			changed := copyOf(stored, test.change)
			expectRejected(t, s, changed, nil, test.want)
			expectRejected(t, s, changed, stored, test.want)
			// Defaulting reverts all changes except enableIngress.
			reverted := applyDefaults(t, s, changed, stored)
			if name == "enableIngress" {
				expectRejected(t, s, reverted, stored, test.want)
				return
			}
			expectAllowed(t, s, reverted, stored)
		})
	}
}

// [raycluster-21] [raycluster-22] [raycluster-23], for the head and a worker group.
func TestRulesOfUpdate(t *testing.T) {
	for _, group := range []struct {
		pod  []string
		path string
	}{{headPod, headTemplate}, {worker1, workerOne}} {
		env, mounts := in(group.pod, "containers", "0", "env"), in(group.pod, "containers", "0", "volumeMounts")
		volumes, inits := in(group.pod, "volumes"), in(group.pod, "initContainers")
		for name, test := range map[string]struct {
			change func(map[string]any)
			want   string
		}{
			"command of create-cert":   {changeOf(inits, "create-cert", set([]any{"sh", "-c", "true"}, "command")), `initContainers: Invalid value: "create-cert": create-cert Init Container is immutable: leave it as the operator sets it`},
			"arguments of create-cert": {changeOf(inits, "create-cert", set([]any{"x"}, "args")), `initContainers: Invalid value: "create-cert": create-cert Init Container is immutable: leave it as the operator sets it`},
			"mounts of create-cert":    {changeOf(inits, "create-cert", set([]any{}, "volumeMounts")), `initContainers: Invalid value: "create-cert": create-cert Init Container is immutable: leave it as the operator sets it`},
			"no create-cert":           {put(nil, inits...), `initContainers: Required value: create-cert Init Container is immutable: leave it as the operator sets it`},
			"RAY_USE_TLS":              {changeOf(env, "RAY_USE_TLS", set("0", "value")), `containers.0.env: Invalid value: "RAY_USE_TLS": RAY_TLS related environment variables are immutable: leave them as the operator sets them`},
			"no variables":             {put(nil, env...), `containers.0.env: Required value: RAY_TLS related environment variables are immutable: leave them as the operator sets them`},
			"MY_POD_IP":                {changeOf(env, "MY_POD_IP", set("1.2.3.4", "value")), `containers.0.env: Invalid value: "MY_POD_IP": RAY_TLS related environment variables are immutable: leave them as the operator sets them`},
			"Secret of ca-vol":         {changeOf(volumes, "ca-vol", set("other", "secret", "secretName")), `volumes: Invalid value: "ca-vol": ca-vol and server-cert Secret volumes are immutable: leave them as the operator sets them`},
			"key of the CA in ca-vol":  {changeOf(volumes, "ca-vol", set(nil, "secret", "items")), `volumes: Invalid value: "ca-vol": ca-vol and server-cert Secret volumes are immutable: leave them as the operator sets them`},
			"source of server-cert":    {changeOf(volumes, "server-cert", set("/host", "hostPath", "path")), `volumes: Invalid value: "server-cert": ca-vol and server-cert Secret volumes are immutable: leave them as the operator sets them`},
			"path of a mount":          {changeOf(mounts, "server-cert", set("/other", "mountPath")), `containers.0.volumeMounts: Invalid value: "server-cert": ca-vol and server-cert volume mounts are immutable: leave them as the operator sets them`},
			"no mounts":                {put(nil, mounts...), `containers.0.volumeMounts: Required value: ca-vol and server-cert volume mounts are immutable: leave them as the operator sets them`},
		} {
			t.Run(group.path+name, func(t *testing.T) {
				for form, s := range map[string]Settings{"operator": onOpenShift(), "pod": onOpenShift().with(issuedByPod), "legacy": onOpenShift()} {
					stored := applyDefaults(t, s, parse(t, minimal), nil)
					if form == "legacy" { // [raycluster-20]
						stored = applyDefaults(t, s, parse(t, minimal), parse(t, minimal, changedHead))
						expectAllowed(t, s, stored, stored)
					}
					if form == "pod" && name == "key of the CA in ca-vol" {
						continue // with IssuerPod all keys are mounted
					}
					changed := copyOf(stored, test.change)
					expectRejected(t, s, changed, stored, group.path+test.want)
					expectAllowed(t, s, changed, nil)
					if diff := cmp.Diff(normalize(stored), normalize(applyDefaults(t, s, changed, stored))); diff != "" {
						t.Errorf("%s: defaulting does not revert the change (-want +got):\n%s", form, diff)
					}
				}
			})
		}
	}
}

func TestSeveralViolationsAreReportedTogether(t *testing.T) {
	s := onOpenShift()
	stored := applyDefaults(t, s, parse(t, minimal), nil)
	changed := copyOf(stored, put(true, "spec", "headGroupSpec", "enableIngress"), put("x", in(headPod, "serviceAccountName")...),
		put(nil, in(worker1, "initContainers")...))
	expectRejected(t, s, changed, stored,
		"spec.headGroupSpec.enableIngress: Invalid value: true: "+noIngress,
		headTemplate+`serviceAccountName: Invalid value: "x": RayCluster head group service account is immutable: leave it as the operator sets it`,
		workerOne+"initContainers: Required value: create-cert Init Container is immutable: leave it as the operator sets it")
}

// [R19] Names that KubeRay rejects, and names that are not valid DNS labels, are rejected on creation.
func TestNames(t *testing.T) {
	s := onOpenShift()
	named := func(name string) map[string]any { return parse(t, minimal, put(name, "metadata", "name")) }
	for name, want := range map[string]string{
		strings.Repeat("a", 54): "must be at most 53 characters, because Services are named after it: this one has 54; choose a shorter name",
		"1a":                    "a DNS-1035 label must consist of lower case alphanumeric characters",
		"a.b":                   "Services are named after it",
	} {
		response := validateObject(t, s, applyDefaults(t, s, named(name), nil), nil)
		if response.Allowed || !strings.Contains(response.Result.Message, "is invalid: metadata.name: Invalid value: ") || !strings.Contains(response.Result.Message, want) {
			t.Errorf("%s: unexpected response.Result: %+v", name, response.Result)
		}
		stored := named(name)
		expectAllowed(t, s, applyDefaults(t, s, named(name), stored), stored)
	}
	long := named(strings.Repeat("a", 53))
	response := validateObject(t, s, applyDefaults(t, s, long, nil), nil)
	if !response.Allowed || len(response.Warnings) != 1 || !strings.Contains(response.Warnings[0], "the dashboard gets the host "+raycluster.View(long).DashboardHostLabel()+".DOMAIN;") {
		t.Errorf("want one warning about the host of the dashboard, got %q, result %+v", response.Warnings, response.Result)
	}
}

// The names of Secrets in pods depend on the name of the cluster, which must be known at admission.
func TestGeneratedNames(t *testing.T) {
	s := onOpenShift()
	generated := func(prefix string) map[string]any {
		return applyDefaults(t, s, parse(t, minimal, put(nil, "metadata", "name"), put(prefix, "metadata", "generateName")), nil)
	}
	first := generated("team-")
	name, _ := at(first, "metadata", "name").(string)
	if len(name) != len("team-")+5 || !strings.HasPrefix(name, "team-") {
		t.Errorf("got name %q, want team- and 5 characters", name)
	}
	expectAllowed(t, s, first, nil)
	if diff := cmp.Diff(first, applyDefaults(t, s, first, nil)); diff != "" {
		t.Error(diff)
	}
	if name := at(generated(strings.Repeat("x", 80)), "metadata", "name").(string); len(name) != 53 {
		t.Errorf("name %q has %d characters, want 53", name, len(name))
	}
	if generatedName("a-", "one") == generatedName("a-", "other") {
		t.Error("two requests got the same generated name")
	}
}

func TestInvalidCertificateAnnotationIsRejected(t *testing.T) {
	s := onOpenShift()
	const want = `metadata.annotations[ray.openshift.ai/certificates]: Invalid value: "x": must be "operator", "cert-manager" or "pod": remove the annotation to use the setting of the operator`
	annotated := parse(t, minimal, put("x", "metadata", "annotations", raycluster.AnnotationCertificates))
	expectRejected(t, s, applyDefaults(t, s, annotated, nil), nil, want)
	stored := applyDefaults(t, s, annotated, nil)
	expectAllowed(t, s, stored, stored)
	for _, issuer := range []raycluster.Issuer{raycluster.IssuerPod, raycluster.IssuerOperator, raycluster.IssuerCertManager} {
		got := applyDefaults(t, s, parse(t, minimal, put(string(issuer), "metadata", "annotations", raycluster.AnnotationCertificates)), nil)
		expectAllowed(t, s, got, nil)
		if podIssued := raycluster.View(got).Injected().PodIssued; podIssued != (issuer == raycluster.IssuerPod) {
			t.Errorf("%s: pods issue their certificates: %t, want %t", issuer, podIssued, issuer == raycluster.IssuerPod)
		}
	}
	hashed := applyDefaults(t, s, parse(t, minimal), nil)
	without := copyOf(hashed, put(nil, "metadata", "annotations", raycluster.AnnotationVersion))
	expectRejected(t, s, without, hashed, `metadata.annotations[ray.openshift.ai/version]: Invalid value: "": `+versionImmutable)
}

package raycluster

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/odh-platform/odh-platform-operator/pkg/raycluster"
)

func namesAt(object map[string]any, names ...string) []string {
	var found []string
	for _, entry := range listAt(object, names...) {
		name, _ := at(entry.(map[string]any), "name").(string)
		found = append(found, name)
	}
	return found
}

func expectNames(t *testing.T, object map[string]any, pod []string, list string, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, namesAt(object, in(pod, list)...)); diff != "" {
		t.Errorf("%v of %v (-want +got):\n%s", list, pod, diff)
	}
}

var tlsNames = []string{"MY_POD_IP", "RAY_USE_TLS", "RAY_TLS_SERVER_CERT", "RAY_TLS_SERVER_KEY", "RAY_TLS_CA_CERT"}

// [raycluster-10] [raycluster-11] [raycluster-12] [raycluster-13] [raycluster-14], with certificates of the operator and of the pods.
func TestNewClusterGetsInjections(t *testing.T) {
	for name, s := range map[string]Settings{"issued by the operator": onOpenShift(), "issued by the pods": onOpenShift().with(issuedByPod)} {
		t.Run(name, func(t *testing.T) {
			got := applyDefaults(t, s, parse(t, minimal), nil)
			expectNames(t, got, headPod, "containers", "ray-head", "oauth-proxy")
			// The CodeFlare operator injected three volumes; oauth-proxy-token is new, and only the sidecar mounts it [R30].
			expectNames(t, got, headPod, "volumes", "proxy-tls-secret", "oauth-proxy-token", "ca-vol", "server-cert")
			expectNames(t, got, headPod, "initContainers", "create-cert")
			for _, pod := range [][]string{worker0, worker1} {
				expectNames(t, got, pod, "containers", "ray-worker")
				expectNames(t, got, pod, "volumes", "ca-vol", "server-cert")
				expectNames(t, got, pod, "initContainers", "create-cert")
			}
			for _, pod := range [][]string{headPod, worker0, worker1} {
				expectNames(t, got, in(pod, "containers", "0"), "env", tlsNames...)
				expectNames(t, got, in(pod, "containers", "0"), "volumeMounts", "ca-vol", "server-cert")
			}
			if account := at(got, in(headPod, "serviceAccountName")...); account != "test-raycluster-oauth-proxy-ecaffa62" {
				t.Errorf("account %v, want %v", account, "test-raycluster-oauth-proxy-ecaffa62")
			}
			if version := at(got, "metadata", "annotations", raycluster.AnnotationVersion); version != "0.0.0" {
				t.Errorf("version %v, want %v", version, "0.0.0")
			}
			expectAllowed(t, s, got, nil)
			expectAllowed(t, s, got, got) // [raycluster-19]
			if diff := cmp.Diff(got, applyDefaults(t, s, got, got)); diff != "" {
				t.Errorf("defaulting is not idempotent (-first +second):\n%s", diff)
			}
		})
	}
}

// [raycluster-9] [raycluster-31], R5: an empty list of containers gets no sidecar, does not panic, and is rejected with the field and the fix.
func TestEmptyContainerLists(t *testing.T) {
	for name, s := range map[string]Settings{"all": onOpenShift(), "mTLS only": onOpenShift().with(withoutOAuth), "plain": onOpenShift().with(plain), "none": onOpenShift().with(withoutOAuth).with(withoutMTLS)} {
		got := applyDefaults(t, s, parse(t, noHeadContainer), nil)
		if containers := listAt(got, in(headPod, "containers")...); len(containers) != 0 {
			t.Errorf("%s: unexpected containers: %v", name, containers)
		}
		response := validateObject(t, s, got, nil)
		const want = "spec.headGroupSpec.template.spec.containers: Required value: the first container must be the Ray container: add it"
		if response.Allowed || !strings.HasSuffix(response.Result.Message, "is invalid: "+want) {
			t.Errorf("%s: unexpected response.Result: %+v", name, response.Result)
		}
		worker := applyDefaults(t, s, parse(t, minimal, put([]any{}, in(worker1, "containers")...)), nil)
		response = validateObject(t, s, worker, nil)
		const wantWorker = "spec.workerGroupSpecs.1.template.spec.containers: Required value: the first container must be the Ray container: add it"
		if response.Allowed || !strings.HasSuffix(response.Result.Message, "is invalid: "+wantWorker) {
			t.Errorf("%s: unexpected response.Result: %+v", name, response.Result)
		}
	}
	sidecarOnly := parse(t, minimal, put([]any{map[string]any{"name": "oauth-proxy", "image": "x"}}, in(headPod, "containers")...))
	response := validateObject(t, onOpenShift(), applyDefaults(t, onOpenShift(), sidecarOnly, nil), nil)
	const want = `spec.headGroupSpec.template.spec.containers.0.name: Invalid value: "oauth-proxy": the first container must be the Ray container: put it before oauth-proxy`
	if response.Allowed || !strings.HasSuffix(response.Result.Message, "is invalid: "+want) {
		t.Errorf("unexpected response.Result: %+v", response.Result)
	}
	// Other fields of such a stored cluster can be changed.
	stored := parse(t, noHeadContainer)
	updated := applyDefaults(t, onOpenShift(), parse(t, noHeadContainer, put("x", "metadata", "labels", "a")), stored)
	expectAllowed(t, onOpenShift(), updated, stored)
}

// R1, [raycluster-33]: unknown fields at all levels are preserved.
func TestUnknownFieldsSurvive(t *testing.T) {
	unknown := map[string]any{"deep": []any{map[string]any{"x": int64(9007199254740993), "y": 1.5, "z": nil}}}
	paths := [][]string{
		{"spec", "gcsFaultToleranceOptions"}, {"spec", "upgradeStrategy"}, {"spec", "historyServerOptions"}, {"spec", "inventedTomorrow"},
		{"spec", "headGroupSpec", "labels"}, {"spec", "headGroupSpec", "inventedTomorrow"}, {"spec", "workerGroupSpecs", "0", "idleTimeoutSeconds"},
		{"spec", "workerGroupSpecs", "1", "resources"}, {"spec", "autoscalerOptions", "version"}, {"metadata", "inventedTomorrow"}, {"inventedTomorrow"},
		{"status", "inventedTomorrow"}, in(headPod, "inventedTomorrow"), in(headPod, "containers", "0", "inventedTomorrow"), in(worker1, "containers", "0", "resizePolicy"),
	}
	object := parse(t, minimal, put(map[string]any{"mode": "disabled", "secretName": "s"}, "spec", "authOptions"))
	for _, p := range paths {
		put(unknown, p...)(object)
	}
	for name, s := range map[string]Settings{"all": onOpenShift(), "plain": onOpenShift().with(plain), "issued by the pods": onOpenShift().with(issuedByPod)} {
		got := applyDefaults(t, s, object, nil)
		for _, p := range append(paths, []string{"spec", "authOptions"}) {
			if diff := cmp.Diff(at(object, p...), at(got, p...)); diff != "" {
				t.Errorf("%s: %v was changed (-want +got):\n%s", name, p, diff)
			}
		}
	}
}

// R8, [raycluster-8]: an update never switches between legacy and hashed names.
func TestLegacyClustersKeepTheirNames(t *testing.T) {
	s := onOpenShift()
	legacy := parse(t, minimal)
	updated := applyDefaults(t, s, parse(t, minimal, put("Always", in(headPod, "restartPolicy")...)), legacy)
	if account := at(updated, in(headPod, "serviceAccountName")...); account != "test-raycluster-oauth-proxy" {
		t.Errorf("account %v, want %v", account, "test-raycluster-oauth-proxy")
	}
	if secret := at(find(listAt(updated, in(headPod, "volumes")...), "ca-vol"), "secret", "secretName"); secret != "ca-secret-test-raycluster" {
		t.Errorf("CA %v, want %v", secret, "ca-secret-test-raycluster")
	}
	if _, found := raycluster.View(updated).Annotation(raycluster.AnnotationVersion); found {
		t.Error("a legacy cluster got the version annotation")
	}
	expectAllowed(t, s, updated, legacy)
	forged := applyDefaults(t, s, parse(t, minimal, put("1", "metadata", "annotations", raycluster.AnnotationVersion)), legacy)
	if raycluster.View(forged).HasHashedNames() {
		t.Error("a legacy cluster got hashed names by an annotation of the user")
	}
	expectAllowed(t, s, forged, legacy)

	hashed := applyDefaults(t, s, parse(t, minimal), nil)
	replaced := applyDefaults(t, s, parse(t, minimal), hashed)
	if diff := cmp.Diff(hashed, replaced); diff != "" {
		t.Errorf("an update without the injections (-stored +got):\n%s", diff)
	}
	if response := validateObject(t, s, parse(t, minimal), hashed); response.Allowed {
		t.Error("want a rejection of an update that removes the version annotation")
	}
}

// [R34] Images and other injections do not change until the user changes a template; scheduling fields that Kueue sets are not a change.
func TestStoredInjectionsAreKeptUntilTheTemplateChanges(t *testing.T) {
	s, later := onOpenShift(), onOpenShift().with(newRelease)
	for name, s := range map[string][2]Settings{
		"OpenShift": {s, later}, "plain": {s.with(plain), later.with(plain)}, "issued by the pods": {s.with(issuedByPod), later.with(issuedByPod)},
		"other domain": {s.with(issuedByPod), later.with(issuedByPod).with(func(s *Settings) { s.Domain = "other.example.com" })},
	} {
		t.Run(name, func(t *testing.T) {
			stored := applyDefaults(t, s[0], parse(t, minimal), nil)
			update := func(changes ...func(map[string]any)) map[string]any {
				got := applyDefaults(t, s[1], copyOf(stored, changes...), stored)
				expectAllowed(t, s[1], got, stored)
				return got
			}
			kueueChanges := []func(map[string]any){
				put(map[string]any{"zone": "a"}, in(worker0, "nodeSelector")...), put("b", "spec", "workerGroupSpecs", "0", "template", "metadata", "labels", "a"),
				put(true, "spec", "suspend"), put(int64(7), "spec", "workerGroupSpecs", "0", "replicas"),
			}
			for _, changes := range [][]func(map[string]any){nil, kueueChanges} {
				want := copyOf(stored, changes...)
				if diff := cmp.Diff(want, update(changes...)); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			}
			changed := update(put("example.com/ray:2", in(worker0, "containers", "0", "image")...))
			if image := at(find(listAt(changed, in(worker0, "initContainers")...), "create-cert"), "image"); image != "example.com/ubi:9" {
				t.Errorf("changed group: image %v, want %v", image, "example.com/ubi:9")
			}
			for _, pod := range [][]string{worker1, headPod} {
				if image := at(find(listAt(changed, in(pod, "initContainers")...), "create-cert"), "image"); image != "example.com/ubi:1" {
					t.Errorf("unchanged group: image %v, want %v", image, "example.com/ubi:1")
				}
			}
			if version := at(changed, "metadata", "annotations", raycluster.AnnotationVersion); version != "9.9.9" {
				t.Errorf("version %v, want %v", version, "9.9.9")
			}
		})
	}
}

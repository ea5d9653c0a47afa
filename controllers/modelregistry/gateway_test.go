package modelregistry

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/odh-platform/odh-platform-operator/apis/modelregistry/v1beta1"
	"github.com/odh-platform/odh-platform-operator/controllers/modelregistry/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/names"
	"github.com/odh-platform/odh-platform-operator/pkg/servers"
	"github.com/odh-platform/odh-platform-operator/test/registrytest"
)

// [modelregistry-38] [modelregistry-39] W7: gateway mode starts with the setting and the API, in addition to existing Routes.
func TestGatewayModeIsEnabledLater(t *testing.T) {
	w := newTestEnv(t, everything)
	m := newRegistry("demo", registrytest.Proxied)
	w.current = m
	write := func() string {
		t.Helper()
		w.requireNoError(w.waitForPlatform(t.Context(), m))
		used := withDefaults(m, &w.stateOf(m).platform, credentials{})
		in := buildInputs(m, &w.stateOf(m).platform)
		w.requireNoError(w.resolveReferences(t.Context(), m, used, &in))
		reportSpec(m, used, in)
		desired, err := resources.Build(used, in)
		w.requireNoError(err)
		own, published := splitByOwnership(desired)
		w.requireNoError(w.Applier.Apply(t.Context(), m, own))
		w.requireNoError(w.applyUnowned(t.Context(), m, published))
		return w.takeWrites()
	}
	if got := write(); !strings.Contains(got, "apply Route demo-https") || strings.Contains(got, "HTTPRoute") || strings.Contains(got, "Route demo-http\n") {
		t.Errorf("Route mode wrote\n%s", got)
	}
	w.settings.Gateway.Domain = "gateway.example.com"
	want := "apply Service demo\napply ReferenceGrant allow-gateway-httproutes-demo\napply HTTPRoute model-registry-demo"
	if got := write(); got != want {
		t.Errorf("gateway mode wrote\n%s", got)
	}
	if len(m.Status.Hosts) != 5 || m.Status.Hosts[0] != "gateway.example.com/model-registry/demo" {
		t.Errorf("hosts %v", m.Status.Hosts)
	}
}

// [modelregistry-40] D25: the deletion of a registry deletes a legacy HTTPRoute after gateway mode was disabled.
func TestDeletionRemovesTheHTTPRoute(t *testing.T) {
	for name, served := range map[string][]schema.GroupVersionKind{"served": everything, "not served [D2]": {capability.Route}} {
		t.Run(name, func(t *testing.T) {
			m := newRegistry("demo")
			old := wholeObject(capability.HTTPRoute)
			old.SetNamespace("routes")
			old.SetName("model-registry-demo")
			old.SetLabels(map[string]string{resources.LabelCreatedBy: resources.CreatedBy, resources.LabelApp: "demo"})
			w := newTestEnv(t, served, old)
			w.requireWait(w.finalize(t.Context(), m), "status")
			w.requireWait(w.finalize(t.Context(), m), "status")
			w.requireNoError(w.finalize(t.Context(), m))
			if gone, want := !w.get(wholeObject(capability.HTTPRoute), "routes", "model-registry-demo"), len(served) > 1; gone != want {
				t.Errorf("gone %v, want %v", gone, want)
			}
		})
	}
}

// [modelregistry-53] [modelregistry-55] [modelregistry-56] Inputs follow the APIs that the cluster serves now (W7).
func TestInputsFollowTheCluster(t *testing.T) {
	for name, test := range map[string]struct {
		served    []schema.GroupVersionKind
		openShift bool
		unowned   int
	}{
		"all APIs":               {everything, true, 3},
		"no optional API":        {nil, false, 1},
		"users without Routes":   {[]schema.GroupVersionKind{capability.UserGroup}, false, 2},
		"Routes without users":   {[]schema.GroupVersionKind{capability.Route}, true, 1},
		"a gateway on plain one": {[]schema.GroupVersionKind{capability.HTTPRoute}, false, 2},
	} {
		t.Run(name, func(t *testing.T) {
			got := buildInputs(&v1beta1.ModelRegistry{}, &servers.Platform{Served: capability.NewSet(test.served...)})
			if got.OpenShift() != test.openShift || len(unownedKinds(got)) != test.unowned {
				t.Errorf("got %+v, want OpenShift %t and %d unowned kinds", got, test.openShift, test.unowned)
			}
		})
	}
}

// [D5] The Group is created without users, its users are never written again, and its labels are corrected.
func TestGroupUsersAreNotChanged(t *testing.T) {
	w := newTestEnv(t, everything)
	m := newRegistry("demo", registrytest.Proxied)
	w.requireWait(w.reconcile(m), "available")
	live := wholeObject(capability.UserGroup)
	if !w.get(live, "", "demo-users") {
		t.Fatal("the Group was not created")
	}
	live.Object["users"] = []any{"ann"}
	live.SetLabels(map[string]string{"theirs": "1"})
	live.SetAnnotations(map[string]string{servers.LegacyCopyAnnotation: "x", "theirs": "1"})
	w.requireNoError(w.server.Update(t.Context(), live))
	w.takeWrites()
	w.requireWait(w.reconcile(m), "available")
	if got := w.takeWrites(); got != "patch Group demo-users" {
		t.Errorf("wrote\n%s", got)
	}
	w.get(live, "", "demo-users")
	users, _, err := unstructured.NestedStringSlice(live.Object, "users")
	if err != nil || len(users) != 1 || !labels.SelectorFromSet(labels.Merge(resources.ClusterLabels(m, "demo-users"), names.Labels(ComponentName))).Matches(labels.Set(live.GetLabels())) ||
		live.GetLabels()["theirs"] != "1" || len(live.GetAnnotations()) != 1 {
		t.Errorf("Group %v", live.Object)
	}
	other := newRegistry("demo", registrytest.Proxied)
	other.Namespace, other.UID = "elsewhere", "other"
	w.requireNoError(w.server.Create(t.Context(), func() *v1beta1.ModelRegistry { o := other.DeepCopy(); o.Namespace = "ns"; return o }()))
	group := func(m *v1beta1.ModelRegistry) apply.Desired {
		return apply.Desired{{Config: resources.Group(m, nil), Ownership: apply.Unowned}}
	}
	if err := w.applyUnowned(t.Context(), other, group(other)); err == nil || !strings.Contains(err.Error(), "belongs to ModelRegistry ns/demo") {
		t.Errorf("[D30] got error %v, want one that names the owner of the foreign HTTPRoute", err)
	}
	foreign := wholeObject(capability.UserGroup)
	foreign.SetName("foreign-users")
	w.requireNoError(w.server.Create(t.Context(), foreign))
	if err := w.applyUnowned(t.Context(), newRegistry("foreign"), group(newRegistry("foreign"))); err == nil || !strings.Contains(err.Error(), "was not created by this operator") {
		t.Errorf("a Group of another client: %v", err)
	}
}

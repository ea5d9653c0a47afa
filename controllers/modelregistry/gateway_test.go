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

// [modelregistry-38] [modelregistry-39] W7: a domain of the gateway enables gateway mode, in addition to existing Routes.
func TestGatewayModeIsEnabledLater(t *testing.T) {
	env := newTestEnv(t, optionalKinds)
	m := newRegistry("demo", registrytest.AddProxy)
	env.current = m
	applyAll := func() string {
		t.Helper()
		env.requireNoError(env.waitForPlatform(t.Context(), m))
		effective := withDefaults(m, &env.stateOf(m).platform, credentials{})
		in := buildInputs(m, &env.stateOf(m).platform)
		env.requireNoError(env.resolveReferences(t.Context(), m, effective, &in))
		reportSpec(m, effective, in)
		desired, err := resources.Build(effective, in)
		env.requireNoError(err)
		owned, unowned := splitByOwnership(desired)
		env.requireNoError(env.Applier.Apply(t.Context(), m, owned))
		env.requireNoError(env.applyUnowned(t.Context(), m, unowned))
		return env.takeWrites()
	}
	if got := applyAll(); !strings.Contains(got, "apply Route demo-https") || strings.Contains(got, "HTTPRoute") || strings.Contains(got, "Route demo-http\n") {
		t.Errorf("Route mode wrote\n%s", got)
	}
	env.settings.Gateway.Domain = "gateway.example.com"
	want := "apply Service demo\napply ReferenceGrant allow-gateway-httproutes-demo\napply HTTPRoute model-registry-demo"
	if got := applyAll(); got != want {
		t.Errorf("gateway mode wrote\n%s", got)
	}
	if len(m.Status.Hosts) != 5 || m.Status.Hosts[0] != "gateway.example.com/model-registry/demo" {
		t.Errorf("hosts %v", m.Status.Hosts)
	}
}

// [modelregistry-53] [modelregistry-55] [modelregistry-56] Inputs depend on the APIs that the cluster serves (W7).
func TestInputsFollowTheCluster(t *testing.T) {
	for name, test := range map[string]struct {
		served    []schema.GroupVersionKind
		openShift bool
		unowned   int
	}{
		"all APIs":              {optionalKinds, true, 3},
		"no optional API":       {nil, false, 1},
		"Groups without Routes": {[]schema.GroupVersionKind{capability.UserGroup}, false, 2},
		"Routes without Groups": {[]schema.GroupVersionKind{capability.Route}, true, 1},
		"only HTTPRoutes":       {[]schema.GroupVersionKind{capability.HTTPRoute}, false, 2},
	} {
		t.Run(name, func(t *testing.T) {
			got := buildInputs(&v1beta1.ModelRegistry{}, &servers.Platform{Served: capability.NewSet(test.served...)})
			if got.IsOpenShift() != test.openShift || len(unownedKinds(got)) != test.unowned {
				t.Errorf("got %+v, want OpenShift %t and %d unowned kinds", got, test.openShift, test.unowned)
			}
		})
	}
}

// [D5] The Group is created without users, its users are never written again, and its labels are corrected.
func TestGroupUsersAreNotChanged(t *testing.T) {
	env := newTestEnv(t, optionalKinds)
	m := newRegistry("demo", registrytest.AddProxy)
	env.requireWait(env.reconcile(m), "available")
	live := newUnstructured(capability.UserGroup)
	if !env.get(live, "", "demo-users") {
		t.Fatal("the Group was not created")
	}
	live.Object["users"] = []any{"ann"}
	live.SetLabels(map[string]string{"theirs": "1"})
	live.SetAnnotations(map[string]string{servers.LegacyCopyAnnotation: "x", "theirs": "1"})
	env.requireNoError(env.server.Update(t.Context(), live))
	env.takeWrites()
	env.requireWait(env.reconcile(m), "available")
	if got := env.takeWrites(); got != "patch Group demo-users" {
		t.Errorf("wrote\n%s", got)
	}
	env.get(live, "", "demo-users")
	users, _, err := unstructured.NestedStringSlice(live.Object, "users")
	if err != nil || len(users) != 1 || !labels.SelectorFromSet(labels.Merge(resources.ClusterLabels(m, "demo-users"), names.Labels(ComponentName))).Matches(labels.Set(live.GetLabels())) ||
		live.GetLabels()["theirs"] != "1" || len(live.GetAnnotations()) != 1 {
		t.Errorf("Group %v", live.Object)
	}
	other := newRegistry("demo", registrytest.AddProxy)
	other.Namespace, other.UID = "elsewhere", "other"
	env.requireNoError(env.server.Create(t.Context(), func() *v1beta1.ModelRegistry { o := other.DeepCopy(); o.Namespace = "ns"; return o }()))
	group := func(m *v1beta1.ModelRegistry) apply.Desired {
		return apply.Desired{{Config: resources.Group(m, nil), Ownership: apply.Unowned}}
	}
	if err := env.applyUnowned(t.Context(), other, group(other)); err == nil || !strings.Contains(err.Error(), "belongs to ModelRegistry ns/demo") {
		t.Errorf("[D30] got error %v, want one that names the owner of the foreign Group", err)
	}
	foreign := newUnstructured(capability.UserGroup)
	foreign.SetName("foreign-users")
	env.requireNoError(env.server.Create(t.Context(), foreign))
	if err := env.applyUnowned(t.Context(), newRegistry("foreign"), group(newRegistry("foreign"))); err == nil || !strings.Contains(err.Error(), "was not created by this operator") {
		t.Errorf("got error %v, want one about a foreign Group", err)
	}
}

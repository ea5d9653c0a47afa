package modelcatalog

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	aihubv1alpha1 "github.com/odh-platform/odh-platform-operator/apis/aihub/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/apis/server"
	"github.com/odh-platform/odh-platform-operator/controllers/modelcatalog/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/test/fakeapi"
)

// variant is a combination of parameters that determine which objects a Catalog has.
type variant struct{ ocp, gateway, admins, skip, external, closed bool }

func (v variant) catalog() *aihubv1alpha1.Catalog {
	c := newCatalog()
	if v.external {
		c.Spec.Database = &aihubv1alpha1.CatalogDatabase{External: &aihubv1alpha1.ExternalDatabase{Host: "db"}}
	}
	if v.closed {
		c.Spec.Access = &aihubv1alpha1.CatalogAccess{Authenticated: server.Disabled}
	}
	return c
}

func (v variant) inputs() resources.Inputs {
	in := openShiftInputs()
	if in.SkipDatabase = v.skip; !v.ocp {
		in.Served = capability.NewSet(capability.HTTPRoute, capability.ReferenceGrant)
	}
	if v.gateway {
		behindGateway(&in)
	}
	if v.admins {
		in.AdminGroups = []string{"a", "b"}
	}
	return in
}

// [modelregistry-75] [modelregistry-79] [modelregistry-82] [modelregistry-83] The objects in every variant, each with the required labels
// and an owner reference if it can have one.
func TestObjectsOfEveryVariant(t *testing.T) {
	always := func(variant) bool { return true }
	ocp := func(v variant) bool { return v.ocp }
	viaGateway := func(v variant) bool { return v.ocp && v.gateway }
	database := func(v variant) bool { return !v.skip && !v.external }
	expected := map[string]func(variant) bool{
		"ServiceAccount/model-catalog": always, "ConfigMap/default-catalog-sources": always, "Deployment/model-catalog": always,
		"Service/model-catalog": always, "Role/model-catalog": always, "Role/model-catalog-admin": always,
		"RoleBinding/model-catalog-authenticated": func(v variant) bool { return !v.closed },
		"RoleBinding/model-catalog-admin-binding": func(v variant) bool { return v.admins },
		"Deployment/model-catalog-postgres":       database, "Service/model-catalog-postgres": database, "NetworkPolicy/model-catalog-postgres": database,
		"NetworkPolicy/model-catalog-egress": always, "NetworkPolicy/model-catalog-postgres-egress": database,
		"ConfigMap/model-catalog-kube-rbac-proxy-config": always, "ClusterRoleBinding/model-catalog-auth-delegator": always,
		"Route/model-catalog-https": ocp, "NetworkPolicy/model-catalog-https-route": ocp,
		"NetworkPolicy/model-catalog-ingress": func(v variant) bool { return !v.ocp },
		"HTTPRoute/model-catalog":             viaGateway, "ReferenceGrant/allow-gateway-model-catalog": viaGateway,
	}
	for bits := range 64 {
		on := func(bit int) bool { return bits&(1<<bit) != 0 }
		v := variant{on(0), on(1), on(2), on(3), on(4), on(5)}
		var want, got []string
		for object, when := range expected {
			if when(v) {
				want = append(want, object)
			}
		}
		c := v.catalog()
		for _, o := range buildObjects(t, c, v.inputs()) {
			name := o.GetKind() + "/" + o.GetName()
			got = append(got, name)
			component := "model-catalog"
			if strings.Contains(name, "/model-catalog-postgres") {
				component = "model-catalog-postgres"
			}
			for key, value := range map[string]string{
				"app": "model-catalog", "component": component, "app.kubernetes.io/name": "model-catalog", "app.kubernetes.io/instance": "model-catalog",
				"app.kubernetes.io/component": component, "app.kubernetes.io/created-by": "model-registry-operator",
				"app.kubernetes.io/part-of": "model-catalog", "app.kubernetes.io/managed-by": "model-registry-operator",
			} {
				if o.GetLabels()[key] != value {
					t.Errorf("%+v: %s has %s=%s", v, name, key, o.GetLabels()[key])
				}
			}
			canHaveOwner := o.GetKind() != "ClusterRoleBinding" && o.GetKind() != "HTTPRoute"
			if metav1.IsControlledBy(o, c) != canHaveOwner || len(o.GetOwnerReferences()) > 1 {
				t.Errorf("%+v: %s is owned by %v", v, name, o.GetOwnerReferences())
			}
		}
		slices.Sort(want)
		slices.Sort(got)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%+v (-want +got):\n%s", v, diff)
		}
	}
}

// [modelregistry-97] Labelled sources are arguments after the sources of users, ordered by name, which is their precedence. Each has a
// volume that is mounted at the path of its argument.
func TestLabelledSourcesAreMountedAndServed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		names := rapid.SliceOfNDistinct(rapid.StringMatching(`[a-z]([a-z0-9-]{0,53}[a-z0-9])?`), 0, 60, rapid.ID[string]).Draw(t, "names")
		v := selectSources(validSources(names...), nil, always)
		in := kubernetesInputs()
		in.SourceConfigMaps = v.mounted
		desired := resources.ServerDeployment(newCatalog(), in)
		pod := desired.Spec.Template.Spec
		server := pod.Containers[0]
		want := []string{"--listen=0.0.0.0:8080"}
		for _, directory := range []string{"default-sources", "user-model-sources", "user-mcp-sources", "user-agent-sources", "user-serving-runtime-sources"} {
			want = append(want, "--catalogs-path=/data/"+directory+"/sources.yaml")
		}
		slices.Sort(names)
		if len(names) > maxSources {
			names = names[:maxSources]
		}
		for _, name := range names {
			want = append(want, "--catalogs-path=/data/labeled-sources/"+name+"/sources.yaml")
		}
		if diff := cmp.Diff(append(want, "--performance-metrics=/shared-benchmark-data"), server.Args); diff != "" {
			t.Fatalf("arguments (-want +got):\n%s", diff)
		}
		mountPaths := map[string]string{}
		for _, m := range server.VolumeMounts {
			mountPaths[*m.Name] = *m.MountPath
		}
		found := 0
		for _, volume := range pod.Volumes {
			name, labelled := strings.CutPrefix(*volume.Name, "labeled-")
			if !labelled {
				continue
			}
			found++
			if len(*volume.Name) > 63 || *volume.ConfigMap.Name != name || mountPaths[*volume.Name] != "/data/labeled-sources/"+name {
				t.Fatalf("volume %s of ConfigMap %s at %s", *volume.Name, *volume.ConfigMap.Name, mountPaths[*volume.Name])
			}
		}
		if found != len(names) {
			t.Fatalf("%d volumes for %d sources", found, len(names))
		}
	})
}

// failAt makes the n-th get or write request fail. It returns the counter of these requests.
func (env *testEnv) failAt(n int) (calls *int) {
	calls = new(int)
	env.fail = func(string) error {
		if *calls++; *calls == n {
			return errBroken
		}
		return nil
	}
	return calls
}

// [modelregistry-100] If any get or write request of the first reconcile fails, the error is returned, and later reconciles create the
// missing objects without changing the password.
func TestFaultAtEveryCall(t *testing.T) {
	fakeapi.Exhaustive(t)
	env := newTestEnv(t, newCatalog())
	calls := env.failAt(0)
	if _, err := env.reconcile(); err != nil {
		t.Fatal(err)
	}
	for n := 1; n <= *calls; n++ {
		env := newTestEnv(t, newCatalog())
		env.failAt(n)
		if _, err := env.reconcile(); !errors.Is(err, errBroken) {
			t.Errorf("call %d: got error %v, want the injected error", n, err)
		}
		env.fail = failRandomly(0)
		secret := &corev1.Secret{ObjectMeta: nameMeta(resources.DatabaseName)}
		created := env.get(secret)
		password := string(secret.Data[resources.KeyPassword])
		env.reconcileUntilStable()
		for _, o := range plainCatalogObjects() {
			if !env.get(o) {
				t.Errorf("call %d: %T %s does not exist", n, o, o.GetName())
			}
		}
		if got := string(mustGet(env, secret).Data[resources.KeyPassword]); got == "" || created && got != password {
			t.Errorf("call %d: the password has changed", n)
		}
	}
}

// Sources of users are kept when the spec changes and when the Catalog is deleted, and the next Catalog uses them.
func TestUserSourcesAreKept(t *testing.T) {
	env := newTestEnv(t, newCatalog()).onOpenShift()
	env.reconcileUntilStable()
	userSource := "catalogs:\n- id: mine # ours\n"
	sources := &corev1.ConfigMap{ObjectMeta: nameMeta(resources.ModelSources)}
	env.update(sources, func() { sources.Data[resources.SourcesKey] = userSource })
	c := newCatalog()
	for i, change := range []func(*aihubv1alpha1.CatalogSpec){
		func(s *aihubv1alpha1.CatalogSpec) {
			s.Access = &aihubv1alpha1.CatalogAccess{Authenticated: server.Disabled}
		},
		withExternalDatabase(aihubv1alpha1.ExternalDatabase{Host: "db"}),
		func(s *aihubv1alpha1.CatalogSpec) { *s = aihubv1alpha1.CatalogSpec{} },
		withResources(&corev1.ResourceRequirements{}, nil),
	} {
		env.update(c, func() { change(&c.Spec) })
		env.reconcileUntilStable()
		env.restart()
		env.reconcileUntilStable()
		if got := mustGet(env, sources).Data[resources.SourcesKey]; got != userSource || len(sources.OwnerReferences) > 0 {
			t.Errorf("step %d: sources %q, owners %v", i, got, sources.OwnerReferences)
		}
	}
	if err := env.server.Delete(t.Context(), mustGet(env, newCatalog())); err != nil {
		t.Fatal(err)
	}
	if _, err := env.reconcile(); err != nil || env.get(newCatalog()) {
		t.Fatalf("the Catalog was not deleted: %v", err)
	}
	if got := mustGet(env, sources).Data[resources.SourcesKey]; got != userSource {
		t.Errorf("got sources %q after the deletion of the Catalog, want %q", got, userSource)
	}
	for _, o := range append(plainCatalogObjects(), liveRoute()) { // like the garbage collector
		if env.get(o) && metav1.IsControlledBy(o, newCatalog()) {
			if err := env.server.Delete(t.Context(), o); err != nil {
				t.Fatal(err)
			}
		}
	}
	next := newCatalog()
	next.UID = "next"
	env.create(next)
	env.restart()
	env.reconcileUntilStable()
	if d := mustGet(env, &appsv1.Deployment{ObjectMeta: nameMeta(resources.Name)}); !metav1.IsControlledBy(d, next) {
		t.Errorf("got owner references %v of the Deployment, want the next Catalog", d.OwnerReferences)
	}
	if got := mustGet(env, sources).Data[resources.SourcesKey]; got != userSource {
		t.Errorf("got sources %q after the creation of the next Catalog, want %q", got, userSource)
	}
}
